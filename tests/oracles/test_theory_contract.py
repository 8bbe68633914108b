"""Every closed form, whatever it is given: a number, an infinity, or one clear line."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tokenflock import theory
from tokenflock.catalogue import entries
from tokenflock.errors import UserError
from tokenflock.theory._guard import explains_nan, numbers_in

HOSTILE = [0, -1, 1e-300, 1e4, 1e9, 1e300, np.nan, np.inf, -np.inf, "x", [], [[1.0, 2.0, 3.0]]]
FORMS = [(entry.name, option.name) for entry in entries("theory") for option in entry.options]


@pytest.mark.parametrize(("form", "argument"), FORMS, ids=[f"{f}-{a}" for f, a in FORMS])
def test_a_hostile_argument_gives_a_number_or_one_clear_line(form, argument):
    function = getattr(theory, form)
    began = time.monotonic()
    for value in HOSTILE:
        try:
            answer = function(**{argument: value})
        except UserError as error:
            answer, told = None, str(error)
            clear = not any(word in told for word in ("\n", "einstein", "operand"))
        if answer is None:
            assert clear, told
        elif not explains_nan(function):
            assert not any(np.isnan(part).any() for part in numbers_in(answer)), value
    assert time.monotonic() - began < 60


def test_the_docstring_of_every_form_that_gives_nan_says_when():
    assert explains_nan(theory.gaussian_variance) == "nan after the blow-up"
    assert explains_nan(theory.transition_curve).startswith("nan where")
    assert not explains_nan(theory.growth_rate)


def test_beyond_the_numbers_the_limit_comes_back():
    assert theory.strong_centres(0.5, 1000, n=50) == 50  # caps of measure 0: all are centres
    assert theory.strong_centres(0.5, 1000) == np.inf
    assert theory.two_cluster_growth(1e4, 1.0) == -np.inf
    assert theory.two_cluster_growth(1e4, 2e4) == np.inf
    assert theory.position_influence(0.5, beta=1e4) == np.inf
    assert theory.position_influence(0.5, decay=1e4) == pytest.approx(0.0)


def test_the_logarithms_change_nothing_where_the_plain_formula_works():
    """`position_influence` against its series, term by term."""
    from math import exp, expm1, factorial, log, pi

    from scipy.special import iv

    s, t, beta, decay, M = 0.3, 1.5, 0.7, 2.0, 8.0
    y = log(expm1(decay) / expm1(decay * s))
    total = 0.0
    for k in range(1, 60):
        c = k**2 * iv(k, beta) * t
        psi = sum(c ** (j + 1) * y**j / (factorial(j) * factorial(j + 1)) for j in range(60))
        total += exp(-((pi * k / M) ** 2) / 2) * psi
    plain = decay * exp(decay * s) / expm1(decay) * total
    assert theory.position_influence(s, t, beta, decay, M) == pytest.approx(plain, rel=1e-12)


def test_times_after_the_blow_up_are_nan_and_not_an_error():
    late = theory.gaussian_flow(1.0)
    assert np.isnan(late.covariance).all()
    assert np.isfinite(theory.gaussian_flow([0.25, 1.0]).mean[0]).all()
