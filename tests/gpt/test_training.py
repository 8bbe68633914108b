"""Training: resumed as if nothing had happened, the same for the same seed, and better than
counting pairs.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import optax
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock import gpt
from tokenflock.errors import UserError
from tokenflock.gpt.checkpoint import load, named
from tokenflock.gpt.text import BytePairs, Characters, from_json, read, split
from tokenflock.gpt.training import clipped, offsets

pytestmark = pytest.mark.slow

SHAPE = gpt.Shape(context=16, width=16, heads=2, depth=2)
SCHEDULE = gpt.Schedule(steps=12, batch=4, every=4, chunk=4, warmup=2, rate=3e-3)
TEXT = read()[:20_000]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run without interruption, with dropout, of one shared layer."""
    out = tmp_path_factory.mktemp("whole") / "run"
    gpt.train(out, TEXT, replace(SHAPE, dropout=0.1, shared=True), SCHEDULE, watch=[0, 6, 12])
    return out


class Killed(Exception):
    pass


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_happened(whole, tmp_path):
    def kill(progress):
        if progress.step >= 6:
            raise Killed

    shape = replace(SHAPE, dropout=0.1, shared=True)
    with pytest.raises(Killed):
        gpt.train(tmp_path / "run", TEXT, shape, SCHEDULE, tell=kill, watch=[0, 6, 12])
    assert load(tmp_path / "run").step == 4
    gpt.train(tmp_path / "run", TEXT, shape, SCHEDULE, watch=[0, 6, 12])
    one, two = load(whole), load(tmp_path / "run")
    np.testing.assert_allclose(np.asarray(one.history), np.asarray(two.history), rtol=1e-5)
    first, second = named(one.model, ""), named(two.model, "")
    for key, leaf in first.items():
        np.testing.assert_allclose(leaf, second[key], atol=1e-5)
    xr.testing.assert_allclose(
        flock.load(whole / "watch.nc"), flock.load(tmp_path / "run" / "watch.nc"), rtol=1e-3
    )


@pytest.mark.slow
def test_a_finished_run_is_left_as_it_is(whole):
    before = (whole / "model.safetensors").read_bytes()
    last = gpt.train(whole, TEXT, replace(SHAPE, dropout=0.1, shared=True), SCHEDULE)
    assert last.step == 12
    assert (whole / "model.safetensors").read_bytes() == before


def test_other_settings_do_not_overwrite_a_run(whole):
    with pytest.raises(UserError, match="another shape"):
        gpt.train(whole, TEXT, SHAPE, SCHEDULE)


def test_a_spoiled_checkpoint_is_an_error(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "bad")
    (tmp_path / "bad" / "model.safetensors").write_bytes(b"short")
    with pytest.raises(UserError, match="cannot be read"):
        load(tmp_path / "bad")
    with pytest.raises(UserError, match="holds no checkpoint"):
        load(tmp_path)


def test_nothing_half_written_is_left_behind(whole):
    assert sorted(path.name for path in whole.iterdir()) == [
        "config.json",
        "model.safetensors",
        "prompts.json",
        "watch.nc",
    ]


def test_batches_are_a_function_of_seed_and_step():
    whole = offsets(3, range(0, 10), 5, 1000)
    np.testing.assert_array_equal(whole[6:], offsets(3, range(6, 10), 5, 1000))
    assert (whole != offsets(4, range(0, 10), 5, 1000)).any()


def test_clipping_is_that_of_optax():
    tree = {"a": jax.numpy.arange(5.0), "b": jax.numpy.ones((2, 3))}
    for most in (1.0, 100.0):
        ours, _ = clipped(most).update(tree, optax.EmptyState())
        theirs, _ = optax.clip_by_global_norm(most).update(tree, optax.EmptyState())
        assert all(np.allclose(ours[key], theirs[key]) for key in tree)


@pytest.mark.slow
def test_a_quick_training_falls_below_what_pairs_can_tell(tmp_path):
    """The best bigram on a text is its own table of frequencies.

    A GPT of a few seconds is better on text it never saw.
    """
    text = read()[:200_000]
    alphabet = Characters.of(text)
    train, valid = split(alphabet.encode(text), 48)
    counts = np.full((alphabet.size, alphabet.size), 0.1)
    np.add.at(counts, (train[:-1], train[1:]), 1)
    table = np.log(counts / counts.sum(axis=1, keepdims=True))
    bigram = -table[valid[:-1], valid[1:]].mean()
    shape, schedule = gpt.preset("quick", steps=300)
    last = gpt.train(tmp_path / "gpt", text, shape, schedule)
    assert last.history[0][2] > last.history[-1][2]
    assert last.history[-1][2] < bigram - 0.05


def test_samples_are_reproducible_and_begin_with_their_prompt(whole):
    one = gpt.sample(whole, "The ", 40, seed=1)
    assert one == gpt.sample(whole, "The ", 40, seed=1)
    assert one != gpt.sample(whole, "The ", 40, seed=2)
    assert one.startswith("The ") and len(one) == 44


def test_without_temperature_the_likeliest_token_is_taken_whatever_the_seed(whole):
    greedy = {gpt.sample(whole, "The ", 30, temperature=0.0, seed=seed) for seed in range(3)}
    assert greedy == {gpt.sample(whole, "The ", 30, top=1, seed=7)}


def test_sampling_takes_the_next_token_of_the_model(whole):
    """Past the context, the model sees the last tokens only."""
    found = load(whole)
    text = gpt.sample(found, TEXT[:30], 1, temperature=0.0)
    logits = found.model(found.config.alphabet.encode(TEXT[14:30])[None])[0, -1]
    assert text[-1] == found.config.alphabet.decode([int(logits.argmax())])


def test_alphabets_return_from_json():
    pairs = BytePairs.of(TEXT, 300)
    for alphabet in (Characters.of(TEXT), pairs):
        again = from_json(alphabet.as_json())
        assert again.size == alphabet.size
        assert again.decode(again.encode(TEXT[:200])) == TEXT[:200]
    assert len(pairs.encode(TEXT)) < len(TEXT)


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "empty"), ("too short", "too few for a context of 16"), ("ab" * 70, "context of 16")],
)
def test_texts_that_cannot_be_learned_from_are_refused(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        gpt.train(tmp_path / "run", text, SHAPE, SCHEDULE)


def test_letters_that_the_model_never_saw_are_named(whole):
    with pytest.raises(UserError, match="knows no '\u20ac'"):
        gpt.sample(whole, "\u20ac")


def test_a_typing_mistake_in_a_preset_is_told_with_the_nearest_name():
    with pytest.raises(UserError, match="has 'stesp'; did you mean steps"):
        gpt.preset("cpu", stesp=10)
    with pytest.raises(UserError, match="'zzz'; there are batch, "):
        gpt.preset("cpu", zzz=None)


def test_passages_are_written_whole(tmp_path, monkeypatch):
    """A disk that is full in the middle of the writing leaves the file that was there."""
    from tokenflock.gpt.text import save_passages

    letters = Characters.of("flock")
    save_passages(tmp_path, letters, np.array([[0, 1, 2]]))
    before = (tmp_path / "prompts.json").read_text()

    def torn(path, text, **_):
        path.write_bytes(text[:5].encode())
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_text", torn)
    with pytest.raises(OSError, match="no space"):
        save_passages(tmp_path, letters, np.array([[3, 3, 3]]))
    assert [path.name for path in tmp_path.iterdir()] == ["prompts.json"]
    assert (tmp_path / "prompts.json").read_text() == before


def test_training_needs_room_for_every_attention_matrix():
    """One number of four bytes for each head and each pair of tokens of a batch."""
    from tokenflock.gpt.settings import least_memory

    schedule = gpt.Schedule(batch=3)
    few, many = (least_memory(gpt.Shape(heads=heads, context=32), schedule) for heads in (2, 8))
    assert many - few == 4 * 3 * 6 * 32**2
