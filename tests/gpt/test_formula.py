"""The GPT is its formula, written out in NumPy: four places for the norm, three kinds of position,
one shared layer or many, with dropout and without; and the gradients that are written out."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.gpt.formula import stream, turned, waves
from tests.gpt.made import SMALL, TOKENS, made
from tokenflock.gpt import Shape
from tokenflock.gpt.fast import layer_norm, linear
from tokenflock.gpt.gpt import dropout, spread
from tokenflock.gpt.language import embed
from tokenflock.gpt.positions import rotated, sinusoidal

pytestmark = pytest.mark.usefixtures("double", "quick_compilation")


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("norm", "positions"),
    [("pre", "learned"), ("post", "sinusoidal"), ("peri", "rotary"), ("ngpt", "rotary")],
)
def test_a_gpt_is_its_formula(norm, positions):
    model = made(Shape(**SMALL, norm=norm, positions=positions))
    assert (model.place is None) == (positions != "learned")
    states, _ = stream(model, TOKENS, 2)
    close(eqx.filter_jit(lambda ids: model.states(ids))(TOKENS), states)


@pytest.mark.parametrize("norm", ["pre", "ngpt"])
def test_a_shared_layer_is_passed_to_any_depth_in_steps_of_any_length(norm):
    model = made(Shape(**SMALL, norm=norm, shared=True))
    assert len(model.blocks) == 1
    states, logits = stream(model, TOKENS, 3, h=0.3)
    if norm == "pre":
        close(eqx.filter_jit(lambda ids: model(ids, depth=3, h=0.3))(TOKENS), logits)
    else:
        close(eqx.filter_jit(lambda ids: model.states(ids, depth=3, h=0.3))(TOKENS), states)


def test_in_training_every_part_drops_entries_by_a_key_of_its_own():
    """Tokens at the start, rows of attention, what attention says, what the perceptron says."""
    model = made(Shape(**SMALL, dropout=0.3))
    key = jax.random.key(5)
    found = eqx.filter_jit(lambda ids: model(ids, key))(TOKENS)
    close(found, stream(model, TOKENS, 2, key=key)[1])
    assert np.abs(found - stream(model, TOKENS, 2)[1]).max() > 0.1
    of_parts = [key for one in spread(key, 3) for key in spread(one, 2)]
    assert len({tuple(np.ravel(jax.random.key_data(part))) for part in of_parts}) == 6


def test_what_is_dropped_is_zero_and_the_rest_grows_to_keep_the_mean():
    x = 2.0 + jnp.arange(40_000.0).reshape(200, 200) / 1e5
    found = np.asarray(dropout(x, 0.2, jax.random.key(0)))
    gone = found == 0
    assert abs(gone.mean() - 0.2) < 0.01
    np.testing.assert_allclose(found[~gone], np.asarray(x)[~gone] / 0.8, rtol=1e-12)
    assert dropout(x, 0.2, None) is x
    assert dropout(x, 0.0, jax.random.key(0)) is x
    assert spread(None, 3) == [None] * 3


@pytest.mark.parametrize("rows", [5, 511, 512, 513, 600])
def test_a_token_is_its_row_of_the_table_whether_there_are_few_or_many(rows):
    table = np.random.default_rng(0).normal(size=(rows, 3))
    ids = np.array([[0, 4, 2], [rows - 1, 1, 4]])
    close(embed(jnp.asarray(table), jnp.asarray(ids)), table[ids])


@pytest.mark.parametrize("width", [6, 7])
def test_places_are_told_by_sines_and_then_cosines_of_slowing_waves(width):
    z = waves(5, (width + 1) // 2)
    expected = np.concatenate([z.imag, z.real], axis=1)[:, :width]
    close(sinusoidal(5, width, np.float64), expected)
    assert sinusoidal(5, width).dtype == np.float32


def test_a_plane_of_a_query_turns_by_its_own_angle():
    x = np.random.default_rng(1).normal(size=(2, 5, 8))
    close(rotated(jnp.asarray(x)), turned(x))


@pytest.mark.parametrize("name", ["linear", "layer_norm"])
def test_the_gradients_that_are_written_out_are_those_that_are_derived(name):
    """Of x W, and of gain (x - mean x) / sqrt(var x + 1e-5), for tokens (batch, time, width)."""
    rng = np.random.default_rng(2)
    x, W, gain, g = (rng.normal(size=size) for size in ((2, 3, 5), (5, 4), (5,), (2, 3, 5)))

    def plain(x, gain):
        x = x - jnp.mean(x, axis=-1, keepdims=True)
        return gain * x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-5)

    ours, theirs, second = {
        "linear": (linear, jnp.matmul, W),
        "layer_norm": (layer_norm, plain, gain),
    }[name]
    g = g[..., : second.shape[-1]]

    @jax.jit
    def answers(x, second):
        pulled = [jax.vjp(function, x, second) for function in (ours, theirs)]
        return ours(x, second), [(value, *back(g)) for value, back in pulled]

    value, (found, expected) = answers(x, second)
    close(value, expected[0])
    for one, other in zip(found, expected, strict=True):
        close(one, other)
