"""Shared by all tests: double precision on request, a run to look at, and one compilation cache
for all workers that lasts as long as the tests do (never the user's).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile

import pytest

os.environ.setdefault("TOKENFLOCK_CACHE", "off")

CACHE = "JAX_COMPILATION_CACHE_DIR"
ALWAYS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
SMALL = {"laws", "gradients"}  # folders of tests whose programs are many and small


def pytest_configure(config):
    """The first process makes the cache; workers and commands inherit its name."""
    if CACHE not in os.environ:
        config.made_cache = os.environ[CACHE] = tempfile.mkdtemp(prefix="tokenflock-tests-")
        os.environ |= ALWAYS


def pytest_unconfigure(config):
    if made := getattr(config, "made_cache", None):
        shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    """Programs of one file are forgotten after it: thousands of them fill the memory."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@pytest.fixture
def double():
    """Run a test in double precision."""
    from tokenflock.precision import precision

    with precision("float64"):
        yield


@pytest.fixture(scope="module")
def quick_compilation():
    """For tests of many small programs that run once: half the time would go into making them
    fast.
    """
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def pytest_collection_modifyitems(items):
    """The laws and their derivatives are such tests."""
    for item in items:
        if item.path.parent.name in SMALL:
            item.fixturenames.insert(0, "quick_compilation")


@pytest.fixture(scope="session")
def run():
    """One run on the circle that forms two clusters."""
    import tokenflock as flock
    from tokenflock.dynamics import SelfAttention
    from tokenflock.starts import Uniform

    return flock.simulate(SelfAttention(beta=4.0), Uniform(n=32, d=2), t=30, frames=61, seed=0)
