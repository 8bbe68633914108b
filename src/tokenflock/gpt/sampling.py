"""Text from a model, one token after the other."""

from __future__ import annotations

import os

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.engines.memory import on_device, require_memory
from tokenflock.errors import require
from tokenflock.gpt.checkpoint import Checkpoint, load
from tokenflock.gpt.language import LanguageModel
from tokenflock.gpt.settings import Shape
from tokenflock.gpt.text import Alphabet, Characters
from tokenflock.shapes import Array


def sample(
    source: Checkpoint | str | os.PathLike[str],
    prompt: str = "\n",
    count: int = 500,
    *,
    temperature: float = 1.0,
    top: int | None = None,
    seed: int = 0,
) -> str:
    """A text that begins with the prompt and goes on for `count` tokens, the same for the same
    seed.

    Args:
      source: a checkpoint, or its folder.
      prompt: how the text begins.
      count: tokens to add.
      temperature: below one the likely becomes likelier; at zero the likeliest token is always
        taken.
      top: draw from the so many likeliest tokens only.
      seed: of the draws.
    """
    require(count >= 1, "count", "1 or more", count)
    require(temperature >= 0, "temperature", "0 or more", temperature)
    checkpoint = source if isinstance(source, Checkpoint) else load(source)
    alphabet, context = checkpoint.config.alphabet, checkpoint.config.shape.context
    require(
        top is None or 1 <= top <= alphabet.size,
        "top",
        f"from 1 to the {alphabet.size} tokens there are",
        top,
    )
    _check_memory(checkpoint.config.shape)
    if prompt == "\n" and not _knows(alphabet, prompt):
        prompt = alphabet.decode([0])
    ids = alphabet.encode(prompt)
    require(len(ids) >= 1, "prompt", "one token or more", repr(prompt))
    window = np.zeros(context, np.int32)
    kept = ids[-context:]
    window[: len(kept)] = kept
    added = generate(
        checkpoint.model,
        jnp.asarray(window),
        len(kept),
        count,
        temperature,
        top,
        jax.random.key(seed),
    )
    return prompt + alphabet.decode(np.asarray(added))


@eqx.filter_jit
def generate(
    model: LanguageModel,
    window: Array,
    length: int | Array,
    count: int,
    temperature: float,
    top: int | None,
    key: Array,
) -> Array:
    """`count` tokens after the first `length` of a window (context,).

    What stands to their right is never seen.
    """

    def step(carry, key):
        window, length = carry
        logits = model(window[None])[0, length - 1]  # (vocab,): what follows the last token
        if top is not None:
            logits = jnp.where(logits >= jax.lax.top_k(logits, top)[0][-1], logits, -jnp.inf)
        token = jnp.argmax(logits + temperature * jax.random.gumbel(key, logits.shape)).astype(
            window.dtype
        )
        full = length == window.shape[0]
        window = jnp.where(full, jnp.roll(window, -1), window)  # the oldest token leaves
        length = jnp.where(full, length, length + 1)
        return (window.at[length - 1].set(token), length), token

    return jax.lax.scan(step, (window, jnp.asarray(length)), jax.random.split(key, count))[1]


def _check_memory(shape: Shape) -> None:
    """Refuse a context whose attention does not fit: the model reads all of it for each token."""
    matrices = shape.heads * shape.context**2 if shape.layers else 0
    require_memory(
        4.0 * (2 * matrices + shape.context * max(shape.vocab, shape.width)),
        f"this model's context of {shape.context:,} tokens",
        "take a model with a shorter context, or a larger machine",
        on_device(),
    )


def _knows(alphabet: Alphabet, text: str) -> bool:
    return not isinstance(alphabet, Characters) or set(text) <= set(alphabet.letters)
