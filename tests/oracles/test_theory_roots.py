"""The root finder behind the theory: right everywhere, and quick where the function is smooth."""

from __future__ import annotations

import numpy as np
import pytest

from tokenflock.theory._roots import bracketed_root

SMOOTH = {
    "cube": (lambda x: x**3 - 2, 0.0, 3.0, 2 ** (1 / 3)),
    "exponential": (lambda x: np.exp(x) - 50, -5.0, 10.0, np.log(50)),
    "cosine": (lambda x: -np.cos(x), 0.0, 3.0, np.pi / 2),
    "far from its ends": (np.arctan, -100.0, 37.0, 0.0),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_a_root_is_exact_to_rounding_after_few_looks(name):
    """Bisection alone would need more than fifty: most steps are inverse quadratic."""
    function, low, high, root = SMOOTH[name]
    looks = []

    def watched(x):
        looks.append(x)
        return function(x)

    assert float(bracketed_root(watched, low, high)) == pytest.approx(root, rel=4e-16, abs=1e-15)
    assert len(looks) <= 19


def test_roots_of_many_equations_are_found_each_in_its_bracket():
    targets = np.array([[0.5, 8.0], [27.0, 1e6]])
    found = bracketed_root(lambda x: x**3 - targets, 0.0, np.array([[1.0, 3.0], [4.0, 1e3]]))
    np.testing.assert_allclose(found, np.cbrt(targets), rtol=1e-15)


def test_infinite_values_are_bisected():
    with np.errstate(divide="ignore"):
        found = bracketed_root(lambda x: np.log(x) + 1, 0.0, 5.0)
    assert float(found) == pytest.approx(np.exp(-1), rel=1e-15)


def test_without_a_change_of_sign_the_nearer_end_comes_back():
    def line(x):
        return x - 3

    assert float(bracketed_root(line, 4.0, 9.0)) == 4
    assert float(bracketed_root(line, 3.0, 9.0)) == 3
    assert float(bracketed_root(line, 0.0, 2.0)) == 2
    assert float(bracketed_root(line, 0.0, 3.0)) == 3
    assert float(bracketed_root(line, 3.25, 9.0)) == 3.25
    assert float(bracketed_root(line, 0.0, 2.75)) == 2.75
    assert float(bracketed_root(line, 2.5, 3.5)) == 3


def chandrupatla(f, x1, x2, looks):
    """The method as printed, one number at a time: where it looks first."""
    f1, f2, share, seen = f(x1), f(x2), 0.5, []
    for _ in range(looks):
        x = x1 + share * (x2 - x1)
        fx = f(x)
        seen.append(x)
        if (fx > 0) == (f1 > 0):
            x3, f3 = x1, f1
        else:
            x3, f3, x2, f2 = x2, f2, x1, f1
        x1, f1 = x, fx
        xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
        share = 0.5
        if 1 - np.sqrt(1 - xi) < phi < np.sqrt(xi):
            a, b, c = f1 / (f2 - f1), f3 / (f2 - f3), f1 / (f3 - f1)
            share = a * b + c * f2 / (f3 - f2) * (x3 - x1) / (x2 - x1)
    return seen


CURVES = {
    "one bend": (lambda x: np.exp(1.3 * x) - 9, -4.0, 6.0),
    "one bend, mirrored": (lambda x: 9 - np.exp(-1.3 * x), -6.0, 4.0),
    "two bends": (lambda x: (x - 1.7) ** 3 + 0.2 * (x - 1.7), -3.0, 8.0),
    "a step": (lambda x: np.tanh(4 * (x - 0.83)), -2.0, 2.5),
    "steep at an end": (lambda x: np.log(x) + 2, 1e-6, 40.0),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_looks_are_those_of_the_printed_method(name):
    function, low, high = CURVES[name]
    looks = []
    bracketed_root(lambda x: looks.append(float(x)) or function(x), low, high)
    expected = chandrupatla(function, high, low, 7)
    np.testing.assert_allclose(looks[2:9], expected, rtol=1e-6)
    assert len(looks) < 22


def test_a_root_at_zero_is_found_from_far_away():
    """Where only the sign is known, halving goes on until nothing is left."""
    found = bracketed_root(np.sign, np.array([-1e3, -3.0]), np.array([1.0, 1e5]))
    assert np.abs(found).max() < 1e-28
    assert abs(bracketed_root(lambda x: np.sign(x - 1 / 3), -1e3, 1e3) - 1 / 3) < 2e-16


def test_a_root_of_forty_digits_below_its_bracket_keeps_its_digits():
    found = bracketed_root(lambda x: x * np.tanh(x) - 1e-80, np.zeros(()), np.ones(()) + 1e-80)
    assert float(found) == pytest.approx(1e-40, rel=1e-12)


def test_it_gives_up_after_a_hundred_and_twenty_looks():
    """Beside the two at the ends: a jump at the smallest numbers is halved towards for ever."""
    looks = []

    def jump(x):
        looks.append(x)
        return np.where(x < 1e-300, -1.0, 1.0)

    bracketed_root(jump, np.zeros(()), np.ones(()))
    assert len(looks) == 122
