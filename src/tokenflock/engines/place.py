"""Where a single system runs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import jax

SMALL = (
    2**19
)  # multiplications in one matrix of inner products, below which a GPU waits for its own launches


def placed(n: int, d: int) -> AbstractContextManager:
    """Scope in which a small system of n tokens in d dimensions runs on the CPU, even where there
    is a GPU.

    One step of it is less work than the launch of a kernel. Ensembles are never small.
    """
    return on_cpu() if n * n * d <= SMALL else nullcontext()


def on_cpu() -> AbstractContextManager:
    """Scope in which JAX computes on the CPU."""
    return (
        nullcontext()
        if jax.default_backend() == "cpu"
        else jax.default_device(jax.devices("cpu")[0])
    )


def hosted(x: jax.Array) -> bool:
    """Whether an array lies in the memory of the CPU."""
    return all(device.platform == "cpu" for device in x.devices())
