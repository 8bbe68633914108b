"""Every operation of the compiled loop is NumPy's: of numbers that each system has for itself and
of numbers that all systems share, in loops over tokens and in sums that are written out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from tests.laws.test_lanes import job
from tokenflock.dynamics import NeuralODE, SelfAttention
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.engines import lanes
from tokenflock.engines.native import machine
from tokenflock.engines.native.operations import identity
from tokenflock.engines.native.program import _data, _length
from tokenflock.engines.native.runtime import pieces
from tokenflock.engines.native.words import Kind, constant, conversion
from tokenflock.engines.page.emit import emit
from tokenflock.engines.page.fields import size
from tokenflock.engines.page.graph import Graph
from tokenflock.observables.observable import Observable
from tokenflock.shapes import Tokens, Weights
from tokenflock.solvers import Layer

N, SYSTEMS = 7, 19
Made = Callable[[Any, Any, Any], Any]


def observed(name: str, function: Made) -> Observable:
    """A function of (jax.numpy, tokens, weights) as an observable."""

    def measure(self: Observable, x: Tokens, w: Weights) -> jax.Array:
        return function(jnp, x, w)

    said = {"measure": measure, "name": property(lambda self: name), "__doc__": name}
    return type("Observed", (Observable,), said)()


def given(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of several systems, and weights of which no two are equal."""
    random = np.random.default_rng(n)
    w = random.uniform(0.5, 1.5, n)
    return random.normal(size=(SYSTEMS, n, 3)).astype(np.float32), w


def moved(x: np.ndarray, h: float) -> np.ndarray:
    """A layer of x' = tanh x, as `drift` has it."""
    return x + np.float32(h) * np.tanh(x)


def drift() -> NeuralODE:
    return NeuralODE(W=np.eye(3), A=np.eye(3), b=np.zeros(3), activation=Activation.TANH)


def alike(cases: dict[str, Made], n: int = N, within: float = 4e-6) -> None:
    """The loop says of each function of (jax.numpy, x, w) what NumPy says, at the start and after
    two steps.
    """
    x, w = given(n)
    looks = tuple(observed(name, function) for name, function in cases.items())
    work = job(drift(), n, w=w, solver=Layer(h=0.1), observe=looks, steps=np.array([0, 2]))
    assert lanes.refusal(work, n, 3) is None
    ours, later = lanes.run(work, x, []), moved(moved(x, 0.1), 0.1)
    weights = (w / w.sum()).astype(np.float32)
    for name, function in cases.items():
        for frame, tokens in enumerate((x, later)):
            if frame and ours[name].dtype != np.float32:
                continue  # a number on the verge of the next
            wanted = np.stack([np.asarray(function(np, one, weights)) for one in tokens])
            finite = wanted[np.isfinite(wanted)].astype(float)
            scale = np.abs(finite).max(initial=1.0)
            got = ours[name][:, frame]
            assert got.shape == wanted.shape, name
            assert got.dtype.kind == wanted.dtype.kind, name
            np.testing.assert_allclose(
                got.astype(float), wanted.astype(float), rtol=0, atol=within * scale, err_msg=name
            )


def grid(m: Any, x: Any, *shape: int) -> Any:
    """Numbers of which no two are equal, in a shape that is known."""
    count = int(np.prod(shape))
    return (m.sin(m.arange(count, dtype="float32") + 1) * (2 + x[0, 0])).reshape(shape)


def test_functions_of_single_numbers():
    """Of what differs between systems, and of weights, which do not."""
    plain = ("sin", "cos", "tanh", "sinh", "cosh", "arctan", "expm1", "cbrt", "exp", "floor")
    cases: dict[str, Made] = {}
    for word in (*plain, "ceil", "sign", "abs", "negative", "square"):
        cases[word] = lambda m, x, w, word=word: getattr(m, word)(1.7 * x[:, :2])
        cases[f"{word} of weights"] = lambda m, x, w, word=word: getattr(m, word)(9 * w - 1.3)
    for word in ("log", "log1p", "sqrt"):
        cases[word] = lambda m, x, w, word=word: getattr(m, word)(x * x)
        cases[f"{word} of weights"] = lambda m, x, w, word=word: getattr(m, word)(w)
    for word in ("arcsin", "arccos", "tan"):
        cases[word] = lambda m, x, w, word=word: getattr(m, word)(m.sin(x))
        cases[f"{word} of weights"] = lambda m, x, w, word=word: getattr(m, word)(w)
    for name, ours, theirs in (
        ("erf", jax.scipy.special.erf, special.erf),
        ("erfc", jax.scipy.special.erfc, special.erfc),
        ("rsqrt", lambda a: jax.lax.rsqrt(a * a), lambda a: 1 / np.sqrt(a * a)),
        ("sigmoid", jax.nn.sigmoid, special.expit),
    ):
        cases[name] = lambda m, x, w, f=ours, g=theirs: (f if m is jnp else g)(x)
        cases[f"{name} of weights"] = lambda m, x, w, f=ours, g=theirs: (f if m is jnp else g)(w)
    alike(cases)


def test_numbers_of_every_kind():
    def whole(m, a):
        return m.trunc(9 * a).astype("int32")

    def word(m, a):
        return m.floor(90 * a * a).astype("uint32")

    cases: dict[str, Made] = {}
    for name, part in (("tokens", lambda x, w: x[:, :2]), ("weights", lambda x, w: 3 * w)):

        def put(key: str, function: Callable[[Any, Any], Any], name=name, part=part) -> None:
            cases[f"{key} of {name}"] = lambda m, x, w: function(m, part(x, w))

        put("sum", lambda m, a: whole(m, a) + whole(m, a + 1))
        put("difference", lambda m, a: whole(m, a) - whole(m, 2 * a))
        put("product", lambda m, a: whole(m, a) * whole(m, 1 + a))
        put("minus", lambda m, a: -whole(m, a))
        put("larger", lambda m, a: m.maximum(whole(m, a), 2) - m.minimum(whole(m, a), -1))
        put("bits", lambda m, a: m.stack([word(m, a) & 9, word(m, a) | 9, word(m, a) ^ 9]))
        put("moved", lambda m, a: m.stack([word(m, a) << 3, word(m, a) >> 2]))
        put("turned", lambda m, a: ~word(m, a))
        put("turned whole", lambda m, a: ~whole(m, a))
        put("rest", lambda m, a: word(m, a) % m.uint32(7) + word(m, a) // m.uint32(5))
        put("mixed", lambda m, a: word(m, a) * m.uint32(3) - word(m, a + 1))
        put("as reals", lambda m, a: whole(m, a) * m.float32(0.5) + word(m, a).astype("float32"))
        put("as words", lambda m, a: whole(m, a).astype("uint32"))
        put("back", lambda m, a: word(m, a).astype("int32") - 3)
        put("truths", lambda m, a: m.stack([a > 0.3, a < 0.3, a >= 0.3, a <= 0.3, a == a, a != a]))
        put("compared", lambda m, a: m.stack([whole(m, a) > 2, whole(m, a) <= 2, word(m, a) < 40]))
        put("same", lambda m, a: m.stack([whole(m, a) == 2, whole(m, a) != 2]))
        put("both", lambda m, a: (a > 0.3) & (whole(m, a) < 9) | ~(a < 1) ^ (a > 2))
        put("chosen", lambda m, a: m.where((a > 0.3) & (a < 1), a, -1) + m.where(a > 0, 2, a))
        put("counted", lambda m, a: (a > 0.3).astype("int32") + (a < 1).astype("uint32") * 2)
        put("weighed", lambda m, a: (a > 0.3).astype("float32") - 2 * (a < 1))
        put(
            "any but zero",
            lambda m, a: m.stack([whole(m, a).astype(bool), m.trunc(a).astype(bool)]),
        )
        put("word but zero", lambda m, a: word(m, a / 5).astype(bool))
        put("finite", lambda m, a: m.isfinite(m.where(m.abs(a) > 0.5, a, m.inf)))
        put("clip", lambda m, a: m.clip(a, -0.5, 0.7) + m.clip(whole(m, a), -3, 4))
        put("power", lambda m, a: (2 + a * a) ** -3 + a**5 - a**2)
    alike(cases)


def test_sums_over_tokens_and_over_long_axes():
    cases: dict[str, Made] = {}
    for word in ("sum", "max", "min", "prod"):

        def put(name: str, part: Callable, axis: Any = 0, word=word) -> None:
            cases[f"{word} {name}"] = lambda m, x, w: getattr(m, word)(part(m, x, w), axis=axis)

        put("of tokens", lambda m, x, w: x)
        put("of coordinates", lambda m, x, w: x, 1)
        put("of all", lambda m, x, w: x, (0, 1))
        put("of weights", lambda m, x, w: w - 0.1)
        put("of pairs", lambda m, x, w: x @ x.T, 1)
        put("of a long axis", lambda m, x, w: grid(m, x, 40, 2), 0)
        put("of many", lambda m, x, w: grid(m, x, 3, 30), 1)
        put("of whole numbers", lambda m, x, w: m.trunc(3 * x).astype("int32") - 5)
        put("of positive ones", lambda m, x, w: m.trunc(3 * x * x).astype("int32") + 5)
    for name in ("all", "any"):
        for least in (-9.0, 0.4, 9.0):
            cases[f"{name} above {least}"] = lambda m, x, w, name=name, least=least: getattr(
                m, name
            )(x > least, axis=0)
            cases[f"{name} weight above {least}"] = lambda m, x, w, name=name, least=least: getattr(
                m, name
            )(3 * w > least)
    table = np.cos(np.arange(70.0)).astype(np.float32)
    steps = (np.arange(70) * 5 % 13 - 6).astype(np.int32)
    cases |= {
        "table": lambda m, x, w: m.sum(m.asarray(table) * m.sin(grid(m, x, 70))),
        "whole table": lambda m, x, w: m.sum(m.asarray(steps) * m.sin(grid(m, x, 70))),
        "truths": lambda m, x, w: m.sum(m.where(m.asarray(steps > 0), grid(m, x, 70), 2)),
        "several": lambda m, x, w: m.stack([m.sum(m.exp(x[:, 0]) * x[:, k]) for k in range(3)]),
        "largest of each": lambda m, x, w: m.max(m.where(x > 0, x, -m.inf), axis=1),
        "how many": lambda m, x, w: m.sum(x > 0.2, axis=0, dtype="int32"),
        "softmax": lambda m, x, w: (w * m.exp(x @ x.T)) @ x / m.sum(w * m.exp(x @ x.T), 1)[:, None],
        "mean": lambda m, x, w: x - w @ x,
        "long sum": lambda m, x, w: sum(m.sin(k * x[:, 0]) for k in range(1, 11)),
        "shorter sum": lambda m, x, w: sum(m.sin(k * x[:, 1]) for k in range(1, 6)) + w,
        "flat": lambda m, x, w: m.flip(x.reshape(-1)) - m.sum(w),
        "beside": lambda m, x, w: m.concatenate([x, 2 * x[:, :1] + w[:, None]], 1),
        "below": lambda m, x, w: m.concatenate([x[:, 0], w]),
        "across": lambda m, x, w: x.T - w,
        "order": lambda m, x, w: m.arange(x.shape[0]) + 0 * m.trunc(w).astype("int32"),
    }
    alike(cases)


@pytest.mark.parametrize("n", [2, 33])
def test_one_loop_serves_any_number_of_tokens(n):
    cases: dict[str, Made] = {
        "sum": lambda m, x, w: w @ x,
        "pairs": lambda m, x, w: m.sum(m.exp(-((x[:, None] - x) ** 2).sum(-1)), 1),
        "largest": lambda m, x, w: m.max(x, 0) - m.min(x, 0),
        "grid": lambda m, x, w: x @ x.T,
    }
    alike(cases, n)


def test_the_largest_and_the_smallest_word():
    """Unsigned numbers start from their own least and largest."""
    alike(
        {
            "largest": lambda m, x, w: m.max(m.floor(9 * x * x).astype("uint32"), axis=0),
            "smallest": lambda m, x, w: m.min(m.floor(9 * x * x).astype("uint32") + 1, axis=0),
            "large": lambda m, x, w: m.min(m.floor(9 * x * x).astype("uint32") + m.uint32(4e9), 0),
        }
    )


def test_what_totals_start_from():
    g = Graph(emit)
    i = g.var(0, g.name("n", "int"))

    def start(op: str, dtype: str) -> Any:
        return identity(g.node("reduce", (i,), (op, i), dtype))

    assert [start(op, "f32") for op in ("+", "*", "max", "min")] == [0, 1, -np.inf, np.inf]
    assert [start(op, "int") for op in ("+", "*", "max", "min")] == [0, 1, -(2**31), 2**31 - 1]
    assert [start(op, "u32") for op in ("+", "*", "max", "min")] == [0, 1, 0, 2**32 - 1]
    assert start("&&", "bool") is True and start("||", "bool") is False


def test_lengths_and_constants():
    g = Graph(emit)
    (dims,) = [jax.export.symbolic_shape("n, 2*n + 3, n^2 + n, 5*n - 2")]
    for n in (2, 7):
        told = [_length(size(g, dim), n) for dim in (*dims, 11)]
        assert told == [n, 2 * n + 3, n * n + n, 5 * n - 2, 11]
    words = np.array([0.5, -2.0], np.float32).view(np.int32)
    assert _data("c", "f32", (0.5, -2.0)) == (
        f"@c = private constant [2 x i32] [i32 {words[0]}, i32 {words[1]}], align 64"
    )
    assert "[i32 3, i32 -4, i32 -2]" in _data("c", "int", (3, -4, 2**32 - 2))
    assert "[i32 1, i32 0]" in _data("c", "bool", (True, False))
    one, many = Kind("f32", 1), Kind("int", 4)
    assert constant(0.5, one) == "0x3FE0000000000000" and constant(-3, Kind("int", 1)) == "-3"
    assert constant(7, many) == "<i32 7, i32 7, i32 7, i32 7>"
    assert constant(1, Kind("bool", 1)) == "true" and constant(0.0, Kind("bool", 1)) == "false"


def test_numbers_turned_into_another_kind_as_llvm():
    kinds = {
        (name, wide): Kind(name, wide) for name in ("f32", "int", "u32", "bool") for wide in (1, 8)
    }
    wanted = {
        ("int", "u32", 1): "trunc i64 a to i32",
        ("u32", "int", 1): "zext i32 a to i64",
        ("bool", "int", 1): "zext i1 a to i64",
        ("bool", "u32", 8): "zext <8 x i1> a to <8 x i32>",
        ("bool", "f32", 1): "uitofp i1 a to float",
        ("int", "f32", 1): "sitofp i64 a to float",
        ("u32", "f32", 8): "uitofp <8 x i32> a to <8 x float>",
        ("f32", "int", 1): "fptosi float a to i64",
        ("f32", "u32", 1): "fptoui float a to i32",
        ("int", "bool", 1): "icmp ne i64 a, 0",
        ("f32", "bool", 1): "fcmp une float a, 0x0000000000000000",
    }
    for (old, new, wide), text in wanted.items():
        assert conversion(kinds[old, wide], kinds[new, wide], "a") == text
    same = conversion(kinds["int", 8], kinds["u32", 8], "a")
    assert same.startswith("or <8 x i32> a, <i32 0, ")
    assert (kinds["bool", 1].kept, kinds["bool", 8].kept) == ("i32", "<8 x i32>")
    assert (kinds["int", 1].text, kinds["int", 1].kept) == ("i64", "i32")
    assert [kinds[name, 1].real for name in ("f32", "int", "u32", "bool")] == [True] + [False] * 3


def called(name: str, lanes_: int) -> Callable[[np.ndarray], np.ndarray]:
    """A function of the runtime, on an array of as many vectors as it has."""
    kind = Kind("f32", lanes_).text
    full = f"flock.{name}" + ("" if lanes_ == 1 else f".v{lanes_}")
    body = f"""define void @each(ptr %x, i64 %n) {{
entry: br label %go
go: %i = phi i64 [0, %entry], [%next, %go]
%at = getelementptr float, ptr %x, i64 %i
%a = load {kind}, ptr %at, align 4
%b = call {kind} @{full}({kind} %a)
store {kind} %b, ptr %at, align 4
%next = add i64 %i, {lanes_}
%on = icmp slt i64 %next, %n
br i1 %on, label %go, label %out
out: ret void
}}"""
    function = machine.compiled(f"{pieces(body, lanes_)}\n{body}\n", "each", "pi")

    def ask(x: np.ndarray) -> np.ndarray:
        filled = np.resize(x.astype(np.float32), -(-len(x) // lanes_) * lanes_)
        function(filled.ctypes.data, len(filled))
        return filled[: len(x)]

    return ask


@pytest.mark.parametrize("wide", [1, 8])
def test_exponentials_are_right_to_rounding_and_without_bias(wide):
    exp = called("exp", wide)
    x = np.linspace(-86.9, 88.7, 40_000).astype(np.float32)
    error = exp(x) / np.exp(x.astype(float)) - 1
    assert np.abs(error).max() < 1.2e-7
    place = x / np.log(2) - np.round(x / np.log(2))  # what is left after powers of two
    for low in np.arange(-0.5, 0.5, 0.1):
        assert abs(error[(place >= low) & (place < low + 0.1)].mean()) < 6e-9
    ends = np.array([-np.inf, -1e9, -87.1, 0.0, 88.8, 1e9, np.inf, np.nan])
    wanted = [0, 0, 0, 1, np.inf, np.inf, np.inf, np.nan]
    assert np.array_equal(exp(ends), np.array(wanted, np.float32), equal_nan=True)


@pytest.mark.parametrize("wide", [1, 8])
def test_logarithms_are_right_to_rounding(wide):
    log = called("log", wide)
    x = np.concatenate([np.geomspace(1e-37, 1e38, 20_000), np.linspace(0.5, 2, 20_001)])
    x = x.astype(np.float32)
    true = np.log(x.astype(float))
    assert np.abs(log(x) - true).max() < 5e-6
    assert (np.abs(log(x) - true) <= 1.3e-7 * np.abs(true)).all()
    small = np.array([1e-45, 3e-42, 1.1e-38, 1e-39], np.float32)
    np.testing.assert_allclose(log(small), np.log(small.astype(float)), rtol=2e-7)
    ends = np.array([0.0, -0.0, -1.0, -np.inf, np.inf, np.nan, 1.0])
    wanted = [-np.inf, -np.inf, np.nan, np.nan, np.inf, np.nan, 0]
    assert np.array_equal(log(ends), np.array(wanted, np.float32), equal_nan=True)


def test_a_step_may_depend_on_the_time():
    """The steps of frames that do not begin at zero are counted on from the one before."""

    class Clocked(NeuralODE):
        """x' = (1 + t) tanh x."""

        def field(self, t, q, x, w):
            return (1 + t) * jnp.tanh(q)

    law = Clocked(W=np.eye(3), A=np.eye(3))
    look = {"x": lambda m, x, w: x}
    work = job(
        law, N, solver=Layer(h=0.1), observe=(observed("x", look["x"]),), steps=np.array([0, 2, 3])
    )
    x, _ = given()
    ours = lanes.run(work, x, [])["x"]
    for k in range(3):
        x = x + np.float32(0.1 * (1 + 0.1 * k)) * np.tanh(x)
        if k == 1:
            np.testing.assert_allclose(ours[:, 1], x, rtol=0, atol=2e-6)
    np.testing.assert_allclose(ours[:, 2], x, rtol=0, atol=3e-6)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda m, x, w: m.arctan2(x, 1 + x), "atan2"),
        (lambda m, x, w: m.sort(x, axis=1), "no sorting"),
        (lambda m, x, w: x[m.trunc(x[:, 0]).astype(int) % 3], "same places of memory"),
        (lambda m, x, w: m.cumsum(x.astype("float16"), 0), "float16"),
    ],
)
def test_what_the_loop_cannot_do_is_said(function, words):
    work = job(SelfAttention(), N, observe=(observed("odd", function),))
    told = lanes.refusal(work, N, 3)
    assert told is not None and told.startswith("the compiled loop ") and words in told
