"""`rerun`: the recipe of a result, run again."""

from __future__ import annotations

import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.errors import require
from tokenflock.meanfield.evolution import evolve
from tokenflock.verbs.ensemble import ensemble
from tokenflock.verbs.simulate import simulate

_COMMON = ("t", "times", "frames")
_LATER = {"until": None}  # what recipes of older versions lack, and what it meant then
_VERBS = {
    "simulate": (simulate, (*_COMMON, "solver", "until", "observe", "seed", "dtype")),
    "ensemble": (
        ensemble,
        (
            *_COMMON,
            "over",
            "repeats",
            "solver",
            "observe",
            "matrices",
            "quantiles",
            "keep",
            "seed",
            "dtype",
            "engine",
            "rotate",
            "settle",
            "until",
        ),
    ),
    "evolve": (evolve, (*_COMMON, "d", "points", "rtol", "atol")),
}


def rerun(result: xr.Dataset) -> xr.Dataset:
    """Run the recipe of a result of `simulate`, `ensemble` or `evolve` again.

    >>> import tokenflock as flock
    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.starts import Uniform
    >>> run = flock.simulate(SelfAttention(beta=4.0), Uniform(n=8, d=2), t=3, seed=5)
    >>> bool((flock.rerun(run).x == run.x).all())
    True
    """
    recipe = recipes.loads(result.attrs.get("recipe", "{}"))
    name = recipe.get("verb", "a Dataset without a recipe")
    known = isinstance(name, str) and name in _VERBS
    require(known, "result", f"one of {', '.join(_VERBS)}", f"{name!r:.80}")
    verb, keys = _VERBS[name]
    recipe = _LATER | recipe
    lacking = [key for key in ("dynamics", "start", *keys) if key not in recipe]
    require(not lacking, "the recipe", "complete", f"one without {', '.join(lacking)}")
    return verb(recipe["dynamics"], recipe["start"], **{key: recipe[key] for key in keys})
