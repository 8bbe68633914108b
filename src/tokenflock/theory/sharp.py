"""Energies of resting states: sharp configurations under repulsion, plateaus under attraction."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._check import Numbers, nonzero, real, refuse, whole, within
from .polygon import MOST


def simplex_energy(n: ArrayLike = 4, beta: ArrayLike = 1.0) -> Numbers:
    """Energy of n tokens at the corners of a regular simplex, the minimum for n <= d + 1.

        E = (e^beta + (n-1) e^(-beta/(n-1))) / (2 beta n)

    Source: arXiv 2312.10794, Section 9.1, Theorem 9.2 (Cohn and Kumar: sharp configurations
    minimise), with the energy of (7.4), (1/(2 beta n^2)) sum_ij e^(beta<x_i,x_j>).

    >>> from tokenflock.theory import simplex_energy
    >>> print(f"{simplex_energy(4, 2.0):.10f}")
    0.5580817160
    """
    n, beta = whole("n", n, 2, "4"), nonzero("beta", beta)
    return ((np.exp(beta) + (n - 1) * np.exp(-beta / (n - 1))) / (2 * beta * n))[()]


def cross_polytope_energy(d: ArrayLike = 3, beta: ArrayLike = 1.0) -> Numbers:
    """Energy of n = 2d tokens at +- the coordinate axes (octahedron for d = 3).

        E = (e^beta + n - 2 + e^(-beta)) / (2 beta n),   n = 2d

    Source: arXiv 2312.10794, Section 9.1, Theorem 9.2.

    >>> from tokenflock.theory import cross_polytope_energy
    >>> print(f"{cross_polytope_energy(3, 2.0):.10f}")
    0.4801829743
    """
    d, beta = whole("d", d, 1, "3"), nonzero("beta", beta)
    return ((2 * np.cosh(beta) + 2 * d - 2) / (4 * beta * d))[()]


def icosahedron_energy(beta: ArrayLike = 1.0) -> Numbers:
    """Energy of 12 tokens at the corners of an icosahedron (d = 3).

        E = (e^beta + 5 e^(beta/sqrt 5) + 5 e^(-beta/sqrt 5) + e^(-beta)) / (24 beta)

    Source: arXiv 2312.10794, Section 9.1, Theorem 9.2.

    >>> from tokenflock.theory import icosahedron_energy
    >>> print(f"{icosahedron_energy(2.0):.10f}")
    0.4541306595
    """
    beta = nonzero("beta", beta)
    return ((2 * np.cosh(beta) + 10 * np.cosh(beta / np.sqrt(5))) / (24 * beta))[()]


def polygon_energy(n: ArrayLike = 5, beta: ArrayLike = 1.0) -> Numbers:
    """Energy of n tokens at the corners of a regular polygon, the minimum on the circle.

        E = sum_(m=0)^(n-1) e^(beta cos(2 pi m/n)) / (2 beta n)

    Source: arXiv 2312.10794, (7.4) and Section 9.1.

    >>> from tokenflock.theory import polygon_energy
    >>> print(f"{polygon_energy(5, 2.0):.10f}")
    0.5748093161
    """
    n, beta = np.broadcast_arrays(whole("n", n, 1, "5"), nonzero("beta", beta))
    if n.max(initial=1) * max(1, n.size) > MOST:
        refuse("n", f"such that all corners together are at most {MOST:,}", n.max(), "5")
    m = np.arange(int(n.max(initial=1)))
    terms = np.exp(beta[..., None] * np.cos(2 * np.pi * m / n[..., None]))
    return (np.where(m < n[..., None], terms, 0.0).sum(-1) / (2 * beta * n))[()]


def plateau_energy(
    masses: ArrayLike = (0.5, 0.5), beta: ArrayLike = np.inf, cosine: ArrayLike = 0.0
) -> Numbers:
    """Normalised energy of separated clusters: the height of a plateau of the staircase.

        sum_a m_a^2 + sum_(a != b) m_a m_b e^(beta (cos_ab - 1))

    Letters: m_a the masses (last axis of `masses`, summing to one), cos_ab the cosine between
    clusters a and b: one number for all pairs, or a matrix. 1 at consensus, sum m_a^2 in the limit
    beta = inf.

    Source: arXiv 2410.06833, energy n^-2 sum_ij e^(beta(<x_i,x_j> - 1)), which is 2 beta times the
    printed one.

    >>> from tokenflock.theory import plateau_energy
    >>> print(f"{plateau_energy([0.4, 0.6]):.2f}")
    0.52
    """
    masses, beta = within("masses", masses, 0, 1, "[0.5, 0.5]"), real("beta", beta)
    if masses.ndim == 0 or not np.allclose(masses.sum(-1), 1, rtol=0, atol=1e-9):
        refuse("masses", "numbers that sum to one along the last axis", masses, "[0.5, 0.5]")
    cosine, count = within("cosine", cosine, -1, 1, "0.0"), masses.shape[-1]
    if cosine.ndim and cosine.shape[-2:] != (count, count):
        refuse("cosine", f"one number, or a {count} x {count} matrix", cosine, "0.0")
    same = np.eye(masses.shape[-1], dtype=bool)
    distance = np.where(same, 0.0, 1 - cosine)
    exponent = np.where(
        distance > 0, beta[..., None, None] * np.where(distance > 0, distance, 1.0), 0.0
    )
    return np.einsum("...a,...ab,...b->...", masses, np.exp(-exponent), masses)[()]
