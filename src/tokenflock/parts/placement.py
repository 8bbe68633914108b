"""The place of the norm."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from tokenflock.parts._layer_norm import LayerNorm
from tokenflock.parts.part import Part
from tokenflock.shapes import Array, Points, Time
from tokenflock.spaces import Euclidean, Space
from tokenflock.spaces.sphere import normalise

FIRST, SECOND = 0, 1  # the sublayers of a block: attention, the feed-forward part


class Placement(Part):
    """The place of the norm: what a sublayer reads of the stream y, and how it writes to it.

    A sublayer F moves the stream by the flow dy/dt = tangent(t, y, u), u = write(t, y, F(read(y))),
    and by the layer map y <- settle(t, y, y + h u).
    """

    @property
    def space(self) -> Space:
        """Where the stream lives."""
        return Euclidean()

    def read(self, y: Points, k: int = FIRST) -> Points:
        """What sublayer k reads of the stream."""
        return y

    def write(self, t: Time, y: Points, u: Points, k: int = FIRST) -> Points:
        """What the update u of sublayer k does to the stream."""
        return u

    def tangent(self, t: Time, y: Points, v: Points) -> Points:
        """The part of an update v that the flow keeps."""
        return self.space.tangent(y, v)

    def settle(self, t: Time, x: Points, y: Points, k: int = FIRST) -> Points:
        """The stream after sublayer k of a layer map, which has moved x to y."""
        return self.space.project(y)

    @property
    def flows(self) -> bool:
        """Whether its layer is a small step of a flow."""
        return True

    @property
    def takes_noise(self) -> bool:
        """Whether the stream may be shaken."""
        return True


def normed(norm: LayerNorm | None, y: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    """What a model's norm makes of y; y / |y| where there is none."""
    return normalise(y) if norm is None else norm(y)


def width(*norms: LayerNorm | None) -> int | None:
    """The d of the gains, or None."""
    return next((np.shape(norm.gain)[-1] for norm in norms if norm is not None), None)
