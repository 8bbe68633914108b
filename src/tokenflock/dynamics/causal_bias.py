"""Causal attention with a bias towards near tokens (ALiBi)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp

from tokenflock.dynamics._kernels import softmax
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.frozen import concrete
from tokenflock.shapes import Rows, Time, Tokens, Weights

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class CausalBias(Dynamics):
    """Causal attention with a positional bias (ALiBi): far tokens count less.

        dx_j/dt = P_{x_j} ( sum_{k < j} a_jk beta e^{beta <x_j, x_k>} x_k ),
        a_jk ~ w_k e^{-(slope/N) (j - k)}, sum_k a_jk = 1

    N counts the tokens of positive weight. On the circle this is dtheta_j/dt = -sum_{k<j} a_jk beta
    sin(delta) e^{beta cos delta}: note the factor beta, which other unnormalised laws do not have.
    Source: the code of arXiv 2605.09213.

    >>> CausalBias(beta=1.0, slope=1.0)
    CausalBias(beta=1.0, slope=1.0)
    """

    cites: ClassVar[tuple[str, ...]] = ("lostmiddle2026",)

    beta: float = 1.0
    "inverse temperature"
    slope: float = 1.0
    "strength of the bias over the whole sequence"

    def bias(self, w: Weights) -> Rows:
        """a_jk, the share of token k in what token j hears of its past.

        The first token hears nothing.
        """
        order = jnp.arange(w.shape[0])
        counts = (w > 0).astype(w.dtype)
        position = jnp.sum(jnp.where(order[:, None] >= order, counts, 0), axis=-1)
        distance = (position[:, None] - position) / jnp.maximum(jnp.sum(counts), 1)
        return softmax(jnp.where(order[:, None] > order, -self.slope * distance, -jnp.inf), w)

    def attention_matrix(self, t: Time, x: Tokens, w: Weights) -> Rows:
        return self.bias(w) * self.beta * jnp.exp(self.beta * (x @ x.T))

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.attention_matrix(t, x, w) @ x

    def as_block(self) -> Block:
        from tokenflock.dynamics.block import Block
        from tokenflock.parts.alibi import Alibi
        from tokenflock.parts.causal_mask import CausalMask
        from tokenflock.parts.given_heads import GivenHeads
        from tokenflock.parts.no_weighing import NoWeighing

        return Block(
            GivenHeads(V=self.beta),
            mask=CausalMask(strict=True),
            positions=Alibi(slope=self.slope, relative=True),
            attention=NoWeighing(shares=True),
            beta=self.beta,
        )

    @property
    def keeps_cones(self) -> bool:
        return not concrete(self.beta) or self.beta >= 0

    @property
    def bounded(self) -> bool:
        return False

    @property
    def isotropic(self) -> bool:
        return True
