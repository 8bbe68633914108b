"""The shapes that appear in every signature: n tokens in R^d, m points at which a field is asked
for.
"""

from __future__ import annotations

from jaxtyping import Array, Float

Scalar = Float[Array, ""]
Time = Float[Array, ""]
Tokens = Float[Array, "n d"]
Points = Float[Array, "m d"]
Weights = Float[Array, " n"]
Rows = Float[Array, "m n"]  # one row of attention for each point

__all__ = ["Array", "Points", "Rows", "Scalar", "Time", "Tokens", "Weights"]
