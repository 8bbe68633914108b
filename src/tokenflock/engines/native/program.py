"""A job as one function of LLVM: steps and observations of a group of systems, for any number of
tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics._kernels import gentle
from tokenflock.engines.job import Job, advance, fill
from tokenflock.engines.native.emit import LaneEmitter, counted
from tokenflock.engines.native.runtime import pieces
from tokenflock.engines.native.words import Kind
from tokenflock.engines.page.fields import Field, given, size, stored
from tokenflock.engines.page.graph import Buffer, Graph, Node
from tokenflock.engines.page.translate import closed
from tokenflock.errors import UserError
from tokenflock.observables.minimum_cosine import MinimumCosine
from tokenflock.observables.observable import on_sphere
from tokenflock.precision import precision
from tokenflock.spaces import Sphere

UNROLL = 32  # coordinates up to this are written out, more are looped over
Spec = jax.ShapeDtypeStruct


@dataclass(frozen=True)
class Room:
    """Memory for an array: its name, its sizes, and whether each system has its own."""

    name: str
    sizes: tuple[Node, ...]
    own: bool

    def vectors(self, n: int) -> int:
        """How many numbers it holds for n tokens, of one system."""
        return math.prod(_length(length, n) for length in self.sizes)


@dataclass(frozen=True)
class Output:
    """What is observed: the memory that a frame of it takes, its sizes and its kind."""

    room: Room
    sizes: tuple[Node, ...]
    dtype: np.dtype
    word: str

    def lengths(self, n: int) -> tuple[int, ...]:
        """Its shape for n tokens."""
        return tuple(_length(length, n) for length in self.sizes)


@dataclass(frozen=True)
class Loop:
    """The text of a function, and what it must be given."""

    text: str
    lanes: int
    rooms: tuple[Room, ...]
    outputs: tuple[Output, ...]


def shared(job: Job) -> list[np.ndarray]:
    """The numbers of law, solver and observables, those that are swept among them."""
    numbers = eqx.filter(job.parts, eqx.is_inexact_array)
    leaves = jax.tree_util.tree_leaves(numbers)
    return [np.asarray(leaf, np.float32, order="C") for leaf in leaves]


def _length(size: Node, n: int) -> int:
    if size.op == "const":
        return size.what
    if size.op == "name":
        return n
    a, b = (_length(arg, n) for arg in size.args)
    return {"+": a + b, "*": a * b}[size.op]


@dataclass(frozen=True)
class Equations:
    """A job as equations of JAX, for any number of tokens where the law allows that."""

    job: Job
    shapes: tuple[tuple[int, ...], ...]  # of the swept numbers of a system
    n: Any
    d: int
    small: bool  # whether its logits are

    @cached_property
    def shared(self) -> list[np.ndarray]:
        """The numbers that all systems share."""
        return shared(self.job)

    def _parts(self, leaves: Sequence[Any], swept: Sequence[Any]) -> Any:
        numbers, rest = eqx.partition(self.job.parts, eqx.is_inexact_array)
        tree = jax.tree_util.tree_structure(numbers)
        parts = eqx.combine(jax.tree_util.tree_unflatten(tree, leaves), rest)
        return fill(parts, self.job.paths, list(swept))

    def _trace(self, function: Callable, *more: Any) -> Any:
        real = jnp.float32
        leaves = [Spec(leaf.shape, real) for leaf in self.shared]
        swept = [Spec(shape, real) for shape in self.shapes]
        tokens = Spec((self.n, self.d), real), Spec((self.n,), real)
        return jax.jit(function).trace(leaves, swept, *tokens, *more).jaxpr

    def step(self) -> Any:
        """One step of the solver."""

        def forward(leaves, swept, x, w, step):
            law, solver, _ = self._parts(leaves, swept)
            with gentle(self.small):
                return advance(solver, law, w, None, jnp.float32)((x, step))[0]

        return self._trace(forward, Spec((), jnp.int32))

    def observation(self) -> Any:
        """All observables; the least cosine after them, where systems settle."""

        def look(leaves, swept, x, w):
            law, _, observables = self._parts(leaves, swept)
            unit = isinstance(law.space, Sphere)
            values = [
                on_sphere(observable, x, w) if unit else observable.measure(x, w)
                for observable in observables
            ]
            return [*values, *([MinimumCosine().measure(x, w)] if self.settles else [])]

        return self._trace(look)

    @property
    def settles(self) -> bool:
        """Whether systems may be done before the end."""
        return self.job.delta is not None


def translate(
    job: Job, shapes: Sequence[tuple[int, ...]], n: int, d: int, lanes: int, small: bool
) -> Loop:
    """The function of a job, for any n where its equations can be had so, else for this one.

    `small`: its logits are, so that no largest one need be taken off.
    """
    sizes = [n] if job.law.particles is not None else [_any(), n]
    for k, count in enumerate(sizes):
        try:
            with precision(job.dtype):
                return _program(Equations(job, tuple(shapes), count, d, small), lanes)
        except UserError:
            raise
        except Exception as error:  # JAX cannot tell how n compares with other lengths
            if k == len(sizes) - 1:
                line = str(error).partition("\n")[0]
                raise UserError(f"the compiled loop finds no equations: {line}") from error
    raise ValueError("no size")


def _any() -> Any:
    (n,) = jax.export.symbolic_shape("n", constraints=["n >= 2"])
    return n


def _program(equations: Equations, lanes: int) -> Loop:
    names = [f"p{k}" for k in range(len(equations.shared))]
    names += [f"q{k}" for k in range(len(equations.shapes))]
    own = {name: name[0] == "q" for name in names} | {"x": True}
    moving, looking = Graph(_nothing, UNROLL), Graph(_nothing, UNROLL)
    looking.count = 10**6  # names of the one are no names of the other
    step = Field((), "int", lambda index: moving.name("step", "int"))
    fields = [_inputs(graph, equations, names) for graph in (moving, looking)]
    (after,) = closed(moving, equations.step(), [*fields[0], step])
    seen = equations.observation()
    values = closed(looking, seen, fields[1])
    tokens, *buffers = stored(moving, after), *(stored(looking, value) for value in values)
    emitters = (
        LaneEmitter(moving, [tokens], own, lanes),
        LaneEmitter(looking, buffers, own, lanes),
    )
    kinds = [var.aval.dtype for var in seen.jaxpr.outvars]
    outputs = tuple(
        Output(
            _room(emitters[1], buffer),
            tuple(size(looking, dim) for dim in value.shape),
            np.dtype(kind),
            Kind(buffer.dtype, 1).kept,
        )
        for buffer, value, kind in zip(buffers, values, kinds)
    )
    advance_lines, look_lines = (emitter.lines() for emitter in emitters)
    rooms = tuple(
        _room(emitter, buffer)
        for emitter in emitters
        for buffer in emitter.graph.allocated.values()
    )
    lines = _frames(emitters, tokens, outputs, advance_lines, look_lines)
    slots = [*emitters[0].slots, *emitters[1].slots]
    head = [*_pointers("given", names), *_pointers("rooms", [room.name for room in rooms])]
    body = "\n".join([*head, *slots, *lines, "ret void"])
    data = [_data(name, *value) for g in (moving, looking) for name, value in g.data.items()]
    text = (
        f"{pieces(body, lanes)}\n{chr(10).join(data)}\ndefine void @run(ptr noalias %x,"
        " ptr noalias %w, ptr %given, ptr %rooms, ptr %outputs, i64 %n, ptr %strides, i64 %frames,"
        f' i64 %first) nounwind "prefer-vector-width"="512" {{\nentry:\n{body}\n}}\n'
    )
    return Loop(text, lanes, rooms, outputs)


def _nothing(graph: Graph, buffers: Sequence[Buffer]) -> list[str]:
    raise UserError("the compiled loop does no scans")


def _inputs(graph: Graph, equations: Equations, names: Sequence[str]) -> list[Field]:
    shapes = [leaf.shape for leaf in equations.shared] + list(equations.shapes)
    numbers = [given(graph, name, shape, "f32") for name, shape in zip(names, shapes)]
    n, d = equations.n, equations.d
    return [*numbers, given(graph, "x", (n, d), "f32"), given(graph, "w", (n,), "f32")]


def _room(emitter: LaneEmitter, buffer: Buffer) -> Room:
    return Room(buffer.name, buffer.shape, emitter.laned(buffer))


def _pointers(table: str, names: Sequence[str]) -> list[str]:
    """Pointers out of a table, by name."""
    lines = []
    for k, name in enumerate(names):
        lines += [
            f"%{name}.at = getelementptr ptr, ptr %{table}, i64 {k}",
            f"%{name} = load ptr, ptr %{name}.at",
        ]
    return lines


def _data(name: str, dtype: str, numbers: Sequence[Any]) -> str:
    """An array of constants."""
    kind = Kind(dtype, 1)
    if kind.real:
        values = np.asarray(numbers, np.float32).view(np.int32)
    else:
        values = np.asarray(numbers, np.int64).astype(np.int32)
    inner = ", ".join(f"i32 {value}" for value in values)
    return f"@{name} = private constant [{len(values)} x i32] [{inner}], align 64"


def _frames(
    emitters: tuple[LaneEmitter, LaneEmitter],
    tokens: Buffer,
    outputs: Sequence[Output],
    advance_lines: Sequence[str],
    look_lines: Sequence[str],
) -> list[str]:
    """Frame by frame: so many steps as its stride says, then a look."""
    moving, looking = emitters
    moved = _copied(moving, "%x", _room(moving, tokens), None)
    now = moving.slot("now", "i64")
    steps = [
        f"%step = load i64, ptr {now}",
        *advance_lines,
        *(moved if tokens.name != "x" else []),
        "%step.next = add i64 %step, 1",
        f"store i64 %step.next, ptr {now}",
    ]
    look = list(look_lines)
    for k, output in enumerate(outputs):
        look += [
            f"%out{k}.at = getelementptr ptr, ptr %outputs, i64 {k}",
            f"%out{k} = load ptr, ptr %out{k}.at",
            *_copied(looking, f"%out{k}", output.room, "%frame"),
        ]
    frame = [
        "%stride.at = getelementptr i64, ptr %strides, i64 %frame",
        "%stride = load i64, ptr %stride.at",
        *counted("%turn", "%stride", steps, moving),
        *look,
    ]
    return [f"store i64 %first, ptr {now}", *counted("%frame", "%frames", frame, looking)]


def _copied(emitter: LaneEmitter, target: str, room: Room, frame: str | None) -> list[str]:
    """A whole array written to memory, to the place of a frame."""
    fresh, lines, words = emitter.graph.fresh, [], str(emitter.lanes if room.own else 1)
    for axis in room.sizes:
        length, before = emitter.length(axis)
        name = f"%{fresh('c')}"
        lines += [*before, f"{name} = mul i64 {words}, {length}"]
        words = name
    count = f"%{fresh('c')}"
    lines.append(f"{count} = mul i64 {words}, 4")
    if frame is not None:
        skip, place = f"%{fresh('c')}", f"%{fresh('c')}"
        lines += [
            f"{skip} = mul i64 {count}, {frame}",
            f"{place} = getelementptr i8, ptr {target}, i64 {skip}",
        ]
        target = place
    call = f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr %{room.name}, i64 {count}, i1 0)"
    return [*lines, call]
