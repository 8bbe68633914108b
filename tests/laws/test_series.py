"""The kernel as a series of harmonics, and the fast sums made of it, beside the plain sums."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ive, spherical_in

import tokenflock as flock
from tokenflock.dynamics import Clock, Fast, SelfAttention, Unnormalised, _harmonics
from tokenflock.dynamics._harmonics import degrees, kernel_sum, moments, ratios, series, sizes

pytestmark = pytest.mark.usefixtures("double")


def tokens(d, n=11, seed=0):
    """Unit vectors and unequal weights."""
    random = np.random.default_rng(seed)
    x, w = random.normal(size=(n, d)), random.uniform(0.2, 2.0, size=n)
    return x / np.linalg.norm(x, axis=1, keepdims=True), w / w.sum()


def mean_kernel(beta, d):
    """lambda_0: I_0(beta) on the circle, sinh(beta) / beta on S^2."""
    return np.i0(beta) if d == 2 else np.sinh(beta) / beta


def eigenvalues(beta, d, order):
    """lambda_l / lambda_0 of a positive beta, by SciPy."""
    l = np.arange(order + 1)
    if d == 2:
        return ive(l, beta) / ive(0, beta)
    return spherical_in(l, beta) / spherical_in(0, beta)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(("beta", "order"), [(5.0, 3), (0.5, 12), (40.0, 60)])
def test_eigenvalues_of_the_kernel_are_ratios_of_bessel_functions(beta, order, d):
    wanted = eigenvalues(beta, d, order)
    np.testing.assert_allclose(ratios(jnp.asarray(beta), d, order), wanted, rtol=1e-12)
    signs = (-1.0) ** np.arange(order + 1)
    np.testing.assert_allclose(ratios(jnp.asarray(-beta), d, order), signs * wanted, rtol=1e-12)


@pytest.mark.parametrize(("beta", "orders"), [(0.3, (1, 4)), (-4.0, (5, 12)), (400.0, (60, 140))])
def test_the_order_is_the_least_beyond_which_the_series_is_below_the_tolerance(beta, orders):
    """Just above and just below sum_{l > order} (2l+1) lambda_l / lambda_0 on S^2."""
    terms = (2 * np.arange(300) + 1) * eigenvalues(abs(beta), 3, 299)
    for order in orders:
        left_out = terms[order + 1 :].sum()
        assert degrees(beta, left_out * (1 + 1e-7)) == order
        assert degrees(beta, left_out * (1 - 1e-7)) == order + 1


def test_there_is_a_series_even_where_all_is_tolerated():
    assert degrees(0.0, 0.5) == 1 and degrees(1e-9, 1e-3) == 1


def test_there_are_two_harmonics_of_a_degree_on_the_circle_and_2l_plus_1_on_the_sphere():
    assert sizes(2, 3).tolist() == [1, 2, 2, 2]
    assert sizes(3, 3).tolist() == [1, 3, 5, 7]


@pytest.mark.parametrize("d", [2, 3])
def test_harmonics_are_orthonormal(d):
    """Sums of squares over all tokens, by degree: sum_m Y_lm(x)^2 = number of harmonics (addition
    theorem), and between two tokens that number times a Legendre or Chebyshev polynomial.
    """
    x, _ = tokens(d, n=2, seed=3)
    order, c = 5, x[0] @ x[1]
    Y = np.asarray(moments(jnp.asarray(x), jnp.eye(2), order))  # (l, m, 2)
    np.testing.assert_allclose((Y**2).sum(axis=1), np.outer(sizes(d, order), [1, 1]), rtol=1e-12)
    if d == 2:
        known = [np.cos(l * np.arccos(c)) for l in range(order + 1)]
    else:
        known = [np.polynomial.Legendre.basis(l)(c) for l in range(order + 1)]
    np.testing.assert_allclose((Y[..., 0] * Y[..., 1]).sum(axis=1), sizes(d, order) * known)


@pytest.mark.parametrize("order", [0, 1, 4])
def test_the_first_harmonic_of_an_order_has_its_size(order):
    """P_mm^2 = 2 prod_{k <= m} (2k + 1) / (2k) for m > 0, and P_00 = 1."""
    k = np.arange(1, order + 1)
    wanted = np.sqrt(np.append(1.0, 2 * np.cumprod((2 * k + 1) / (2 * k))))
    np.testing.assert_allclose(np.diag(_harmonics._recursion(order)[2]), wanted, rtol=1e-13)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("beta", [2.5, -2.5])
def test_the_sum_of_the_series_is_the_plain_sum(beta, d):
    (x, w), (q, _) = tokens(d), tokens(d, n=5, seed=1)
    s = w[:, None] * np.concatenate([np.ones((len(x), 1)), x], axis=1)
    wanted = np.exp(beta * q @ x.T) @ s / mean_kernel(beta, d)
    order = degrees(beta, 1e-16)
    found = kernel_sum(jnp.asarray(q), jnp.asarray(x), jnp.asarray(s), jnp.asarray(beta), order)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_blocks_of_tokens_and_of_points_make_the_same_sums(monkeypatch):
    (x, w), order = tokens(3, n=10), 4
    x, s = jnp.asarray(x), jnp.asarray(w)[:, None]
    whole = moments(x, s, order)
    back = series(x, whole)
    monkeypatch.setattr(_harmonics, "BLOCK", 4)  # the last one is filled up
    by_blocks = moments.__wrapped__(x, s, order)
    np.testing.assert_allclose(by_blocks, whole, rtol=0, atol=1e-14)
    np.testing.assert_allclose(series(x, whole), back, rtol=0, atol=1e-13)


BASES = {
    "SA": SelfAttention(2.5),
    "SA that repels": SelfAttention(-2.5, repulsive=True),
    "USA": Unnormalised(2.5),
    "USA, beta below zero": Unnormalised(-2.5),
    "USA, peak": Unnormalised(2.5, Clock.PEAK),
    "USA, peak, beta below zero": Unnormalised(-2.5, Clock.PEAK, repulsive=True),
}


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("name", BASES)
def test_fast_sums_are_the_sums_of_their_law(name, d):
    base, fast = BASES[name], Fast(BASES[name])
    (x, w), (q, _) = tokens(d), tokens(d, n=5, seed=1)
    x, w, q = jnp.asarray(x), jnp.asarray(w), jnp.asarray(q)
    for ours, theirs in (
        (fast.field(0.0, q, x, w), base.field(0.0, q, x, w)),
        (fast.energy(x, w), base.energy(x, w)),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)
    if d == 3:
        np.testing.assert_allclose(fast.metric(x, w), base.metric(x, w), rtol=1e-11)
        rows = (law.attention(0.0, q, x, w) for law in (fast, base))
        np.testing.assert_allclose(*rows, rtol=1e-12)
    assert fast.ascends == base.ascends and fast.keeps_cones == base.keeps_cones
    assert fast.as_block() == base.as_block()


def test_at_infinite_temperature_the_fast_energy_is_that_of_the_mean():
    """(1/2) |sum_j w_j x_j|^2."""
    x, w = tokens(3)
    found = Fast(SelfAttention(0.0)).energy(jnp.asarray(x), jnp.asarray(w))
    assert float(found) == pytest.approx(0.5 * np.sum((w @ x) ** 2), rel=1e-12)


def test_a_light_token_far_from_the_others_moves_as_by_the_plain_sum():
    """Its own weight, 1e-6, is nearly all of its partition function."""
    x, w = tokens(2, n=6)
    x = x * np.sign(x[:, :1])  # a half of the circle
    x[0], w[0] = [-1.0, 0.0], 1e-6
    x, w = jnp.asarray(x), jnp.asarray(w)
    base = SelfAttention(12.0)
    assert float(base.attention(0.0, x, x, w)[0, 0]) > 0.5
    assert np.abs(Fast(base).force(0.0, x, w) - base.force(0.0, x, w)).max() < 1e-9


def test_an_order_that_does_not_serve_gives_no_number_for_either_sign_of_beta():
    x, w = tokens(3)
    for beta in (50.0, -50.0):
        fast = Fast(SelfAttention(beta), order=10)
        assert np.isnan(fast.force(0.0, jnp.asarray(x), jnp.asarray(w))).all()


def test_the_order_of_fast_sums_is_within_its_bounds():
    assert Fast(SelfAttention(4.0), order=30).order == 30
    assert Fast(SelfAttention(4.0), order=1).order == 1
    assert Fast(SelfAttention(4.0), order=100_000).order == 100_000
    assert Fast(Unnormalised(4.0), tolerance=1e-3).order == degrees(4.0, 1e-3)
    assert Fast(SelfAttention(4.0), tolerance=0.999).order >= 1
    for wrong in ({"order": -1}, {"order": 100_001}, {"tolerance": 1.0}, {"tolerance": -1e-3}):
        with pytest.raises(flock.UserError, match=next(iter(wrong))):
            Fast(SelfAttention(4.0), **wrong)
