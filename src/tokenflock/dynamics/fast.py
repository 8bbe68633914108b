"""Self-attention of very many tokens on the circle and on S^2, by the series of its kernel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, cast

import jax.numpy as jnp

from tokenflock.dynamics._harmonics import degrees, kernel_sum, moments, ratios, sizes
from tokenflock.dynamics.dynamics import Around, GradientFlow, MeanField
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.dynamics.unnormalised import Unnormalised
from tokenflock.errors import require
from tokenflock.frozen import concrete
from tokenflock.shapes import Points, Rows, Scalar, Time, Tokens, Weights

# times rounding: a Z below it is noise, at a token that weighs nothing and is far from all others
FLOOR = 1e-3
MOST = 100_000  # degrees of the series

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Fast(Around, MeanField, GradientFlow):
    """SA or USA of very many tokens on the circle or S^2: the same field by the series of its
    kernel, n terms and not n^2.

        sum_j w_j e^{beta <q, x_j>} x_j = sum_l lambda_l sum_m Y_lm(q) ( sum_j w_j Y_lm(x_j) x_j ),
        l <= order

    On the circle this is the Bessel series, O(n K); on S^2 O(n L^2). The order K or L comes from
    beta and the tolerance, about sqrt(2 beta log(1/tolerance)). Sums are exact to rounding of the
    mean kernel lambda_0, so SA, divided by Z, agrees with the direct sum to 1e-10 where Z is above
    1e-6 lambda_0: at every token of weight 1e-6 or more. Should beta be swept beyond what the order
    serves, the field is NaN, which every verb reports. Source: (7.1) of arXiv 2312.10794;
    Funk-Hecke.

    >>> Fast(SelfAttention(beta=4.0)).order
    23
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective",)
    on_chip: ClassVar[bool] = False  # it is for systems that do not fit there

    base: MeanField = SelfAttention()
    "the law to evaluate, SelfAttention or Unnormalised"
    tolerance: float = 1e-16
    "what the series leaves out, against the mean of the kernel"
    order: int = 0
    "degrees of the series; 0: as many as beta and the tolerance ask for"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (
            self.order == 0
            and isinstance(self.base, (SelfAttention, Unnormalised))
            and concrete(self.base.beta)
            and _sensible(self.tolerance)
        ):
            object.__setattr__(self, "order", degrees(self.base.beta, self.tolerance))

    def __check_init__(self) -> None:
        fits = isinstance(self.base, (SelfAttention, Unnormalised))
        require(
            fits,
            "Fast.base",
            "SelfAttention or Unnormalised",
            type(self.base).__name__,
            "for others use Streamed",
        )
        if concrete(self.tolerance):
            require(
                _sensible(self.tolerance),
                "tolerance",
                "from 1e-30 to below 1",
                self.tolerance,
                "write e.g. tolerance=1e-12",
            )
        require(1 <= self.order <= MOST, "order", f"from 1 to {MOST:,}", self.order)

    @property
    def direct(self) -> SelfAttention | Unnormalised:
        """The law whose sums are made fast."""
        return cast("SelfAttention | Unnormalised", self.base)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        values = jnp.concatenate([jnp.ones_like(x[:, :1]), self.direct.values(t, x)], axis=1)
        sums = self._sums(q, x, w[:, None] * values)
        Z, total = sums[:, :1], sums[:, 1:]
        if isinstance(self.base, Unnormalised):
            return self._mean(x, self.base.shift) * total
        return total / jnp.maximum(Z, FLOOR * jnp.finfo(x.dtype).eps)

    def attention(self, t: Time, q: Points, x: Tokens, w: Weights) -> Rows:
        return self.base.attention(t, q, x, w)

    def energy(self, x: Tokens, w: Weights) -> Scalar:
        """E_beta = (lambda_0 / 2 beta) sum_l (lambda_l / lambda_0) sum_m ( sum_j w_j Y_lm(x_j) )^2.

        Its limit at beta = 0.
        """
        self._check(x)
        beta = jnp.asarray(self.direct.beta, x.dtype)
        square = jnp.sum(moments(x, w[:, None], self.order) ** 2, axis=(1, 2))
        flat = beta == 0
        whole = self._mean(x) / (2 * jnp.where(flat, 1, beta)) * jnp.sum(self._ratios(x) * square)
        return jnp.where(flat, 0.5 * square[1] / x.shape[1], whole)

    def metric(self, x: Tokens, w: Weights) -> Weights:
        if isinstance(self.base, Unnormalised):
            return self.base.metric(x, w)
        return w * self._mean(x) * self._sums(x, x, w[:, None])[:, 0]

    def _sums(self, q: Points, x: Tokens, s) -> Points:
        """sum_j e^{beta <q, x_j>} s_j / lambda_0."""
        self._check(x)
        return self._served(x) * kernel_sum(
            q, x, s, jnp.asarray(self.direct.beta, x.dtype), self.order
        )

    def _check(self, x: Tokens) -> None:
        self.check_dimension(x.shape[1])

    @staticmethod
    def check_dimension(d: int) -> None:
        """Refuse tokens that lie neither on the circle nor on S^2."""
        require(d in (2, 3), "d", "2 or 3 for fast sums", d, "use Streamed()")

    def _ratios(self, x: Tokens):
        return ratios(jnp.asarray(self.direct.beta, x.dtype), x.shape[1], self.order)

    def _mean(self, x: Tokens, shift: float = 0.0) -> Scalar:
        """lambda_0 e^{-beta shift}: the series of the kernel at equal points sums to e^{|beta|}."""
        count = jnp.asarray(sizes(x.shape[1], self.order), x.dtype)
        peak = jnp.exp(jnp.abs(self.direct.beta) - self.direct.beta * shift)
        return peak / jnp.sum(count * jnp.abs(self._ratios(x)))

    def _served(self, x: Tokens) -> Scalar:
        """1 where the order is enough for beta, else NaN."""
        last = jnp.abs(ratios(jnp.asarray(self.direct.beta, x.dtype), 3, self.order + 1)[-1]) * (
            2 * self.order + 3
        )
        return jnp.where(last <= 10 * self.tolerance, 1.0, math.nan).astype(x.dtype)

    @property
    def ascends(self) -> bool:
        return self.direct.ascends

    @property
    def keeps_cones(self) -> bool:
        return self.base.keeps_cones

    def as_block(self) -> Block:
        return self.base.as_block()

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Fast:
        return cls(Unnormalised(beta=1.5))


def _sensible(tolerance: float) -> bool:
    """Whether a series can be cut there."""
    return 1e-30 <= tolerance < 1
