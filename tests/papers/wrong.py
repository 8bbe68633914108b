"""Something wrong: numbers as a wrong law leaves them, or a wrong function of theory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tokenflock.reproduction.folder import Numbers

Change = Callable[[Numbers], Numbers]


@dataclass(frozen=True)
class Wrong:
    """Something wrong, and the claims that it turns red: numbers, or a function of theory."""

    words: str
    red: tuple[str, ...]
    numbers: Change = lambda data: data
    theory: tuple[str, Callable[[Callable[..., Any]], Callable[..., Any]]] | None = None


def numbers(words: str, change: Change, *claims: str) -> Wrong:
    """Numbers as a wrong law or a wrong measurement leaves them."""
    return Wrong(words, claims, numbers=change)


def theory(words: str, name: str, wrong: Callable[..., Any], *claims: str) -> Wrong:
    """A function that the item calls: `wrong` makes the wrong one from the right one."""
    return Wrong(words, claims, theory=(name, wrong))


def put(place: str, wrong: Callable[[xr.DataArray, xr.Dataset], Any]) -> Change:
    """Replace a variable, named with its part ("late/poles/outside"), by a function of it and its
    part.
    """
    part, _, name = place.rpartition("/")

    def change(data: Numbers) -> Numbers:
        if isinstance(data, xr.Dataset):
            return _assigned(data, name, wrong)
        parts = {node.path: node.to_dataset(inherit=False) for node in data.subtree}
        parts[f"/{part}"] = _assigned(parts[f"/{part}"], name, wrong)
        return xr.DataTree.from_dict(parts)

    return change


def _assigned(part: xr.Dataset, name: str, wrong) -> xr.Dataset:
    value = wrong(part[name], part)
    dims = part[name].dims
    return part.assign({name: (dims, np.broadcast_to(np.asarray(value), part[name].shape))})


def times(place: str, factor: float) -> Change:
    return put(place, lambda value, part: factor * value)


def backwards(place: str, dim: str) -> Change:
    return put(place, lambda value, part: value.isel({dim: slice(None, None, -1)}))


def each(*changes: Change) -> Change:
    def change(data: Numbers) -> Numbers:
        for step in changes:
            data = step(data)
        return data

    return change


def chosen(place: str, wrong: Callable[[xr.DataArray], Any], **where: Any) -> Change:
    """Replace a variable at some places of its coordinates only."""

    def change(value: xr.DataArray, part: xr.Dataset) -> xr.DataArray:
        value = value.copy(deep=True)
        value.loc[where] = wrong(value.sel(where))
        return value

    return put(place, change)


def later(time: float, wrong: Callable[[np.ndarray], np.ndarray]) -> Callable:
    """Tokens (seed, time, token) that from a time on are elsewhere."""

    def change(place: xr.DataArray, part: xr.Dataset) -> np.ndarray:
        late = (part.time.values > time)[None, :, None]
        return np.where(late, wrong(place.values), place.values)

    return change
