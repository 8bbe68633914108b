"""Observables on any result, be it a simulation or a model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.place import hosted, placed
from tokenflock.engines.tiled import MANY
from tokenflock.errors import OverflowWarning, UserError, overflowed, require
from tokenflock.observables.observable import (
    CosineObservable,
    Observable,
    cosines,
    require_distinct,
)
from tokenflock.precision import cast, precision
from tokenflock.shapes import Array
from tokenflock.verbs.resolution import resolving

# of the pairwise matrices that are held at once: those of many frames would not fit in memory
ENTRIES = 2**22
ROUNDING = 1e-3  # by which a sum of weights may differ from one, even in half precision
_NO_TOKENS = (
    "an ensemble keeps none: write ensemble(..., observe=[...]), or measure flock.member(...)"
)


def measure(result: xr.Dataset, observables: Observable | Sequence[Observable]) -> xr.Dataset:
    """A result with observables added, one variable each.

    `x` may have any axes before its tokens and coordinates (`time`, `repeat`, `prompt`, `layer`).
    What an observable lacks, such as beta, comes from the recipe of the result. Weights are scaled
    to sum to one, and frames whose tokens or weights are not finite give NaN.

    >>> import tokenflock as flock
    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.observables import ClusterCount
    >>> from tokenflock.starts import Uniform
    >>> run = flock.simulate(SelfAttention(beta=1.0), Uniform(n=8, d=3), t=30)
    >>> int(flock.measure(run, ClusterCount()).cluster_count[-1])
    1
    """
    observables = [observables] if isinstance(observables, Observable) else list(observables)
    have = sorted(map(str, result.data_vars))
    require("x" in result, "result", "a Dataset with tokens x", have, _NO_TOKENS)
    require_distinct(observables)
    law, why = law_and_reason(result)
    bound = [_bound(observable, law, why) for observable in observables]
    resolving(_dtype(result["x"]), bound)
    variables = {
        observable.name: _variable(result["x"], observable, values)
        for observable, values in zip(bound, _values(result, bound))
    }
    for observable in bound:
        if not observable.dims and np.isinf(variables[observable.name].values).any():
            dtype = str(result["x"].dtype)
            warnings.warn(overflowed(observable.name, dtype), OverflowWarning, stacklevel=2)
    return result.assign(variables).assign_coords(
        {dim: at for observable in bound for dim, at in observable.coords().items()}
    )


def dynamics_of(result: xr.Dataset) -> Dynamics | None:
    """The dynamics in the recipe of a result, or None where there is none to build."""
    return law_and_reason(result)[0]


def law_and_reason(result: xr.Dataset) -> tuple[Dynamics | None, str]:
    """The dynamics in the recipe of a result; where there is none, None and the reason."""
    try:
        described = recipes.plain_recipe(result).get("dynamics")
        law = None if described is None else recipes.rebuild(described)
    except UserError as error:
        return None, str(error)
    if law is not None and not isinstance(law, Dynamics):
        return None, f"the recipe of the result has {law!r:.80} for its dynamics"
    return law, "" if law is not None else "the result does not say which law ran"


def _bound(observable: Observable, law: Dynamics | None, why: str) -> Observable:
    """An observable with what it lacks; an error where it needs a law that cannot be built."""
    if law is not None:
        return observable.bind(law)
    if observable.needs_law:
        raise UserError(f"{type(observable).__name__} needs the law that ran: {why}")
    return observable


def _values(result: xr.Dataset, observables: Sequence[Observable]) -> list[np.ndarray]:
    """For each observable its values on all frames, (frame, ...).

    Cosines are computed once for all that read them.
    """
    x = result["x"]
    require(
        x.ndim >= 2 and x.dims[-1] == "coord", "x", "an array with axes (..., token, coord)", x.dims
    )
    require(x.size > 0, "x", "tokens of one frame or more", f"shape {x.shape}")
    n, d = x.shape[-2:]
    dtype = _dtype(x)
    frames, weights = x.values.reshape(-1, n, d), shares(result).reshape(-1, n)
    sound = _finite(frames).all(axis=(1, 2)) & _finite(weights).all(axis=1)
    missing = ~np.asarray(sound)
    columns: list[list[np.ndarray]] = [[] for _ in observables]
    with precision(dtype), placed(n, d):
        observables = [cast(observable, dtype) for observable in observables]
        for here in _chunks(len(frames), max(1, ENTRIES // n**2)):
            values = _chunk(
                observables, jnp.asarray(frames[here], dtype), jnp.asarray(weights[here], dtype)
            )
            for column, value in zip(columns, values):
                column.append(np.asarray(value))
    found = [np.concatenate(column)[: len(frames)] for column in columns]
    return [_without(values, missing) for values in found] if missing.any() else found


def _finite(values: np.ndarray) -> np.ndarray:
    """Return which numbers are finite; values of other kinds count as finite."""
    return np.isfinite(values) if values.dtype.kind in "fc" else np.ones(values.shape, bool)


def _without(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the values with NaN for missing frames: comparisons with NaN would count as no."""
    values = values if values.dtype.kind == "f" else values.astype(float)
    return np.where(missing.reshape(-1, *[1] * (values.ndim - 1)), np.nan, values)


def _dtype(x: xr.DataArray) -> str:
    """Return the precision in which tokens are measured: their own, or the nearest one."""
    short = x.dtype.kind == "f" and x.dtype.itemsize <= 4
    return "float32" if short else "float64"


def _chunks(count: int, most: int) -> list[np.ndarray]:
    """Places 0, ..., count - 1 in chunks of one size, so that one compiled function serves all; the
    last place fills up.

    >>> [list(map(int, chunk)) for chunk in _chunks(5, 4)]
    [[0, 1, 2], [3, 4, 4]]
    """
    size = math.ceil(count / math.ceil(count / most))
    return [
        np.minimum(np.arange(start, start + size), count - 1) for start in range(0, count, size)
    ]


def _chunk(observables: Sequence[Observable], x: jax.Array, w: jax.Array) -> Iterator[Array]:
    many = x.shape[1] >= MANY
    G = None
    for observable in observables:
        quick = observable.on_host(x, w) if hosted(x) else None
        if quick is not None:
            yield quick
        elif many and observable.strips:
            yield _by_strips(observable, x, w)
        elif isinstance(observable, CosineObservable) and observable.by_cosines:
            G = _cosines(x) if G is None else G
            yield _of_cosines(observable, G, w)
        else:
            yield _of_tokens(observable, x, w)


@jax.jit
def _cosines(x: Array) -> Array:
    return jax.vmap(cosines)(x)


@eqx.filter_jit
def _of_cosines(observable: CosineObservable, G: Array, w: Array) -> Array:
    return jax.vmap(observable.of_cosines)(G, w)


@eqx.filter_jit
def _by_strips(observable: Observable, x: Array, w: Array) -> Array:
    return jax.vmap(observable.by_strips)(x, w)


@eqx.filter_jit
def _of_tokens(observable: Observable, x: Array, w: Array) -> Array:
    return jax.vmap(observable.measure)(x, w)


def _variable(x: xr.DataArray, observable: Observable, values: np.ndarray) -> xr.DataArray:
    dims = x.dims[:-2] + tuple(x.dims[-2] if dim == "particle" else dim for dim in observable.dims)
    attrs = {"long_name": observable.label, "observable": repr(observable)}
    if observable.unit:
        attrs["units"] = observable.unit
    return xr.DataArray(values.reshape(x.shape[:-2] + values.shape[1:]), dims=dims, attrs=attrs)


def shares(result: xr.Dataset) -> np.ndarray:
    """Return the weights of every frame, (..., n), which sum to one; equal ones if there are none.

    The weights of some tokens of a run sum to less, so they are scaled. NaN stays NaN.
    """
    x = result["x"]
    *lead, token = x.dims[:-1]
    w = result.get("w", xr.DataArray(np.full(x.sizes[token], 1 / x.sizes[token]), dims=[token]))
    values = w.broadcast_like(x.isel(coord=0)).transpose(*lead, token).values
    total = values.sum(axis=-1, keepdims=True, dtype=float)
    fine = not (values < 0).any() and not (total == 0).any()
    require(fine, "w", "0 or more, with a positive sum", f"sums from {total.min():g}")
    scaled = np.abs(total - 1) > ROUNDING  # rounding alone is left as it is
    return np.where(scaled, values / total, values) if scaled.any() else values
