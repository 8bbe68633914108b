"""Expressions to loops of LLVM: the loops that a page runs in JavaScript, on vectors of systems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tokenflock.engines.native.operations import grown, identity, operation, stretched
from tokenflock.engines.native.words import Kind, arithmetic, constant
from tokenflock.engines.page.emit import Emitter, Kernel, Scope
from tokenflock.engines.page.graph import Buffer, Graph, Node, Statement
from tokenflock.engines.page.writing import ATOM, Text
from tokenflock.errors import UserError

SEVERAL = 4  # sums that use one exponential, from which on it gets a loop of its own
SUMS = 12  # that a loop holds in registers
LONG = 4  # terms from which on a sum is written as several, which do not wait for each other


class LaneEmitter(Emitter):
    """Writes LLVM that fills some buffers.

    `own` says of each given array whether every system has its own; numbers made of these alone
    are vectors, all others are computed once for all systems.
    """

    def __init__(
        self, graph: Graph, roots: Sequence[Buffer], own: Mapping[str, bool], lanes: int
    ) -> None:
        self.own, self.lanes, self.roots = own, lanes, set(roots)
        self.packs: dict[str, tuple[str, int, int]] = {}  # buffer: its pack, of how many, which
        self.slots: list[str] = []  # room for loop variables and sums
        self._vectors: dict[Node, bool] = {}
        self._rooms: dict[Buffer, bool] = {}
        super().__init__(graph, roots)

    @property
    def kernel(self) -> type[Kernel]:
        return LaneKernel

    # what differs between systems

    def vector(self, node: Node) -> bool:
        """Whether a number differs between systems."""
        if node not in self._vectors:
            loaded = node.op == "load" and self.laned(node.what)
            self._vectors[node] = loaded or any(self.vector(arg) for arg in node.args)
        return self._vectors[node]

    def laned(self, buffer: Buffer) -> bool:
        """Whether every system has its own numbers in a buffer."""
        if buffer not in self._rooms:
            entries = (entry for _, entry in buffer.entries)
            self._rooms[buffer] = self.own.get(buffer.name, False) or any(map(self.vector, entries))
        return self._rooms[buffer]

    def kind(self, node: Node) -> Kind:
        """The kind of a number."""
        if node.dtype not in ("f32", "int", "u32", "bool"):
            raise UserError(f"the compiled loop has no numbers of the kind {node.dtype}")
        return Kind(node.dtype, self.lanes if self.vector(node) else 1)

    # loops and memory

    def slot(self, letter: str, kind: str) -> str:
        """A name for a place on the stack."""
        name = f"%{self.graph.fresh(letter)}"
        self.slots.append(f"{name} = alloca {kind}, align 64")
        return name

    def scope(self, var: Node, outer: Scope) -> Scope:
        made = Scope(var, outer)
        made.names[var] = f"%{self.graph.fresh('i')}"
        return made

    def looped(self, scope: Scope) -> list[str]:
        if scope.var is None:
            raise ValueError("a loop without a variable")
        end, before = self.length(scope.var.what[2])
        return [*before, *counted(scope.names[scope.var], end, scope.lines, self)]

    def length(self, size: Node) -> tuple[str, list[str]]:
        """The length of an axis, and the lines that compute it."""
        lines: list[str] = []

        def visit(node: Node) -> str:
            if node.op == "const":
                return str(node.what)
            if node.op == "name":
                return f"%{node.what}"
            if node.op not in ("+", "*"):
                raise UserError(f"the compiled loop knows no axis of length {node.op}")
            a, b = map(visit, node.args)
            name = f"%{self.graph.fresh('z')}"
            lines.append(f"{name} = {arithmetic(node.op, Kind('int', 1), a, b)}")
            return name

        return visit(size), lines

    def assign(
        self, kernel: Kernel, scope: Scope, buffer: Buffer, place: Node, entry: Node
    ) -> None:
        kind = Kind(buffer.dtype, self.lanes if self.laned(buffer) else 1)
        value, there = kernel.text(entry, scope)[0], kernel.text(place, scope)[0]
        value = stretched(self.graph, value, self.kind(entry), kind, scope.lines)
        scope.lines += self.stored(value, kind, buffer.name, there)

    def stored(self, value: str, kind: Kind, name: str, place: str) -> list[str]:
        """The lines that write a number to its place."""
        lines: list[str] = []
        if kind.dtype == "bool" or (kind.dtype == "int" and kind.lanes == 1):
            word, wide = f"%{self.graph.fresh('g')}", "zext" if kind.dtype == "bool" else "trunc"
            lines, value = [f"{word} = {wide} {kind.text} {value} to {kind.kept}"], word
        address = self.address(name, place, kind, lines)
        return [*lines, f"store {kind.kept} {value}, ptr {address}, align 4"]

    def address(self, name: str, place: str, kind: Kind, lines: list[str]) -> str:
        """Where an entry of a buffer lies."""
        address, base = f"%{self.graph.fresh('g')}", f"%{name}"
        if name in self.packs:
            pack, many, which = self.packs[name]
            far, there = (f"%{self.graph.fresh('g')}" for _ in range(2))
            lines += [
                f"{far} = mul nsw i64 {place}, {many}",
                f"{there} = add nsw i64 {far}, {which}",
            ]
            base, place = f"%{pack}", there
        elif name in self.graph.data:
            base = f"@{name}"
        lines.append(f"{address} = getelementptr {kind.kept}, ptr {base}, i64 {place}")
        return address

    def _kernel(self, loops: tuple[Node, ...], buffers: Sequence[Buffer]) -> None:
        """Buffers of vectors that one loop fills, such as the coordinates of tokens, lie entry by
        entry beside each other: one address for all of them.
        """
        kin = [
            buffer
            for buffer in buffers
            if buffer not in self.roots and len(buffer.shape) == 1 and self.laned(buffer)
        ]
        if len(kin) > 1:
            sizes = (kin[0].shape[0], self.graph.const(len(kin)))
            pack = Buffer(self.graph.fresh("a"), sizes, "f32")
            self._rooms[pack] = True
            self.graph.allocate(pack)
            many = enumerate(kin)
            self.packs |= {buffer.name: (pack.name, len(kin), k) for k, buffer in many}
        super()._kernel(loops, buffers)
        for buffer in kin if len(kin) > 1 else ():
            self.graph.allocated.pop(buffer.name)

    def spare(self, size: Node, kind: Kind) -> str:
        """The name of a new array of so many numbers."""
        buffer = Buffer(self.graph.fresh("e"), (size,), kind.dtype)
        self.graph.allocate(buffer)
        self._rooms[buffer] = kind.lanes > 1
        return buffer.name

    def _statement(self, statement: Statement) -> None:
        raise UserError("the compiled loop does no sorting, no scans and no linear algebra")


class LaneKernel(Kernel):
    """Writes the numbers of one nest of loops."""

    emitter: LaneEmitter

    def text(self, node: Node, scope: Scope) -> Text:
        node = self.emitter.replaced(node)
        for around in scope.chain():
            if node in around.names:
                return around.names[node], ATOM
        if node.op == "const":
            return constant(node.what, self.emitter.kind(node)), ATOM
        if node.op == "name":
            return f"%{node.what}", ATOM
        home = scope.home(node)
        if node.op == "reduce":
            self._reduce(node, home)
            return home.names[node], ATOM
        if len(terms := self._terms(node, home)) >= LONG:
            home.names[node] = self._spread(terms, self.emitter.kind(node), home)
            return home.names[node], ATOM
        if node.op in ("floor", "trunc"):  # of a quotient of whole numbers
            node = self._quotient(node)
        args = [self.text(arg, home)[0] for arg in node.args]
        home.names[node] = self._written(node, args, home.lines)
        return home.names[node], ATOM

    def _terms(self, node: Node, home: Scope) -> list[Node]:
        """The terms of a sum of vectors that is written out; those of an outer loop stay one."""

        def visit(term: Node, top: bool) -> list[Node]:
            term = self.emitter.replaced(term)
            inner = term.op == "+" and term.dtype == "f32" and self.emitter.vector(term)
            alone = top or (
                self.uses[term] <= 1 and home.home(term) is home and term not in home.names
            )
            if not (inner and alone):
                return [term]
            return [part for arg in term.args for part in visit(arg, False)]

        return visit(node, True)

    def _spread(self, terms: Sequence[Node], kind: Kind, home: Scope) -> str:
        """A long sum as several that run beside each other: an addition takes four cycles, of
        which eight may be under way.
        """
        emitter, count = self.emitter, 4 if len(terms) >= 2 * LONG else 2
        sums: list[str] = []
        for k, term in enumerate(terms):
            old, lines = emitter.kind(term), home.lines
            text = self.text(term, home)[0]
            text = stretched(emitter.graph, text, old, kind, lines)
            sums = [*sums, text] if k < count else self._plus(sums, k % count, text, kind, lines)
        while len(sums) > 1:
            half = len(sums) // 2
            for k in range(half):
                sums = self._plus(sums, k, sums[half + k], kind, home.lines)
            sums = sums[:half]
        return sums[0]

    def _plus(self, sums: list[str], k: int, term: str, kind: Kind, lines: list[str]) -> list[str]:
        name = f"%{self.emitter.graph.fresh('v')}"
        lines.append(f"{name} = {arithmetic('+', kind, sums[k], term)}")
        return [*sums[:k], name, *sums[k + 1 :]]

    def _quotient(self, node: Node) -> Node:
        (inner,) = node.args
        if inner.op != "/" or any(arg.dtype not in ("int", "u32") for arg in inner.args):
            raise UserError(f"the compiled loop cannot do {node.op}")
        return self.emitter.graph.node("/", inner.args, None, node.dtype)

    def _written(self, node: Node, args: list[str], lines: list[str]) -> str:
        """The name of a number, whose line is written."""
        emitter = self.emitter
        kind, kinds = emitter.kind(node), [emitter.kind(arg) for arg in node.args]
        if node.op == "load":
            return _loaded(emitter, node, kind, args[0], lines)
        wide = [Kind(old.dtype, kind.lanes) for old in kinds]
        if node.op == "?":  # one truth for all systems is a jump, which the processor foresees
            wide[0] = kinds[0]
        args = [
            stretched(emitter.graph, arg, old, new, lines)
            for arg, old, new in zip(args, kinds, wide)
        ]
        name = f"%{emitter.graph.fresh('v')}"
        lines += operation(emitter.graph, node, kind, wide, args, name)
        return name

    def reduce(self, home: Scope, nodes: Sequence[Node]) -> None:
        ready = self._beforehand(home, nodes)
        loops = math.ceil(len(nodes) / SUMS) if ready else 1
        size = math.ceil(len(nodes) / loops)
        for k in range(0, len(nodes), size):
            self._loop(home, nodes[k : k + size], ready)

    def _loop(self, home: Scope, nodes: Sequence[Node], ready: Mapping[Node, str]) -> None:
        """One loop for several sums; what is `ready` is read from where it was kept."""
        emitter, var = self.emitter, nodes[0].what[1]
        inner = emitter.scope(var, home)
        for node, room in ready.items():
            kind = emitter.kind(node)
            address = emitter.address(room, inner.names[var], kind, inner.lines)
            inner.names[node] = f"%{emitter.graph.fresh('v')}"
            inner.lines.append(f"{inner.names[node]} = load {kind.kept}, ptr {address}, align 4")
        kinds = [emitter.kind(node) for node in nodes]
        rooms = [emitter.slot("r", kind.text) for kind in kinds]
        for room, node, kind in zip(rooms, nodes, kinds):
            start = constant(identity(node), kind)
            home.lines.append(f"store {kind.text} {start}, ptr {room}, align 64")
        for room, node, kind in zip(rooms, nodes, kinds):
            term = self.text(node.args[0], inner)[0]
            old, new = (f"%{emitter.graph.fresh('s')}" for _ in range(2))
            inner.lines.append(f"{old} = load {kind.text}, ptr {room}, align 64")
            inner.lines += grown(emitter.graph, node.what[0], kind, old, term, new)
            inner.lines.append(f"store {kind.text} {new}, ptr {room}, align 64")
        home.lines += emitter.looped(inner)
        for room, node, kind in zip(rooms, nodes, kinds):
            home.names[node] = f"%{emitter.graph.fresh('r')}"
            home.lines.append(f"{home.names[node]} = load {kind.text}, ptr {room}, align 64")

    def _beforehand(self, home: Scope, nodes: Sequence[Node]) -> dict[Node, str]:
        """Exponentials that many of these sums use, made in a loop before theirs, and where they
        are kept: so neither loop needs more registers than there are.
        """
        emitter, var, dear = self.emitter, nodes[0].what[1], self._dear(nodes)
        if not dear:
            return {}
        first = emitter.scope(var, home)
        rooms = {node: emitter.spare(var.what[2], emitter.kind(node)) for node in dear}
        for node, room in rooms.items():
            kind, value = emitter.kind(node), self.text(node, first)[0]
            first.lines += emitter.stored(value, kind, room, first.names[var])
        home.lines += emitter.looped(first)
        return rooms

    def _dear(self, nodes: Sequence[Node]) -> list[Node]:
        """Exponentials that several sums use, with what all of them multiply these by."""
        emitter, var = self.emitter, nodes[0].what[1]
        users: dict[Node, set[int]] = {}
        parents: dict[Node, set[Node]] = {}
        for k, total in enumerate(nodes):
            stack = [emitter.replaced(total.args[0])]
            while stack:
                node = stack.pop()
                if var not in node.free or node.op == "reduce" or k in users.get(node, ()):
                    continue
                users.setdefault(node, set()).add(k)
                for arg in map(emitter.replaced, node.args):
                    parents.setdefault(arg, set()).add(node)
                    stack.append(arg)
        found = {}
        for node, own in users.items():
            if node.what != "exp" or len(own) < SEVERAL or not emitter.vector(node):
                continue
            while len(above := parents.get(node, set())) == 1 and users[next(iter(above))] == own:
                (node,) = above
            found[node] = None
        return list(found)


def counted(i: str, end: str, body: Sequence[str], emitter: LaneEmitter) -> list[str]:
    """A loop in which i runs from 0 to end - 1."""
    room, label = emitter.slot("k", "i64"), emitter.graph.fresh("L")
    return [
        f"store i64 0, ptr {room}",
        f"br label %{label}",
        f"{label}:",
        f"{i} = load i64, ptr {room}",
        f"%{label}.on = icmp slt i64 {i}, {end}",
        f"br i1 %{label}.on, label %{label}.in, label %{label}.out",
        f"{label}.in:",
        *body,
        f"%{label}.next = add nsw i64 {i}, 1",
        f"store i64 %{label}.next, ptr {room}",
        f"br label %{label}",
        f"{label}.out:",
    ]


def _loaded(emitter: LaneEmitter, node: Node, kind: Kind, place: str, lines: list[str]) -> str:
    if emitter.vector(node.args[0]):
        raise UserError("the compiled loop reads the same places of memory for all systems")
    fresh = emitter.graph.fresh
    address, value = emitter.address(node.what.name, place, kind, lines), f"%{fresh('v')}"
    lines.append(f"{value} = load {kind.kept}, ptr {address}, align 4")
    if kind.kept == kind.text:
        return value
    word = f"%{fresh('v')}"
    change = "trunc" if kind.dtype == "bool" else "sext"
    lines.append(f"{word} = {change} {kind.kept} {value} to {kind.text}")
    return word
