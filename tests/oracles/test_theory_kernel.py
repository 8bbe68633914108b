"""Eigenvalues of the kernel, and the energies of the extreme measures."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import exp1, expi, iv, ive

from tokenflock.theory._special import _log_debye, log_ive, scaled_expi
from tokenflock.theory.kernel import (
    dirac_energy,
    kernel_eigenvalue,
    log_kernel_eigenvalue,
    sampled_energy,
    uniform_energy,
)


@pytest.mark.parametrize(
    ("d", "energies"),
    [
        (2, [1.0634833707, 0.6330329389, 1.4127402440, 60.7549085840]),
        (3, [1.0421906110, 0.5876005968, 0.8528099124, 25.0095179141]),
        (16, [1.0078396833, 0.5158438327, 0.2034209141, 0.5322741027]),
    ],
)
def test_uniform_energy_table(d, energies):
    np.testing.assert_allclose(uniform_energy([0.5, 1, 4, 9], d), energies, atol=6e-11)


def test_dirac_energy_table():
    table = [1.6487212707, 1.3591409142, 6.8247687541, 450.1713293097]
    np.testing.assert_allclose(dirac_energy([0.5, 1, 4, 9]), table, atol=6e-11)


@pytest.mark.parametrize("d", [2, 3, 5, 16])
@pytest.mark.parametrize("beta", [0.3, 4.0, 30.0])
def test_lambda_0_and_1_are_the_moments_of_the_kernel_under_the_sphere_measure(d, beta):
    def weight(angle):
        return np.sin(angle) ** (d - 2)

    total = quad(weight, 0, np.pi, epsrel=1e-13)[0]
    for k, harmonic in enumerate([lambda c: 1.0, lambda c: c]):
        value = quad(
            lambda a, f=harmonic: f(np.cos(a)) * np.exp(beta * (np.cos(a) - 1)) * weight(a),
            0,
            np.pi,
            epsrel=1e-12,
        )[0]
        assert kernel_eigenvalue(k, beta, d, scaled=True) == pytest.approx(value / total, rel=1e-10)


def test_circle_eigenvalues_are_bessel_functions():
    k = np.arange(12)
    np.testing.assert_allclose(kernel_eigenvalue(k, 5.0, 2), iv(k, 5.0), rtol=1e-13)


@pytest.mark.parametrize("d", [2, 3, 8, 64, 402, 1024])
def test_orders_obey_the_bessel_recurrence_in_every_regime(d):
    # I_(v-1) - I_(v+1) = (2v/beta) I_v reads lambda_(k-1) - lambda_(k+1) = (2k+d-2)/beta lambda_k
    k = np.array([1, 2, 7, 40])[:, None]
    beta = np.array([1e-3, 0.7, 9.0, 80.0, 500.0, 3e3])
    log = log_kernel_eigenvalue(k, beta, d)
    below = np.exp(log_kernel_eigenvalue(k - 1, beta, d) - log)
    above = np.exp(log_kernel_eigenvalue(k + 1, beta, d) - log)
    assert np.max(np.abs(below - above - (2 * k + d - 2) / beta) / below) < 5e-12


@pytest.mark.parametrize(("k", "d"), [(0, 2), (3, 16), (2, 100), (0, 10**6)])
@pytest.mark.parametrize("share", [0.01, 0.5, 8.0])
def test_up_to_a_beta_that_grows_like_the_root_of_d_all_digits_are_those_of_the_series(k, d, share):
    """lambda_k = (beta/2)^k Gamma(d/2) / Gamma(d/2+k) sum_j (beta^2/4)^j / (j! (d/2+k)_j)"""
    z = share * (k + d / 2)
    terms = np.cumprod([1.0] + [z / (j * (k + d / 2 + j - 1)) for j in range(1, 90)])
    front = np.prod([np.sqrt(z) / (d / 2 + j) for j in range(k)])
    value = kernel_eigenvalue(k, 2 * np.sqrt(z), d)
    assert value == pytest.approx(front * np.sum(terms), rel=1e-12, abs=0)


@pytest.mark.parametrize("x", [60.0, 137.0, 150.0, 400.0])
@pytest.mark.parametrize("order", [200.0, 260.0])
def test_the_uniform_expansion_has_all_its_terms(order, x):
    """The fourth one is a few 1e-11 where the expansion begins; the logarithm is known to 1e-13."""
    found = _log_debye(np.asarray(order), np.asarray(x))
    assert abs(found - np.log(ive(order, x))) < 5e-13


@pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 7.0, 150.0])
def test_far_out_bessel_functions_are_their_asymptotic_series(order):
    """I_v(x) e^(-x) = (1 - (4v^2-1)/(8x) + (4v^2-1)(4v^2-9)/(2 (8x)^2) - ...) / sqrt(2 pi x) (DLMF
    10.40.1)
    """
    for x in (1.2e4, 1e6, 1e9, 1e10, 1e100):
        terms = np.cumprod([-(4 * order**2 - j**2) / (j // 2 + 1) / 8 / x for j in range(1, 61, 2)])
        expected = np.log1p(terms.sum()) - np.log(2 * np.pi * x) / 2
        assert log_ive(order, x) == pytest.approx(expected, rel=1e-13)


def test_exponential_integrals_are_those_of_scipy_where_it_has_them():
    """e^(-x) Ei(x), and -e^x E1(x) at -x; from 50 on by the asymptotic series."""
    x = np.array([1e-3, 0.4, 7.0, 49.9, 50.0, 50.1, 61.0, 120.0, 650.0])
    np.testing.assert_allclose(scaled_expi(x), np.exp(-x) * expi(x), rtol=2e-14)
    np.testing.assert_allclose(scaled_expi(-x), -np.exp(x) * exp1(x), rtol=2e-14)
    assert scaled_expi(0.0) == -np.inf
    np.testing.assert_allclose(scaled_expi([1e4, -1e4]), [1.00010002e-4, -9.9990002e-5], rtol=1e-9)


def test_no_beta_is_too_large():
    """lambda_k / lambda_0 = 1 - k(k+d-2)/(2 beta) + ...; lambda_0 e^(-beta) on S^2 is 1/(2 beta)"""
    beta = np.array([1e6, 3e9, 1e10, 1e14])
    scaled = kernel_eigenvalue(np.array([[0], [1], [5]]), beta, 3, scaled=True)
    np.testing.assert_allclose(scaled[0], 1 / (2 * beta), rtol=1e-13)
    np.testing.assert_allclose(1 - scaled[1] / scaled[0], 1 / beta, rtol=0, atol=1e-13)
    np.testing.assert_allclose(1 - scaled[2] / scaled[0], 15 / beta, rtol=0, atol=2e-10)
    log = log_kernel_eigenvalue(2, [1e12, -1e12], 7)
    np.testing.assert_allclose(log, 1e12, rtol=1e-9)
    assert kernel_eigenvalue(3, -1e10, 4, scaled=True) == -np.inf


def test_small_beta_limit_and_beta_zero():
    assert kernel_eigenvalue(0, 0.0, 7) == 1.0
    assert kernel_eigenvalue(3, 0.0, 7) == 0.0
    assert kernel_eigenvalue(1, 1e-8, 5) == pytest.approx(1e-8 / 5, rel=1e-13)


def test_large_beta_and_large_dimension_stay_finite():
    assert np.isfinite(log_kernel_eigenvalue([0, 5], 1e6, [2, 4096])).all()
    scaled = kernel_eigenvalue(0, 1e4, 2, scaled=True)
    assert scaled == pytest.approx(1 / np.sqrt(2 * np.pi * 1e4), rel=2e-5)
    assert kernel_eigenvalue(0, 1e4, 2) == np.inf


def test_negative_beta_flips_odd_degrees():
    np.testing.assert_allclose(
        kernel_eigenvalue([0, 1, 2], -2.0, 3),
        kernel_eigenvalue([0, 1, 2], 2.0, 3) * [1, -1, 1],
        rtol=1e-14,
    )


def test_sampled_energy_is_the_mean_over_draws():
    rng = np.random.default_rng(0)
    n, beta, d = 6, 2.0, 3
    x = rng.normal(size=(20_000, n, d))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    energies = np.exp(beta * x @ x.swapaxes(1, 2)).sum((1, 2)) / (2 * beta * n**2)
    assert sampled_energy(n, beta, d) == pytest.approx(
        energies.mean(), abs=4 * energies.std() / np.sqrt(20_000)
    )


def test_broadcasting_and_scalars():
    assert kernel_eigenvalue(np.arange(3)[:, None], [1.0, 2.0], 3).shape == (3, 2)
    assert isinstance(kernel_eigenvalue(1, 1.0, 3), float)
    assert isinstance(uniform_energy(1.0, 3), float)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: kernel_eigenvalue(-1, 1.0, 3), "k"),
        (lambda: kernel_eigenvalue(1, np.nan, 3), "beta"),
        (lambda: kernel_eigenvalue(1, 1.0, 1), "d"),
        (lambda: kernel_eigenvalue(1.5, 1.0, 3), "k"),
        (lambda: uniform_energy(0.0, 3), "beta"),
        (lambda: dirac_energy("warm"), "beta"),
        (lambda: sampled_energy(0, 1.0, 3), "n"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(call, argument):
    with pytest.raises(
        ValueError, match=rf"^{argument} must be .*, got .*Write for example {argument}="
    ):
        call()
