"""The references of what was used."""

from __future__ import annotations

import re
from pathlib import Path

import xarray as xr

from tokenflock import recipe as recipes

_BIBLIOGRAPHY = Path(__file__).parents[1] / "references.bib"


def references(result: xr.Dataset) -> list[str]:
    """Keys of the references behind a result, in order of use, this library first."""
    used = recipes.types(recipes.readable(result))
    keys = ["tokenflock", *(key for cls in used for key in cls.cites), "jax2018"]
    return list(dict.fromkeys(keys))


def cite(result: xr.Dataset) -> None:
    """Print, as BibTeX, the references of exactly what a result used: dynamics, solver,
    observables.

    >>> import tokenflock as flock
    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> flock.cite(flock.simulate(SelfAttention(), Uniform(n=4, d=3), t=1))  # doctest: +ELLIPSIS
    @software{tokenflock,
    ...
    """
    table = bibliography()
    print("\n\n".join(table[key] for key in references(result)))


def bibliography() -> dict[str, str]:
    """Every entry of references.bib by its key."""
    text = _BIBLIOGRAPHY.read_text(encoding="utf-8")
    return {
        match[1]: match[0]
        for match in re.finditer(r"@\w+\{([^,\s]+),.*?\n\}", text, flags=re.DOTALL)
    }
