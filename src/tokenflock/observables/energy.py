"""The interaction energy, in each of the conventions in use."""

from __future__ import annotations

import enum
from typing import ClassVar

import jax.numpy as jnp

from tokenflock.dynamics._kernels import log_sum_exp
from tokenflock.dynamics.dynamics import Dynamics, Interaction
from tokenflock.errors import UserError
from tokenflock.observables.observable import Observable, in_strips, needed
from tokenflock.shapes import Array, Scalar, Tokens, Weights


class Convention(enum.Enum):
    """Names for the energies of the papers: all are a factor times M = sum_ij w_i w_j e^{beta <x_i,
    D x_j>}.

    Their values at consensus (D = I) are in brackets.
    """

    PAPER = "paper"  # M / (2 beta)               [e^beta / (2 beta)]   arXiv 2312.10794, (3.5)
    SUM = "sum"  # n^2 M / (2 beta)               [n^2 e^beta / (2 beta)]   the same, section 3.4.1
    METASTABLE = "metastable"  # e^{-beta} M / (2 beta)   [1 / (2 beta)]   arXiv 2410.06833
    STAIRCASE = "staircase"  # e^{-beta} M        [1]   the same, staircase plots
    BURGER = "burger"  # M                        [e^beta]   arXiv 2501.03096
    NORMALISATION = "normalisation"  # -n^2 M     [-n^2 e^beta]   arXiv 2510.22026, where it falls

    def log_factor(self, beta: Scalar, w: Weights) -> Scalar:
        """log of the absolute value of the factor before M."""
        pairs = 2 * jnp.log(jnp.sum(w > 0).astype(w.dtype))
        half = -jnp.log(2.0) - jnp.log(jnp.abs(beta))  # 2 beta may overflow
        return {
            "paper": half,
            "sum": half + pairs,
            "metastable": half - beta,
            "staircase": -beta,
            "burger": jnp.zeros_like(beta),
            "normalisation": pairs,
        }[self.value]

    @property
    def has_half(self) -> bool:
        """Whether it has the factor 1/(2 beta).

        At beta = 0 its limit without the constant 1/(2 beta) is meant.
        """
        return self.value in ("paper", "sum", "metastable")

    def sign(self, beta: Scalar) -> Scalar:
        """Its sign: the energies with 1/(2 beta) change sign with beta, and one is minimised."""
        if self is Convention.NORMALISATION:
            return -jnp.ones_like(beta)
        return jnp.sign(beta) if self.has_half else jnp.ones_like(beta)


class Energy(Observable):
    """Interaction energy, a factor times sum_ij w_i w_j e^{beta <x_i, D x_j>}, in a named
    convention.

    `paper` is E_beta = (1/2 beta) sum_ij w_i w_j e^{beta <x_i, x_j>}, (3.5) of arXiv 2312.10794;
    `staircase` is 1 at consensus. The sum is taken in the log domain; with `log`, so is the result,
    and no beta overflows. beta and D come from the dynamics unless given.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[1.0, 0.0], [1.0, 0.0]])
    >>> round(float(Energy(beta=1.0).measure(x, jnp.full(2, 0.5))), 4)  # e/2
    1.3591
    """

    strips: ClassVar[bool] = True

    beta: float | None = None
    "inverse temperature; that of the dynamics unless given"
    convention: Convention = Convention.PAPER
    "paper, sum, metastable, staircase, burger or normalisation"
    log: bool = False
    "the logarithm of its absolute value instead"
    D: Array | None = None
    "symmetric matrix in the exponent; the identity unless given"

    @property
    def isotropic(self) -> bool:
        return self.D is None

    @property
    def name(self) -> str:
        return "log_energy" if self.log else "energy"

    @property
    def label(self) -> str:
        return ("log energy" if self.log else "energy") + f" ({self.convention.value})"

    def bind(self, dynamics: Dynamics) -> Energy:
        if self.beta is not None:
            return self
        pair = dynamics.interaction or Interaction(dynamics.inverse_temperature)
        D = self.D if self.D is not None else pair.D
        beta = 1.0 if pair.beta is None and D is not None else pair.beta
        if beta is None:
            raise UserError(
                f"Energy needs a beta: {type(dynamics).__name__} has none; write Energy(beta=...)"
            )
        return Energy(beta, self.convention, self.log, D)

    @property
    def needs_law(self) -> bool:
        return self.beta is None

    def measure(self, x: Tokens, w: Weights) -> Scalar:
        y = x if self.D is None else x @ self.D
        return self._of_rows(*self._by_row(y, x, w), w)

    def by_strips(self, x: Tokens, w: Weights) -> Scalar:
        y = x if self.D is None else x @ self.D
        rows = in_strips(lambda strip, _: jnp.stack(self._by_row(strip, x, w), axis=1), y)
        return self._of_rows(rows[:, 0], rows[:, 1], w)

    def _by_row(self, y: Tokens, x: Tokens, w: Weights) -> tuple[Array, Array]:
        """(log sum_j w_j e^{beta <y_i, x_j>}, sum_j w_j <y_i, x_j>) of each row of y."""
        G = y @ x.T
        return log_sum_exp(self._safe(x) * G, w), jnp.sum(w * G, axis=1)

    def _safe(self, x: Tokens) -> Scalar:
        """beta, or 1 where the limit beta = 0 is meant."""
        beta = jnp.asarray(needed(self.beta, self, "beta"), x.dtype)
        return jnp.where((beta == 0) & self.convention.has_half, 1, beta)

    def _of_rows(self, logs: Array, sums: Array, w: Weights) -> Scalar:
        flat = (jnp.asarray(self.beta, w.dtype) == 0) & self.convention.has_half
        safe = self._safe(sums)
        logs = self.convention.log_factor(safe, w) + log_sum_exp(logs[None], w)[0]
        many = jnp.sum(w > 0) ** 2 if self.convention is Convention.SUM else 1
        limit = 0.5 * jnp.sum(w * sums) * many
        if self.log:
            return jnp.where(flat, jnp.log(jnp.abs(limit)), logs)
        return jnp.where(flat, limit, self.convention.sign(safe) * jnp.exp(logs))
