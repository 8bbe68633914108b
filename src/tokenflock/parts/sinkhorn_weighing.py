"""Doubly stochastic weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp

from tokenflock.dynamics._kernels import log_sum_exp, softmax
from tokenflock.errors import require
from tokenflock.parts.weighing import Logits, Weighing
from tokenflock.shapes import Array, Rows, Scalar, Weights

Pair = tuple[Array, Array]  # the logarithms f and g of the factors of rows and columns

SLACK = 4  # rounding alone leaves 0.7 epsilon times the largest logit, or less


class SinkhornWeighing(Weighing):
    """Doubly stochastic weights: A_ij = w_j e^{f_i + S_ij + g_j}, with sum_j A_ij = 1 and sum_i w_i
    A_ij = w_j.

    Found by f <- (f - log sum_j w_j e^{S_ij + g_j}) / 2 and the same for g, from rows and columns
    at once, until the logarithms of all sums are right to 4 (8 + largest |S_ij|) epsilon of the
    dtype. With Q = K = I the error at least halves in each round near the end; with others some
    hundred rounds are usual. Weights that are not found within `rounds` (of logits beyond 50 or so,
    or under a mask that leaves no such matrix) are NaN, which every verb reports. Derivatives are
    those of the solution, not of the rounds. Source: arXiv 2110.11773.

    >>> SinkhornWeighing().rounds
    10000
    """

    cites: ClassVar[tuple[str, ...]] = ("sander2022sinkformers",)

    rounds: int = 10_000
    "the most times that rows and columns are normalised"

    def __check_init__(self) -> None:
        fits = 1 <= self.rounds <= 10_000
        require(fits, "SinkhornWeighing.rounds", "from 1 to 10,000", self.rounds)

    def weigh(self, logits: Logits, w: Weights) -> Rows:
        S = logits.sum

        def off(fg: Pair) -> Pair:
            """The logarithms of the sums of rows and of columns over what they should be."""
            f, g = fg
            return f + log_sum_exp(S + g, w), g + log_sum_exp(S.T + f, w)

        largest = jnp.max(jnp.where(jnp.isfinite(S), jnp.abs(S), 0))
        tolerance = jax.lax.stop_gradient(SLACK * jnp.finfo(S.dtype).eps * (8 + largest))

        def solve(off: Callable[[Pair], Pair], start: Pair) -> tuple[Pair, Scalar]:
            return self._relaxed(off, start, w, tolerance)

        def tangent_solve(linear: Callable[[Pair], Pair], y: Pair) -> Pair:
            def solve(linear: Callable[[Pair], Pair], y: Pair) -> Pair:
                def rest(z: Pair) -> Pair:
                    return jax.tree.map(jnp.subtract, linear(z), y)

                # as exact as the point at which the equations are linear
                return self._relaxed(rest, y, w, tolerance * _size(y, w))[0]

            return jax.lax.custom_linear_solve(linear, y, solve, solve)

        start = -0.5 * log_sum_exp(S, w), -0.5 * log_sum_exp(S.T, w)
        (_, g), left = jax.lax.custom_root(off, start, solve, tangent_solve, has_aux=True)
        # softmax of a NaN may be a number on a CPU, whose minima of NaN and a number are numbers
        return jnp.where(left <= tolerance, softmax(S + g, w), jnp.nan)

    def _relaxed(
        self, rest: Callable[[Pair], Pair], start: Pair, w: Weights, tolerance: Scalar
    ) -> tuple[Pair, Scalar]:
        """(z with rest(z) = 0 up to the tolerance, the size of rest(z)) by z <- z - rest(z) / 2."""

        def unsolved(now: tuple[Array, Pair, Pair]) -> Array:
            return (now[0] < self.rounds) & (_size(now[2], w) > tolerance)

        def round_(now: tuple[Array, Pair, Pair]) -> tuple[Array, Pair, Pair]:
            z = jax.tree.map(lambda z, left: z - 0.5 * left, now[1], now[2])
            return now[0] + 1, z, rest(z)

        first = jnp.zeros((), jnp.int32), start, rest(start)
        _, z, left = jax.lax.while_loop(unsolved, round_, first)
        return z, _size(left, w)

    def refusal(self, causal: bool, symmetric: bool) -> str | None:
        if symmetric:
            return None
        return (
            "a mask by which all see those who see them (the only doubly stochastic matrix below"
            " the diagonal is the identity)"
        )


def _size(pair: Pair, w: Weights) -> Scalar:
    """The largest absolute value at a token that counts."""
    f, g = pair
    return jnp.max(jnp.where(w > 0, jnp.maximum(jnp.abs(f), jnp.abs(g)), 0))
