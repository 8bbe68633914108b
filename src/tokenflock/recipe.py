"""What was run, as one JSON text that can be run again.

Every frozen object is written with all its values, defaults too, so a file read in ten years says
what it holds. An object is told by its kind and name in the catalogue (`dynamics/SelfAttention`),
never by a module, so files outlive the code. A recipe is data: reading one builds members of the
catalogue, and laws that the user imported on purpose, from values that are checked against their
fields. Nothing else is looked up, imported or called.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import enum
import inspect
import json
import math
import platform
import zlib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import numpy as np
import xarray as xr

from tokenflock import __version__, catalogue
from tokenflock.errors import UserError
from tokenflock.files import parsed_json
from tokenflock.frozen import Frozen

FORMAT = 2  # of recipes; those of version 0.1 had none and named modules
LARGEST = 2**26  # characters of a recipe, and numbers of an array in it: more is no recipe of ours
DEEPEST = 64  # objects within objects
_SMALL = 256  # arrays up to this size are written as lists, which a person can read
_DTYPES = ("float64", "float32", "int64", "int32", "uint32", "bool")
_BEYOND = {  # what a recipe may name beside the members of the catalogue, and where it lives
    "dynamics/Switching": "tokenflock.dynamics._matrices",
    "matrices/RandomMatrices": "tokenflock.matrices._random",
    "parts/LayerNorm": "tokenflock.parts._layer_norm",
}
RENAMED: dict[str, str] = {}  # what a member was called in older files -> what it is called now


class Missing(UserError):
    """A recipe names a law that is not here: one of the user's own, whose file is not imported."""


def dumps(recipe: dict[str, Any]) -> str:
    """A recipe as JSON."""
    return json.dumps({"format": FORMAT} | {key: describe(value) for key, value in recipe.items()})


def loads(text: str) -> dict[str, Any]:
    """The objects of a recipe, built again."""
    return {key: rebuild(value) for key, value in parse(text).items()}


def parse(text: Any) -> dict[str, Any]:
    """A recipe as plain values, or an error that says why it is none."""
    if not isinstance(text, str) or len(text) > LARGEST:
        raise UserError("the recipe of the result is no text that tokenflock wrote")
    try:
        plain = parsed_json(text.encode(), "the recipe of the result")
    except UserError:
        raise
    except (ValueError, RecursionError):
        raise UserError("the recipe of the result is damaged: it is not JSON") from None
    if not isinstance(plain, dict):
        raise UserError(f"the recipe of the result is damaged: it is a {type(plain).__name__}")
    if _depth(plain) > DEEPEST:
        raise UserError("the recipe of the result is damaged: it is nested too deeply")
    written = plain.get("format", 1)
    if not isinstance(written, int) or written > FORMAT:
        raise UserError(
            f"the recipe has format {written!r:.40}, and this tokenflock ({__version__}) knows"
            f" formats up to {FORMAT}; update it: pip install -U tokenflock"
        )
    return plain


def _depth(value: Any) -> int:
    """How deeply lists and dicts are nested, found without nesting calls as deeply."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, (list, dict))]:
        depth += 1
        level = [
            below for item in level for below in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


def plain_recipe(result: xr.Dataset) -> dict[str, Any]:
    """The recipe of a result as plain values; empty where there is none."""
    return parse(result.attrs.get("recipe", "{}"))


def sources(result: xr.Dataset) -> dict[str, str]:
    """The texts that a result keeps of laws that are not of the catalogue, by their names.

    They are to be read, never run: who trusts one writes it to a file and imports that.
    """
    found: dict[str, str] = {}
    level: list[Any] = [plain_recipe(result)]
    while level:
        value = level.pop()
        below = value.values() if isinstance(value, dict) else value
        level += [item for item in below if isinstance(item, (dict, list))]
        own = value.get("own") if isinstance(value, dict) else None
        if isinstance(own, dict) and isinstance(own.get("source"), str) and own["source"]:
            found[str(value.get("type")).partition("/")[2]] = own["source"]
    return found


def readable(result: xr.Dataset) -> dict[str, Any]:
    """The same for those who only tell what ran: what cannot be read is left out."""
    try:
        return plain_recipe(result)
    except UserError:
        return {}


def describe(value: Any) -> Any:
    """An object as JSON values."""
    if isinstance(value, Frozen):
        return _described(value)
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, (np.ndarray, jax.Array)):
        return _array(np.asarray(value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: describe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(item) for item in value]
    if callable(value):
        return {"callable": getattr(value, "__qualname__", repr(value))}
    return value


def _described(value: Frozen) -> dict[str, Any]:
    cls = type(value)
    fields = {field.name: describe(getattr(value, field.name)) for field in dataclasses.fields(cls)}
    own = {} if _ours(cls) else {"own": {"module": cls.__module__, "source": _source(cls)}}
    return {"type": f"{_kind(cls)}/{cls.__name__}", **own, **fields}


def _ours(cls: type) -> bool:
    return cls.__module__.startswith("tokenflock.")


def _kind(cls: type) -> str:
    """The folder that a class is of, or, for the user's own, the kind that it derives from."""
    if _ours(cls):
        return cls.__module__.split(".")[1]
    return next((kind for kind in catalogue.BASES if issubclass(cls, catalogue.base(kind))), "own")


def _source(cls: type) -> str:
    """The text of a class that is not of this library, so that a reader of the file knows it."""
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        return ""


def rebuild(value: Any) -> Any:
    """The object that JSON values describe."""
    if isinstance(value, list):
        return [rebuild(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "callable" in value:
        raise Missing(
            f"the recipe holds a Python function ({value['callable']!s:.80}), which a file cannot"
            " keep; run it again from the script that made it"
        )
    if "array" in value or "packed" in value:
        return _unpacked(value)
    if "enum" in value:  # as version 0.1 wrote members of enumerations; the field knows which
        return value.get("name")
    if "type" in value:
        return _object(value)
    return {key: rebuild(item) for key, item in value.items()}


def _object(value: dict[str, Any]) -> Frozen:
    """A member of the catalogue, or a law of the user's, with these values in its fields."""
    cls = find(value["type"], value.get("own"))
    given = {key: item for key, item in value.items() if key not in ("type", "own")}
    known = [field.name for field in dataclasses.fields(cls)]
    strange = [key for key in given if key not in known]
    if strange:
        fields = ", ".join(known) or "none"
        raise UserError(
            f"the recipe gives {cls.__name__} a field {strange[0]!r:.80}; it has {fields}"
        )
    built = {key: rebuild(item) for key, item in given.items()}
    try:
        return cls(**built)
    except UserError as error:
        raise UserError(f"the recipe holds what {cls.__name__} cannot be: {error}") from None
    except Exception as error:
        raise UserError(f"the recipe's {cls.__name__} cannot be built ({error!s:.200})") from None


def find(path: Any, own: Any = None) -> type[Frozen]:
    """The class that a recipe names: of the catalogue, or one that the user imported on purpose."""
    path = _today(path)
    kind, _, name = path.partition("/")
    if not own and (cls := _catalogued(kind, name)) is not None:
        return cls
    module = own.get("module") if isinstance(own, dict) else kind
    mine = [cls for cls in _users(kind) if cls.__name__ == name]
    if not mine:
        kept = isinstance(own, dict) and own.get("source")
        text = f"; its text: tokenflock.recipe.sources(result)[{name!r:.80}]" if kept else ""
        raise Missing(
            f"the recipe names {name!r:.80} of {module!s:.80}, which is no member of the catalogue"
            " and not imported; if it is a law of yours, import its file first (on the command"
            f" line: tokenflock --import FILE.py ...){text}"
        )
    return next((cls for cls in mine if cls.__module__ == module), mine[-1])


def _today(path: Any) -> str:
    """A name as it is written now: `kind/Name`. Version 0.1 wrote `module:Class`."""
    if not isinstance(path, str) or len(path) > 1000:
        raise UserError("the recipe names an object by what is no name")
    module, colon, name = path.partition(":")
    if colon:
        parts = module.split(".")
        path = (
            f"{parts[1]}/{name}"
            if parts[0] == "tokenflock" and len(parts) > 1
            else f"{module}/{name}"
        )
    return RENAMED.get(path, path)


def _catalogued(kind: str, name: str) -> type[Frozen] | None:
    home = _BEYOND.get(f"{kind}/{name}")
    if home is not None:
        return getattr(import_module(home), name)
    if kind not in catalogue.BASES:
        return None
    known = [entry.load() for entry in catalogue.entries(kind) if entry.name == name]
    return next((cls for cls in known if issubclass(cls, catalogue.base(kind))), None)


def _users(kind: str) -> list[type[Frozen]]:
    """The classes of a kind that were defined outside of this library, the newest last."""
    kinds = [kind] if kind in catalogue.BASES else list(catalogue.BASES)
    return [cls for each in kinds for cls in _below(catalogue.base(each)) if not _ours(cls)]


def _below(cls: type) -> Iterator[type]:
    for below in cls.__subclasses__():
        yield below
        yield from _below(below)


@cache
def versions(*packages: str) -> dict[str, str]:
    """What the recipe ran on: this library, Python, and the named packages."""
    table = {"tokenflock": __version__, "python": platform.python_version()}
    for name in packages:
        try:
            table[name] = version(name)
        except PackageNotFoundError:
            table[name] = "unknown"
    return table


def types(value: Any) -> list[type[Frozen]]:
    """Every class that a described value mentions and that is known here."""
    if isinstance(value, list):
        return [cls for item in value for cls in types(item)]
    if not isinstance(value, dict):
        return []
    try:
        own = [find(value["type"], value.get("own"))] if "type" in value else []
    except UserError:
        own = []
    return own + [cls for item in value.values() for cls in types(item)]


def _array(value: np.ndarray) -> dict[str, Any]:
    head = {"shape": list(value.shape), "dtype": str(value.dtype)}
    if value.size <= _SMALL:
        return {"array": value.tolist(), **head}
    packed = zlib.compress(np.ascontiguousarray(value).tobytes())
    return {"packed": base64.b64encode(packed).decode(), **head}


def _unpacked(value: dict[str, Any]) -> np.ndarray:
    """An array, whose size is known before anything is unpacked."""
    sizes, dtype = value.get("shape"), value.get("dtype")
    shape = sizes if isinstance(sizes, list) else [-1]
    whole = all(type(size) is int and size >= 0 for size in shape)
    if not whole or dtype not in _DTYPES or math.prod(shape) > LARGEST:
        raise UserError("the recipe holds an array of no known shape and kind of numbers")
    count = math.prod(shape)
    try:
        if "array" in value:
            return np.array(value["array"], dtype=dtype).reshape(shape)
        unpacker, size = zlib.decompressobj(), count * np.dtype(dtype).itemsize
        data = unpacker.decompress(base64.b64decode(value["packed"], validate=True), size + 1)
        return np.frombuffer(data, dtype=dtype).reshape(shape).copy()
    except (ValueError, TypeError, OverflowError, zlib.error, binascii.Error):
        raise UserError("the recipe holds a damaged array") from None
