"""What every page holds, made once: the programs of the whole catalogue.

Tracing all laws takes a while, and its outcome depends on nothing but the code. So it is kept in
the cache under a name that the code's own text gives.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tokenflock import __version__, catalogue
from tokenflock.files import cache_folder, whole

_ROOT = Path(__file__).parents[1]
_SOURCES = ("spaces", "parts", "dynamics", "solvers", "starts", "observables", "matrices", "theory")
_HERE = ("bounds", "collection", "schema", "shelf", "specimens", "tables")


def collected(report: Callable[[float], None] | None = None) -> dict[str, Any]:
    """The schema, the programs and the tables of the whole catalogue: shipped with the library, or
    from the cache, where they are there.
    """
    if catalogue.entries("dynamics") != catalogue._shipped("dynamics"):
        return made_anew(report)  # with laws that the user brought along
    for place in filter(None, (shipped(), _cached())):
        if (known := _read(place)) is not None:
            return known
    made = made_anew(report)
    if (place := _cached()) is not None:
        write(made, place)
    return made


def shipped() -> Path:
    """Where a release keeps the collection of its own code (tools/lab_collection.py writes it)."""
    return Path(__file__).with_name("static") / f"collection-{_name()}.z"


def write(collection: dict[str, Any], path: Path) -> None:
    """Keep a collection in a file."""
    with whole(path) as part:
        part.write_bytes(zlib.compress(json.dumps(collection).encode(), 9))


def _read(path: Path) -> dict[str, Any] | None:
    """The collection in a file; None where there is none, or a damaged one."""
    try:
        return json.loads(zlib.decompress(path.read_bytes()))
    except (OSError, ValueError, zlib.error):
        return None


def _cached() -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / f"lab-{_name()}.z"


def made_anew(
    report: Callable[[float], None] | None = None, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """The same, traced now; of the laws of these names alone where they are given."""
    from tokenflock.laboratory import schema, shelf, specimens, tables
    from tokenflock.solvers.euler import Euler
    from tokenflock.solvers.euler_maruyama import EulerMaruyama
    from tokenflock.solvers.layer import Layer
    from tokenflock.solvers.rk4 import RK4

    kept = shelf.Shelf()
    dimensions = specimens.DIMENSIONS
    told = {
        "laws": shelf.catalogue(kept, report, names),
        "starts": shelf.starts(kept, dimensions),
        "solvers": [schema.solver(each()) for each in (Layer, RK4, Euler, EulerMaruyama)],
        "lenses": shelf.lenses(kept, dimensions),
        "deltas": list(shelf.DELTAS),
        "matrices": {str(d): schema.matrices(d) for d in dimensions},
        **words(),
    }
    theory = {str(d): tables.energies(d) for d in dimensions} | {"cosine": tables.cosines()}
    return {"schema": told, "programs": kept.programs, "theory": theory}


def words() -> dict[str, Any]:
    """What snippets and command lines need: where members live, and which options are taken."""
    from tokenflock.laboratory import schema

    taken = ["dynamics", "start", "solver", "until", "t", "times", "frames", "observe", "seed"]
    return {"homes": schema.homes(), "cli": {"taken": [*taken, "dtype", "out", "coalesce"]}}


def _name() -> str:
    """A name for the code as it is."""
    digest = hashlib.sha256(f"{__version__} {version('jax')}".encode())
    folders = [_ROOT / folder for folder in (*_SOURCES, "engines/page")]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.[pj][ys]"))]
    for path in [*paths, *(Path(__file__).with_name(f"{name}.py") for name in _HERE)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
