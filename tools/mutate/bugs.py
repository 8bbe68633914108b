"""Bugs to plant: what a slip of the pen would make of a line, and where that could change a result.

What cannot change one (annotations, docstrings, error texts, examples) is not planted; what was
judged to change nothing is listed with its reason in equivalent.txt.
"""

from __future__ import annotations

import ast
import copy
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tokenflock"
HARMLESS = Path(__file__).with_name("equivalent.txt")
FOLDERS = ("dynamics", "solvers", "observables", "engines", "theory", "meanfield", "probing")
FOLDERS += ("gpt", "reproduction", "sweeps")

SKIPPED_FUNCTIONS = {"__repr__", "label", "title", "example", "long_name", "unit"}
SKIPPED_NAMES = {"cites", "__all__", "unit"}
SPEED = {
    "SIDE",
    "SLOTS",
    "PACKET",
    "LARGEST",
    "BLOCKS",
    "SMALL",
    "ENTRIES",
    "BLOCK",
    "LANES",
    "WINDOWS",
}
SKIPPED_KEYWORDS = {"long_name", "label", "attrs", "align", "static", "repr", "encoding", "indent"}

SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
SWAPPED |= {ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
NEGATED = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq}
NEGATED |= {ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn}
EDGES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
PAIRS = ["min max", "minimum maximum", "sin cos", "floor ceil", "any all", "argmin argmax"]
PAIRS += ["exp expm1", "log log1p", "sum mean", "zeros ones", "zeros_like ones_like", "tri tril"]
EVEN = {"require", "isinstance", "getattr", "hasattr", "issubclass"}  # an error, or the same
EVEN |= {"min", "max", "minimum", "maximum", "allclose", "array_equal", "vdot", "logical_and"}
EVEN |= {"isclose", "hypot", "swapaxes"}
EVEN |= {"plus", "times", "fadd", "fmul", "fma", "and_", "least", "index"}  # of native loops
RENAMED = {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One bug: the place, what it was and becomes, and which of its file it is."""

    file: str  # below the package
    function: str
    line: int
    change: str
    at: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}: {self.change}"

    @property
    def name(self) -> str:
        """What the list of harmless ones knows it by; a line number would not last."""
        return f"{self.file} | {self.function} | {self.change}"

    def among(self, known: set[str]) -> bool:
        """Whether a list names it: by its name, or by its name and some text that it became."""
        longer = [name for name in known if name.startswith(f"{self.name} | ")]
        return self.name in known or any(
            name[len(self.name) + 3 :] in statement(self) for name in longer
        )


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """What a slip of the pen would make of a node."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in SWAPPED:
            yield ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield node.left  # a term is dropped
        if isinstance(node.op, (ast.Mult, ast.Div)):
            yield node.left  # a factor is dropped
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        kind = type(node.ops[0])
        if kind in NEGATED:
            yield ast.Compare(node.left, [NEGATED[kind]()], node.comparators)
        whole = [isinstance(side, ast.Constant) for side in (node.left, *node.comparators)]
        if kind in EDGES and any(whole):
            yield ast.Compare(node.left, [EDGES[kind]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
        yield node.operand
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, (ast.If, ast.IfExp)):
        changed = copy.copy(node)
        changed.test = ast.UnaryOp(ast.Not(), node.test)
        yield changed


def _constants(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node.value, float):
        yield ast.Constant(node.value * 1.25 if node.value else 0.25)


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in RENAMED:
        func = copy.copy(node.func)
        setattr(func, "attr" if isinstance(func, ast.Attribute) else "id", RENAMED[name])
        yield ast.Call(func, node.args, node.keywords)
    if name in ("sqrt", "normalise", "abs", "clip", "project") and node.args:
        yield node.args[0]
    plain = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
    if len(plain) == len(node.args) >= 2 and name not in EVEN:
        first, second, *rest = node.args
        if ast.dump(first) != ast.dump(second):
            yield ast.Call(node.func, [second, first, *rest], node.keywords)


def skipped(node: ast.AST, parent: ast.AST, field: str, at: int | None) -> bool:
    """What cannot change a result: texts, types, names, examples, and settings of speed."""
    if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("refuse", "UserError"):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(parent, ast.Module) and isinstance(node, ast.Assign):
        kind = node.value.op if isinstance(node.value, ast.BinOp) else node.value
        if isinstance(kind, (ast.BitOr, ast.Subscript)):
            return True  # the name of a type
    if field in ("annotation", "returns", "decorator_list", "bases"):
        return True
    if isinstance(node, ast.FunctionDef) and node.name in SKIPPED_FUNCTIONS:
        return True
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {getattr(target, "id", "") for target in targets}
        return bool(names & (SKIPPED_NAMES | SPEED))
    if isinstance(node, ast.keyword) and node.arg in SKIPPED_KEYWORDS:
        return True
    if isinstance(parent, ast.keyword) and parent.arg == "axis" and isinstance(node, ast.UnaryOp):
        return True  # of matrices, -1 is 1
    checks = isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "require"
    return checks and field == "args" and at != 0  # only its condition, not what it says


def places(node: ast.AST, function: str = "module") -> Iterator[tuple]:
    """(parent, field, index or None, node, function) of all that may change."""
    for field, value in ast.iter_fields(node):
        for at, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or skipped(child, node, field, at):
                continue
            inside = child.name if isinstance(child, (ast.FunctionDef, ast.ClassDef)) else function
            if isinstance(node, ast.ClassDef) and isinstance(child, ast.FunctionDef):
                inside = f"{node.name}.{child.name}"
            yield node, field, at, child, function
            yield from places(child, inside)


def mutants(path: Path) -> list[Mutant]:
    """Every bug that can be planted in a file."""
    tree, file = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(PACKAGE).as_posix()
    return [
        Mutant(file, function, node.lineno, f"{_shown(node)} -> {_shown(changed)}", at)
        for at, (*_, node, function, changed) in enumerate(_changes(tree))
    ]


def _changes(tree: ast.AST) -> Iterator[tuple]:
    """(parent, field, index or None, node, function, what it becomes)."""
    for *where, node, function in places(tree):
        for changed in variants(node):
            if _shown(node) != _shown(changed):
                yield *where, node, function, changed


@cache
def parsed(file: str) -> ast.Module:
    """A file of the package; whoever changes the tree copies it first."""
    return ast.parse((PACKAGE / file).read_text(encoding="utf-8"))


@cache
def broken(mutant: Mutant) -> ast.Module:
    """The file with the bug in it; lines keep their numbers."""
    tree = copy.deepcopy(parsed(mutant.file))
    parent, field, index, _, _, changed = next(islice(_changes(tree), mutant.at, None))
    _put(parent, field, index, changed)
    return ast.fix_missing_locations(tree)


def statement(mutant: Mutant) -> str:
    """The statement with the bug in it, as it becomes."""
    plain, changed = (ast.unparse(tree) for tree in (parsed(mutant.file), broken(mutant)))
    return _first_changed(plain.splitlines(), changed.splitlines())


def lines(mutant: Mutant) -> range:
    """The lines of the statement that holds a bug; of one with a body only the head."""
    around = [
        node
        for node in ast.walk(parsed(mutant.file))
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or 0)
    ]
    inmost = max(around, key=lambda node: node.lineno)
    body = getattr(inmost, "body", None)
    end = body[0].lineno if body else (inmost.end_lineno or 0) + 1
    return range(inmost.lineno, max(end, inmost.lineno + 1))


def _first_changed(before: list[str], after: list[str]) -> str:
    """The first line that differs; `ast.unparse` gives each statement one line."""
    return next((new for old, new in zip(before, after) if old != new), "")


def _shown(node: ast.AST) -> str:
    """The line of a node; of a statement with a body only the head."""
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).splitlines()[0]


def _put(parent: ast.AST, field: str, at: int | None, node: ast.AST) -> None:
    if at is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[at] = node


def chosen(folder: str, sample: int, seed: int, part: str = "") -> list[Mutant]:
    """A sample of the bugs of a folder, the same for the same seed; a larger one continues it."""
    every = everything(folder, part)
    random.Random(f"{seed} {folder}").shuffle(every)
    return every[:sample]


def everything(folder: str, part: str = "") -> list[Mutant]:
    """Every bug that can be planted in a folder, or in those of its files that are named."""
    paths = [path for path in sources(folder) if part in path.as_posix()]
    return [mutant for path in paths for mutant in mutants(path)]


def sources(folder: str) -> list[Path]:
    """The files of a folder that hold numbers: where to run changes none."""
    paths = sorted((PACKAGE / folder).rglob("*.py"))
    return [path for path in paths if path.name not in ("__init__.py", "place.py")]


def told_before(folder: str, path: Path) -> list[Mutant]:
    """The bugs of a folder that the output of an earlier run names."""
    said = re.findall(r"(\S+\.py):(\d+) in (\S+): (.*)", path.read_text(encoding="utf-8"))
    here = [parts for parts in said if parts[0].startswith(f"{folder}/")]
    every = everything(folder) if here else []
    lines = [
        (f"{file} | {function} | {change}", int(line)) for file, line, function, change in here
    ]
    exact = [mutant for mutant in every if (mutant.name, mutant.line) in lines]
    moved = {name for name, _ in lines} - {mutant.name for mutant in exact}
    return [mutant for mutant in every if mutant in exact or mutant.name in moved]


def harmless() -> set[str]:
    """The names of bugs that are none, from the file that says why."""
    lines = HARMLESS.read_text(encoding="utf-8").splitlines()
    return {line.split("  # ")[0].strip() for line in lines if line and not line.startswith("#")}
