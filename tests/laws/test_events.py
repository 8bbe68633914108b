"""Events end a run where they should, and the history of a run says when."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.stats import ortho_group

import tokenflock as flock
from tokenflock.catalogue import entries
from tokenflock.dynamics import Causal, Kuramoto, SelfAttention
from tokenflock.events import Consensus, Event, Stationary
from tokenflock.observables import MinimumCosine
from tokenflock.precision import precision
from tokenflock.solvers import RK4, Adaptive, Euler, Layer
from tokenflock.solvers.adaptive import Method
from tokenflock.starts import Given
from tokenflock.verbs.merges import dwell_times, merges

LAW = SelfAttention(beta=1.0)
START = Given([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.6, 0.0, 0.8]])


EVENTS = [entry.load().example() for entry in entries("events")]
every_event = pytest.mark.parametrize("event", EVENTS, ids=repr)


def apart(n=5, d=3, seed=0):
    """Generic tokens and unequal weights."""
    random = np.random.default_rng(seed)
    x, w = random.normal(size=(n, d)), random.uniform(0.5, 1.5, size=n)
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True)), jnp.asarray(w / w.sum())


def margin(event, x, w):
    return np.asarray(event.margin(LAW, 0.0, jnp.asarray(x), w))


@every_event
@pytest.mark.usefixtures("double")
def test_an_event_has_happened_where_it_says_and_not_before(event):
    x, w = apart()
    after = event.happened(*x.shape)
    assert margin(event, x, w).shape == ()
    assert margin(event, x, w) > 0 >= margin(event, after, w)


@every_event
@pytest.mark.usefixtures("double")
def test_order_and_rotations_do_not_matter_exactly_where_declared(event):
    x, w = apart()
    order, U = np.array([3, 0, 1, 4, 2]), ortho_group.rvs(3, random_state=0)
    here = margin(event, x, w)
    assert np.allclose(margin(event, x[order], w[order]), here, atol=1e-12) == event.exchangeable
    assert np.allclose(margin(event, x @ U.T, w), here, atol=1e-12) == event.isotropic


@every_event
@pytest.mark.usefixtures("double")
def test_an_event_does_not_wait_for_tokens_of_weight_zero(event):
    """Neither do strangers that stand apart keep it from happening."""
    x, w = apart()
    strangers, none = apart(2, seed=7)[0], jnp.zeros(2)
    for tokens in (x, jnp.asarray(event.happened(*x.shape))):
        padded = margin(event, jnp.concatenate([tokens, strangers]), jnp.concatenate([w, none]))
        assert np.allclose(padded, margin(event, tokens, w), atol=1e-12)


@every_event
@pytest.mark.usefixtures("double")
def test_a_batch_of_systems_is_judged_as_each_system_alone(event):
    pairs = [apart(seed=seed) for seed in range(3)]
    x, w = (jnp.stack(parts) for parts in zip(*pairs))
    together = jax.vmap(lambda x, w: event.margin(LAW, 0.0, x, w))(x, w)
    assert np.allclose(together, [margin(event, *pair) for pair in pairs], atol=1e-12)


@pytest.mark.slow
@every_event
def test_a_run_ends_with_the_first_frame_at_which_any_event_has_happened(event):
    options = {"t": 40.0, "solver": RK4(h=0.1), "frames": 81}
    stopped, whole = (flock.simulate(LAW, START, until=until, **options) for until in (event, None))
    w = jnp.asarray(whole.w.values)
    with precision("float64"):
        happened = np.array([margin(event, x, w) <= 0 for x in whole.x.values])
    end = int(np.argmax(happened)) if happened.any() else len(happened) - 1
    assert end > 0 and stopped.sizes["time"] == end + 1


def follow(until=None, solver=RK4(h=0.05), **options):
    return flock.simulate(LAW, START, t=6.0, until=until, solver=solver, **options)


def exact(delta):
    """When the event happens in the flow."""
    return float(follow(Consensus(delta), Adaptive(rtol=1e-11), frames=3).time[-1])


@pytest.mark.parametrize("frames", [2, 61])
def test_fixed_steps_locate_an_event_between_frames_and_steps(frames):
    """However few frames are kept, and however they are cut into blocks: the frames before the
    event, then the event, and nothing after it.
    """
    delta = 0.02
    stopped, whole = (
        follow(until, frames=frames, observe=[MinimumCosine()])
        for until in (Consensus(delta), None)
    )
    end = float(stopped.time[-1])
    before = int((whole.time.values < end).sum())
    assert end == pytest.approx(exact(delta), abs=1e-6)
    assert 0.01 < end / 0.05 % 1 < 0.99, "the event is to lie within a step"
    assert float(stopped.minimum_cosine[-1]) == pytest.approx(1 - delta, abs=1e-12)
    assert stopped.sizes["time"] == before + 1
    np.testing.assert_array_equal(stopped.time[:-1], whole.time[:before])
    np.testing.assert_allclose(stopped.x[:-1], whole.x[:before], atol=1e-12)
    assert stopped.attrs["stopped"].endswith(f"at t = {end:.10g}")


@pytest.mark.parametrize("frames", [2, 61])
def test_an_event_of_the_layer_map_happens_at_a_whole_layer(frames):
    options = {"solver": Layer(h=0.05), "observe": [MinimumCosine()]}
    stopped = follow(Consensus(0.1), frames=frames, **options)
    every = follow(frames=121, **options)
    first = int(np.argmax(every.minimum_cosine.values >= 0.9))
    assert int(stopped.layer[-1]) == first > 0
    assert len(np.unique(stopped.layer)) == stopped.sizes["time"]
    np.testing.assert_allclose(stopped.x[-1], every.x[first], atol=1e-12)


def test_an_event_is_located_with_the_order_of_the_solver():
    """Halving the step divides the error of the time by 2^order."""
    right = exact(0.02)
    for solver, order in ((Euler, 1), (RK4, 4)):
        coarse, fine = (
            abs(float(follow(Consensus(0.02), solver(h=h), frames=2).time[-1]) - right)
            for h in (0.1, 0.05)
        )
        assert np.log2(coarse / fine) == pytest.approx(order, abs=0.35), solver.__name__


@pytest.mark.parametrize("method", ["dopri8", "tsit5"])
def test_adaptive_steps_in_single_precision_locate_an_event(method):
    """Rounding keeps margins in float32 away from zero by more than a double would."""
    options = {"t": 30, "frames": 5, "until": Consensus(), "solver": Adaptive(method=method)}
    for law in (SelfAttention(beta=1.0), Causal(beta=2.0)):
        exact = flock.simulate(law, START, **options)
        run = flock.simulate(law, START, dtype="float32", **options)
        assert "stopped" in run.attrs
        assert float(run.time[-1]) == pytest.approx(float(exact.time[-1]), rel=1e-3)


class Late(Event):
    """At t = 2.3, with a margin that jumps."""

    def margin(self, dynamics, t, x, w):
        return jnp.where(t < 2.3, 1.0, -1.0)


def test_adaptive_steps_locate_a_margin_that_jumps():
    run = flock.simulate(LAW, START, t=5, frames=6, until=Late())
    assert float(run.time[-1]) == pytest.approx(2.3, abs=1e-12)


def test_an_event_that_does_not_happen_leaves_the_run_whole():
    stopped, whole = follow(Consensus(1e-9), frames=31), follow(frames=31)
    xr.testing.assert_allclose(stopped.x, whole.x, atol=1e-12)
    assert stopped.attrs["stopped"].endswith("did not happen")


# --------------------------------------------------------------------------------------------------
# rest


def speeds(law, x, w):
    return np.linalg.norm(law.velocity(0.0, x, w), axis=1)


@pytest.mark.usefixtures("double")
def test_stationary_waits_for_the_fastest_token():
    """The first token of a causal law rests for ever, the others do not."""
    x, w = jnp.asarray(START.x), jnp.full(3, 1 / 3)
    law, moving = Causal(beta=1.0), speeds(Causal(beta=1.0), x, w)
    assert moving.min() < 1e-12 < 0.1 < moving.max()
    margin = float(Stationary(speed=0.01).margin(law, 0.0, x, w))
    assert margin == pytest.approx(moving.max() - 0.01, rel=1e-12)


@pytest.mark.usefixtures("double")
def test_stationary_does_not_wait_for_tokens_of_weight_zero():
    x, w = jnp.asarray(START.x), jnp.array([1.0, 0.0, 0.0])
    assert speeds(LAW, x, w).max() > 0.1
    assert float(Stationary(speed=0.01).margin(LAW, 0.0, x, w)) == pytest.approx(-0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver", [RK4(h=0.05), Adaptive(rtol=1e-5, method=Method.BOSH3)], ids=["fixed", "adaptive"]
)
def test_a_run_until_rest_ends_when_no_token_is_faster(solver):
    law, limit = Causal(beta=1.0), 1e-3
    result = flock.simulate(
        law, START, t=60.0, frames=121, solver=solver, until=Stationary(speed=limit)
    )
    w = jnp.asarray(result.w.values)
    fastest = [speeds(law, jnp.asarray(x), w).max() for x in result.x.values]
    assert 1 < float(result.time[-1]) < 60
    assert min(fastest[:-1]) > limit
    assert fastest[-1] <= limit * (1 + 1e-3)


@pytest.mark.parametrize("solver", [RK4(h=0.1), Adaptive()], ids=["fixed", "adaptive"])
def test_what_rests_from_the_start_is_over_at_once(solver):
    together = Given([[1.0, 0.0], [1.0, 0.0]])
    rest = flock.simulate(Kuramoto(), together, t=5, solver=solver, until=Stationary())
    assert rest.time.values.tolist() == [0.0]
    assert rest.attrs["stopped"].endswith("at t = 0")


# --------------------------------------------------------------------------------------------------
# the history of a run


def history(counts, times, w=None):
    """A result whose tokens sit on the first axes, so many of them at each time."""
    x = np.stack([np.eye(4)[np.minimum(np.arange(4), count - 1)] for count in counts])
    parts = {"x": (("time", "particle", "coord"), x)}
    if w is not None:
        parts["w"] = ("particle", np.asarray(w))
    return xr.Dataset(parts, {"time": np.asarray(times, float)})


def test_dwell_times_are_the_spans_at_each_number_of_clusters():
    """The stage at which a run ends is cut off: no time is known to have passed since its last
    frame.
    """
    dwell = dwell_times(history([4, 4, 2, 2, 1], [0, 1, 3, 6, 10]))
    assert dwell.dims == ("clusters",)
    assert dict(zip(dwell.clusters.values.tolist(), dwell.values.tolist())) == {4: 3, 2: 7, 1: 0}
    assert float(dwell.sum()) == 10


def test_a_cluster_that_comes_apart_again_does_not_start_its_stage_anew():
    dwell = dwell_times(history([4, 2, 3, 2, 2], [0, 1, 2, 4, 8]))
    assert dict(zip(dwell.clusters.values.tolist(), dwell.values.tolist())) == {4: 1, 2: 7}


def test_merges_say_when_from_what_to_what_and_how_much_is_in_the_largest():
    told = merges(history([4, 4, 2, 3, 1], [0, 1, 3, 6, 10], [0.1, 0.2, 0.3, 0.4]))
    assert told.time.values.tolist() == [3, 10]
    assert told.before.values.tolist() == [4, 2]
    assert told.after.values.tolist() == [2, 1]
    assert told.largest.values.tolist() == [pytest.approx(0.9), pytest.approx(1.0)]


def test_dwell_times_of_a_run_are_those_of_its_merges(run):  # the fixture: two clusters on a circle
    told, dwell = merges(run), dwell_times(run)
    assert dwell.clusters.values.tolist() == [told.before.values[0], *told.after.values]
    ends = np.append(told.time.values, run.time.values[-1])
    np.testing.assert_allclose(dwell.values, np.diff(np.concatenate([[0.0], ends])), atol=1e-12)
