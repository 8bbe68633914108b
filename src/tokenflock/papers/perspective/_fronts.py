"""Where a pair density passes a level, by linear interpolation."""

from __future__ import annotations

import numpy as np
import xarray as xr


def front_in_time(part: xr.Dataset, level: float = 0.5) -> np.ndarray:
    """For each beta the time at which the pair density rises to a level; nan where it does not."""
    time = part.time.values

    def crossing(p: np.ndarray) -> float:
        k = int(np.argmax(p >= level))
        return (
            np.nan
            if k == 0
            else time[k - 1] + (level - p[k - 1]) / (p[k] - p[k - 1]) * (time[k] - time[k - 1])
        )

    return np.array([crossing(p) for p in part.pair_density.values])


def front_in_beta(part: xr.Dataset, level: float = 0.5) -> tuple[float, float]:
    """(beta at which the pair density at one time first falls below a level, its standard error).

    Nan where it does not.
    """
    beta, p, error = part.beta.values, part.pair_density.values, part.pair_density_error.values
    k = int(np.argmax(p < level))
    if k == 0:
        return np.nan, np.nan
    slope = (p[k - 1] - p[k]) / (beta[k] - beta[k - 1])
    share = (p[k - 1] - level) / (p[k - 1] - p[k])
    error = np.hypot((1 - share) * error[k - 1], share * error[k]) / slope
    return float(beta[k - 1] + share * (beta[k] - beta[k - 1])), float(error)
