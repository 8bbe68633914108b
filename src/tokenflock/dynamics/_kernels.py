"""The three sums that every member of the attention family is made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from tokenflock.shapes import Array, Rows, Scalar, Weights

CEILING = 60.0  # caps exp at tokens of weight zero, which may lie above the maximum over the others


_GENTLE: ContextVar[bool] = ContextVar("gentle", default=False)


@contextmanager
def gentle(known: bool) -> Iterator[None]:
    """Scope in which it is known that no logit is large and that every row sees a token: no need
    to take the largest logit off.
    """
    before = _GENTLE.set(known)
    try:
        yield
    finally:
        _GENTLE.reset(before)


def softmax(S: Rows, w: Weights) -> Rows:
    """A_ij = w_j e^{S_ij} / sum_k w_k e^{S_ik}, for logits of any size.

    Only the maximum is masked by w > 0 (and held constant for derivatives); the exponentials are
    not, so that derivatives with respect to weights are right even at weight zero (of a logit that
    lies more than 60 above the maximum, as if it were 60 above). A row that sees no token of
    positive weight is zero.
    """
    E, Z = exponentials(S, w)
    return E / Z


def exponentials(S: Rows, w: Weights) -> tuple[Rows, Float[Array, "m 1"]]:
    """(E, Z) with softmax = E / Z: whoever multiplies E by a matrix divides afterwards, which is
    less to divide.

    Z is 1 for a row that sees no token. Logits so large that their differences are lost (beyond
    1e17) leave Z = 0 and so give NaN, which every verb reports: a wrong velocity would be worse.
    """
    if _GENTLE.get():
        E = w * jnp.exp(S)
        return E, jnp.sum(E, axis=-1, keepdims=True)
    top, sees = _top(S, w)
    E = w * jnp.exp(jnp.minimum(S - top, CEILING))
    return E, jnp.where(sees, jnp.sum(E, axis=-1, keepdims=True), 1)


def log_sum_exp(S: Rows, w: Weights) -> Float[Array, " m"]:
    """log sum_j w_j e^{S_ij}, without overflow."""
    top, _ = _top(S, w)
    return top[..., 0] + jnp.log(jnp.sum(w * jnp.exp(jnp.minimum(S - top, CEILING)), axis=-1))


def _top(S: Rows, w: Weights) -> tuple[Float[Array, "m 1"], Bool[Array, "m 1"]]:
    """(the largest logit among tokens that count, as a constant; whether there is such a token)."""
    top = jnp.max(jnp.where(w > 0, S, -jnp.inf), axis=-1, keepdims=True)
    sees = top > -jnp.inf
    return jax.lax.stop_gradient(jnp.where(sees, top, 0)), sees


def interaction_energy(G: Rows, w: Weights, beta: Scalar) -> Scalar:
    """E = (1/2 beta) sum_ij w_i w_j e^{beta G_ij} for inner products G; at beta = 0 its limit
    without the constant.

    Print: (3.5) of arXiv 2312.10794. The maximum over the sphere is e^beta / (2 beta).
    """
    flat = beta == 0
    safe = jnp.where(flat, 1, beta)
    pairs = w[:, None] * w
    return jnp.where(
        flat, 0.5 * jnp.sum(pairs * G), 0.5 * jnp.sum(pairs * jnp.exp(beta * G)) / safe
    )
