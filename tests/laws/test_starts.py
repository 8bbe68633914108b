"""Contracts of every start, and what each one promises."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import recipe
from tokenflock.catalogue import entries
from tokenflock.starts import (
    Cap,
    Clusters,
    Equiangular,
    Given,
    Hemisphere,
    Orthogonal,
    Polygon,
    Scaled,
    Simplex,
    Sunflower,
    Uniform,
    VonMisesFisher,
)

STARTS = [entry.load()() for entry in entries("starts") if entry.name != "Given"] + [Given([[3.0, 4.0], [0.0, 1.0]])]
FREE = ("Box", "Gaussian", "Given", "Scaled")
every_start = pytest.mark.parametrize("start", STARTS, ids=lambda start: type(start).__name__)


def draw(start, seed=0):
    return np.asarray(start.draw(jax.random.key(seed)))


@every_start
def test_has_its_shape_and_weights_that_sum_to_one(start):
    assert draw(start).shape == start.shape
    assert start.weights().sum() == pytest.approx(1)
    assert start.weights().shape == start.shape[:1]


@every_start
def test_lies_on_the_sphere(start):
    if type(start).__name__ not in FREE:
        assert np.allclose(np.linalg.norm(draw(start), axis=1), 1, atol=1e-6)


@every_start
def test_the_same_key_gives_the_same_tokens(start):
    assert np.array_equal(draw(start, 3), draw(start, 3))


@every_start
def test_a_recipe_builds_the_same_start(start):
    assert np.array_equal(draw(recipe.rebuild(recipe.describe(start)), 5), draw(start, 5))


def test_uniform_tokens_have_mean_zero_and_isotropic_covariance():
    x = draw(Uniform(n=20_000, d=4))
    assert np.abs(x.mean(axis=0)).max() < 4 / np.sqrt(4 * 20_000)
    assert np.abs(x.T @ x / len(x) - np.eye(4) / 4).max() < 0.01


@pytest.mark.parametrize(("d", "angle"), [(2, 1.0), (3, 0.5), (8, 1.2)])
def test_cap_is_uniform_in_area(d, angle):
    """Half the area of a cap lies within the angle a with F(a) = F(angle)/2, F the integral of sin^(d-2)."""
    x = draw(Cap(n=20_000, d=d, angle=angle))
    found = np.arccos(np.clip(x[:, -1], -1, 1))
    assert found.max() <= angle + 1e-4
    grid = np.linspace(0, angle, 10_001)
    mass = np.cumsum(np.sin(grid) ** (d - 2))
    half = grid[np.searchsorted(mass, mass[-1] / 2)]
    assert abs(np.mean(found < half) - 0.5) < 4 * 0.5 / np.sqrt(20_000)


@pytest.mark.parametrize(("d", "kappa"), [(2, 3.0), (3, 5.0), (10, 20.0)])
def test_von_mises_fisher_has_the_mean_of_bessel_functions(d, kappa):
    """E <x, e_d> = I_{d/2}(kappa) / I_{d/2-1}(kappa)."""
    from scipy.special import ive

    heights = draw(VonMisesFisher(n=40_000, d=d, kappa=kappa))[:, -1]
    expected = ive(d / 2, kappa) / ive(d / 2 - 1, kappa)
    assert abs(heights.mean() - expected) < 4 * heights.std() / np.sqrt(40_000)


def test_gram_matrices_of_the_rigid_starts():
    assert np.allclose(_gram(Orthogonal(n=4, d=7)), np.eye(4))
    assert np.allclose(_gram(Simplex(n=5, d=4)), 1.25 * np.eye(5) - 0.25, atol=1e-12)
    assert np.allclose(_gram(Equiangular(n=6, d=6, rho=0.3)), 0.7 * np.eye(6) + 0.3, atol=1e-12)
    turn = 2 * np.pi * np.subtract.outer(np.arange(7), np.arange(7)) / 7
    assert np.allclose(_gram(Polygon(n=7)), np.cos(turn), atol=1e-12)


def test_hemisphere_clusters_sunflower_and_scale():
    assert draw(Hemisphere(n=500, d=3))[:, -1].min() > 0
    grouped = draw(Clusters(n=30, d=3, k=3, spread=0.0))
    assert len(np.unique(np.round(grouped, 5), axis=0)) == 3
    assert np.abs(draw(Sunflower(n=1000)).mean(axis=0)).max() < 2e-3
    assert np.allclose(np.linalg.norm(draw(Scaled(Uniform(n=5, d=3), radius=2.5)), axis=1), 2.5, atol=1e-5)


def test_both_precisions_start_from_the_same_tokens():
    from tokenflock.dynamics import SelfAttention

    starts = [
        flock.simulate(SelfAttention(), Uniform(n=5, d=3), t=0.1, frames=2, dtype=dtype).x[0]
        for dtype in ("float32", "float64")
    ]
    assert np.abs(starts[0] - starts[1]).max() < 1e-7


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Uniform(n=0), "n must be"),
        (lambda: Uniform(n=-3, d=2), "n must be"),
        (lambda: Uniform(n=3, d=0), "d must be"),
        (lambda: Uniform(n=2.5), "whole number"),
        (lambda: Orthogonal(n=5, d=4), "write d=5"),
        (lambda: Simplex(n=5, d=3), "write d=4"),
        (lambda: Equiangular(n=4, d=4, rho=-0.5), "rho must be"),
        (lambda: Cap(angle=4.0), "angle must be"),
        (lambda: Clusters(n=3, k=5), "k must be"),
        (lambda: Given([[0.0, 0.0], [1.0, 0.0]]), "zero rows"),
        (lambda: Given([[1.0, 0.0]], w=[-1.0]), "w must be"),
        (lambda: Given([1.0, 2.0]), "shape"),
        (lambda: Given([[np.nan, 1.0]]), "finite"),
    ],
)
def test_bad_starts_are_refused_with_the_remedy(make, words):
    with pytest.raises(flock.UserError, match=words):
        make()


def _gram(start):
    x = draw(start)
    return x @ x.T
