"""The tokens of a model while it is trained: what they do at chosen steps, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock.errors import UserError
from tokenflock.gpt.gpt import GPT
from tokenflock.gpt.language import LanguageModel
from tokenflock.observables import ClusterCount, EffectiveRank, MeanCosine, Observable
from tokenflock.probing.surveying import NEAR, Energies
from tokenflock.shapes import Array
from tokenflock.verbs import save_load as results
from tokenflock.verbs.measure import measure


@dataclass(frozen=True)
class Watcher:
    """Measures the tokens of some passages at chosen steps of a training, into `watch.nc` beside
    the checkpoint: mean cosine, clusters, effective rank and energies, (step, prompt, layer)."""

    folder: Path
    ids: np.ndarray  # (prompt, token)
    steps: frozenset[int]

    def look(self, model: LanguageModel, step: int) -> None:
        """Measure now, and add it to the file; what it says of later steps goes."""
        block = followed(model, jnp.asarray(self.ids)).drop_vars("x").expand_dims(step=[step])
        path = self.folder / "watch.nc"
        if path.is_file():
            before = results.load(path)
            block = xr.concat(
                [before.sel(step=before.step < step), block], "step", data_vars="minimal"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        results.save(block, path)


def followed(
    model: LanguageModel,
    ids: Array,
    depth: int | None = None,
    observe: Sequence[Observable] | None = None,
) -> xr.Dataset:
    """The tokens of passages `ids` (prompt, token) in a model at hand, layer by layer, and what is
    measured on them: mean cosine, clusters, effective rank and energies unless given."""
    x = np.asarray(states(model, ids, depth)).transpose(1, 0, 2, 3)
    block = xr.Dataset(
        {"x": (("prompt", "layer", "token", "coord"), x)}, {"layer": np.arange(x.shape[1])}
    )
    return measure(
        block,
        (
            [MeanCosine(), ClusterCount(delta=NEAR), EffectiveRank(), Energies()]
            if observe is None
            else observe
        ),
    )


@eqx.filter_jit
def states(model: LanguageModel, ids: Array, depth: int | None) -> Array:
    """The tokens (layer, batch, time, width) of a model, compiled; of another depth where it has
    one layer that is iterated.
    """
    if depth is None:
        return model.states(ids)
    if not isinstance(model, GPT):
        raise UserError("depth must be left out: only the rung gpt has a layer to pass again")
    return model.states(ids, depth)
