"""A model on disk: what is written returns, and what is not ours is left alone."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as packed

from tests.gpt.made import SMALL, made
from tokenflock.errors import UserError
from tokenflock.gpt import Schedule, Shape, checkpoint, training
from tokenflock.gpt.checkpoint import (
    Checkpoint,
    Config,
    _ordered,
    filled,
    fresh,
    is_ours,
    load,
    named,
    refuse_foreign,
    save,
)
from tokenflock.gpt.text import Characters

SHAPE = Shape(**SMALL | {"vocab": 3}, rung="bigram")
CONFIG = Config(SHAPE, Schedule(steps=9, momentum=(0.8, 0.9)), Characters.of("abc"), "12ab")
HISTORY = ((3, 1.5, 1.25), (6, 0.5, 0.75))


def light(tree):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)


def kept(folder, config=CONFIG):
    """A checkpoint with an optimiser that has moved, as it was written."""
    model = light(made(config.shape))
    rng = np.random.default_rng(4)
    state = jax.tree.map(
        lambda leaf: jnp.asarray(rng.integers(1, 9, leaf.shape), leaf.dtype),
        training._state(config, model),
    )
    made_now = Checkpoint(config, model, 6, state, HISTORY)
    save(folder, made_now)
    return made_now


def same(one, other):
    one, other = named(one, ""), named(other, "")
    assert one.keys() == other.keys() and one
    for path in one:
        np.testing.assert_array_equal(one[path], other[path])
        assert one[path].dtype == other[path].dtype


def test_what_is_written_returns_and_is_written_over(tmp_path):
    folder = tmp_path / "new" / "run"
    kept(folder)
    before = kept(folder)
    found = load(str(folder), lambda model: training._state(CONFIG, model))
    assert (found.config, found.step, found.history) == (CONFIG, 6, HISTORY)
    same(found.model, before.model)
    same(found.optimiser, before.optimiser)
    assert load(folder).optimiser is None
    assert (folder / "config.json").read_text(encoding="utf-8").endswith("}\n")


def test_arrays_are_named_by_their_path():
    tree = {"a": [jnp.zeros(2), "no array"], "b": light(made(Shape(**SMALL, shared=True)).blocks)}
    names = set(named(tree, "model"))
    assert {"model.a.0", "model.b.0.attention.qkv", "model.b.0.moves.1.gains"} <= names
    assert len(names) == 1 + 6
    again = filled(tree, {name: np.ones(np.shape(a)) for name, a in named(tree, "x").items()}, "x")
    assert again["a"][1] == "no array" and again["a"][0].tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"x\.a\.0 has shape \(3,\), wanted \(2,\)"):
        filled({"a": [jnp.zeros(2)]}, {"x.a.0": np.zeros(3)}, "x")


def test_a_file_has_its_notes_in_order_and_its_tensors_at_a_multiple_of_eight(tmp_path):
    """Each tensor is read again as it was, whatever the length of the notes."""
    for length in range(9):
        notes = {"z": "y" * length, "a": "1", "m": "2"}
        header = {"__metadata__": notes, "t": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}
        text = json.dumps(header).encode()
        written = _ordered(len(text).to_bytes(8, "little") + text + b"\x05\x06\x07")
        size = int.from_bytes(written[:8], "little")
        assert size % 8 == 0 and len(written) == 8 + size + 3
        assert size - len(written[8 : 8 + size].rstrip()) < 8
        assert list(json.loads(written[8 : 8 + size])["__metadata__"]) == ["a", "m", "z"]
        path = tmp_path / f"{length}.safetensors"
        path.write_bytes(written)
        with safe_open(path, framework="numpy") as file:
            assert file.get_tensor("t").tolist() == [5, 6, 7] and file.metadata() == notes


def test_a_fresh_model_is_that_of_seed_zero_unless_another_is_given():
    same(fresh(SHAPE), fresh(SHAPE, 0))
    assert np.abs(fresh(SHAPE).table - fresh(SHAPE, 1).table).max() > 1e-3


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "prompts.json", "watch.nc"])
def test_a_folder_of_another_model_is_left_alone(tmp_path, name):
    refuse_foreign(tmp_path)
    (tmp_path / name).write_text('{"model_type": "gpt2"}', encoding="utf-8")
    assert not is_ours(tmp_path)
    with pytest.raises(UserError, match=f"{name} belongs to another model"):
        refuse_foreign(tmp_path)


def test_only_a_folder_with_our_config_is_ours(tmp_path):
    kept(tmp_path / "run")
    assert is_ours(tmp_path / "run") and is_ours(str(tmp_path / "run"))
    refuse_foreign(tmp_path / "run")
    for other in (None, 3, tmp_path, tmp_path / "none"):
        assert not is_ours(other)
    for text in ("[1, 2]", "{", "{}", ""):
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
        assert not is_ours(tmp_path)
    with pytest.raises(UserError, match="holds no checkpoint; make one with"):
        load(tmp_path)


def changed(folder, **parts):
    """The same checkpoint with something else in its config."""
    path = folder / "config.json"
    described = json.loads(path.read_text(encoding="utf-8"))
    for name, part in parts.items():
        kept_part = described[name]
        described[name] = kept_part | part if name in ("shape", "schedule") else part
    path.write_text(json.dumps(described), encoding="utf-8")


LARGER = "larger model than its weights are"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"width": 2 * 10**9}, LARGER),
        ({"vocab": 10**9}, LARGER),
        ({"rung": "gpt", "depth": 256}, LARGER),
        ({"rung": "residual", "heads": 1000, "width": 1000}, LARGER),
        ({"depth": 10**9}, "depth must be 256 or less"),
        ({"rung": "gpt", "depth": 10**4, "shared": True}, "depth must be 256 or less"),
        ({"context": 10**6, "positions": "rotary"}, "context must be 65,536 or less"),
    ],
)
def test_a_config_of_a_larger_model_than_its_weights_is_told_before_it_is_made(
    tmp_path, monkeypatch, change, said
):
    kept(tmp_path)
    changed(tmp_path, shape=change)
    monkeypatch.setattr(checkpoint, "build", lambda *_: pytest.fail("the model was made"))
    with pytest.raises(UserError, match=said):
        load(tmp_path)


def test_a_model_that_is_somewhat_larger_than_its_file_is_told(tmp_path):
    """Each size is small, but not all of its numbers together."""
    kept(tmp_path)
    path = tmp_path / "config.json"
    shape = replace(SHAPE, vocab=1 + int((tmp_path / "model.safetensors").stat().st_size ** 0.5))
    described = json.loads(path.read_text(encoding="utf-8")) | {"shape": vars(shape)}
    path.write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(UserError, match="larger model than its weights are"):
        load(tmp_path)
    shape = replace(shape, vocab=shape.vocab - 2)
    path.write_text(json.dumps(described | {"shape": vars(shape)}), encoding="utf-8")
    with pytest.raises(UserError, match=r"model\.table has shape \(3, 3\)"):
        load(tmp_path)


def test_a_long_reason_is_cut_to_three_hundred_letters(tmp_path):
    kept(tmp_path)
    path = tmp_path / "config.json"
    described = json.loads(path.read_text(encoding="utf-8"))
    described["shape"]["x" * 1000] = 1
    path.write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(UserError) as told:
        load(tmp_path)
    reason = str(told.value).partition("cannot be read (")[2].rpartition("); train again")[0]
    assert len(reason) == 300 and reason.endswith("xxx")


def unread(folder):
    """What is said of a checkpoint that cannot be read, in one line."""
    with pytest.raises(UserError) as told:
        load(folder)
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize(
    ("alphabet", "said"),
    [
        ({"characters": "ab"}, "its alphabet has 2 tokens, its shape a vocab of 3"),
        ({"characters": "aba"}, "characters must be different letters"),
        ({"characters": ""}, "characters must be different letters"),
        ({"characters": "ab\ud800"}, "characters must be different letters"),
        ({"characters": [["a"], ["b"], ["c"]]}, "characters must be different letters"),
        ({"characters": 5}, "characters must be different letters"),
        ({"byte_pairs": {"a": 1}}, "byte_pairs must be one that training wrote, got also a"),
        ({}, "alphabet must be an object with characters or byte_pairs"),
        (5, "alphabet must be an object with characters or byte_pairs"),
    ],
)
def test_an_alphabet_is_checked_before_a_model_is_used(tmp_path, alphabet, said):
    kept(tmp_path)
    changed(tmp_path, alphabet=alphabet)
    assert said in unread(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shape": {"width": "64"}}, "width must be a whole number, got '64'"),
        ({"shape": {"widht": 64}}, "shape has no option 'widht'; did you mean width?"),
        ({"schedule": {"rate": "fast"}}, "rate must be a number, got 'fast'"),
        ({"schedule": {"momentum": [1]}}, "momentum must be two numbers"),
    ],
)
def test_a_setting_that_cannot_be_is_told_by_its_name(tmp_path, change, said):
    kept(tmp_path)
    changed(tmp_path, **change)
    assert said in unread(tmp_path)


def test_weights_that_are_not_finite_are_not_used(tmp_path):
    kept(tmp_path)
    path = tmp_path / "model.safetensors"
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    path.write_bytes(data[:begin] + b"\xff" * (len(data) - begin))
    assert "model.table holds numbers that are not finite" in unread(tmp_path)


def test_a_file_without_our_notes_is_told(tmp_path):
    before = kept(tmp_path)
    tensors = named(before.model, "model")
    (tmp_path / "model.safetensors").write_bytes(packed(tensors, {"step": "1"}))
    assert "there is no 'history'" in unread(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert "there is no file model.safetensors" in unread(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_or_a_device_in_a_checkpoint_is_told_at_once(tmp_path):
    kept(tmp_path)
    for name in ("model.safetensors", "config.json"):
        (tmp_path / name).unlink()
        os.mkfifo(tmp_path / name)
        assert f"{name} must be a file" in unread(tmp_path)
        (tmp_path / name).unlink()
        (tmp_path / name).symlink_to("/dev/zero")
        assert f"{name} is a link" in unread(tmp_path)
    assert not is_ours(tmp_path)


@pytest.mark.parametrize("name", ["prompts.json", "watch.nc"])
def test_nothing_is_written_beside_a_file_of_another_work(tmp_path, name):
    (tmp_path / name).write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match=f"{name} belongs to another model, or to another work"):
        training.train(tmp_path, "abc" * 400, SHAPE, CONFIG.schedule, watch=[0])
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_a_model_of_more_heads_than_tensors_is_read(tmp_path):
    """All heads of a layer share its tensors."""
    shape = replace(CONFIG.shape, rung="gpt", width=64, heads=64, depth=1)
    before = kept(tmp_path, replace(CONFIG, shape=shape))
    with safe_open(tmp_path / "model.safetensors", framework="numpy") as file:
        assert sum(name.startswith("model.") for name in file.keys()) < 64  # noqa: SIM118
    same(load(tmp_path).model, before.model)


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ({"step": "-5"}, "step must be 0 or more, got -5"),
        ({"step": "10"}, "step must be 9 or less, got 10"),
        ({"step": "7"}, "history must be losses up to step 7, got some up to step 6"),
        ({"history": "[]"}, "history must be losses up to step 6, got some up to step 0"),
        ({"history": "[[3, 1, 1], [3, 1, 1], [6, 1, 1]]"}, "at increasing steps from 1 on"),
        ({"history": "[[-3, 1, 1], [6, 1, 1]]"}, "at increasing steps from 1 on"),
        ({"history": "[[6, 1, Infinity]]"}, "history must be finite losses"),
        ({"history": "[[3, NaN, 1], [6, 1, 1]]"}, "history must be finite losses"),
    ],
)
def test_a_history_that_no_training_has_is_refused(tmp_path, notes, words):
    kept(tmp_path)
    path = tmp_path / "model.safetensors"
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        path.write_bytes(packed(tensors, file.metadata() | notes))
    with pytest.raises(UserError, match=words) as told:
        load(tmp_path)
    assert "cannot be read" in str(told.value)
