"""Modules that are loaded when something in them is first used."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """Stands for a module until an attribute of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        own = self.__name__
        if sys.modules.get(own) is self:
            del sys.modules[own]
        real = import_module(own)
        self.__dict__.update(real.__dict__)
        return getattr(real, name)


def later(name: str) -> None:
    """Let `import name` cost nothing. (The loader of Python that does so, `LazyLoader`, loads when
    a second module imports the name.)

    Results become arrays with names at the end, and nobody should wait for the library that makes
    these before the first number.
    """
    if name in sys.modules or (spec := find_spec(name)) is None:
        return
    stand_in = _Later(name)
    stand_in.__spec__ = spec
    sys.modules[name] = stand_in
