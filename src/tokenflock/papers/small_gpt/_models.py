"""The models of this study. Each is trained once in a process, whoever asks for it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock.gpt import text
from tokenflock.gpt.checkpoint import Config, fresh
from tokenflock.gpt.language import LanguageModel
from tokenflock.gpt.settings import BEARS, WARMS, Schedule, Shape, preset
from tokenflock.gpt.training import run, untrained
from tokenflock.gpt.watching import followed
from tokenflock.probing.surveying import survey
from tokenflock.reproduction.scale import Scale

# what is kept of a survey
NAMES = ("mean_cosine", "pair_density", "cluster_count", "effective_rank")
LABELS = {
    "mean_cosine": "mean cosine of tokens",
    "pair_density": "share of pairs above 0.9",
    "cluster_count": "clusters (cosine ≥ 0.9)",
    "effective_rank": "effective rank",
}
_KEPT: dict[Any, TrainedModel] = {}


@dataclass(frozen=True)
class TrainedModel:
    """A model after its training, and the same model before it."""

    model: LanguageModel
    untrained: LanguageModel
    loss: float  # on the held-out text
    diary: xr.Dataset  # what the tokens did at some steps of the training


@dataclass(frozen=True)
class Diary:
    """Measures tokens at chosen steps; `tokenflock.gpt.training.run` calls it."""

    ids: np.ndarray
    steps: frozenset[int]
    pages: list[xr.Dataset] = field(default_factory=list)

    def look(self, model: LanguageModel, step: int) -> None:
        """Write a page: what the tokens do at this step."""
        self.pages.append(layers(model, self.ids).expand_dims(step=[step]))


@cache
def corpus() -> tuple[text.Characters, np.ndarray]:
    """The manual of Python, which every installation carries."""
    content = text.read()
    alphabet = text.Characters.of(content)
    return alphabet, alphabet.encode(content)


def settings(scale: Scale, **changes: Any) -> tuple[Shape, Schedule]:
    """`paper` is the preset `cpu`: 4 layers, 4 heads, width 128, context 64, 2,000 steps of 12
    windows.
    """
    small = {"context": 48, "width": 64, "heads": 2, "steps": 600, "batch": 16}
    shape, schedule = preset("cpu", **scale.pick(quick=small, paper={}), **changes)
    return replace(shape, vocab=corpus()[0].size), replace(schedule, every=schedule.steps)


def seeds(scale: Scale) -> range:
    """The seeds of the trainings that are compared."""
    return range(scale.pick(quick=2, paper=3))


def marks(scale: Scale) -> tuple[int, ...]:
    """Steps of the training at which tokens are watched."""
    early = (0, 10, 20, 30, 40, 50, 70, 100)
    return early + scale.pick(quick=(600,), paper=(300, 1000, 2000))


def passages(scale: Scale) -> np.ndarray:
    """Windows of held-out text, (prompt, token)."""
    context = settings(scale)[0].context
    return text.passages(text.split(corpus()[1], context)[1], context)


def train(
    scale: Scale, seed: int, tell: Callable[[int], None] = lambda step: None, **changes: Any
) -> TrainedModel:
    """A model of the study's shape, with changes such as `norm="post"`."""
    key = scale.name, seed, tuple(sorted(changes.items()))
    if key not in _KEPT:
        _KEPT[key] = _trained(scale, seed, tell, changes)
    return _KEPT[key]


def _trained(
    scale: Scale, seed: int, tell: Callable[[int], None], changes: dict[str, Any]
) -> TrainedModel:
    shape, schedule = settings(scale, **changes)
    alphabet, ids = corpus()
    data, held_out = text.split(ids, shape.context)
    config = Config(shape, replace(schedule, seed=seed), alphabet, "")
    diary = Diary(text.passages(held_out, shape.context), frozenset(marks(scale)))
    *_, last = run(untrained(config), data, held_out, lambda now: tell(now.step), diary)
    return TrainedModel(
        last.model, fresh(shape, seed), last.history[-1][2], xr.concat(diary.pages, "step")
    )


def train_all(scale: Scale, kinds: Sequence[dict[str, Any]]) -> list[list[TrainedModel]]:
    """Models of several kinds, a list of seeds for each; progress counts steps."""
    steps, count = settings(scale)[1].steps, len(kinds) * len(seeds(scale))
    models: list[list[TrainedModel]] = []
    for k, kind in enumerate(kinds):
        before = [(k * len(seeds(scale)) + seed) * steps for seed in seeds(scale)]
        models.append(
            [
                train(scale, seed, _reporter(scale, before[seed], count * steps), **kind)
                for seed in seeds(scale)
            ]
        )
    return models


def _reporter(scale: Scale, before: int, total: int) -> Callable[[int], None]:
    return lambda step: scale.progress(before + step, total) if scale.progress is not None else None


def layers(model: LanguageModel, ids: np.ndarray, depth: int | None = None) -> xr.Dataset:
    """What the tokens of some passages do layer by layer, a mean over passages: (layer,)."""
    values = followed(model, jnp.asarray(ids), depth, survey())
    return values[list(NAMES)].mean("prompt", keep_attrs=True)


def trained_and_not(
    models: Sequence[TrainedModel], ids: np.ndarray, depth: int | None = None
) -> xr.Dataset:
    """The same for each seed, before and after the training: (weights, seed, layer)."""
    rows = [
        xr.concat([layers(getattr(model, which), ids, depth) for model in models], "seed")
        for which in ("model", "untrained")
    ]
    return xr.concat(rows, "weights").assign_coords(weights=["trained", "untrained"])


def said(scale: Scale) -> str:
    """The setting in words."""
    shape, schedule = settings(scale)
    alphabet, ids = corpus()
    return (
        f"{shape.depth} layers, {shape.heads} heads, width {shape.width}, context {shape.context},"
        f" {schedule.steps} steps of {schedule.batch} windows, learning rate {schedule.rate:g}"
        f" (bigram {BEARS['bigram']} times, head and multi-head {BEARS['head']} times as much),"
        f" warm-up {schedule.warmup} steps (post-norm {WARMS['post']} times as long),"
        f" {len(seeds(scale))} seeds; the manual of Python {platform.python_version()}"
        f" ({len(ids):,} characters, {alphabet.size} letters), its last tenth held out; tokens of"
        f" {len(passages(scale))} held-out passages"
    )
