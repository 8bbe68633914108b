"""Contracts of every start, and what each one promises."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock import recipe
from tokenflock.catalogue import entries
from tokenflock.precision import precision
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

STARTS = [entry.load().example() for entry in entries("starts")]
STARTS += [Scaled(radius=2.0), Scaled(Polygon(n=5)), Polygon(n=5, noise=0.1), Given(np.eye(3))]
every_start = pytest.mark.parametrize("start", STARTS, ids=repr)


def draw(start, seed=0):
    return np.asarray(start.draw(jax.random.key(seed)))


def many(start, count):
    return np.asarray(jax.vmap(start.draw)(jax.random.split(jax.random.key(1), count)), float)


@every_start
def test_has_its_shape_and_weights_that_sum_to_one(start):
    assert draw(start).shape == start.shape
    assert start.weights().sum() == pytest.approx(1)
    assert start.weights().shape == start.shape[:1]


@every_start
def test_lies_on_the_sphere_exactly_where_declared(start):
    length = np.linalg.norm(draw(start), axis=1)
    assert np.allclose(length, 1, atol=1e-6) == start.on_sphere


@every_start
def test_the_same_key_gives_the_same_tokens(start):
    assert np.array_equal(draw(start, 3), draw(start, 3))


@every_start
def test_another_key_gives_other_tokens_exactly_where_declared(start):
    assert np.allclose(draw(start, 3), draw(start, 4)) != start.random


@every_start
def test_a_batch_of_keys_draws_what_each_key_draws_alone(start):
    batch = many(start, 2)
    keys = jax.random.split(jax.random.key(1), 2)
    alone = np.stack([np.asarray(start.draw(key), float) for key in keys])
    assert np.allclose(batch, alone, atol=1e-6)


@every_start
def test_a_recipe_builds_the_same_start(start):
    assert np.array_equal(draw(recipe.rebuild(recipe.describe(start)), 5), draw(start, 5))


def test_uniform_tokens_have_mean_zero_and_isotropic_covariance():
    x = draw(Uniform(n=20_000, d=4))
    assert np.abs(x.mean(axis=0)).max() < 4 / np.sqrt(4 * 20_000)
    assert np.abs(x.T @ x / len(x) - np.eye(4) / 4).max() < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d"),
    [(4, 7), (4, 8), (5, 40)],
    ids=["drawn whole", "the least d in a frame", "in a frame"],
)
def test_inner_products_of_uniform_tokens_have_their_exact_law(n, d):
    """The density of <x_i, x_j> is (1 - g^2)^((d-3)/2), so (1 + g)/2 is Beta((d-1)/2, (d-1)/2):
    mean 0, variance 1/d.
    """
    from scipy.stats import beta, kstest

    x = many(Uniform(n=n, d=d), 4000)
    G = x @ np.swapaxes(x, 1, 2)
    assert np.abs(np.linalg.norm(x, axis=-1) - 1).max() < 1e-6
    for i, j in ((0, 1), (0, n - 1), (n - 2, n - 1)):
        assert kstest((1 + G[:, i, j]) / 2, beta((d - 1) / 2, (d - 1) / 2).cdf).pvalue > 1e-3
    off = G[:, ~np.eye(n, dtype=bool)]
    assert abs(off.mean()) < 5 / np.sqrt(d * off.size / 2)
    assert abs(off.var() * d - 1) < 0.05
    # not implied by the pairs: E = 1/d^2 for independent tokens
    triple = G[:, 0, 1] * G[:, 1, 2] * G[:, 2, 0]
    assert abs(triple.mean() - d**-2) < 5 * triple.std() / np.sqrt(len(triple))


@pytest.mark.slow
def test_uniform_tokens_in_many_dimensions_point_everywhere():
    """Each token alone is isotropic: E x = 0, E x x^T = I/d, and a coordinate has the law of an
    inner product.
    """
    from scipy.stats import beta, kstest

    n, d = 3, 6
    x = many(Uniform(n=n, d=d), 8000)
    for token in range(n):
        assert np.abs(x[:, token].mean(axis=0)).max() < 5 / np.sqrt(d * len(x))
        assert np.abs(x[:, token].T @ x[:, token] / len(x) - np.eye(d) / d).max() < 0.012
        for axis in (0, d - 1):
            assert (
                kstest((1 + x[:, token, axis]) / 2, beta((d - 1) / 2, (d - 1) / 2).cdf).pvalue
                > 1e-3
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    "start",
    [Uniform(n=4, d=8), Uniform(n=32, d=512), Scaled(Uniform(n=3, d=9), radius=2.0)],
    ids=repr,
)
def test_tokens_in_their_span_have_the_gram_matrix_of_the_tokens(start):
    key = jax.random.key(7)
    with precision("float32"):
        x, z = np.asarray(start.draw(key), float), np.asarray(start.in_span(key), float)
    assert start.spans and z.shape == (len(x), len(x))
    assert (
        np.abs(z @ z.T - x @ x.T).max() < 3e-6
        and np.abs(x @ x.T - np.diag(np.diag(x @ x.T))).max() > 0.1
    )


def test_starts_that_must_be_drawn_whole_say_so():
    for start in (
        Uniform(n=4, d=7),
        Scaled(Uniform(n=4, d=7)),
        Cap(n=2, d=9),
        Given([[1.0, 0.0, 0.0]]),
    ):
        assert not start.spans


@pytest.mark.parametrize(("d", "angle"), [(2, 1.0), (3, 0.5), (8, 1.2)])
def test_cap_is_uniform_in_area(d, angle):
    """Half the area of a cap lies within the angle a with F(a) = F(angle)/2, F the integral of
    sin^(d-2).
    """
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


@pytest.mark.parametrize("kappa", [1e5, 1e7, 1e10, 1e30])
@pytest.mark.parametrize("d", [2, 3, 16])
def test_von_mises_fisher_tokens_near_their_axis_are_gaussian(d, kappa):
    """There kappa times the squared distance from the axis is chi-squared with d - 1 degrees: no
    hole is left about the axis, however narrow the cap.
    """
    from scipy.stats import chi2, kstest

    x = draw(VonMisesFisher(n=20_000, d=d, kappa=kappa)).astype(float)
    assert kstest(kappa * np.sum(x[:, :-1] ** 2, axis=1), chi2(d - 1).cdf).pvalue > 1e-3


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
    assert np.allclose(
        np.linalg.norm(draw(Scaled(Uniform(n=5, d=3), radius=2.5)), axis=1), 2.5, atol=1e-5
    )


@pytest.mark.slow
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
        (lambda: Given([[1.0, 0.0]] * 2, w=[1e308, 1e308]), "positive, finite sum"),
        (lambda: Given(xr.DataArray(np.ones((3, 2)), dims=("coord", "particle"))), "transpose"),
        (lambda: Clusters(n=4, d=2, k=2, centres=[[1e-50, 0.0], [0.0, 1.0]]), "of lengths from"),
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
