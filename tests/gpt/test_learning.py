"""What a step of training does: which tokens it reads, which it predicts, how far and where it
moves the weights, and what is random in it.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tokenflock import gpt
from tokenflock.errors import SimulationError, UserError
from tokenflock.gpt import text as texts
from tokenflock.gpt import training
from tokenflock.gpt.checkpoint import Checkpoint, Config, fresh, load, named
from tokenflock.gpt.gpt import dropout, spread
from tokenflock.gpt.ladder import build
from tokenflock.gpt.language import LanguageModel, cross_entropy
from tokenflock.gpt.text import Characters

pytestmark = pytest.mark.usefixtures("quick_compilation")

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


@pytest.mark.parametrize(("count", "most"), [(5, None), (7, 3), (5, 7), (5, 5)])
def test_the_validation_loss_is_the_mean_over_windows_end_to_end(count, most):
    shape = replace(SHAPE, rung="bigram")
    model, context = fresh(shape), shape.context
    model = eqx.tree_at(lambda one: one.table, model, 50 * model.table)
    data = DATA[: count * context + 1]  # the last window still has a target for its last token
    begins = np.arange(0, count * context, context)
    if most == 3:
        begins = begins[[0, 3, 6]]
    logs = np.asarray(jax.nn.log_softmax(model.table))
    expected = np.mean([[-logs[data[k + j], data[k + j + 1]] for j in range(6)] for k in begins])
    assert training.validate(model, data, context, most) == pytest.approx(expected, rel=1e-5)
    assert np.ptp(logs) > 1


def test_the_held_out_text_is_validated_on_in_whole_batches_of_thirty_two(monkeypatch):
    """70 windows of four tokens are two batches; what is left over is left out."""
    seen = []
    monkeypatch.setattr(training, "_losses", lambda *told: seen.append(told) or np.zeros(2))
    training.validate(None, np.arange(70 * 4 + 1), 4)
    training.validate(None, np.arange(70 * 4 + 1), 4, 40)
    whole, some = (np.asarray(starts) for _, _, starts, _ in seen)
    assert whole.shape == (2, 32) and whole.ravel().tolist() == list(range(0, 64 * 4, 4))
    assert some.shape == (1, 32)
    assert some[0].tolist() == [
        4 * int(69 * k / 31) for k in range(32)
    ]  # from the first to the last


# --------------------------------------------------------------------------------------------------
# how far, and which weights


def test_a_warm_up_is_at_most_half_of_the_steps_and_the_rate_never_rises_after_it(monkeypatch):
    """And it begins with the first step of it, not with none."""
    asked = {}
    monkeypatch.setattr(
        training.optax, "adamw", lambda rate, *rest, **options: asked.update(rate=rate)
    )
    monkeypatch.setattr(training.optax, "chain", lambda *parts: None)
    for warmup, last_rate, steps, expected in (
        (30, 2.0, 8, [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]),
        (2, 0.5, 6, [0.5, 1, *(0.75 + 0.25 * np.cos(np.pi * np.arange(1, 5) / 4))]),
    ):
        training.optimiser(gpt.Schedule(steps=steps, warmup=warmup, rate=1.0, last_rate=last_rate))
        found = [float(asked["rate"](step)) for step in range(steps)]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def adamw(schedule, weights, gradients):
    """AdamW at a constant rate, after gradients of all weights were cut together, in NumPy."""
    first, second = schedule.momentum
    m = v = dict.fromkeys(weights, 0.0)
    for step, gradient in enumerate(gradients, 1):
        norm = np.sqrt(sum((g**2).sum() for g in gradient.values()))
        gradient = {k: g * min(1, schedule.clip / norm) for k, g in gradient.items()}
        m = {k: first * m[k] + (1 - first) * g for k, g in gradient.items()}
        v = {k: second * v[k] + (1 - second) * g**2 for k, g in gradient.items()}
        weights = {
            k: w
            - schedule.rate
            * (
                m[k] / (1 - first**step) / (np.sqrt(v[k] / (1 - second**step)) + 1e-8)
                + schedule.decay * w * (k == "W")
            )
            for k, w in weights.items()
        }
    return weights


def test_steps_are_those_of_adamw_after_the_cut_and_only_matrices_decay():
    """Of one long gradient and two short ones: the long one is cut before it is remembered."""
    schedule = gpt.Schedule(
        steps=9, warmup=0, rate=0.1, last_rate=0.1, decay=0.3, momentum=(0.7, 0.8), clip=2.0
    )
    rng, optimiser = np.random.default_rng(5), training.optimiser(schedule)
    shapes = {"W": (2, 3), "gains": (2, 3), "beta": (4,)}
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    gradients = [
        {name: size * rng.normal(size=shape) for name, shape in shapes.items()}
        for size in (30, 0.3, 0.4)
    ]
    found, state = weights, optimiser.init(weights)

    @jax.jit
    def moved(gradient, state, weights):
        change, state = optimiser.update(gradient, state, weights)
        return optax.apply_updates(weights, change), state

    for gradient in gradients:
        found, state = moved(gradient, state, found)
    expected = adamw(schedule, weights, gradients)
    for name in shapes:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-6)


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


class Watch:
    """Remembers when it looked, and at what."""

    def __init__(self, *steps):
        self.steps, self.looked = frozenset(steps), []

    def look(self, model, step):
        self.looked.append((model, step))


def stubbed(monkeypatch, losses=None):
    """A training in which nothing is computed: models are counts of steps. What was validated."""
    validated = []

    def steps(fixed, model, state, first, last):
        assert (model, state) == (f"model {first}", f"state {first}")
        return f"model {last}", f"state {last}", (losses or {}).get(last, last / 100)

    def validate(model, data, context, most):
        validated.append((model, data, context, most))
        return 7.0 + len(validated)

    monkeypatch.setattr(training, "steps", steps)
    monkeypatch.setattr(training, "validate", validate)
    return validated


def at(step, **schedule):
    """A checkpoint of such a training."""
    config = Config(SHAPE, gpt.Schedule(batch=2, **schedule), Characters("abc"))
    return Checkpoint(config, f"model {step}", step, f"state {step}", ((1, 2.0, 3.0),))


def test_a_run_validates_tells_and_keeps_at_its_marks(monkeypatch):
    """Every 4 steps and at the end, which alone is validated on all of the held-out text."""
    validated, told, watch = stubbed(monkeypatch), [], Watch(0, 3, 5, 20)
    start = at(0, steps=10, every=4, chunk=3)
    kept = list(training.run(start, np.arange(9), "held out", told.append, watch))
    ends = [(3, None), (4, 8.0), (5, None), (6, None), (8, 9.0), (9, None), (10, 10.0)]
    assert [(one.step, one.val) for one in told] == ends
    assert [one.loss for one in told] == [end / 100 for end, _ in ends]
    assert all(one.steps == 10 and one.speed > 0 and one.left >= 0 for one in told)
    assert watch.looked == [("model 0", 0), ("model 3", 3), ("model 5", 5)]
    expected = [(f"model {k}", "held out", 6, 256) for k in (4, 8)]
    assert validated == [*expected, ("model 10", "held out", 6, None)]
    assert [one.step for one in kept] == [4, 8, 10]
    assert (kept[1].model, kept[1].optimiser) == ("model 8", "state 8")
    assert kept[1].config is start.config
    assert kept[2].history == ((1, 2.0, 3.0), (4, 0.04, 8.0), (8, 0.08, 9.0), (10, 0.1, 10.0))


def test_a_run_that_goes_on_looks_where_it_begins_and_needs_nobody_to_tell(monkeypatch):
    validated, watch = stubbed(monkeypatch), Watch(0, 4)
    kept = list(training.run(at(4, steps=6, every=5, chunk=5), np.arange(9), None, None, watch))
    assert watch.looked == [("model 4", 4)]
    assert [one.step for one in kept] == [5, 6] and len(validated) == 2
    later = Watch(0, 4)
    run = training.run(at(5, steps=6), np.arange(9), None, None, later)
    assert [one.step for one in run] == [6] and later.looked == []
    assert [one.step for one in training.run(at(5, steps=6), np.arange(9), None)] == [6]
    assert list(training.run(at(6, steps=6), np.arange(9), None)) == []


def test_a_loss_that_is_no_number_ends_the_training(monkeypatch):
    stubbed(monkeypatch, {2: 0.5, 4: float("nan")})
    run = training.run(at(0, steps=8, every=2, chunk=2, rate=0.7), np.arange(9), None)
    assert next(run).step == 2
    with pytest.raises(SimulationError, match=r"loss is nan after 4 steps; .* rate than 0\.7"):
        next(run)


class Killed(Exception):
    pass


def test_a_run_that_was_killed_goes_on_as_the_same_run(kept, tmp_path, monkeypatch):
    """From its start, and from what it kept; its passages lie beside it from the first moment."""
    _, text, shape, schedule = kept
    schedule = replace(schedule, steps=6, every=4, chunk=2)
    whole = gpt.train(tmp_path / "whole", text, shape, schedule)
    for told, there in ((2, 0), (4, 4)):

        def kill(progress, last=told):
            if progress.step == last:
                raise Killed

        with pytest.raises(Killed):
            gpt.train(tmp_path / "parts", text, shape, schedule, tell=kill)
        assert load(tmp_path / "parts").step == there
        prompts = json.loads((tmp_path / "parts" / "prompts.json").read_text())
        assert len(prompts) == 8 and len(prompts[0]["ids"]) == 6
    monkeypatch.setattr(texts, "read", lambda: text)  # which stands for the manual
    parts = gpt.train(tmp_path / "parts", None, shape, schedule)
    assert whole.step == parts.step == 6 and [step for step, *_ in whole.history] == [4, 6]
    np.testing.assert_allclose(whole.history, parts.history, rtol=1e-6)
    np.testing.assert_allclose(whole.model.table, parts.model.table, rtol=1e-6, atol=1e-8)
    assert not (tmp_path / "whole" / "watch.nc").exists()


def asked(monkeypatch):
    """What a training would run, in place of running it."""
    told = []
    monkeypatch.setattr(training, "run", lambda *given: told.append(given) or iter(()))
    return told


def test_the_tokens_of_held_out_passages_are_watched_at_the_steps_that_are_asked_for(
    kept, tmp_path, monkeypatch
):
    _, text, shape, schedule = kept
    told = asked(monkeypatch)
    first = gpt.train(tmp_path, text, shape, schedule, tell=print, watch=[0, 3])
    gpt.train(tmp_path, text, shape, schedule)
    (start, data, held_out, tell, watcher), (*_, nobody) = told
    ids = first.config.alphabet.encode(text)
    assert first is start and (start.step, start.history) == (0, ())
    assert [*data, *held_out] == ids.tolist() and len(held_out) == 96
    assert tell is print and nobody is None
    assert (watcher.folder, watcher.steps) == (tmp_path, {0, 3})
    np.testing.assert_array_equal(watcher.ids, texts.passages(held_out, 6))
    prompts = json.loads((tmp_path / "prompts.json").read_text())
    assert [prompt["ids"] for prompt in prompts] == watcher.ids.tolist()


def test_a_folder_that_has_no_weights_yet_begins_anew(kept, tmp_path):
    out, *_ = kept
    config = load(out).config
    shutil.copy(out / "config.json", tmp_path)
    assert training.begin(tmp_path, config).step == 0
    assert training.begin(tmp_path / "none", config).step == 0
    assert training.begin(out, config).step == 4


def test_byte_pairs_are_learned_from_where_they_are_asked_for(kept, tmp_path, monkeypatch):
    pytest.importorskip("tokenizers")
    _, text, shape, schedule = kept
    asked(monkeypatch)
    start = gpt.train(tmp_path, text, shape, schedule, byte_pairs=260)
    assert start.config.shape.vocab == start.config.alphabet.size == 260
    assert start.model.table.shape == (260, 260)


def test_cross_entropy_is_the_mean_of_minus_log_p():
    logits = jnp.asarray(np.random.default_rng(1).normal(size=(2, 3, 5)))
    targets = jnp.array([[0, 4, 2], [1, 1, 3]])
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = -np.mean([np.log(p[i, j, targets[i, j]]) for i in range(2) for j in range(3)])
    assert float(cross_entropy(logits, targets)) == pytest.approx(expected, rel=1e-5)


class Even(Dice):
    """A model whose loss is the mean of the tokens that it is to predict."""

    def loss(self, tokens, targets, key=None):
        return self.weight * jnp.mean(targets.astype(float))


def test_the_loss_on_held_out_text_is_a_mean_over_all_whole_batches():
    """Of 100 windows 96 are in batches of 32: a mean of three numbers, not their sum."""
    data, context = np.arange(100 * 2 + 1, dtype=np.int32), 2
    targets = data[1 : 96 * context + 1]
    loss = training.validate(Even(jnp.ones(())), data, context)
    assert loss == pytest.approx(targets.mean())


@pytest.mark.parametrize(
    ("name", "words"), [("validate", "validation loss"), ("steps", "a weight or a moment")]
)
def test_a_training_that_diverges_keeps_its_last_checkpoint(monkeypatch, name, words):
    stubbed(monkeypatch)
    bad = {  # after step 8
        "validate": lambda model, *_: 1.0 if model == "model 4" else np.inf,
        "steps": lambda *args: (
            f"model {args[-1]}",
            jnp.array([1.0, np.inf if args[-1] == 8 else 0.0]),
            0.5,
        ),
    }
    monkeypatch.setattr(training, name, bad[name])
    run = training.run(at(0, steps=12, every=4, chunk=4), np.arange(9), None)
    assert next(run).step == 4
    with pytest.raises(SimulationError, match=f"{words}.* is inf after 8 steps; take a smaller"):
        next(run)
