"""Another start, made larger or smaller."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Key

from tokenflock.errors import require
from tokenflock.shapes import Array
from tokenflock.starts.start import Start
from tokenflock.starts.uniform import Uniform


class Scaled(Start):
    """The tokens of another start times `radius`: the radius r_0 at which Pre-LN and Peri-LN begin.

    >>> Scaled(Uniform(n=4, d=3), radius=2.0).shape
    (4, 3)
    """

    base: Start = Uniform()
    "the start to scale"
    radius: float = 1.0
    "the factor"

    def __check_init__(self) -> None:
        require(self.radius > 0, "radius", "positive", self.radius)

    @property
    def shape(self) -> tuple[int, int]:
        return self.base.shape

    @property
    def on_sphere(self) -> bool:
        return self.base.on_sphere and self.radius == 1

    @property
    def random(self) -> bool:
        return self.base.random

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        return self.radius * self.base.draw(key)

    @property
    def spans(self) -> bool:
        return self.base.spans

    def in_span(self, key: Key[Array, ""]) -> Float[Array, "n n"]:
        return self.radius * self.base.in_span(key)

    def weights(self) -> np.ndarray:
        return self.base.weights()
