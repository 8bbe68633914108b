"""Architectures of transformers, one file for each, found because the file is here.

A file holds one `ARCHITECTURE`; those that begin with an underscore, and `architecture`, hold what
the others share.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from tokenflock.probing.architectures.architecture import Architecture

_FOLDER = Path(__file__).parent


@cache
def known() -> dict[str, Architecture]:
    """Every architecture of this folder by the names that configs call it."""
    stems = sorted(path.stem for path in _FOLDER.glob("[!_]*.py") if path.stem != "architecture")
    members = [import_module(f"{__name__}.{stem}").ARCHITECTURE for stem in stems]
    return {name: member for member in members for name in member.names}


def architecture(name: str) -> Architecture:
    """The architecture that a config calls `name`; one of which nothing is said where there is no
    file.
    """
    return known().get(name, Architecture((name,)))
