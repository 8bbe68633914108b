"""One input alone: residual networks and neural ODEs."""

from __future__ import annotations

import enum
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics._matrices import Path, act, at, shape_of
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.shapes import Array, Points, Time, Tokens, Weights
from tokenflock.spaces import Euclidean, Space

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Activation(enum.Enum):
    """The scalar function of a feed-forward layer."""

    RELU = "relu"
    TANH = "tanh"
    GELU = "gelu"  # by its tanh, as GPT-2 has it
    EXACT_GELU = "exact-gelu"
    SILU = "silu"
    IDENTITY = "identity"

    def __call__(self, x: Array) -> Array:
        functions = {
            "relu": jax.nn.relu,
            "tanh": jnp.tanh,
            "gelu": jax.nn.gelu,
            "exact-gelu": partial(jax.nn.gelu, approximate=False),
            "silu": jax.nn.silu,
            "identity": lambda x: x,
        }
        return functions[self.value](x)

    @property
    def on_chip(self) -> bool:
        """Whether the GPU kernel of the resident engine has it (it lacks the error function)."""
        return self is not Activation.EXACT_GELU


class NeuralODE(MeanField):
    """A neural ODE on R^d: each token moves alone, blind to the others.

        dx/dt = W sigma(A x + b);
        with solver `Layer(h=1)` the residual network x <- x + W sigma(A x + b)

    A is (m, d), b is (m,), W is (d, m); each may be a function of time such as `Switching`. Source:
    (2.1) and (2.2) of arXiv 2312.10794. Compare with attention, where tokens see each other.

    >>> NeuralODE(W=[[1.0], [0.0]], A=[[0.0, 1.0]], b=[0.0]).dimension
    2
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective",)

    W: Array | Path
    "outer weights, (d, m)"
    A: Array | Path
    "inner weights, (m, d)"
    b: Array | Path | None = None
    "inner bias, (m,)"
    activation: Activation = Activation.RELU
    "relu, tanh, gelu, exact-gelu, silu or identity"

    def __check_init__(self) -> None:
        if concrete(self.W) and concrete(self.A):
            sides, shape = shape_of(self.A), shape_of(self.W)
            require(len(sides) == 2, "A", "a matrix of shape (m, d)", f"shape {sides}")
            m, d = sides
            require(shape == (d, m), "W", f"of shape (d, m) = ({d}, {m}) to match A", shape)
            if self.b is not None:
                shape = shape_of(self.b)
                require(shape == (m,), "b", f"of shape (m,) = ({m},)", shape)

    @property
    def space(self) -> Space:
        return Euclidean()

    def perceptron(self, x: Points, t: Time = 0.0) -> Points:
        """W sigma(A x + b)."""
        hidden = act(self.A, x, t) + (0 if self.b is None else at(self.b, t))
        return act(self.W, self.activation(hidden), t)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return self.perceptron(q, t)

    @property
    def interacts(self) -> bool:
        return False

    @property
    def dimension(self) -> int | None:
        return shape_of(self.A)[-1]

    def as_block(self) -> Block:
        from tokenflock.dynamics.block import Block
        from tokenflock.parts.no_heads import NoHeads
        from tokenflock.parts.no_norm import NoNorm
        from tokenflock.parts.two_layers import TwoLayers

        mlp = TwoLayers(self.W, self.A, self.b, activation=self.activation)
        return Block(NoHeads(), feed_forward=mlp, norm=NoNorm())

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> NeuralODE:
        random = np.random.default_rng(seed)
        A, W, b = (
            random.normal(size=(2 * d, d)),
            random.normal(size=(d, 2 * d)),
            random.normal(size=2 * d),
        )
        return cls(W=W / (2 * d), A=A / np.sqrt(d), b=b, activation=Activation.TANH)
