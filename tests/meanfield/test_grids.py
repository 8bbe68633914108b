"""Grids: quadrature, orthonormal functions, their slopes, and places of tokens."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import eval_gegenbauer

import tokenflock as flock
from tokenflock.meanfield import grid
from tokenflock.meanfield.grids import gauss

SIZES = [(2, 31), (3, 20), (4, 17), (7, 23)]


@pytest.mark.parametrize(("d", "points"), SIZES)
def test_the_functions_of_a_grid_are_orthonormal_and_two_thirds_of_what_it_carries(d, points):
    space = grid(d, points)
    count = 1 + 2 * (points // 3) if d == 2 else 2 * points // 3
    phi, slopes = space.tables
    assert phi.shape == slopes.shape == (points, count)
    assert len(space.degree) == count and space.weights.sum() == pytest.approx(1, rel=1e-13)
    np.testing.assert_allclose(phi.T @ (space.weights[:, None] * phi), np.eye(count), atol=1e-12)
    a = np.random.default_rng(0).normal(size=count)
    np.testing.assert_allclose(space.coefficients(phi @ a), a, atol=1e-12)


@pytest.mark.parametrize(("d", "points"), SIZES)
def test_the_mean_squared_gradients_are_the_eigenvalues_of_the_laplacian(d, points):
    """int grad phi_j . grad phi_k = k (k + d - 2) where j = k, else 0; in the height u the squared
    gradient is (1 - u^2) phi'^2.
    """
    space = grid(d, points)
    _, slopes = space.tables
    k = np.arange(1, points // 3 + 1)
    k = np.concatenate([[0], k, k]) if d == 2 else np.arange(2 * points // 3)
    g = space.weights if d == 2 else space.weights * (1 - space.nodes**2)
    np.testing.assert_allclose(space.laplace, k * (k + d - 2), rtol=1e-14)
    energies = slopes.T @ (g[:, None] * slopes)
    np.testing.assert_allclose(energies, np.diag(k * (k + d - 2.0)), atol=1e-9)


@pytest.mark.parametrize(("d", "points"), SIZES)
def test_functions_anywhere_are_waves_or_gegenbauer_polynomials(d, points):
    space = grid(d, points)
    at = np.array([-0.93, -0.2, 0.31, 0.77])
    values, slopes = space.functions(at)
    if d == 2:
        angles = np.outer(at, np.arange(1, points // 3 + 1))
        waves = [np.ones((4, 1)), np.sqrt(2) * np.cos(angles), np.sqrt(2) * np.sin(angles)]
        expected = np.hstack(waves)
    else:
        raw = eval_gegenbauer(space.degree, d / 2 - 1, at[:, None])
        nodes = eval_gegenbauer(space.degree, d / 2 - 1, space.nodes[:, None])
        expected = raw / np.sqrt(space.weights @ nodes**2)
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-10)
    h = 1e-6
    difference = (space.functions(at + h)[0] - space.functions(at - h)[0]) / (2 * h)
    np.testing.assert_allclose(slopes, difference, rtol=1e-6, atol=1e-6)


def test_the_circle_has_equidistant_angles_and_latitudes_go_from_the_pole_down():
    circle, latitudes = grid(2, 10), grid(4, 9)
    np.testing.assert_allclose(circle.coordinate, np.arange(10) * np.pi / 5, rtol=1e-14)
    np.testing.assert_array_equal(circle.nodes, circle.coordinate)
    np.testing.assert_allclose(circle.weights, 0.1)
    assert (np.diff(latitudes.coordinate) > 0).all() and (np.diff(latitudes.nodes) < 0).all()
    np.testing.assert_allclose(np.cos(latitudes.coordinate), latitudes.nodes, atol=1e-13)
    # Gauss nodes of the weight sqrt(1 - u^2)
    expected = np.cos(np.pi * np.arange(1, 10) / 10)
    np.testing.assert_allclose(latitudes.nodes, expected, atol=1e-13)
    masses = np.sin(np.pi * np.arange(1, 10) / 10) ** 2 / 5
    np.testing.assert_allclose(latitudes.weights, masses, rtol=1e-12)


@pytest.mark.parametrize("power", [-1, 0, 1, 3])
def test_a_gauss_rule_has_the_moments_of_its_weight(power):
    """int u^2 = 1 / (power + 3), int u^4 = 3 / ((power + 3)(power + 5)) for the probability weight
    (1 - u^2)^(power / 2).
    """
    u, g = gauss(4, power)
    assert len(u) == 4 and g.sum() == pytest.approx(1, rel=1e-13)
    assert g @ u**2 == pytest.approx(1 / (power + 3), rel=1e-12)
    assert g @ u**4 == pytest.approx(3 / (power + 3) / (power + 5), rel=1e-12)
    assert abs(g @ u) < 1e-14


@pytest.mark.parametrize(
    ("d", "area"),
    [(2, 2 * np.pi), (3, 4 * np.pi), (4, 2 * np.pi**2), (5, 8 * np.pi**2 / 3), (6, np.pi**3)],
)
def test_the_surface_is_that_of_the_sphere(d, area):
    assert grid(d, 8).surface == pytest.approx(area, rel=1e-12)


def test_tokens_are_placed_at_their_angle_or_their_height():
    angles = np.array([-2.0, 0.3, 1.9])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    np.testing.assert_allclose(grid(2, 12).place(x), angles, rtol=1e-13)
    tall = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(grid(4, 12).place(tall), [3, 7, 11])


def test_heights_are_cosines_of_the_angle_to_the_axis():
    circle, latitudes = grid(2, 12), grid(5, 12)
    np.testing.assert_allclose(circle.height(0.4), np.cos(circle.coordinate - 0.4), rtol=1e-13)
    np.testing.assert_array_equal(latitudes.height(0.0), latitudes.nodes)
    np.testing.assert_array_equal(latitudes.height(np.pi), -latitudes.nodes)
    for mean in (1.0, np.pi / 2):
        with pytest.raises(flock.UserError, match="poles"):
            latitudes.height(mean)


def test_a_grid_has_its_usual_size_and_a_least_one():
    assert (grid().d, grid().points, grid(2).points) == (2, 256, 256)
    assert (grid(3).points, grid(8).points, grid(8).d) == (96, 96, 8)
    assert grid(2, 8).points == grid(3, 8).points == 8
    assert (grid(2, 9).name, grid(3, 9).name) == ("theta", "latitude")
    for d, points, words in ((2, 7, "points"), (3, 7, "points"), (1, 20, "d must be")):
        with pytest.raises(flock.UserError, match=words):
            grid(d, points)
