"""Laws that are constant on pieces of time."""

from __future__ import annotations

import jax
import numpy as np
import xarray as xr

from tokenflock.dynamics.dynamics import MeanField
from tokenflock.dynamics.feed_forward import FeedForward
from tokenflock.dynamics.multi_head import MultiHead
from tokenflock.dynamics.neural_ode import Activation, NeuralODE
from tokenflock.errors import require
from tokenflock.frozen import Frozen
from tokenflock.shapes import Array
from tokenflock.solvers.solver import FixedStep
from tokenflock.verbs.flow_map import flow_map

LETTERS = {  # what each array has axes for, after the piece
    "Q": ("head", "row", "coord"),
    "K": ("head", "row", "coord"),
    "V": ("head", "out", "coord"),
    "W": ("out", "neuron"),
    "A": ("neuron", "coord"),
    "b": ("neuron",),
}


class Pieces(Frozen):
    """Multi-head attention with a feed-forward part, one law for each piece of time.

        dx_i/dt = P_{x_i} ( sum_h sum_j A^h_ij V_h x_j + W tanh(A x_i + b) ),
        A^h_ij = e^{<Q_h x_i, K_h x_j>} / Z^h_i

    Without neurons (width 0) W, A and b are None, and it is attention alone.
    """

    Q: Array
    "queries, (pieces, heads, m, d)"
    K: Array
    "keys, (pieces, heads, m, d)"
    V: Array
    "values, (pieces, heads, d, d)"
    W: Array | None = None
    "outer weights, (pieces, d, width)"
    A: Array | None = None
    "inner weights, (pieces, width, d)"
    b: Array | None = None
    "inner bias, (pieces, width)"

    def law(self) -> MeanField:
        """The law of one piece, of which this holds the arrays without their first axis."""
        attention = MultiHead(V=self.V, Q=self.Q, K=self.K)
        if self.W is None or self.A is None or self.b is None:
            return attention
        mlp = NeuralODE(W=self.W, A=self.A, b=self.b, activation=Activation.TANH)
        return FeedForward(mlp=mlp, base=attention)

    def part(self, k: int) -> Pieces:
        """The arrays of piece k alone."""
        return jax.tree.map(lambda array: array[k], self)


def random_pieces(pieces: int, heads: int, width: int, d: int, seed: int) -> Pieces:
    """Small random values and outer weights, so that a search begins near the identity."""
    random = np.random.default_rng(seed)

    def normal(scale: float, *shape: int) -> np.ndarray:
        return scale * random.normal(size=(pieces, *shape))

    attention = {
        "Q": normal(d**-0.5, heads, d, d),
        "K": normal(d**-0.5, heads, d, d),
        "V": normal(0.1, heads, d, d),
    }
    if width == 0:
        return Pieces(**attention)
    return Pieces(
        **attention,
        W=normal(0.4 / width**0.5, d, width),
        A=normal(1.5, width, d),
        b=normal(0.5, width),
    )


def carry(pieces: Pieces, x: Array, solver: FixedStep, h: float, steps: int) -> tuple[Array, Array]:
    """(clouds at the end, clouds after each step) of clouds (N, n, d): so many steps in each piece.

    Each cloud is a system of its own; all of them obey the same law.
    """

    def piece(x: Array, part: Pieces) -> tuple[Array, Array]:
        step = jax.vmap(flow_map(part.law(), h, solver, checkpoint=False))

        def advance(x: Array, _: None) -> tuple[Array, Array]:
            y = step(x)
            return y, y

        return jax.lax.scan(advance, x, None, length=steps)

    end, frames = jax.lax.scan(piece, x, pieces)
    return end, frames.reshape(-1, *x.shape)


def laws(result: xr.Dataset) -> list[MeanField]:
    """The laws that `steer` found, one for each piece of time, as laws of the catalogue.

    Each acts for a time `result.attrs["period"]`; `simulate` with the solver of the search gives
    the tokens of the result.
    """
    held = "target" in result and all(name in result for name in ("Q", "K", "V"))
    require(held, "result", "a result of `steer`", sorted(map(str, result.data_vars)))
    pieces = Pieces(**{name: result[name].values for name in LETTERS if name in result})
    return [pieces.part(k).law() for k in range(result.sizes["piece"])]
