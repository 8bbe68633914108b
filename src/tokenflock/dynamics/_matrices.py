"""Matrices as parameters: absent (the identity), a number, an array, or a path in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tokenflock.errors import require
from tokenflock.frozen import Frozen, concrete
from tokenflock.shapes import Array, Time

Path = Callable[[Any], Any]
L = TypeVar("L", bound=Frozen)
Matrix = Any  # None (identity) | float (multiple of it) | (m, d) array | t -> (m, d) array


def at(M: Matrix, t: Time) -> Matrix:
    """The matrix at time t."""
    return M(t) if callable(M) else M


def act(M: Matrix, x: Float[Array, "*n d"], t: Time = 0.0) -> Float[Array, "*n m"]:
    """M x for each row x; the identity where M is None."""
    M = at(M, t)
    if M is None:
        return x
    return M * x if jnp.ndim(M) == 0 else x @ M.T


def multiple_of_identity(*matrices: Matrix) -> bool:
    """Whether each matrix is a number times the identity, and so commutes with rotations."""
    numbers = [M is None or isinstance(M, Switching) or not callable(M) for M in matrices]
    return all(numbers) and all(shape_of(M) == () for M in matrices)


def positive_multiple(M: Matrix) -> bool:
    """Whether a matrix is surely the identity or a positive multiple of it."""
    return M is None or (isinstance(M, float) and M > 0)


def shape_of(M: Matrix) -> tuple[int, ...]:
    """The shape of a matrix at any one time; empty for a multiple of the identity."""
    if isinstance(M, Switching):
        return np.shape(M.values)[1:]
    value = at(M, 0.0)
    return () if value is None else np.shape(value)


def width(*matrices: Matrix) -> int | None:
    """The dimension d that these matrices act on, or None if any will do."""
    return next((shape[-1] for shape in map(shape_of, matrices) if shape), None)


def period_of(t: Time, period: float | None) -> Any:
    """The number of the period that a time is in, from 0.

    A time that is k periods up to rounding is in period k.
    """
    if period is None:
        return 0
    passed = jnp.asarray(t) / period
    return jnp.floor(passed * (1 + 8 * jnp.finfo(passed.dtype).eps) + 1e-6).astype(int)


def check_attention(name: str, Q: Matrix, K: Matrix, V: Matrix, heads: bool = False) -> None:
    """Refuse matrices that do not fit each other: Q and K are (m, d) with one m, V is (d, d)."""
    lead = 1 if heads else 0
    shapes = {
        letter: np.shape(M.values)[1:] if isinstance(M, Switching) else np.shape(M)
        for letter, M in (("Q", Q), ("K", K), ("V", V))
        if M is not None and concrete(M) and (isinstance(M, Switching) or not callable(M))
    }
    shapes = {letter: shape for letter, shape in shapes.items() if shape}
    form = "(heads, m, d)" if heads else "(m, d)"
    for letter, shape in shapes.items():
        require(
            len(shape) == 2 + lead,
            f"{name}.{letter}",
            f"a matrix of shape {form}",
            f"shape {shape}",
        )
    if heads:
        counts = {shape[0] for shape in shapes.values()}
        require(
            len(counts) <= 1,
            f"{name}: Q, K, V",
            "arrays with one number of heads",
            f"{sorted(counts)} heads",
        )
    if "V" in shapes:
        rows, columns = shapes["V"][-2:]
        require(rows == columns, f"{name}.V", "square, (d, d)", f"shape {shapes['V']}")
    columns = {letter: shape[-1] for letter, shape in shapes.items()}
    require(
        len(set(columns.values())) <= 1,
        f"{name}: Q, K, V",
        "matrices on one R^d",
        f"widths {columns}",
    )
    if {"Q", "K"} <= shapes.keys():
        same = shapes["Q"][:-1] == shapes["K"][:-1]
        require(same, f"{name}: Q and K", "of one shape (m, d)", f"{shapes['Q']} and {shapes['K']}")
    elif {"Q", "K"} & shapes.keys():
        letter = "Q" if "Q" in shapes else "K"
        rows, d = shapes[letter][-2:]
        require(
            rows == d,
            f"{name}.{letter}",
            "square when the other of Q, K is the identity",
            f"shape {shapes[letter]}",
        )


def replaced(law: L, Q: Matrix, V: Matrix) -> L:
    """A law with other matrices in its fields Q, K = I and V."""
    return eqx.tree_at(
        lambda law: (law.Q, law.K, law.V), law, (Q, None, V), is_leaf=lambda leaf: leaf is None
    )


def identities(Q: Matrix) -> Matrix:
    """A stack of identities of the shape of Q at one time."""
    *heads, _, d = shape_of(Q)
    return jnp.broadcast_to(jnp.eye(d), (*heads, d, d))


class Switching(Frozen):
    """What is constant on periods of time: values[k] for k period <= t < (k+1) period, the last one
    for ever.

    With the layer map of step h and period h, every layer has its own matrix. Values are numbers,
    matrices (m, d), or stacks of them (heads, m, d).

    >>> float(Switching([1.0, 4.0], period=0.5)(0.7))
    4.0
    """

    values: Array
    "in turn: (periods,), (periods, m, d) or (periods, heads, m, d)"
    period: float = 1.0
    "how long each one acts"

    def __check_init__(self) -> None:
        if concrete(self.values):
            require(
                np.ndim(self.values) in (1, 2, 3, 4),
                "Switching.values",
                "of shape (periods,), (periods, m, d) or (periods, heads, m, d)",
                np.shape(self.values),
            )
        if concrete(self.period):
            require(self.period > 0, "Switching.period", "positive", self.period)

    def __call__(self, t: Time) -> Float[Array, "..."]:
        values = jnp.asarray(self.values)
        return values[jnp.clip(period_of(t, self.period), 0, values.shape[0] - 1)]
