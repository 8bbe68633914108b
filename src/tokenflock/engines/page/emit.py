"""Expressions to loops: each number is computed in the loop of the innermost variable that it
depends on, sums over one variable that do not wait for each other share a loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tokenflock.engines.page.graph import IDENTITY, Buffer, Graph, Node, Statement
from tokenflock.engines.page.writing import ATOM, WRITERS, Text, grown, number, outgrown, variable

LEAVES = ("const", "var", "name")


@dataclass(eq=False)
class Scope:
    """The inside of a loop: its variable, its lines, and what its numbers are called."""

    var: Node | None
    outer: Scope | None
    lines: list[str] = field(default_factory=list)
    names: dict[Node, str] = field(default_factory=dict)

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def home(self, node: Node) -> Scope:
        """The outermost scope in which all variables of a number are known."""
        for scope in self.chain():
            if scope.var is None or scope.var in node.free:
                return scope
        raise ValueError("a number outside of its loop")


class Emitter:
    """Writes the lines that fill some buffers.

    The loops do not depend on the language: another one has its own `kernel`, `scope`, `looped`
    and `assign`.
    """

    @property
    def kernel(self) -> type[Kernel]:
        """What writes the numbers of one nest of loops."""
        return Kernel

    def scope(self, var: Node, outer: Scope) -> Scope:
        """The inside of a loop over a variable."""
        return Scope(var, outer)

    def looped(self, scope: Scope) -> list[str]:
        """A scope as a loop."""
        i, end = variable(_known(scope.var)), self.graph.text(_known(scope.var).what[2])
        head = f"for (let {i} = 0; {i} < {end}; {i}++) {{"
        return [head, *(f"  {line}" for line in scope.lines), "}"]

    def assign(
        self, kernel: Kernel, scope: Scope, buffer: Buffer, place: Node, entry: Node
    ) -> None:
        """The line that writes an entry to its place in a buffer."""
        value, there = kernel.text(entry, scope)[0], kernel.text(place, scope)[0]
        scope.lines.append(f"{buffer.name}[{there}] = {value};")

    def __init__(self, graph: Graph, roots: Sequence[Buffer]) -> None:
        self.graph = graph
        self.top = Scope(None, None)
        self.buffers: dict[Buffer, int] = {}  # those that must be filled, and how deep they lie
        self.statements: dict[Statement, int] = {}
        self.totals: dict[Node, int] = {}  # sums that depend on no variable
        self.held: dict[Node, tuple[Buffer, tuple[Node, ...]]] = {}
        self._depths: dict[Node, int] = {}
        self._writing: set[Buffer] = set()
        self._open: set[Buffer] = set()  # those whose depth is being asked for
        self._reach(roots)
        self._settle()
        while self._share():
            self._settle()

    # what is needed

    def _reach(self, roots: Sequence[Buffer]) -> None:
        """All buffers, statements and totals that the roots need."""
        waiting: list[Buffer] = list(roots)
        seen: set[Node] = set()
        while waiting:
            buffer = waiting.pop()
            if buffer.maker is not None:
                if buffer.maker not in self.statements:
                    self.statements[buffer.maker] = -1
                    waiting += buffer.maker.inputs
                continue
            if buffer in self.buffers or not buffer.entries:
                continue
            self.buffers[buffer] = -1
            for index, entry in buffer.entries:
                if entry.op not in (*LEAVES, "load"):
                    self.held.setdefault(entry, (buffer, index))
                waiting += self._loads(entry, seen)

    def _loads(self, node: Node, seen: set[Node]) -> list[Buffer]:
        """The buffers that an expression reads; its totals are noted."""
        read, stack = [], [node]
        while stack:
            here = stack.pop()
            if here in seen:
                continue
            seen.add(here)
            if here.op == "load":
                read.append(here.what)
            if here.op == "reduce" and not here.free:
                self.totals[here] = -1
            stack += here.args
        return read

    def _share(self) -> bool:
        """Give a buffer to each sum that several loops would compute, the outermost sums first."""
        users: dict[Node, set] = {}
        for buffer, depth in self.buffers.items():
            for _, entry in buffer.entries:
                for node in self._inner_sums(entry, buffer):
                    users.setdefault(node, set()).add((depth, _loops(buffer)))
        for total, depth in self.totals.items():
            for node in self._inner_sums(total, None):
                users.setdefault(node, set()).add((depth, total.what[1]))
        often = [node for node, loops in users.items() if len(loops) > 1]
        inside = {node for outer in often for node in self._inner_sums(outer.args[0], None)}
        for node in often:
            if node not in inside:
                buffer = self.graph.buffer(
                    [var.what[2] for var in node.loops], [(node.loops, node)], node.dtype
                )
                self.buffers[buffer] = -1
                self.held[node] = buffer, node.loops
        return bool(often)

    def _inner_sums(self, root: Node, own: Buffer | None) -> set[Node]:
        """The sums of an expression that depend on variables of outer loops."""
        sums, seen, stack = set(), set(), [root]
        while stack:
            node = stack.pop()
            keeper = self.held.get(node)
            if node in seen or (keeper is not None and keeper[0] is not own):
                continue
            seen.add(node)
            if node.op == "reduce" and not node.free and node is not root:
                continue
            if node.op == "reduce" and [var.level for var in node.loops] == [
                *range(len(node.free))
            ]:
                sums |= {node} if node.free else set()
            stack += node.args
        return sums

    # how deep it lies: everything waits only for what lies less deep

    def _settle(self) -> None:
        """Find out how deep everything lies."""
        self._depths.clear()
        self.buffers = dict.fromkeys(self.buffers, -1)
        self.statements = dict.fromkeys(self.statements, -1)
        self.totals = dict.fromkeys(self.totals, -1)
        for buffer in self.buffers:
            self.depth_of_buffer(buffer)
        for statement in self.statements:
            self._depth_of_statement(statement)
        for total in self.totals:
            self.depth(total)

    def depth_of_buffer(self, buffer: Buffer) -> int:
        """How many stages a buffer waits for."""
        if buffer.maker is not None:
            return self._depth_of_statement(buffer.maker)
        if buffer not in self.buffers:
            return 0
        if self.buffers[buffer] < 0:
            self._open.add(buffer)
            depths = [self._entry_depth(buffer, entry) for _, entry in buffer.entries]
            self._open.remove(buffer)
            self.buffers[buffer] = 1 + max(depths)
        return self.buffers[buffer]

    def _entry_depth(self, buffer: Buffer, entry: Node) -> int:
        keeper = self.held.get(entry)
        own = keeper is not None and keeper[0] is buffer
        return self._own_depth(entry) if own else self.depth(entry)

    def _depth_of_statement(self, statement: Statement) -> int:
        if self.statements[statement] < 0:
            depths = [self.depth_of_buffer(buffer) for buffer in statement.inputs]
            self.statements[statement] = 1 + max(depths, default=0)
        return self.statements[statement]

    def depth(self, node: Node) -> int:
        """How many stages a number waits for."""
        keeper = self.held.get(node)
        if keeper is not None and keeper[0] not in self._open:
            return self.depth_of_buffer(keeper[0])
        if keeper is not None:  # an entry that another one of the same array needs
            del self.held[node]
        return self._own_depth(node)

    def _own_depth(self, node: Node) -> int:
        if node not in self._depths:
            deep = max((self.depth(arg) for arg in node.args), default=0)
            if node.op == "load":
                deep = max(deep, self.depth_of_buffer(node.what))
            total = node.op == "reduce" and not node.free
            self._depths[node] = deep + total
            if total:
                self.totals[node] = deep + 1
        return self._depths[node]

    # the lines

    def lines(self) -> list[str]:
        """All lines, in order."""
        deepest = [*self.buffers.values(), *self.statements.values(), *self.totals.values()]
        for depth in range(max(deepest, default=0) + 1):
            self._sums(depth)
            groups: dict[tuple, list[Buffer]] = {}
            for buffer, own in self.buffers.items():
                if own == depth:
                    groups.setdefault(_loops(buffer), []).append(buffer)
            for loops, buffers in groups.items():
                self._kernel(loops, buffers)
            for statement, own in self.statements.items():
                if own == depth:
                    self._statement(statement)
        return self.top.lines

    def _sums(self, depth: int) -> None:
        groups: dict[Node, list[Node]] = {}
        for total, own in self.totals.items():
            if own == depth and total not in self.held:
                groups.setdefault(total.what[1], []).append(total)
        for totals in groups.values():
            kernel = self.kernel(self, totals)
            kernel.reduce(self.top, totals)

    def _statement(self, statement: Statement) -> None:
        graph = self.graph
        for buffer in statement.outputs:
            graph.allocate(buffer)
        names = [buffer.name for buffer in statement.inputs]
        made = [buffer.name for buffer in statement.outputs]
        self.top.lines += statement.write(names, made)

    def _kernel(self, loops: tuple[Node, ...], buffers: Sequence[Buffer]) -> None:
        """Loops that fill buffers of one shape."""
        self._writing = set(buffers)
        kernel = self.kernel(self, [entry for buffer in buffers for _, entry in buffer.entries])
        scope = self.top
        scopes = [scope]
        for var in loops:
            scope = self.scope(var, scope)
            scopes.append(scope)
        for buffer in buffers:
            self.graph.allocate(buffer)
            for index, entry in buffer.entries:
                place = self.graph.flat(buffer.shape, index)
                self.assign(kernel, scope, buffer, place, entry)
        for inner, outer in zip(reversed(scopes[1:]), reversed(scopes[:-1])):
            outer.lines += self.looped(inner)
        self._writing = set()

    def replaced(self, node: Node) -> Node:
        """A number that a buffer holds already, read from there."""
        keeper = self.held.get(node)
        if keeper is None or keeper[0] in self._writing:
            return node
        return self.graph.load(*keeper)


class Kernel:
    """Writes the numbers of one nest of loops."""

    def __init__(self, emitter: Emitter, roots: Iterable[Node]) -> None:
        self.emitter = emitter
        self.uses: Counter[Node] = Counter()
        self.passes: dict[Node, int] = {}
        for root in roots:
            self._count(emitter.replaced(root))

    def _count(self, root: Node) -> None:
        """How often each number is used, and which sums there are."""
        stack = [root]
        while stack:
            node = stack.pop()
            self.uses[node] += 1
            if self.uses[node] > 1 or node in self.emitter.top.names:
                continue
            if node.op == "reduce":
                self.passes[node] = -1
            stack += [self.emitter.replaced(arg) for arg in node.args]

    def turn(self, node: Node) -> int:
        """How many loops in the same surroundings a sum must wait for, and its own."""
        if self.passes[node] < 0:
            self.passes[node] = 1 + self._deepest(node.args, node.free)
        return self.passes[node]

    def _deepest(self, args: Iterable[Node], free: frozenset[Node]) -> int:
        seen, deepest = set(), 0
        stack = [self.emitter.replaced(arg) for arg in args]
        while stack:
            node = stack.pop()
            if node in seen or not free <= node.free or node in self.emitter.top.names:
                continue
            seen.add(node)
            if node.op == "reduce" and node.free == free:
                deepest = max(deepest, self.turn(node))
            else:
                stack += [self.emitter.replaced(arg) for arg in node.args]
        return deepest

    def text(self, node: Node, scope: Scope) -> Text:
        """A number as it is written in a scope."""
        node = self.emitter.replaced(node)
        for around in scope.chain():
            if node in around.names:
                return around.names[node], ATOM
        if node.op in LEAVES:
            return WRITERS[node.op](node, ())
        home = scope.home(node)
        if node.op == "reduce":
            self._reduce(node, home)
            return home.names[node], ATOM
        text = WRITERS[node.op](node, [self.text(arg, home) for arg in node.args])
        if home is scope and self.uses[node] <= 1 and len(text[0]) < 160:
            return text
        if node.dtype == "int" and node.op != "load" and node.cost <= 2:
            return text
        name = self.emitter.graph.fresh("v")
        home.lines.append(f"const {name} = {text[0]};")
        home.names[node] = name
        return name, ATOM

    def _reduce(self, node: Node, home: Scope) -> None:
        """The loop of a sum, with all that can share it."""
        turn, var = self.turn(node), node.what[1]
        together = [
            other
            for other in self.passes
            if other.free == node.free
            and other.what[1] is var
            and other not in home.names
            and self.turn(other) == turn
        ]
        self.reduce(home, together)

    def reduce(self, home: Scope, nodes: Sequence[Node]) -> None:
        """One loop for several sums."""
        graph, inner = self.emitter.graph, self.emitter.scope(nodes[0].what[1], home)
        names = [graph.fresh("r") for _ in nodes]
        starts = [
            f"{name} = {number(IDENTITY[node.what[0]])[0]}" for name, node in zip(names, nodes)
        ]
        ends = []
        for name, node in zip(names, nodes):
            ends += self._grown(node, name, inner)
        inner.lines += ends
        home.lines.append(f"let {', '.join(starts)};")
        home.lines += self.emitter.looped(inner)
        home.names |= dict(zip(nodes, names))

    def _grown(self, node: Node, total: str, inner: Scope) -> list[str]:
        """The lines that take one more term into a sum, a maximum, ..."""
        op, term, test = node.what[0], self.emitter.replaced(node.args[0]), None
        if op not in ("max", "min"):
            return [grown(op, total, self.text(term, inner), node.dtype)]
        if term.op == "?" and self.uses[term] <= 1 and term.args[2].what == IDENTITY[op]:
            test, term = self.text(term.args[0], inner), term.args[1]
        name = self.emitter.graph.fresh("t")
        return outgrown(op, total, name, self.text(term, inner), test)


def _loops(buffer: Buffer) -> tuple[Node, ...]:
    """The loops that fill a buffer, the outermost first."""
    index = buffer.entries[0][0]
    return tuple(i for i in index if i.op == "var")


def _known(var: Node | None) -> Node:
    if var is None:
        raise ValueError("a loop without a variable")
    return var


def emit(graph: Graph, roots: Sequence[Buffer]) -> list[str]:
    """The lines that fill some buffers."""
    return Emitter(graph, roots).lines()
