"""Shared by all tests: double precision on request, a run to look at, no compilation cache of the
user's.
"""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("TOKENFLOCK_CACHE", "off")


@pytest.fixture
def double():
    """Run a test in double precision."""
    from tokenflock.precision import precision

    with precision("float64"):
        yield


@pytest.fixture(scope="session")
def run():
    """One run on the circle that forms two clusters."""
    import tokenflock as flock
    from tokenflock.dynamics import SelfAttention
    from tokenflock.starts import Uniform

    return flock.simulate(SelfAttention(beta=4.0), Uniform(n=32, d=2), t=30, frames=61, seed=0)
