"""Every primitive that the page can do is what NumPy does, on axes that are written out, on long
ones that become loops, and on the axis of tokens, whose length no program knows.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.page.node import NODE, answers, case, decoded, state
from tokenflock.dynamics import NeuralODE
from tokenflock.engines.page import program
from tokenflock.engines.page.emit import emit
from tokenflock.engines.page.fields import Field, indices
from tokenflock.engines.page.graph import Graph
from tokenflock.engines.page.views import RULES
from tokenflock.observables.observable import Observable
from tokenflock.precision import precision
from tokenflock.shapes import Tokens, Weights
from tokenflock.solvers import Layer

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: no page can be run")

N = 7
Told = Callable[[Any, Any], Any]


def observed(name: str, function: Told) -> Observable:
    """A function of tokens and weights as an observable."""

    def measure(self: Observable, x: Tokens, w: Weights) -> jax.Array:
        return function(x, w)

    said = {"measure": measure, "name": property(lambda self: name), "__doc__": name}
    return type("Observed", (Observable,), said)()


def given(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n)
    w = random.uniform(0.5, 1, n)
    return random.normal(size=(n, 3)), w / w.sum()


def on_the_page(cases: dict[str, Told], folder, sizes=(N,)) -> list[dict[str, np.ndarray]]:
    """What the page makes of tokens and weights, for each number of tokens."""
    looks = [observed(name, function) for name, function in cases.items()]
    made = program(NeuralODE.example(3, 3), Layer(), looks, d=3)
    assert made.manifest["refused"] == {}
    states = [state(*given(n), steps=0) for n in sizes]
    (told,) = answers([case(made, states)], folder)
    assert isinstance(told, list), told
    return [{name: decoded(text) for name, text in each["seen"].items()} for each in told]


def alike(cases: dict[str, Callable], folder, sizes=(N,)) -> None:
    """The page says of each function of (jax.numpy, x, w) what it says of (numpy, x, w)."""
    pages = {name: _of(function, jnp) for name, function in cases.items()}
    same(pages, {name: _of(function, np) for name, function in cases.items()}, folder, sizes)


def same(ours: dict[str, Told], theirs: dict[str, Told], folder, sizes=(N,)) -> None:
    """The page says of each function of (x, w) what another one says."""
    for n, told in zip(sizes, on_the_page(ours, folder, sizes), strict=True):
        for name, function in theirs.items():
            wanted = np.asarray(function(*given(n)), float)
            got = told[name].reshape(wanted.shape)
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13, err_msg=name)


def _of(function: Callable, m: Any) -> Told:
    return lambda x, w: function(m, x, w)


def grid(m: Any, x: Any, *shape: int) -> Any:
    """Numbers of which no two are equal, in a shape that is known."""
    count = int(np.prod(shape))
    return (m.sin(1.0 + m.arange(count)) * (2.0 + x[0, 0])).reshape(shape)


def test_other_shapes_of_the_same_numbers(tmp_path):
    folded = {
        (20, 6): [(20, 2, 3), (6, 20), (24, 5), (120,), (4, 5, 6), (20, 1, 6), (20, 3, 2), (40, 3)],
        (4, 18, 5): [(2, 2, 18, 5), (4, 6, 15), (72, 5), (4, 90), (18, 4, 5), (4, 3, 6, 5)],
        (2, 3, 20): [(6, 20), (1, 6, 1, 20), (3, 2, 20), (120, 1), (2, 60)],
        (1, 20, 1): [(20,), (20, 1), (1, 1, 20), (4, 5)],
        (1, 20): [(1, 1, 20), (20, 1)],
        (1, 6): [(1, 1, 6), (6, 1, 1), (2, 1, 3)],
        (18, 18): [(18, 1, 18), (18, 18, 1), (1, 18, 18)],
        (3, 4, 2): [(12, 2), (4, 6), (2, 12), (24,), (3, 2, 4)],
    }
    cases = {
        f"{old} as {new}": lambda m, x, w, old=old, new=new: m.reshape(grid(m, x, *old), new)
        for old, news in folded.items()
        for new in news
    }
    cases |= {
        "all in a row": lambda m, x, w: x.reshape(-1),
        "across": lambda m, x, w: x.reshape(3, -1),
        "alone": lambda m, x, w: w.reshape(-1, 1) * x.reshape(-1, 1, 3)[:, 0],
        "back": lambda m, x, w: (2 * x.reshape(-1)).reshape(-1, 3),
        "gone": lambda m, x, w: m.squeeze(m.reshape(x[0], (1, 3, 1)), (0, 2)),
        "first gone": lambda m, x, w: m.squeeze(x[:1], 0) + m.squeeze(x[:, 2:], 1)[0],
        "last gone": lambda m, x, w: m.squeeze(grid(m, x, 2, 1, 20, 1), -1),
        "spread": lambda m, x, w: m.broadcast_to(x[:, None, :], (x.shape[0], 4, 3)),
        "stretched": lambda m, x, w: m.broadcast_to(x[:, :1], x.shape) + m.broadcast_to(w[0], (3,)),
        "outer": lambda m, x, w: w[:, None] * x[:, 1] - w,
        "turned": lambda m, x, w: m.transpose(grid(m, x, 4, 20, 3), (2, 0, 1)),
        "turned again": lambda m, x, w: m.transpose(grid(m, x, 4, 20, 3), (1, 2, 0)) + x[0, 0],
        "turned tokens": lambda m, x, w: x.T + w,
    }
    alike(cases, tmp_path, (N, 30))


def test_parts_of_arrays_and_arrays_of_parts(tmp_path):
    def split(m, a, places, axis):
        parts = m.split(a, places, axis=axis)
        return m.concatenate([(k + 2) * part for k, part in enumerate(parts)], axis)

    def unstacked(m, a, axis):
        parts = m.unstack(a, axis=axis)
        return sum((k + 2) ** 2 * part for k, part in enumerate(parts))

    wide = lambda m, x: grid(m, x, 20, 6)  # noqa: E731
    cube = lambda m, x: grid(m, x, 4, 18, 3)  # noqa: E731
    cases: dict[str, Callable] = {}
    for axis in range(3):
        sizes = (1, 3) if axis == 0 else (1, 2)
        turns: dict[str, Callable] = {
            "flip": lambda m, a, axis=axis: m.flip(a, axis),
            "beside": lambda m, a, axis=axis: m.concatenate([a, 2 * a], axis),
            "stack": lambda m, a, axis=axis: m.stack([a, a + 1], axis),
            "unstack": lambda m, a, axis=axis: unstacked(m, a, axis),
            "split": lambda m, a, axis=axis, at=sizes: split(m, a, at, axis),
            "roll": lambda m, a, axis=axis: m.roll(a, 1, axis),
            "squeeze": lambda m, a, axis=axis: m.squeeze(m.expand_dims(a, axis), axis),
            "largest": lambda m, a, axis=axis: m.argmax(a, axis),
            "running": lambda m, a, axis=axis: m.cumsum(a, axis),
            "sums": lambda m, a, axis=axis: m.sum(a, axis) * m.max(a, axis),
        }
        for name, turn in turns.items():
            cases[f"{name} {axis}"] = lambda m, x, w, turn=turn: turn(m, cube(m, x))
    cases |= {
        "tile cube": lambda m, x, w: m.tile(cube(m, x), (2, 1, 3)),
        "slice": lambda m, x, w: wide(m, x)[3:17, 1:4],
        "strides": lambda m, x, w: wide(m, x)[1:18:3, 5:0:-2] + wide(m, x)[2:8, ::2],
        "some tokens": lambda m, x, w: x[1:4:2, 1:],
        "flip": lambda m, x, w: m.flip(wide(m, x), 0) + m.flip(wide(m, x), 1),
        "flip tokens": lambda m, x, w: m.flip(x) + m.flip(w)[:, None],
        "beside": lambda m, x, w: m.concatenate([wide(m, x), x[0, 1] * wide(m, x)[:, 1:3]], 1),
        "below": lambda m, x, w: m.concatenate(
            [wide(m, x)[:18], wide(m, x)[17:], x[:1].repeat(2, 1)]
        ),
        "three": lambda m, x, w: m.concatenate([x[:, 0], 2 * w, x[:, 1]]),
        "tokens below": lambda m, x, w: m.concatenate([x, -x, x[:2] + 9])[:, 1:],
        "stack": lambda m, x, w: m.stack([x, 2 * x + 1, x**2], 1),
        "stack long": lambda m, x, w: m.stack([w + k for k in range(18)]),
        "stack last": lambda m, x, w: m.stack([w, x[:, 0], x[:, 2]], -1)[:, 1:],
        "unstack": lambda m, x, w: unstacked(m, wide(m, x), 1),
        "unstack first": lambda m, x, w: unstacked(m, wide(m, x).T, 0),
        "tile": lambda m, x, w: m.tile(grid(m, x, 4, 3), (2, 6)),
        "tile tokens": lambda m, x, w: m.tile(x, (3, 2)),
        "split": lambda m, x, w: split(m, wide(m, x), (1, 3), 1) + split(m, wide(m, x), 3, 1),
        "split first": lambda m, x, w: split(m, wide(m, x), (2, 19), 0),
        "roll": lambda m, x, w: m.roll(wide(m, x), (7, 2), (0, 1)),
    }
    alike(cases, tmp_path, (N, 30))


def test_arrays_with_margins(tmp_path):
    margins = {
        "right": ((0, 0), (0, 2)),
        "left": ((0, 0), (2, 0)),
        "around": ((1, 2), (3, 4)),
        "below": ((0, 3), (0, 0)),
        "above": ((3, 0), (0, 0)),
    }
    cases = {
        f"{name} {shape}": lambda m, x, w, width=width, shape=shape: m.pad(
            grid(m, x, *shape), width, constant_values=0.5
        )
        for name, width in margins.items()
        for shape in ((20, 6), (2, 18))
    }
    cases |= {
        f"{name} of tokens": lambda m, x, w, width=width: m.pad(x, width, constant_values=-3.0)
        for name, width in margins.items()
    }
    alike(cases, tmp_path)
    cut = {
        "cut": lambda x, w: lax.pad(x, w[0], ((-1, 2, 0), (1, -1, 0))),
        "cut long": lambda x, w: lax.pad(grid(jnp, x, 20, 6), w[1], ((-2, -3, 0), (-1, 1, 0))),
    }
    wanted = {
        "cut": lambda x, w: np.pad(x[1:, :-1], ((0, 2), (1, 0)), constant_values=w[0]),
        "cut long": lambda x, w: np.pad(
            grid(np, x, 20, 6)[2:-3, 1:], ((0, 0), (0, 1)), constant_values=w[1]
        ),
    }
    same(cut, wanted, tmp_path)


def _whole(w: jax.Array, *numbers: int) -> list[jax.Array]:
    """Whole numbers that only the run knows."""
    return [(k + 0 * w[0]).astype(jnp.int32) for k in numbers]


def test_slices_whose_place_the_run_knows(tmp_path):
    """A slice that would reach beyond the end is moved back until it fits."""
    starts = [(0, 0), (2, 1), (-25, 3), (17, 9), (5, -8), (99, 0)]  # from -20, -6 on: of the end
    ours, theirs = {}, {}
    for i, j in starts:
        r, c = min(max(i, 0), 15), min(max(j, 0), 3)

        def read(x, w, i=i, j=j):
            return lax.dynamic_slice(grid(jnp, x, 20, 6), _whole(w, i, j), (5, 3))

        def write(x, w, i=i, j=j):
            part = x[0, 0] + jnp.arange(15.0).reshape(5, 3)
            return lax.dynamic_update_slice(grid(jnp, x, 20, 6), part, _whole(w, i, j))

        def written(x, w, r=r, c=c):
            a = grid(np, x, 20, 6)
            a[r : r + 5, c : c + 3] = x[0, 0] + np.arange(15.0).reshape(5, 3)
            return a

        ours |= {f"read {i} {j}": read, f"write {i} {j}": write}
        theirs |= {
            f"read {i} {j}": lambda x, w, r=r, c=c: grid(np, x, 20, 6)[r : r + 5, c : c + 3],
            f"write {i} {j}": written,
        }
    for k, fits in ((1, 1), (-N - 1, 0), (50, N - 2)):
        ours[f"rows {k}"] = lambda x, w, k=k: lax.dynamic_slice(x, _whole(w, k, 1), (2, 2))
        theirs[f"rows {k}"] = lambda x, w, k=fits: x[k : k + 2, 1:]
        ours[f"put {k}"] = lambda x, w, k=k: lax.dynamic_update_slice(
            x, 2 * x[:1] + 1, _whole(w, k, 0)
        )
        theirs[f"put {k}"] = lambda x, w, k=min(max(k, 0), N - 1): np.where(
            np.arange(N)[:, None] == k, 2 * x[0] + 1, x
        )
    for k, fits in ((1, 1), (3, 2), (-9, 0)):  # known before the run
        ours[f"known {k}"] = lambda x, w, k=k: lax.dynamic_slice(
            grid(jnp, x, 6, 4), (jnp.arange(4)[0] + k, 1), (4, 2)
        )
        theirs[f"known {k}"] = lambda x, w, k=fits: grid(np, x, 6, 4)[k : k + 4, 1:3]
    ours["kept"] = lambda x, w: lax.dynamic_update_slice(x, x[:, :2] * 2, _whole(w, 3, 5))
    theirs["kept"] = lambda x, w: np.column_stack([x[:, :1], x[:, :2] * 2])
    same(ours, theirs, tmp_path)


def test_entries_at_places_of_a_list(tmp_path):
    def places(m: Any, x: Any) -> Any:
        return (m.floor(99 * x[:, 0]) % 20).astype(int)

    cases = {
        "take": lambda m, x, w: grid(m, x, 20, 6)[places(m, x)],
        "columns": lambda m, x, w: grid(m, x, 20, 6)[:, places(m, x) % 6],
        "pairs": lambda m, x, w: grid(m, x, 20, 6)[places(m, x), places(m, x) % 5],
        "mirrored": lambda m, x, w: x[-1 - places(m, x) % 4],
        "along": lambda m, x, w: m.take_along_axis(
            grid(m, x, 5, 18), (m.arange(20).reshape(5, 4) * 7) % 18, 1
        ),
        "along first": lambda m, x, w: m.take_along_axis(x, places(m, x)[:, None] % 4, 0),
        "fixed": lambda m, x, w: x[m.asarray([2, 0, 3, 0])][:, m.asarray([2, 1])],
        "table": lambda m, x, w: m.asarray([[1.5, 2.5], [3.5, 5.5], [0.5, 9.5]])[places(m, x) % 3],
    }
    alike(cases, tmp_path, (N, 30))
    beyond = np.array([3, -1, N + 2, 6, -9, 40, 0, *range(-6, 12)])

    def got(a: jax.Array, w: jax.Array, mode: str) -> jax.Array:
        where = (beyond + 0 * w[0]).astype(jnp.int32)
        return a.at[where].get(mode=mode, wrap_negative_indices=False)

    def windows(x, w):
        where = (beyond + 99 + 0 * w[0]).astype(jnp.int32) - 99
        return jax.vmap(lambda k: lax.dynamic_slice(w, (jnp.maximum(k, 0),), (3,)))(where)

    ours = {
        "clip": lambda x, w: got(x, w, "clip"),
        "fill": lambda x, w: got(x, w, "fill"),
        "fill whole": lambda x, w: jnp.maximum(got((9 * x).astype(int)[:, 1], w, "fill"), -99),
        "fill truth": lambda x, w: got(x[:, 1] > 0, w, "fill"),
        "windows": windows,
    }
    inside = (beyond >= 0) & (beyond < N)
    held, begins = np.clip(beyond, 0, N - 1), np.clip(beyond, 0, N - 3)
    theirs = {
        "clip": lambda x, w: x[held],
        "fill": lambda x, w: np.where(inside[:, None], x[held], np.nan),
        "fill whole": lambda x, w: np.where(inside, np.trunc(9 * x[held, 1]), -99),
        "fill truth": lambda x, w: np.where(inside, x[held, 1] > 0, True),
        "windows": lambda x, w: w[begins[:, None] + np.arange(3)],
    }
    same(ours, theirs, tmp_path)


def test_entries_that_are_changed_one_after_the_other(tmp_path):
    places = np.array([1, 3, 1, 0, N - 1, 3, 1, *range(-4, 10)])
    inside = (places >= 0) & (places < N)
    count = len(places)

    def rows(w):
        return (places + 0 * w[0]).astype(jnp.int32)

    def changed(word: str) -> Told:
        def told(x, w):
            at = x.at[rows(w)]
            new = 2 * grid(jnp, x, count, 3)
            return getattr(at, word)(new, mode="drop", wrap_negative_indices=False)

        return told

    def by_hand(ufunc: Any) -> Told:
        def told(x, w):
            a = x.copy()
            ufunc.at(a, places[inside], 2 * grid(np, x, count, 3)[inside])
            return a

        return told

    words = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
    ours: dict[str, Told] = {word: changed(word) for word in words}
    theirs: dict[str, Told] = {word: by_hand(ufunc) for word, ufunc in words.items()}
    few = np.abs(places[:7])

    def entries(x, w):
        a = x.copy()
        np.add.at(a, (few, few % 3), grid(np, x, 7))
        return a

    def block(x, w):
        a = grid(np, x, 20, 6)
        a[4:7, 2:] = x[:3, :1]
        return a

    ours |= {
        "entries": lambda x, w: x.at[rows(w)[:7], rows(w)[:7] % 3].add(grid(jnp, x, 7)),
        "set": lambda x, w: x.at[rows(w)[3:5]].set(w[:3]),
        "set columns": lambda x, w: x.at[:, rows(w)[:1] % 3].set(w[:, None]),
        "set block": lambda x, w: grid(jnp, x, 20, 6).at[4:7, 2:].set(x[:3, :1]),
        "add to one": lambda x, w: (0 * w[0]).at[()].add(w[2]) + x[0],
    }
    theirs |= {
        "entries": entries,
        "set": lambda x, w: np.concatenate([w[None, :3], x[1:-1], w[None, :3]]),
        "set columns": lambda x, w: np.column_stack([x[:, 0], w, x[:, 2]]),
        "set block": block,
        "add to one": lambda x, w: w[2] + x[0],
    }
    same(ours, theirs, tmp_path)


def test_sums_products_and_extremes(tmp_path):
    cases: dict[str, Callable] = {}
    for word in ("sum", "prod", "max", "min", "argmax", "argmin"):
        for axis in (0, 1):
            cases[f"{word} {axis}"] = lambda m, x, w, word=word, axis=axis: getattr(m, word)(
                grid(m, x, 20, 6), axis=axis
            )
        cases[f"{word} of tokens"] = lambda m, x, w, word=word: getattr(m, word)(x, axis=0)
        cases[f"{word} of coordinates"] = lambda m, x, w, word=word: getattr(m, word)(x, axis=1)
        cases[f"{word} of ties"] = lambda m, x, w, word=word: getattr(m, word)(m.round(x), axis=0)
        cases[f"{word} of whole numbers"] = lambda m, x, w, word=word: getattr(m, word)(
            m.trunc(4 * x).astype(int), axis=0
        )
    for word in ("all", "any"):
        for name, least in (("few", -9.0), ("some", 0.0), ("none", 9.0)):
            cases[f"{word} {name}"] = lambda m, x, w, word=word, least=least: getattr(m, word)(
                x > least, axis=0
            )
            cases[f"{word} {name} across"] = lambda m, x, w, word=word, least=least: getattr(
                m, word
            )(x > least, axis=1)
    for word in ("cumsum", "cumprod"):
        for axis in (0, 1):
            cases[f"{word} {axis}"] = lambda m, x, w, word=word, axis=axis: getattr(m, word)(
                grid(m, x, 20, 6), axis=axis
            )
        cases[f"{word} of tokens"] = lambda m, x, w, word=word: getattr(m, word)(x, axis=0)
        cases[f"{word} of whole numbers"] = lambda m, x, w, word=word: getattr(m, word)(
            m.round(x).astype(int), axis=0
        )
    cases |= {
        "both axes": lambda m, x, w: m.stack([m.sum(x), m.max(x), m.min(x), m.prod(x)]),
        "of three": lambda m, x, w: m.sum(grid(m, x, 4, 20, 3), axis=(0, 1)),
        "outer two": lambda m, x, w: m.max(grid(m, x, 4, 20, 3), axis=(0, 2)),
        "of a constant": lambda m, x, w: m.sum(0 * x + w[0], axis=0) + m.sum(m.ones_like(w)),
        "how many": lambda m, x, w: m.sum(m.ones_like(w, int)) + 0 * w[0],
        "product of a constant": lambda m, x, w: m.prod(w[0] + 0 * w + 1),
        "largest of a constant": lambda m, x, w: m.max(m.broadcast_to(w[0], w.shape)),
        "power of a constant": lambda m, x, w: m.prod(m.broadcast_to(1 + w[0], w.shape)),
        "multiple of a constant": lambda m, x, w: m.sum(m.broadcast_to(1 + w[0], w.shape)),
        "variance": lambda m, x, w: m.sum((x - m.sum(w[:, None] * x, 0)) ** 2, 0),
        "nested": lambda m, x, w: m.sum(w * m.max(x @ x.T, axis=1)) * m.sum(m.exp(x @ x.T), 1),
    }
    alike(cases, tmp_path, (N, 30))


def test_sums_that_wait_for_each_other(tmp_path):
    """Chains of sums over one axis, of each token and of all: each loop begins where the last one
    ended, and those that do not wait share one.
    """

    def weights(m, G):
        A = m.exp(G - m.max(G, 1)[:, None])
        return A / m.sum(A, 1)[:, None]

    def chain(m, x, w):
        P = weights(m, x @ x.T)
        q = m.sum(P * P, 1)
        r = m.sum((P - q[:, None]) ** 2 * w, 1)
        return m.sum(m.cos(P * r[:, None]), 1) + q - m.min(x @ x.T, 1)

    def totals(m, x, w):
        a = m.sum(w * x[:, 0])
        b = m.sum(w * (x[:, 0] - a) ** 2)
        c = m.max((x[:, 1] - a) / b)
        return m.stack([a, b, c, m.sum(m.exp(x[:, 2] - c)), m.min(x[:, 0] * c), m.sum(x[:, 1])])

    def shared(m, x, w):
        A = weights(m, 2 * x @ x.T)
        y = A @ x
        B = weights(m, y @ x.T)
        return m.concatenate([A @ y, B @ y - w[:, None] * m.sum(A * B, 1)[:, None]], 1)

    def longer(m, x, w):
        a = grid(m, x, 20, 3)
        b = a / m.sum(a * a, 0)
        return m.sum(b * m.max(b @ b.T, 1)[:, None], 0) + m.sum(b, 0) * (w @ x)

    cases = {"chain": chain, "totals": totals, "shared": shared, "longer": longer}
    cases |= {
        "twice": lambda m, x, w: m.stack([w @ x, m.sin(w @ x), (w @ x) * m.sum(w * w)]),
        "rows and columns": lambda m, x, w: m.sum(x @ x.T, 0) * m.max(x @ x.T * w, 1),
        "triples": lambda m, x, w: m.sum(m.exp(x @ x.T) @ m.exp(-x @ x.T), 1),
        "steps": lambda m, x, w: m.stack([w[0], w[0] * x[0, 0], w[0] * x[0, 0] + 1, w[0] ** 2]),
    }
    alike(cases, tmp_path, (N, 30))


def test_random_numbers_are_those_of_jax(tmp_path):
    def key(w):
        return jax.random.fold_in(jax.random.key(5), (jnp.round(0 * w[0]) + 7).astype(int))

    def words(x, w):
        keys = jax.random.split(key(w), (2, 3))
        bits = jax.random.bits(keys[1, 2], (4, 3), "uint32")
        more = jax.vmap(lambda k: jax.random.bits(k, (3,), "uint32"))(keys[0])
        return jnp.concatenate([bits.reshape(-1), more.reshape(-1)]).astype(float)

    def numbers(x, w):
        single = jax.random.normal(key(w), (3,), "float32")
        again = jax.random.wrap_key_data(jnp.stack([jnp.uint32(9), jnp.uint32(2**31 + 3)]))
        double = jax.random.uniform(again, (3,), "float64")
        return jnp.concatenate([jnp.round(single.astype(float), 5), double])

    ours = {"words": words, "numbers": numbers}
    ours["data"] = lambda x, w: jax.random.key_data(jax.random.split(key(w))[1]).astype(float)
    ours["seed"] = lambda x, w: jax.random.key_data(jax.random.key(13)) + w[:2]
    ours["tokens"] = lambda x, w: jax.random.uniform(key(w), x.shape, "float64")

    def wanted(function: Told) -> Told:
        def told(x, w):
            with precision("float64"):
                return np.asarray(jax.jit(function)(jnp.asarray(x), jnp.asarray(w)))

        return told

    same(ours, {name: wanted(function) for name, function in ours.items()}, tmp_path)


def test_running_extremes_and_sums_from_the_end(tmp_path):
    ours, theirs = {}, {}
    for word, ufunc in (
        ("sum", np.add),
        ("prod", np.multiply),
        ("max", np.maximum),
        ("min", np.minimum),
    ):
        run = getattr(lax, f"cum{word}")
        for axis in (0, 1):
            ours[f"{word} {axis}"] = lambda x, w, run=run, axis=axis: run(x, axis)
            theirs[f"{word} {axis}"] = lambda x, w, u=ufunc, axis=axis: u.accumulate(x, axis)
            ours[f"{word} back {axis}"] = lambda x, w, run=run, axis=axis: run(x, axis, True)
            theirs[f"{word} back {axis}"] = lambda x, w, u=ufunc, axis=axis: np.flip(
                u.accumulate(np.flip(x, axis), axis), axis
            )
    same(ours, theirs, tmp_path)


def test_products_of_arrays(tmp_path):
    cases = {
        rule: lambda m, x, w, rule=rule, shapes=shapes: m.einsum(
            rule, grid(m, x, *shapes[0]), m.cos(grid(m, x, *shapes[1]))
        )
        for rule, shapes in {
            "ij,jk->ik": ((20, 6), (6, 4)),
            "ji,jk->ik": ((20, 6), (20, 4)),
            "ij,kj->ik": ((3, 18), (4, 18)),
            "bij,bjk->bik": ((2, 20, 5), (2, 5, 3)),
            "ibj,jkb->bik": ((20, 2, 5), (5, 3, 2)),
            "ijk,kjl->il": ((4, 20, 3), (3, 20, 2)),
            "i,j->ij": ((20,), (4,)),
            "bi,bi->b": ((18, 4), (18, 4)),
            "abc,cd->abd": ((2, 3, 4), (4, 5)),
        }.items()
    }
    cases |= {
        "gram": lambda m, x, w: x @ x.T,
        "moment": lambda m, x, w: (w * x.T) @ x,
        "mean": lambda m, x, w: w @ x,
        "square": lambda m, x, w: (x @ x.T) @ (x @ x.T),
    }
    alike(cases, tmp_path)


def symmetric(m: Any, x: Any) -> Any:
    return x[:4] @ x[:4].T + m.diag(m.asarray([1.0, 2.0, 3.0, 4.0]))


def test_linear_algebra(tmp_path):
    square = lambda m, x: m.concatenate([x[:4], grid(m, x, 4, 1)], 1)  # noqa: E731
    cases = {
        "solve": lambda m, x, w: m.linalg.solve(square(m, x), x[:4]),
        "solve one": lambda m, x, w: m.linalg.solve(square(m, x), x[:4, 1]),
        "inverse": lambda m, x, w: m.linalg.inv(square(m, x)),
        "cholesky": lambda m, x, w: m.linalg.cholesky(symmetric(m, x)),
        "eigenvalues": lambda m, x, w: m.linalg.eigvalsh(symmetric(m, x)),
        "projections": lambda m, x, w: m.linalg.eigh(symmetric(m, x))[1] ** 2,
        "of the moment": lambda m, x, w: m.linalg.eigvalsh((w * x.T) @ x),
        "sort": lambda m, x, w: m.sort(x, axis=1) + m.sort(w)[:, None],
        "argsort": lambda m, x, w: m.argsort(w) + 10 * m.argsort(x[:, 1]),
        "argsort rows": lambda m, x, w: m.argsort(grid(m, x, 4, 18), axis=1),
    }
    alike(cases | {"median": lambda m, x, w: m.median(grid(m, x, 21))}, tmp_path)


@pytest.mark.parametrize("left", [True, False])
def test_triangular_systems(left, tmp_path):
    ours, theirs = {}, {}
    for lower in (True, False):
        for turned in (True, False):
            for unit in (True, False):

                def solve(x, w, lower=lower, turned=turned, unit=unit):
                    b = x[:4] if left else x[:4].T
                    options = {"left_side": left, "lower": lower, "transpose_a": turned}
                    return lax.linalg.triangular_solve(
                        symmetric(jnp, x), b, unit_diagonal=unit, **options
                    )

                def solved(x, w, lower=lower, turned=turned, unit=unit):
                    a = (np.tril if lower else np.triu)(symmetric(np, x))
                    if unit:
                        np.fill_diagonal(a, 1)
                    a = a.T if turned else a
                    return np.linalg.solve(a, x[:4]) if left else np.linalg.solve(a.T, x[:4]).T

                name = f"{lower} {turned} {unit}"
                ours[name], theirs[name] = solve, solved
    same(ours, theirs, tmp_path)


def test_sorting_by_several_keys_carries_the_rest_along(tmp_path):
    def ours(x, w):
        keys = jnp.round(x[:, 0]), jnp.round(2 * x[:, 1])
        return jnp.stack(lax.sort((*keys, w, x[:, 2]), num_keys=2))

    def theirs(x, w):
        a, b = np.round(x[:, 0]), np.round(2 * x[:, 1])
        order = np.lexsort((b, a))
        return np.stack([each[order] for each in (a, b, w, x[:, 2])])

    same({"sorted": ours}, {"sorted": theirs}, tmp_path, (30,))


def test_branches_and_loops(tmp_path):
    def cond(k: int) -> Told:
        ways = [lambda x: x + 1, lambda x: 2 * x, lambda x: x**2, lambda x: -x]
        return lambda x, w: lax.switch(_whole(w, k)[0], ways, x)

    def scanned(x, w, reverse=False):
        def turn(carry, row):
            a, b, k = carry
            new = (b + w[1] * row, a - 0.5 * row, k + 1)
            return new, (a * row + k, b[0])

        first = x[0], jnp.zeros(3), jnp.int32(0)
        last, series = lax.scan(turn, first, x, reverse=reverse)
        return jnp.concatenate([*last[:2], last[2][None], series[0].reshape(-1), series[1]])

    def walked(x, w, reverse=False):
        a, b, series = x[0], np.zeros(3), [np.zeros((N, 3)), np.zeros(N)]
        for k, i in enumerate(range(N)[:: -1 if reverse else 1]):
            series[0][i], series[1][i] = a * x[i] + k, b[0]
            a, b = b + w[1] * x[i], a - 0.5 * x[i]
        return np.concatenate([a, b, [N], series[0].reshape(-1), series[1]])

    def fibonacci(x, w):
        go = lambda s: (s[2] < 9) & (s[0] < w[3] + 40.0)  # noqa: E731
        turn = lambda s: (s[1], s[0] + w[2] * s[1], s[2] + 1)  # noqa: E731
        a, b, k = lax.while_loop(go, turn, (x[:, 0][:1].sum(), x[1, 1] + 3.0, jnp.int32(2)))
        return jnp.stack([a, b, k.astype(float)])

    def by_hand(x, w):
        a, b, k = x[0, 0], x[1, 1] + 3.0, 2
        while k < 9 and a < w[3] + 40.0:
            a, b, k = b, a + w[2] * b, k + 1
        return np.array([a, b, k])

    def halved(x, w):
        """Rows are halved by themselves, until each is short: `vmap` of a loop."""

        def until_short(row):
            go = lambda s: jnp.sum(s[0] ** 2) > 0.1 * w[0]  # noqa: E731
            return lax.while_loop(go, lambda s: (s[0] / 2, s[1] + 1), (row, 0.0))

        short, turns = jax.vmap(until_short)(x[:3] * jnp.array([[1.0], [9.0], [50.0]]))
        return jnp.concatenate([short.reshape(-1), turns])

    def halved_by_hand(x, w):
        short, turns = [], []
        for row in x[:3] * np.array([[1.0], [9.0], [50.0]]):
            turns.append(0)
            while np.sum(row**2) > 0.1 * w[0]:
                row, turns[-1] = row / 2, turns[-1] + 1
            short.append(row)
        return np.concatenate([*short, turns])

    def once(x, w):
        turn = lambda c, row: (c + w[0] * row, (c * row, row[1]))  # noqa: E731
        last, (one, two) = lax.scan(turn, x[1], x[:1])
        return jnp.concatenate([last, one.reshape(-1), two])

    ours = {f"way {k}": cond(k) for k in (-3, 0, 1, 2, 3, 9)}
    ways = [lambda x: x + 1, lambda x: 2 * x, lambda x: x**2, lambda x: -x]
    theirs = {f"way {k}": lambda x, w, k=k: ways[min(max(k, 0), 3)](x) for k in (-3, 0, 1, 2, 3, 9)}
    ours |= {"scan": scanned, "back": lambda x, w: scanned(x, w, True), "while": fibonacci}
    theirs |= {"scan": walked, "back": lambda x, w: walked(x, w, True), "while": by_hand}
    ours["batch of whiles"], theirs["batch of whiles"] = halved, halved_by_hand
    ours |= {
        "once": once,
        "repeat": lambda x, w: lax.fori_loop(0, 5, lambda k, y: y @ y.T @ y / 9 + k, x),
    }
    theirs["once"] = lambda x, w: np.concatenate([x[1] + w[0] * x[0], x[1] * x[0], x[0, 1:2]])

    def repeated(x, w):
        for k in range(5):
            x = x @ x.T @ x / 9 + k
        return x

    theirs["repeat"] = repeated
    same(ours, theirs, tmp_path)


def test_numbers_that_are_known_are_those_that_a_run_would_find(tmp_path):
    """The same functions of counters: of a short axis, where they are worked out beforehand, and of
    a long one, where the page does it.
    """
    several: dict[str, Callable] = {
        "compare": lambda m, k: m.stack(
            [k < 3, k <= 3, k > 3, k >= 3, k == 3, k != 3, 2 * k < k + 2]
        ),
        "whole": lambda m, k: m.stack(
            [k - 3, 3 - k, -k, k * k, k * (k - 2), 2 * k + k, (k + 1) * 4]
        ),
        "truths": lambda m, k: m.stack(
            [(k > 1) & (k < 4), (k > 4) | (k < 1), (k > 1) ^ (k < 4), ~(k > 2), k.astype(bool)]
        ),
        "bits": lambda m, k: m.stack([k & 5, k | 5, k ^ 5, k << 2, k | 0]),
        "real": lambda m, k: m.stack(
            [m.where(k > 2, k * 0.5, k - 0.25), (k * 1.0) ** 3, (1.0 + k) ** -2, k**4 * 1.0]
        ),
        "single": lambda m, k: (k.astype("float32") / m.float32(3)).astype("float64"),
        "unsigned": lambda m, k: (k - 2).astype("uint32") % m.uint32(1000),
        "trunc": lambda m, k: (k * 0.7 - 1.5).astype(int),
        "clip": lambda m, k: m.clip(k, 1, 4) + m.clip(k * 1.0, 0.5, 3.5),
        "quotient": lambda m, k: m.stack([(k - 3) // 2, (k + 9) % 4]),
        "powers": lambda m, k: m.stack([m.exp(-k), m.sqrt(k + 1.0), m.exp2(k * 0.5), m.square(k)]),
    }
    cases = {
        f"{name} {count}": lambda m, x, w, f=function, count=count: (
            f(m, m.arange(count)) + 0 * x[0, 0]
        )
        for name, function in several.items()
        for count in (6, 20)
    }
    alike(cases, tmp_path)


def test_functions_of_real_numbers(tmp_path):
    cases = {
        "simple": lambda m, x, w: m.stack([x + 0.0, 0.0 + x, x - 0.0, 1.0 * x, x * 1.0, x / 1.0]),
        "not simple": lambda m, x, w: m.stack(
            [0.0 - x, 1.0 / x, x + 1.0, x - 1.0, x * 2.0, x / 2.0]
        ),
        "signs": lambda m, x, w: m.stack(
            [0 - (-x), -x - -w[0], w[0] - (x - 1), -(x**2), 2 - -3 * x]
        ),
        "brackets": lambda m, x, w: (
            (x - (w[0] - x)) / (x * (2 + x)) * (x / (w[1] / x)) % (x * x + 1)
        ),
        "chosen": lambda m, x, w: m.where(m.where(x > 0, w[0], x) > 0.1, m.where(x > 1, 2, x), -x),
        "remainder": lambda m, x, w: m.fmod(5 * x, 1.5),
        "truths": lambda m, x, w: ((x > 0) == (x < 1)) & ((x > 0.5) | ~(x < -1)),
        "hyperbolic": lambda m, x, w: m.stack(
            [m.cosh(x), m.tanh(x), m.arcsinh(x), m.arccos(x / 9)]
        ),
        "logarithms": lambda m, x, w: m.stack([m.log1p(x * x), m.cos(x), m.abs(x) ** 0.3]),
        "same": lambda m, x, w: m.where(x > 0, x, x) + (x == x),
        "single": lambda m, x, w: (
            m.sum(x.astype("float32"), 0).astype(float) * 0
            + m.sum(m.round(x).astype("float32") * m.float32(0.5), 0)
        ),
        "single sums": lambda m, x, w: m.sum(m.floor(9 * x).astype("float32"), 1),
        "words": lambda m, x, w: m.sum(m.floor(x * x * 5e8).astype("uint32"), 0, dtype="uint32"),
        "product of words": lambda m, x, w: m.prod(
            m.floor(x * x * 1e5).astype("uint32"), 0, dtype="uint32"
        ),
    }
    alike(cases, tmp_path)


def test_a_new_axis_leaves_the_others_as_they_were():
    """Of an array told by its index: entry (i, j) stands at (i, 0, j, 0)."""
    g = Graph(emit)
    array = Field((20, 3), "f64", lambda index: index)
    aval = SimpleNamespace(shape=(20, 1, 3, 1), dtype="float64")
    eqn = SimpleNamespace(params={"dimensions": (1, 3)}, outvars=[SimpleNamespace(aval=aval)])
    made = RULES["expand_dims"](g, eqn, array)
    assert made.shape == (20, 1, 3, 1)
    for index in indices(g, made.shape):
        assert made.at(index) == (index[0], index[2])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x, w: lax.pad(x, 0.0, ((0, 0, 1), (0, 0, 0))), "pads only at the ends"),
        (lambda x, w: lax.reshape(x[:4], (3, 4), (1, 0)), "order of memory"),
        (lambda x, w: lax.sort(x, dimension=0), "sorts along the last axis"),
        (lambda x, w: jnp.linalg.cholesky(jnp.zeros((2, 3, 3)) + w[0]), "single matrix"),
        (lambda x, w: x.astype(jnp.complex128).real, "complex128"),
        (lambda x, w: jax.random.bits(jax.random.key(0), (3,), "uint8"), "not 8"),
        (
            lambda x, w: (w[:2].astype("uint64") + jnp.uint64(1)).astype("uint32"),
            "count in whole numbers",
        ),
        (lambda x, w: w[:2].astype("uint64") < jnp.uint64(1), "count in whole numbers"),
        (lambda x, w: jax.random.key_data(jax.random.key(w[0].astype(int))).repeat(9), "key"),
    ],
)
def test_what_the_page_cannot_do_is_said(function, words):
    made = program(NeuralODE.example(3, 3), Layer(), [observed("odd", function)], d=3)
    assert words in made.manifest["refused"]["odd"]
    assert not made.manifest["observables"]
