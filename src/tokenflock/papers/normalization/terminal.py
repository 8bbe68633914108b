"""How the schemes end: exponentials, squares, and roots.

Random tokens in a hemisphere (n = 12, d = 4, beta = 2), which are not equiangular, are followed by
RK4 close to consensus. There A is the consensus direction up to what is small: Post-LN closes the
mean gap 1 - cosine like e^(-2t), nGPT like e^(-2 alpha t), square-root scaling like e^(-4 sqrt(t +
1)); under Pre-LN, Mix-LN and Peri-LN the radius grows like t and d log(gap)/dt = -2/r, so that the
gap falls like t^-2. Local exponents d log(gap)/d log t are taken at t = 400. An antipodal pair
under Pre-LN hears A = tanh(beta) theta and stays: its radius is r_0 + t tanh(beta).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock import simulate
from tokenflock.papers.normalization._schemes import SCHEMES, SWITCH, followed, law_of
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import RK4
from tokenflock.starts import Given, Hemisphere, Orthogonal
from tokenflock.theory import normalised_flow

SOURCE = "Terminal rates"
CAPTION = (
    "See the distance from consensus, the mean of 1 − cosine over pairs, fall along "
    "straight lines of slope −2 on the left (a power of depth), and as exponentials on the "
    "right."
)
            " small β), which is in no cone and never clusters",
        ),
        Claim(
            "antipodal-radius",
            f"its radius is r₀ + t tanh β = {said:.6f}, far below t",
            "derived here: A = tanh(β) θ",
            float(pair.radius[-1]),
            near(said, 1e-9),
        ),
    ]
