"""How long two clusters of random tokens live: opposite ones of n/2 tokens each miss the antipode
by an angle of order n^(-1/2), and so live for half of log n lifetimes.
"""

from __future__ import annotations

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.events import Consensus
from tokenflock.solvers import RK4
from tokenflock.starts import Clusters
from tokenflock.theory import merging_time, polygon_lifetime

pytestmark = pytest.mark.slow

BETA, SPREAD = 4.0, 0.05
LIFETIME = float(polygon_lifetime(2, BETA))


def opposite(n):
    return Clusters(n=n, d=3, k=2, spread=SPREAD, centres=[[0, 0, 1], [0, 0, -1]])


def expected(n):
    """The mean merging time in lifetimes, over the angle between the means of two clusters.

    Each coordinate of a mean has the variance spread^2 / (n/2), that of their difference twice as
    much: the angle to the antipode is Rayleigh's.
    """
    angle = np.linspace(0, 8, 20001)[1:]
    density = angle * np.exp(-(angle**2) / 2)
    times = merging_time(np.pi - 2 * SPREAD / np.sqrt(n) * angle, BETA) / LIFETIME
    return float((times * density).sum() / density.sum())


def test_the_mean_time_of_two_random_clusters_grows_like_half_the_logarithm_of_their_size():
    assert expected(8) == pytest.approx(2.73, abs=0.01)
    assert expected(128) == pytest.approx(4.11, abs=0.01)
    assert expected(128 * 64) - expected(128) == pytest.approx(np.log(64) / 2, abs=0.01)


def test_an_ensemble_of_eight_tokens_lives_as_long_as_two_clusters_should():
    result = flock.ensemble(
        SelfAttention(beta=BETA),
        opposite(8),
        repeats=96,
        t=24_000.0,
        frames=13,
        solver=RK4(h=2.0),
        until=Consensus(),
        observe=[],
    )
    mean, error = float(result.mean_time) / LIFETIME, float(result.mean_time_error) / LIFETIME
    assert 0.03 < error < 0.12
    assert abs(mean - expected(8)) < 3 * error
    assert int(result.censored) == 0


@pytest.mark.slow
def test_heavy_tokens_of_large_systems_live_as_long_as_two_clusters_should():
    times = []
    for seed in range(32):
        run = flock.simulate(
            SelfAttention(beta=BETA),
            opposite(128),
            t=24_000.0,
            frames=2,
            until=Consensus(),
            coalesce=1e-7,
            seed=seed,
        )
        times.append(float(run.time[-1]) / LIFETIME)
    error = np.std(times, ddof=1) / np.sqrt(len(times))
    assert abs(np.mean(times) - expected(128)) < 3 * error < 0.6
