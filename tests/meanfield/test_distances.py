"""Wasserstein distances with known values."""

from __future__ import annotations

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.meanfield import (
    Ground,
    VonMises,
    evolve,
    optimal_density,
    wasserstein,
    weighted_bounds,
)
from tokenflock.meanfield.distances import distance
from tokenflock.meanfield.measures import weighted_points
from tokenflock.starts import Uniform

ot = pytest.importorskip("ot")


def arc(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize("p", [1, 2])
def test_turning_a_measure_costs_the_angle(p):
    angles = np.random.default_rng(0).uniform(0, 0.5, size=30)
    assert wasserstein(arc(angles), arc(angles + 0.7), p=p) == pytest.approx(0.7, rel=1e-6)
    assert wasserstein(arc(angles), arc(angles), p=p) == pytest.approx(0, abs=1e-6)


def test_the_circle_and_the_linear_programme_agree():
    random = np.random.default_rng(0)
    a, b = random.uniform(0, 2 * np.pi, size=(2, 20))
    w_a, w_b = random.uniform(size=(2, 20))
    # the same on a great circle of S^2
    flat = [np.concatenate([arc(angles), np.zeros((20, 1))], axis=1) for angles in (a, b)]
    for p in (1, 2):
        circle = wasserstein(arc(a), arc(b), p=p, w_a=w_a, w_b=w_b)
        assert circle == pytest.approx(wasserstein(*flat, p=p, w_a=w_a, w_b=w_b), rel=1e-5)


def test_weights_mean_masses_and_chords_are_shorter_than_arcs():
    points = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    one = points[:1]
    assert wasserstein(points, one, p=1, w_a=[1, 3]) == pytest.approx(0.75 * np.pi / 2)
    assert wasserstein(points, one, p=2, w_a=[1, 3], ground=Ground.CHORDAL) == pytest.approx(
        np.sqrt(0.75 * 2)
    )


@pytest.mark.slow
def test_runs_and_densities_are_measures():
    run = flock.simulate(SelfAttention(1.0), Uniform(n=16, d=3), t=30.0, frames=2)
    assert wasserstein(run, run.x[-1, :1].values) < 1e-4  # consensus
    wide, narrow = (
        evolve(SelfAttention(4.0), VonMises(k), t=0.01, frames=2, points=48) for k in (1.0, 8.0)
    )
    assert 0.1 < wasserstein(wide, narrow, p=1) < 2


def test_the_weighted_metric_lies_between_its_bounds():
    low, high = weighted_bounds(2.0, np.diag([0.5, -1.0]))
    assert (low, high) == pytest.approx((2 * np.exp(-0.5), 2 * np.exp(0.5)))


def test_what_is_no_measure_is_refused():
    with pytest.raises(flock.UserError, match="d = 2"):
        wasserstein(np.eye(2), np.eye(3))
    with pytest.raises(flock.UserError, match="p must be"):
        wasserstein(np.eye(2), np.eye(2), p=3)
    latitudes = evolve(SelfAttention(4.0), VonMises(1.0), t=0.01, frames=2, d=3, points=48)
    with pytest.raises(flock.UserError, match="latitudes"):
        wasserstein(latitudes, np.eye(3))


def test_a_density_on_the_sphere_is_its_nodes_and_their_masses():
    least = optimal_density(np.diag([1.0, 0.5, 0.2]), points=6, steps=5, tolerance=1.0)
    x, w = weighted_points(least)
    np.testing.assert_allclose(x, least.nodes.values.reshape(-1, 3), rtol=1e-12)
    assert w.sum() == pytest.approx(1) and w.shape == (72,)
    np.testing.assert_allclose(w @ x, 0, atol=1e-12)  # as heavy on either side
    assert wasserstein(least, least) == pytest.approx(0, abs=1e-6)


def test_opposite_points_are_pi_apart_however_they_are_rounded():
    x = np.random.default_rng(0).normal(size=(500, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x *= 1 + 4e-16  # as long as rounding may leave them
    np.testing.assert_allclose(np.diag(distance(x, -x)), np.pi, rtol=1e-7)


def test_points_at_the_origin_and_weights_beside_a_result_are_refused():
    run = flock.simulate(SelfAttention(), np.eye(2), t=0.1, frames=2)
    with pytest.raises(flock.UserError, match="w must be left out"):
        wasserstein(run, run, w_a=np.array([1.0, 0.0]))
    with pytest.raises(flock.UserError, match="origin"):
        weighted_points(np.zeros((2, 2)))
    with pytest.raises(flock.UserError, match="coord"):
        wasserstein(run.x[-1].transpose("coord", "particle"), np.eye(2))
    assert wasserstein(1e-200 * np.eye(2), np.eye(2)) == pytest.approx(0)


@pytest.mark.parametrize("distance", [-1.0, np.nan, np.inf])
def test_bounds_are_of_distances(distance):
    with pytest.raises(flock.UserError, match="W2 must be a distance"):
        weighted_bounds(distance, np.eye(2))
