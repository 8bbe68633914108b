"""Closed forms where a dimension or a number of tokens is very large: all digits, or a refusal."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from tokenflock import theory
from tokenflock.theory._special import log_order_ratio

DIMENSIONS = [402, 10**5, 10**9, 10**12, 10**15]


def neighbours(order: float, x: float) -> float:
    """I_(order+1)(x) / I_order(x) by its continued fraction, all of whose terms are positive."""
    ratio = 0.0
    for j in range(1200, 0, -1):
        ratio = 1 / (2 * (order + j) / x + ratio)
    return ratio


@pytest.mark.parametrize("share", [1e-6, 0.01, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_neighbouring_orders_have_the_ratio_of_their_continued_fraction(d, share):
    order, x = d / 2 - 1, share * (d / 2 - 1)
    first, second = neighbours(order, x), neighbours(order + 1, x)
    assert np.exp(log_order_ratio(1, x, d)) == pytest.approx(first, rel=3e-14)
    assert np.exp(log_order_ratio(2, x, d)) == pytest.approx(first * second, rel=6e-14)
    assert theory.minimiser_tilt(d, x) == pytest.approx(-1 / second, rel=3e-14)


@pytest.mark.parametrize("share", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("d", [10**5, 10**9])
def test_lambda_0_grows_at_the_ratio_of_the_first_two(d, share):
    """d log(lambda_0) / d beta = I_(d/2) / I_(d/2-1)"""
    beta = share * d
    whole = quad(lambda x: neighbours(d / 2 - 1, x), 0, beta, epsabs=0, epsrel=1e-13)[0]
    assert theory.log_kernel_eigenvalue(0, beta, d) == pytest.approx(whole, rel=1e-12)
    scaled = theory.log_kernel_eigenvalue(0, beta, d) - beta
    assert np.log(theory.kernel_eigenvalue(0, 100.0, d, scaled=True)) == pytest.approx(
        theory.log_kernel_eigenvalue(0, 100.0, d) - 100, rel=1e-13
    )
    assert scaled < 0


@pytest.mark.parametrize("d", DIMENSIONS[1:])
def test_at_a_usual_beta_every_form_has_its_limit_in_many_dimensions(d):
    """lambda_k = (beta/2)^k / (d/2)_k (1 + O(1/d))"""
    near = {"rel": 3 / d + 1e-14}
    assert theory.kernel_eigenvalue(0, 1.0, d) == pytest.approx(1, **near)
    assert theory.kernel_eigenvalue(1, 1.0, d) == pytest.approx(1 / d, **near)
    assert theory.log_kernel_eigenvalue(1, 1.0, d) == pytest.approx(-np.log(d), **near)
    assert theory.growth_rate(1, 1.0, d) == pytest.approx(1, **near)
    assert theory.growth_rate(1, 1.0, d, "USA") == pytest.approx(1, **near)
    assert theory.critical_noise(1.0, d) == pytest.approx(d, **near)
    assert theory.initial_correlation_speed(2, 1.0, d) == pytest.approx(1, **near)
    assert theory.tricritical_beta(d) == pytest.approx(1, **near)
    assert theory.attraction_range(1.0, d) == pytest.approx(np.pi / 2, **near)


def test_modes_change_at_two_thirds_of_a_large_dimension():
    """2 d / (d - 1) I_(d/2+1) / I_(d/2) = 1, by 40 digits of the continued fraction."""
    assert theory.mode_switch(1, 10**9) == pytest.approx(666666666.6222223, rel=1e-15)
    for d in DIMENSIONS:
        beta = theory.mode_switch(1, d)
        assert 2 * d / (d - 1) * neighbours(d / 2, beta) == pytest.approx(1, rel=1e-13)
        half = theory.mode_switch(1, d, "Sinkhorn")
        rates = theory.growth_rate([1, 2], half, d, "Sinkhorn")
        assert rates[0] == pytest.approx(rates[1], rel=1e-12)


def test_modes_change_at_the_square_of_a_large_degree():
    """On the circle beta = (k + 1/2)^2 / 2 and a little: k^2 e^(-k^2 / 2 beta) is largest there."""
    assert theory.mode_switch(5000, 2) == pytest.approx(12502500.25, rel=1e-12)
    for k in (10**6, 10**9, 10**15):
        assert theory.mode_switch(k, 2) == pytest.approx(k * k / 2, rel=3 / k + 1e-14)


@pytest.mark.parametrize("n", [10**6, 10**9, 10**12, 10**15])
def test_many_equiangular_tokens_keep_all_digits(n):
    grown = np.exp(2.0)
    cosine = (grown - 1) / (grown + n - 1)
    assert theory.equiangular_cosine(1.0, n, 0.0) == pytest.approx(cosine, rel=1e-13)
    assert theory.equiangular_gap(1.0, n, 0.0) == pytest.approx(n / (n - 1 + grown), rel=1e-14)
    assert theory.normalised_flow(1.0, n, 0.0).rho == pytest.approx(cosine, rel=1e-13)
    own = np.e / (n - 1 + np.e)  # what a token hears of itself among orthogonal ones
    assert theory.normalised_speed(0.0, n, 1.0, "pre").r == pytest.approx(own, rel=1e-14)
    along = own / np.hypot(own, np.sqrt(n - 1) / (n - 1 + np.e))
    assert theory.normalised_speed(0.0, n, 1.0, "peri").r == pytest.approx(along, rel=1e-14)
    assert theory.simplex_energy(n, 1.0) == pytest.approx(0.5, rel=2 / n + 1e-15)
    assert theory.saddle_threshold(n) == pytest.approx(
        (2 * (n - 1) / np.pi) ** 2, rel=3 / n**2 + 1e-15
    )


@pytest.mark.parametrize("n", [2001, 10**6 + 1, 10**9 - 1])
def test_half_of_many_tokens_in_half_as_many_dimensions_share_a_hemisphere(n):
    """P(n, d) + P(n, n - d) = 1; n - 1 coins, by the normal law with its first correction."""
    root = np.sqrt(n - 1)
    for d in ((n - 1) // 2, (n - 1) // 2 - int(root)):
        both = theory.hemisphere_probability(n, d) + theory.hemisphere_probability(n, n - d)
        assert both == pytest.approx(1, rel=1e-13)
    z = (2 * d - n) / root
    expected = ndtr(z) + (z**3 - z) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi) / 12 / (n - 1)
    assert theory.hemisphere_probability(n, d) == pytest.approx(expected, rel=1 / n + 1e-11)
    with pytest.raises(ValueError, match=r"^n must be a whole number, at most 1e\+09, got"):
        theory.hemisphere_probability(2 * 10**9)


@pytest.mark.parametrize("d", [10**6, 10**9, 10**12, 10**15])
def test_caps_of_many_dimensions_have_the_normal_law_at_the_equator(d):
    z = np.array([1e-3, 0.5, 2.0, 6.0])
    delta = np.pi / 2 - np.arcsin(z / np.sqrt(d))
    rounding = np.sqrt(d) * 1e-15  # of delta itself
    expected, bound = ndtr(-z), 30 * (z + z**3) * (1 / d + rounding) + rounding
    assert (np.abs(theory.cap_fraction(delta, d) / expected - 1) < bound).all()


def test_the_minimum_of_the_curvature_is_found_at_any_beta():
    """cos(tau) = 1 - (d+1) / (2 beta) + ..."""
    for beta in (1e10, 1e20, 1e300, 1e308):
        tau = theory.curvature_minimum(beta, 5).tau
        assert tau == pytest.approx(np.sqrt(6 / beta), rel=1e-9)


def test_the_mode_of_a_polygon_counts_to_its_corners():
    first = theory.polygon_eigenvalue([1, 2, 6], 7, 2.0)
    np.testing.assert_allclose(
        theory.polygon_eigenvalue(np.array([1, 2, 6]) + 7 * 10**13, 7, 2.0), first, rtol=1e-13
    )


def test_as_many_degrees_are_compared_as_memory_holds():
    with pytest.raises(ValueError, match=r"^beta must be such that all degrees to compare"):
        theory.fastest_mode(np.full(1000, 1e10))
