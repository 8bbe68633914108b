"""The ladder: what each idea is worth.

Six models on the same text, from a table of pairs of letters to the GPT, each with one idea more:
bigram, one head of attention, many heads, a feed-forward part, residual layers with norms, and the
GPT with weight tying. The loss is in nats a letter on held-out text. A bigram cannot be better than
the entropy of a letter given the one before it, which is counted from the text.

Rungs differ in more than their idea: lower ones bear a larger learning rate and have no residual
connections, so their fresh weights are larger. A feed-forward part without residual connections
learns slowly; in few steps it may gain nothing over the rung before, and there is no claim on it.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.gpt.settings import RUNGS
from tokenflock.gpt.text import split
from tokenflock.gpt.training import validate
from tokenflock.papers.small_gpt._drawing import spread
from tokenflock.papers.small_gpt._models import corpus, said, settings, train_all
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, between
from tokenflock.reproduction.scale import Scale

SOURCE = "Part 1"
CAPTION = (
    "See the loss on held-out text fall with each idea that is added, from bigrams to the "
    "full model."
)


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    models = train_all(
        scale, [{"rung": rung} if rung != "gpt" else {"norm": "pre"} for rung in RUNGS]
    )
    shape, _ = settings(scale)
    data, _ = split(corpus()[1], shape.context)
    learned = [validate(trained.model, data, shape.context) for trained in models[0]]
    return xr.Dataset(
        {
            "loss": (("rung", "seed"), [[trained.loss for trained in row] for row in models]),
            "bigram_on_its_text": ("seed", learned),
            "entropy": conditional_entropy(data),
        },
        {"rung": list(RUNGS)},
        {"setting": said(scale), "depth": shape.depth},
    )


def conditional_entropy(ids: np.ndarray) -> float:
    """H(next | this) of a text in nats, from the counts of its pairs.

    >>> conditional_entropy(np.array([0, 1, 0, 1, 0]))
    0.0
    """
    counts = np.zeros((ids.max() + 1, ids.max() + 1))
    np.add.at(counts, (ids[:-1], ids[1:]), 1)
    rows = counts.sum(axis=1, keepdims=True)
    seen = counts > 0
    return float(
        abs(-(counts[seen] * np.log((counts / np.maximum(rows, 1))[seen])).sum() / counts.sum())
    )


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, (ax,) = panels(1, 1, size=(5.2, 2.9))
    with look(figure) as theme:
        mean, places = data.loss.mean("seed"), np.arange(data.sizes["rung"])
        ax.bar(places, mean, color=theme.palette[0], width=0.6)
        ax.vlines(places, data.loss.min("seed"), data.loss.max("seed"), color=theme.ink, lw=1.2)
        for place, value in zip(places, mean.values):
            ax.text(float(place), value + 0.05, f"{value:.2f}", ha="center", va="bottom")
        ax.set_xticks(places, data.rung.values)
        ax.set(ylabel="loss on held-out text (nats)", ylim=(0, float(data.loss.max()) + 0.35))
        ax.set_title(f"{data.sizes['seed']} seeds: mean, and range as a line")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    gap = data.bigram_on_its_text - data.entropy
    loss = {str(rung): data.loss.sel(rung=rung) for rung in data.rung.values}
    return [
        Claim(
            "bigram",
            "the bigram comes within 0.1 nats of the entropy of a letter given the one before, and"
            " not below it (loss on the text it learned from, less the entropy of its pairs; mean"
            " over seeds)",
            "the rung bigram; Gibbs' inequality",
            float(gap.mean()),
            between(0, 0.1),
            note=f"entropy ${float(data.entropy):.4f}$; on held-out text {spread(loss['bigram'])}",
        ),
        *(
            _gain(loss, *pair)
            for pair in (("bigram", "head"), ("head", "multi-head"), ("feed-forward", "residual"))
        ),
        Claim(
            "gpt",
            "the GPT is as good as the residual rung it is made of (greatest difference of losses"
            " over seeds, nats)",
            "the rung gpt",
            float(abs(loss["gpt"] - loss["residual"]).max()),
            at_most(0.15),
            note=(
                f"GPT {spread(loss['gpt'], 3)}, residual {spread(loss['residual'], 3)}: it ties the"
                " readout to the table of letters and computes all heads at once"
            ),
        ),
    ]


def _gain(loss: dict[str, xr.DataArray], lower: str, upper: str) -> Claim:
    gain = loss[lower] - loss[upper]
    return Claim(
        f"gain-{upper}",
        f"the rung {upper} is better than {lower} (gain in nats, mean over seeds)",
        f"the rung {upper}",
        float(gain.mean()),
        at_least(0.02),
        note=f"{spread(loss[lower], 3)} and {spread(loss[upper], 3)}",
    )
