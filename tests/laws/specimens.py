"""What the laws are checked on: every member of the catalogue, in a generic and, where it has one,
a default instance.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tokenflock.catalogue import entries

N = 6


def laws_of_motion():
    """(name, dynamics) for every member: its example, and its defaults where it can be made without
    arguments.
    """
    found = []
    for entry in entries("dynamics"):
        cls = entry.load()
        d = cls.example(N, 3).dimension or 3
        found.append((entry.slug, cls.example(N, d)))
        if all(option.default is not None for option in entry.options):
            found.append((f"{entry.slug}-default", cls()))
    return found


SPECIMENS = laws_of_motion()
NAMES = [name for name, _ in SPECIMENS]
LAWS = [law for _, law in SPECIMENS]


def tokens(law, seed: int = 0, n: int = N):
    """Generic tokens and unequal weights for a law of motion."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, law.dimension or 3))
    w = random.uniform(0.5, 1.5, size=n)
    return law.space.project(jnp.asarray(x)), jnp.asarray(w / w.sum())
