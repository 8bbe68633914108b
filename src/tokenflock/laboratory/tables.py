"""Numbers of theory for a page, tabulated by the library: bounds of the energy, and the cosine of
orthogonal tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenflock.theory import (
    dirac_energy,
    equiangular_cosine,
    layer_cosines,
    polygon_growth,
    uniform_energy,
)

BETAS = np.round(np.concatenate([np.arange(0.05, 2, 0.05), np.arange(2, 16.01, 0.1)]), 10)
CURVES = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 9.0)
COUNT = 32  # tokens for which the curve is tabulated
CORNERS = range(2, 9)  # clusters on the circle
STEP = 0.1
STEPS = 300


def energies(d: int) -> dict[str, Any]:
    """The logarithm of the energy of uniform tokens and of one point, over beta."""
    betas = BETAS.tolist()
    return {
        "uniform": {"beta": betas, "log": _short(np.log(uniform_energy(BETAS, d)))},
        "dirac": {"beta": betas, "log": _short(np.log(dirac_energy(BETAS)))},
    }


def polygons() -> dict[str, Any]:
    """The logarithm of the fastest growth rate about equal clusters at the corners of a regular
    polygon on the circle, over beta, for each number of them.
    """
    rates = {str(n): polygon_growth(n, BETAS) for n in CORNERS}
    return {n: {"beta": BETAS.tolist(), "log": _short(np.log(rate))} for n, rate in rates.items()}


def cosines() -> dict[str, Any]:
    """The common cosine of n orthogonal tokens in time: of the flow and of the layer map."""
    times = np.arange(STEPS + 1) * STEP
    thin = np.unique(np.concatenate([np.arange(0, 40), np.arange(40, STEPS + 1, 5)]))
    beta = np.array(CURVES)[:, None]
    flow = equiangular_cosine(times[None, thin], n=COUNT, beta=beta)
    layers = [layer_cosines(thin, n=COUNT, beta=each, h=STEP) for each in CURVES]
    return {
        "n": COUNT,
        "h": STEP,
        "beta": list(CURVES),
        "time": _short(times[thin]),
        "flow": [_short(row) for row in np.asarray(flow)],
        "layer": [_short(row) for row in layers],
    }


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.7g}") for value in np.asarray(values)]
