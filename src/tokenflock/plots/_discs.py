"""Tokens as discs: those that coincide become one disc, whose area tells its weight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array

from tokenflock.observables.cluster_labels import ClusterLabels
from tokenflock.plots._story import Story
from tokenflock.plots.styles import Theme, root_of

COINCIDE = 1e-4  # tokens whose cosine is within this of one look like one
_LOOKED_AT = 64  # frames among which the one that gives the colours is sought
_USUAL = 245.0  # points: a side of a picture of one circle
_COLOURS = 7  # clusters with a colour of their own


class Discs(NamedTuple):
    """What is drawn at one frame."""

    x: np.ndarray  # (m, d)
    w: np.ndarray  # (m,)
    group: np.ndarray  # (m,), index of the colour


def discs(
    run: Story, frames: np.ndarray, groups: np.ndarray, delta: float = COINCIDE
) -> list[Discs]:
    """The discs of each frame.

    A chain of tokens that is wider than a disc stays a chain of tokens.
    """
    labels = run.measured(ClusterLabels(delta), frames).values[:, run.kept]
    return [_joined(run.x[frame], run.w, row, groups, delta) for frame, row in zip(frames, labels)]


def _joined(
    x: np.ndarray, w: np.ndarray, labels: np.ndarray, groups: np.ndarray, delta: float
) -> Discs:
    _, place = np.unique(labels, return_inverse=True)
    centre = _means(x, w, place)
    near = np.einsum("nd,nd->n", x, centre[place]) >= 1 - 4 * delta
    wide = np.unique(place[~near])
    loose = np.isin(place, wide)
    place = np.where(loose, place.max() + 1 + np.arange(len(place)), place)
    _, first, place = np.unique(place, return_index=True, return_inverse=True)
    return Discs(
        _means(x, w, place), np.bincount(place, weights=w), _heaviest(place, w, groups, len(first))
    )


def _means(x: np.ndarray, w: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The direction of the mean of each group of tokens."""
    total = np.zeros((place.max() + 1, x.shape[1]))
    np.add.at(total, place, w[:, None] * x)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return total / np.where(length > 0, length, 1)


def _heaviest(place: np.ndarray, w: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """The colour that has most weight in each disc."""
    table = np.zeros((count, groups.max() + 1))
    np.add.at(table, (place, groups), w)
    return table.argmax(axis=1)


class Colouring(NamedTuple):
    """Which token has which colour, and why."""

    group: np.ndarray  # (n,), index of the colour
    meaning: str  # of the colours, for a reader; nothing where there is one colour


def colour_groups(run: Story, clusters_at: float | None = None) -> np.ndarray:
    """The colour of each token, an index, as `colouring` gives it."""
    return colouring(run, clusters_at).group


def colouring(run: Story, clusters_at: float | None = None) -> Colouring:
    """The colour of each token: that of its cluster at a time, the heaviest clusters first.

    Of a model the most frequent words have a colour each, unless a time is given. Else the time is
    the last one; where all tokens are one by then, it is the end of the longest stage with a few
    clusters, so that the picture shows who met whom. Where there are more clusters than colours to
    the end, all tokens have the first.
    """
    if clusters_at is None and run.words is not None:
        return Colouring(_ranked(run.words, run.w), _meaning_of_words(run.words))
    frame = _telling(run) if clusters_at is None else run.frame(clusters_at)
    if frame is None:
        return Colouring(np.zeros(run.n, dtype=int), "")
    labels = run.measured(ClusterLabels(run.delta), np.array([frame])).values[0, run.kept]
    group = _ranked(labels, run.w)
    return Colouring(group, _meaning_of_clusters(labels, group, run.moment(frame, False)))


def _telling(run: Story) -> int | None:
    """The frame whose clusters tell who met whom; None where nobody met, but for a few."""
    frames = np.unique(np.linspace(0, run.frames - 1, _LOOKED_AT).round().astype(int))
    labels = run.measured(ClusterLabels(run.delta), frames).values[:, run.kept]
    counts = np.array([len(np.unique(row)) for row in labels])
    telling = counts[(counts >= 2) & (counts <= _COLOURS)]
    if counts[-1] > _COLOURS:
        return None
    if counts[-1] > 1 or len(telling) == 0:
        return int(frames[-1])
    levels, stays = np.unique(telling, return_counts=True)
    return int(frames[np.flatnonzero(counts == levels[stays.argmax()])[-1]])


def _meaning_of_words(words: np.ndarray) -> str:
    count = len(np.unique(words))
    if count == 1:
        return ""
    what = "letters" if max(map(len, words)) == 1 else "words"
    return f"colours: {what if count <= _COLOURS else f'the {_COLOURS} commonest {what}'}"


def _meaning_of_clusters(labels: np.ndarray, group: np.ndarray, moment: str) -> str:
    """What the colours mean: 'colours: the 2 clusters at t = 9.9, of 63 and 1 tokens'."""
    sizes = np.bincount(group)
    if len(sizes) == 1:
        return ""
    count = len(np.unique(labels))
    if count > _COLOURS:
        return f"colours: the {_COLOURS} heaviest of {count} clusters at {moment}"
    told = ", ".join(map(str, sizes[:-1])) + f" and {sizes[-1]}"
    return f"colours: the {count} clusters at {moment}, of {told} tokens"


def _ranked(labels: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Clusters numbered by weight.

    Those past the palette share its last, neutral colour; loose tokens have the first.
    """
    _, place = np.unique(labels, return_inverse=True)
    if len(place) == place.max() + 1:
        return np.zeros(len(place), dtype=int)
    weight = np.bincount(place, weights=w)
    rank = np.empty(len(weight), dtype=int)
    rank[np.argsort(-weight, kind="stable")] = np.arange(len(weight))
    return np.minimum(rank[place], _COLOURS)


def colours(theme: Theme, group: np.ndarray) -> np.ndarray:
    """RGBA of each index."""
    return to_rgba_array([*theme.palette, theme.neutral])[group]


def areas(ax: Axes, w: np.ndarray, n: int) -> np.ndarray:
    """Areas of discs in points^2: a floor, so that every token is seen, plus a share that grows
    with weight.
    """
    extent = min(ax.get_position().bounds[2:] * root_of(ax).get_size_inches()) * 72
    extent = _USUAL * (extent / _USUAL) ** 0.6  # small pictures have relatively large discs
    least = 0.022 * extent * min(1.0, (100 / n) ** 0.25)
    return least**2 + w * (0.085 * extent) ** 2
