"""The systems of an ensemble: which tokens and matrices each of them gets, by one random key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.job import Job
from tokenflock.engines.keys import keys_of, threefry
from tokenflock.engines.rotation import rotate
from tokenflock.matrices._random import Per, RandomMatrices
from tokenflock.precision import precision, root_key
from tokenflock.shapes import Array
from tokenflock.spaces import Space
from tokenflock.starts.given import Given
from tokenflock.starts.start import Start

QUICK = {  # a quarter of the time to compile, and the same numbers in the same time
    "xla_backend_optimization_level": 1
}


@dataclass(frozen=True)
class Systems:
    """The law from which systems are drawn: tokens, and matrices if they are random. One key for
    each (seed, cell, repeat).
    """

    dynamics: Dynamics
    start: Start
    matrices: RandomMatrices | None
    seed: int
    dtype: str
    t: float
    rotate: bool

    def rotates(self, job: Job) -> bool:
        """Whether tokens are rotated into n dimensions: asked for, allowed by the law, the
        observables and the start, and it pays.
        """
        n, d = self.start.shape
        blind = all(observable.isotropic for observable in job.observables)
        blind = blind and (job.until is None or job.until.isotropic)
        return (
            self.rotate
            and d > n
            and self.dynamics.isotropic
            and blind
            and self.matrices is None
            and not self.dynamics.noisy
        )

    def draw(self, ids: np.ndarray, rotated: bool) -> tuple[Array, Array]:
        """(tokens, keys of the noise) of the systems (cell, repeat) in `ids`.

        `rotated` into n dimensions, or in all d.
        """
        in_span = rotated and self.start.spans
        x, keys = self.drawn(ids, in_span)
        x = _projected(self.dynamics.space, x, self.dtype)
        return rotate(x) if rotated and not in_span else x, keys

    def drawn(self, ids: np.ndarray, in_span: bool = False) -> tuple[Array, Array]:
        """(tokens, keys of the noise) as they come from the start, before any projection."""
        with precision("float32"):
            if jax.default_backend() == "cpu" and threefry():
                own, noise = (keys_of(self.seed, ids, purpose) for purpose in (0, 1))
                x, keys = (
                    _draw_here(self.start, own, in_span),
                    jax.random.wrap_key_data(jnp.asarray(noise)),
                )
            else:
                x, keys = _draw(self.start, self.seed, jnp.asarray(ids, jnp.uint32), in_span)
        if isinstance(self.start, Given):  # given to all digits, so not rounded
            admitted = self.dynamics.space.admit(np.asarray(self.start.x))
            x = np.broadcast_to(admitted, (len(ids), *self.start.shape))
        return x, keys

    def matrices_of(self, ids: np.ndarray) -> tuple[Array, Array | None]:
        """(B, V) of the systems, (systems, layers, d, d), or (systems, layers, heads, d, d)."""
        law, d = self.matrices, self.start.shape[1]
        if law is None:
            raise ValueError("these systems have no random matrices")
        per = {Per.SYSTEM: ids, Per.CELL: ids * [1, 0], Per.RUN: ids * 0}[law.per]
        with precision("float32"):
            B, V = _draw_matrices(
                law,
                d,
                law.layers(self.t),
                self.dynamics.stack,
                self.seed,
                jnp.asarray(per, jnp.uint32),
            )
        return jnp.asarray(B, self.dtype), None if V is None else jnp.asarray(V, self.dtype)


def _keys(seed: int, ids: jax.Array, purpose: int) -> jax.Array:
    root = jax.random.fold_in(root_key(seed), purpose)
    return jax.vmap(lambda pair: jax.random.fold_in(jax.random.fold_in(root, pair[0]), pair[1]))(
        ids
    )


@partial(cast(Any, eqx.filter_jit), compiler_options=QUICK)
def _draw_here(start: Start, keys: Any, in_span: bool) -> Array:
    """The tokens of some keys on a CPU: the numbers of `_draw`."""
    return jax.vmap(start.in_span if in_span else start.draw)(jax.random.wrap_key_data(keys))


@eqx.filter_jit
def _projected(space: Space, x: Any, dtype: str) -> Array:
    """Tokens brought to where they live."""
    return space.project(jnp.asarray(x, dtype))


@eqx.filter_jit
def _draw(start: Start, seed: int, ids: jax.Array, in_span: bool) -> tuple[Array, Array]:
    return jax.vmap(start.in_span if in_span else start.draw)(_keys(seed, ids, 0)), _keys(
        seed, ids, 1
    )


@eqx.filter_jit
def _draw_matrices(
    law: RandomMatrices, d: int, layers: int, heads: int | None, seed: int, ids: jax.Array
) -> tuple[Array, Array | None]:
    return jax.vmap(lambda key: law.draw(key, d, layers, heads))(_keys(seed, ids, 2))
