"""Plots of rates and of Lyapunov exponents."""

from __future__ import annotations

import numpy as np
import pytest

import tokenflock as flock
from tokenflock import plots
from tokenflock.dynamics import Attention, SelfAttention
from tokenflock.errors import UserError
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform


def test_rates_stand_in_their_order_above_or_below_the_line():
    result = flock.spectrum(SelfAttention(beta=4.0), np.tile([0.0, 0.0, 1.0], (3, 1)))
    line, dots = plots.spectrum(result).lines
    assert set(line.get_ydata()) == {0}
    np.testing.assert_array_equal(dots.get_ydata(), result.rate)
    assert (np.diff(dots.get_ydata()) <= 1e-12).all()
    assert dots.get_xdata().tolist() == list(range(1, result.sizes["mode"] + 1))


def test_modes_that_turn_are_open_and_named():
    turning = Attention(beta=1.0, V=np.array([[1.0, -3.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 2.0]]))
    result = flock.spectrum(turning, np.tile([0.0, 0.0, 1.0], (3, 1)))
    ax = plots.spectrum(result)
    still, turned = (np.abs(result.frequency.values) < 1e-9, np.abs(result.frequency.values) > 1e-9)
    shown = {line.get_label(): len(line.get_xdata()) for line in ax.lines[1:]}
    assert turned.any() and shown["turning"] == turned.sum()
    assert sum(shown.values()) == still.sum() + turned.sum()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["turning"]


def test_exponents_end_at_what_they_come_to():
    x = flock.simulate(SelfAttention(), Uniform(n=3, d=2), t=1, frames=2).x.values[0]
    result = flock.lyapunov(SelfAttention(beta=2.0), x, t=4, solver=RK4(h=0.1))
    ax = plots.exponents(result)
    ends = [line.get_ydata()[-1] for line in ax.lines[1:]]
    np.testing.assert_array_equal(ends, result.exponent)
    assert [text.get_text().replace("−", "-") for text in ax.get_legend().get_texts()] == [
        f"{value:+.3g}" for value in result.exponent.values
    ]


@pytest.mark.parametrize("draw", [plots.spectrum, plots.exponents])
def test_what_is_no_such_result_is_refused(draw, circle_run):
    with pytest.raises(UserError, match="a result of"):
        draw(circle_run)
