"""The shapes that appear in every signature: n tokens in R^d, m points at which a field is asked
for.

An `Array` is NumPy's or JAX's: laws and starts hold the one, engines pass the other, and every
function here takes both.
"""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Float

Array = jax.Array | np.ndarray

Scalar = Float[Array, ""] | float
Time = Float[Array, ""] | float
Tokens = Float[Array, "n d"]
Points = Float[Array, "m d"]
Weights = Float[Array, " n"]
Rows = Float[Array, "m n"]  # one row of attention for each point

__all__ = ["Array", "Points", "Rows", "Scalar", "Time", "Tokens", "Weights", "counted"]


def counted(n: object) -> bool:
    """Whether a number of tokens is known: it is a symbol where equations are traced for all n."""
    return isinstance(n, int)
