"""Where a token stands in the sequence, as attention knows it."""

from __future__ import annotations

from jaxtyping import Float

from tokenflock.parts.part import Part
from tokenflock.shapes import Array, Weights


class Positions(Part):
    """Where a token stands in the sequence, as attention knows it."""

    def turn(self, q: Float[Array, "h n m"], w: Weights) -> Float[Array, "h n m"]:
        """Queries or keys with their places in them."""
        return q

    def bias(self, w: Weights) -> Float[Array, "..."] | None:
        """What is added to the logits, (n, n) or (heads, n, n); None for nothing."""
        return None

    @property
    def heads(self) -> int | None:
        """The number of heads that its numbers ask for, or None where any will do."""
        return None

    @property
    def exchangeable(self) -> bool:
        return False
