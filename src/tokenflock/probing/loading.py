"""Any model that can be probed, from what names it."""

from __future__ import annotations

from typing import Any

from tokenflock.errors import require
from tokenflock.gpt.checkpoint import is_ours
from tokenflock.probing import huggingface, own_gpt
from tokenflock.probing.blocks import TrainedLayer
from tokenflock.probing.model import Model
from tokenflock.probing.options import Variant


def load(model: Any, variant: Variant = Variant()) -> Model:
    """A model from a folder (of transformers, or one that `tokenflock gpt train` wrote), a name on
    the hub, a model of transformers that is loaded already, or any `Model`, which stays as it is.
    """
    if isinstance(model, Model):
        require(
            variant in (Variant(), model.facts.variant),
            "variant",
            "left out for a model that is loaded already",
            variant,
            "load(model, variant) loads it so",
        )
        return model
    return own_gpt.load(model, variant) if is_ours(model) else huggingface.load(model, variant)


def extract(model: Model) -> list[TrainedLayer]:
    """The layers of a model as matrices, in order; for a model that shares its layer, that one."""
    return model.blocks()
