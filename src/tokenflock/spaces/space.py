"""What a space is: where tokens live, and how a direction becomes a move."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from jaxtyping import Float

from tokenflock.frozen import Frozen
from tokenflock.shapes import Array


class Space(Frozen):
    """A space of tokens, as a subset of R^d. All maps act on the last axis."""

    @abstractmethod
    def project(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The point of the space nearest to x."""

    def admit(self, x: np.ndarray) -> np.ndarray:
        """Given tokens, brought to where `project` can take them in any precision."""
        return x

    @abstractmethod
    def tangent(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """The part of v that is tangent to the space at x."""

    def retract(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Move from x by v and come back to the space."""
        return self.project(x + v)

    @abstractmethod
    def frame(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d m"]:
        """Orthonormal tangent vectors at x, the columns."""

    @abstractmethod
    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        """Geodesic distance."""
