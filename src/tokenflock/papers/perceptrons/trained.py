"""Trained feed-forward parts keep tokens apart, which attention alone would gather.

Observations on small GPTs; arXiv 2605.07772 (abstract) has trained feed-forward parts let tokens
leave the clusters of attention in a mean-field model of its own, with noise. GPTs on characters
whose layers share their weights (`tokenflock.gpt`, trained as in `small-gpt`), pre-norm and nGPT,
several seeds. After the training the one layer is passed four times as often as it was trained: as
it is, without its feed-forward part (the gain of that step is zero), and with it shuffled (the
entries of each of its matrices in random order, so that their sizes are kept and what was learned
is lost). Tokens of held-out passages are followed; a cluster is a chain of cosines above 0.9.
Differences are taken seed by seed; a claim that one is above zero asks for a mean beyond Student's
99.5 % quantile times its standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.stats import t as student

from tokenflock.gpt.gpt import GPT
from tokenflock.papers.small_gpt._drawing import spread
from tokenflock.papers.small_gpt._models import LABELS, layers, passages, settings, train
from tokenflock.plots import look, panels
from tokenflock.plots.bands import band
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array

SOURCE = "arXiv 2605.07772: trained feed-forward parts"
CAPTION = (
    "See tokens gather where the feed-forward part of a trained layer is left out (dashed) and"
    " stay apart where it is there (solid; dotted: shuffled), with bands over seeds; the vertical"
    " line is the depth that was trained."
)
OBSERVED = "observation; cf. abstract of arXiv 2605.07772"
NORMS = {"pre": "pre-norm", "ngpt": "nGPT"}
PARTS = {"whole": "trained", "without": "left out", "shuffled": "shuffled"}
STYLES = {"whole": (0, "-"), "without": (1, "--"), "shuffled": (2, ":")}
FACTOR = 4  # times the trained depth


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    seeds, ids = range(scale.pick(quick=4, paper=8)), passages(scale)
    shape, schedule = settings(scale)
    depth = shape.depth
    rows: list[xr.Dataset] = [
        xr.concat([_seed(scale, norm, seed, ids, FACTOR * depth) for seed in seeds], "seed")
        for norm in NORMS
    ]
    setting = (
        f"one shared layer, trained with {depth} passes: {shape.heads} heads, width {shape.width},"
        f" context {shape.context}, {schedule.steps} steps of {schedule.batch} windows of the"
        f" manual of Python, {len(seeds)} seeds; {FACTOR * depth} passes of {len(ids)} held-out"
        " passages"
    )
    data = xr.concat(rows, "norm").assign_coords(norm=list(NORMS), part=list(PARTS))
    return data.assign_attrs(setting=setting, depth=depth, tokens=ids.shape[1])


def _seed(scale: Scale, norm: str, seed: int, ids: np.ndarray, passes: int) -> xr.Dataset:
    """What tokens do in one model as it is, without its feed-forward part, and with it shuffled."""
    model = cast(GPT, train(scale, seed, norm=norm, shared=True).model)
    changes: list[Callable[[GPT], GPT]] = [lambda same: same, without, lambda m: shuffled(m, seed)]
    parts: list[xr.Dataset] = []
    for change in changes:
        changed = change(model)
        loss = changed.loss(jnp.asarray(ids[:, :-1]), jnp.asarray(ids[:, 1:]))
        parts.append(layers(changed, ids, passes).assign(loss=float(loss)))
    return xr.concat(parts, "part")


def without(model: GPT) -> GPT:
    """A model whose feed-forward parts say nothing: what they read, or say, has gain zero."""

    def gains(model: GPT) -> list[Array]:
        return [block.moves[1].gains for block in model.blocks]

    return eqx.tree_at(gains, model, [0 * gain for gain in gains(model)])


def shuffled(model: GPT, seed: int) -> GPT:
    """A model with the entries of each matrix of its feed-forward parts in random order."""

    def matrices(model: GPT) -> list[Array]:
        return [W for block in model.blocks for W in (block.perceptron.up, block.perceptron.down)]

    old = matrices(model)
    keys = jax.random.split(jax.random.key(seed), len(old))
    new = [jax.random.permutation(key, W.ravel()).reshape(W.shape) for key, W in zip(keys, old)]
    return eqx.tree_at(matrices, model, new)


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    names, depth = ("mean_cosine", "cluster_count"), int(data.attrs["depth"])
    figure, axes = panels(1, 2 * len(names), size=(2.3, 2.5))
    with look(figure) as theme:
        for place, (norm, name) in enumerate((n, k) for k in names for n in NORMS):
            ax, values = axes[place], data[name].sel(norm=norm)
            for part, (colour, line) in STYLES.items():
                here = values.sel(part=part)
                band(ax, here, "layer", theme.palette[colour], PARTS[part], line)
            ax.axvline(depth, color=theme.faint, lw=0.8, zorder=0)
            ax.set(xlabel="passes of the layer", xlim=(0, float(data.layer[-1])), ylim=(0, None))
            ax.set_title(NORMS[norm])
            ax.set_ylabel(LABELS[name] if norm == next(iter(NORMS)) else "")
        axes[0].legend(loc="lower right", title="feed-forward part", fontsize="small")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    return [claim for norm in NORMS for claim in _each(data.sel(norm=norm), norm)]


def above_zero(differences: Array) -> tuple[float, float, float]:
    """(mean over seeds, its standard error, what the mean must exceed to be above zero)."""
    count = len(differences)
    error = float(np.std(differences, ddof=1) / np.sqrt(count))
    return float(np.mean(differences)), error, float(student.ppf(0.995, count - 1)) * error


def _each(data: xr.Dataset, norm: str) -> list[Claim]:
    depth, tokens = int(data.attrs["depth"]), int(data.attrs["tokens"])
    sphere = [_closer(data, depth)] if norm == "ngpt" else []
    return [
        _gathers(data, norm, depth),
        *_clusters(data.isel(layer=-1), norm, tokens),
        _learned(data, norm),
        *sphere,
    ]


def _gathers(data: xr.Dataset, norm: str, depth: int) -> Claim:
    """Mean cosines without the feed-forward part, minus those with it."""
    cosine = data.mean_cosine.isel(layer=-1)
    whole, none, shuffled = (cosine.sel(part=part) for part in PARTS)
    mean, error, least = above_zero((none - whole).values)
    trained = data.mean_cosine.sel(layer=depth)
    early, its, _ = above_zero((trained.sel(part="without") - trained.sel(part="whole")).values)
    order, of_order, _ = above_zero((shuffled - whole).values)
    return Claim(
        f"gathers-{norm}",
        f"{NORMS[norm]}, passed four times as often: without its feed-forward part the trained"
        " layer brings tokens closer (mean cosine without it minus with it, mean over seeds)",
        OBSERVED,
        mean,
        at_least(least),
        error=error,
        note=f"mean cosine {spread(whole)} with it, {spread(none)} without, {spread(shuffled)}"
        f" with it shuffled (minus with it: ${order:.2f} ± {of_order:.2f}$); at the trained depth"
        f" the difference is ${early:.2f} ± {its:.2f}$",
    )


def _closer(data: xr.Dataset, depth: int) -> Claim:
    cosine = data.mean_cosine.sel(layer=depth)
    mean, error, least = above_zero((cosine.sel(part="without") - cosine.sel(part="whole")).values)
    return Claim(
        "closer-ngpt",
        "nGPT: so it does at the trained depth already (mean cosine without it minus with it, mean"
        " over seeds)",
        OBSERVED,
        mean,
        at_least(least),
        error=error,
        note=f"mean cosine {spread(cosine.sel(part='without'))} without it,"
        f" {spread(cosine.sel(part='whole'))} with it",
    )


def _clusters(last: xr.Dataset, norm: str, tokens: int) -> list[Claim]:
    count = last.cluster_count
    whole, none, shuffled = (count.sel(part=part) for part in PARTS)
    return [
        Claim(
            f"collapse-{norm}",
            f"{NORMS[norm]}, passed four times as often without it: nearly all tokens are in one"
            f" cluster (number of clusters of {tokens} tokens, greatest over seeds)",
            "observation; Theorem 6.1 of arXiv 2312.10794 has consensus for idealised layers",
            float(none.max()),
            at_most(tokens / 10),
            note=f"{spread(none, 1)} clusters; effective rank"
            f" {spread(last.effective_rank.sel(part='without'), 1)}",
        ),
        Claim(
            f"apart-{norm}",
            f"{NORMS[norm]}, the same with it: many clusters are left (number, least over seeds)",
            OBSERVED,
            float(whole.min()),
            at_least(tokens / 10),
            note=f"{spread(whole, 1)} clusters, {spread(shuffled, 1)} with it shuffled",
        ),
    ]


def _learned(data: xr.Dataset, norm: str) -> Claim:
    loss = data.loss
    whole, none, shuffled = (loss.sel(part=part) for part in PARTS)
    mean, error, least = above_zero((shuffled - whole).values)
    return Claim(
        f"learned-{norm}",
        f"{NORMS[norm]}: what the feed-forward part has learned is lost when it is shuffled (loss"
        " on the passages with it shuffled minus as trained, nats, mean over seeds)",
        "observation (a control: shuffling keeps sizes only)",
        mean,
        at_least(least),
        error=error,
        note=f"loss {spread(whole)}, shuffled {spread(shuffled)}, without {spread(none)}",
    )
