"""Tokens that have met are one: who meets whom, what becomes of them, and when, against the
equations of three angles integrated by another program.
"""

from __future__ import annotations

from types import SimpleNamespace

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tokenflock.dynamics import NGPT, Attention, Kuramoto, PureAttention, SelfAttention
from tokenflock.engines import coalescing
from tokenflock.engines.coalescing import _check, _distances, _Heavy, _is_sum, _segment
from tokenflock.engines.course import Course
from tokenflock.errors import SimulationError
from tokenflock.events import Consensus
from tokenflock.solvers import Adaptive

pytestmark = pytest.mark.usefixtures("double")
LAW, W = SelfAttention(beta=2.0), np.array([0.2, 0.3, 0.5])
START, TIMES = np.array([0.0, 0.2, 2.0]), np.array([0.0, 0.5, 1.5, 3.0, 30.0])


def unit(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def generic(n=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(n, d)), rng.uniform(0.5, 1, n)
    return x / np.linalg.norm(x, axis=1, keepdims=True), w / w.sum()


# --------------------------------------------------------------------------------------------------
# small velocities


def test_the_sum_over_pairs_is_the_velocity_of_the_law():
    x, w = generic()
    rng = np.random.default_rng(1)
    for law in (LAW, Attention(beta=1.5, Q=rng.normal(size=(3, 3)), V=rng.normal(size=(3, 3)))):
        velocity = coalescing.slow_velocity(law, *x.shape)
        assert velocity != law.velocity
        found = jax.jit(velocity)(0.0, 2 * x, w)
        wanted = eqx.filter_jit(law.velocity)(0.0, x, w)
        np.testing.assert_allclose(found, wanted, atol=1e-14)


def test_only_plain_sums_over_tokens_of_the_sphere_are_summed_so():
    assert _is_sum(LAW) and _is_sum(Attention(V=np.eye(3)))
    assert not _is_sum(NGPT()) and not _is_sum(PureAttention())
    for name in ("velocity", "force", "field"):
        own = type("Own", (SelfAttention,), {name: lambda *given: 0})
        assert not _is_sum(own(beta=1.0)), f"a {name} of its own"
    for law, n, d in ((NGPT(), 5, 3), (PureAttention(), 5, 3), (LAW, 2**10, 5), (Kuramoto(), 4, 2)):
        assert coalescing.slow_velocity(law, n, d) == law.velocity
    for n, d in ((2**10, 4), (2**11, 1), (4, 2**18)):
        assert coalescing.slow_velocity(LAW, n, d) != LAW.velocity


def test_what_a_token_says_to_itself_moves_it_only_where_it_is_no_rounding():
    """V = I leaves a token where it is, to the last digit; V = I + 1e-9 J turns it at 1e-9."""
    turn = np.array([[0, -1.0, 0], [1.0, 0, 0], [0, 0, 0]])
    alone = jnp.asarray(generic(12)[0])[:, None]

    @jax.jit
    def velocities(V):
        velocity = coalescing.slow_velocity(Attention(V=V), 1, 3)
        return jax.vmap(lambda x: velocity(0.0, x, jnp.ones(1)))(alone)

    for size in (1e-12, 1.0, 1e12):
        assert (velocities(size * np.eye(3)) == 0).all()
        turning = velocities(size * (np.eye(3) + 1e-9 * turn))
        np.testing.assert_allclose(turning, size * 1e-9 * alone @ turn.T, atol=1e-15 * size)


# --------------------------------------------------------------------------------------------------
# heavy tokens


def test_distances_are_those_of_differences():
    x, _ = generic()
    x = np.concatenate([x, x[:1] + np.array([[0, 0, 1e-12]])])
    wanted = np.linalg.norm(x[:, None] - x, axis=-1)
    np.testing.assert_allclose(_distances(jnp.asarray(x)), wanted, rtol=1e-14)


def heavy(angles, w=None, speed=1.0):
    """Tokens of radius 0.1 that all go to one place, at a speed, or from it."""
    angles = np.asarray(angles)
    w = np.full(len(angles), 1 / len(angles)) if w is None else np.asarray(w)
    state = _Heavy(LAW, unit(angles), w, 0.1)

    def velocity(t, x, weights):
        assert (jnp.ndim(t), x.shape, weights.shape) == (0, (len(w), 2), w.shape)
        return speed * (np.array([5.0, 0.0]) - np.asarray(x))

    state.velocity = velocity
    return state


def test_tokens_that_have_met_are_one_at_their_mean():
    """Within a radius and a hundredth; the mean by weight, brought to the circle."""
    state = heavy([0.0, 0.08, 2.0, 2.1009, 4.0], [0.1, 0.3, 0.2, 0.2, 0.2])
    assert state.count == 5 and state.own.all()
    apart = state.apart()
    assert not apart[0, 1] and not apart[2, 3] and not apart.diagonal().any()
    assert apart.sum() == 20 - 4
    state.join(0.0)
    assert state.home.tolist() == [0, 0, 2, 2, 4] and state.count == 3
    np.testing.assert_allclose(state.weights, [0.4, 0, 0.4, 0, 0.2])
    mean = 0.25 * unit(0.0) + 0.75 * unit(0.08)
    np.testing.assert_allclose(state.x[0], mean / np.linalg.norm(mean), rtol=1e-12)
    np.testing.assert_allclose(state.x[2], unit(2.05045), rtol=1e-12)
    frame = state.frame()
    assert frame.shape == (1, 5, 2)
    np.testing.assert_array_equal(frame[0], state.x[[0, 0, 2, 2, 4]])
    assert state.apart().sum() == 6, "pairs of the three that are left"
    np.testing.assert_allclose(state.w, [0.1, 0.3, 0.2, 0.2, 0.2])


def test_a_chain_of_meetings_ends_in_one_token():
    state = heavy([0.0, 0.05, 0.1, 3.0], [0.4, 0.2, 0.2, 0.2])
    state.join(0.0)
    assert state.home.tolist() == [0, 0, 0, 3]
    np.testing.assert_allclose(state.weights, [0.8, 0, 0, 0.2])


def test_those_that_do_not_close_do_not_meet():
    """Neither apart by more than the radius, nor on their way from each other."""
    for state in (heavy([0.0, 0.12, 3.0]), heavy([0.0, 0.05, 3.0], speed=-1.0)):
        state.join(0.0)
        assert state.count == 3 and state.home.tolist() == [0, 1, 2]
    rest = heavy([0.0, 0.05, 3.0], speed=0.0)
    rest.join(0.0)
    assert rest.count == 2, "those that rest side by side have met"


def test_tokens_without_weight_meet_in_the_middle():
    state = heavy([0.0, 1.0, 1.04], [1.0, 0.0, 0.0])
    state._merge(1, 2)
    assert state.home.tolist() == [0, 1, 1] and state.weights.tolist() == [1, 0, 0]
    np.testing.assert_allclose(state.x[1], unit(1.02), rtol=1e-12)


def test_a_run_that_cannot_go_on_says_so():
    results, state = diffrax.RESULTS, heavy([0.0, 1.0])
    for fine in (results.event_occurred, results.nonlinear_max_steps_reached):
        _check(SimpleNamespace(result=fine), Adaptive(), LAW, 1.5, state)  # type: ignore[arg-type]
    for bad in (results.max_steps_reached, results.successful):
        lost = SimpleNamespace(result=bad, stats={"num_steps": 7})
        with pytest.raises(SimulationError, match=r"after t = 1.5 and 7 steps with 2 heavy"):
            _check(lost, Adaptive(), LAW, 1.5, state)  # type: ignore[arg-type]


def test_an_event_may_have_happened_by_the_last_meeting():
    pair = heavy([0.0, 1.0])
    assert not coalescing._over(Consensus(delta=0.1), LAW, 0.0, pair)
    assert coalescing._over(Consensus(delta=0.5), LAW, 0.0, pair)
    pair._merge(0, 1)
    assert coalescing._over(Consensus(delta=0.1), LAW, 0.0, pair)


# --------------------------------------------------------------------------------------------------
# a whole run


def speeds(angles, w):
    """Angles on the circle under softmax attention."""
    gaps = angles - angles[:, None]
    A = w * np.exp(LAW.beta * np.cos(gaps))
    return (A / A.sum(axis=1, keepdims=True) * np.sin(gaps)).sum(axis=1)


def exact(near, close):
    """(angles at the frames before; when the first two are a distance `near` apart and become one;
    when the farthest cosine is then 1 - `close`; the angles there).
    """

    def met(_, angles):
        return 2 * np.sin(abs(angles[1] - angles[0]) / 2) - near

    def over(_, angles):
        return 1 - np.cos(angles[1] - angles[0]) - close

    met.terminal = over.terminal = True
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14}
    first = solve_ivp(
        lambda _, y: speeds(y, W), (0, 30), START, events=met, t_eval=TIMES[:4], **options
    )
    (meeting,), ((*pair, other),) = first.t_events[0], first.y_events[0]
    mean = W[:2] @ unit(np.array(pair))
    start, two = [np.arctan2(mean[1], mean[0]), other], np.array([0.5, 0.5])
    rest = solve_ivp(lambda _, y: speeds(y, two), (meeting, 30), start, events=over, **options)
    return first.y.T, meeting, rest.t_events[0][0], rest.y_events[0][0]


def follow(radius, delta, times=TIMES):
    solver = Adaptive(rtol=1e-9, method="tsit5")
    x, w = jnp.asarray(unit(START)), jnp.asarray(W)
    course = Course(LAW, solver, x, w, times, (1e-9, 1e-11), Consensus(delta=delta))
    return list(coalescing.coalescing(course, radius))


def test_heavy_tokens_go_where_the_equations_of_their_angles_go():
    """Two tokens meet between two frames; the run ends with the event, not at the last frame."""
    before, meeting, end, last = exact(2e-2, 0.02)
    assert 3 < meeting < end < 30
    found = follow(2e-2, 0.02)
    times = np.concatenate([times for (times, _), _ in found])
    np.testing.assert_allclose(times, [*TIMES[:4], end], rtol=1e-7)
    assert [count for _, count in found] == [3, 3, 3, 3, 2]
    tokens = np.concatenate([x for (_, x), _ in found])
    np.testing.assert_allclose(tokens[:4], unit(before), atol=1e-7)
    np.testing.assert_allclose(tokens[-1], unit(last[[0, 0, 1]]), atol=1e-7)


def test_what_has_happened_or_meets_at_once_is_seen():
    """An event before the first step; one that comes with the meeting of all; and frames before."""
    assert [count for _, count in follow(2e-2, 1.9)] == [3]
    (times, x), count = follow(0.9, 0.02)[-1]
    assert count == 1 and 0.5 < float(times[0]) < 30
    np.testing.assert_array_equal(x[0], x[0][[0, 0, 0]])
    later = follow(0.19, 0.02, TIMES[:3])
    assert [count for _, count in later] == [3, 2, 2]
    assert [float(times[0]) for (times, _), _ in later] == TIMES[:3].tolist()


def test_the_clock_counts_the_way_that_tokens_go_and_one_for_the_run():
    """s = integral of (|v| + 1/T) dt: for a frame at t it is the length of the way plus t/T."""
    solver = Adaptive(rtol=1e-9, method="tsit5")
    x, w = jnp.asarray(unit(START)), jnp.asarray(W)
    watched = ~jnp.eye(3, dtype=bool)
    given = (x, jnp.asarray(0.0, x.dtype)), w, (jnp.arange(3), w), watched
    until, limits = Consensus(delta=0.02), jnp.asarray([1e-9, 1e-11, 2e-2])
    ends = jnp.asarray(1.5, x.dtype), jnp.asarray(30.0, x.dtype)
    solution, margins = _segment(LAW, solver, *given, ends, until, limits)
    path = exact(2e-2, 0.02)[0][2]
    assert abs(float(margins[0])) < 1e-9
    gap = 2 * np.sin((path[1] - path[0]) / 2)
    close = 1 - np.cos(path[2] - path[0])
    np.testing.assert_allclose(margins[1:], [gap - 2e-2, close - 0.02], atol=1e-7)

    def longer(t, state):
        v = speeds(state[:3], W)
        return [*v, np.linalg.norm(v)]

    way = solve_ivp(longer, (0, 1.5), [*START, 0.0], rtol=1e-10, atol=1e-12).y[3, -1]
    assert float(solution.ts[-1]) == pytest.approx(way + 1.5 / 30, rel=1e-6)
