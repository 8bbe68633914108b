"""Closed forms at the last value of a range, and what is impossible."""

from __future__ import annotations

import numpy as np
import pytest

from tokenflock import theory
from tokenflock.theory import _check


def test_gaussians_of_no_width_move_like_their_mean():
    flow = theory.gaussian_flow(0.25, [1.0], [[0.0]], [[1.0]], [[1.0]])
    assert flow.mean[0] == pytest.approx(np.exp(0.25), rel=1e-10)
    assert flow.covariance[0, 0] == 0


def test_gaussians_of_any_width_are_followed():
    """S(t) = S0 / (1 - 2 v a S0 t), here with 2 v a S0 t = 0.95."""
    flow = theory.gaussian_flow(4.75, [1.0], [[1e11]], [[1e-12]], [[1.0]])
    assert flow.covariance[0, 0] == pytest.approx(2e12, rel=1e-8)


def test_the_fastest_mode_of_sinkhorn_is_sought_far_enough_and_alone():
    rates = theory.growth_rate(np.arange(1, 400), 1e4, 3, "Sinkhorn")
    best = 1 + np.argmax(rates)
    assert theory.fastest_mode(1e4, 3, "Sinkhorn") == best > 146
    np.testing.assert_array_equal(
        theory.fastest_mode([1e4, 1.0, 3e5], 3, "Sinkhorn"),
        [theory.fastest_mode(beta, 3, "Sinkhorn") for beta in (1e4, 1.0, 3e5)],
    )


def test_masses_sum_to_one_within_a_billionth():
    assert theory.plateau_energy([0.5, 0.5 + 0.9e-9]) == pytest.approx(0.5)
    for excess in (9e-6, 1.1e-9, -1.1e-9):
        with pytest.raises(ValueError, match=r"^masses must be numbers that sum to one"):
            theory.plateau_energy([0.5, 0.5 + excess])


@pytest.mark.parametrize(("eigenvalue", "high"), [(1e-80, 1e-40), (1e-120, 1e-60)])
def test_the_window_of_a_small_eigenvalue_ends_at_its_root(eigenvalue, high):
    """x tanh(x) = x^2 there."""
    assert theory.trap_window(eigenvalue).high == pytest.approx(high, rel=1e-12, abs=0)


def test_an_exponent_is_critical_to_a_millionth_of_a_millionth():
    """Three phases about gamma = 1 / (1 - rho) = 2: 1, 4 rho / (1 + 3 rho) and rho."""
    share = np.array([-1.1e-12, -0.9e-12, 0.0, 0.9e-12, 1.1e-12])
    limit = theory.attention_cosine_limit(2 * (1 + share), 0.5)
    np.testing.assert_allclose(limit, [1, 0.8, 0.8, 0.8, 0.5])


def test_poisson_kernels_are_known_to_their_ends():
    assert theory.poisson_density(0.0, 1 - 1e-15) == pytest.approx(1 / np.pi / 1e-15, rel=0.2)
    assert theory.poisson_quantile(1e-17) < 0 < theory.poisson_quantile(1 - 1e-16)


def test_a_last_layer_is_whole_within_a_billionth():
    """300 layers less 0.9e-9 of one are 300, less 1.25e-9 they are 299."""
    whole, one_less = (theory.layer_transition_curve(t) for t in (30.0, 29.95))
    assert whole > one_less
    assert theory.layer_transition_curve(30 * (1 - 0.9e-9 / 300)) == whole
    assert theory.layer_transition_curve(30 * (1 - 1.25e-9 / 300)) == one_less


def test_caps_have_no_measure_from_1e_minus_300_on():
    found = theory.strong_centres(0.7886555333239615, 2000)
    assert found == pytest.approx(9.09e299, rel=1e-3)
    assert theory.strong_centres(0.7886555333239615, 2010) == np.inf


def test_a_kernel_that_is_flat_has_no_sign():
    assert not np.signbit(theory.kernel_eigenvalue(1, 0.0))


def test_without_arguments_time_and_number_are_the_usual_ones():
    assert theory.gaussian_blow_up() == 0.5
    assert theory.strong_centres() == pytest.approx(2 * np.pi, rel=1e-14)


IMPOSSIBLE = [
    ("equiangular_speed", "gamma", 2.5),
    ("equiangular_speed", "gamma", -1.0),
    ("pair_speed", "gamma", 2.5),
    ("pair_speed", "gamma", -1.5),
    ("pair_time", "gamma1", 2.0),
    ("pair_time", "gamma0", 1.0),
    ("normalised_speed", "rho", 2.5),
    ("normalised_speed", "rho", np.inf),
    ("normalised_speed", "rho", -1.0),
    ("normalised_speed", "r", -1.0),
    ("normalised_speed", "r", 0.0),
    ("normalised_speed", "alpha", -1.0),
    ("normalised_speed", "t", -1.0),
    ("normalised_speed", "switch", -1.0),
    ("normalised_flow", "rho0", -1.0),
    ("attention_cosine", "rho", -0.4),
    ("saddle_threshold", "angle", 4.0),
    ("saddle_threshold", "angle", 1e308),
    ("mode_switch", "k", 1e308),
    ("growth_rate", "d", 1e30),
]


@pytest.mark.parametrize(("form", "argument", "value"), IMPOSSIBLE)
def test_what_cannot_be_is_refused_under_its_own_name(form, argument, value):
    with pytest.raises(ValueError, match=rf"^{argument} must be .*Write for example {argument}="):
        getattr(theory, form)(**{argument: value})


def test_cosines_may_be_outside_by_rounding_and_both_ends_are_there():
    """At -1/(n-1) and at 1 equiangular tokens rest."""
    for n in (2, 5, 32):
        low = -1 / (n - 1)
        for gamma in (low, low - 5e-10, 1.0, 1 + 5e-10):
            assert theory.equiangular_speed(gamma, n) == pytest.approx(0, abs=1e-15)
        for gamma in (low - 2e-9, 1 + 2e-9):
            with pytest.raises(ValueError, match=r"^gamma must be between"):
                theory.equiangular_speed(gamma, n)
    assert theory.saddle_threshold(32, np.pi) == pytest.approx(97.20239064)


@pytest.mark.parametrize("m", [0.5, 0.3])
def test_clusters_within_delta_have_met(m):
    assert theory.merging_time(1e-3, m=m) == 0 == theory.merging_time(1e-9, m=m)
    assert theory.merging_time([0.04, 0.05], m=m).tolist() == [0, theory.merging_time(0.05, m=m)]
    assert theory.merging_time(0.05, m=m) > 0


def test_clusters_that_are_near_meet_like_free_ones():
    """t = log(tan(phi/2) / tan(phi'/2)), with cos(phi') = 1 - delta"""
    expected = np.log(5e-10 / np.sqrt(1e-20 / 2))
    assert theory.merging_time(1e-9, delta=1e-20) == pytest.approx(expected, rel=1e-12)


def test_the_t_that_is_offered_for_layers_is_taken():
    with pytest.raises(ValueError, match=r"^t must be at most 20,000 layers of h = 0.001") as told:
        theory.layer_transition_curve(h=[0.1, 0.001])
    assert "got 30.0, which is 30,000. Write for example t=20." in str(told.value)


def test_what_takes_one_number_says_so():
    with pytest.raises(ValueError, match=r"^most must be a whole number, got \[1, 2\]"):
        theory.layer_crossing(most=[1, 2])
    told = r"^cosine must be one number, or a 3 x 3 matrix, got \[0.1, 0.2, 0.9\]"
    with pytest.raises(ValueError, match=told):
        theory.plateau_energy([0.2, 0.3, 0.5], 1.0, [0.1, 0.2, 0.9])


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.array(-1.0), "-1.0"),
        (np.float64(-1.0), "-1.0"),
        (np.array([1, -2]), "[1, -2]"),
        (np.array([[1.0, -2.0]]), "[[1.0, -2.0]]"),
        ((1, -2), "(1, -2)"),
        (-1, "-1"),
    ],
)
def test_what_came_is_told_as_plain_numbers(value, told):
    with pytest.raises(ValueError) as error:
        _check.above("x", value, 0, "1.0")
    assert str(error.value) == f"x must be greater than 0, got {told}. Write for example x=1.0."


@pytest.mark.parametrize("size", [1e-16, 1.0, 1e16])
def test_gaussians_are_followed_in_any_unit(size):
    """S = size / (1 - 2t) where A = 1/size."""
    flow = theory.gaussian_flow(0.25, [size], [[size]], [[1 / size]], [[1.0]])
    assert flow.covariance[0, 0] == pytest.approx(2 * size, rel=1e-9, abs=0)
    assert flow.mean[0] == pytest.approx(np.exp(0.25) * np.sqrt(2) * size, rel=1e-9, abs=0)


@pytest.mark.parametrize("covariance", [[[1.0, 5.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]])
@pytest.mark.parametrize("form", [theory.gaussian_speed, theory.gaussian_flow])
def test_what_is_no_covariance_is_refused(form, covariance):
    with pytest.raises(ValueError, match="covariance must be symmetric"):
        form(mean=[1.0, 0.0], covariance=covariance, A=np.eye(2), V=np.eye(2))


def test_outputs_of_attention_that_nearly_cancel_keep_their_digits():
    """By the formula of the docstring in 40 digits; it was off by 1 % in double precision."""
    value = theory.attention_cosine(2, 1e-6, -0.999999999999)
    assert value == pytest.approx(0.0199256316, rel=1e-8)
    assert theory.attention_cosine(100, 1e-9, -0.010101010101) <= 1
