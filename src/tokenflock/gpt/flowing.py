"""The neural ODE view: the layer of a shared model is a step of a flow.

Halve the step, double the depth, and compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock.errors import UserError, require
from tokenflock.gpt.gpt import GPT
from tokenflock.gpt.language import LanguageModel, cross_entropy
from tokenflock.shapes import Array


def refine(
    model: LanguageModel, ids: np.ndarray, factors: Sequence[int] = (1, 2, 4, 8)
) -> xr.Dataset:
    """One shared layer as a flow: depth L k with steps h = 1/k, for k in `factors`, all reaching
    the same time L.

        x_{l+1} = x_l + h F(x_l),   h = 1/k,   l = 0, ..., L k

    Returns, for each factor, `distance` (to the tokens of the finest steps, against their length),
    `divergence` (Kullback-Leibler, from the predictions of the trained step to these) and `loss` on
    the passages `ids` (prompt, token). Where layers are steps of a smooth flow, `distance` falls
    like h. With nGPT each step ends on the sphere. A post-norm layer is no identity at h = 0,
    because of the gain of its norm, and is refused. Source: section 2 of arXiv 2312.10794.
    """
    if isinstance(model, GPT) and model.shape.norm == "post":
        raise UserError(
            "a post-norm layer is no small step of a flow: its gain acts at h = 0 too; train with"
            " --norm pre or ngpt"
        )
    return _compared(model, ids, factors, lambda k: 1 / k)


def extend(model: LanguageModel, ids: np.ndarray, factors: Sequence[int] = (1, 2, 4)) -> xr.Dataset:
    """The same layer and step past the trained depth: `loss` and `divergence` at depth L k."""
    return _compared(model, ids, factors, lambda k: 1.0).drop_vars("distance")


def _compared(
    model: LanguageModel, ids: np.ndarray, factors: Sequence[int], step: Callable[[int], float]
) -> xr.Dataset:
    """Depth L k with steps of length `step(k)`, for each factor k."""
    if not (isinstance(model, GPT) and model.shape.shared):
        raise UserError(
            "the layers of this model have weights of their own, so they are no flow; train one"
            " with --shared"
        )
    factors = sorted(set(factors))
    require(len(factors) > 0 and factors[0] >= 1, "factors", "1 or more", factors)
    settings = {k: (model.shape.depth * k, step(k)) for k in {1, *factors}}
    last = {
        k: _last(model, jnp.asarray(ids), *map(jnp.asarray, how)) for k, how in settings.items()
    }
    logs = {k: jax.nn.log_softmax(model.read(x)) for k, x in last.items()}
    finest, trained = last[factors[-1]], logs[1]
    rows = [
        (
            float(
                jnp.mean(
                    jnp.linalg.norm(last[k] - finest, axis=-1) / jnp.linalg.norm(finest, axis=-1)
                )
            ),
            float(jnp.mean(jnp.sum(jnp.exp(trained) * (trained - logs[k]), axis=-1))),
            float(cross_entropy(logs[k][:, :-1], jnp.asarray(ids)[:, 1:])),
        )
        for k in factors
    ]
    names = {
        "distance": "distance to the finest steps",
        "divergence": "change of predictions",
        "loss": "loss",
    }
    columns = np.asarray(rows).T
    depths, steps = zip(*(settings[k] for k in factors))
    return xr.Dataset(
        {
            name: ("factor", column, {"long_name": names[name]})
            for name, column in zip(names, columns)
        },
        {"factor": factors, "depth": ("factor", list(depths)), "h": ("factor", list(steps))},
    )


@eqx.filter_jit
def _last(model: GPT, ids: Array, depth: Array, h: Array) -> Array:
    """Tokens after many passes of the one block.

    Depth and step are traced: one compiled function serves them all.
    """
    return jax.lax.fori_loop(0, depth, lambda _, x: model.blocks[0](x, h), model.start(ids))
