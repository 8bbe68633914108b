"""Where a single system runs."""

from __future__ import annotations

from contextlib import contextmanager

import jax

SMALL = 2**19  # multiplications in one matrix of inner products, below which a GPU waits for its own launches


@contextmanager
def placed(n: int, d: int):
    """Scope in which a small system of n tokens in d dimensions runs on the CPU, even where there is a GPU.

    One step of it is less work than the launch of a kernel. Ensembles are never small.
    """
    if n * n * d > SMALL or jax.default_backend() == "cpu":
        yield
        return
    with jax.default_device(jax.devices("cpu")[0]):
        yield
