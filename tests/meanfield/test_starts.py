"""Densities to start from: their formulas at the nodes, their modes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import eval_chebyu

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.meanfield import Empirical, Mixture, PoissonKernel, Ripple, VonMises, evolve, grid

CIRCLE, SPACE = grid(2, 48), grid(4, 40)


def modes(density, space):
    return space.coefficients(density.on(space))


def test_every_density_has_mass_one():
    x = np.random.default_rng(0).normal(size=(5, 2))
    parts = [VonMises(2.0), Ripple(2, 0.5)]
    made = [*parts, PoissonKernel(0.4), Mixture(parts, masses=[3.0, 1.0]), Empirical(x, None, 0.5)]
    for density in made:
        f = density.on(CIRCLE)
        assert CIRCLE.weights @ f == pytest.approx(1, rel=1e-13)
        raw = density.relative(CIRCLE)
        np.testing.assert_allclose(f, raw / raw.mean(), rtol=1e-12)


def test_von_mises_densities_are_exponentials_of_the_height():
    expected = np.exp(1.7 * (np.cos(CIRCLE.coordinate - 0.4) - 1))
    np.testing.assert_allclose(VonMises(1.7, mean=0.4).relative(CIRCLE), expected, rtol=1e-13)
    turned = VonMises(1.7, mean=np.pi).relative(SPACE)
    np.testing.assert_allclose(turned, np.exp(1.7 * (-SPACE.nodes - 1)), rtol=1e-12)
    np.testing.assert_array_equal(VonMises(0.0).on(CIRCLE), 1)
    with pytest.raises(flock.UserError, match="kappa"):
        VonMises(-0.1)


def test_mode_k_of_a_poisson_kernel_has_the_size_r_to_the_k():
    """int P phi_k = r^k phi_k(axis), on every sphere; its formula has mass one by itself."""
    r, k = 0.3, np.arange(1, 17)
    for space in (CIRCLE, SPACE, grid(5, 30)):
        kernel = PoissonKernel(r, mean=np.pi)
        assert space.weights @ kernel.relative(space) == pytest.approx(1, abs=1e-9)
        at = space.place(-np.eye(space.d)[:1] if space.d == 2 else -np.eye(space.d)[-1:])
        expected = r**space.degree * space.functions(at)[0][0]
        np.testing.assert_allclose(modes(kernel, space), expected, atol=3e-9)
    aside = modes(PoissonKernel(r, mean=0.7), CIRCLE)
    np.testing.assert_allclose(aside[1:17], np.sqrt(2) * r**k * np.cos(0.7 * k), atol=3e-9)
    np.testing.assert_allclose(aside[17:], np.sqrt(2) * r**k * np.sin(0.7 * k), atol=3e-9)
    np.testing.assert_allclose(PoissonKernel(0.0).on(SPACE), 1)
    for r in (1.0, -0.1):
        with pytest.raises(flock.UserError, match="r must be"):
            PoissonKernel(r)


def test_a_ripple_is_one_mode_of_the_given_size_at_the_pole():
    wave = Ripple(3, 0.4, mean=0.7).relative(CIRCLE)
    np.testing.assert_allclose(wave, 1 + 0.4 * np.cos(3 * (CIRCLE.coordinate - 0.7)), rtol=1e-12)
    zonal = Ripple(3, -0.4).relative(SPACE)  # on S^3: U_k(u) / (k + 1)
    np.testing.assert_allclose(zonal, 1 - 0.1 * eval_chebyu(3, SPACE.nodes), rtol=1e-11)
    assert Ripple(1, 1.0).amplitude == 1 and Ripple(1, -1.0).amplitude == -1
    for options, words in (({"k": 0}, "k must"), ({"amplitude": 1.01}, "amplitude")):
        with pytest.raises(flock.UserError, match=words):
            Ripple(**options)
    with pytest.raises(flock.UserError, match="amplitude"):
        Ripple(amplitude=-1.01)


def test_a_mixture_is_the_weighted_sum_of_its_parts():
    parts = [VonMises(2.0), Ripple(2, 0.5, mean=0.3), PoissonKernel(0.2)]
    single = np.array([part.on(CIRCLE) for part in parts])
    mixed = Mixture(parts, masses=[1.0, 2.0, 5.0])
    np.testing.assert_allclose(mixed.relative(CIRCLE), [1, 2, 5] @ single, rtol=1e-13)
    np.testing.assert_allclose(mixed.on(CIRCLE), [0.125, 0.25, 0.625] @ single, rtol=1e-13)
    np.testing.assert_allclose(Mixture(parts).relative(CIRCLE), single.sum(0), rtol=1e-13)
    np.testing.assert_allclose(Mixture(parts[:1]).on(CIRCLE), single[0], rtol=1e-13)
    for wrong in ([], [1.0], [VonMises(), 2]):
        with pytest.raises(flock.UserError, match="list of densities"):
            Mixture(wrong)
    with pytest.raises(flock.UserError, match="one weight for each part"):
        Mixture(parts, masses=[1.0, 2.0])


def test_tokens_become_wrapped_normal_densities():
    """(2 pi / (sqrt(2 pi) s)) sum_j w_j sum_m e^{-(theta - theta_j + 2 pi m)^2 / 2 s^2}; lengths of
    tokens and the sum of their weights do not matter.
    """
    angles, w, s = np.array([0.3, 2.0, -1.1]), np.array([1.0, 2.0, 4.0]), 0.6
    x = np.array([[2.0], [0.5], [1.0]]) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    turns = 2 * np.pi * np.arange(-3, 4)
    far = CIRCLE.coordinate[:, None, None] - angles[:, None] + turns
    each = np.sqrt(2 * np.pi) / s * np.exp(-(far**2) / (2 * s**2)).sum(-1)
    np.testing.assert_allclose(Empirical(x, w, s).relative(CIRCLE), each @ w / 7, atol=1e-9)
    np.testing.assert_allclose(Empirical(x, None, s).relative(CIRCLE), each.mean(1), atol=1e-9)


def test_tokens_on_spheres_keep_their_modes_but_for_the_heat():
    x = np.random.default_rng(0).normal(size=(6, 4))
    w = np.arange(1.0, 7)
    u = x[:, 3] / np.linalg.norm(x, axis=1)
    k = SPACE.degree
    expected = w @ SPACE.functions(u)[0] / 21 * np.exp(-k * (k + 2) * 0.3**2 / 2)
    np.testing.assert_allclose(modes(Empirical(x, w, 0.3), SPACE), expected, atol=1e-11)
    cut = Empirical(x, w, 0.0)
    np.testing.assert_allclose(modes(cut, SPACE), w @ SPACE.functions(u)[0] / 21, atol=1e-9)
    with pytest.raises(flock.UserError, match="write d=4"):
        cut.on(CIRCLE)
    with pytest.raises(flock.UserError, match="bandwidth"):
        Empirical(x, w, -0.1)
    with pytest.raises(flock.UserError, match="shape"):
        Empirical(np.ones(3))


@pytest.mark.parametrize("k", [86, 100, 200, 256])
def test_a_ripple_beyond_the_modes_of_the_grid_is_refused(k):
    """It was cut off to the uniform density, or looked like a lower mode at the nodes."""
    with pytest.raises(flock.UserError, match="k must be at most 85"):
        evolve(SelfAttention(), Ripple(k=k), t=0.1, frames=2)
    with pytest.raises(flock.UserError, match="write points="):
        Mixture([Ripple(k=k)]).on(grid(2, 256))


@pytest.mark.parametrize("w", [[1, -1], [2, -1], [0, 0], [1e308, 1e308], [1.0]])
def test_weights_that_are_no_measure_are_refused(w):
    with pytest.raises(flock.UserError, match="masses must be"):
        Mixture([VonMises(2.0), VonMises(3.0)], masses=w)
    with pytest.raises(flock.UserError, match="w must be"):
        Empirical(np.eye(2), w=w)


def test_tokens_of_any_length_but_zero_are_smoothed():
    tiny = Empirical([[1e-200, 0.0], [0.0, 1e200]])
    np.testing.assert_allclose(tiny.on(CIRCLE), Empirical(np.eye(2)).on(CIRCLE), rtol=1e-12)
    with pytest.raises(flock.UserError, match="origin"):
        Empirical([[1.0, 0.0], [0.0, 0.0]])
