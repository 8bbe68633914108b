"""Tokens that you bring."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Key

from tokenflock.errors import require, require_coord_last, require_weights
from tokenflock.shapes import Array
from tokenflock.starts.start import Start


class Given(Start):
    """A given array of tokens, with weights if you like. Dynamics on the sphere normalise its rows.

    >>> Given([[1.0, 0.0], [0.0, 2.0]], w=[1, 3]).weights().tolist()
    [0.25, 0.75]
    """

    x: Array
    "tokens, (n, d)"
    w: Array | None = None
    "weights, (n,), 0 or more; scaled to sum to one"

    def __post_init__(self) -> None:
        require_coord_last("x", self.x)
        super().__post_init__()

    def __check_init__(self) -> None:
        require(
            np.ndim(self.x) == 2 and np.size(self.x) > 0,
            "x",
            "an array of shape (n, d)",
            f"shape {np.shape(self.x)}",
        )
        require(
            bool(np.isfinite(self.x).all()), "x", "an array of finite numbers", "NaN or infinity"
        )
        require(
            bool((np.asarray(self.x) != 0).any(axis=1).all()),
            "x",
            "an array without zero rows",
            "a row of zeros",
        )
        if self.w is not None:
            require_weights("w", self.w, np.shape(self.x)[0])

    @property
    def shape(self) -> tuple[int, int]:
        n, d = np.shape(self.x)
        return n, d

    @property
    def on_sphere(self) -> bool:
        return bool(np.allclose(np.linalg.norm(self.x, axis=1), 1))

    @property
    def random(self) -> bool:
        return False

    def draw(self, key: Key[Array, ""]) -> Float[Array, "n d"]:
        return self.x

    @classmethod
    def example(cls) -> Given:
        return cls(np.array([[3.0, 4.0], [0.0, 1.0]]), w=np.array([1.0, 2.0]))

    def weights(self) -> np.ndarray:
        return super().weights() if self.w is None else np.asarray(self.w) / np.sum(self.w)
