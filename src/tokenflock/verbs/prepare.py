"""What a run begins with: the law, the tokens, the weights and the key of the noise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import require
from tokenflock.precision import cast, precision, root_key
from tokenflock.starts.start import Start


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
