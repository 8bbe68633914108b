"""Accurate systems of an ensemble, by an integrator that is not ours: LSODA of SciPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from tokenflock.precision import cast, precision


def keys(seed: int, purpose: int, cell: int, repeats: int) -> list[jax.Array]:
    """The keys of the systems of a cell: fold_in(fold_in(fold_in(root, purpose), cell), repeat)."""
    root = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), purpose), cell)
    return [jax.random.fold_in(root, repeat) for repeat in range(repeats)]


def starts(law, start, cell: int, repeats: int, seed: int = 0) -> np.ndarray:
    """The tokens (repeats, n, d) that systems of a cell begin with."""
    with precision("float32"):
        drawn = [np.asarray(start.draw(key)) for key in keys(seed, 0, cell, repeats)]
    with precision("float64"):
        return np.stack([np.asarray(law.space.project(jnp.asarray(x, "float64"))) for x in drawn])


def flow(law, x: np.ndarray, w: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Tokens (frames, n, d) of one system at these times."""
    with precision("float64"):
        own, weights = cast(law, "float64"), jnp.asarray(w)

        @jax.jit
        def velocity(t, y):
            return own.velocity(t, y.reshape(x.shape), weights).ravel()

        solution = solve_ivp(
            lambda t, y: np.asarray(velocity(t, y)),
            (0, times[-1]),
            x.ravel(),
            method="LSODA",
            t_eval=times,
            rtol=1e-10,
            atol=1e-12,
        )
        assert solution.success
        frames = solution.y.T.reshape(len(times), *x.shape)
        return np.asarray(law.space.project(jnp.asarray(frames)))


def cosines(frames: np.ndarray) -> np.ndarray:
    """The cosines (..., n, n) of tokens (..., n, d)."""
    u = frames / np.linalg.norm(frames, axis=-1, keepdims=True)
    return u @ np.swapaxes(u, -1, -2)


def mean_cosines(G: np.ndarray) -> np.ndarray:
    """The mean cosines of pairs of different tokens."""
    n = G.shape[-1]
    return (G.sum(axis=(-1, -2)) - np.trace(G, axis1=-2, axis2=-1)) / (n * (n - 1))


def cluster_counts(G: np.ndarray, delta: float = 1e-3) -> np.ndarray:
    """The numbers of connected components of pairs whose cosine is at least 1 - delta."""
    from scipy.sparse.csgraph import connected_components

    flat = G.reshape(-1, *G.shape[-2:])
    counts = [connected_components(each >= 1 - delta, directed=False)[0] for each in flat]
    return np.array(counts, float).reshape(G.shape[:-2])


def within(error: np.ndarray, mine: np.ndarray, exact: np.ndarray, slack: float = 1e-6) -> None:
    """Assert that the mean of `mine` over systems (repeats, frames) is that of `exact` within the
    stated error and four standard errors of the paired difference.
    """
    gap = mine - exact
    spread = gap.std(axis=0, ddof=1) / len(gap) ** 0.5
    assert np.all(np.abs(gap.mean(axis=0)) <= error + 4 * spread + slack), (
        np.abs(gap.mean(axis=0)).max(),
        np.asarray(error).max(),
    )
