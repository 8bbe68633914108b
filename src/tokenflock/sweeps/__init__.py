"""Sweeps that survive: a spec, a store, and engines from one process to a cluster."""

from tokenflock.catalogue import homes as _homes

_HOMES = {
    "Store": "store",
}

__getattr__, __dir__, __all__ = _homes(__name__, _HOMES)
