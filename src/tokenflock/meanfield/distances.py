"""Wasserstein distances between measures on the circle and on spheres (POT)."""

from __future__ import annotations

import enum
import math

import numpy as np
import xarray as xr

from tokenflock.errors import require
from tokenflock.frozen import choice
from tokenflock.meanfield.measures import weighted_points
from tokenflock.meanfield.potential import Numbers, symmetric


class Ground(enum.Enum):
    """How far apart two points are."""

    GEODESIC = "geodesic"  # the angle between them
    CHORDAL = "chordal"  # |x - y|


def wasserstein(
    a: xr.Dataset | Numbers,
    b: xr.Dataset | Numbers,
    p: int = 2,
    *,
    w_a: Numbers | None = None,
    w_b: Numbers | None = None,
    ground: Ground = Ground.GEODESIC,
) -> float:
    """The Wasserstein distance of order p between two measures.

        W_p(a, b)^p = min over couplings of int dist(x, y)^p

    a, b: tokens (n, d) with weights, or results of `simulate` or, on the circle, `evolve` (their
    last frames). On the circle with the angle as distance the exact algorithm for the circle is
    used, else the exact linear programme (up to a few thousand tokens). Source: Remark 3.3 of arXiv
    2312.10794 is a statement about W_1; POT: Flamary et al., JMLR 22 (2021).

    >>> east, north = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    >>> round(wasserstein(east, north), 6)  # pi / 2
    1.570796
    """
    import ot

    require(p in (1, 2), "p", "1 or 2", p)
    ground = choice(Ground, ground, "ground")
    (x, u), (y, v) = weighted_points(a, w_a), weighted_points(b, w_b)
    require(
        x.shape[1] == y.shape[1], "b", f"a measure in d = {x.shape[1]}, like a", f"d = {y.shape[1]}"
    )
    if x.shape[1] == 2 and ground is Ground.GEODESIC:
        cost = (
            2
            * np.pi
            * np.asarray(ot.wasserstein_circle(_turns(x), _turns(y), u, v, p=p)) ** (1 / p)
        )
        return float(cost.squeeze())
    cost = ot.emd2(u, v, distance(x, y, ground) ** p, numItermax=10_000_000)
    return float(np.asarray(cost) ** (1 / p))


def distance(x: Numbers, y: Numbers, ground: Ground = Ground.GEODESIC) -> Numbers:
    """All distances between points x and points y."""
    ground = choice(Ground, ground, "ground")
    chord = np.sqrt(np.maximum(np.sum((x[:, None] - y[None]) ** 2, axis=-1), 0))
    return chord if ground is Ground.CHORDAL else 2 * np.arcsin(np.minimum(chord / 2, 1))


def weighted_bounds(W2: float, D: Numbers) -> tuple[float, float]:
    """Bounds on the distance W_{m,2} in which SA with the matrix D is a gradient flow, from the
    Wasserstein distance W_2.

        e^{-|D|/2} W_2 <= W_{m,2} <= e^{|D|/2} W_2,   |D| the largest absolute eigenvalue

    since the mobility 1 / int e^{<x, D y>} dmu lies between e^{-|D|} and e^{|D|}. Source: arXiv
    2501.03096.

    >>> tuple(round(bound, 6) for bound in weighted_bounds(1.0, np.eye(2)))
    (0.606531, 1.648721)
    """
    fine = math.isfinite(W2) and W2 >= 0
    require(fine, "W2", "a distance, 0 or more and finite", W2)
    half = float(np.abs(np.linalg.eigvalsh(symmetric(D))).max()) / 2
    return float(W2 * np.exp(-half)), float(W2 * np.exp(half))


def _turns(x: Numbers) -> Numbers:
    """Angles in units of the whole circle, in [0, 1)."""
    return np.mod(np.arctan2(x[:, 1], x[:, 0]) / (2 * np.pi), 1.0)
