"""The noise knows nothing of the start, and seeds, cells and repeats nothing of each other."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Noisy
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.engines.systems import Systems
from tokenflock.observables import InnerProducts
from tokenflock.solvers import EulerMaruyama
from tokenflock.starts import Uniform
from tokenflock.starts.start import Start
from tokenflock.verbs.ensemble import ensemble

N, D, H, KAPPA = 200, 3, 1e-4, 2.0


class Still(MeanField):
    """A law without forces: what moves is the noise."""

    def field(self, t, q, x, w):
        return jnp.zeros_like(q)


class Mirror(Start):
    """Tokens along the first increments that the noise would have, were its key the start's.

    Such an increment has no tangent part, so that the first step would move nothing.
    """

    n: int = N
    d: int = D

    @property
    def shape(self):
        return self.n, self.d

    def draw(self, key):
        return jax.random.normal(jax.random.fold_in(key, 0), self.shape)


LAW = Noisy(Still(), kappa=KAPPA)
STEP = {"t": H, "frames": 2, "solver": EulerMaruyama(h=H)}


def test_the_noise_of_simulate_does_not_come_from_the_key_of_the_start():
    """E |x(h) - x(0)|^2 = (d - 1) h 2 / kappa, whatever the start."""
    run = flock.simulate(LAW, Mirror(), dtype="float32", seed=5, **STEP)
    squares = ((run.x.values[1] - run.x.values[0]) ** 2).sum(axis=-1)
    expected = (D - 1) * H * 2 / KAPPA
    assert abs(squares.mean() / expected - 1) < 5 / np.sqrt(N)


def test_the_noise_of_ensemble_does_not_come_from_the_key_of_the_start():
    """Two tokens move apart or together by sqrt(2 h 2 / kappa) in each common direction."""
    result = ensemble(
        LAW, Mirror(n=2), repeats=400, observe=[InnerProducts()], keep=True, rotate=False, **STEP
    )
    cosine = result.inner_products.values[:, :, 0, 1]
    change = np.arccos(np.clip(cosine[:, 1], -1, 1)) - np.arccos(np.clip(cosine[:, 0], -1, 1))
    assert change.std() == pytest.approx(np.sqrt(2 * H * 2 / KAPPA), rel=0.2)


def test_the_keys_of_start_noise_and_matrices_differ():
    systems = Systems(LAW, Uniform(4, 3), None, 7, "float32", 1.0, False)
    ids = np.array([[0, 0], [0, 1], [1, 0], [5, 5]])
    x, keys = systems.draw(ids, False)
    data = np.asarray(jax.random.key_data(keys))
    assert len(np.unique(data, axis=0)) == 4
    again = jax.vmap(Uniform(4, 3).draw)(keys)
    assert np.abs(np.asarray(again) - np.asarray(x)).max(axis=(1, 2)).min() > 0.1
    other = Systems(LAW, Uniform(4, 3), None, 8, "float32", 1.0, False).draw(ids, False)[0]
    assert np.abs(np.asarray(other) - np.asarray(x)).max(axis=(1, 2)).min() > 0.1
