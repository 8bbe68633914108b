"""Training: AdamW, a warm-up and a cosine. The batch of a step is a function of the seed and the
step, and so is its dropout: a run that was interrupted goes on as if nothing had happened."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from tokenflock.errors import SimulationError, UserError, require_whole
from tokenflock.files import made_folder
from tokenflock.gpt import text as texts
from tokenflock.gpt.checkpoint import (
    WEIGHTS,
    Checkpoint,
    Config,
    fresh,
    is_ours,
    load,
    refuse_foreign,
    save,
)
from tokenflock.gpt.language import LanguageModel
from tokenflock.gpt.settings import Schedule, Shape
from tokenflock.gpt.watching import Watcher
from tokenflock.locks import alone
from tokenflock.shapes import Array

# windows of the held-out text that are validated on while training; at the end it is all of them
WINDOWS = 256


@dataclass(frozen=True)
class Progress:
    """What is told after every chunk of steps."""

    step: int
    steps: int
    loss: float  # mean over the chunk
    speed: float  # tokens per second since the last report
    left: float  # seconds
    val: float | None = None


Tell = Callable[[Progress], None]


class Witness(Protocol):
    """Who looks at a model while it is trained, at steps of its choice."""

    @property
    def steps(self) -> frozenset[int]:
        """When it looks."""
        ...

    def look(self, model: LanguageModel, step: int) -> None:
        """Called after each of those steps."""
        ...


def optimiser(schedule: Schedule) -> optax.GradientTransformation:
    """Clip the gradient, then AdamW.

    Only matrices decay, for the gains of norms are no weights of a sum.
    """
    rate = optax.warmup_cosine_decay_schedule(
        0.0,
        schedule.rate,
        min(schedule.warmup, schedule.steps // 2),
        schedule.steps,
        min(schedule.last_rate, schedule.rate),
    )
    return optax.chain(
        clipped(schedule.clip),
        optax.adamw(
            lambda count: rate(count + 1),
            *schedule.momentum,
            weight_decay=schedule.decay,
            mask=lambda tree: jax.tree_util.tree_map_with_path(_decays, tree),
        ),
    )


def _decays(path: tuple[Any, ...], leaf: Array) -> bool:
    return leaf.ndim >= 2 and "gain" not in jax.tree_util.keystr(path)


def clipped(most: float) -> optax.GradientTransformation:
    """g min(1, most / |g|).

    `optax.clip_by_global_norm` is the same; here |g|^2 is a product, which CPUs do faster.
    """

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        norm = jnp.sqrt(sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(updates)))
        return (
            jax.tree.map(
                lambda leaf: leaf * jnp.minimum(1, most / jnp.maximum(norm, 1e-12)), updates
            ),
            state,
        )

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def offsets(seed: int, steps: range, batch: int, room: int) -> np.ndarray:
    """Where the windows of each step begin, (steps, batch): a function of the seed and the step."""
    return np.stack(
        [
            np.random.default_rng([seed, step]).integers(0, room, batch, dtype=np.int32)
            for step in steps
        ]
    )


def windows(data: Array, starts: Array, context: int) -> tuple[Array, Array]:
    """Tokens and the tokens that follow them, (batch, context) each."""
    window = data[starts[:, None] + jnp.arange(context + 1)]
    return window[:, :-1], window[:, 1:]


@eqx.filter_jit(donate="all-except-first")
def advance(
    fixed: tuple[Schedule, int, Array],
    model: Any,
    state: Any,
    starts: Array,
    first: Array,
    count: Array,
    seed: Array,
) -> tuple[Any, Any, Array]:
    """`count` steps in one call, the first of them number `first`.

    Returns model, optimiser and the sum of their losses.
    """
    schedule, context, data = fixed
    update = optimiser(schedule).update
    arrays, rest = eqx.partition(model, eqx.is_array)
    root = jax.random.key(seed)

    def step(k, carry):
        arrays, state, total = carry
        key = jax.random.fold_in(root, first + k)

        def loss(arrays):
            return eqx.combine(arrays, rest).loss(*windows(data, starts[k], context), key)

        value, gradient = jax.value_and_grad(loss)(arrays)
        change, state = update(gradient, state, arrays)
        return optax.apply_updates(arrays, change), state, total + value

    arrays, state, total = jax.lax.fori_loop(0, count, step, (arrays, state, jnp.zeros(())))
    return eqx.combine(arrays, rest), state, total


def steps(
    fixed: tuple[Schedule, int, Array], model: Any, state: Any, first: int, last: int
) -> tuple[Any, Any, float]:
    """Steps `first` to `last`; returns model, optimiser and mean loss. One compiled function serves
    any number of them and any seed."""
    schedule, context, data = fixed
    starts = np.zeros((schedule.chunk, schedule.batch), np.int32)
    starts[: last - first] = offsets(
        schedule.seed, range(first, last), schedule.batch, len(data) - context
    )
    numbers = map(jnp.asarray, (starts, first, last - first, schedule.seed))
    # one for all seeds
    model, state, total = advance(
        (replace(schedule, seed=0), context, data), model, state, *numbers
    )
    return model, state, float(total) / (last - first)


@eqx.filter_jit
def _losses(model: LanguageModel, data: Array, starts: Array, context: int) -> Array:
    return jax.lax.map(lambda begin: model.loss(*windows(data, begin, context)), starts)


def validate(
    model: LanguageModel, data: np.ndarray, context: int, most: int | None = None
) -> float:
    """Mean loss over windows that lie end to end in the held-out text, in whole batches of 32.

    Over `most` of them, evenly spread, where given.
    """
    starts = np.arange(0, len(data) - context, context, dtype=np.int32)
    count = len(starts) if most is None else min(most, len(starts))
    batch = min(32, count)
    if count < len(starts):
        starts = starts[np.linspace(0, len(starts) - 1, count // batch * batch).astype(int)]
    whole = starts[: len(starts) // batch * batch].reshape(-1, batch)
    return float(jnp.mean(_losses(model, jnp.asarray(data), jnp.asarray(whole), context)))


def train(
    out: str | os.PathLike[str],
    text: str | None = None,
    shape: Shape = Shape(),
    schedule: Schedule = Schedule(),
    *,
    byte_pairs: int | None = None,
    tell: Tell | None = None,
    watch: Sequence[int] = (),
) -> Checkpoint:
    """Train a model on a text and keep it in the folder `out`; go on where a run with the same
    settings was interrupted.

    Args:
      out: the folder of the checkpoint. Beside it lie `prompts.json`, passages of the held-out
        text, and, with `watch`, `watch.nc`: what the tokens of these passages did.
      text: the text itself; the manual of Python unless given. `shape.vocab` is set from it.
      shape: of the model.
      schedule: of the training.
      byte_pairs: size of a byte-pair vocabulary; characters unless given.
      tell: called after every chunk of steps.
      watch: steps at which tokens are watched, from 0 to those of the schedule.
    """
    text = texts.read() if text is None else text
    if not text:
        raise UserError("the text is empty; bring one with --text FILE")
    alphabet = (
        texts.Characters.of(text) if byte_pairs is None else texts.BytePairs.of(text, byte_pairs)
    )
    for mark in watch:
        require_whole("watch", mark, 0, schedule.steps)
    data, held_out = texts.split(alphabet.encode(text), shape.context)
    digest = hashlib.sha256(text.encode()).hexdigest()
    config = Config(replace(shape, vocab=alphabet.size), schedule, alphabet, digest)
    passages = texts.passages(held_out, shape.context)
    folder = made_folder(out)
    refuse_foreign(folder)
    watcher = Watcher(folder, passages, frozenset(watch)) if watch else None
    with alone(folder, "training this model"):
        start = last = begin(folder, config)
        if start.step == 0:
            save(folder, start)
            texts.save_passages(folder, alphabet, passages)
        for last in run(start, data, held_out, tell, watcher):
            save(folder, last)
    return last


def untrained(config: Config) -> Checkpoint:
    """A fresh model and a fresh optimiser, at step 0."""
    model = fresh(config.shape, config.schedule.seed)
    return Checkpoint(config, model, 0, _state(config, model))


def _state(config: Config, model: LanguageModel) -> Any:
    return optimiser(config.schedule).init(eqx.filter(model, eqx.is_array))


def begin(folder: Path, config: Config) -> Checkpoint:
    """A fresh model, or the one in the folder if it was trained with the same settings and text."""
    if not is_ours(folder) or not (folder / WEIGHTS).exists():  # stopped before its first step
        return untrained(config)
    before = load(folder, lambda model: _state(config, model))
    if before.config != config:
        parts = [
            name
            for name in ("shape", "schedule", "alphabet", "digest")
            if getattr(before.config, name) != getattr(config, name)
        ]
        raise UserError(
            f"{folder} holds a run with another {' and '.join(parts)}; repeat its settings to go"
            " on, or choose another --out"
        )
    return before


def run(
    start: Checkpoint,
    data: np.ndarray,
    held_out: np.ndarray,
    tell: Tell | None = None,
    watcher: Witness | None = None,
) -> Iterator[Checkpoint]:
    """Steps from a checkpoint to the end.

    Yields a checkpoint after every `schedule.every` steps. The start is used up.
    """
    schedule, context = start.config.schedule, start.config.shape.context
    model, state, history = start.model, start.optimiser, start.history
    fixed = schedule, context, jnp.asarray(data)
    marks = watcher.steps if watcher is not None else frozenset()
    if watcher is not None and start.step in marks:
        watcher.look(model, start.step)
    stopwatch = Stopwatch(start.step, schedule, context)
    for first, last in chunks(start.step, schedule, marks):
        model, state, loss = steps(fixed, model, state, first, last)
        _check_finite(schedule, last, "the loss", loss)
        progress = stopwatch.told(last, loss)
        if watcher is not None and last in marks:
            watcher.look(model, last)
        if last % schedule.every == 0 or last == schedule.steps:
            val = validate(model, held_out, context, None if last == schedule.steps else WINDOWS)
            _check_finite(schedule, last, "the validation loss", val)
            for leaf in jax.tree.leaves(eqx.filter((model, state), eqx.is_array)):
                _check_finite(schedule, last, "a weight or a moment of the optimiser", leaf)
            progress, history = replace(progress, val=val), (*history, (last, loss, val))
            yield Checkpoint(start.config, model, last, state, history)
        stopwatch.go()
        if tell is not None:
            tell(progress)


def _check_finite(schedule: Schedule, step: int, what: str, values: Any) -> None:
    """Raise if a training has diverged; its last checkpoint stays as it is."""
    values = np.asarray(values)
    if not np.isfinite(values).all():
        worst = values[~np.isfinite(values)].flat[0]
        raise SimulationError(
            f"{what} is {worst} after {step} steps; take a smaller rate than {schedule.rate}"
        )


def chunks(step: int, schedule: Schedule, marks: Iterable[int] = ()) -> Iterator[tuple[int, int]]:
    """From step to step: chunks that end at every validation and at every mark.

    >>> list(chunks(5, Schedule(steps=12, every=10, chunk=4), marks=[6]))
    [(5, 6), (6, 8), (8, 10), (10, 12)]
    """
    while step < schedule.steps:
        ends = [(step // size + 1) * size for size in (schedule.chunk, schedule.every)]
        end = min(*ends, schedule.steps, *(mark for mark in marks if mark > step))
        yield step, end
        step = end


class Stopwatch:
    """Tokens per second and the time left."""

    def __init__(self, step: int, schedule: Schedule, context: int):
        self.step, self.steps, self.tokens = step, schedule.steps, schedule.batch * context
        self.go()

    def go(self) -> None:
        """Start measuring now."""
        self.since = time.monotonic()

    def told(self, step: int, loss: float) -> Progress:
        """How it goes at this step."""
        speed = (step - self.step) * self.tokens / max(time.monotonic() - self.since, 1e-9)
        self.step = step
        return Progress(step, self.steps, loss, speed, (self.steps - step) * self.tokens / speed)
