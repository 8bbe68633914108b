"""Measurements on tokens, one file each: `from tokenflock.observables import PairDensity`."""

from tokenflock.catalogue import lazy

__getattr__, __dir__ = lazy(
    "observables",
    {
        "Observable": "tokenflock.observables.observable",
        "Convention": "tokenflock.observables.energy",
    },
)
