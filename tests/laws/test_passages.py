"""How long until: times of first passage of many systems, their censoring and their errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Noisy, SelfAttention, Unnormalised
from tokenflock.engines import batch
from tokenflock.engines.job import Job
from tokenflock.engines.passing import locate
from tokenflock.errors import UserError
from tokenflock.events import Consensus, Merged, Stationary
from tokenflock.observables import ClusterCount, MinimumCosine, PairDensity
from tokenflock.precision import cast, precision
from tokenflock.solvers import RK4, EulerMaruyama, Layer
from tokenflock.starts import Given, Uniform
from tokenflock.theory import pair_time
from tokenflock.verbs.passages import kaplan_meier, passages

pytestmark = pytest.mark.usefixtures("quick_compilation")
ANGLE = 2.0
PAIR = Given([[1.0, 0.0], [np.cos(ANGLE), np.sin(ANGLE)]])


# --------------------------------------------------------------------------------------------------
# closed forms


@pytest.mark.parametrize("usa", [False, True], ids=["SA", "USA"])
def test_first_passages_of_two_tokens_are_those_of_the_closed_form(usa):
    beta, law = np.array([0.5, 1.0, 2.0]), Unnormalised() if usa else SelfAttention()
    result = flock.ensemble(
        law,
        PAIR,
        over={"beta": beta},
        repeats=1,
        t=20,
        frames=3,
        solver=RK4(h=0.005 if usa else 0.02),
        until=Consensus(delta=1e-3),
        observe=[],
        dtype="float64",
    )
    exact = pair_time(np.cos(ANGLE), 1 - 1e-3, beta, unnormalised=usa)
    np.testing.assert_allclose(result.first_passage[:, 0], exact, atol=1e-6)
    np.testing.assert_array_equal(result.censored, 0)


def test_a_threshold_below_that_of_the_observables_is_waited_for():
    """Settling: the pair density is final long before the tokens are within 1e-7."""
    result = flock.ensemble(
        SelfAttention(beta=1.0),
        PAIR,
        repeats=1,
        t=40,
        frames=41,
        solver=RK4(h=0.02),
        until=Consensus(delta=1e-7),
        observe=[PairDensity()],
        dtype="float64",
    )
    exact = float(pair_time(np.cos(ANGLE), 1 - 1e-7, 1.0))
    assert float(result.first_passage[0]) == pytest.approx(exact, abs=1e-5)
    assert float(result.pair_density[-1]) == 1


# --------------------------------------------------------------------------------------------------
# every system as if it were alone


@pytest.fixture(scope="module")
def systems():
    """Systems of five tokens, in float64, with frames that are few and do not divide evenly."""
    return flock.ensemble(
        SelfAttention(beta=2.0),
        Uniform(n=5, d=3),
        repeats=12,
        t=9.0,
        times=[0, 1.5, 4.5, 6.5, 9],
        solver=RK4(h=0.05),
        until=Merged(since=3, delta=1e-2),
        observe=[ClusterCount(delta=1e-2), MinimumCosine()],
        keep=True,
        dtype="float64",
    )


def test_merges_of_an_ensemble_are_those_of_each_system(systems):
    """Bracketed by the frames: before the passage there are more clusters, after it no more."""
    assert systems.clusters.values.tolist() == [3, 2, 1]
    assert systems.first_passage.dims == ("repeat", "clusters")
    counts = systems.cluster_count.values
    for level, most in enumerate([3, 2, 1]):
        for times, count in zip(systems.first_passage.values[:, level], counts):
            before = systems.time.values < (np.inf if np.isnan(times) else times)
            assert (count[before] > most).all() and (count[~before] <= most).all()
    assert 0 < int(systems.censored[-1]) < 12, "some merge by the end and some do not"


def test_dwell_times_add_up_to_the_run(systems):
    first = systems.first_passage.isel(clusters=0)
    np.testing.assert_allclose(systems.dwell.sum("clusters"), 9.0 - first.fillna(9.0), atol=1e-12)
    assert float(systems.dwell.min()) >= 0


def test_who_runs_beside_a_system_does_not_change_its_passage(systems):
    from tokenflock.engines import choose

    alone = flock.rerun(systems)
    np.testing.assert_array_equal(alone.first_passage, systems.first_passage)
    before, choose.SLOTS = choose.SLOTS, 5
    try:
        queued = flock.rerun(systems)
    finally:
        choose.SLOTS = before
    np.testing.assert_allclose(queued.first_passage, systems.first_passage, atol=1e-9)
    np.testing.assert_allclose(queued.minimum_cosine, systems.minimum_cosine, atol=1e-9)


def test_all_at_once_and_in_slots_the_passages_are_the_same():
    """As a GPU runs them, and as a CPU does."""
    random = np.random.default_rng(0)
    with precision("float64"):
        parts = cast((SelfAttention(beta=1.0), RK4(h=0.1), Consensus(delta=0.05)), "float64")
        law, solver, until = parts
        x = np.asarray(law.space.project(jnp.asarray(random.normal(size=(5, 4, 3)))))
        keys = jax.random.split(jax.random.key(0), 5)
        steps = np.array([0, 20, 40, 100])
        job = Job(law, solver, (), np.full(4, 0.25), steps, (), "float64", True, until)
        whole, queued = (batch.run(job, x, keys, [], slots)["first_passage"] for slots in (None, 2))
    assert np.isfinite(whole).any() and whole.shape == (5, 1)
    np.testing.assert_allclose(whole, queued, atol=1e-9)


def test_layers_and_noise_are_not_divided():
    for law, solver in (
        (SelfAttention(beta=1.0), Layer(h=0.1)),
        (Noisy(base=SelfAttention(beta=1.0)), EulerMaruyama(h=0.1)),
    ):
        result = flock.ensemble(
            law, Uniform(n=3, d=2), repeats=4, t=20, frames=5, solver=solver,
            until=Consensus(delta=0.1), observe=[],
        )  # fmt: skip
        steps = result.first_passage.values / 0.1
        assert np.isfinite(steps).any()
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)


def test_what_has_happened_at_the_start_takes_no_time():
    result = flock.ensemble(
        SelfAttention(),
        [[1.0, 0.0]] * 3,
        repeats=2,
        t=1,
        frames=2,
        until=Stationary(),
        observe=[],
    )
    assert result.first_passage.values.tolist() == [0, 0]
    assert result.survival.values.tolist() == [0, 0]


@pytest.mark.parametrize("engine", ["lanes", "resident"])
def test_engines_that_look_at_frames_only_refuse_events(engine):
    options = {"repeats": 2, "t": 1, "solver": Layer(h=0.1), "until": Consensus()}
    with pytest.raises(UserError, match="not for events; use engine='batch'"):
        flock.ensemble(SelfAttention(), Uniform(n=4, d=2), engine=engine, **options)


def test_nothing_to_watch_and_nothing_to_observe_is_refused():
    with pytest.raises(UserError, match="observe"):
        flock.ensemble(SelfAttention(), Uniform(n=4, d=2), observe=[])


# --------------------------------------------------------------------------------------------------
# gaps between clusters


def margins(x, w, delta=1e-3):
    """The margins of all numbers of clusters, from as many as there are tokens down to one."""
    gaps = jax.jit(lambda x, w: Merged(since=len(x)).margins(SelfAttention(), 0.0, x, w))
    return np.asarray(gaps(x, w)) + 1e-3 - delta


def test_gaps_of_the_spanning_tree_count_clusters():
    random = np.random.default_rng(3)
    x = jnp.asarray(random.normal(size=(9, 3)), jnp.float32)
    w = jnp.asarray([1.0, 0, 1, 1, 1, 0, 1, 1, 1]) / 7
    for delta in (0.02, 0.1, 0.3, 0.6):
        count = int(ClusterCount(delta=delta).measure(x, w))
        reached = np.arange(9, 0, -1)[margins(x, w, delta) <= 0]
        assert reached.tolist() == list(range(9, count - 1, -1))


def test_gaps_do_not_depend_on_the_order_of_tokens():
    x = np.random.default_rng(0).normal(size=(9, 3))
    w = np.full(9, 1 / 9)
    np.testing.assert_allclose(margins(x, w), margins(x[::-1], w), atol=1e-6)


# --------------------------------------------------------------------------------------------------
# survival curves


def test_the_survival_curve_of_a_published_trial():
    """Remission times of 21 patients under 6-mercaptopurine (Freireich et al. 1963), as every book
    on survival prints them with Greenwood's errors.
    """
    times = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
    censored = [3, 5, 7, 8, 11, 12, 13, 16, 17, 18, 19, 20]
    happened = np.array([k not in censored for k in range(21)])
    curve = kaplan_meier(np.array(times, float), happened)
    assert curve.times.tolist() == [6, 7, 10, 13, 16, 22, 23]
    assert curve.at_risk.tolist() == [21, 17, 15, 12, 11, 7, 6]
    share = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    error = [0.0764, 0.0869, 0.0963, 0.1068, 0.1141, 0.1282, 0.1346]
    np.testing.assert_allclose(curve.share, share, atol=6e-4)
    np.testing.assert_allclose(curve.error, error, atol=6e-5)
    assert curve.median == 23


def test_without_censoring_the_curve_is_the_share_that_is_left():
    times = np.random.default_rng(0).exponential(size=400)
    curve = kaplan_meier(times)
    at = np.array([0.1, 0.7, 2.0])
    share, error = curve.at(at)
    left = (times[:, None] > at).mean(axis=0)
    np.testing.assert_allclose(share, left, atol=1e-12)
    np.testing.assert_allclose(error, np.sqrt(left * (1 - left) / 400), atol=1e-12)
    mean, spread = curve.mean(times.max())
    assert mean == pytest.approx(times.mean(), rel=1e-12)
    assert spread == pytest.approx(times.std(ddof=1) / 20, rel=1e-12)


@pytest.mark.parametrize("end", [0.3, 1.0, 9.0])
def test_the_restricted_mean_is_that_of_times_cut_off_at_the_end(end):
    """Watched to the end, the sample of min(time, end) is complete."""
    times = np.random.default_rng(2).exponential(size=5)
    cut = np.minimum(times, end)
    for curve in (kaplan_meier(cut, times < end), kaplan_meier(times)):
        mean, spread = curve.mean(end)
        assert mean == pytest.approx(cut.mean(), rel=1e-12)
        assert spread == pytest.approx(cut.std(ddof=1) / np.sqrt(5), rel=1e-12)


def test_losses_before_the_end_do_not_count_as_observed():
    """Two of four are lost: the area from 1 to 3 is 4/3, one of three at risk, factor 2."""
    curve = kaplan_meier(np.array([0.5, 1.0, 2.0, 3.0]), np.array([False, True, False, True]))
    mean, spread = curve.mean(3.0)
    assert mean == pytest.approx(1 + 2 * 2 / 3)
    assert spread == pytest.approx(np.sqrt(2 * (4 / 3) ** 2 / 6))


@pytest.mark.parametrize("times", [[0.4], [np.nan, np.nan, np.nan]])
def test_an_error_that_cannot_be_estimated_is_nan(times):
    told = passages(np.array(times)[None, :, None], np.array([0.0, 1.0]))
    assert np.isnan(told["mean_time_error"][0])


def test_errors_of_curves_cover_the_truth():
    """Exponential times cut off at t = 1: the curve and the restricted mean lie within two errors
    of the truth in 95 of 100 samples.
    """
    random = np.random.default_rng(1)
    times = random.exponential(size=(600, 80, 1))
    told = passages(np.where(times < 1, times, np.nan), np.array([0.0, 0.5, 1.0]))
    far = np.abs(told["survival"][:, 1] - np.exp(-0.5)) / told["survival_error"][:, 1]
    assert 0.92 < (far < 1.96).mean() < 0.98
    far = np.abs(told["mean_time"] - (1 - np.exp(-1))) / told["mean_time_error"]
    assert 0.92 < (far < 1.96).mean() < 0.98
    assert told["censored"].mean() == pytest.approx(80 * np.exp(-1), abs=1)


def test_times_that_are_none_are_refused():
    with pytest.raises(UserError, match="times"):
        kaplan_meier(np.array([1.0, np.nan]))


class Noon:
    """Happens at a time, whatever the tokens do."""

    def margins(self, law, t, x, w):
        return jnp.asarray([0.7 - t])


def test_an_event_is_found_at_its_own_time_within_a_step():
    """Steps of 0.5 from 0.5 to 1: 0.7 is two fifths of the way."""
    with precision("float64"):
        law, solver, x, w = SelfAttention(), RK4(h=0.5), jnp.eye(2), jnp.full(2, 0.5)
        ends = (x, solver.step(law, jnp.asarray(0.5), x, w, None))
        share, there = locate(Noon(), law, solver, jnp.asarray(1), ends, w, None, 0)
        assert float(share) == pytest.approx(0.4, abs=1e-12)
        part = RK4(h=0.2).step(law, jnp.asarray(0.5), x, w, None)
        np.testing.assert_allclose(there, part, rtol=1e-12)
