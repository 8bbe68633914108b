"""Sweeps that survive: a spec, a store, and engines from one process to a cluster.

`sweep(spec, "big.zarr")` runs a `Spec` (or a TOML file of one) into a store that xarray opens by
itself; `status`, `check` and `repair` look after it.
"""

from tokenflock.catalogue import homes as _homes

_HOMES = {
    "Spec": "spec",
    "SpecError": "spec",
    "read_spec": "spec",
    "Refine": "refine",
    "Store": "store",
    "sweep": "run",
    "SweepView": "run",
    "status": "inspecting",
    "Status": "inspecting",
    "check": "inspecting",
    "repair": "inspecting",
    "forecast": "planning",
    "Forecast": "planning",
    "between": "pooling",
}

__getattr__, __dir__, __all__ = _homes(__name__, _HOMES)
