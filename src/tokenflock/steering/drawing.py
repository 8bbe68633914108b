"""Clouds to steer, and where to."""

from __future__ import annotations

import numpy as np

from tokenflock.engines.memory import require_memory
from tokenflock.errors import require, require_whole

TRIES = 2000  # of centres, of which the best spread are taken


def clouds(
    count: int = 8, n: int = 8, d: int = 2, spread: float = 0.2, *, seed: int = 0
) -> np.ndarray:
    """Clouds of tokens about well separated centres on the sphere, (count, n, d).

    Tokens are normalize(centre + spread g), g Gaussian. Centres are the best separated of many
    random draws; on the circle they come in the order of their angles, so that two draws can be
    carried to each other: a flow on the circle keeps the order of tight clouds. With spread 0 and
    n = 1 they are points.

    >>> clouds(8, 16, d=3).shape
    (8, 16, 3)
    >>> angle = np.arctan2(*clouds(5, 1, d=2, spread=0.0)[:, 0].T[::-1]) % (2 * np.pi)
    >>> bool((np.diff(angle) > 0).all())
    True
    """
    for name, size, least in (("clouds", count, 1), ("n", n, 1), ("d", d, 2)):
        require_whole(name, size, least)
    require(0 <= spread < np.inf, "spread", "0 or more", spread)
    held = f"{count:,} clouds of n = {n:,}, d = {d:,}"
    needed = 8.0 * max(TRIES * float(count) * max(count, d), float(count) * n * d)
    require_memory(needed, held, "take fewer clouds, tokens or dimensions")
    random = np.random.default_rng(seed)
    draws = _unit(random.normal(size=(TRIES, count, d)))
    cosines = draws @ draws.transpose(0, 2, 1) - 2 * np.eye(count)
    centres = draws[cosines.max(axis=(1, 2)).argmin()]
    if d == 2:
        centres = centres[np.argsort(np.arctan2(centres[:, 1], centres[:, 0]) % (2 * np.pi))]
    return _unit(centres[:, None] + spread * random.normal(size=(count, n, d)))


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
