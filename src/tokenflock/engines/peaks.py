"""Which tokens are their own largest logit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.job import Job
from tokenflock.parts.given_heads import GivenHeads
from tokenflock.parts.no_mask import NoMask
from tokenflock.parts.no_positions import NoPositions
from tokenflock.parts.post import Post


def peaked(job: Job, swept: list[Any]) -> bool:
    """Whether each token is its own largest logit in every system of a job."""
    return is_peaked(job.law, betas(job, swept), job.w)


def betas(job: Job, swept: Sequence[Any]) -> list[Any]:
    """The inverse temperatures of a job: those that are swept, or the one of the law."""
    told = zip(job.paths, swept)
    beta = [values for path, values in told if path[0] == 0 and path[-1] == "beta"]
    return beta or [job.law.inverse_temperature]


def is_peaked(law: Dynamics, beta: list[Any], w: Any) -> bool:
    """Whether each token is its own largest logit: unit vectors that ask and answer by themselves,
    attract, see themselves, and all count.
    """
    block = law.as_block()
    heads, norm, zero = block.heads, block.norm, jnp.zeros((), jnp.int32)
    return (
        isinstance(heads, GivenHeads)
        and all(part is None for part in (heads.Q, heads.K, heads.q, heads.k))
        and isinstance(block.positions, NoPositions)
        and isinstance(norm, Post)
        and norm.first is None
        and (isinstance(block.mask, NoMask) or bool(block.mask.sees(zero, zero)))
        and all(value is not None and bool(np.all(np.asarray(value) >= 0)) for value in beta)
        and bool((np.asarray(w) > 0).all())
    )
