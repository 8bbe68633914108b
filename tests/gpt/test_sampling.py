"""What follows a text, how long a training takes and how much it needs: without any training."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tokenflock import gpt
from tokenflock.gpt import training
from tokenflock.gpt.sampling import generate
from tokenflock.gpt.settings import least_memory

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


def test_a_stopwatch_counts_the_tokens_of_every_batch(monkeypatch):
    """Ten steps of 4 windows of 32 tokens in two seconds, and thirty more to go."""
    clock = iter([5.0, 7.0])
    monkeypatch.setattr(training, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    watch = training.Stopwatch(10, gpt.Schedule(steps=50, batch=4), context=32)
    told = watch.told(20, 1.5)
    assert (told.step, told.loss) == (20, 1.5)
    assert [told.speed, told.left] == pytest.approx([640, 6])


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
