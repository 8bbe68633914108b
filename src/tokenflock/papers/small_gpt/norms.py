"""Trained and untrained, with the norm in four places.

GPTs with the normalisation schemes of the theory's catalogue: pre ($x + F(norm x)$), post ($norm(x
+ F(x))$), peri ($x + norm F(norm x)$) and nGPT (tokens on the unit sphere). Tokens of held-out
passages are followed through the layers, after the training and with the fresh weights of the same
seed. Two tokens are near if their cosine is above 0.9.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.gpt.language import LanguageModel
from tokenflock.gpt.watching import followed
from tokenflock.papers.small_gpt._drawing import both, spread
from tokenflock.papers.small_gpt._models import LABELS, passages, said, train_all, trained_and_not
from tokenflock.plots import panels
from tokenflock.plots.styles import Figure
from tokenflock.probing.surveying import NEAR
from tokenflock.reproduction.claim import Claim, at_least, at_most
from tokenflock.reproduction.scale import Scale

SOURCE = "Part 3"
CAPTION = (
    "See what the place of the norm does to the mean cosine of tokens, the share of near pairs "
    "and the effective rank from layer to layer, before and after training."
)
NORMS = {"pre": "pre-norm", "post": "post-norm", "peri": "peri-norm", "ngpt": "nGPT"}


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    models, ids = train_all(scale, [{"norm": norm} for norm in NORMS]), passages(scale)
    data = xr.concat([trained_and_not(row, ids) for row in models], "norm").assign_coords(
        norm=list(NORMS)
    )
    same = [
        [
            [same_letter(model, ids) for model in (trained.model, trained.untrained)]
            for trained in row
        ]
        for row in models
    ]
    return data.assign(
        loss=(("norm", "seed"), [[trained.loss for trained in row] for row in models]),
        same_letter=(("norm", "seed", "weights"), same),
        same_letter_anyhow=float(np.mean([_pairs(row[:, None] == row).mean() for row in ids])),
    ).assign_attrs(setting=said(scale))


def same_letter(model: LanguageModel, ids: np.ndarray) -> float:
    """The share of near pairs of the last layer that are the same letter."""
    x = followed(model, ids, None, [])["x"].isel(layer=-1).values
    u = x / np.linalg.norm(x, axis=-1, keepdims=True)
    near = _pairs(u @ u.swapaxes(1, 2) > 1 - NEAR)
    same = _pairs(ids[:, :, None] == ids[:, None])
    return float((near & same).sum() / max(near.sum(), 1))


def _pairs(table: np.ndarray) -> np.ndarray:
    """Entries i < j."""
    return table[..., *np.triu_indices(table.shape[-1], 1)]


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    names = ("mean_cosine", "pair_density", "effective_rank")
    figure, axes = panels(len(names), len(NORMS), size=(2.2, 2.0), sharex=True)
    for row, name in enumerate(names):
        top = 1.08 * float(data[name].max())
        for column, (norm, title) in enumerate(NORMS.items()):
            ax = axes[row * len(NORMS) + column]
            both(
                ax,
                data[name].sel(norm=norm),
                title if row == 0 else "",
                LABELS[name] if column == 0 else "",
                top,
            )
            if row == len(names) - 1:
                ax.set_xlabel("layer")
    axes[0].legend(loc="best")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    last = data.isel(layer=-1)
    trained, fresh = (last.sel(weights=weights) for weights in ("trained", "untrained"))
    return [
        *_places(trained, fresh),
        *(claim for norm in NORMS for claim in _each(norm, trained, fresh)),
    ]


def _places(trained: xr.Dataset, fresh: xr.Dataset) -> list[Claim]:
    """Where training leads from different places."""
    ends = {
        norm: (
            f"{NORMS[norm]} {spread(fresh.mean_cosine.sel(norm=norm))} and"
            f" {spread(trained.mean_cosine.sel(norm=norm))}"
        )
        for norm in NORMS
    }
    return [
        Claim(
            "far-apart",
            "with fresh weights the place of the norm decides how near tokens are in the last layer"
            " (mean cosine, its range over the four places)",
            "observation",
            _range(fresh.mean_cosine),
            at_least(0.4),
            note="mean cosine before and after the training: " + "; ".join(ends.values()),
        ),
        Claim(
            "same-place",
            "training leads all four to about the same mean cosine (the same range after the"
            " training, over that before)",
            "observation",
            _range(trained.mean_cosine) / _range(fresh.mean_cosine),
            at_most(0.5),
            note=(
                f"effective rank {spread(trained.effective_rank, 1)} after,"
                f" {spread(fresh.effective_rank, 1)} before"
            ),
        ),
    ]


def _range(values: xr.DataArray) -> float:
    mean = values.mean("seed")
    return float(mean.max() - mean.min())


def _each(norm: str, trained: xr.Dataset, fresh: xr.Dataset) -> list[Claim]:
    learned, other, name = trained.sel(norm=norm), fresh.sel(norm=norm), NORMS[norm]
    anyhow = float(trained.same_letter_anyhow)
    few = bool((other.pair_density < 1e-3).any())
    untrained = "hardly any pair is near" if few else spread(other.same_letter)
    return [
        Claim(
            f"apart-{norm}",
            f"{name}: trained tokens do not collapse (greatest mean cosine of the last layer over"
            " seeds; 1 is consensus)",
            "observation; Theorem 6.1 of arXiv 2312.10794 has consensus for idealised layers",
            float(learned.mean_cosine.max()),
            at_most(0.7),
            note=(
                f"loss {spread(learned.loss, 3)}; share of pairs above 0.9"
                f" {spread(learned.pair_density, 3)} (untrained {spread(other.pair_density, 3)})"
            ),
        ),
        Claim(
            f"letters-{norm}",
            f"{name}: trained tokens that are near are the same letter, more often than by chance"
            " (least share of near pairs over seeds)",
            "observation",
            float(learned.same_letter.min()),
            at_least(2 * anyhow),
            note=(
                f"{spread(learned.same_letter)}, where ${anyhow:.3f}$ of all pairs are the"
                f" same letter; with fresh weights {untrained}"
            ),
        ),
    ]
