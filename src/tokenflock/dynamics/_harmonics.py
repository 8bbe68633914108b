"""The kernel e^{beta <x, y>} on the circle and on S^2 as a series, so that sums over all pairs cost
n and not n^2.

    e^{beta <x, y>} = sum_l lambda_l(beta, d) sum_m Y_lm(x) Y_lm(y)
    (Funk-Hecke, addition theorem)

Letters: Y_lm real harmonics of degree l, orthonormal for the uniform probability measure (on the
circle 1, sqrt 2 cos l theta, sqrt 2 sin l theta); lambda_l the eigenvalues of the kernel, I_l(beta)
on the circle. The harmonics are made degree by degree, in blocks of points, and never kept.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tokenflock.shapes import Array, Points, Scalar, Tokens, counted
from tokenflock.theory.kernel import log_kernel_eigenvalue

SHARPEST = 1e11  # beta, of which more than 300,000 degrees count
BLOCK = 1024  # points whose harmonics of one degree are held at once


def degrees(beta: float, tolerance: float) -> int:
    """The last degree that counts: beyond it sum_l (2l+1) |lambda_l| / lambda_0 is below the
    tolerance.

    (The count is that of S^2, which serves the circle too.) Where beta is so large that nobody can
    hold so many, sqrt(beta), which is fewer.

    >>> degrees(4.0, 1e-16), degrees(100.0, 1e-16)
    (23, 94)
    """
    if abs(beta) > SHARPEST:
        return int(np.sqrt(abs(beta)))
    count = 64 + int(12 * np.sqrt(abs(beta)))
    while True:
        l = np.arange(count)
        terms = (2 * l + 1) * np.exp(
            log_kernel_eigenvalue(l, beta, 3) - log_kernel_eigenvalue(0, beta, 3)
        )
        beyond = np.cumsum(terms[::-1])[::-1]  # this term and all later ones
        if terms[-1] <= tolerance / 1000:  # those that were not asked for are far smaller
            return max(1, int(np.argmax(beyond <= tolerance)) - 1)
        count *= 2


@partial(jax.jit, static_argnames=("d", "order"))
def ratios(beta: Scalar, d: int, order: int) -> Float[Array, " l"]:
    """lambda_l / lambda_0 for l = 0 ..

    Order, by the continued fraction of I_nu / I_(nu-1) from high orders down.
    """
    top = 2 * order + 20
    nu = np.arange(top, 0, -1) + d / 2 - 1
    start = jnp.zeros_like(beta)  # forgotten on the way down

    def down(above, nu):
        here = beta / (2 * nu + beta * above)
        return here, here

    _, steps = jax.lax.scan(down, start, jnp.asarray(nu, start.dtype))
    return jnp.concatenate([jnp.ones(1, start.dtype), jnp.cumprod(steps[::-1][:order])])


def sizes(d: int, order: int) -> np.ndarray:
    """How many harmonics there are of each degree."""
    l = np.arange(order + 1)
    return np.where(l == 0, 1, 2) if d == 2 else 2 * l + 1


@partial(jax.jit, static_argnames="order")
def moments(x: Tokens, s: Float[Array, "n k"], order: int) -> Float[Array, "l m k"]:
    """sum_j Y_lm(x_j) s_j for every degree l <= order."""
    blocks = _blocks(x, s)
    zero = jnp.zeros((order + 1, _width(x.shape[1], order), s.shape[1]), x.dtype)

    def add(total, block):
        x, s = block
        _, found = _by_degree(x, order, lambda total, l, Y: (total, Y @ s), 0)
        return total + found, None

    return jax.lax.scan(add, zero, blocks)[0]


def series(q: Points, coefficients: Float[Array, "l m k"]) -> Float[Array, "n k"]:
    """sum_lm Y_lm(q) coefficients_lm at every point."""
    order, k = coefficients.shape[0] - 1, coefficients.shape[2]
    (blocks,) = _blocks(q)
    zero = jnp.zeros((blocks.shape[1], k), q.dtype)

    def block(q):
        return _by_degree(
            q, order, lambda total, l, Y: (total + Y.T @ coefficients[l], None), zero
        )[0]

    return jax.lax.map(block, blocks).reshape(-1, k)[: q.shape[0]]


def _blocks(*arrays: Array) -> tuple[Array, ...]:
    """Rows in blocks of one size, the last one filled up with zeros."""
    n = arrays[0].shape[0]
    if not counted(n):  # one block
        return tuple(a[None] for a in arrays)
    size = min(BLOCK, n)
    count = -(-n // size)
    return tuple(
        jnp.pad(a, ((0, count * size - n), (0, 0))).reshape(count, size, -1) for a in arrays
    )


def _width(d: int, order: int) -> int:
    return 2 if d == 2 else 2 * (order + 1)


def _by_degree(x: Points, order: int, visit, start):
    """Scan over the degrees: visit(carry, l, Y) with the harmonics Y (m, n) of degree l; those that
    do not exist are zero.
    """
    return _circle(x, order, visit, start) if x.shape[1] == 2 else _sphere(x, order, visit, start)


def _turn(turning: Array, power: Array) -> Array:
    """(x + iy)^(m+1) from (x + iy)^m, real and imaginary part."""
    (x, y), (c, s) = turning, power
    return jnp.stack([c * x - s * y, c * y + s * x])


def _circle(x, order, visit, start):
    turning = x.T
    first = jnp.stack([jnp.ones_like(x[:, 0]), jnp.zeros_like(x[:, 0])])

    def step(carry, l):
        power, total = carry
        total, out = visit(total, l, jnp.where(l == 0, 1, jnp.sqrt(2)).astype(x.dtype) * power)
        return (_turn(turning, power), total), out

    (_, total), out = jax.lax.scan(step, (first, start), jnp.arange(order + 1))
    return total, out


def _sphere(x, order, visit, start):
    """Harmonics P_lm(z) Re, Im (x + iy)^m: P by its three-term recursion in l for all m at once,
    without poles.
    """
    n = x.shape[0]
    first = jnp.stack([jnp.ones(n, x.dtype), jnp.zeros(n, x.dtype)])
    turning = x[:, :2].T
    _, powers = jax.lax.scan(
        lambda power, _: (_turn(turning, power), power), first, None, length=order + 1
    )  # (m, 2, n)
    A, B, C = (jnp.asarray(table, x.dtype)[:, :, None] for table in _recursion(order))  # (l, m, 1)
    zero = jnp.zeros((order + 1, n), x.dtype)

    def step(carry, l):
        one, two, total = carry  # P_{l-1}, P_{l-2}
        P = A[l] * x[:, 2] * one - B[l] * two + C[l]
        total, out = visit(total, l, (P[:, None] * powers).reshape(-1, n))
        return (P, one, total), out

    (_, _, total), out = jax.lax.scan(step, (zero, zero, start), jnp.arange(order + 1))
    return total, out


def _recursion(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P_lm = A_lm z P_{l-1,m} - B_lm P_{l-2,m} + C_lm, C on the diagonal l = m only."""
    l, m = np.meshgrid(np.arange(order + 1.0), np.arange(order + 1.0), indexing="ij")
    with np.errstate(divide="ignore", invalid="ignore"):
        A = np.sqrt((2 * l - 1) * (2 * l + 1) / ((l - m) * (l + m)))
        B = np.sqrt((2 * l + 1) * (l + m - 1) * (l - m - 1) / ((l - m) * (l + m) * (2 * l - 3)))
        growth = np.sqrt((2 * l[:, 0] + 1) / (2 * l[:, 0]))
    growth[:2] = [1.0, np.sqrt(3.0)][: order + 1]
    return np.where(m < l, A, 0), np.where(m < l - 1, B, 0), np.diag(np.cumprod(growth))


@partial(jax.jit, static_argnames="order")
def kernel_sum(
    q: Points, x: Tokens, s: Float[Array, "n k"], beta: Scalar, order: int
) -> Float[Array, "m k"]:
    """sum_j e^{beta <q, x_j>} s_j / lambda_0 at every point q."""
    return series(q, ratios(beta, x.shape[1], order)[:, None, None] * moments(x, s, order))
