"""What every page holds, made once: the programs of the whole catalogue.

Tracing all laws takes a minute, and its outcome depends on nothing but the code. So the library
ships it (`tools/lab_collection.py` writes it), with a key of the code that it was made of. Where
the code is another one the shipped file is left alone, and what is traced is kept in the cache.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tokenflock import catalogue
from tokenflock.files import cache_folder, whole

SHIPPED = Path(__file__).with_name("static") / "collection.xz"
JAX = version("jax")  # what traced it
_ROOT = Path(__file__).parents[1]
_SOURCES = ("spaces", "parts", "dynamics", "solvers", "starts", "observables", "matrices", "theory")
_HERE = (
    "bounds",
    "building",
    "collection",
    "opening",
    "schema",
    "shelf",
    "specimens",
    "tables",
)


def collected(report: Callable[[float], None] | None = None) -> dict[str, Any]:
    """The schema, the programs and the tables of the whole catalogue: shipped with the library, or
    from the cache, where they are there.
    """
    if (ready := known()) is not None:
        return ready
    made = made_anew(report)
    if _whole_catalogue() and (place := _cached()) is not None:
        write(made, place)
    return made


def known() -> dict[str, Any] | None:
    """The collection where it needs no tracing: shipped, or from the cache, and of this code."""
    if not _whole_catalogue():
        return None
    places = filter(None, (SHIPPED, _cached()))
    return next((read for place in places if (read := fresh(place)) is not None), None)


def fresh(path: Path = SHIPPED) -> dict[str, Any] | None:
    """The collection in a file, where it is of the code as it is."""
    read = _read(path)
    return read if read is not None and read["key"] == key() else None


def _whole_catalogue() -> bool:
    """Whether the laws are the library's own, and no user's."""
    return catalogue.entries("dynamics") == catalogue._shipped("dynamics")


def write(collection: dict[str, Any], path: Path) -> None:
    """Keep a collection in a file."""
    with whole(path) as part:
        kept = {name: value for name, value in collection.items() if name != "programs"}
        part.write_bytes(lzma.compress(json.dumps(kept).encode()))


def _read(path: Path) -> dict[str, Any] | None:
    """The collection in a file; None where there is none, or a damaged one."""
    try:
        read = json.loads(lzma.decompress(path.read_bytes()))
        return {**read, "programs": loosened(read["squeezed"])}
    except (OSError, KeyError, ValueError, lzma.LZMAError):
        return None


def squeezed(programs: list[dict[str, Any]]) -> dict[str, Any]:
    """Programs as a page holds them: they resemble each other, and LZMA sees it.

    >>> programs = [{"source": "step"}] * 3
    >>> loosened(squeezed(programs)) == programs
    True
    """
    text = json.dumps(programs, separators=(",", ":")).encode("ascii")
    packed = lzma.compress(text, format=lzma.FORMAT_ALONE, preset=9)
    told = {"count": len(programs), "size": len(text)}
    return told | {"squeezed": base64.b64encode(packed).decode()}


def loosened(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The programs again."""
    return json.loads(lzma.decompress(base64.b64decode(told["squeezed"])))


def _cached() -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / f"lab-{key()}-jax-{JAX}.xz"


def made_anew(
    report: Callable[[float], None] | None = None, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """The same, traced now; of the laws of these names alone where they are given."""
    from tokenflock.laboratory import schema, shelf, specimens, tables
    from tokenflock.laboratory.opening import usual
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
    theory = {str(d): tables.energies(d) for d in dimensions}
    theory |= {"cosine": tables.cosines(), "polygon": tables.polygons()}
    made = {"schema": told, "programs": kept.programs, "theory": theory}
    made["squeezed"] = squeezed(kept.programs)
    return made | {"usual": usual(made) if names is None else None, "key": key(), "jax": JAX}


def words() -> dict[str, Any]:
    """What snippets and command lines need: where members live, and which options are taken."""
    from tokenflock.laboratory import schema

    taken = ["dynamics", "start", "solver", "until", "t", "times", "frames", "observe", "seed"]
    return {"homes": schema.homes(), "cli": {"taken": [*taken, "dtype", "out", "coalesce"]}}


@cache
def key() -> str:
    """A name for the code as it is: of every file that a program may depend on."""
    digest = hashlib.sha256()
    folders = [_ROOT / folder for folder in (*_SOURCES, "engines/page")]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.[pj][ys]"))]
    for path in [*paths, *(Path(__file__).with_name(f"{name}.py") for name in _HERE)]:
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]
