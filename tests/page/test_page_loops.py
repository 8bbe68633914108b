"""The loops that are made of small expressions, in JavaScript and in LLVM: which numbers are
computed in which loop, which sums share one, what is kept in memory.

That the numbers are right is the business of other tests; here the texts are kept, so that none of
them changes unseen. After a change that is meant: `python -m tests.page.test_page_loops` writes
them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tokenflock.engines.native.emit import LaneEmitter
from tokenflock.engines.page.emit import emit
from tokenflock.engines.page.fields import Field, given, in_memory, known, stored
from tokenflock.engines.page.graph import Buffer, Graph, Node
from tokenflock.errors import UserError

TABLE = Path(__file__).parents[1] / "data" / "page_loops.txt"


class World:
    """Tokens x (n, 2), which every system has for itself, and weights w (n,), which all share."""

    def __init__(self, kind: str) -> None:
        self.g, self.kind = Graph(emit), kind
        self.n = self.g.name("n", "int")
        self.w = given(self.g, "w", ("n",), kind)
        self.x = given(self.g, "x", ("n", 2), kind)

    def op(self, op: str, *args: Node, kind: str | None = None) -> Node:
        return self.g.node(op, args, None, kind or self.kind)

    def call(self, name: str, *args: Node) -> Node:
        return self.g.node("call", args, name, self.kind)

    def number(self, value: float) -> Node:
        return self.g.const(value, self.kind)

    def within(self, *outer: Node) -> Node:
        """The variable of a loop over tokens inside of others."""
        return self.g.var(1 + max((v.level for i in outer for v in i.free), default=-1), self.n)

    def over(self, op: str, body: Callable[[Node], Node], *outer: Node) -> Node:
        """The sum, maximum, ... over all tokens."""
        j = self.within(*outer)
        return self.g.reduce(op, j, body(j))

    def at(self, i: Node, k: int) -> Node:
        return self.x.at((i, self.g.const(k)))

    def cosine(self, i: Node, j: Node) -> Node:
        return self.op("+", *(self.op("*", self.at(i, k), self.at(j, k)) for k in range(2)))

    def array(self, shape: tuple, tell: Callable, kind: str | None = None) -> Buffer:
        return stored(self.g, Field(shape, kind or self.kind, tell))


def softmax(v: World) -> list[Buffer]:
    def tell(index):
        i, c = index

        def weight(j: Node) -> Node:
            top = v.over("max", lambda k: v.cosine(i, k), i)
            return v.op("*", v.w.at((j,)), v.call("exp", v.op("-", v.cosine(i, j), top)))

        heard = v.over("+", lambda j: v.op("*", weight(j), v.x.at((j, c))), i)
        return v.op("/", heard, v.over("+", weight, i))

    return [v.array(("n", 2), tell)]


def shared(v: World) -> list[Buffer]:
    """A sum of each token that a vector, a matrix and a total need."""

    def row(i: Node) -> Node:
        return v.over("+", lambda j: v.call("exp", v.cosine(i, j)), i)

    def share(index):
        part = v.op("/", v.call("exp", v.cosine(*index)), row(index[0]))
        return v.op("-", part, v.w.at(index[1:]))

    first = v.array(("n",), lambda index: v.op("*", row(index[0]), v.w.at(index)))
    entropy = v.over("+", lambda k: v.op("*", row(k), v.call("Math.log", row(k))))
    return [first, v.array(("n", "n"), share), v.array((), lambda index: entropy)]


def both(v: World) -> list[Buffer]:
    """A sum of each token that a vector and a total need; sums of sums."""

    def row(i: Node) -> Node:
        return v.over("+", lambda j: v.call("exp", v.cosine(i, j)), i)

    def mixed(i: Node) -> Node:
        return v.over("max", lambda j: v.op("*", v.cosine(i, j), row(j)), i)

    whole = v.over("+", lambda k: v.call("Math.log", row(k)))
    far = v.over("+", lambda k: v.op("/", mixed(k), whole))
    first = v.array(("n",), lambda index: v.op("*", row(index[0]), v.w.at(index)))
    second = v.array(("n",), lambda index: v.op("-", mixed(index[0]), whole))
    return [first, v.array((), lambda index: whole), second, v.array((), lambda index: far)]


def chain(v: World) -> list[Buffer]:
    """Sums of each token that wait for each other, one of which is used twice."""

    def tell(index):
        (i,) = index
        top = v.over("max", lambda j: v.cosine(i, j), i)
        total = v.over("+", lambda j: v.call("exp", v.op("-", v.cosine(i, j), top)), i)

        def share(j: Node) -> Node:
            return v.op("/", v.call("exp", v.op("-", v.cosine(i, j), top)), total)

        square = v.over("+", lambda j: v.op("*", share(j), share(j)), i)
        spread = v.over("+", lambda j: v.op("*", v.op("-", share(j), square), v.w.at((j,))), i)
        last = v.over("min", lambda j: v.op("*", share(j), spread), i)
        return v.op("+", v.op("*", last, spread), v.op("*", square, v.op("+", top, total)))

    return [v.array(("n",), tell)]


def cube(v: World) -> list[Buffer]:
    """A sum over a third token, and places in an array of three axes."""
    grid = given(v.g, "grid", ("n", "n", 3), v.kind)

    def tell(index):
        i, j, c = index
        inner = v.over("+", lambda k: v.op("*", grid.at((i, k, c)), grid.at((k, j, c))), i, j)
        return v.op("*", v.op("-", grid.at(index), inner), v.call("exp", v.cosine(i, j)))

    turned = v.array(("n", 3, "n"), lambda index: grid.at((index[2], index[0], index[1])))
    return [v.array(("n", "n", 3), tell), turned]


def totals(v: World) -> list[Buffer]:
    mean = v.over("+", lambda i: v.op("*", v.w.at((i,)), v.at(i, 0)))

    def away(i: Node) -> Node:
        return v.op("-", v.at(i, 0), mean)

    spread = v.over("+", lambda i: v.op("*", away(i), away(i)))
    least = v.over("min", lambda i: v.at(i, 1))
    told = [mean, v.op("/", spread, mean), v.op("+", least, spread)]
    late = v.array(
        ("n",), lambda index: v.op("/", away(index[0]), v.op("+", spread, v.w.at(index)))
    )
    return [v.array((3,), lambda index: told[index[0].what]), late]


def extremes(v: World) -> list[Buffer]:
    def above(i: Node, least: float) -> Node:
        return v.op(">", v.at(i, 0), v.number(least), kind="bool")

    far = v.number(float("inf"))
    least = v.over("min", lambda i: v.op("?", above(i, 0.5), v.call("exp", v.at(i, 0)), far))
    some = v.over("||", lambda i: above(i, 0.1))
    every = v.over("&&", lambda i: above(i, -0.9))
    other = v.over("max", lambda i: v.op("?", above(i, 0.2), v.at(i, 1), v.number(0.0)))
    answer = v.op("?", v.op("&&", some, every, kind="bool"), least, other)
    truths = v.array(("n",), lambda index: v.op("!", above(index[0], 0.3), kind="bool"), "bool")
    return [v.array((), lambda index: answer), truths]


def running(v: World) -> list[Buffer]:
    """Entries that other entries of the same array need, and those of another one."""

    def sum_to(k: int) -> Node:
        total = v.at(v.g.const(0), 0)
        for place in range(1, k + 1):
            total = v.op("+", total, v.at(v.g.const(place), 0))
        return total

    first = v.array((4,), lambda index: sum_to(index[0].what))
    again = v.array((2,), lambda index: v.op("*", sum_to(index[0].what + 1), sum_to(0)))
    return [first, again]


def crossed(v: World) -> list[Buffer]:
    """Two arrays of which each needs an entry of the other."""
    a = v.call("exp", v.at(v.g.const(0), 0))
    b = v.call("Math.sin", v.at(v.g.const(1), 1))
    one = [a, v.op("*", b, v.number(2.0))]
    two = [b, v.op("*", a, v.number(3.0))]
    return [
        v.array((2,), lambda index: one[index[0].what]),
        v.array((2,), lambda index: two[index[0].what]),
    ]


def counted(v: World) -> list[Buffer]:
    """Whole numbers: places of memory, tables, and a sum of truths."""
    table = known(v.g, np.arange(70) % 9)
    few = known(v.g, np.arange(30) % 4 * 0.5 if v.kind == "f64" else np.float32([0.5, 2.5] * 15))

    def tell(index):
        (i,) = index
        j = v.g.var(1, v.g.const(70))
        turn = v.op("to", v.op("+", table.at((j,)), i, kind="int"))
        return v.g.reduce("+", j, v.op("*", turn, v.at(i, 1)))

    def often(index):
        above = v.over(
            "+", lambda i: v.op("to", v.op(">", v.at(i, 1), v.w.at((i,)), kind="bool"), kind="int")
        )
        return above

    long = v.array((30,), lambda index: v.op("*", few.at(index), v.at(v.g.const(1), 0)))
    return [v.array(("n",), tell), v.array((), often, "int"), long]


def sums(v: World) -> list[Buffer]:
    """Many sums that use one exponential, and sums of many terms."""

    def each(index):
        i, c = index

        def term(j: Node) -> Node:
            e = v.op("*", v.call("exp", v.cosine(i, j)), v.w.at((j,)))
            power = v.at(j, 0)
            for _ in range(c.what):
                power = v.op("*", power, v.at(j, 1))
            return v.op("*", e, power)

        return v.over("+", term, i)

    def terms(count: int) -> Callable:
        def tell(index):
            total = v.call("Math.sin", v.at(index[0], 0))
            for k in range(1, count):
                part = v.call("Math.sin", v.op("*", v.at(index[0], 0), v.number(k + count / 16)))
                total = v.op("+", total, part if k % 3 else v.w.at(index))
            return total

        return tell

    made = [v.array(("n", 13), each)]
    return made + [v.array(("n",), terms(count)) for count in (3, 4, 6, 9)]


def packed(v: World) -> list[Buffer]:
    """Arrays of tokens that one loop fills before another one reads them."""

    def tell(index):
        i, c = index

        def near(j: Node) -> Node:
            u = [v.op("/", v.at(j, k), v.call("Math.sqrt", v.cosine(j, j))) for k in range(2)]
            own = v.op("*", v.call("exp", u[0]), u[c.what])
            return v.op("*", own, v.op("-", v.at(i, 0), v.at(j, 0)))

        return v.over("+", near, i)

    return [v.array(("n", 2), tell)]


def statement(v: World) -> list[Buffer]:
    exps = v.array(("n",), lambda index: v.call("exp", v.at(index[0], 0)))

    def write(names, made):
        return [f"sort({names[0]}, {made[0]});"]

    (made,) = v.g.statement([exps], write, [((v.n,), v.kind)])
    sorted_ = in_memory(v.g, ("n",), made)

    def tell(index):
        def term(j: Node) -> Node:
            return v.op("*", sorted_.at((j,)), v.at(index[0], 1))

        return v.op("*", sorted_.at(index), v.over("+", term, index[0]))

    return [v.array(("n",), tell)]


def deeper(v: World) -> list[Buffer]:
    """What a statement makes goes into another one, with a total between them."""

    def write(names, made):
        return [f"sort({', '.join(names)}, {', '.join(made)});"]

    first = v.array(("n",), lambda index: v.call("exp", v.at(index[0], 0)))
    (one,) = v.g.statement([first], write, [((v.n,), v.kind)])
    a = in_memory(v.g, ("n",), one)
    mean = v.over("+", lambda i: v.op("*", a.at((i,)), v.w.at((i,))))
    second = v.array(("n",), lambda index: v.op("/", a.at(index), mean))
    made = v.g.statement([second, first], write, [((v.n,), v.kind), ((v.g.const(2),), "int")])
    b, c = in_memory(v.g, ("n",), made[0]), in_memory(v.g, (2,), made[1])
    last = v.array(("n",), lambda index: v.op("+", b.at(index), v.op("to", c.at((v.g.const(1),)))))
    return [last, second]


CASES = (
    softmax,
    shared,
    both,
    chain,
    cube,
    totals,
    extremes,
    running,
    crossed,
    counted,
    sums,
    packed,
)


def javascript(case: Callable, kind: str) -> list[str]:
    world = World(kind)
    lines = world.g.emit(case(world))
    return [*lines, f"rooms {' '.join(world.g.allocated)}"]


def llvm(case: Callable) -> list[str]:
    world = World("f32")
    emitter = LaneEmitter(world.g, case(world), {"x": True}, 4)
    lines = emitter.lines()
    rooms = [
        f"{room.name}{'*' if emitter.laned(room) else ''}" for room in world.g.allocated.values()
    ]
    return [*emitter.slots, *lines, f"rooms {' '.join(rooms)}"]


def texts() -> dict[str, list[str]]:
    made = {f"{case.__name__} in JavaScript": javascript(case, "f64") for case in CASES}
    for case in (statement, deeper):
        made[f"{case.__name__} in JavaScript"] = javascript(case, "f64")
    made["softmax in single JavaScript"] = javascript(softmax, "f32")
    return made | {f"{case.__name__} in LLVM": llvm(case) for case in CASES}


def kept() -> dict[str, list[str]]:
    parts = f"\n{TABLE.read_text(encoding='utf-8')}".split("\n== ")[1:]
    return {part.splitlines()[0]: part.splitlines()[1:] for part in parts}


def test_loops_are_as_they_were():
    known_, found = kept(), texts()
    assert known_.keys() == found.keys()
    for name, lines in found.items():
        assert lines == known_[name], name


def test_a_loop_over_pairs_has_one_exponential_and_a_sum_of_all_is_taken_once():
    lines = javascript(softmax, "f64")
    assert sum("exp(" in line for line in lines) == 1
    assert sum("for (" in line for line in lines) == 3
    assert sum("exp(" in line for line in javascript(shared, "f64")) == 2
    assert sum("for (" in line for line in javascript(totals, "f64")) == 3


def test_a_loop_of_llvm_refuses_what_fills_memory_by_itself():
    with pytest.raises(UserError, match="no scans"):
        llvm(statement)


if __name__ == "__main__":
    blocks = (f"== {name}\n" + "\n".join(lines) for name, lines in texts().items())
    TABLE.write_text("\n".join(blocks) + "\n", encoding="utf-8")
