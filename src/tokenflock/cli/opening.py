"""Results as commands read them, and what to say of those that are damaged."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import xarray as xr

from tokenflock.errors import SimulationError, UserError
from tokenflock.sweeps.reading import drawable
from tokenflock.sweeps.store import Store
from tokenflock.verbs.save_load import load

LARGEST = 1e100  # beyond it no number of ours lies, and pictures have no place for it


def opened(path: Path) -> xr.Dataset:
    """The result in a file, or what there is so far in the store of a sweep."""
    return drawable(Store(path).look()) if path.is_dir() else load(path)


@contextmanager
def doubted(path: Path, result: xr.Dataset, what: str) -> Iterator[None]:
    """Scope that reads a file which anybody may have written: where it fails, and something is
    wrong with the numbers of the file, that is told. Else it is a bug of ours.
    """
    try:
        yield
    except (UserError, SimulationError, OSError, MemoryError):
        raise
    except Exception as error:
        reason = ailment(result)
        if reason is None and isinstance(error, KeyError) and _of_file(error):
            reason = f"it has no {error.args[0]!r}"
        if reason is None:
            raise
        raise UserError(f"{path} cannot be {what}: {reason}; make it anew") from error


def _of_file(error: KeyError) -> bool:
    """Whether it was a Dataset that had no such key, not a table of ours."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return frames[-1][0].f_globals.get("__name__", "").startswith("xarray.")


def ailment(result: xr.Dataset) -> str | None:
    """What is wrong with the numbers of a result; None where nothing is seen.

    >>> ailment(xr.Dataset({"loss": ("step", [np.nan, np.nan])}, {"step": [0, 1]}))
    'loss holds no number'
    """
    empty = [str(name) for name, size in result.sizes.items() if size == 0]
    if empty:
        return f"{empty[0]} is empty"
    for name, variable in result.variables.items():
        values = variable.values
        if values.dtype.kind not in "fiub":
            if name in result.data_vars:
                return f"{name} holds no numbers"
            continue
        finite = np.isfinite(values)
        if not finite.any():
            return f"{name} holds no number"
        if name in result.coords and not finite.all():
            return f"{name} holds what is no number"
        if np.abs(values[finite].astype(float)).max() > LARGEST:
            return f"{name} holds numbers beyond {LARGEST:g}"
    return None
