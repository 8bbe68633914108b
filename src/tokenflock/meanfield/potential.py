"""The energy of a symmetric matrix D, its potential and its gradient, in plain arrays.

    E(mu) = int int e^{<x, D y>} dmu dmu,   V_mu(x) = int e^{<x, D y>} dmu(y),   E = int V_mu dmu

The same energy as that of `dynamics.Burger`, whose flow it is (a test holds them together).
Optimisers call it thousands of times on arrays of one size, where compiling would cost more than it
gains. Source: arXiv 2501.03096.
"""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokenflock.errors import require
from tokenflock.spaces.sphere import Sphere

Numbers = NDArray[np.float64]
LARGEST = 300.0  # of the eigenvalues of D: the square of e^300 is still a number


class Goal(enum.Enum):
    """Which measures are wanted."""

    MINIMISE = "minimise"
    MAXIMISE = "maximise"

    @property
    def sign(self) -> float:
        """+1 where the energy is to fall, -1 where it is to grow: sign E is minimised."""
        return 1.0 if self is Goal.MINIMISE else -1.0


def symmetric(D: ArrayLike) -> Numbers:
    """D as an array, or an error."""
    D = np.asarray(D, dtype=np.float64)
    fits = (
        D.ndim == 2
        and D.shape[0] == D.shape[1]
        and len(D) >= 2
        and bool(np.isfinite(D).all())
        and np.allclose(D, D.T)
    )
    require(
        fits,
        "D",
        "a symmetric matrix (d, d)",
        f"an array of shape {D.shape}",
        "write e.g. D=np.diag([1.0, 0.25])",
    )
    size = float(np.linalg.norm(D, 2))
    largest = f"of eigenvalues up to {LARGEST:g}, beyond which its exponentials are no numbers"
    require(size <= LARGEST, "D", largest, f"{size:.3g}")
    return D


def on_sphere(y: Numbers) -> Numbers:
    """y / |y|, row by row."""
    return y / np.linalg.norm(y, axis=-1, keepdims=True)


def points_on_sphere(argument: str, x: Numbers) -> Numbers:
    """Given rows divided by their lengths, of any size but zero."""
    nonzero = bool((x != 0).any(axis=-1).all())
    require(nonzero, argument, "points other than the origin", "a row of zeros")
    return on_sphere(Sphere().admit(x))


def potential(q: Numbers, x: Numbers, w: Numbers, D: Numbers) -> Numbers:
    """V_mu at points q, for mu = sum_j w_j delta_{x_j}."""
    return np.exp(q @ D @ x.T) @ w


def energy_and_gradient(x: Numbers, D: Numbers) -> tuple[float, Numbers]:
    """E of equal tokens x (n, d), and n times its Riemannian gradient: 2 P_{x_i} ( (1/n) sum_j
    e^{<x_i, D x_j>} D x_j ).
    """
    n = len(x)
    Dx = x @ D
    K = np.exp(Dx @ x.T)
    G = (2 / n) * (K @ Dx)
    return float(K.mean()), G - np.sum(G * x, axis=1, keepdims=True) * x
