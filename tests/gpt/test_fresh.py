"""What a model is before its first step: how large its weights are, and none is drawn twice."""

from __future__ import annotations

from itertools import combinations

import jax
import numpy as np
import pytest

from tokenflock.gpt import Shape, language
from tokenflock.gpt.checkpoint import named
from tokenflock.gpt.ladder import LADDER, build
from tokenflock.gpt.settings import RUNGS

V, C, D, HEADS, DEPTH = 23, 19, 20, 2, 3
SIZES = {"vocab": V, "context": C, "width": D, "heads": HEADS, "depth": DEPTH}
SMALL = 0.02 / np.sqrt(2 * DEPTH)  # of what writes to the stream, which adds up over the layers
EVEN = {  # shape, and standard deviation, in the models without norms
    "token": ((V, D), 1.0),
    "place": ((C, D), 1.0),
    "mix": ((D, D), D**-0.5),
    "up": ((D, 4 * D), D**-0.5),
    "down": ((4 * D, D), (4 * D) ** -0.5),
    "readout": ((D, V), D**-0.5),
}
HEAD = {name: ((D, D // HEADS), D**-0.5) for name in "QKV"}
NORMED = {
    "token": ((V, D), 0.02),
    "place": ((C, D), 0.02),
    "mix": ((D, D), SMALL),
    "up": ((D, 4 * D), 0.02),
    "down": ((4 * D, D), SMALL),
    "readout": ((D, V), 0.02),
    "qkv": ((D, 3 * D), 0.02),
}
TABLES = {
    "bigram": {"table": ((V, V), 0.02)},
    "head": EVEN | {name: ((D, D), D**-0.5) for name in "QKV"},
    "multi-head": EVEN | HEAD,
    "feed-forward": EVEN | HEAD,
    "residual": NORMED | HEAD,
    "gpt": NORMED,
}
COUNTS = {"bigram": 1, "head": 6, "multi-head": 10, "feed-forward": 12, "gpt": 2 + 4 * DEPTH}
COUNTS |= {"residual": 3 + (3 * HEADS + 3) * DEPTH}


def drawn(monkeypatch, used=None, **changes):
    """The arrays of a fresh model by their path; normal numbers come from NumPy, by their key."""

    def normal(key, shape):
        data = np.asarray(jax.random.key_data(key)).tolist()
        if used is not None:
            used.append(tuple(data))
        return np.random.default_rng(data).normal(size=shape)

    monkeypatch.setattr(language.jax.random, "normal", normal)
    return named(build(Shape(**SIZES | changes), jax.random.key(3)), "")


@pytest.mark.parametrize("rung", RUNGS)
def test_no_key_is_used_twice(rung, monkeypatch):
    """Neither to draw from nor to split: what is drawn would not be independent."""
    used, split = [], jax.random.split

    def noted(key, *count):
        used.append(tuple(np.asarray(jax.random.key_data(key)).tolist()))
        return split(key, *count)

    monkeypatch.setattr(jax.random, "split", noted)
    weights = drawn(monkeypatch, used, rung=rung)
    assert len(set(used)) == len(used) >= len([path for path in weights if not constant(path)])


def constant(path):
    return "gain" in path or path.endswith("beta")


@pytest.mark.parametrize("rung", RUNGS)
def test_every_weight_has_its_shape_and_size_and_its_own_numbers(rung, monkeypatch):
    """Also those of the same size in several heads and layers."""
    weights = {p: a for p, a in drawn(monkeypatch, rung=rung).items() if not constant(p)}
    assert len(weights) == COUNTS[rung]
    for path, array in weights.items():
        shape, size = TABLES[rung][path.rpartition(".")[2]]
        assert array.shape == shape, path
        assert np.std(array) == pytest.approx(size, rel=0.12), path
    first = [array.ravel()[:20] / array.std() for array in weights.values()]
    assert all(np.abs(a - b).max() > 0.2 for a, b in combinations(first, 2))


@pytest.mark.parametrize(
    ("norm", "rows"),
    [("pre", [1]), ("post", [1]), ("peri", [1, (2 * DEPTH) ** -0.5]), ("ngpt", [0.2])],
)
def test_gains_begin_at_one_and_steps_small(norm, rows, monkeypatch):
    arrays = drawn(monkeypatch, norm=norm)
    gains = [array for path, array in arrays.items() if path.endswith("gains")]
    assert len(gains) == 2 * DEPTH
    for gain in gains:
        np.testing.assert_allclose(gain, np.outer(rows, np.ones(D)), rtol=1e-6)
    np.testing.assert_array_equal(arrays[".gain"], np.ones(D))
    betas = [array for path, array in arrays.items() if path.endswith("beta")]
    assert len(betas) == (DEPTH if norm == "ngpt" else 0)
    for beta in betas:
        np.testing.assert_allclose(beta, np.full(HEADS, np.sqrt(D / HEADS)), rtol=1e-6)


def test_gains_of_residual_layers_begin_at_one(monkeypatch):
    arrays = drawn(monkeypatch, rung="residual")
    gains = {path: array.tolist() for path, array in arrays.items() if constant(path)}
    rows = {f".layers.{k}.gains": np.ones((2, D)).tolist() for k in range(DEPTH)}
    assert gains == rows | {".gain": np.ones(D).tolist()}


def test_a_gpt_has_a_table_of_places_only_where_they_are_learned(monkeypatch):
    for positions in ("learned", "rotary", "sinusoidal"):
        arrays = drawn(monkeypatch, positions=positions, shared=True)
        assert (".place" in arrays) == (positions == "learned")
        assert {path.split(".")[2] for path in arrays if ".blocks" in path} == {"0"}


def test_every_rung_has_its_name():
    assert {name: cls.__name__ for name, cls in LADDER.items()} == {
        "bigram": "Bigram",
        "head": "OneHead",
        "multi-head": "ManyHeads",
        "feed-forward": "Thinking",
        "residual": "Residual",
        "gpt": "GPT",
    }
