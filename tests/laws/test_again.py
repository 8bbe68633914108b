"""Results stay useful: a part of one, one with changes, and one system of an ensemble run again."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Attention, Noisy, SelfAttention, Unnormalised
from tokenflock.engines.systems import Systems
from tokenflock.errors import UserError
from tokenflock.events import Consensus
from tokenflock.matrices import RandomMatrices, Value
from tokenflock.observables import ClusterCount, MinimumCosine, PairDensity
from tokenflock.precision import precision
from tokenflock.solvers import RK4, EulerMaruyama, Layer
from tokenflock.starts import Clusters, Given, Uniform

pytestmark = [pytest.mark.usefixtures("quick_compilation"), pytest.mark.slow]
OVER = {"beta": [1.0, 2.0, 4.0], "d": [2, 3]}


@pytest.fixture(scope="module")
def many():
    return flock.ensemble(
        SelfAttention(),
        Uniform(n=4, d=2),
        over=OVER,
        repeats=5,
        t=4.0,
        frames=5,
        solver=RK4(h=0.1),
        observe=[MinimumCosine()],
        until=Consensus(delta=0.05),
        keep=True,
        dtype="float64",
        seed=3,
    )


@pytest.fixture(scope="module")
def single():
    law, start = SelfAttention(beta=2.0), Uniform(n=4, d=3)
    return flock.simulate(law, start, t=4.0, frames=5, solver=RK4(h=0.1), seed=2)


def same(a: xr.Dataset, b: xr.Dataset, atol: float = 1e-12) -> None:
    assert dict(a.sizes) == dict(b.sizes)
    assert set(a.data_vars) == set(b.data_vars)
    for name in b.data_vars:
        np.testing.assert_allclose(a[name].values, b[name].values, atol=atol, err_msg=str(name))


# --------------------------------------------------------------------------------------------------
# parts


@pytest.mark.slow
@pytest.mark.parametrize(
    "select",
    [
        lambda whole: whole,
        lambda whole: whole.sel(beta=4),
        lambda whole: whole.isel(beta=[2, 0], d=1),
        lambda whole: whole.isel(repeat=slice(1, 4)),
        lambda whole: whole.isel(time=[0, 2]),
        lambda whole: whole.sel(beta=2, d=3, repeat=4).isel(time=-1),
    ],
    ids=["all", "a value", "values turned round", "repeats", "times", "one number"],
)
def test_a_selected_part_runs_alone_with_the_numbers_that_it_had(many, select):
    part = select(many).drop_vars(
        [  # these are of all times, repeats and cells
            name
            for name in ("survival", "survival_error", "censored", "median_time")
            if name in many
        ]
        + ["mean_time", "mean_time_error"]
    )
    again = flock.rerun(part)[list(part.data_vars)]
    if (
        "time" in part.sizes and part.sizes["time"] == 2
    ):  # an event after the last frame is not seen
        part, again = part[["minimum_cosine"]], again[["minimum_cosine"]]
    same(again, part)


def test_a_part_of_a_part_is_found(many):
    part = flock.rerun(many.isel(beta=[1, 2]))
    same(flock.rerun(part.sel(beta=4)), many.sel(beta=4))


def test_times_of_a_trajectory_are_a_part(single):
    part = single.isel(time=[1, 3])
    same(flock.rerun(part), part)
    same(flock.rerun(single.isel(time=-1)), single.isel(time=-1))


def test_times_that_a_run_did_not_have_are_refused(single):
    """The nearest ones of the recipe would have other numbers."""
    for edited in (
        single.interp(time=[0.0, 1.3]),
        single.assign_coords(time=single.time * 10),
        single.assign_coords(time=single.time + 0.5),
    ):
        with pytest.raises(UserError, match="values of 'time' that its recipe does not have"):
            flock.rerun(edited)


def test_a_run_that_an_event_ended_is_whole(single):
    stopped = flock.rerun(single, until=Consensus(delta=0.3), t=20.0, frames=9)
    assert 3 < float(stopped.time[-1]) < 20
    again = flock.rerun(stopped)
    same(again, stopped)
    assert again.attrs["stopped"] == stopped.attrs["stopped"]


# --------------------------------------------------------------------------------------------------
# changes


def test_parameters_and_options_can_be_changed(single):
    again = flock.rerun(single, beta=3, n=5, seed=7, h=0.05)
    options = {"t": 4.0, "frames": 5, "solver": RK4(h=0.05), "seed": 7}
    same(again, flock.simulate(SelfAttention(beta=3.0), Uniform(n=5, d=3), **options))
    same(
        flock.rerun(single, **{"dynamics.beta": 3, "start.n": 5, "seed": 7, "solver.h": 0.05}),
        again,
    )


def test_a_longer_run_begins_as_the_shorter_one(single):
    part = single.isel(time=[0, 2, 4])
    longer = flock.rerun(part, t=8.0, frames=9)
    assert longer.time.values.tolist() == pytest.approx(list(range(9)))
    np.testing.assert_allclose(longer.x[:5], single.x, atol=1e-12)


def test_what_is_swept_takes_other_values_or_one(many):
    other = flock.rerun(many, beta=[2.0, 8.0])
    assert other.beta.values.tolist() == [2, 8] and other.sizes["d"] == 2
    fixed = flock.rerun(many, beta=4.0, repeats=3)
    assert fixed.minimum_cosine.dims == ("d", "repeat", "time")
    assert fixed.sizes["repeat"] == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gamma": 1}, "rerun has no parameter 'gamma'; there are beta"),
        ({"dynamics.gamma": 1}, "rerun has no parameter"),
        ({"n": -3}, "n must be"),
        ({"t": -1.0}, "t must be"),
        ({"part": {}}, "select it"),
    ],
)
def test_wrong_changes_are_refused(single, change, words):
    with pytest.raises(UserError, match=words):
        flock.rerun(single, **change)


# --------------------------------------------------------------------------------------------------
# one system of many


def test_a_member_of_an_ensemble_is_that_system(many):
    for beta, d, repeat in ((1.0, 2, 0), (4.0, 3, 4)):
        run = flock.member(many, repeat, beta=beta, d=d)
        cell = many.sel(beta=beta, d=d, repeat=repeat)
        end, first = float(run.time[-1]), float(cell.first_passage)
        assert end == pytest.approx(first if np.isfinite(first) else 4.0, abs=1e-9)
        there = cell.minimum_cosine.sel(time=run.time[:-1], method="nearest")
        np.testing.assert_allclose(run.minimum_cosine[:-1], there, atol=1e-12)
        same(flock.rerun(run), run, atol=0)


def test_a_member_has_the_tokens_of_its_system_to_the_last_bit():
    start = Uniform(n=4, d=3)
    many = flock.ensemble(SelfAttention(), start, repeats=300, t=0.2, frames=2, seed=5)
    systems = Systems(SelfAttention(), start, None, 5, "float32", 0.2, False)
    ids = np.stack([np.zeros(300, int), np.arange(300)], axis=-1)
    with precision("float32"):
        tokens, keys = systems.draw(ids[:256], False)
        run = flock.member(many, 17)
    np.testing.assert_array_equal(run.x[0], tokens[17])
    assert '"noise": ' in run.attrs["recipe"]
    words = np.asarray(jax.random.key_data(keys))[17].tolist()
    assert str(words) in run.attrs["recipe"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["batch", "lanes", "resident"])
def test_members_agree_with_every_engine(engine):
    """The pair density of a system, to the share of a pair that lies at the threshold."""
    many = flock.ensemble(
        SelfAttention(),
        Uniform(n=4, d=9),
        over={"beta": [1.0, 3.0]},
        repeats=3,
        t=6.0,
        frames=4,
        solver=Layer(h=0.1),
        observe=[PairDensity(delta=0.2)],
        keep=True,
        engine=engine,
    )
    run = flock.member(many, 2, beta=3.0)
    there = many.pair_density.sel(beta=3.0, repeat=2)
    assert 0 < float(there.mean()) < 1
    np.testing.assert_allclose(run.pair_density, there, atol=1e-6)


@pytest.mark.slow
def test_members_keep_their_matrices_and_their_noise():
    options = {"repeats": 3, "t": 1.0, "frames": 3, "keep": True, "observe": [MinimumCosine()]}
    matrices = {"matrices": RandomMatrices(value=Value.GINIBRE), "solver": Layer(h=0.1)}
    for law, others in (
        (Attention(beta=2.0), matrices),
        (Noisy(base=SelfAttention(beta=2.0)), {"solver": EulerMaruyama(h=0.05)}),
    ):
        many = flock.ensemble(law, Uniform(n=4, d=3), dtype="float64", **options, **others)
        runs = [flock.member(many, repeat) for repeat in (0, 2)]
        for run, repeat in zip(runs, (0, 2)):
            there = many.minimum_cosine.isel(repeat=repeat)
            np.testing.assert_allclose(run.minimum_cosine, there, atol=1e-6)
        same(flock.rerun(runs[1]), runs[1], atol=1e-6)
        assert np.abs(runs[0].minimum_cosine - runs[1].minimum_cosine).max() > 1e-3


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"d": 2}, "beta must be one of 1, 2, 4, got none"),
        ({"beta": 3.0, "d": 2}, "beta must be one of 1, 2, 4, got 3"),
        ({"beta": 4.0, "d": 2, "h": 1}, "does not sweep 'h'; it sweeps beta, d"),
        ({"beta": 4.0, "d": 2, "repeat": 5}, "repeat must be a whole number from 0 to 4"),
    ],
)
def test_a_member_that_is_not_there_is_refused(many, single, where, words):
    with pytest.raises(UserError, match=words):
        flock.member(many, **where)
    with pytest.raises(UserError, match="result must be an ensemble, got 'simulate'"):
        flock.member(single)


def test_a_member_of_a_part_is_the_system_that_was_selected(many):
    for part, system in (
        (many.isel(repeat=4), 4),
        (many.isel(repeat=[3, 1]), 3),
        (many, 0),
    ):
        run = flock.member(part, beta=4.0, d=3)
        same(run, flock.member(many, system, beta=4.0, d=3), atol=0)


def test_a_member_of_a_part_runs_under_the_solver_of_its_own_cell():
    """The stiff cell is found by its label, in whatever place it is."""
    over, start = {"beta": [1.0, 3.0, 6.0]}, Uniform(n=16, d=3)
    options = {"repeats": 2, "t": 1.0, "frames": 2, "observe": [ClusterCount()]}
    whole = flock.ensemble(Unnormalised(), start, over=over, **options)
    assert whole.scheme.values.tolist() == [0, 0, 1]
    right = {beta: flock.member(whole, 1, beta=beta) for beta in (1.0, 6.0)}
    for order in ([2, 1, 0], [0, 2], [2, 0]):
        for beta, run in right.items():
            again = flock.member(whole.isel(beta=order), 1, beta=beta)
            assert again.attrs["accuracy"] == run.attrs["accuracy"]
            np.testing.assert_array_equal(again.x, run.x)
    with pytest.raises(UserError, match="beta must be one that the result still has"):
        flock.member(whole.sel(beta=6.0), 1, beta=1.0)
    with pytest.raises(UserError, match="one with the coordinate 'beta'"):
        flock.member(whole.mean("beta", keep_attrs=True), 1, beta=6.0)


# --------------------------------------------------------------------------------------------------
# starts


def test_an_array_is_a_start_of_an_ensemble():
    x = np.random.default_rng(0).normal(size=(4, 3))
    options = {"repeats": 2, "t": 1.0, "frames": 3, "observe": [MinimumCosine()], "keep": True}
    array, given = (flock.ensemble(SelfAttention(), start, **options) for start in (x, Given(x)))
    same(array, given, atol=0)
    np.testing.assert_array_equal(array.minimum_cosine[0], array.minimum_cosine[1])


@pytest.mark.slow
def test_clusters_lie_about_the_given_centres():
    centres = np.array([[0.0, 0.0, 2.0], [0.0, -1.0, 0.0]])
    x = np.asarray(Clusters(n=7, d=3, k=2, spread=0.0, centres=centres).draw(jax.random.key(0)))
    np.testing.assert_allclose(x[::2], np.tile([0, 0, 1.0], (4, 1)), atol=1e-7)
    np.testing.assert_allclose(x[1::2], np.tile([0, -1.0, 0], (3, 1)), atol=1e-7)
    near = Clusters(n=400, d=3, k=2, spread=0.05, centres=centres).draw(jax.random.key(1))
    offsets = np.asarray(near)[::2, :2]
    assert offsets.std() == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize(
    ("centres", "words"),
    [
        (np.eye(3), "write k=3, d=3"),
        ([[0, 0, 0], [1, 0, 0]], "a row of zeros"),
        ([1.0, 0.0], "shape"),
    ],
)
def test_wrong_centres_are_refused(centres, words):
    with pytest.raises(UserError, match=words):
        Clusters(n=4, d=3, k=2, centres=centres)
