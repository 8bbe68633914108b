"""What a model and its training are made of: presets, bounds, and the room they need."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from tokenflock.errors import UserError
from tokenflock.gpt import Schedule, Shape, preset, settings
from tokenflock.gpt.settings import RUNGS, least_memory

SHAPE = {"vocab": 65, "context": 64, "width": 128, "heads": 4, "depth": 4, "dropout": 0.0}
SHAPE |= {"positions": "learned", "norm": "pre", "shared": False, "rung": "gpt"}
SCHEDULE = {"steps": 2000, "batch": 12, "rate": 1e-3, "last_rate": 1e-4, "warmup": 100}
SCHEDULE |= {"decay": 0.1, "momentum": (0.9, 0.99), "clip": 1.0, "seed": 0, "every": 250}
SCHEDULE |= {"chunk": 25}
PRESETS = {
    "cpu": ({}, {"rate": 3e-3}),
    "quick": (
        {"context": 48, "width": 64, "depth": 2, "heads": 2},
        {"steps": 300, "batch": 16, "rate": 3e-3, "warmup": 20, "every": 100},
    ),
    "gpu": (
        {"context": 256, "width": 384, "heads": 6, "depth": 6, "dropout": 0.2},
        {"steps": 2000, "batch": 64, "warmup": 100, "every": 250, "chunk": 50},
    ),
}


def test_what_is_not_said_is_that_of_nanogpt_for_characters():
    assert asdict(Shape()) == SHAPE
    assert asdict(Schedule()) == SCHEDULE


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_its_table(name):
    shape, schedule = preset(name)
    of_shape, of_schedule = PRESETS[name]
    assert asdict(shape) == SHAPE | of_shape
    assert asdict(schedule) == SCHEDULE | of_schedule


@pytest.mark.parametrize(
    ("changes", "rate", "warmup", "decay"),
    [
        ({"rung": "bigram"}, 3e-2, 100, 0.0),
        ({"rung": "head"}, 9e-3, 100, 0.1),
        ({"rung": "multi-head"}, 9e-3, 100, 0.1),
        ({"rung": "feed-forward"}, 3e-3, 100, 0.1),
        ({"rung": "residual", "depth": 3}, 3e-3, 100, 0.1),
        ({"norm": "post"}, 3e-3, 300, 0.1),
        ({"norm": "peri"}, 3e-3, 100, 0.1),
        ({"rung": "head", "rate": 0.5, "warmup": 7, "decay": 0.3}, 0.5, 7, 0.3),
        ({"rate": None, "width": None}, 3e-3, 100, 0.1),
    ],
)
def test_lower_rungs_bear_a_larger_rate_and_post_norm_a_longer_warm_up(
    changes, rate, warmup, decay
):
    shape, schedule = preset("cpu", **changes)
    assert [schedule.rate, schedule.warmup, schedule.decay] == pytest.approx([rate, warmup, decay])
    assert shape.norm == changes.get("norm", "pre") and shape.rung == changes.get("rung", "gpt")
    assert shape.width == 128


def test_what_a_preset_does_not_know_is_told_with_the_nearest_name():
    with pytest.raises(UserError, match="has 'stesp'; did you mean steps"):
        preset("cpu", stesp=10)
    with pytest.raises(UserError, match="has 'weight_decay'; did you mean decay"):
        preset("cpu", weight_decay=0.1)
    with pytest.raises(UserError, match="'zzz'; there are batch, "):
        preset("cpu", zzz=None)
    with pytest.raises(UserError, match="preset must be cpu or quick or gpu"):
        preset("tpu")


ONE = {"vocab": 1, "context": 1, "width": 1, "heads": 1, "depth": 1}


@pytest.mark.parametrize(
    "good",
    [
        ONE,
        {"dropout": 0.99},
        {"dropout": 0.0},
        {"width": 9, "heads": 3},
        {"width": 18, "heads": 3, "positions": "rotary"},
        {"width": 20, "heads": 2, "positions": "sinusoidal"},
    ],
)
def test_shapes_at_their_bounds_are_taken(good):
    assert asdict(Shape(**good)) == SHAPE | good


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({name: 0}, f"{name} must be 1 or more") for name in ONE]
    + [
        ({"width": 9, "heads": 2}, "heads must be a divisor of the width 9"),
        ({"width": 64.0}, "width must be a whole number"),
        ({"heads": True}, "heads must be a whole number"),
        ({"depth": 257, "shared": True}, "depth must be 256 or less"),
        ({"context": 2**16 + 1}, "context must be 65,536 or less"),
        ({"dropout": "0"}, "dropout must be a number"),
        ({"shared": "no"}, "shared must be True or False"),
        ({"dropout": 1.0}, "dropout must be from 0 to below 1"),
        ({"dropout": -0.1}, "dropout must be from 0 to below 1"),
        ({"norm": "rms"}, "norm must be pre or post or peri or ngpt"),
        ({"positions": "none"}, "positions must be learned or sinusoidal or rotary"),
        ({"rung": "stair"}, "rung must be bigram or head"),
        ({"width": 9, "heads": 3, "positions": "rotary"}, "even for rotary positions"),
        ({"width": 18, "heads": 2, "positions": "sinusoidal"}, "even for sinusoidal positions"),
    ],
)
def test_shapes_that_cannot_be_are_told(wrong, message):
    with pytest.raises(UserError, match=message):
        Shape(**wrong)


COUNTS = ("steps", "batch", "every", "chunk")


def test_schedules_at_their_bounds_are_taken():
    least = Schedule(**dict.fromkeys(COUNTS, 1), rate=1e-9, clip=1e-9, momentum=[0.8, 0.9])
    assert least.steps == 1 and least.momentum == (0.8, 0.9)
    assert [Schedule(seed=seed).seed for seed in (0, 2**31 - 1)] == [0, 2**31 - 1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({name: 0}, f"{name} must be 1 or more") for name in COUNTS]
    + [
        ({"steps": 2.5}, "steps must be a whole number"),
        ({"warmup": -1}, "warmup must be 0 or more"),
        ({"decay": None}, "decay must be a number"),
        ({"momentum": 0.9}, "momentum must be two numbers"),
        ({"momentum": (0.9, "0.99")}, "momentum must be a number"),
        ({"seed": -1}, "seed must be from 0"),
        ({"seed": 2**31}, "seed must be from 0"),
        ({"rate": 0.0}, "rate must be above 0"),
        ({"clip": 0.0}, "clip must be above 0"),
    ],
)
def test_schedules_that_cannot_be_are_told(wrong, message):
    with pytest.raises(UserError, match=message):
        Schedule(**wrong)


def test_a_text_passes_no_layer_in_a_bigram_and_one_in_the_rungs_that_are_one_layer():
    layers = [Shape(depth=5, rung=rung).layers for rung in RUNGS]
    assert layers == [0, 1, 1, 1, 5, 5]


def test_training_needs_room_for_weights_gradients_two_moments_and_one_layer_of_tokens():
    """4 bytes x (4 (12 L d^2 + 2 (vocab + context) d) + batch context (d + heads context))."""
    shape = Shape(vocab=50, context=30, width=24, heads=3, depth=5)
    schedule = Schedule(batch=7)
    for layers, one in (
        (5, shape),
        (1, replace(shape, shared=True)),
        (0, replace(shape, rung="bigram")),
    ):
        weights = 12 * layers * 24 * 24 + 2 * (50 + 30) * 24
        tokens = 7 * 30 * (24 + 3 * 30)
        assert least_memory(one, schedule) == 4 * (4 * weights + tokens)


def test_shapes_have_the_bounds_that_their_errors_tell():
    assert settings.MOST == {
        "vocab": 2**31,
        "context": 2**16,
        "width": 2**31,
        "heads": 2**31,
        "depth": 256,
    }
