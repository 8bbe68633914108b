"""Thresholds, probabilities, energies of known states, anisotropic attention."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tokenflock.theory.anisotropy import (
    antipodal_energy,
    four_particle_share,
    maximiser_crossing,
    minimiser_tilt,
    trap_window,
    two_cluster_growth,
)
from tokenflock.theory.polygon import polygon_eigenvalue
from tokenflock.theory.probability import (
    cap_fraction,
    hemisphere_probability,
    renyi_centres,
    strong_centres,
)
from tokenflock.theory.sharp import (
    cross_polytope_energy,
    icosahedron_energy,
    plateau_energy,
    polygon_energy,
    simplex_energy,
)
from tokenflock.theory.thresholds import (
    attraction_range,
    curvature_minimum,
    interaction_curvature,
    saddle_threshold,
    triangle_eigenvalue,
)


def test_wendel_table():
    n, d = [32, 32, 32, 32, 32, 3, 4, 4, 10], [2, 8, 16, 20, 24, 2, 2, 3, 3]
    table = [
        1.49011611938e-8,
        1.66344642639e-3,
        0.5,
        0.925193607807,
        0.998336553574,
        0.75,
        0.5,
        0.875,
        0.08984375,
    ]
    np.testing.assert_allclose(hemisphere_probability(n, d), table, rtol=1e-11)
    np.testing.assert_array_equal(hemisphere_probability([1, 5], [3, 5]), 1.0)


def test_wendel_counts_random_tokens_on_the_circle():
    rng = np.random.default_rng(1)
    angles = np.sort(rng.uniform(0, 2 * np.pi, (20_000, 5)))
    gaps = np.diff(angles, axis=1, append=angles[:, :1] + 2 * np.pi)
    assert (gaps.max(1) > np.pi).mean() == pytest.approx(hemisphere_probability(5, 2), abs=0.011)


def test_caps():
    delta = np.array([0.2, 1.0, 1.3, 1.5, 1.6, 2.0, 3.0])
    np.testing.assert_allclose(cap_fraction(delta, 2), delta / np.pi, rtol=1e-13)
    np.testing.assert_allclose(cap_fraction(delta, 3), (1 - np.cos(delta)) / 2, rtol=1e-13)


def test_strong_centres():
    assert strong_centres(0.5, 2) == pytest.approx(2 * np.pi, rel=1e-13)
    assert strong_centres(0.7, 3) == pytest.approx(2 / (1 - np.cos(0.7)), rel=1e-13)
    rng = np.random.default_rng(2)
    theta = rng.uniform(0, 2 * np.pi, (4000, 40))
    far = 1 - np.cos(theta[:, :, None] - theta[:, None]) > 1 - np.cos(0.5)
    strong = np.array([far[:, k, :k].all(-1) for k in range(40)]).sum(0)
    assert strong.mean() == pytest.approx(
        strong_centres(0.5, 2, 40), abs=4 * strong.std() / np.sqrt(4000)
    )


def test_renyi_constant():
    assert renyi_centres(0.5) * 0.5 / (2 * np.pi) == pytest.approx(0.7475979202534114, abs=1e-12)
    assert renyi_centres(0.5) == pytest.approx(9.39, abs=5e-3)


def test_attraction_range_table():
    table = [0.9045568943, 0.6748888456, 0.4890443303, 0.4023766523, 0.3301723971, 0.0999164797]
    np.testing.assert_allclose(attraction_range([1, 2, 4, 6, 9, 100]), table, atol=6e-11)
    assert attraction_range(0.0, 5) == pytest.approx(np.pi / 2)
    assert attraction_range(1e12) == pytest.approx(1e-6, rel=1e-10)


@pytest.mark.parametrize("d", [2, 3, 9])
def test_attraction_range_is_the_zero_of_the_curvature(d):
    tau = attraction_range(3.0, d)
    assert interaction_curvature(tau, 3.0, d) == pytest.approx(0, abs=1e-12)
    assert interaction_curvature(0.99 * tau, 3.0, d) > 0 > interaction_curvature(1.01 * tau, 3.0, d)


def test_saddle_threshold_table():
    n = [4, 5, 8, 16, 32]
    half = [3.46410162, 6.30864406, 19.68932176, 91.02175768, 389.31181341]
    full = [0.66666667, 1.41421356, 4.78589357, 22.62802102, 97.20239064]
    np.testing.assert_allclose(saddle_threshold(n), half, atol=6e-9)
    np.testing.assert_allclose(saddle_threshold(n, np.pi), full, atol=6e-9)
    np.testing.assert_allclose(
        (np.array(n) - 1) * attraction_range(saddle_threshold(n, 1.1, 4), 4), 1.1, rtol=1e-12
    )


@pytest.mark.parametrize(("beta", "value"), [(2.0, -2.8488856), (6.0, -169.787654)])
def test_figure_6_minimum(beta, value):
    minimum = curvature_minimum(beta)
    assert minimum.value == pytest.approx(value, rel=1e-8)
    numeric = minimize_scalar(
        lambda tau: interaction_curvature(tau, beta),
        bounds=(0.1, 2),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert minimum.tau == pytest.approx(numeric.x, abs=1e-6)
    side = interaction_curvature(minimum.tau + np.array([-1e-3, 1e-3]), beta)
    assert (side > minimum.value).all()
    # the slope vanishes there to 1e-8, and would not at the seventh digit read off a plot
    slope = np.diff(interaction_curvature(minimum.tau + np.array([-1e-4, 1e-4]), beta))[0] / 2e-4
    assert abs(slope) < 1e-5 * abs(value)


def test_shallow_curvature_has_its_minimum_at_the_antipode():
    assert curvature_minimum(0.2).tau == pytest.approx(np.pi)
    assert curvature_minimum(0.2).value == pytest.approx(-np.exp(-0.2))


def test_triangle_witness():
    beta = np.array([-2.0, -0.7, -0.6, 1.0])
    np.testing.assert_allclose(
        triangle_eigenvalue(beta), polygon_eigenvalue(1, 3, beta, unnormalised=True), rtol=1e-11
    )
    assert triangle_eigenvalue(-2 / 3) == pytest.approx(0, abs=1e-15)


def energy(x, beta):
    return np.exp(beta * x @ x.T).sum() / (2 * beta * len(x) ** 2)


def test_sharp_energies_are_those_of_their_corners():
    beta, golden = 1.7, (1 + np.sqrt(5)) / 2
    simplex = np.eye(5) - 0.2
    simplex /= np.linalg.norm(simplex, axis=1, keepdims=True)
    assert simplex_energy(5, beta) == pytest.approx(energy(simplex, beta), rel=1e-13)
    assert cross_polytope_energy(4, beta) == pytest.approx(
        energy(np.vstack([np.eye(4), -np.eye(4)]), beta), rel=1e-13
    )
    base = np.array([[0, s, t * golden] for s in (1, -1) for t in (1, -1)])
    corners = np.vstack([np.roll(base, shift, axis=1) for shift in range(3)])
    corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    assert icosahedron_energy(beta) == pytest.approx(energy(corners, beta), rel=1e-13)
    angle = 2 * np.pi * np.arange(7) / 7
    polygon = np.stack([np.cos(angle), np.sin(angle)], 1)
    assert polygon_energy(7, beta) == pytest.approx(energy(polygon, beta), rel=1e-13)


def test_polygons_and_simplices_coincide_in_low_dimension():
    assert polygon_energy(3, 2.0) == pytest.approx(simplex_energy(3, 2.0))
    assert polygon_energy(4, 2.0) == pytest.approx(cross_polytope_energy(2, 2.0))
    n, beta = np.array([1, 3, 4, 9]), np.array([[1.0], [-2.0]])
    alone = [[polygon_energy(k, b) for k in n] for b in beta.flat]
    np.testing.assert_allclose(polygon_energy(n, beta), alone, rtol=1e-13)


def test_plateaus_of_the_staircase():
    levels = [
        plateau_energy(np.array(m) / 5) for m in ([1] * 5, [2, 1, 1, 1], [3, 1, 1], [4, 1], [5])
    ]
    np.testing.assert_allclose(levels, np.array([5, 7, 11, 17, 25]) / 25)
    assert plateau_energy([0.4, 0.6], 4.0, 1.0) == pytest.approx(1.0)
    gram = [[1, 0.5, 0], [0.5, 1, -1], [0, -1, 1]]
    expected = 0.04 + 0.09 + 0.25 + 2 * (0.06 * np.exp(-1) + 0.1 * np.exp(-2) + 0.15 * np.exp(-4))
    assert plateau_energy([0.2, 0.3, 0.5], 2.0, gram) == pytest.approx(expected, rel=1e-13)


def test_trap_window_and_the_hessian_behind_it():
    window = trap_window(1.0)
    assert window.low == pytest.approx(0.7615941560, abs=6e-11) and window.high == pytest.approx(
        1.1996786403, abs=6e-11
    )
    assert (
        two_cluster_growth(1.0, window.low - 1e-6) < 0 < two_cluster_growth(1.0, window.low + 1e-6)
    )
    assert (
        two_cluster_growth(window.high + 1e-6, 1.0)
        < 0
        < two_cluster_growth(window.high - 1e-6, 1.0)
    )


def test_two_cluster_hessian_is_the_curvature_of_the_energy():
    lambda1, lambda2, p, step = 1.3, 0.7, 0.35, 1e-4
    masses = np.array([p, 1 - p])

    def value(shift):
        x = np.array([[np.cos(shift[0]), np.sin(shift[0])], [-np.cos(shift[1]), -np.sin(shift[1])]])
        return masses @ np.exp(x @ np.diag([lambda1, lambda2]) @ x.T) @ masses

    e = step * np.eye(2)
    hessian = [[value(a + b) - value(a - b) - value(b - a) + value(-a - b) for a in e] for b in e]
    top = np.linalg.eigvalsh(np.array(hessian) / (4 * step**2)).max()
    assert two_cluster_growth(lambda1, lambda2, p) == pytest.approx(top, rel=1e-5)


def test_anisotropic_tables():
    assert maximiser_crossing(1.0) == pytest.approx(0.4337808305, abs=6e-11)
    assert antipodal_energy(-1.0) == pytest.approx(np.cosh(1.0)) and antipodal_energy(
        -1.0, 0.3
    ) < np.cosh(1.0)
    shares = [0.1937061226, 0.8237685764, 0.9698280249, 0.9881431696, 0.9924015652]
    np.testing.assert_allclose(four_particle_share(1.0, [0.5, 2, 5, 8, 10]), shares, atol=6e-11)
    tilts = [-4.1633061176, -5.1406468257, -6.1234693141, -10.0828424078]
    np.testing.assert_allclose(minimiser_tilt([2, 3, 4, 8]), tilts, atol=6e-11)


def test_four_particles_sit_at_a_minimum_of_the_energy():
    share = four_particle_share(1.4, 0.8)
    near = share + np.array([-1e-3, 0, 1e-3])
    values = np.cosh(1.4 * near) * np.cosh(0.8 * (1 - near))
    assert values[1] < min(values[0], values[2])


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: hemisphere_probability(0, 3), "n"),
        (lambda: strong_centres(0.0), "delta"),
        (lambda: renyi_centres(9.0), "delta"),
        (lambda: attraction_range(-1.0), "beta"),
        (lambda: curvature_minimum(0.0), "beta"),
        (lambda: saddle_threshold(1), "n"),
        (lambda: simplex_energy(1, 1.0), "n"),
        (lambda: plateau_energy([0.5, 0.6]), "masses"),
        (lambda: plateau_energy([[0.5, 0.5], [0.5, 0.5 + 1e-4]]), "masses"),
        (lambda: plateau_energy(1.0), "masses"),
        (lambda: plateau_energy([1.5, -0.5]), "masses"),
        (lambda: plateau_energy([0.5, 0.5], cosine=2.0), "cosine"),
        (lambda: trap_window(0.0), "eigenvalue"),
        (lambda: two_cluster_growth(p=1.0), "p"),
    ],
)
def test_errors_name_the_argument(call, argument):
    with pytest.raises(ValueError, match=rf"^{argument} must be .*Write for example {argument}="):
        call()
