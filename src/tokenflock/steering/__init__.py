"""Steering: laws that carry given clouds of tokens to given targets.

`flock.steer(inputs, targets)` looks for one; `clouds` draws inputs, `laws` gives what was found as
laws of the catalogue, `compare` shows how near one gets with so many pieces and heads.
"""

from tokenflock.catalogue import homes as _homes

_HOMES = {
    "steer": "search",
    "compare": "comparing",
    "clouds": "drawing",
    "laws": "pieces",
    "Pieces": "pieces",
}

__getattr__, __dir__, __all__ = _homes(__name__, _HOMES)
