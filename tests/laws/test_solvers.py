"""What solvers say of themselves, and what they refuse."""

from __future__ import annotations

import pytest

from tokenflock.errors import UserError
from tokenflock.solvers import RK4, Adaptive, Euler, EulerMaruyama, Heun, Layer
from tokenflock.solvers.adaptive import Method

FIXED = (Euler, EulerMaruyama, Heun, Layer, RK4)


def test_tolerances_follow_the_precision_unless_given():
    assert Adaptive().tolerances("float64") == pytest.approx((1e-9, 1e-11), rel=1e-12)
    assert Adaptive().tolerances("float32") == pytest.approx((1e-5, 1e-7), rel=1e-12)
    assert Adaptive(rtol=1e-3).tolerances("float32") == pytest.approx((1e-3, 1e-5), rel=1e-12)
    assert Adaptive(atol=1e-4).tolerances("float64") == pytest.approx((1e-9, 1e-4), rel=1e-12)
    assert Adaptive(rtol=1e-3, atol=1e-6).tolerances("float64") == (1e-3, 1e-6)


def test_orders_conventions_and_noise():
    orders = {"Euler": 1, "EulerMaruyama": 1, "Heun": 2, "Layer": 1, "RK4": 4}
    assert {one.__name__: one.order for one in FIXED} == orders
    assert [method.order for method in Method] == [8, 5, 3]
    assert Adaptive().order == 8
    assert [one.__name__ for one in FIXED if one.takes_noise] == ["EulerMaruyama", "Layer"]
    assert [one.__name__ for one in FIXED if one.convention == "layer map"] == ["Layer"]
    assert not Adaptive().takes_noise and Adaptive().convention == "flow"


def test_steps_are_those_of_the_papers_unless_given():
    assert [one().h for one in FIXED] == [0.1, 0.01, 0.1, 0.1, 0.1]


@pytest.mark.parametrize("member", FIXED, ids=lambda one: one.__name__)
def test_a_step_is_positive_however_small(member):
    assert member(h=1e-6).h == 1e-6
    for h in (0.0, -0.1):
        with pytest.raises(UserError, match="h must be a positive step"):
            member(h=h)


def test_tolerances_and_numbers_of_steps_are_positive():
    assert Adaptive(rtol=1e-15, atol=1e-15, max_steps=1).max_steps == 1
    for wrong in ({"rtol": 0.0}, {"atol": 0.0}, {"rtol": -1e-3}, {"atol": -1e-3}, {"max_steps": 0}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            Adaptive(**wrong)
