"""Growth rates about the uniform measure, terminal rates, noise, polygons."""

import numpy as np
import pytest
from scipy.special import i1

from tokenflock.theory.kernel import kernel_eigenvalue
from tokenflock.theory.polygon import polygon_eigenvalue, polygon_growth, polygon_lifetime
from tokenflock.theory.rates import (
    critical_noise,
    fastest_mode,
    growth_rate,
    layer_terminal_rate,
    mode_switch,
    terminal_rate,
    tricritical_beta,
)

CIRCLE = [  # beta, k, USA, SA
    (1, 1, 0.5651591040, 0.4463899659),
    (1, 2, 0.5429906791, 0.4288802728),
    (1, 3, 0.1995158243, 0.1575872376),
    (4, 1, 2.4398662884, 0.2158806528),
    (4, 2, 6.4221893753, 0.5682386945),
    (4, 3, 7.5088705014, 0.6643888122),
    (4, 4, 5.6651028306, 0.5012512787),
    (5, 2, 14.0044919733, 0.5141173961),
    (5, 3, 18.5960703045, 0.6826783336),
    (5, 4, 16.3463512437, 0.6000891395),
]


@pytest.mark.parametrize(("beta", "k", "usa", "sa"), CIRCLE)
def test_circle_table(beta, k, usa, sa):
    assert growth_rate(k, beta, 2, "USA") == pytest.approx(usa, abs=6e-11)
    assert growth_rate(k, beta, 2, "SA") == pytest.approx(sa, abs=6e-11)


def test_sphere_tables():
    k = [1, 2, 3, 4]
    usa, sa = (
        [2.56071919, 4.47210077, 4.18406324, 2.70348478],
        [0.37533558, 0.65549496, 0.61327606, 0.39626134],
    )
    np.testing.assert_allclose(growth_rate(k, 4.0, 3, "USA"), usa, atol=6e-9)
    np.testing.assert_allclose(growth_rate(k, 4.0, 3), sa, atol=6e-9)
    np.testing.assert_allclose(
        growth_rate(k[:3], 9.0, 8), [0.52120928, 0.71881289, 0.66260448], atol=6e-9
    )


def test_sinkhorn_table():
    rates = growth_rate([1, 3, 4], [4, 4, 9], 2, "Sinkhorn")
    np.testing.assert_allclose(rates, [0.1158454700, 0.5129290990, 0.5045529849], atol=6e-11)


def circle_rate(model, beta, k, ripple=1e-6, points=256):
    """Growth of cos(k theta) read off the continuity equation on a grid, nothing done by hand."""
    theta = 2 * np.pi * np.arange(points) / points
    density = (1 + ripple * np.cos(k * theta)) / points
    gap = theta[:, None] - theta
    kernel = np.exp(beta * (np.cos(gap) - 1))
    if model == "USA":
        kernel = kernel * np.exp(beta)
    elif model == "SA":
        kernel = kernel / (kernel @ density)[:, None]
    else:
        u = np.ones(points)
        for _ in range(400):
            u = np.sqrt(u / (kernel @ (u * density)))
        kernel = u[:, None] * kernel * u
    velocity = -(kernel * np.sin(gap)) @ density
    frequency = np.fft.fftfreq(points, 1 / points)
    speed = -np.fft.ifft(1j * frequency * np.fft.fft(density * velocity)).real
    return 2 * (speed * np.cos(k * theta)).sum() / ripple


@pytest.mark.parametrize("model", ["SA", "USA", "Sinkhorn"])
@pytest.mark.parametrize(("beta", "k"), [(1.5, 1), (4.0, 3), (-1.2, 2), (-1.2, 1)])
def test_rates_are_those_of_the_continuity_equation(model, beta, k):
    assert growth_rate(k, beta, 2, model) == pytest.approx(circle_rate(model, beta, k), rel=1e-7)


def test_rates_at_and_near_beta_zero():
    for model, factor in [("SA", 1.0), ("USA", 1.0), ("Sinkhorn", 1.0)]:
        assert growth_rate(1, 0.0, 5, model) == pytest.approx(factor * 4 / 5)
        assert growth_rate(1, 1e-7, 5, model) == pytest.approx(factor * 4 / 5, rel=1e-6)
        assert growth_rate(2, 0.0, 5, model) == 0.0
    assert growth_rate(0, 3.0, 2) == 0.0


def test_sinkhorn_is_half_of_softmax_at_large_beta():
    assert growth_rate(3, 1e5, 3, "Sinkhorn") / growth_rate(3, 1e5, 3) == pytest.approx(
        0.5, abs=1e-3
    )
    assert np.isfinite(growth_rate([1, 50], 1e6, 1024)).all()


def test_mode_switch_tables():
    circle = [1.0444568621, 3.1654344427, 6.2112983794, 10.2284831630, 15.2362767285, 21.2404519636]
    np.testing.assert_allclose(mode_switch(np.arange(1, 7), 2), circle, atol=6e-11)
    np.testing.assert_allclose(
        mode_switch(np.arange(1, 5), 3),
        [1.81615453, 4.42529301, 7.96237985, 12.47743311],
        atol=6e-9,
    )
    np.testing.assert_allclose(
        mode_switch([1, 2, 3], 8), [5.25111070, 10.50034168, 16.59504342], atol=6e-9
    )


def test_fastest_mode_changes_at_the_switches():
    switches = mode_switch(np.arange(1, 7), 2)
    np.testing.assert_array_equal(fastest_mode(switches - 1e-6), np.arange(1, 7))
    np.testing.assert_array_equal(fastest_mode(switches + 1e-6, model="USA"), np.arange(2, 8))
    np.testing.assert_array_equal(fastest_mode([5, 7]), [3, 4])  # the two published runs
    assert fastest_mode(1e4) == pytest.approx(np.sqrt(2e4), rel=0.01)


def test_noise_table_and_the_instability_it_marks():
    assert critical_noise(1.0) == pytest.approx(1.7694132377, abs=6e-11)
    assert critical_noise(3.0) == pytest.approx(3.0 / i1(3.0), rel=1e-13)
    np.testing.assert_allclose(critical_noise(0.0, [2, 3, 7]), [2, 3, 7])
    kappa = critical_noise(2.2, 4)
    assert (
        growth_rate(1, 2.2, 4, "USA", kappa * 1.001)
        > 0
        > growth_rate(1, 2.2, 4, "USA", kappa * 0.999)
    )


def test_tricritical_table():
    beta = tricritical_beta([2, 3, 4])
    np.testing.assert_allclose(beta, [2.4469183113, 1.8161545254, 1.5752571501], atol=6e-11)
    np.testing.assert_allclose(
        critical_noise(beta, [2, 3, 4]), [1.0202709594, 2.1879254219, 3.2693037796], atol=6e-11
    )
    np.testing.assert_allclose(
        kernel_eigenvalue(2, beta, [2, 3, 4]) / kernel_eigenvalue(1, beta, [2, 3, 4]),
        1 / np.array([2, 3, 4]),
    )


def test_terminal_rates():
    assert terminal_rate(7.0) == 2.0
    assert terminal_rate(1.0, unnormalised=True) == pytest.approx(5.436564, abs=5e-7)
    assert layer_terminal_rate(0.1) == pytest.approx(1.906, abs=5e-4)
    assert layer_terminal_rate(1e-9) == pytest.approx(2.0)


def circle_velocity(theta, beta, unnormalised):
    gap = theta[:, None] - theta
    weights = np.exp(beta * np.cos(gap))
    total = len(theta) if unnormalised else weights.sum(1)
    return -(weights * np.sin(gap)).sum(1) / total


@pytest.mark.parametrize("unnormalised", [False, True])
@pytest.mark.parametrize("n", [2, 3, 4, 7])
@pytest.mark.parametrize("beta", [-1.0, 0.3, 2.0, 6.0])
def test_polygon_eigenvalues_are_those_of_the_jacobian(n, beta, unnormalised):
    corners, step = 2 * np.pi * np.arange(n) / n, 1e-5
    columns = [
        (
            circle_velocity(corners + step * e, beta, unnormalised)
            - circle_velocity(corners - step * e, beta, unnormalised)
        )
        for e in np.eye(n)
    ]
    jacobian = np.array(columns).T / (2 * step)
    expected = np.sort(np.linalg.eigvals(jacobian).real)
    values = polygon_eigenvalue(np.arange(n), n, beta, unnormalised)
    np.testing.assert_allclose(
        np.sort(values), expected, atol=1e-7 * max(1, np.abs(expected).max())
    )


def test_polygon_closed_forms():
    beta = np.array([0.5, 3.0, 8.0])
    np.testing.assert_allclose(polygon_eigenvalue(1, 2, beta, True), np.exp(-beta), rtol=1e-12)
    np.testing.assert_allclose(
        polygon_eigenvalue(1, 2, beta), 2 / (1 + np.exp(2 * beta)), rtol=1e-12
    )
    np.testing.assert_allclose(
        polygon_eigenvalue(1, 3, beta, True), (0.5 + 0.75 * beta) * np.exp(-beta / 2), rtol=1e-12
    )
    np.testing.assert_allclose(polygon_eigenvalue(2, 4, beta, True), beta, rtol=1e-12)
    np.testing.assert_allclose(
        polygon_eigenvalue(2, 4, beta), beta / np.cosh(beta / 2) ** 2, rtol=1e-12
    )


def test_polygon_lifetimes_explain_the_clusters_of_figure_4():
    np.testing.assert_allclose(polygon_lifetime([2, 3], 4.0), [1491, 39], atol=0.5)
    np.testing.assert_allclose(polygon_lifetime([3, 4], 9.0), [3.4e4, 225], rtol=0.015)
    assert polygon_lifetime(3, -0.7) == np.inf and polygon_lifetime(3, -0.6) < np.inf


def test_square_changes_its_fastest_mode():
    for beta, mode in [(0.56, 1), (0.575, 2)]:
        assert polygon_growth(4, beta, True) == pytest.approx(
            polygon_eigenvalue(mode, 4, beta, True)
        )
        assert np.argmax(polygon_eigenvalue([1, 2], 4, beta)) == mode - 1


def test_large_beta_polygon_is_frozen_not_nan():
    assert polygon_eigenvalue(1, 3, 1e4) == 0.0
    assert polygon_lifetime(3, 1e4) == np.inf


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: growth_rate(1, 1.0, 2, "softmax"), "model"),
        (lambda: growth_rate(1, 1.0, 2, kappa=0.0), "kappa"),
        (lambda: mode_switch(0), "k"),
        (lambda: critical_noise(-1.0), "beta"),
        (lambda: polygon_growth(1, 1.0), "n"),
        (lambda: layer_terminal_rate(-0.1), "h"),
    ],
)
def test_errors_name_the_argument(call, argument):
    with pytest.raises(ValueError, match=rf"^{argument} must be .*Write for example {argument}="):
        call()


@pytest.mark.parametrize("unnormalised", [False, True])
def test_polygons_of_several_sizes_at_once_are_those_alone(unnormalised):
    """The growth is the largest eigenvalue of p = 1 .. n - 1, also where all are negative."""
    n, beta = np.arange(2, 12), np.array([[-1.0], [0.3], [2.0], [9.0]])
    together = polygon_growth(n, beta, unnormalised)
    values = polygon_eigenvalue(1, n, beta, unnormalised)
    for (i, j), growth in np.ndenumerate(together):
        alone = polygon_eigenvalue(np.arange(1, n[j]), n[j], beta[i, 0], unnormalised)
        assert growth == pytest.approx(alone.max(), rel=1e-11)
        assert values[i, j] == pytest.approx(alone[0], rel=1e-10, abs=1e-14)
    assert together[0, 1] < 0  # the triangle, below beta = -2/3
    lifetime = polygon_lifetime(n, beta, unnormalised)
    expected = [1 / rate if rate > 0 else np.inf for rate in together.flat]
    np.testing.assert_allclose(lifetime.ravel(), expected)


def test_polygons_at_large_beta_of_either_sign_have_their_limits():
    """n = 2: 2 / (1 + e^(2 beta)); n = 3, beta -> -inf: 3/2 (1/2 + 3 beta/4)."""
    np.testing.assert_allclose(polygon_eigenvalue(1, 2, [-2e3, 2e3]), [2, 0], atol=1e-300)
    assert polygon_eigenvalue(1, 3, -2e3) == pytest.approx(1.5 * (0.5 - 1500), rel=1e-12)


def test_the_fastest_mode_of_each_noise_is_its_own():
    """With noise and without it side by side: the order of USA is that of SA only without."""
    kappas = np.array([np.inf, 30.0, 3.0])
    several = fastest_mode(9.0, 2, "USA", kappas)
    each = [fastest_mode(9.0, 2, "USA", kappa) for kappa in kappas]
    assert several.tolist() == each
    assert fastest_mode(9.0, 2, "SA", 30.0) != each[1]
