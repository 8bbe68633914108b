"""What cannot be done is said at once; what can be done at the ends of the numbers is right."""

from __future__ import annotations

import resource

import diffrax
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Hardmax, PreNorm, SelfAttention
from tokenflock.engines._patience import Patient
from tokenflock.engines.memory import in_words, require_memory
from tokenflock.solvers import Euler
from tokenflock.starts import Given, Uniform


@pytest.mark.parametrize(
    ("law", "start", "options", "words"),
    [
        (SelfAttention(), Uniform(n=10**12, d=2), {}, "tokens"),
        (SelfAttention(), Uniform(n=32, d=10**9), {}, "dimensions"),
        (Hardmax(), Uniform(n=10**6, d=2), {}, "Streamed"),  # softmax would listen by tiles
        (SelfAttention(), Uniform(n=32, d=2), {"frames": 10**9}, "fewer frames"),
    ],
)
def test_what_the_memory_cannot_hold_is_refused_before_anything_is_allocated(
    law, start, options, words
):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(flock.UserError, match=r"needs .* of memory, and .* are free") as told:
        flock.simulate(law, start, **options)
    assert words in str(told.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 1e6  # kilobytes


def test_an_ensemble_of_systems_that_do_not_fit_is_refused():
    with pytest.raises(flock.UserError, match="of memory"):
        flock.ensemble(SelfAttention(), Uniform(n=10**12, d=2))


def test_memory_is_told_in_words():
    assert in_words(5e12) == "5,000 GB"
    assert in_words(999) == "999 bytes"
    require_memory(1.0, "a byte", "")
    with pytest.raises(flock.UserError, match="2 GB of memory, and 1 GB are free; write less"):
        require_memory(2e9, "it", "write less", there=1e9)


def test_a_stiff_law_is_told_within_thousands_of_steps():
    """Antipodal tokens of negative beta run into the origin of pre-LN in finite time."""
    start = Given([[1.0, 0.0], [-1.0, 0.0]])
    with pytest.raises(flock.SimulationError, match=r"too stiff .* Layer\(h=0.1\)") as told:
        flock.simulate(PreNorm(beta=-4.0), start, t=30.0)
    assert int(str(told.value).partition("after ")[2].split()[0]) <= 20_000


class Steps:
    """A controller that goes by given steps, whatever the error."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        assert (terms, t0, t1, y0) == ("terms", 2.0, 102.0, "y")
        return self.steps.pop(0), "state"

    def adapt_step_size(self, t0, t1, y0, y1, args, y_error, error_order, state):
        assert (y0, y1, state) == ("y", "z", "state")
        step = self.steps.pop(0) if self.steps else 1.0
        return True, t1, t1 + step, False, "state", diffrax.RESULTS.successful


def gave_up(most, *steps):
    """After how many steps, from t = 2 to 102, the controller gave up; None where it did not."""
    patient = Patient(Steps(*steps), most)
    now, (first, state) = 2.0, patient.init("terms", 2.0, 102.0, "y", None, None, None, 1)
    after = now + first
    for count in range(1, len(steps) + 1):
        given = (now, after, "y", "z", None, None, 1, state)
        keep, now, after, jump, state, result = patient.adapt_step_size(*given)
        assert keep and not jump
        if result != diffrax.RESULTS.successful:
            assert result == diffrax.RESULTS.dt_min_reached
            return count
    return None


def test_steps_that_have_become_too_short_are_seen_after_a_window(monkeypatch):
    """So many steps as long as the mean of the last window must reach the end."""
    monkeypatch.setattr("tokenflock.engines._patience.WINDOW", 4)
    even = [1.0] * 9
    assert gave_up(95, *even) == 4, "96 units are left after four of them"
    assert gave_up(96, *even) is None
    assert gave_up(5, *[12.0] * 7) is None, "52 are left, and five of twelve would do"
    assert gave_up(4, *[12.0] * 7) == 4
    slower = [10.0] * 4 + [0.5] * 6
    assert gave_up(100, *slower) == 8, "the window after this one counts by itself"
    assert gave_up(200, *slower) is None
    assert gave_up(10**6, 1.0, 1.0, np.nan, 1.0, 1.0) == 2, "a step that is no number"


def test_more_steps_than_are_counted_are_refused():
    with pytest.raises(flock.UserError, match="2\\^31"):
        flock.simulate(SelfAttention(), Uniform(n=2, d=2), t=4.295, solver=Euler(h=1e-9))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e-300, 1e-20, 1e-5, 1.0, 1e20, 1e160])
def test_tokens_of_any_length_are_brought_to_the_sphere(size, dtype):
    x = np.array([[3.0, 4.0], [-1.0, 0.5]])
    law = SelfAttention()
    run = flock.simulate(law, Given(size * x), t=1.0, frames=2, solver=Euler(h=0.5), dtype=dtype)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert np.abs(run.x[0] - unit).max() < (1e-6 if dtype == "float32" else 1e-14)


def test_given_tokens_do_not_change_when_the_array_does():
    a = np.eye(2)
    start = Given(a)
    a[:] = 7.0
    assert np.array_equal(start.x, np.eye(2))
    with pytest.raises(ValueError, match="read-only"):
        start.x[0, 0] = 7.0
