"""What follows a text, how long a training takes and how much it needs: without any training."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.gpt.made import made
from tokenflock import gpt
from tokenflock.errors import UserError
from tokenflock.gpt import sampling, training
from tokenflock.gpt.checkpoint import Checkpoint, Config, save
from tokenflock.gpt.sampling import _knows, generate
from tokenflock.gpt.settings import least_memory
from tokenflock.gpt.text import BytePairs, Characters

pytestmark = pytest.mark.usefixtures("quick_compilation")

LETTERS = 11


def after(window):
    """Logits of a model that knows one thing: after some tokens comes their weighted sum."""
    places = 1 + jnp.arange(window.shape[1])
    return jax.nn.one_hot(jnp.cumsum(window * places, axis=1) % LETTERS, LETTERS)


@pytest.mark.parametrize(("first", "count"), [(2, 3), (6, 1), (3, 9)])
def test_each_token_is_written_after_the_last_and_the_oldest_leaves(first, count):
    """Up to the context of six tokens and beyond it, against a list that grows."""
    text = [3, 1, 4, 1, 5, 9][:first]
    window = jnp.asarray(text + [7] * (6 - first))  # what stands to the right is never seen
    found = generate(after, window, first, count, 0.0, None, jax.random.key(0))
    for _ in range(count):
        seen = text[-6:]
        text.append(sum((k + 1) * token for k, token in enumerate(seen)) % LETTERS)
    assert found.tolist() == text[first:]


def knowing(letters, model=after, context=6):
    """A checkpoint of an alphabet and a model that knows one thing."""
    shape = gpt.Shape(vocab=len(letters), context=context)
    return Checkpoint(Config(shape, gpt.Schedule(), Characters("".join(letters))), model, 0)


ALPHABET = "abcdefghijk"


@pytest.mark.parametrize("prompt", ["cab", "hadafcg", "k"])
def test_a_text_goes_on_after_its_prompt_of_which_the_model_sees_the_last_tokens(prompt):
    text = [ALPHABET.index(letter) for letter in prompt]
    for _ in range(5):
        text.append(sum((k + 1) * token for k, token in enumerate(text[-6:])) % LETTERS)
    found = gpt.sample(knowing(ALPHABET), prompt, 5, temperature=0.0)
    assert found == "".join(ALPHABET[token] for token in text)


def test_a_text_begins_with_a_new_line_or_with_the_first_letter_where_there_is_none():
    """Of letters that know no new line; a prompt that is given stays as it is."""
    for letters, first in (
        (ALPHABET, "a"),
        ("\n" + ALPHABET[1:], "\n"),
        ("x\n" + ALPHABET[2:], "\n"),
    ):
        assert gpt.sample(knowing(letters), count=5, temperature=0.0)[0] == first
    assert _knows(BytePairs("{}"), "\n")  # bytes know every text
    assert _knows(Characters("ab\n"), "\nb") and not _knows(Characters("ab"), "\nb")
    with pytest.raises(UserError, match="knows no 'z'"):
        gpt.sample(knowing(ALPHABET), "z")


LOGITS = (1.0, 3.0, 0.0, 2.0)


def weighing(window):
    """Logits that are always the same."""
    return jnp.broadcast_to(jnp.asarray(LOGITS), (*window.shape, 4))


def shares(top, temperature):
    """How often each of four tokens is drawn."""
    args = jnp.zeros(2, jnp.int32), 1, 6000, temperature, top, jax.random.key(2)
    return np.bincount(generate(weighing, *args), minlength=4) / 6000


@pytest.mark.parametrize("top", [None, 2, 3])
def test_tokens_are_drawn_by_their_likelihood_from_the_likeliest(top):
    """p_k = e^{l_k / T} / Z over the so many largest logits l, to three standard errors."""
    p = np.exp(np.asarray(LOGITS) / 1.5)
    p[np.argsort(LOGITS)[: 0 if top is None else 4 - top]] = 0
    p = p / p.sum()
    found = shares(top, 1.5)
    assert (np.abs(found - p) <= 3 * np.sqrt(p * (1 - p) / 6000)).all()
    assert ((found == 0) == (p == 0)).all()


def test_a_text_is_the_same_for_the_same_seed_only(tmp_path):
    """From a folder as from the checkpoint that was read from it."""
    shape = gpt.Shape(vocab=11, context=4, rung="bigram")
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), made(shape))
    kept = Checkpoint(Config(shape, gpt.Schedule(), Characters(ALPHABET)), model, 0)
    save(tmp_path / "run", kept)
    texts = [gpt.sample(kept, "ab", 30, seed=seed) for seed in (0, 0, 1)]
    assert texts[0] == texts[1] == gpt.sample(tmp_path / "run", "ab", 30)
    assert texts[0] != texts[2] and all(len(text) == 32 for text in texts)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"count": 0}, "count must be 1 or more"),
        ({"temperature": -0.1}, "temperature must be 0 or more"),
        ({"top": 0}, "top must be from 1 to the 11 tokens"),
        ({"top": 12}, "top must be from 1 to the 11 tokens"),
        ({"prompt": ""}, "prompt must be one token or more"),
    ],
)
def test_draws_that_cannot_be_are_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        gpt.sample(knowing(ALPHABET), **wrong)


def test_draws_at_their_bounds_are_made():
    next_one = ALPHABET[2]  # 1 x 0 + 2 x 1
    assert gpt.sample(knowing(ALPHABET), "ab", 1, top=1, temperature=0.5) == "ab" + next_one
    assert gpt.sample(knowing(ALPHABET), "ab", 1, top=11, temperature=0.0) == "ab" + next_one


def test_a_stopwatch_counts_the_tokens_of_every_batch(monkeypatch):
    """Ten steps of 4 windows of 32 tokens in two seconds, and thirty more to go."""
    clock = iter([5.0, 7.0, 8.0, 12.0, 12.0, 12.0])
    monkeypatch.setattr(training, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    watch = training.Stopwatch(10, gpt.Schedule(steps=50, batch=4), context=32)
    told = watch.told(20, 1.5)
    assert (told.step, told.loss) == (20, 1.5)
    assert [told.speed, told.left, told.steps] == pytest.approx([640, 6, 50])
    watch.go()
    told = watch.told(40, 1.0)  # twenty steps in four seconds
    assert [told.speed, told.left] == pytest.approx([640, 2])
    watch.go()
    assert watch.told(41, 1.0).speed == pytest.approx(128e9)  # no clock is finer


def test_layers_that_are_shared_need_room_once():
    """Weights, gradients and two moments of four bytes: 12 width^2 of each for every layer."""
    shape, schedule = gpt.Shape(width=64, heads=2), gpt.Schedule()
    need = {
        (shared, depth): least_memory(replace(shape, shared=shared, depth=depth), schedule)
        for shared in (True, False)
        for depth in (3, 5)
    }
    assert need[True, 3] == need[True, 5]
    np.testing.assert_allclose(need[False, 5] - need[False, 3], 4 * 4 * 12 * 2 * 64**2)


def test_a_context_that_does_not_fit_is_told_of_the_model_and_not_of_what_was_asked(monkeypatch):
    """2 x 4 heads x 6 x 6 numbers of attention and 6 x 128 of a token, four bytes each."""
    model = knowing(ALPHABET)
    monkeypatch.setattr(sampling, "on_device", lambda: 4.0 * (2 * 4 * 36 + 6 * 128))
    monkeypatch.setattr("tokenflock.engines.memory.LITTLE", 0.0)
    assert gpt.sample(model, "cab", 2).startswith("cab")
    monkeypatch.setattr(sampling, "on_device", lambda: 4.0 * (2 * 4 * 36 + 6 * 128) - 1)
    with pytest.raises(UserError, match="this model's context of 6 tokens needs"):
        gpt.sample(model, "cab", 2)
