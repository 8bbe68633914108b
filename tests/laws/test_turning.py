"""A law whose steps are known by hand, in every engine: frames, passages and who is told of them.

Tokens of the circle turn at the speed rate (1 + t). A step of Euler's method at time t adds the
angle arctan(h rate (1 + t)), and a share s of it arctan(s h rate (1 + t)).
"""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.engines import batch, blocks, differentiable, passing, single, slots
from tokenflock.engines.job import Job
from tokenflock.errors import SimulationError
from tokenflock.events.event import Event
from tokenflock.observables import ClusterCount, OrderParameter, PairDensity
from tokenflock.observables.observable import Observable
from tokenflock.solvers import Euler, Layer

H, SECOND = 0.1, -0.3
START = np.array([0.0, 0.4, 0.49, 0.3, 0.7])
RATES = np.array([0.088, 0.5, 0.9, 0.15, 0.4])
LEVELS = (0.5, 1.1)
EVEN, UNEVEN = np.arange(0, 40, 3), np.array([0, 1, 4, 5, 11, 12, 30, 39])


class Turning(MeanField):
    """Every token turns, the faster the later."""

    rate: float = 1.0

    def field(self, t, q, x, w):
        return self.rate * (1 + t) * jnp.stack([-q[:, 1], q[:, 0]], axis=1)


class Past(Event):
    """The first token has turned past both angles."""

    @property
    def levels(self):
        return {"angle": list(LEVELS)}

    def margin(self, dynamics, t, x, w):
        return self.margins(dynamics, t, x, w)[-1]

    def margins(self, dynamics, t, x, w):
        return jnp.asarray(LEVELS) - jnp.arctan2(x[0, 1], x[0, 0])


class Where(Observable):
    """All tokens."""

    dims: ClassVar[tuple[str, ...]] = ("particle", "coord")
    isotropic: ClassVar[bool] = False

    def measure(self, x, w):
        return x


class Height(Observable):
    """The second coordinate of the mean."""

    isotropic: ClassVar[bool] = False

    def measure(self, x, w):
        return w @ x[:, 1]


W = np.array([0.75, 0.25])


def unit(angle):
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def steps_of(rate, count, h=H):
    """The angles that single steps add."""
    return np.arctan(h * rate * (1 + h * np.arange(count)))


def angles(start, rate, steps):
    """The angle of a token after so many steps."""
    return start + np.concatenate([[0], np.cumsum(steps_of(rate, max(steps)))])[steps]


def passages(start, rate, last):
    """When each level is reached, in steps; NaN beyond the last."""
    turns = steps_of(rate, last)
    path = start + np.concatenate([[0], np.cumsum(turns)])
    found = []
    for level in LEVELS:
        if path[0] >= level:
            found.append(0.0)
        elif path[-1] < level:
            found.append(np.nan)
        else:
            k = int(np.argmax(path >= level)) - 1
            found.append(k + np.tan(level - path[k]) / np.tan(turns[k]))
    return found


def work(steps, observables=(), until=None, w=W, law=None, settle=True):
    law, paths = (Turning(), ((0, "rate"),)) if law is None else (law, ())
    return Job(law, Euler(h=H), observables, w, steps, paths, "float64", settle, until)


def systems(start=START):
    return np.stack([unit(start), unit(np.full(len(start), SECOND))], axis=1)


def check(found, steps):
    """Frames and means, against the steps by hand."""
    first = np.stack([angles(a, r, steps) for a, r in zip(START, RATES)])
    second = np.stack([angles(SECOND, r, steps) for r in RATES])
    np.testing.assert_allclose(found["where"], unit(np.stack([first, second], axis=2)), atol=1e-12)
    height = 0.75 * np.sin(first) + 0.25 * np.sin(second)
    np.testing.assert_allclose(found["height"], height, atol=1e-12)


# the last block of thirteen even frames is longer than the run, and a level is reached there
SPARE = np.isnan(passages(START[0], RATES[0], 39)[1]), passages(START[0], RATES[0], 42)[1]


@pytest.mark.parametrize(
    ("steps", "side"),
    [(UNEVEN, None), (EVEN, 2), (UNEVEN, 2)],
    ids=["at once", "slots", "slots and uneven frames"],
)
def test_every_frame_and_passage_is_where_the_steps_by_hand_are(steps, side, double):
    x, keys = systems(), jax.random.split(jax.random.key(0), 5)
    job, told = work(steps, (Where(), Height()), Past()), {}

    def finished(done, values):
        for one in done:
            assert one not in told, "told once"
            told[int(one)] = {name: np.array(value[one]) for name, value in values.items()}

    found = batch.run(job, x, keys, [RATES], side, finished)
    assert list(found) == ["where", "height", "first_passage"]
    check(found, steps)
    wanted = np.array([passages(a, r, 39) for a, r in zip(START, RATES)])
    np.testing.assert_allclose(found["first_passage"], wanted, atol=1e-10)
    assert np.isnan(wanted).any() and (wanted == 0).any() and (wanted[:, 0] < 1).sum() > 1
    if side is not None:
        assert sorted(told) == [0, 1, 2, 3, 4]
        for one, values in told.items():
            for name, value in values.items():
                np.testing.assert_array_equal(value, found[name][one])


def test_a_passage_beyond_the_end_does_not_count():
    assert SPARE[0] and 39 < SPARE[1] < 42
    far = np.array([[38.9, 39.1], [39.0, np.nan]])
    kept = slots._by_the_end(far, work(EVEN))
    np.testing.assert_array_equal(kept, [[38.9, np.nan], [39.0, np.nan]])


def test_systems_without_observables_leave_when_their_passages_are_known(double):
    x, keys, told = systems(), jax.random.split(jax.random.key(0), 5), []
    job = work(EVEN, (), Past())
    found = batch.run(job, x, keys, [RATES], 5, lambda done, _: told.append(done.tolist()))
    wanted = [passages(a, r, 39) for a, r in zip(START, RATES)]
    np.testing.assert_allclose(found["first_passage"], wanted, atol=1e-10)
    ends = np.max(wanted, axis=1)  # blocks of two frames, six steps
    when = [6 if np.isnan(end) else int(end // 6) for end in ends]
    assert told == [[k for k in range(5) if when[k] == block] for block in sorted(set(when))]


def simulate(rate, start, until=None, **options):
    x = np.stack([unit(start), unit(SECOND)])
    law = Turning(rate=rate)
    return flock.simulate(law, x, solver=Euler(h=H), until=until, **options)


@pytest.mark.parametrize(
    ("steps", "most"),
    [(np.arange(40), 10**6), (UNEVEN, 4)],
    ids=["every step", "in calls of four steps"],
)
def test_a_single_system_goes_by_the_same_steps(monkeypatch, steps, most):
    """However its steps are cut into blocks and calls; the event is its last frame."""
    monkeypatch.setattr(single, "_most_steps", lambda n, d: most)
    times = steps * H
    whole = simulate(0.5, 0.4, t=3.9, times=times)
    np.testing.assert_allclose(whole.time, times, atol=1e-12)
    both = np.stack([angles(a, 0.5, steps) for a in (0.4, SECOND)], axis=1)
    np.testing.assert_allclose(whole.x, unit(both), atol=1e-12)
    stopped = simulate(0.5, 0.4, Past(), t=3.9, times=times)
    end = passages(0.4, 0.5, 39)[1]
    kept = int((end > steps).sum())
    assert 8 < end < 10 and 0.01 < end % 1 < 0.99
    np.testing.assert_allclose(stopped.time, [*times[:kept], end * H], atol=1e-10)
    np.testing.assert_allclose(stopped.x[:-1], whole.x[:kept], atol=1e-12)
    np.testing.assert_allclose(stopped.x[-1, 0], unit(1.1), atol=1e-9)
    late = simulate(0.05, 0.3, Past(), t=3.9, times=times)
    assert late.sizes["time"] == len(times), "an event that does not come"


def test_a_call_takes_a_second_or_so():
    """A million steps of a few tokens; fewer of many, by the work of their inner products."""
    assert single._most_steps(1, 0) == 10**6
    assert single._most_steps(2, 3) == int(1e6 / 1.012)
    assert single._most_steps(100, 5) == int(1e6 / 51)
    assert single._most_steps(10**5, 10**3) == 1


def account(begin, strides):
    """What a block would tell where each step adds one; over at 17."""
    ends = np.minimum(begin + np.cumsum(strides), 17)
    return ends.astype(float)[:, None], ends >= 17, ends[:, None] - 1.0, ends


@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
def test_long_strides_are_made_of_calls(most):
    """Each call is one stride of at most so many steps, the others zero; the account is the same as
    in one call, up to the event.
    """
    calls = []

    def run(x, begin, strides):
        calls.append((float(x[0]), int(begin), strides.tolist()))
        return account(begin, strides)

    for strides in (np.array([3, 0, 5, 4]), np.array([3, 6, 9, 2])):
        calls.clear()
        x = jnp.asarray([0.0])
        told = single._in_calls(run, x, 0, strides, most)
        wanted = account(0, strides)
        known = len(told[0])
        assert known == (4 if most > 20 or strides[2] == 5 else 3)
        for ours, theirs in zip(told, wanted):
            np.testing.assert_array_equal(ours, theirs[:known])
        if most < 20:
            assert all(place == begin for place, begin, _ in calls)
            assert all(max(one) <= most and one[1:] == [0, 0, 0] for *_, one in calls)
            assert len(calls) <= sum(max(1, -(-one // most)) for one in strides)


def test_a_run_that_can_be_differentiated_goes_by_the_same_steps(double):
    key, x = jax.random.key(0), jnp.asarray(systems()[0])
    law, turned = Turning(rate=0.5), angles(START[0], 0.5, [7])[0]
    for checkpoint in (True, False):
        y = differentiable.fixed(law, Euler(h=H), x, jnp.asarray(W), 7, key, checkpoint)
        np.testing.assert_allclose(y[0], unit(turned), atol=1e-12)


def test_an_event_is_looked_for_at_the_time_of_its_step(double):
    """Levels that are reached after a number of steps depend on time, tokens and weights."""

    class Noon(Event):
        """A time of its own for each level."""

        def margin(self, dynamics, t, x, w):
            return 0.35 - t

        def margins(self, dynamics, t, x, w):
            return jnp.asarray([0.5, 0.55, 0.2]) - t

    x = jnp.asarray(systems()[0])
    reached = passing.happened(Noon(), Turning(), Euler(h=0.25), jnp.asarray(2), x, W)
    assert reached.tolist() == [True, False, True], "at 0.5 the first is reached, to the digit"
    assert passing.in_whole_steps(Turning(), Layer(h=H))
    assert not passing.in_whole_steps(Turning(), Euler(h=H))


# --------------------------------------------------------------------------------------------------
# lost tokens


def test_one_lost_number_of_one_system_is_an_error(double):
    x, keys = systems(), jax.random.split(jax.random.key(0), 5)
    x = np.concatenate([x, unit(np.full((5, 1), 2.0))], axis=1)
    x[3, 2, 1] = np.nan
    w = np.array([0.6, 0.4, 0.0])
    batch.run(work(EVEN[:2], (Height0(),), w=w), x, keys, [RATES], 2)
    with pytest.raises(SimulationError, match="Turning"):
        batch.run(work(EVEN[:2], (Height0(),), w=w[[0, 2, 1]]), x, keys, [RATES], 2)


class Height0(Observable):
    """The second coordinate of the first token."""

    isotropic: ClassVar[bool] = False

    def measure(self, x, w):
        return x[0, 1]


def test_what_is_no_number_is_told():
    blocks.check_sound(work(EVEN), np.array([0.5, -1.0]))
    for lost in ([np.nan, 0.5], [0.5, np.nan], [np.nan, np.nan]):
        with pytest.raises(SimulationError):
            blocks.check_sound(work(EVEN), np.array(lost))


# --------------------------------------------------------------------------------------------------
# slots


@pytest.mark.parametrize("even", [True, False])
def test_blocks_waste_as_few_frames_as_they_can(even):
    """About twelve of one shape; the last is filled up, with steps of no length where strides
    differ, which is the least of four sizes.
    """
    for count in range(1, 120):
        steps = np.arange(count + 1) * 2
        if not even and count > 1:
            steps = np.append(steps[:-1], steps[-1] + 1)
        strides, same = slots._blocks(work(steps))
        made, size = strides.shape
        least = -(-count // slots.BLOCKS)
        waste = {one: -(-count // one) * one - count for one in range(least, least + 4)}
        assert waste[size] == min(waste.values()) and made == -(-count // size)
        assert size == min(one for one in waste if waste[one] == waste[size])
        assert same == (even or count == 1) and strides.dtype == np.int32
        flat = strides.ravel()
        np.testing.assert_array_equal(flat[:count], np.diff(steps))
        assert (flat[count:] == (2 if same else 0)).all()


def test_a_slot_is_free_once_all_that_is_asked_is_known():
    least = np.array([0.9999, 0.95, 1.0, 0.5])
    steps = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, np.nan], [np.nan, np.nan]])
    law, rest = SelfAttention(beta=2.0), (PairDensity(delta=0.1), ClusterCount(delta=0.01))
    free = lambda job: slots._free(job, least, steps).tolist()  # noqa: E731
    assert free(work(EVEN, rest, law=law)) == [True, False, False, False]
    assert free(work(EVEN, rest[:1], law=law)) == [True, True, False, False]
    assert free(work(EVEN, (), law=law)) == [True, True, False, False]
    assert free(work(EVEN, rest, law=law, settle=False)) == [False] * 4
    assert free(work(EVEN, (*rest, OrderParameter()), law=law)) == [False] * 4


def test_observables_are_final_within_the_least_of_their_distances():
    law, rest = SelfAttention(beta=2.0), (PairDensity(delta=0.1), ClusterCount(delta=0.01))
    assert work(EVEN, rest, law=law).delta == pytest.approx(0.01)
    assert work(EVEN, rest[:1], law=law).delta == pytest.approx(0.1)
    assert work(EVEN, (), law=law).delta is None
    assert work(EVEN, rest, law=law, settle=False).delta is None
    assert work(EVEN, rest, law=SelfAttention(repulsive=True)).delta is None
    assert work(EVEN, (*rest, OrderParameter()), law=law).delta is None
    swept = (PairDensity(delta=jnp.asarray([0.1, 0.2])), rest[1])
    assert work(EVEN, swept, law=law).delta is None
    assert work(UNEVEN).strides.tolist() == [1, 3, 1, 6, 1, 18, 9]


def test_slots_pass_from_one_system_to_the_next():
    """Five systems, two slots, blocks of two frames of four: who is free makes room, his last
    values stand for the rest, and the end of a longer block is cut off.
    """
    x = np.arange(5.0)[:, None, None] + np.zeros((5, 2, 2))
    state, results = slots._Slots(x, 2), [np.full((5, 4), -1.0), np.full((5, 4, 3), -1.0)]
    results[0][:, 0] = 0

    def record(*news):
        values = np.array(news, float)
        who, spread = state.busy, values[..., None] * np.ones(3)
        state.record(who, x[:2] + 10, [values, spread], values[:, 1], results, 2)

    record((1, 2), (3, 4))
    assert state.block.tolist() == [1, 1] and state.least.tolist() == [2, 4]
    assert (state.x == x[:2] + 10).all()
    assert state.clear(2, np.array([False, True]), results, 2).tolist() == [1]
    assert state.ids.tolist() == [0, -1] and state.busy.tolist() == [True, False]
    assert results[0][:2].tolist() == [[0, 1, 2, -1], [0, 3, 4, 4]]
    state.fill(x)
    assert state.ids.tolist() == [0, 2] and state.block.tolist() == [1, 0] and state.next == 3
    assert state.x[:, 0, 0].tolist() == [10, 2]
    record((5, 6), (7, 8))
    assert results[0][[0, 2]].tolist() == [[0, 1, 2, 5], [0, 7, 8, -1]]
    assert results[1][0, :, 2].tolist() == [-1, 1, 2, 5]
    assert state.clear(2, np.array([False, False]), results, 2).tolist() == [0]
    assert results[0][0].tolist() == [0, 1, 2, 5]
    state.fill(x)
    assert state.ids.tolist() == [3, 2]
    assert state.clear(2, np.array([True, True]), results, 2).tolist() == [3, 2]
    state.fill(x)
    assert state.ids.tolist() == [4, -1] and state.next == 5
    state.fill(x)
    assert state.ids.tolist() == [4, -1]
    record((9, 9), (1, 1))
    assert results[0][4].tolist() == [0, 9, 9, -1] and state.block[0] == 1
    assert (results[0][:4] != 9).all()
