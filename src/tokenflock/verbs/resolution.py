"""Thresholds that are finer than the numbers resolve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tokenflock.errors import require
from tokenflock.events.event import Event
from tokenflock.observables.observable import Observable
from tokenflock.precision import DTYPES
from tokenflock.verbs.axes import Axis

_FINER = "nearer tokens look the same; observe ConsensusDistance(), which is taken from differences"


def resolving(
    dtype: str | None,
    observe: Sequence[Observable],
    until: Event | None = None,
    axes: Sequence[Axis] = (),
) -> str:
    """Return the dtype, or where none is given the first that resolves all thresholds.

    Raise if a threshold is finer than the dtype resolves: cosines of unit vectors are off by some
    machine epsilon, so that 1 - cosine is noise below it, in every engine.
    """
    if dtype is not None and dtype not in DTYPES:
        return dtype  # refused, in its own words, where it is used
    for kind in DTYPES if dtype is None else (dtype,):
        fine = list(_too_fine(kind, observe, until, axes))
        if not fine:
            return kind
    who, name, value, least = fine[0]
    remedy = "take dtype='float64'" if kind == "float32" else _FINER
    require(False, name, f"{least:.2g} or more in {kind}, for {who}", f"{value:g}", remedy)
    return kind


def _too_fine(
    dtype: str, observe: Sequence[Observable], until: Event | None, axes: Sequence[Axis]
) -> Iterator[tuple[str, str, float, float]]:
    """Every threshold that a dtype does not resolve: (whose, its name, its value, the least)."""
    epsilon = float(np.finfo(dtype).eps)
    parts: list[Any] = [*observe, *([] if until is None else [until])]
    for k, part in enumerate(parts):
        for name, least in part.resolution(epsilon).items():
            swept = [axis.values for axis in axes if axis.path == ("observe", k, name)]
            value = float(np.min(swept[0] if swept else getattr(part, name)))
            if value < least:
                yield type(part).__name__, name, value, least
