"""The exponential alone."""

from __future__ import annotations

import jax.numpy as jnp

from tokenflock.dynamics._kernels import softmax
from tokenflock.dynamics.unnormalised import Clock
from tokenflock.parts.weighing import Logits, Weighing
from tokenflock.shapes import Rows, Weights


class NoWeighing(Weighing):
    """No normalisation (USA): A_ij = w_j e^{S_ij}, in clock PEAK w_j e^{S_ij - beta}.

    With `shares` the bias of positions is normalised by itself, and the exponential is not: A_ij =
    a_ij e^{S_ij}, a_ij ~ w_j e^{bias_ij}, sum_j a_ij = 1.

    >>> NoWeighing(clock="peak").clock
    <Clock.PEAK: 'peak'>
    """

    clock: Clock = Clock.PAPER
    "unit of time: 'paper' (weights e^S) or 'peak' (weights e^(S - beta))"
    shares: bool = False
    "normalise the bias of positions by itself"

    def weigh(self, logits: Logits, w: Weights) -> Rows:
        shift = logits.beta if self.clock is Clock.PEAK else 0.0
        if not self.shares:
            return logits.masked(w * jnp.exp(logits.sum - shift))
        share = softmax(logits._replace(S=jnp.zeros_like(logits.S)).sum, w)
        return share * jnp.exp(logits.S - shift)
