"""What the builder of a `Block` is made of: pieces of a layer that a page puts together.

A block has more combinations of parts than a page can hold. Its layer is a chain of few pieces:

    r = read(x),   said = attend(r),   noise = shake(key, said),   x <- finish(x, said, noise),
    r = read(x),   said = think(r),                                x <- finish(x, said, 0)

`read` and `finish` belong to the norm, `attend` to heads, mask, positions and weighing, `think` to
the feed-forward part. Each is traced for itself, from the library's own parts, and `building.js`
calls them in this order, which is that of `Layer`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from tokenflock import parts
from tokenflock.catalogue import Entry, entries, family
from tokenflock.dynamics.block import Block
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.engines.page import Program, piece
from tokenflock.engines.page.trace import Moment, split
from tokenflock.errors import UserError
from tokenflock.frozen import Frozen
from tokenflock.laboratory import schema
from tokenflock.laboratory.specimens import Alternatives
from tokenflock.observables.attention_matrix import AttentionMatrix
from tokenflock.observables.energy import Energy
from tokenflock.parts.heads import HeadMatrices
from tokenflock.parts.placement import FIRST
from tokenflock.precision import precision
from tokenflock.shapes import Array, Points, Time, Tokens, Weights
from tokenflock.spaces import Space, Sphere

DIMENSIONS = (2, 3, 8)
ATTENDING = ("heads", "mask", "positions", "attention")  # what makes the piece `attend`
WRITTEN: dict[str, dict[str, str]] = {  # the parts that the builder offers, as Python writes them
    "heads": {"1": "GivenHeads()", "4": "RandomHeads(4)"},
    "mask": {"none": "NoMask()", "causal": "CausalMask()", "window": "WindowMask()"},
    "positions": {"none": "NoPositions()", "rotary": "Rotary()", "alibi": "Alibi()"},
    "attention": {
        "softmax": "SoftmaxWeighing()",
        "none": "NoWeighing()",
        "sinkhorn": "SinkhornWeighing()",
        "hardmax": "HardmaxWeighing()",
        "sigmoid": "SigmoidWeighing()",
        "linear": "LinearWeighing()",
    },
    "feed_forward": {
        "none": "NoFeedForward()",
        "gelu": 'RandomFeedForward("gelu")',
        "relu": 'RandomFeedForward("relu")',
        "tanh": 'RandomFeedForward("tanh")',
    },
    "norm": {
        "post": "Post()",
        "pre": "Pre()",
        "peri": "Peri()",
        "mix": "Mix()",
        "ngpt": "Ngpt()",
        "square-root": "SquareRoot()",
        "none": "NoNorm()",
    },
    "noise": {
        "none": "NoNoise()",
        "independent": "IndependentNoise()",
        "common": "CommonNoise()",
        "value": "ValueNoise()",
    },
}

Add = Callable[[Program], int]  # keeps a program and gives its place
_SAID: dict[str, Any] = {"1": "given"}  # where a block asks for another word


class _DrawnHeads(parts.RandomHeads):
    """The same heads, drawn when they are traced: a page holds their numbers."""

    def matrices(self, t: Time, d: int) -> HeadMatrices:
        with jax.ensure_compile_time_eval():
            unit = parts.RandomHeads(self.count, self.size, seed=self.seed).matrices(0.0, d)
        return HeadMatrices(*(None if M is None else self.scale * M for M in unit))


class _DrawnFeedForward(parts.RandomFeedForward):
    """The same part, drawn when it is traced."""

    def matrices(self, t: Time, d: int) -> tuple[Array, Array]:
        with jax.ensure_compile_time_eval():
            unit = parts.RandomFeedForward(self.activation, self.hidden, seed=self.seed)
            W, A = unit.matrices(0.0, d)
        return self.scale * W, self.scale * A


class _Saying(Dynamics):
    """A sublayer that says what is given."""

    block: Block
    said: Array

    @property
    def space(self) -> Space:
        return self.block.space

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.block.norm.write(t, x, self.said, FIRST)

    def settle(self, t: Time, x: Tokens, y: Tokens) -> Tokens:
        return self.block.norm.settle(t, x, y, FIRST)


def _read(block: Any, now: Moment) -> Points:
    return block.norm.read(now.x, FIRST)


def _attend(block: Any, now: Moment) -> Tokens:
    return block.attend(now.t, now.x, now.w)


def _think(block: Any, now: Moment) -> Points:
    return block.feed_forward.think(now.t, now.x)


def _shake(block: Any, now: Moment) -> Tokens:
    return jnp.sqrt(now.h) * block.noise.shake(now.key, now.x, now.said)


def _finish(block: Any, now: Moment) -> Tokens:
    return _Saying(block, now.said).layer(now.t, now.x, now.w, now.h, now.noise)


def offered() -> dict[str, dict[str, Any]]:
    """Every part that the builder offers, by the field of the block and its word.

    >>> offered()["mask"]["causal"]
    CausalMask(strict=False)
    """
    return {
        name: {word: getattr(Block(**{name: _SAID.get(word, word)}), name) for word in words}
        for name, words in WRITTEN.items()
    }


def choices(entry: Entry) -> list[Alternatives]:
    """The parts as choices; what the builder cannot offer is said beside each."""
    fields = {field.name: str(field.type) for field in dataclasses.fields(Block)}
    made = []
    for option in entry.options:
        words = WRITTEN.get(option.name)
        if words is None:
            continue
        known = {type(part).__name__ for part in offered()[option.name].values()}
        missing = [
            each.name for each in family(fields[option.name]).values() if each.name not in known
        ]
        doc = option.doc + _elsewhere(missing)
        made.append(Alternatives(option.name, "part", tuple(words), next(iter(words)), doc, words))
    return made


def _elsewhere(missing: list[str]) -> str:
    """Parts that are not here, and how they come to a page."""
    return f". Only by flock.lab(block): {', '.join(sorted(missing))}" if missing else ""


def built(add: Add) -> dict[str, Any]:
    """All pieces of a block, kept by `add`, and what belongs to each part: its controls, whether
    its tokens have an order, and which combinations the library refuses.
    """
    every = offered()
    pieces = {
        "attend": _attending(add, every),
        "read": _of(add, "norm", every["norm"], _read),
        "finish": _of(add, "norm", every["norm"], _finish, ("said", "noise")),
        "think": _of(add, "feed_forward", every["feed_forward"], _think),
        "shake": _of(add, "noise", every["noise"], _shake, ("said",)),
        "energy": {"": {str(d): _energy(add, d) for d in DIMENSIONS}},
    }
    return {
        "dimensions": list(DIMENSIONS),
        "attending": list(ATTENDING),
        "pieces": pieces,
        **told(),
    }


def told() -> dict[str, Any]:
    """What a page says of the parts."""
    every = offered()

    def each(look: Any) -> dict[str, dict[str, Any]]:
        return {
            name: {word: look(name, part) for word, part in words.items()}
            for name, words in every.items()
        }

    return {
        "beta": _controls("beta", Block())[0],
        "fields": each(lambda name, part: _controls(name, _block(name, part))),
        "fixed": each(_fixed),
        "ordered": {
            name: [word for word, part in words.items() if not part.exchangeable]
            for name, words in every.items()
        },
        "sphere": [word for word, part in every["norm"].items() if isinstance(part.space, Sphere)],
        "plain": _plain(every["attention"]),
        "refused": _refused(every),
    }


def _block(name: str, part: Any) -> Block:
    """A block with one part; the checks of a block see the others as usual."""
    return Block(**{name: part})


def _drawn(part: Any) -> Any:
    """A part whose random numbers are drawn when it is traced."""
    kinds = {parts.RandomHeads: _DrawnHeads, parts.RandomFeedForward: _DrawnFeedForward}
    kind = kinds.get(type(part))
    if kind is None:
        return part
    return kind(**{each.name: getattr(part, each.name) for each in dataclasses.fields(part)})


def _attending(add: Add, every: Mapping[str, Mapping[str, Any]]) -> dict[str, dict]:
    """What attention says, for each combination of heads, mask, positions and weighing."""
    made: dict[str, dict] = {}
    for words in itertools.product(*(every[name] for name in ATTENDING)):
        given = {name: _drawn(every[name][word]) for name, word in zip(ATTENDING, words)}
        try:
            block = Block(**given, norm=parts.NoNorm())
        except UserError:
            continue
        made[",".join(words)] = {
            str(d): add(piece(block, _attend, [AttentionMatrix()], d=d)) for d in DIMENSIONS
        }
    return made


def _of(add: Add, name: str, words: Mapping[str, Any], act: Any, arrays: Any = ()) -> dict:
    """A piece that belongs to one part, for each that is there."""
    return {
        word: {
            str(d): add(piece(_block(name, _drawn(part)), act, d=d, arrays=arrays))
            for d in DIMENSIONS
        }
        for word, part in words.items()
        if getattr(part, "there", True)
    }


def _energy(add: Add, d: int) -> int:
    """The energy of a plain block."""
    return add(piece(Block(), _read, [Energy()], d=d))


def _controls(name: str, block: Block) -> list[dict]:
    """The numbers of a part that a page may change, or the beta of the block."""
    with precision("float64"):
        law = split(block, DIMENSIONS[-1])
    numbers = [
        {"name": each.name, "shape": list(each.value.shape), "default": each.value.ravel().tolist()}
        for each in law.parameters
        if each.name.partition(".")[0] == name
    ]
    return schema.fields(block, dict.fromkeys(DIMENSIONS, numbers))


def _fixed(name: str, part: Frozen) -> list[str]:
    """Whole numbers of a part, which shape its program, in words; the word says how many heads."""
    entry = next(each for each in entries("parts") if each.name == type(part).__name__)
    return [f"{name.replace('_', '-')}: {line}" for line in schema.fixed(entry, part, ["count"])]


def _plain(words: Mapping[str, Any]) -> list[str]:
    """The weighings with which an otherwise plain block has the energy of the theory."""
    return [word for word, part in words.items() if Block(attention=part).interaction is not None]


def _refused(every: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Pairs of parts that the library refuses, with what it says: "mask,attention" by words."""
    said: dict[str, dict[str, str]] = {}
    for first, second in (("mask", "attention"), ("norm", "noise")):
        for a, b in itertools.product(every[first].items(), every[second].items()):
            try:
                Block(**{first: a[1], second: b[1]})
            except UserError as error:
                said.setdefault(f"{first},{second}", {})[f"{a[0]},{b[0]}"] = str(error)
    return said
