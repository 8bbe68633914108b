"""Random numbers: JAX's own bits, by the same Threefry, so that a seed means the same tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenflock.engines.page.elementwise import convert, logic
from tokenflock.engines.page.fields import Field, Index, Pair, size
from tokenflock.engines.page.graph import Graph, Node
from tokenflock.engines.page.views import view
from tokenflock.errors import UserError


def threefry(g: Graph, key: Pair, high: Node, low: Node) -> Pair:
    """The two words to which a key turns two words."""
    args = (key.high, key.low, high, low)
    return Pair(
        g.node("call", args, "threefry_high", "u32"), g.node("call", args, "threefry_low", "u32")
    )


def counted(g: Graph, key: Pair, count: Node) -> Pair:
    """The two words of a key at a count."""
    return threefry(g, key, g.const(0, "u32"), convert(g, count, "u32"))


def _seed(g: Graph, eqn: Any, a: Field) -> Field:
    return view(eqn, lambda index: Pair(g.const(0, "u32"), convert(g, a.at(index), "u32")))


def _wrap(g: Graph, eqn: Any, a: Field) -> Field:
    return view(eqn, lambda index: Pair(a.at((*index, g.const(0))), a.at((*index, g.const(1)))))


def _unwrap(g: Graph, eqn: Any, a: Field) -> Field:
    def tell(index: Index) -> Node:
        if index[-1].op != "const":
            raise UserError("the page reads the two words of a key one by one")
        pair = a.at(index[:-1])
        return pair.low if index[-1].what else pair.high

    return view(eqn, tell)


def _fold_in(g: Graph, eqn: Any, keys: Field, data: Field) -> Field:
    return view(eqn, lambda index: counted(g, keys.at(index), data.at(index)))


def _split(g: Graph, eqn: Any, keys: Field) -> Field:
    shape = [size(g, dim) for dim in eqn.params["shape"]]
    rank = len(keys.shape)
    return view(eqn, lambda index: counted(g, keys.at(index[:rank]), g.flat(shape, index[rank:])))


def _bits(g: Graph, eqn: Any, keys: Field) -> Field:
    width, rank = eqn.params["bit_width"], len(keys.shape)
    if width not in (32, 64):
        raise UserError(f"the page draws 32 or 64 random bits at a time, not {width}")
    shape = [size(g, dim) for dim in eqn.params["shape"]]

    def tell(index: Index) -> Any:
        words = counted(g, keys.at(index[:rank]), g.flat(shape, index[rank:]))
        return words if width == 64 else logic(g, "^", words.high, words.low)

    return view(eqn, tell)


RULES: dict[str, Callable] = {
    "random_seed": _seed,
    "random_wrap": _wrap,
    "random_unwrap": _unwrap,
    "random_fold_in": _fold_in,
    "random_split": _split,
    "random_bits": _bits,
}
