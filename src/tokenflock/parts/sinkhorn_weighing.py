"""Doubly stochastic weights."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from tokenflock.dynamics._kernels import log_sum_exp, softmax
from tokenflock.errors import require
from tokenflock.parts.weighing import Logits, Weighing
from tokenflock.shapes import Rows, Weights


class SinkhornWeighing(Weighing):
    """Doubly stochastic weights: A_ij = w_j e^{f_i + S_ij + g_j}, with sum_j A_ij = 1 and sum_i w_i
    A_ij = w_j.

    Found by f <- (f - log sum_j w_j e^{S_ij + g_j}) / 2 and the same for g, from rows and columns
    at once; for symmetric logits f = g. The last round normalises rows exactly. Source: arXiv
    2110.11773.

    >>> SinkhornWeighing().rounds
    60
    """

    cites: ClassVar[tuple[str, ...]] = ("sander2022sinkformers",)

    rounds: int = 60
    "how often rows and columns are normalised"

    def __check_init__(self) -> None:
        fits = 1 <= self.rounds <= 10_000
        require(fits, "SinkhornWeighing.rounds", "from 1 to 10,000", self.rounds)

    def weigh(self, logits: Logits, w: Weights) -> Rows:
        S = logits.sum

        def round_(_, fg):
            f, g = fg
            return 0.5 * (f - log_sum_exp(S + g, w)), 0.5 * (g - log_sum_exp(S.T + f, w))

        start = -0.5 * log_sum_exp(S, w), -0.5 * log_sum_exp(S.T, w)
        _, g = jax.lax.fori_loop(0, self.rounds, round_, start)
        return softmax(S + jnp.asarray(g), w)

    def refusal(self, causal: bool, symmetric: bool) -> str | None:
        if symmetric:
            return None
        return (
            "a mask by which all see those who see them (the only doubly stochastic matrix below"
            " the diagonal is the identity)"
        )
