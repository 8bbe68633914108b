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
