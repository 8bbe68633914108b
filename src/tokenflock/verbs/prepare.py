"""What a run begins with: the law, the tokens, the weights and the key of the noise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import require
from tokenflock.precision import cast, precision, root_key
from tokenflock.spaces import Sphere
from tokenflock.starts.given import Given
from tokenflock.starts.start import Start

OFF = 1e-3  # by which lengths of given tokens may miss 1: float16 rounds to less


def as_start(dynamics: Dynamics, start: Start | np.ndarray) -> Start:
    """Return a start for tokens that are given as an array.

    Raise where a law lives on the sphere and the array does not: it would be another system.
    """
    if isinstance(start, Start):
        return start
    given = Given(start)
    if isinstance(getattr(dynamics, "space", None), Sphere):
        lengths = np.linalg.norm(given.x, axis=1)
        require(
            bool((np.abs(lengths - 1) <= OFF).all()),
            "start",
            "rows of length 1 for a law on the sphere",
            f"lengths from {lengths.min():.4g} to {lengths.max():.4g}",
            "write x / np.linalg.norm(x, axis=1, keepdims=True), or Given(x), which divides by the"
            " lengths; a law of your own on R^d has the space Euclidean()",
        )
    return given


def prepare(dynamics: Dynamics, start: Start, seed: int, dtype: str):
    """(dynamics, tokens, weights, key of the noise) as JAX values of one precision. Call inside
    `precision(dtype)`.

    Tokens are drawn in float32 and then cast, so that both precisions start from the same ones.
    """
    drawing, noise = jax.random.split(root_key(seed))
    with precision("float32"), np.errstate(over="ignore", invalid="ignore"):
        x = np.asarray(start.draw(drawing))
    require(
        bool(np.isfinite(x).all()),
        "start",
        "within what float32 holds, in which tokens are drawn",
        repr(start),
        "take smaller values",
    )
    law = cast(dynamics, dtype)
    x = law.space.project(jnp.asarray(dynamics.space.admit(x).astype(dtype)))
    return law, x, jnp.asarray(start.weights(), dtype), noise
