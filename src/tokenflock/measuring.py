"""Observables on any result, be it a simulation or a model."""

from __future__ import annotations

import json
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import require
from tokenflock.observables.observable import Observable
from tokenflock.placing import placed
from tokenflock.precision import cast, precision

BATCH = 16  # frames measured at once: pairwise matrices of many frames would not fit in memory


def measure(result: xr.Dataset, observables: Sequence[Observable] | Observable) -> xr.Dataset:
    """A result with observables added, one variable each.

    `x` may have any axes before its tokens and coordinates (`time`, `repeat`, `prompt`, `layer`). What an observable
    lacks, such as beta, comes from the recipe of the result.

    >>> import tokenflock as flock
    >>> from tokenflock.dynamics import SelfAttention
    >>> from tokenflock.observables import ClusterCount
    >>> from tokenflock.starts import Uniform
    >>> run = flock.simulate(SelfAttention(beta=1.0), Uniform(n=8, d=3), t=30)
    >>> int(flock.measure(run, ClusterCount()).cluster_count[-1])
    1
    """
    observables = [observables] if isinstance(observables, Observable) else list(observables)
    law = dynamics_of(result)
    bound = [observable if law is None else observable.bind(law) for observable in observables]
    return result.assign({one.name: _variable(result, one) for one in bound}).assign_coords(
        {dim: values for one in bound for dim, values in one.coords().items()}
    )


def dynamics_of(result: xr.Dataset) -> Dynamics | None:
    """The dynamics in the recipe of a result, or None where there is none to build."""
    described = json.loads(result.attrs.get("recipe", "{}")).get("dynamics")
    return recipes.rebuild(described) if described and "callable" not in json.dumps(described) else None


@eqx.filter_jit
def _measured(observable: Observable, x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.lax.map(lambda pair: observable.measure(*pair), (x, w), batch_size=BATCH)


def _variable(result: xr.Dataset, observable: Observable) -> xr.DataArray:
    x = result["x"]
    require(x.ndim >= 2 and x.dims[-1] == "coord", "x", "an array with axes (..., token, coord)", x.dims)
    lead, token = x.dims[:-2], x.dims[-2]
    w = _weights(result, lead, token)
    dtype = "float64" if x.dtype == np.float64 else "float32"
    with precision(dtype), placed(*x.shape[-2:]):
        flat = jnp.asarray(x.values.reshape(-1, *x.shape[-2:]), dtype)
        values = np.asarray(_measured(cast(observable, dtype), flat, jnp.asarray(w.reshape(len(flat), -1), dtype)))
    dims = lead + tuple(token if dim == "particle" else dim for dim in observable.dims)
    attrs = {"long_name": observable.label, "observable": repr(observable)}
    if observable.unit:
        attrs["units"] = observable.unit
    return xr.DataArray(values.reshape(x.shape[:-2] + values.shape[1:]), dims=dims, attrs=attrs)


def _weights(result: xr.Dataset, lead: tuple[str, ...], token: str) -> np.ndarray:
    """The weights of every frame; equal ones where the result has none."""
    x = result["x"]
    w = result.get("w", xr.DataArray(np.full(x.sizes[token], 1 / x.sizes[token]), dims=token))
    return w.broadcast_like(x.isel(coord=0)).transpose(*lead, token).values
