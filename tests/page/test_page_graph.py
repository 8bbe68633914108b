"""The graph of a page in small: whole numbers, lengths of axes, bits, and how they are written."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import jax
import numpy as np
import pytest

from tests.page.node import NODE, said
from tokenflock.engines.page.elementwise import (
    _cast,
    binary,
    bitcast,
    compare,
    convert,
    logic,
    power,
    select,
    shift,
)
from tokenflock.engines.page.emit import Emitter, Scope, emit
from tokenflock.engines.page.fields import (
    Field,
    Pair,
    given,
    indices,
    known,
    size,
    stored,
    unrolled,
)
from tokenflock.engines.page.graph import UNROLL, Graph, Node, below
from tokenflock.engines.page.views import clamped
from tokenflock.engines.page.writing import WRITERS, grown, number, outgrown, variable
from tokenflock.errors import UserError

WORD = 2**32


def graph(unroll: int = UNROLL) -> Graph:
    return Graph(emit, unroll)


def value(node: Node, known: dict[Any, int]) -> Any:
    """What a node of whole numbers is worth."""
    a = [value(arg, known) for arg in node.args]
    match node.op:
        case "const":
            return node.what
        case "var" | "name":
            return known[node]
        case "+":
            return a[0] + a[1]
        case "*":
            return a[0] * a[1]
        case "/":
            return a[0] / a[1]
        case "%":
            return a[0] % a[1]
        case "floor":
            return math.floor(a[0])
        case "max" | "min":
            return max(a) if node.op == "max" else min(a)
        case "&&" | "||":
            return all(a) if node.op == "&&" else any(a)
        case "|":
            return a[0] | a[1]
        case "<<":
            return (a[0] << a[1] % 32) % WORD  # a shift by 32 is none, as in JavaScript
        case ">>>":
            return a[0] >> a[1] % 32
    raise ValueError(node.op)


def whole(g: Graph) -> dict[str, Node]:
    """Numbers of all kinds: known ones, the length n, and variables of loops."""
    n = g.name("n", "int")
    i, j, k = g.var(0, n), g.var(1, g.const(6)), g.var(2, g.const(20))
    plain = {"0": g.const(0), "1": g.const(1), "-1": g.const(-1), "3": g.const(3), "6": g.const(6)}
    plain |= {"n": n, "i": i, "j": j, "k": k}
    made = {"6i": g.times(i, g.const(6)), "ni": g.times(i, n), "nj": g.times(j, n)}
    made |= {"j + 4": g.plus(j, g.const(4)), "6i + j": g.plus(made["6i"], j)}
    made |= {"nj + i": g.plus(made["nj"], i), "2n + 1": g.plus(g.times(n, g.const(2)), g.const(1))}
    made |= {"3k + 7": g.plus(g.times(k, g.const(3)), g.const(7)), "i + k": g.plus(i, k)}
    return plain | made


def test_sums_products_and_quotients_of_whole_numbers():
    g = graph()
    nodes = whole(g)
    n, i, j, k = (nodes[name] for name in "nijk")
    worlds = [
        {n: 5, i: a, j: b, k: c} for a, b, c in ((0, 0, 0), (4, 5, 19), (3, 2, 11), (1, 4, 6))
    ]
    for a, b in itertools.product(nodes.values(), repeat=2):
        total, times = g.plus(a, b), g.times(a, b)
        for world in worlds:
            x, y = value(a, world), value(b, world)
            assert value(total, world) == x + y and value(times, world) == x * y
            if a is not nodes["-1"] and b in (nodes["3"], nodes["6"], nodes["1"], n):
                whole_, rest = g.divided(a, b)
                assert (value(whole_, world), value(rest, world)) == divmod(x, y)


def test_what_can_be_seen_is_written_simply():
    g = graph()
    nodes = whole(g)
    n, i, j = (nodes[name] for name in "nij")
    zero, one, three, six = (nodes[name] for name in ("0", "1", "3", "6"))
    assert g.plus(i, zero) is i and g.plus(zero, i) is i
    assert g.times(i, one) is i and g.times(one, i) is i and g.times(i, zero) is zero
    assert g.plus(three, i) is g.plus(i, three)
    assert g.plus(g.plus(i, three), three) is g.plus(i, six)
    assert g.times(g.times(i, three), g.const(2)) is g.times(i, six)
    assert g.times(g.plus(i, one), six) is g.plus(nodes["6i"], six)
    assert g.divided(g.const(20), six) == (three, g.const(2))
    assert g.divided(i, one) == (i, zero) and g.divided(j, six) == (zero, j)
    assert g.divided(i, n) == (zero, i)
    assert g.divided(nodes["6i + j"], six) == (i, j)
    assert g.divided(nodes["nj + i"], n) == (j, i)
    assert g.divided(g.plus(j, nodes["6i"]), six) == (i, j)
    assert g.divided(g.times(n, j), n) == (j, zero) and g.divided(n, n) == (one, zero)
    assert g.divided(g.times(i, g.const(18)), six) == (g.times(i, three), zero)
    assert g.divided(g.plus(nodes["6i"], g.const(7)), six) == (g.plus(i, one), one)
    assert g.divided(g.plus(g.times(n, j), n), n) == (g.plus(j, one), zero)
    for a, b in ((g.plus(i, j), six), (nodes["6i"], g.const(4)), (g.times(i, g.const(9)), six)):
        quotient, rest = g.divided(a, b)
        assert (quotient.op, rest.op) == ("floor", "%")


def test_what_lies_below():
    g = graph()
    nodes = whole(g)
    n, i, j, k = (nodes[name] for name in "nijk")
    assert below(i, n) and below(j, g.const(6)) and below(j, g.const(7)) and below(g.const(0), n)
    assert below(g.const(3), g.const(4)) and not below(g.const(4), g.const(4))
    assert not below(g.const(-1), g.const(4)) and not below(j, g.const(5)) and not below(j, n)
    assert not below(i, g.const(6)) and not below(n, n) and not below(g.const(1), n)
    assert not below(nodes["j + 4"], g.const(99)) and not below(k, g.const(6))


def test_an_index_folded_and_unfolded_is_itself():
    g = graph()
    n = g.name("n", "int")
    for shape in ((n, g.const(3)), (g.const(20), n), (n, n), (g.const(4), g.const(18), n)):
        index = tuple(g.var(k, length) for k, length in enumerate(shape))
        rest, found = g.flat(shape, index), []
        for length in reversed(shape[1:]):
            rest, last = g.divided(rest, length)
            found.append(last)
        assert (rest, *reversed(found)) == index
    assert g.flat((), ()) is g.const(0)


def test_lengths_of_axes():
    """Every length that JAX may write, for several n, as numbers and as JavaScript."""
    g = graph()
    n = g.name("n", "int")
    lengths = "n, 2*n, n + 3, 3*n - 4, n^2, n*n - n, floordiv(n + 1, 2), mod(n, 3)"
    lengths += ", max(n - 6, 2), min(n, 7), -1*n + 30, floordiv(n, 3) + n^2"
    (dims,) = [jax.export.symbolic_shape(lengths, constraints=["n >= 4", "n <= 12"])]
    for dim in dims:
        node = size(g, dim)
        text = g.text(node).replace("Math.floor", "math.floor").replace("Math.", "")
        for count in (4, 5, 8, 12):
            scope = {"n": count, "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b}
            wanted = eval(str(dim).replace("^", "**"), {**scope, "max": max, "min": min})
            assert value(node, {n: count}) == wanted == eval(text, {**scope, "math": math})
    assert size(g, 5) is g.const(5) and size(g, np.int64(5)) is g.const(5)
    for odd in ("m", "n**3", "n / 2", "f(n, 2)"):
        with pytest.raises(UserError, match="no axis of length"):
            size(g, odd)
    with pytest.raises(ValueError, match="no length"):
        g.text(g.var(0, n))


def test_the_indices_of_an_array():
    g = graph(4)
    n = g.name("n", "int")
    assert unrolled(g, 4) and not unrolled(g, 5) and not unrolled(g, size(g, n.what))
    found = indices(g, (2, n.what, 3, 5))
    assert len(found) == 6 and len(set(found)) == 6
    assert [(index[0].what, index[2].what) for index in found] == [
        (a, b) for a in range(2) for b in range(3)
    ]
    assert {index[1] for index in found} == {g.var(0, n)}
    assert {index[3] for index in found} == {g.var(1, g.const(5))}
    assert indices(g, ()) == [()]


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
def test_constants_are_written_where_they_are_used_or_kept(dtype):
    g = graph()
    few = np.arange(1, 13).reshape(3, 4).astype(dtype)
    few[1, 2] = 0
    many = np.arange(130).reshape(65, 2).astype(dtype)
    i = g.var(0, g.const(3))
    kind = {"float64": "f64", "int32": "int", "bool": "bool"}[dtype]
    array = known(g, few)
    node = array.at((g.const(2), g.const(1)))
    assert (node.op, node.what, node.dtype) == ("const", few[2, 1].item(), kind)
    read = array.at((i, g.const(1)))
    assert read.op == "load" and g.data[read.what.name] == (kind, tuple(few.reshape(-1).tolist()))
    assert value(read.args[0], {i: 2}) == 9
    even = known(g, np.full((3, 4), 7).astype(dtype)).at((i, i))
    assert (even.op, even.what, even.dtype) == (
        "const",
        np.full(1, 7).astype(dtype)[0].item(),
        kind,
    )
    long = known(g, many)
    assert long.at((g.const(1), g.const(1))).op == "load" and long.stored is not None
    assert stored(g, long) is long.stored
    assert g.constants(many, kind) is long.stored and g.constants(few, kind) is read.what


def test_words_of_64_bits_that_are_known():
    g = graph()
    long = known(g, np.array([5, 2**40 + 7], np.uint64))
    pair = long.at((g.const(1),))
    assert (pair.high.what, pair.low.what) == (2**8, 7)
    with pytest.raises(UserError, match="64 bits"):
        long.at((g.var(0, g.const(2)),))
    with pytest.raises(UserError, match="no random keys"):
        stored(g, long)
    with pytest.raises(UserError, match="complex"):
        known(g, np.zeros(2, complex))


def pair(g: Graph, number: int) -> Pair:
    return Pair(g.const(number >> 32, "u32"), g.const(number % WORD, "u32"))


@pytest.mark.parametrize("by", [0, 1, 5, 31, 32, 33, 47, 63])
def test_64_bits_are_moved_as_two_words(by):
    g = graph()
    for number_ in (0x89ABCDEF01234567, 2**63 + 1, 0xFFFFFFFF, 1):
        for op, wanted in (("<<", (number_ << by) % 2**64), (">>>", number_ >> by)):
            made = shift(g, op, pair(g, number_), pair(g, by))
            assert value(made.high, {}) * WORD + value(made.low, {}) == wanted
    assert shift(g, "<<", pair(g, 5), pair(g, 0)).low.what == 5
    with pytest.raises(UserError, match="known"):
        shift(g, "<<", pair(g, 5), Pair(g.const(0, "u32"), g.name("k", "u32")))


def test_choices_and_truths_that_are_known():
    g = graph()
    a, b, c = (g.name(name, kind) for name, kind in (("a", "bool"), ("b", "bool"), ("c", "f64")))
    yes, no = g.const(True, "bool"), g.const(False, "bool")
    assert logic(g, "&", yes, a) is a and logic(g, "&", a, yes) is a
    assert logic(g, "&", no, a) is no and logic(g, "&", a, no) is no
    assert logic(g, "|", yes, a) is yes and logic(g, "|", a, yes) is yes
    assert logic(g, "|", no, a) is a and logic(g, "|", a, no) is a
    assert [logic(g, op, a, b).op for op in "&|^"] == ["&&", "||", "!=="]
    assert logic(g, "&", a, b).args == (a, b)
    zero, word = g.const(0, "u32"), g.name("u", "u32")
    assert logic(g, "|", zero, word) is word and logic(g, "|", word, zero) is word
    assert logic(g, "&", word, zero).op == "&" and logic(g, "^", word, word).op == "^"
    both = logic(g, "|", pair(g, 2**33), Pair(word, zero))
    assert both.high.op == "|" and both.low is zero
    d = g.name("d", "f64")
    assert select(g, yes, c, d) is d and select(g, no, c, d) is c
    assert select(g, a, c, c) is c and select(g, a, c, d).args == (a, d, c)
    chosen = select(g, yes, pair(g, 1), pair(g, 2**33 + 5))
    assert (chosen.high.what, chosen.low.what) == (2, 5)
    i = g.name("i", "int")
    assert compare(g, "===", i, i) is yes and compare(g, "===", c, c) is not yes
    assert compare(g, "<", i, i).op == "<" and compare(g, "===", i, g.const(2)).args[0] is i
    for x, y in ((1, 2), (2, 2), (3, 2)):
        told = [compare(g, op, g.const(x), g.const(y)).what for op in ("<", "<=", ">", ">=")]
        assert told == [x < y, x <= y, x > y, x >= y]
        assert compare(g, "===", g.const(x), g.const(y)).what is (x == y)
        assert compare(g, "!==", g.const(x), g.const(y)).what is (x != y)


def test_numbers_that_are_known_in_another_kind():
    g = graph()
    assert [_cast(v, "bool") for v in (0, 0.5, 2)] == [False, True, True]
    assert [_cast(v, "int") for v in (2.7, -2.7, True)] == [2, -2, 1]
    assert [_cast(v, "u32") for v in (-1, 5.5, WORD + 3)] == [WORD - 1, 5, 3]
    assert _cast(0.1, "f32") == float(np.float32(0.1)) != 0.1 == _cast(0.1, "f64")
    assert type(_cast(3, "f64")) is float and type(_cast(3, "f32")) is float
    c, u = g.name("c", "f64"), g.name("u", "u32")
    assert convert(g, c, "f64") is c and convert(g, g.const(2.5, "f64"), "int").what == 2
    assert convert(g, c, "int").op == "to" and convert(g, c, "int").dtype == "int"
    long = convert(g, u, "u64")
    assert long.high.what == 0 and long.low is u and convert(g, c, "u64").low.dtype == "u32"
    assert convert(g, long, "u64") is long and convert(g, long, "u32") is u
    with pytest.raises(UserError, match="64 bits"):
        convert(g, long, "f64")


def test_bits_read_as_other_numbers():
    g = graph()
    u, i, c = g.name("u", "u32"), g.name("i", "int"), g.name("c", "f64")
    long = bitcast(g, Pair(u, g.const(3, "u32")), "f64")
    assert (long.what, long.args[0], long.args[1].what) == ("double_of", u, 3)
    assert bitcast(g, u, "f32").what == "single_of"
    assert bitcast(g, i, "u32").op == "to" and bitcast(g, u, "int").op == "|"
    for odd, kind in ((c, "u32"), (u, "f64"), (i, "f32"), (Pair(u, u), "f32")):
        with pytest.raises(UserError, match="reads no bits"):
            bitcast(g, odd, kind)


@pytest.mark.parametrize("kind", ["int", "u32", "f64", "f32"])
def test_two_numbers_of_a_kind_make_one_of_that_kind(kind):
    g = graph()
    a, b = g.name("a", kind), g.name("b", kind)
    for op in ("+", "*", "%", "-"):
        made = binary(g, op, a, b)
        assert made.dtype == kind and made.args[0] is a
        assert made.op == ("+" if (kind, op) == ("int", "-") else op)
    two, three = (g.const(v if kind in ("int", "u32") else float(v), kind) for v in (2, 3))
    for op, wanted in (("+", 5), ("*", 6), ("-", -1)):
        made = binary(g, op, two, three)
        assert made.what == wanted if kind == "int" else made.args == (two, three)
    zero, one = (g.const(v if kind in ("int", "u32") else float(v), kind) for v in (0, 1))
    plain = [binary(g, "+", a, zero), binary(g, "+", zero, a), binary(g, "*", a, one)]
    plain += [binary(g, "*", one, a), binary(g, "-", a, zero)]
    assert [made is a for made in plain] == [kind != "u32"] * 5
    if kind[0] == "f":
        assert binary(g, "/", a, one) is a and binary(g, "/", one, a).op == "/"
        assert binary(g, "-", zero, a).op == "-" and binary(g, "*", a, zero).op == "*"
        assert binary(g, "+", a, one).op == "+" and binary(g, "-", a, one).op == "-"


def test_a_slice_is_moved_until_it_fits():
    g = graph()
    n = g.name("n", "int")
    read = given(g, "k", (), "int").at(())
    for start, highest, fits in ((3, 5, 3), (7, 5, 5), (-2, 5, 0), (0, 5, 0), (5, 5, 5), (4, 0, 0)):
        assert clamped(g, g.const(start), g.const(highest)) is g.const(fits)
    assert clamped(g, g.const(0), n) is g.const(0) and clamped(g, read, g.const(0)) is g.const(0)
    for counts in (g.name("s1", "int"), g.var(0, n)):
        assert clamped(g, counts, n) is counts
    for start, highest in ((g.const(2), n), (read, n), (read, g.const(4))):
        made = clamped(g, start, highest)
        assert made.op == "min" and made.args[1] is highest and made.dtype == "int"
        assert made.args[0].op == "max" and made.args[0].args == (start, g.const(0))


def test_powers_by_products():
    """a^k of a known a is a product of as few factors as squares allow."""
    g = graph()
    a = g.name("a", "f64")

    def worth(node: Node) -> float:
        if node.op in ("const", "name"):
            return 1.5 if node is a else node.what
        x, y = map(worth, node.args)
        return x * y if node.op == "*" else x / y

    for k in range(-9, 10):
        assert worth(power(g, a, k)) == pytest.approx(1.5**k, rel=1e-15)
    assert power(g, a, 1) is a and power(g, a, 0).what == 1.0
    assert power(g, g.name("i", "int"), 0).what == 1
    assert power(g, a, 8).args[0] is power(g, a, 4)


def test_a_sum_of_what_does_not_change_is_a_product():
    g = graph()
    n = g.name("n", "int")
    i, a = g.var(0, n), g.name("a", "f64")
    total = g.reduce("+", i, a)
    assert total.op == "*" and total.args[0] is a and total.args[1].op == "to"
    assert g.reduce("+", i, g.name("k", "int")).args[1] is n
    assert g.reduce("max", i, a) is a and g.reduce("min", i, a) is a
    assert g.reduce("*", i, a).op == "reduce"
    real = g.reduce("+", i, g.node("to", (i,), None, "f64"))
    assert real.op == "reduce" and real.what == ("+", i) and not real.free


def test_what_a_number_depends_on_and_costs():
    g = graph()
    n = g.name("n", "int")
    i, j = g.var(0, n), g.var(1, n)
    w, x = given(g, "w", ("n",), "f64"), given(g, "x", ("n", "n"), "f64")
    inner = g.node("*", (w.at((j,)), x.at((i, j))), None, "f64")
    assert inner.free == {i, j} and not inner.summed and inner.loops == (i, j)
    total = g.node("reduce", (inner,), ("+", j), "f64")
    assert total.free == {i} and total.summed == {i} and total.loops == (i,)
    outer = g.node("+", (total, w.at((i,))), None, "f64")
    assert outer.summed == {i} and outer.free == {i}
    whole_ = g.node("reduce", (outer,), ("+", i), "f64")
    assert not whole_.free and not whole_.summed
    index = x.at((i, j)).args[0]
    assert g.const(1).cost == i.cost == n.cost == 0 and index.cost == 2
    assert inner.cost == 3 and total.cost == 53 and outer.cost == 54
    assert g.node("call", (w.at((i,)),), "exp", "f64").cost == 8
    assert g.node("/", (w.at((i,)), w.at((j,))), None, "f64").cost == 4
    deep = inner
    for _ in range(30):
        deep = g.node("*", (deep, deep), None, "f64")
    assert deep.cost == 10**6


def test_what_an_inner_loop_would_compute_again_is_kept():
    """In a loop over j inside of one over i, what depends on j alone and is dear is an array; what
    is cheap, or belongs to the loop anyway, is computed where it stands.
    """
    g = graph()
    n = g.name("n", "int")
    i, j, k = (g.var(level, n) for level in range(3))
    w, x = given(g, "w", ("n",), "f64"), given(g, "x", ("n", "n"), "f64")

    def power_of(a: Node, count: int) -> Node:
        for _ in range(count):
            a = g.node("*", (a, g.const(3.0, "f64")), None, "f64")
        return a

    def kept(a: Node, loops: tuple[Node, ...]) -> bool:
        rest = w.at((loops[0],))
        for var in loops[1:]:
            rest = g.node("+", (rest, w.at((var,))), None, "f64")
        made = g.lifted(g.node("-", (a, rest), None, "f64"), loops)
        return made.args[0].op == "load" and made.args[0] is not a

    own = w.at((j,))
    exp = g.node("call", (own,), "exp", "f64")
    assert kept(exp, (i, j)) and not kept(exp, (j,)) and not kept(exp, (j, i))
    assert kept(power_of(own, 4), (i, j)) and not kept(power_of(own, 3), (i, j))
    pair = x.at((i, k))
    assert pair.cost == 2 and kept(power_of(pair, 29), (i, j, k))
    assert not kept(power_of(pair, 28), (i, j, k)) and not kept(power_of(pair, 29), (i, k))
    total = g.node("reduce", (x.at((j, k)),), ("+", k), "f64")
    assert kept(total, (i, j)) and not kept(total, (j,))
    place = g.plus(g.times(j, g.const(5)), g.times(g.times(j, j), j))
    assert place.cost > 3 and not kept(place, (i, j))
    row = g.lifted(g.node("*", (exp, x.at((i, j))), None, "f64"), (i, j))
    assert row.args[0].op == "load" and row.args[1] is x.at((i, j))
    held = row.args[0].what
    assert held.shape == (n,) and held.entries == (((i,), g.renamed(exp, {j: i})),)
    assert row.args[0].args == (j,) and held.dtype == "f64"


def test_an_expression_with_other_variables():
    g = graph()
    n = g.name("n", "int")
    i, j, k, m = (g.var(level, n) for level in range(4))
    w, x = given(g, "w", ("n",), "f64"), given(g, "x", ("n", "n"), "f64")
    body = g.node("*", (w.at((j,)), x.at((i, j))), None, "f64")
    total = g.node("reduce", (body,), ("+", j), "f64")
    assert g.renamed(total, {j: k}) is total and g.renamed(body, {m: k}) is body
    moved = g.renamed(total, {i: k})
    assert moved.free == {k} and moved.what == ("+", m)
    assert moved.args[0] is g.node("*", (w.at((m,)), x.at((k, m))), None, "f64")
    assert g.renamed(total, {i: k}) is moved and g.renamed(moved, {k: i}) is total


@pytest.mark.skipif(NODE is None, reason="node is not installed: no page can be run")
def test_expressions_are_written_with_the_brackets_they_need(tmp_path):
    """Random trees of operations, as JavaScript with few brackets and with all of them."""
    g, draw = graph(), random.Random(0)
    kinds = {"int": ["a", "b"], "u32": ["u", "v"], "f64": ["p", "q"], "f32": ["f"], "bool": ["t"]}
    leaves = {kind: [g.name(name, kind) for name in names] for kind, names in kinds.items()}
    leaves["f64"] += [g.const(v, "f64") for v in (-2.5, 0.5, 3.0, -0.0)]
    leaves["int"] += [g.const(v) for v in (-3, 2, 7)]

    def grow(kind: str, depth: int) -> Node:
        if depth == 0 or draw.random() < 0.1:
            return draw.choice(leaves[kind])
        more = lambda kind: grow(kind, depth - 1)  # noqa: E731
        if draw.random() < 0.15:
            return g.node("?", (more("bool"), more(kind), more(kind)), None, kind)
        if draw.random() < 0.15:
            other = draw.choice([k for k in leaves if k != kind])
            return g.node("to", (more(other),), None, kind)
        if kind == "bool":
            if draw.random() < 0.5:
                op = draw.choice(["<", "<=", ">", ">=", "===", "!=="])
                return g.node(op, (more("f64"), more("f64")), None, kind)
            op = draw.choice(["&&", "||", "!"])
            return g.node(
                op, [more("bool")] * (op == "!") or (more("bool"), more("bool")), None, kind
            )
        ops = ["+", "-", "*", "max", "min", "neg"] + (["/", "%"] if kind[0] == "f" else [])
        if kind == "u32":
            ops = ["+", "*", "|", "^", "&", "<<", ">>>", "~", "%"]
        op = draw.choice(ops)
        return g.node(op, [more(kind) for _ in range(1 if op in ("neg", "~") else 2)], None, kind)

    def short(node: Node) -> tuple[str, int]:
        return WRITERS[node.op](node, [short(arg) for arg in node.args])

    def plain(node: Node) -> str:
        args = [f"({plain(arg)})" for arg in node.args]
        match node.op:
            case "const" | "name":
                return repr(node.what) if node.op == "const" else node.what
            case "?":
                return "{} ? {} : {}".format(*args)
            case "max" | "min":
                return f"Math.{node.op}({args[0]}, {args[1]})"
            case "to":
                text = _turned(args[0], node.args[0].dtype, node.dtype)
            case "neg":
                return f"-{args[0]}"
            case "!" | "~":
                text = f"{node.op}{args[0]}"
            case "*" if node.dtype == "u32":
                text = f"Math.imul({args[0]}, {args[1]})"
            case _:
                text = f"{args[0]} {node.op} {args[1]}"
        kept = {"u32": f"({text}) >>> 0", "f32": f"Math.fround({text})"}
        return kept.get(node.dtype, text)

    trees = [grow(kind, 5) for kind in leaves for _ in range(60)]
    pairs = [(short(tree)[0], plain(tree)) for tree in trees]
    head = "const a = 5, b = -4, u = 4123456789, v = 19, p = 1.75, q = -0.3, t = true;"
    head += "const f = Math.fround(0.7);"
    script = head + (
        "const odd = given.filter(([x, y]) => !Object.is(eval(x), eval(y)));"
        "console.log(JSON.stringify(odd));"
    )
    assert said([], script, pairs, tmp_path) == []


def _turned(text: str, before: str, after: str) -> str:
    """A number in another kind, as JavaScript."""
    if after == "bool":
        return f"{text} !== 0" if before != "bool" else text
    if before == "bool":
        return f"({text} ? 1 : 0)"
    return f"Math.trunc({text})" if after == "int" and before[0] == "f" else text


def test_single_expressions_as_javascript():
    g = graph()
    texts = {7.0: "7", -7.0: "-7", 0.5: "0.5", 1e15: "1000000000000000.0", math.inf: "Infinity"}
    texts |= {-math.inf: "-Infinity", -1e300: "-1e+300", 3: "3", -2: "-2"}
    for known_, text in texts.items():
        assert number(known_) == (text, 14 if text.startswith("-") else 20)
    assert number(math.nan) == ("NaN", 20) and number(-0.0) == ("-0.0", 14)
    assert number(0.0)[0] == "0" and number(True)[0] == "true" and number(False)[0] == "false"
    n = g.name("n", "int")
    assert [variable(g.var(k, n)) for k in (0, 1, 7, 8)] == ["i", "j", "r", "i8"]
    assert grown("&&", "r", ("a || b", 3), "bool") == "r = r && (a || b);"
    assert grown("||", "r", ("a && b", 4), "bool") == "r = r || a && b;"
    assert grown("+", "r", ("a + b", 11), "f64") == "r += a + b;"
    assert grown("+", "r", ("a + b", 11), "f32") == "r = Math.fround(r + (a + b));"
    assert grown("*", "r", ("a", 20), "int") == "r *= a;"
    assert outgrown("max", "r", "t", ("a", 20), None) == [
        "const t = a;",
        "if (!(t <= r)) r = r !== r ? r : t;",
    ]
    assert "!(t >= r) && (p || q)" in outgrown("min", "r", "t", ("a", 20), ("p || q", 3))[1]


def test_an_array_that_just_reads_another_is_that_one():
    g = graph()
    x, y = given(g, "x", ("n", 3), "f64"), given(g, "y", ("n", 3), "f64")
    copy = Field(x.shape, "f64", x.at)
    assert stored(g, copy) is x.stored and copy.stored is x.stored
    mixed = Field(x.shape, "f64", lambda index: (y if index[1].what == 2 else x).at(index))
    turned = Field(x.shape, "f64", lambda index: x.at((index[0], g.const(2 - index[1].what))))
    part = Field(("n", 2), "f64", x.at)
    for other in (mixed, turned, part, Field(x.shape, "f32", x.at)):
        assert stored(g, other) not in (x.stored, y.stored)
        assert len(stored(g, other).entries) == other.shape[1]


def test_scopes_and_loops():
    g = graph()
    n = g.name("n", "int")
    i, j = g.var(0, n), g.var(1, n)
    top = Scope(None, None)
    outer = Scope(i, top)
    inner = Scope(j, outer)
    assert list(inner.chain()) == [inner, outer, top]
    assert inner.home(g.plus(i, j)) is inner and inner.home(i) is outer and inner.home(n) is top
    outer.lines.append("a;")
    writer = Emitter(g, [])
    assert writer.looped(outer) == ["for (let i = 0; i < n; i++) {", "  a;", "}"]
    assert writer.lines() == []
