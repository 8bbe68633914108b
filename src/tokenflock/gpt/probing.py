"""`tokenflock.probe` of a model that was trained here, on the passages beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import xarray as xr

from tokenflock.errors import UserError
from tokenflock.observables.observable import Observable
from tokenflock.probing import layers
from tokenflock.probing.options import Recording, Selection, Variant
from tokenflock.probing.texts import Texts, as_texts, beside


def probe(
    folder: str | os.PathLike[str],
    texts: Texts | None = None,
    depth: int | None = None,
    *,
    variant: Variant = Variant(),
    record: Recording = Recording(),
    tokens: Selection = Selection(),
    observe: Sequence[Observable] = (),
    batch: int = 4,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[float], None] | None = None,
) -> xr.Dataset:
    """`tokenflock.probe` of a checkpoint.

    On the passages of held-out text that lie beside it unless texts are given.
    """
    passages = beside(folder) if texts is None else as_texts(texts)
    if passages is None:
        raise UserError(f"texts must be given, since {folder} has no prompts.json, got none")
    return layers.probe(
        folder,
        passages,
        depth,
        variant=variant,
        record=record,
        tokens=tokens,
        observe=observe,
        batch=batch,
        out=out,
        progress=progress,
    )
