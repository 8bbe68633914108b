"""The six schemes: their laws, and their names in theory and in words."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock import simulate
from tokenflock.dynamics import NGPT, MixNorm, PeriNorm, PostNorm, PreNorm, SqrtNorm
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.solvers import RK4, Adaptive
from tokenflock.starts.start import Start

SCHEMES = {
    "post": "Post-LN",
    "pre": "Pre-LN",
    "mix": "Mix-LN",
    "peri": "Peri-LN",
    "ngpt": "nGPT",
    "sqrt": "square-root scaling",
}
SWITCH = 2.0  # of Mix-LN, from Post-LN to Pre-LN


def law_of(scheme: str, beta: float, alpha: float = 1.0) -> Dynamics:
    """The law of a scheme; alpha is the gain of nGPT."""
    if scheme == "mix":
        return MixNorm(beta=beta, tau=SWITCH)
    if scheme == "ngpt":
        return NGPT(beta=beta, alpha=alpha)
    kinds = {"post": PostNorm, "pre": PreNorm, "peri": PeriNorm, "sqrt": SqrtNorm}
    return kinds[scheme](beta=beta)


def followed(
    scheme: str, start: Start, beta: float, times: np.ndarray, h: float, alpha: float = 1.0
) -> xr.Dataset:
    """Mean 1 - cosine over pairs, its spread and the radii at these times.

    By RK4; Mix-LN, whose speed jumps, by adaptive steps.
    """
    law, solver = law_of(scheme, beta, alpha), Adaptive() if scheme == "mix" else RK4(h=h)
    run = simulate(law, start, t=times[-1], times=times, solver=solver, seed=0)
    x = run.x.values
    radius = np.linalg.norm(x, axis=-1)
    theta = x / radius[..., None]
    pairs = np.triu_indices(x.shape[1], 1)
    far = np.stack([((y[pairs[0]] - y[pairs[1]]) ** 2).sum(-1) / 2 for y in theta])
    return xr.Dataset(
        {
            "gap": ("time", far.mean(-1), {"long_name": "mean of 1 - cosine over pairs"}),
            "spread": ("time", far.max(-1) - far.min(-1)),
            "radius": ("time", radius.mean(-1)),
            "least_radius": ("time", radius.min(-1)),
        },
        coords={"time": run.time.values},
    )
