"""The catalogue: what there is, read from the files themselves.

A member is a public class (or, in `theory`, a public function) in a file of its folder. The files
are read with `ast`, so a listing imports nothing and a new file is listed, importable and tested
because it exists.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tokenflock.errors import UserError, public

KINDS = ("dynamics", "parts", "starts", "solvers", "observables", "events", "matrices", "theory")
BASES = {  # what a member of each kind derives from; theory has functions
    "dynamics": "tokenflock.dynamics.dynamics:Dynamics",
    "starts": "tokenflock.starts.start:Start",
    "solvers": "tokenflock.solvers.solver:Solver",
    "observables": "tokenflock.observables.observable:Observable",
    "events": "tokenflock.events.event:Event",
    "matrices": "tokenflock.matrices.matrix:MatrixLaw",
    "meanfield": "tokenflock.meanfield.density:Density",
    "parts": "tokenflock.parts.part:Part",
}
PARTS = {  # the families of parts, and what a bare value (`heads=4`) is the first option of
    "Heads": "RandomHeads",
    "Mask": None,
    "Positions": None,
    "Weighing": None,
    "TokenMap": "RandomFeedForward",
    "Placement": None,
    "Noise": None,
}
LONGEST = 60  # characters of a name that is looked up
_ROOT = Path(__file__).parent
_OWN: list[Entry] = []  # members that the user brought along
# files that hold a base class
_ABSTRACT = {
    "space",
    "dynamics",
    "start",
    "solver",
    "observable",
    "event",
    "matrix",
    "part",
    "heads",
    "mask",
    "positions",
    "weighing",
    "token_map",
    "placement",
    "noise",
}


@dataclass(frozen=True)
class Option:
    """One field of a member, or one argument of a closed form."""

    name: str
    annotation: str
    default: str | None  # as source text; None when it must be given
    doc: str


@dataclass(frozen=True)
class Entry:
    """One member of the catalogue."""

    kind: str
    name: str  # SelfAttention
    module: str  # tokenflock.dynamics.self_attention
    summary: str
    doc: str
    options: tuple[Option, ...]
    base: str = ""  # the class that it derives from

    @property
    def slug(self) -> str:
        """The name on the command line: self-attention."""
        return slug(self.name)

    def load(self) -> Any:
        """Import the member itself."""
        return getattr(importlib.import_module(self.module), self.name)


def summary(doc: str) -> str:
    """The first paragraph of a docstring, as one line."""
    return " ".join(doc.partition("\n\n")[0].split())


def slug(name: str) -> str:
    """`SelfAttention` and `transition_curve` as typed on a command line: `self-attention`,
    `transition-curve`.

    >>> slug("RK4"), slug("VonMisesFisher"), slug("transition_curve")
    ('rk4', 'von-mises-fisher', 'transition-curve')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).replace("_", "-").lower()


def entries(kind: str) -> tuple[Entry, ...]:
    """All members of one kind, in alphabetical order; those that the user brought along last."""
    return _shipped(kind) + tuple(entry for entry in _OWN if entry.kind == kind)


def _namesake(kind: str, wanted: str) -> Entry | None:
    """The member of this library whose file has its name, as most have: one file is read sooner
    than all of them.
    """
    path = _ROOT / kind / f"{wanted[:LONGEST].replace('-', '_')}.py"
    if (
        len(wanted) > LONGEST
        or not wanted.replace("-", "").isalnum()
        or path.stem in _ABSTRACT
        or not path.is_file()
    ):
        return None
    return next((entry for entry in _read(kind, path) if entry.slug == wanted), None)


@cache
def _shipped(kind: str) -> tuple[Entry, ...]:
    """The members of one kind that are files of this library."""
    members: list[Entry] = []
    for path in sorted((_ROOT / kind).glob("*.py")):
        if path.stem.startswith("_") or path.stem in _ABSTRACT:
            continue
        members += _read(kind, path)
    return tuple(sorted(members, key=lambda entry: entry.slug))


def base(kind: str) -> type:
    """What a member of a kind derives from."""
    module, _, name = BASES[kind].partition(":")
    return getattr(importlib.import_module(module), name)


def include(path: Path) -> list[Entry]:
    """Run a Python file of the user's and take its laws, starts, ... into the catalogue."""
    module = _imported(path)
    nodes = {node.name: node for node in _parse(path).body if isinstance(node, ast.ClassDef)}
    brought = [
        _entry(kind, module.__name__, nodes[name], path)
        for name, cls in vars(module).items()
        if name in nodes and isinstance(cls, type) and not name.startswith("_")
        for kind in BASES
        if issubclass(cls, base(kind)) and not inspect.isabstract(cls)
    ]
    if not brought:
        kinds = ", ".join(base(kind).__name__ for kind in BASES)
        raise UserError(f"{path} brings nothing: it has no public class that derives from {kinds}")
    for entry in brought:
        if any(entry.slug == known.slug for known in entries(entry.kind)):
            raise UserError(
                f"{path}: {entry.kind} has a member {entry.slug} already; rename the class"
            )
        _OWN.append(entry)
    return brought


def brought() -> tuple[Entry, ...]:
    """The members that the user brought along."""
    return tuple(_OWN)


def _imported(path: Path) -> ModuleType:
    """A file of the user's as a module under its own name."""
    if not path.is_file() or path.suffix != ".py":
        raise UserError(f"{path} is no Python file; write the path of one, e.g. my_laws.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or path.stem in sys.modules:
        raise UserError(f"{path}: a module {path.stem} is loaded already; rename the file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[path.stem]
        raise UserError(f"{path} cannot be run: {type(error).__name__}: {error}") from None
    return module


def find(kind: str, name: str) -> Entry:
    """The member called `name`, in either spelling; an error that lists the near ones otherwise."""
    wanted = slug(name)
    if (entry := _namesake(kind, wanted)) is not None:
        return entry
    table = {entry.slug: entry for entry in entries(kind)}
    if wanted in table:
        return table[wanted]
    from difflib import get_close_matches

    near = get_close_matches(wanted, table, n=3, cutoff=0.4) or sorted(table)
    raise UserError(
        f"{kind} has no member {name!r:.80}; try {', '.join(near)} (all: tokenflock list {kind})"
    )


def family(of: str) -> dict[str, Entry]:
    """The parts of one family by the short names that a person types: `causal` for `CausalMask`,
    `none` for `NoMask`.

    >>> sorted(family("Mask"))
    ['causal', 'given', 'none', 'window']
    """
    root = f"tokenflock.parts.{slug(of).replace('-', '_')}"

    def belongs(entry: Entry) -> bool:
        if entry not in _OWN:
            return entry.base == of
        return issubclass(entry.load(), getattr(importlib.import_module(root), of))

    return {_short(entry.slug, slug(of)): entry for entry in entries("parts") if belongs(entry)}


def _short(whole: str, of: str) -> str:
    if whole.startswith("no-"):
        return "none"
    return whole.removesuffix(f"-{of}").removesuffix("-feed-forward")


def part(of: str, name: str) -> tuple[Entry, str | None]:
    """The part of a family that a text names, and the value of its first option where the text is
    such a value: `4` heads are random heads, `gelu` a random feed-forward part.

    >>> part("Heads", "4")[0].name, part("Mask", "causal-mask")[0].name
    ('RandomHeads', 'CausalMask')
    """
    known = family(of)
    long = {entry.slug: entry for entry in known.values()}
    entry = known.get(slug(name)) or long.get(slug(name))
    if entry is not None:
        return entry, None
    bare = next((entry for entry in known.values() if entry.name == PARTS[of]), None)
    if bare is not None and _could_be(bare.options[0], name):
        return bare, name
    raise UserError(f"one of {', '.join(sorted(known))}, got {name!r:.80}")


def _could_be(option: Option, text: str) -> bool:
    """Whether a text could be the value of an option: a whole number, or a word."""
    return text.isdigit() if option.annotation == "int" else text.replace("-", "").isalpha()


def names(kind: str) -> list[str]:
    """The names of all members of one kind, in alphabetical order."""
    return sorted(entry.name for entry in entries(kind))


def lazy(kind: str, extra: dict[str, str] | None = None):
    """`__getattr__` and `__dir__` of a folder whose members are imported when first asked for, and
    whose files are all read only when everything is (`dir`, `import *`).
    """
    extra = extra or {}

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return __dir__()
        if name in extra:
            return public(f"tokenflock.{kind}", extra[name], name)
        own = _namesake(kind, slug(name))
        for entry in entries(kind) if own is None else (own,):
            if entry.name == name:
                return entry.load()
        raise AttributeError(
            f"module 'tokenflock.{kind}' has no attribute {name!r}; it has {', '.join(names(kind))}"
        )

    def __dir__() -> list[str]:
        return sorted([*extra, *names(kind)])

    return __getattr__, __dir__


def homes(package: str, table: dict[str, str]):
    """`__getattr__`, `__dir__` and `__all__` of a folder that offers names from its files, imported
    when first asked for.

    The table says in which file each name lives; a file that is offered itself has an empty name
    there.
    """
    everything = sorted(table)

    def __getattr__(name: str) -> Any:
        if name not in table:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}; it has {', '.join(everything)}"
            )
        home = f"{package}.{table[name] or name}"
        return public(package, home, name) if table[name] else importlib.import_module(home)

    return __getattr__, lambda: everything, everything


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _read(kind: str, path: Path) -> list[Entry]:
    module = f"tokenflock.{kind}.{path.stem}"
    wanted = ast.FunctionDef if kind == "theory" else ast.ClassDef
    return [
        _entry(kind, module, node, path)
        for node in _parse(path).body
        if isinstance(node, wanted) and not node.name.startswith("_") and not _is_helper(node)
    ]


def _is_helper(node: ast.ClassDef | ast.FunctionDef) -> bool:
    """Enumerations and plain dataclasses beside a member are its vocabulary, not members."""
    bases = {ast.unparse(base) for base in getattr(node, "bases", [])}
    return isinstance(node, ast.ClassDef) and (
        not bases or bool(bases & {"enum.Enum", "Enum", "NamedTuple"})
    )


def _entry(kind: str, module: str, node: ast.ClassDef | ast.FunctionDef, path: Path) -> Entry:
    doc = ast.get_docstring(node) or ""
    options = _arguments(node) if isinstance(node, ast.FunctionDef) else _fields(node, path)
    bases = [ast.unparse(base) for base in getattr(node, "bases", [])]
    first = bases[0] if bases else ""
    return Entry(kind, node.name, module, summary(doc), doc, tuple(options), first)


def _fields(node: ast.ClassDef, path: Path) -> list[Option]:
    """The fields of a class, those of its bases in the same folder first."""
    options = [option for base in node.bases for option in _inherited(ast.unparse(base), path)]
    for line, following in zip(node.body, [*node.body[1:], None]):
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
            continue
        kind = ast.unparse(line.annotation)
        if kind.startswith("ClassVar") or line.target.id.startswith("_"):
            continue
        default = None if line.value is None else ast.unparse(line.value)
        text = _text(following)
        options.append(Option(line.target.id, kind, default, text))
    return list({option.name: option for option in options}.values())


def _inherited(base: str, path: Path) -> list[Option]:
    """The fields of a base class that the file imports from its own folder."""
    for line in _parse(path).body:
        if isinstance(line, ast.ImportFrom) and base in {alias.name for alias in line.names}:
            home = _home(path, line.module or "", base)
            classes = (
                [node for node in _parse(home).body if isinstance(node, ast.ClassDef)]
                if home.exists()
                else []
            )
            return next((_fields(node, home) for node in classes if node.name == base), [])
    return []


def _home(path: Path, module: str, name: str) -> Path:
    """The file that a class is imported from: of this library, or beside the importing one."""
    parts = module.split(".")
    if parts[0] != "tokenflock":
        return path.parent / f"{parts[-1]}.py"
    if len(parts) == 2:  # from tokenflock.dynamics import SelfAttention
        entry = next((entry for entry in _shipped(parts[1]) if entry.name == name), None)
        parts = entry.module.split(".") if entry else parts
    return _ROOT.joinpath(*parts[1:]).with_suffix(".py")


def _arguments(node: ast.FunctionDef) -> list[Option]:
    positional = node.args.posonlyargs + node.args.args
    defaults = [None] * (len(positional) - len(node.args.defaults)) + list(node.args.defaults)
    pairs = [*zip(positional, defaults), *zip(node.args.kwonlyargs, node.args.kw_defaults)]
    return [
        Option(
            argument.arg,
            ast.unparse(argument.annotation) if argument.annotation else "float",
            None if value is None else ast.unparse(value),
            "",
        )
        for argument, value in pairs
    ]


def _text(node: ast.stmt | None) -> str:
    """The text that stands alone in a line; empty where there is none."""
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return ""
