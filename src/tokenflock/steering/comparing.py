"""`compare`: how near one gets with so many pieces and heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from tokenflock.errors import checked, require
from tokenflock.steering.search import steer


def compare(
    inputs: np.ndarray,
    targets: np.ndarray,
    *,
    pieces: Sequence[int] = (1, 2, 4, 8),
    heads: Sequence[int] = (1, 2, 4),
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> xr.Dataset:
    """Steer with every number of pieces and of heads.

    Args:
      inputs, targets, options: as for `steer`.
      pieces, heads: the numbers to try.
      progress: called with the share of the work that is done.

    Returns the result of `steer` for the most pieces and heads, and with it `reached` (pieces,
    heads): the root mean square of W_2 over clouds.
    """
    require(len(pieces) > 0 and len(heads) > 0, "pieces and heads", "lists of numbers", "none")
    depths, counts = sorted(set(pieces)), sorted(set(heads))
    table = np.zeros((len(depths), len(counts)))
    runs = [(i, j) for i in range(len(depths)) for j in range(len(counts))]
    for done, (i, j) in enumerate(runs):

        def report(share: float, done: int = done) -> None:
            if progress:
                progress((done + share) / len(runs))

        result = checked(steer)(
            inputs, targets, pieces=depths[i], heads=counts[j], progress=report, **options
        )
        table[i, j] = np.sqrt(np.mean(result.W2.values**2))
    extra = {"long_name": "root mean square of W2"}
    return result.assign(reached=(("pieces", "heads"), table, extra)).assign_coords(
        pieces=depths, heads=counts
    )
