"""Measures out of many shapes, their gaps, and the grids of optimal densities."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock.meanfield import Goal, optimal, optimal_density, optimal_tokens, optimality_gap
from tokenflock.meanfield.certificate import extreme
from tokenflock.meanfield.distances import Ground, _turns, distance
from tokenflock.meanfield.measures import weighted_points
from tokenflock.meanfield.potential import energy_and_gradient, on_sphere, potential, symmetric

D2, D3 = np.array([[1.2, 0.5], [0.5, -0.8]]), np.diag([1.0, 0.3, -0.6])


def arc(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_tokens_are_points_of_the_sphere_with_masses_of_sum_one():
    x, w = weighted_points([[3.0, 4.0], [0.0, -2.0], [5.0, 0.0]], [1, 2, 5])
    np.testing.assert_allclose(x, [[0.6, 0.8], [0, -1], [1, 0]])
    np.testing.assert_allclose(w, [0.125, 0.25, 0.625])
    np.testing.assert_allclose(weighted_points(np.eye(3))[1], 1 / 3)
    for wrong, masses, words in (
        (np.ones(3), None, "tokens of shape"),
        (np.eye(3), [1, 2], "one weight for each point"),
    ):
        with pytest.raises(flock.UserError, match=words):
            weighted_points(wrong, masses)

    np.testing.assert_allclose(weighted_points(np.eye(2), [0, 3])[1], [0, 1])
    for masses in ([1, -1], [0, 0], [2, -1]):
        with pytest.raises(flock.UserError, match="w must be weights of 0 or more"):
            weighted_points(np.eye(2), masses)


def test_of_a_run_the_last_frame_counts():
    frames = np.random.default_rng(0).normal(size=(3, 4, 2))
    run = xr.Dataset({"x": (("time", "particle", "coord"), frames)})
    x, w = weighted_points(run)
    np.testing.assert_allclose(x, on_sphere(frames[2]))
    np.testing.assert_allclose(w, 0.25)
    heavy = run.assign(w=("particle", [1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(weighted_points(heavy)[1], [0.1, 0.2, 0.3, 0.4])
    still = heavy.isel(time=1)
    np.testing.assert_allclose(weighted_points(still)[0], on_sphere(frames[1]))


@pytest.mark.parametrize(("points", "count"), [(30, 1024), (1025, 1025)])
def test_a_density_on_the_circle_is_its_series_at_many_angles(points, count):
    def density(theta):
        return np.maximum(1 + 0.5 * np.cos(theta) - 0.3 * np.sin(2 * theta), 0)

    theta = 2 * np.pi * np.arange(points) / points
    frames = np.stack([np.ones(points), density(theta)])
    run = xr.Dataset({"density": (("time", "theta"), frames)}, {"theta": theta})
    x, w = weighted_points(run)
    fine = 2 * np.pi * np.arange(count) / count
    np.testing.assert_allclose(x, arc(fine), atol=1e-12)
    np.testing.assert_allclose(w, density(fine) / density(fine).sum(), atol=1e-12)


def test_where_a_density_is_cut_off_below_zero_there_is_no_mass():
    theta = 2 * np.pi * np.arange(30) / 30
    run = xr.Dataset({"density": ("theta", 0.3 + np.cos(theta))}, {"theta": theta})
    w = weighted_points(run)[1]
    expected = np.maximum(0.3 + np.cos(2 * np.pi * np.arange(1024) / 1024), 0)
    np.testing.assert_allclose(w, expected / expected.sum(), atol=1e-12)


def test_a_density_at_nodes_is_the_nodes_and_their_masses():
    nodes = np.random.default_rng(0).normal(size=(2, 3, 3))
    density, weight = np.array([[1.0, 2, 3], [4, -5, 6]]), np.array([[1.0, 1, 2], [2, 3, 3]])
    shape = ("latitude", "longitude")
    given = xr.Dataset(
        {"density": (shape, density), "weight": (shape, weight), "nodes": ((*shape, "c"), nodes)}
    )
    x, w = weighted_points(given)
    np.testing.assert_allclose(x, on_sphere(nodes.reshape(6, 3)))
    np.testing.assert_allclose(w, np.array([1, 2, 6, 8, 0, 18]) / 35)
    for wrong in (given.drop_vars("nodes"), given.drop_vars("density"), xr.Dataset()):
        with pytest.raises(flock.UserError, match="on latitudes give"):
            weighted_points(wrong)


def test_distances_are_angles_or_chords():
    x, y = (on_sphere(np.random.default_rng(k).normal(size=(3 + k, 4))) for k in (0, 1))
    inner = x @ y.T
    np.testing.assert_allclose(distance(x, y), np.arccos(inner), rtol=1e-9)
    np.testing.assert_allclose(distance(x, y, Ground.CHORDAL), np.sqrt(2 - 2 * inner), rtol=1e-9)
    angles = np.array([-3.0, -0.2, 0.0, 1.0, 3.1])
    np.testing.assert_allclose(_turns(arc(angles)), np.mod(angles / (2 * np.pi), 1), atol=1e-14)


@pytest.mark.parametrize("goal", Goal)
def test_the_gap_is_that_of_the_best_place_on_the_circle(goal):
    """Against twenty thousand angles; the weights are unequal, and D has both signs."""
    angles, w = np.array([0.2, 1.0, 2.9, 4.0]), np.array([1.0, 4.0, 2.0, 3.0])
    x, m = arc(angles), w / 10
    V = potential(x, x, m, D2)
    everywhere = potential(arc(np.linspace(0, 2 * np.pi, 20001)), x, m, D2)
    best = everywhere.min() if goal is Goal.MINIMISE else everywhere.max()
    assert extreme(x, m, D2, goal) == pytest.approx(best, rel=1e-7)
    expected = goal.sign * (m @ V - best)
    assert optimality_gap(x, D2, goal, w) == pytest.approx(expected, rel=1e-6)
    assert optimality_gap(x, D2, goal.value, w) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("goal", Goal)
def test_the_extremum_of_a_single_token_is_on_its_axis(goal):
    """V = e^{<x, D q>} is greatest and least along D x, on any sphere."""
    x = on_sphere(np.random.default_rng(2).normal(size=(1, 5)))
    D = np.diag([3.0, 1.0, 0.5, -1.0, -2.0])
    size = np.linalg.norm(D @ x[0])
    assert extreme(x, np.ones(1), D, goal) == pytest.approx(np.exp(-goal.sign * size), rel=1e-12)


def test_energies_and_gradients_of_equal_tokens():
    """(1/n^2) sum_ij e^{<x_i, D x_j>}; n times its gradient on the spheres, by differences."""
    x = on_sphere(np.random.default_rng(0).normal(size=(4, 3)))
    D = np.array([[1.0, 0.2, 0.0], [0.2, -0.5, 0.3], [0.0, 0.3, 0.7]])
    E, G = energy_and_gradient(x, D)
    assert pytest.approx(np.exp(x @ D @ x.T).sum() / 16, rel=1e-13) == E
    np.testing.assert_allclose(np.sum(G * x, axis=1), 0, atol=1e-13)
    v = np.random.default_rng(1).normal(size=(4, 3))
    h = 1e-6
    ends = [energy_and_gradient(on_sphere(x + s * v), D)[0] for s in (h, -h)]
    assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(np.sum(G * v) / 4, rel=1e-7)


def test_a_matrix_is_square_symmetric_finite_and_not_too_large():
    np.testing.assert_array_equal(symmetric([[300, 0], [0, -300]]), np.diag([300.0, -300.0]))
    wrong = [np.ones(3), np.ones((2, 3)), np.ones((1, 1)), [[1.0, 2.0], [1.0, 1.0]]]
    for D in [*wrong, np.diag([np.inf, 1.0]), np.full((2, 2), np.nan), np.ones((2, 2, 2))]:
        with pytest.raises(flock.UserError, match="symmetric matrix"):
            symmetric(D)
    for D in (np.diag([301.0, 0.0]), np.diag([0.0, -301.0])):
        with pytest.raises(flock.UserError, match="up to 300"):
            symmetric(D)


def test_the_nodes_of_the_sphere_integrate_polynomials():
    """x^2 z^4: (1/4 pi) int = 1/35; all of degree 7 with 4 latitudes."""
    names, coords, x, g = optimal._sphere(4)
    assert names == ("latitude", "longitude") and x.shape == (32, 3) and g.shape == (32,)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1)
    w = g / g.sum()
    powers = [(2, 0, 4), (0, 2, 0), (2, 2, 2), (1, 0, 0), (3, 2, 1), (1, 1, 0)]
    found = [w @ np.prod(x ** np.array(power), axis=1) for power in powers]
    np.testing.assert_allclose(found, [1 / 35, 1 / 3, 1 / 105, 0, 0, 0], atol=1e-13)
    latitude, longitude = coords["latitude"], coords["longitude"]
    np.testing.assert_allclose(longitude, np.pi * np.arange(8) / 4)
    ring = np.sin(latitude)[:, None]
    expected = [ring * np.cos(longitude), ring * np.sin(longitude), np.cos(latitude)[:, None]]
    expected = np.stack(np.broadcast_arrays(*expected), axis=-1).reshape(-1, 3)
    np.testing.assert_allclose(x, expected, atol=1e-13)


def test_the_nodes_of_the_circle_are_equally_far_apart():
    names, coords, x, g = optimal._circle(7)
    np.testing.assert_allclose(coords["theta"], 2 * np.pi * np.arange(7) / 7)
    np.testing.assert_allclose(x, arc(coords["theta"]), atol=1e-14)
    assert names == ("theta",) and (g == 1).all()


@pytest.mark.filterwarnings("ignore:optimal_density has not converged:RuntimeWarning")
@pytest.mark.parametrize(("D", "surface"), [(D2, 2 * np.pi), (D3, 4 * np.pi)])
@pytest.mark.parametrize("goal", Goal)
def test_an_optimal_density_tells_its_nodes_masses_energy_and_gap(D, surface, goal):
    """It starts uniform to fall, and a little aside, by the seed, to climb."""
    found = optimal_density(D, goal, points=9, seed=5, steps=6, tolerance=1e-3)
    x = found.nodes.values.reshape(-1, len(D))
    w = (found.density * found.weight).values.ravel()
    g = found.weight.values.ravel()
    assert w.sum() == pytest.approx(1) and g.sum() == pytest.approx(surface)
    assert float(found.energy) == pytest.approx(w @ potential(x, x, w, D), rel=1e-12)
    assert float(found.gap) == pytest.approx(optimality_gap(x, D, goal, w), rel=1e-9)
    V = goal.sign * potential(x, x, w, D)
    assert bool(found.converged) == (w @ V - V.min() < 1e-3)
    tilt = 0.1 * np.random.default_rng(5).normal(size=len(D))
    first = g * (np.exp(x @ tilt) if goal is Goal.MAXIMISE else 1)
    first = first / first.sum()
    assert float(found.energies[0]) == pytest.approx(first @ potential(x, x, first, D), rel=1e-12)
    assert found.energies.size <= 6
    assert found.density.dims == (("theta",) if len(D) == 2 else ("latitude", "longitude"))


def test_densities_have_their_usual_nodes():
    D = np.zeros((2, 2))  # nothing to do
    assert optimal_density(D).sizes["theta"] == 512
    assert dict(optimal_density(np.zeros((3, 3)), points=5).sizes)["longitude"] == 10
    with pytest.raises(flock.UserError, match="2 by 2"):
        optimal_density(np.eye(4))


def test_optimal_tokens_start_by_their_seed_or_as_given():
    y = np.random.default_rng(4).normal(size=(6, 3))
    found = optimal_tokens(D3, n=6, seed=4, steps=40)
    again = optimal_tokens(D3, start=2 * y, steps=40)
    np.testing.assert_allclose(found.x, again.x, atol=1e-9)
    first = energy_and_gradient(on_sphere(y), D3)[0]
    assert float(found.energies[0]) == pytest.approx(first, rel=1e-12)
    x = found.x.values
    assert float(found.energy) == pytest.approx(np.exp(x @ D3 @ x.T).mean(), rel=1e-12)
    np.testing.assert_allclose(found.w, 1 / 6)
    size = np.sqrt(np.mean(np.sum(energy_and_gradient(x, D3)[1] ** 2, axis=1)))
    assert float(found.residual) == pytest.approx(size, rel=1e-6, abs=1e-12)
    assert float(found.gap) == pytest.approx(optimality_gap(x, D3), rel=1e-6, abs=1e-12)
    for wrong in (np.ones((4, 2)), np.ones(3)):
        with pytest.raises(flock.UserError, match="start must be tokens"):
            optimal_tokens(D3, start=wrong)
