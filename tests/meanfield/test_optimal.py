"""Optimal measures: closed forms, certificates, and the flow that they are the end of."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import iv

import tokenflock as flock
from tokenflock.dynamics import Burger
from tokenflock.meanfield import Goal, optimal_density, optimal_tokens, optimality_gap
from tokenflock.meanfield.implicit_descent import features, leap
from tokenflock.meanfield.potential import energy_and_gradient
from tokenflock.precision import precision
from tokenflock.starts import Uniform
from tokenflock.theory import four_particle_share, kernel_eigenvalue, maximiser_crossing

SQUARE = np.pi / 4 + np.pi / 2 * np.arange(4)


def circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_the_energy_and_its_gradient_are_those_of_the_flow():
    random = np.random.default_rng(0)
    D = random.normal(size=(3, 3))
    x = random.normal(size=(7, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    with precision("float64"):
        law, w = Burger(D=D + D.T), jnp.full(7, 1 / 7)
        E, v = (
            float(law.energy(jnp.asarray(x), w)),
            np.asarray(law.velocity(0.0, jnp.asarray(x), w)),
        )
    mine, G = energy_and_gradient(x, D + D.T)
    assert mine == pytest.approx(E, rel=1e-13)
    np.testing.assert_allclose(G, 2 * v, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("d2", [0.5, 2.0, 5.0, 8.0, 10.0])
def test_four_particles_obey_their_relation(d2):
    found = optimal_tokens(np.diag([1.0, d2]), start=circle(SQUARE))
    a2, b2 = found.x.values.T**2
    np.testing.assert_allclose(np.tanh(a2) / np.tanh(d2 * b2), d2, rtol=1e-8)
    np.testing.assert_allclose(a2, four_particle_share(1.0, d2), atol=1e-8)


def test_the_near_isotropic_minimiser_has_the_exact_second_mode():
    """The coefficient of cos 2 theta, theta from the first axis."""
    found = optimal_density(np.diag([1.0, 1.01]), points=128)
    second = 2 * float((found.density * found.weight * np.cos(2 * found.theta)).sum())
    assert second == pytest.approx(0.02072033, abs=1e-6)
    assert float(found.gap) < 1e-7


@pytest.mark.slow
def test_uniform_minimises_the_isotropic_energy():
    for d in (2, 3):
        assert float(optimal_density(np.eye(d), points=24).energy) == pytest.approx(
            kernel_eigenvalue(0, 1.0, d), rel=1e-10
        )
        tokens = optimal_tokens(np.eye(d), n=100, steps=300)
        assert 0 <= float(tokens.energy) - kernel_eigenvalue(0, 1.0, d) < 1e-6
        assert float(tokens.gap) < 1e-3


def test_a_kernel_of_D_carries_the_minimisers():
    poles = optimal_tokens(np.diag([1.0, 0.0, 1.0]), n=60)
    assert float(poles.energy) == pytest.approx(1, abs=1e-9)
    assert float((poles.x[:, 1] ** 2).min()) > 1 - 1e-6
    circles = optimal_tokens(np.diag([0.0, 0.0, 1.0]), n=60)
    assert float((circles.x[:, 2] ** 2).max()) < 1e-6
    assert max(float(poles.gap), float(circles.gap)) < 1e-9


@pytest.mark.slow
def test_tokens_density_and_flow_agree_on_the_anisotropic_minimum():
    """D = diag(1, 1/4, 1): E about 1.02795.

    Tokens, a density on S^2 and the particle flow, each with its certificate.
    """
    D = np.diag([1.0, 0.25, 1.0])
    tokens = optimal_tokens(D, n=100, steps=300)
    density = optimal_density(D, points=12, steps=300)
    flow = flock.simulate(Burger(D=D, ascend=False), Uniform(n=100, d=3), t=300.0, frames=2)
    x = flow.x[-1].values
    E = float(np.exp(x @ D @ x.T).mean())
    assert float(tokens.energy) <= E + 1e-12
    for energy in (float(tokens.energy), float(density.energy), E):
        assert energy == pytest.approx(1.02795, abs=3e-5)
    assert optimality_gap(flow, D) < 1e-3
    assert float(density.energy) - 2 * float(density.gap) <= float(
        tokens.energy
    )  # what convexity promises


def test_maximisers_have_the_energies_of_the_theory():
    top = optimal_density(np.diag([2.0, 1.0]), Goal.MAXIMISE, points=64)
    assert float(top.energy) == pytest.approx(np.exp(2.0), rel=1e-8)  # one cluster on the top axis
    pair = optimal_density(np.diag([-1.0, -0.5]), Goal.MAXIMISE, points=64)
    assert float(pair.energy) == pytest.approx(np.cosh(1.0), rel=1e-8)  # two equal opposite ones
    assert max(float(top.gap), float(pair.gap)) < 1e-6


def test_one_cluster_overtakes_two_at_log_cosh_one():
    """The best of the two local maxima of D = diag(-1, d2) changes at ln cosh 1."""
    one = circle(np.pi / 2 + np.array([0.1, 0.2, -0.1, 0.3]))
    two = circle(np.array([0.1, 0.2, np.pi - 0.1, np.pi + 0.2]))

    def lead(d2):
        D = np.diag([-1.0, d2])
        best = [
            float(optimal_tokens(D, goal=Goal.MAXIMISE, start=start).energy) for start in (one, two)
        ]
        return best[0] - best[1]

    assert brentq(lead, 0.3, 0.6, xtol=1e-9) == pytest.approx(maximiser_crossing(1.0), abs=1e-6)


def test_the_gap_sees_a_trap():
    """Two equal clusters on the top axis of diag(2, 1) are stable, but mass moved from one to the
    other gains.
    """
    trap = circle(np.array([0.0, np.pi]))
    D = np.diag([2.0, 1.0])
    assert np.abs(energy_and_gradient(trap, D)[1]).max() < 1e-12
    assert optimality_gap(trap, D, Goal.MAXIMISE, w=np.array([0.6, 0.4])) > 0.1
    assert optimality_gap(trap[:1], D, Goal.MAXIMISE) < 1e-12


def test_what_is_no_matrix_is_refused():
    with pytest.raises(flock.UserError, match="symmetric"):
        optimal_tokens(np.array([[1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(flock.UserError, match="optimal_tokens"):
        optimal_density(np.eye(4))


def test_a_nearly_round_matrix_converges_to_the_density_of_constant_potential():
    """Where the density is positive its potential is constant: a linear system for its Fourier
    coefficients.

    x.Dy = 0.95 cos(s - t) + 0.05 cos(s + t), whose exponential is a product of two Bessel series.
    """
    found = optimal_density(np.diag([1.0, 0.9]))
    assert bool(found.converged)
    assert float(found.gap) < 1e-12
    j, k = np.arange(7)[:, None], np.arange(7)
    K = iv(abs(j - k), 0.05) * iv(j + k, 0.95) + iv(j + k, 0.05) * iv(abs(j - k), 0.95)
    c = np.linalg.solve(K, np.eye(7)[0])
    mass = (found.density * found.weight).values
    measured = float(np.sum(mass * np.cos(6 * found.theta.values)))
    assert measured == pytest.approx(c[3] / c[0] / 2, rel=1e-4)
    assert 2 * measured == pytest.approx(-6.68e-4, rel=2e-3)


@pytest.mark.parametrize("D", [(1.0, 0.1), (1.0, 0.3), (5.0, 1.0), (3.0, 0.0)])
def test_an_anisotropic_matrix_converges_too(D):
    found = optimal_density(np.diag(D))
    assert bool(found.converged) and float(found.gap) < 1e-12
    assert (np.diff(found.energies) < 1e-14).all()


@pytest.mark.parametrize("D", [(1.0, 0.3), (30.0, 1.0), (0.2, 0.2, 4.0)])
def test_features_make_the_kernel_to_the_rounding_of_each_entry(D):
    x = np.random.default_rng(0).normal(size=(60, len(D)))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    F = features(x, np.diag(D))
    K = np.exp(x @ np.diag(D) @ x.T)
    size = np.sqrt(np.diag(K))
    np.testing.assert_allclose(F @ F.T / size / size[:, None], K / size / size[:, None], atol=1e-14)


def test_a_density_that_has_not_converged_says_so():
    with pytest.warns(RuntimeWarning, match="not converged"):
        found = optimal_density(np.diag([1.0, 0.9]), points=64, steps=3)
    assert not bool(found.converged)


@pytest.mark.parametrize("step", [0.5, 10.0, 200.0])
def test_an_implicit_step_solves_its_equation(step):
    """q + step V(q) = p + a constant, with the potential V of the density e^q."""
    theta = 2 * np.pi * np.arange(24) / 24
    g, x = np.full(24, 1 / 24), circle(theta)
    D = np.diag([1.0, 0.3])
    K = np.exp(x @ D @ x.T)
    p = np.cos(theta) + 0.3 * np.sin(2 * theta)
    q = leap(features(x, D), g, p, step)
    mass = g * np.exp(q) / np.sum(g * np.exp(q))
    rest = q - p + step * (K @ mass)
    assert np.ptp(rest) < 1e-9 * step


@pytest.mark.filterwarnings("ignore:optimal_density has not converged:RuntimeWarning")
@pytest.mark.parametrize("largest", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("least", [0.1, 0.0, -1.0])
def test_however_anisotropic_the_matrix_the_answer_is_a_measure_that_knows_its_gap(largest, least):
    D = np.diag([largest, least])
    for goal in Goal:
        found = optimal_density(D, goal, points=32, steps=60)
        mass = (found.density * found.weight).values
        assert mass.sum() == pytest.approx(1) and (mass >= 0).all()
        V = goal.sign * np.exp(found.nodes.values @ D @ found.nodes.values.T) @ mass
        gap = float(mass @ V - V.min())
        assert bool(found.converged) == (gap < 1e-12)
        assert np.isfinite(found.energy) and float(found.gap) >= 0


def test_a_matrix_beyond_the_numbers_is_refused():
    for make in (optimal_density, optimal_tokens):
        with pytest.raises(flock.UserError, match="eigenvalues up to 300"):
            make(np.diag([1000.0, 1.0]))


def test_masses_that_span_many_sizes_still_converge():
    """Steps grow beyond 1e10, and a potential far from zero would drown in them."""
    assert bool(optimal_density(np.diag([1.0, 3.0]), points=128).converged)


def test_two_clusters_are_reached_within_the_steps_there_are():
    found = optimal_density(np.diag([-2.0, 1.0]), goal="maximise")
    assert float(found.energy) == pytest.approx(np.cosh(2), rel=1e-8)


def test_numbers_of_a_density_are_variables_and_its_nodes_coordinates():
    found = optimal_density(np.diag([1.0, 0.5]), points=16)
    assert {"density", "energies", "converged"} <= set(found.data_vars)
    assert "theta" in found.coords and not set(found.coords) & set(found.data_vars)
