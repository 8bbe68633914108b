"""What a step of training does: which tokens it reads, which it predicts, how far and where it
moves the weights, and what is random in it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tokenflock import gpt
from tokenflock.errors import UserError
from tokenflock.gpt import training
from tokenflock.gpt.checkpoint import fresh, load, named
from tokenflock.gpt.gpt import dropout, spread
from tokenflock.gpt.ladder import build
from tokenflock.gpt.language import LanguageModel, cross_entropy

SHAPE = gpt.Shape(vocab=7, context=6, width=8, heads=2, depth=2)
SCHEDULE = gpt.Schedule(steps=40, batch=3, every=20, chunk=4, warmup=8, rate=3e-2, last_rate=1e-3)
DATA = np.random.default_rng(0).integers(0, 7, 200).astype(np.int32)


class Dice(LanguageModel):
    """A model that learns nothing and whose loss is the first number that its key gives."""

    weight: jax.Array

    def __call__(self, tokens, key=None):
        raise NotImplementedError

    def states(self, tokens):
        raise NotImplementedError

    def loss(self, tokens, targets, key=None):
        return jax.random.uniform(key) + 0 * self.weight.sum()


def started(model, schedule=SCHEDULE):
    """A copy of a model and a fresh optimiser: `steps` uses them up."""
    model = jax.tree.map(jnp.array, model)
    return model, training.optimiser(schedule).init(eqx.filter(model, eqx.is_array))


def _drawn(leaf):
    return isinstance(leaf, jax.ShapeDtypeStruct)


def paths(tree):
    """The arrays of a tree by their path."""
    return {name: np.asarray(leaf) for name, leaf in named(tree, "").items()}


# --------------------------------------------------------------------------------------------------
# which tokens


def test_the_target_of_a_token_is_the_token_after_it():
    text = jnp.arange(100, 150)
    tokens, targets = training.windows(text, jnp.array([0, 7, 44]), 5)
    assert tokens.tolist() == [[100 + k + j for j in range(5)] for k in (0, 7, 44)]
    assert targets.tolist() == [[101 + k + j for j in range(5)] for k in (0, 7, 44)]


def test_a_model_learns_what_follows_and_not_what_is_there(tmp_path):
    """In `abcdabcd...` the next letter is certain and never the same one."""
    shape = gpt.Shape(context=8, rung="bigram")
    schedule = gpt.Schedule(steps=150, batch=4, every=150, chunk=25, warmup=5, rate=0.1, decay=0.0)
    last = gpt.train(tmp_path / "run", "abcd" * 100, shape, schedule)
    logits = np.asarray(last.model(jnp.arange(4)[None]))[0]
    assert logits.argmax(axis=-1).tolist() == [1, 2, 3, 0]
    assert last.history[-1][2] < 0.1


def test_windows_begin_everywhere_in_the_text_and_end_within_it(monkeypatch):
    """Past its end a gather of XLA would give the last token again and again."""
    seen = []

    def advance(fixed, model, state, starts, first, count, seed):
        seen.append(np.asarray(starts)[: int(count)])
        return model, state, 0.0

    monkeypatch.setattr(training, "advance", advance)
    schedule, context = gpt.Schedule(steps=100, batch=12, chunk=25), 6
    data = jnp.arange(context + 4)
    for first in range(0, 100, 25):
        training.steps((schedule, context, data), None, None, first, first + 25)
    begins = np.concatenate(seen)
    assert begins.shape == (100, 12)
    assert set(begins.ravel().tolist()) == {0, 1, 2, 3}  # 3 + 6 is the last token, a target only


@pytest.mark.parametrize(("count", "most"), [(5, None), (7, 3)])
def test_the_validation_loss_is_the_mean_over_windows_end_to_end(count, most):
    shape = replace(SHAPE, rung="bigram")
    model, context = fresh(shape), shape.context
    model = eqx.tree_at(lambda one: one.table, model, 50 * model.table)
    data = DATA[: count * context + 1]  # the last window still has a target for its last token
    begins = np.arange(0, count * context, context)
    if most is not None:
        begins = begins[[0, 3, 6]]
    logs = np.asarray(jax.nn.log_softmax(model.table))
    expected = np.mean([[-logs[data[k + j], data[k + j + 1]] for j in range(6)] for k in begins])
    assert training.validate(model, data, context, most) == pytest.approx(expected, rel=1e-5)
    assert np.ptp(logs) > 1


# --------------------------------------------------------------------------------------------------
# how far, and which weights


def test_the_rate_rises_in_a_line_and_falls_along_a_cosine_to_its_last_value():
    """Adam's step under a constant gradient is the rate itself."""
    update, params = training.optimiser(SCHEDULE).update, {"a": jnp.zeros(3)}
    state, rates = training.optimiser(SCHEDULE).init(params), []
    for _ in range(SCHEDULE.steps):
        change, state = update({"a": jnp.full(3, 0.1)}, state, params)
        rates.append(-float(change["a"][1]))
    step = np.arange(1, SCHEDULE.steps + 1)
    fall = (1 + np.cos(np.pi * (step - 8) / (40 - 8))) / 2
    expected = np.where(step <= 8, step / 8 * 3e-2, 1e-3 + (3e-2 - 1e-3) * fall)
    np.testing.assert_allclose(rates, expected, rtol=1e-4)
    assert rates[-1] == pytest.approx(1e-3, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rung", "norm"), [("gpt", "pre"), ("gpt", "peri"), ("gpt", "ngpt"), ("residual", "pre")]
)
def test_matrices_decay_and_gains_do_not(rung, norm):
    """Without a gradient a step takes rate x decay of every matrix, and nothing of a gain."""
    schedule = gpt.Schedule(steps=4, warmup=0, rate=0.01, last_rate=0.01, decay=0.5)
    shape = replace(SHAPE, rung=rung, norm=norm)
    made = eqx.filter_eval_shape(build, shape, jax.random.key(0))
    arrays = jax.tree.map(lambda leaf: np.ones(leaf.shape, leaf.dtype), eqx.filter(made, _drawn))
    zero = jax.tree.map(np.zeros_like, arrays)
    optimiser = training.optimiser(schedule)
    change, _ = optimiser.update(zero, optimiser.init(arrays), arrays)
    before, after = paths(arrays), paths(optax.apply_updates(arrays, change))
    kept = {name for name in before if np.array_equal(before[name], after[name])}
    assert kept == {name for name in before if "gain" in name or name.endswith("beta")}
    assert len(kept) >= 2 and len(kept) < len(before)
    for name in before.keys() - kept:
        np.testing.assert_allclose(after[name], 0.995 * before[name], rtol=1e-6)


def test_a_long_gradient_is_cut_to_its_limit_and_a_short_one_is_left():
    clip = training.clipped(2.0)
    long, _ = clip.update({"a": jnp.array([6.0]), "b": jnp.array([[0.0, 8.0]])}, None)
    assert [long["a"].tolist(), long["b"].tolist()] == [
        [pytest.approx(1.2)],
        [[0.0, pytest.approx(1.6)]],
    ]
    short, _ = clip.update({"a": jnp.array([0.6, -0.8])}, None)
    assert np.allclose(short["a"], [0.6, -0.8])


def test_a_step_goes_down_the_gradient_of_the_loss_of_its_batch():
    """With steps too small for anything else, the loss of the batch falls by rate x |g|_1."""
    schedule = gpt.Schedule(
        steps=1, batch=8, chunk=1, warmup=0, rate=1e-5, last_rate=1e-5, decay=0.0, clip=1e9
    )
    shape = replace(SHAPE, rung="bigram")
    model, state = started(fresh(shape), schedule)
    arrays, rest = eqx.partition(fresh(shape), eqx.is_array)
    begins = training.offsets(0, range(1), 8, len(DATA) - 6)[0]
    batch = training.windows(jnp.asarray(DATA), jnp.asarray(begins), 6)

    def loss(arrays):
        return eqx.combine(arrays, rest).loss(*batch)

    value, gradient = jax.value_and_grad(loss)(arrays)
    moved, _, told = training.steps((schedule, 6, jnp.asarray(DATA)), model, state, 0, 1)
    assert told == pytest.approx(float(value), rel=1e-6)
    np.testing.assert_allclose(
        moved.table, arrays.table - 1e-5 * jnp.sign(gradient.table), rtol=0, atol=3e-7
    )


# --------------------------------------------------------------------------------------------------
# what is random


def losses(cuts, schedule=SCHEDULE):
    """What `Dice` rolls over steps that are run in these chunks: the mean of each."""
    model, state = started(Dice(jnp.zeros((2, 2))), schedule)
    rolled = []
    for first, last in pairwise(cuts):
        fixed = schedule, 6, jnp.asarray(DATA)
        model, state, loss = training.steps(fixed, model, state, first, last)
        rolled.append(loss)
    return np.asarray(rolled)


def test_every_step_has_a_dropout_of_its_own_however_steps_are_cut_into_chunks():
    single = losses(range(13))
    assert len(np.unique(single.round(6))) == 12
    np.testing.assert_allclose(losses([0, 4, 8, 12]), single.reshape(3, 4).mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(losses([5, 8]), single[5:8].mean(), rtol=1e-5)


def test_another_seed_drops_other_numbers():
    assert np.abs(losses([0, 1, 2]) - losses([0, 1, 2], replace(SCHEDULE, seed=1))).min() > 1e-6


@pytest.mark.slow
def test_training_with_dropout_does_not_depend_on_the_cut_into_chunks():
    model = fresh(replace(SHAPE, dropout=0.5, depth=1))
    ends = []
    for cuts in ([0, 4, 8], [0, 1, 3, 4, 6, 8]):
        (moved, state), fixed = started(model), (SCHEDULE, 6, jnp.asarray(DATA))
        for first, last in pairwise(cuts):
            moved, state, _ = training.steps(fixed, moved, state, first, last)
        ends.append(paths(moved))
    for name, leaf in ends[0].items():
        np.testing.assert_allclose(leaf, ends[1][name], rtol=1e-4, atol=1e-6)


def test_parts_of_a_model_drop_different_entries():
    """Two parts with one mask would drop the same entries twice."""
    masks = [
        np.asarray(dropout(jnp.ones((4, 64)), 0.5, key)) == 0
        for key in spread(jax.random.key(3), 4)
    ]
    assert max(np.mean(a == b) for k, a in enumerate(masks) for b in masks[:k]) < 0.65


# --------------------------------------------------------------------------------------------------
# a run that goes on is the same run


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a finished run, and what went into it."""
    out = tmp_path_factory.mktemp("kept") / "run"
    text = "the cat sat on the mat. " * 40
    schedule = replace(SCHEDULE, steps=4, every=4)
    gpt.train(out, text, replace(SHAPE, rung="bigram"), schedule)
    return out, text, replace(SHAPE, rung="bigram"), schedule


@pytest.mark.parametrize(
    "change",
    [
        {"rate": 1e-2},
        {"last_rate": 2e-3},
        {"steps": 8},
        {"batch": 4},
        {"warmup": 1},
        {"decay": 0.2},
        {"seed": 1},
        {"clip": 0.5},
        {"momentum": (0.8, 0.99)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_run_is_not_resumed_under_another_schedule(kept, change):
    out, text, shape, schedule = kept
    before = (out / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match="another schedule"):
        gpt.train(out, text, shape, replace(schedule, **change))
    assert (out / "model.safetensors").read_bytes() == before


def test_a_run_is_not_resumed_with_another_text(kept):
    """Neither with other letters nor with the same letters in another order."""
    out, text, shape, schedule = kept
    with pytest.raises(UserError, match="another digest"):
        gpt.train(out, text[::-1], shape, schedule)
    with pytest.raises(UserError, match="another shape and alphabet and digest"):
        gpt.train(out, text + "zebra", shape, schedule)
    with pytest.raises(UserError, match="another shape"):
        gpt.train(out, text, replace(shape, width=16), schedule)


def test_what_a_run_was_made_of_returns_from_its_folder(kept):
    out, text, shape, schedule = kept
    config = load(out).config
    assert config.schedule == schedule
    assert config.shape == replace(shape, vocab=len(set(text)))
    assert config.alphabet.letters == "".join(sorted(set(text)))
    assert len(config.digest) == 64


def test_cross_entropy_is_the_mean_of_minus_log_p():
    logits = jnp.asarray(np.random.default_rng(1).normal(size=(2, 3, 5)))
    targets = jnp.array([[0, 4, 2], [1, 1, 3]])
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = -np.mean([np.log(p[i, j, targets[i, j]]) for i in range(2) for j in range(3)])
    assert float(cross_entropy(logits, targets)) == pytest.approx(expected, rel=1e-5)
