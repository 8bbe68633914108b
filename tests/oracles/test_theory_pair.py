"""Two tokens and two clusters."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tokenflock.theory.pair import (
    merging_growth,
    merging_time,
    pair_cosine,
    pair_speed,
    pair_time,
    pairing_angle,
    weighted_pair_speed,
)


def test_pair_time_table():
    assert pair_time(0, 0.5, 1.0) == pytest.approx(0.855375023305, abs=6e-13)
    assert pair_time(0, 0.5, 1.0, unnormalised=True) == pytest.approx(0.427271333721, abs=6e-13)
    assert pair_time(0, 0.99, 1.0) == pytest.approx(3.115256494686, abs=6e-13)
    assert pair_time(0, 0.99, 1.0, unnormalised=True) == pytest.approx(1.318428626307, abs=6e-13)


@pytest.mark.parametrize(
    ("beta", "times"),
    [
        (1, [3.41569266, 4.27106768, 5.52605223, 13.40225459]),
        (2, [3.63446762, 5.16326482, 9.00983733, 55.20047870]),
        (4, [4.33921889, 10.83120701, 61.32165130, 2108.50717496]),
    ],
)
def test_two_equal_clusters_table(beta, times):
    np.testing.assert_allclose(
        merging_time([np.pi / 3, np.pi / 2, 2 * np.pi / 3, 3.0], beta), times, atol=6e-9
    )


def test_free_pair_is_a_hyperbolic_tangent():
    t = np.linspace(0, 5, 11)
    np.testing.assert_allclose(
        pair_cosine(t, -0.5, 0.0), np.tanh(t + np.arctanh(-0.5)), rtol=1e-13, atol=1e-15
    )
    assert pair_time(-0.5, 0.8, 0.0) == pytest.approx(np.arctanh(0.8) - np.arctanh(-0.5), rel=1e-14)


def test_speeds_as_printed():
    gamma = np.linspace(-0.9, 0.9, 7)
    expected = 2 * np.exp(gamma * 3) * (1 - gamma**2) / (np.exp(3) + np.exp(3 * gamma))
    np.testing.assert_allclose(pair_speed(gamma, 3.0), expected, rtol=1e-13)
    np.testing.assert_allclose(
        pair_speed(gamma, 3.0, True), np.exp(3 * gamma) * (1 - gamma**2), rtol=1e-13
    )


def test_weighted_pair_is_two_clusters_of_many_tokens():
    # 3 tokens at one point and 9 at the other move like masses 1/4 and 3/4
    angle, beta = 1.1, 2.0
    theta = np.repeat([0.0, angle], [3, 9])
    gap = theta[:, None] - theta
    weights = np.exp(beta * np.cos(gap))
    speed = -(weights * np.sin(gap)).sum(1) / weights.sum(1)
    assert weighted_pair_speed(angle, beta, m=0.25) == pytest.approx(
        speed[-1] - speed[0], rel=1e-12
    )
    assert weighted_pair_speed(angle, beta, m=0.75) == pytest.approx(
        speed[-1] - speed[0], rel=1e-12
    )


def test_weighted_merging_time_ends_at_the_threshold():
    t = merging_time(2.0, 3.0, 0.01, m=0.2)
    path = solve_ivp(
        lambda t, a: weighted_pair_speed(a, 3.0, 0.2),
        (0, t),
        [2.0],
        "DOP853",
        rtol=1e-12,
        atol=1e-14,
    )
    assert np.cos(path.y[0, -1]) == pytest.approx(0.99, abs=1e-9)


def test_quadrature_and_closed_form_agree_at_equal_masses():
    mixed = merging_time(2.0, [1.0, 3.0], 1e-3, [[0.5], [0.5 + 1e-9]])
    np.testing.assert_allclose(mixed[0], merging_time(2.0, [1.0, 3.0]), rtol=1e-11)
    np.testing.assert_allclose(mixed[0], mixed[1], rtol=1e-8)


def test_growth_of_the_merging_time():
    ratios = merging_time(2.0, [50.0, 200.0]) / merging_growth(2.0, [50.0, 200.0])
    assert abs(ratios[1] - 1) < abs(ratios[0] - 1) < 0.05


def test_pairing_clock_table_and_its_ode():
    np.testing.assert_allclose(
        pairing_angle(0.3, 1.2, [0.5, 0.25]), [0.71835172, 0.49311818], atol=6e-9
    )
    path = solve_ivp(lambda s, a: -(3 + 1 / 3) * np.sin(a), (0, 0.3), [1.2], rtol=1e-11, atol=1e-13)
    assert pairing_angle(0.3, 1.2, 0.25) == pytest.approx(path.y[0, -1], abs=1e-9)


def test_far_pairs_at_large_beta_are_frozen_not_nan():
    assert weighted_pair_speed(2.0, 1e5, 0.3) == 0.0
    assert merging_time(2.0, 1e4) == np.inf


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: merging_time(0.0, 1.0), "angle"),
        (lambda: weighted_pair_speed(1.0, 1.0, m=1.0), "m"),
        (lambda: merging_time(1.0, 1.0, delta=2.0), "delta"),
        (lambda: pair_time(-1.0, 0.5), "gamma0"),
    ],
)
def test_errors_name_the_argument(call, argument):
    with pytest.raises(ValueError, match=rf"^{argument} must be "):
        call()


@pytest.mark.parametrize(("angle", "beta"), [(2.0, 3.0), (0.3, 2000.0), (1.1, -2.0)])
def test_which_cluster_is_the_heavier_does_not_matter(angle, beta):
    """Masses 5/8 and 3/8 meet as 3/8 and 5/8 do, at another time than equal ones."""
    times = merging_time(angle, beta, 1e-3, [0.625, 0.375, 0.5])
    assert times[0] == pytest.approx(times[1], rel=1e-10) and np.isfinite(times).all()
    assert abs(times[0] / times[2] - 1) > 1e-3
    assert merging_time(angle, beta, 1e-3, 0.625) == pytest.approx(times[0], rel=1e-12)


def test_unequal_clusters_too_far_to_meet_never_do():
    """The time grows like e^(beta (1 - cos(phi)))."""
    assert merging_time(2.0, 600.0, m=0.3) == np.inf
    assert merging_time(2.0, 300.0, m=0.3) == pytest.approx(merging_growth(2.0, 300.0), rel=0.7)
