"""What a part of a Transformer block is."""

from __future__ import annotations

from typing import Any

from tokenflock.frozen import Frozen


class Part(Frozen):
    """A part of a block: its heads, its mask, its positions, its norm, ...

    A part says what holds whatever the others are; the block has a symmetry where all parts do.
    """

    @property
    def isotropic(self) -> bool:
        """Whether it is blind to rotations and reflections of R^d."""
        return True

    @property
    def exchangeable(self) -> bool:
        """Whether it is blind to the order of tokens."""
        return True

    @property
    def keeps_cones(self) -> bool:
        """Whether it leaves tokens in their convex cone."""
        return True

    @property
    def dimension(self) -> int | None:
        """The d that its numbers ask for, or None where any d will do."""
        return None

    @property
    def particles(self) -> int | None:
        """The n that its numbers ask for, or None where any n will do."""
        return None

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Any:
        """A generic part for n tokens in R^d: what the tests run on."""
        return cls()
