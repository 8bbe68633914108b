"""What was run, as one JSON text that can be run again.

Every frozen object is written with all its values, defaults too, so a file read in ten years says
what it holds.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import importlib
import json
import platform
import sys
import zlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from tokenflock import __version__
from tokenflock.errors import UserError
from tokenflock.frozen import Frozen

_SMALL = 256  # arrays up to this size are written as lists, which a person can read


def dumps(recipe: dict[str, Any]) -> str:
    """A recipe as JSON."""
    return json.dumps({key: describe(value) for key, value in recipe.items()})


def loads(text: str) -> dict[str, Any]:
    """The objects of a recipe, built again."""
    return {key: rebuild(value) for key, value in json.loads(text).items()}


def describe(value: Any) -> Any:
    """An object as JSON values."""
    if isinstance(value, Frozen):
        fields = {
            field.name: describe(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
        return {"type": _path(type(value)), **fields}
    if isinstance(value, enum.Enum):
        return {"enum": _path(type(value)), "name": value.name}
    if (
        isinstance(value, np.ndarray)
        or hasattr(value, "__jax_array__")
        or type(value).__name__ == "ArrayImpl"
    ):
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


def rebuild(value: Any) -> Any:
    """The object that JSON values describe."""
    if isinstance(value, list):
        return [rebuild(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "callable" in value:
        raise UserError(
            f"the recipe holds a Python function ({value['callable']}) and cannot be run again from"
            " the file"
        )
    if "array" in value:
        return np.asarray(value["array"], dtype=value["dtype"]).reshape(value["shape"])
    if "packed" in value:
        data = zlib.decompress(base64.b64decode(value["packed"]))
        return np.frombuffer(data, dtype=value["dtype"]).reshape(value["shape"]).copy()
    if "enum" in value:
        return _find(value["enum"])[value["name"]]
    if "type" in value:
        cls = _find(value["type"])
        return cls(**{key: rebuild(item) for key, item in value.items() if key != "type"})
    return {key: rebuild(item) for key, item in value.items()}


@cache
def versions(*packages: str) -> dict[str, str]:
    """What the recipe ran on: this library, Python, and the named packages."""
    found = {"tokenflock": __version__, "python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def types(value: Any) -> list[type]:
    """Every class of this library that a described value mentions."""
    if isinstance(value, dict):
        own = [_find(value["type"])] if "type" in value else []
        return own + [found for item in value.values() for found in types(item)]
    return [found for item in value for found in types(item)] if isinstance(value, list) else []


def _array(value: np.ndarray) -> dict[str, Any]:
    head = {"shape": list(value.shape), "dtype": str(value.dtype)}
    if value.size <= _SMALL:
        return {"array": value.tolist(), **head}
    return {
        "packed": base64.b64encode(zlib.compress(np.ascontiguousarray(value).tobytes())).decode(),
        **head,
    }


def _path(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _find(path: str) -> Any:
    """A class of this library, or one of yours that is already imported: a file never makes Python
    import anything else.
    """
    module, _, name = path.partition(":")
    if not module.startswith("tokenflock.") and module not in sys.modules:
        raise UserError(f"the recipe uses {name} from {module}; import {module} first")
    return getattr(importlib.import_module(module), name)
