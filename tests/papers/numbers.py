"""The numbers that the claims of each item read, at quick scale, kept in `tests/data/items`.

Claims can so be judged, and turned red, in milliseconds. What no claim reads is left out. To make
them anew after a change of an item: `python -m tests.papers.numbers perspective/fig3 ...`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import xarray as xr

from tokenflock.reproduction.claim import Claim
from tokenflock.reproduction.folder import Numbers
from tokenflock.reproduction.item import Item, find
from tokenflock.reproduction.scale import QUICK

FOLDER = Path(__file__).parents[1] / "data" / "items"
LARGE = 200_000  # bytes of a part whose frames and samples are thinned out


def path(name: str) -> Path:
    return FOLDER / f"{name.replace('/', '-')}.nc"


@cache
def stored(name: str) -> Numbers:
    """The numbers of an item; not to be changed in place."""
    with xr.open_datatree(path(name), engine="h5netcdf") as tree:
        tree.load()
    return tree if tree.children else tree.to_dataset()


def computed(item: Item) -> Numbers:
    """The numbers of an item at quick scale; Figure 1 for a model that clusters."""
    if item.name != "perspective/fig1":
        return item.load().compute(QUICK)
    from tempfile import TemporaryDirectory

    from tests.probing.test_figure1 import computed as figure_1
    from tests.probing.test_figure1 import gathering

    with TemporaryDirectory() as folder:
        return figure_1(Path(folder) / "gathering", gathering(1.0))


def core(claims: list[Claim]) -> list[tuple]:
    """What must not change when numbers are left out: notes may."""
    return [(claim.id, claim.statement, claim.measured, claim.interval) for claim in claims]


def least(home: ModuleType, data: Numbers) -> Numbers:
    """As little of the numbers as the claims need."""
    wanted = core(home.claims(data))

    def enough(parts: dict[str, xr.Dataset]) -> bool:
        try:
            return core(home.claims(_whole(parts, data))) == wanted
        except Exception:  # what is missing was needed
            return False

    parts = _parts(data)
    for shorter in (_without_parts, _without_variables, _without_attributes, _without_entries):
        parts = shorter(parts, enough)
    return _whole(parts, data)


def write(data: Numbers, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    small = {"zlib": True, "complevel": 9}
    encoding = {
        key: {name: small for name, value in part.data_vars.items() if value.size > 100}
        for key, part in _parts(data).items()
    }
    tree = data if isinstance(data, xr.DataTree) else xr.DataTree(data)
    tree.to_netcdf(to, engine="h5netcdf", encoding=encoding)


Parts = dict[str, xr.Dataset]
Enough = Callable[[Parts], bool]


def _parts(data: Numbers) -> Parts:
    if isinstance(data, xr.Dataset):
        return {"/": data}
    return {node.path: node.to_dataset(inherit=False) for node in data.subtree}


def _whole(parts: Parts, like: Numbers) -> Numbers:
    return parts["/"] if isinstance(like, xr.Dataset) else xr.DataTree.from_dict(parts)


def _without_parts(parts: Parts, enough: Enough) -> Parts:
    for key in [key for key in parts if key != "/"]:
        less = {name: part for name, part in parts.items() if not f"{name}/".startswith(f"{key}/")}
        parts = less if enough(less) else parts
    return parts


def _without_variables(parts: Parts, enough: Enough) -> Parts:
    for key, part in list(parts.items()):
        for name in list(part.variables):
            if name in parts[key].variables:
                less = parts | {key: parts[key].drop_vars(name)}
                parts = less if enough(less) else parts
    return parts


def _without_attributes(parts: Parts, enough: Enough) -> Parts:
    for key in parts:
        less = parts | {key: parts[key].drop_attrs()}
        parts = less if enough(less) else parts
    return parts


def _without_entries(parts: Parts, enough: Enough) -> Parts:
    """Frames and samples of large parts that no claim reads, halves first, then quarters, ..."""
    for key in parts:
        for dim in map(str, parts[key].dims):
            size = parts[key].sizes[dim] // 2
            while size and parts[key].nbytes > LARGE:
                start = 0
                while start < parts[key].sizes[dim]:
                    keep = np.delete(np.arange(parts[key].sizes[dim]), slice(start, start + size))
                    less = parts | {key: parts[key].isel({dim: keep})}
                    parts, start = (less, start) if enough(less) else (parts, start + size)
                size //= 2
    return parts


def main(names: list[str]) -> None:
    for item in find(names):
        data = least(item.load(), computed(item))
        write(data, path(item.name))
        print(f"saved {path(item.name)} ({path(item.name).stat().st_size} bytes)")


if __name__ == "__main__":
    main(sys.argv[1:])
