"""Plant bugs, one at a time, in a copy of the library, and count those that a test turns red on.

    python tools/mutate.py --folders dynamics,solvers --sample 40 --seed 0 --list survivors

The source is copied to a temporary folder and never touched itself. The same seed gives the same
sample. What cannot change a result (annotations, docstrings, error texts, examples) is not planted;
what was judged to change nothing is listed with its reason in tools/equivalent.txt.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tokenflock"
NOTHING = 5  # what pytest returns where no test was asked for
TOO_SLOW = (-signal.SIGXCPU, -signal.SIGKILL)  # how a process ends that takes too long
PATIENCE = 4  # seconds on the clock for each of the processor
QUICK = 4  # what takes too long never ends, where without the bug a quarter of the time is enough
HARMLESS = Path(__file__).with_name("equivalent.txt")

LAWS, ORACLES, MEAN = (f"tests/{name}/test_" for name in ("laws", "oracles", "meanfield"))
DEFAULTS = "tests/test_defaults.py"  # after the tests of every folder
TESTS = {  # the quick tests of a folder, the nearest first; the doctests of the file come before
    "dynamics": [
        *(LAWS + name for name in ("formulas.py", "degenerate.py", "dynamics.py", "extremes.py")),
        *(ORACLES + f"particles_{name}.py" for name in ("circle", "energy", "equiangular")),
    ],
    "solvers": [
        LAWS + "solvers.py",
        *(ORACLES + f"particles_{name}.py" for name in ("solvers", "noise")),
    ],
    "observables": [LAWS + "degenerate.py", LAWS + "observables.py"],
    "engines": [
        *(LAWS + name for name in ("settling.py", "randomness.py", "events.py", "lanes.py")),
        *(LAWS + name for name in ("ensembles.py", "engines.py")),
    ],
    "theory": [
        *(ORACLES + f"theory_{name}.py" for name in ("domains", "roots", "equiangular")),
        *(ORACLES + f"theory_{name}.py" for name in ("kernel", "pair", "states", "rates", "flows")),
        ORACLES + "theory_kept.py",
    ],
    "meanfield": [MEAN + f"{name}.py" for name in ("distances", "optimal", "evolution")],
    "probing": [f"tests/probing/test_{name}.py" for name in ("particles", "statistics", "errors")],
    "gpt": [f"tests/gpt/test_{name}.py" for name in ("learning", "training", "watching", "ladder")],
    "reproduction": [
        f"tests/papers/test_{name}.py" for name in ("claims", "verdicts", "reproduce")
    ],
    "sweeps": [f"tests/sweeps/test_{name}.py" for name in ("sweeps", "specs")],
}
NEAREST = {  # by hand, where the words of a file are everybody's; `NEAR` finds those of the others
    "dynamics/_harmonics dynamics/fast": "meanfield/fast",
    "dynamics/_kernels dynamics/_qkv dynamics/_matrices": "laws/formulas laws/degenerate",
    "dynamics/_streaming dynamics/streamed dynamics/_padding": "laws/engines laws/formulas",
    "dynamics/_schemes": "oracles/particles_equiangular laws/degenerate laws/formulas",
    "dynamics/dynamics dynamics/self_attention": "laws/dynamics laws/formulas laws/kinds",
    "dynamics/noisy": "oracles/particles_noise laws/compositions",
    "dynamics/neural_ode dynamics/feed_forward": "laws/formulas laws/compositions",
    "solvers/solver solvers/layer": "laws/solvers laws/tiled",
    "solvers/euler_maruyama": "laws/solvers oracles/particles_noise",
    "observables/observable": "laws/observables laws/degenerate",
    "engines/native/densities engines/lanes": "laws/lanes laws/settling faults/stores",
    "engines/_patience": "laws/extremes laws/events laws/lanes",
    "engines/_split_products engines/resident": "laws/engines laws/settling",
    "engines/batch": "laws/ensembles laws/settling laws/randomness",
    "engines/blocks": "laws/ensembles laws/passages laws/tiled",
    "engines/slots": "laws/settling laws/passages laws/ensembles",
    "engines/choose engines/job engines/rotation": "laws/ensembles laws/refusals laws/engines",
    "engines/coalescing": "laws/dynamics laws/coalescing oracles/merging_times",
    "engines/native/*": "laws/native laws/lanes",
    "engines/page/*": "page/page_engine laws/native",
    "engines/tiled dynamics/_tiles": "laws/tiled",
    "engines/differentiable engines/tangents": "gradients/flow_map gradients/spectra",
    "engines/memory": "laws/refusals faults/files",
    "engines/passing": "laws/passages laws/events",
    "engines/single": "laws/events laws/solvers laws/extremes",
    "engines/adaptive": "laws/events laws/solvers laws/extremes",
    "engines/systems": "laws/again laws/randomness laws/ensembles",
    "theory/_check theory/_guard": "oracles/theory_contract oracles/theory_domains",
    "theory/_clock": "oracles/theory_pair oracles/theory_equiangular",
    "theory/_roots": "oracles/theory_roots oracles/theory_rates",
    "theory/_special": "oracles/theory_kernel oracles/theory_rates",
    "meanfield/optimal meanfield/quasi_newton meanfield/certificate": "meanfield/optimal",
    "meanfield/mirror_descent meanfield/implicit_descent meanfield/potential": "meanfield/optimal",
    "meanfield/functionals": "meanfield/functionals meanfield/evolution meanfield/branches",
    "meanfield/evolution meanfield/continuity meanfield/grids": "meanfield/evolution",
    "meanfield/density": "meanfield/evolution meanfield/branches",
    "meanfield/continuing meanfield/equilibria meanfield/resting": "meanfield/branches",
    "meanfield/measures": "meanfield/distances meanfield/evolution",
    "probing/_former": "files/version_01",
    "probing/_needs probing/loading probing/fetching": "probing/errors probing/models",
    "probing/architectures/*": "probing/statistics probing/models probing/blocks",
    "probing/blocks probing/laws": "probing/blocks probing/particles",
    "probing/following probing/particles": "probing/particles probing/blocks",
    "probing/hooks probing/layers probing/recording": "probing/statistics probing/models",
    "probing/huggingface probing/model": "probing/models probing/errors probing/blocks",
    "probing/options probing/prompts probing/texts": "probing/errors probing/statistics",
    "probing/own_gpt": "gpt/watching probing/blocks",
    "probing/streaming probing/surveying": "probing/statistics faults/files",
    "probing/weights": "probing/figure1 gpt/watching",
    "gpt/bigram gpt/feed_forward gpt/multi_head gpt/residual gpt/ladder": (
        "gpt/rungs gpt/ladder gpt/learning"
    ),
    "gpt/gpt gpt/fast gpt/head gpt/positions": "gpt/rungs gpt/ladder gpt/watching",
    "gpt/checkpoint gpt/language gpt/training": "gpt/sampling gpt/learning gpt/training",
    "gpt/probing gpt/watching gpt/flowing": "gpt/watching",
    "gpt/text gpt/sampling gpt/settings": "gpt/sampling gpt/training gpt/command",
    "reproduction/folder": "papers/reproduce faults/folders files/hostile",
    "reproduction/formulas reproduction/formula_lines": "papers/mathematics",
    "reproduction/formula_elements reproduction/mathematics": "papers/mathematics",
    "reproduction/scale": "papers/items papers/reproduce",
}
NEAR = 4  # test files that speak of a source file: those that do so most
LIBRARIES = [
    "pytest",
    "hypothesis",
    "jax",
    "jax.numpy",
    "diffrax",
    "optax",
    "optimistix",
    "llvmlite",
]
LIBRARIES += [
    "scipy.stats",
    "scipy.integrate",
    "scipy.optimize",
    "xarray",
    "ot",
    "matplotlib.pyplot",
]
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
RENAMED = {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One bug: the place, what it was and becomes, and which of its file it is."""

    file: str  # below the package
    function: str
    line: int
    change: str
    at: int | None = None  # None: nothing is changed

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
            name[len(self.name) + 3 :] in planted(self)[1] for name in longer
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
def planted(mutant: Mutant) -> tuple[str, str]:
    """The file with the bug in it, and the statement that holds it."""
    tree = ast.parse((PACKAGE / mutant.file).read_text(encoding="utf-8"))
    plain = ast.unparse(tree)
    if mutant.at is None:
        return plain, ""
    parent, field, index, _, _, changed = next(islice(_changes(tree), mutant.at, None))
    _put(parent, field, index, changed)
    source = ast.unparse(ast.fix_missing_locations(tree))
    return source, _first_changed(plain.splitlines(), source.splitlines())


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


def chosen(folder: str, sample: int, seed: int) -> list[Mutant]:
    """A sample of the bugs of a folder, the same for the same seed; a larger one continues it."""
    every = everything(folder)
    random.Random(f"{seed} {folder}").shuffle(every)
    return every[:sample]


def everything(folder: str) -> list[Mutant]:
    """Every bug that can be planted in a folder."""
    return [mutant for path in sources(folder) for mutant in mutants(path)]


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


def tests_of(mutant: Mutant) -> list[str]:
    """Its tests, the nearest first."""
    folder, _, rest = mutant.file.removesuffix(".py").partition("/")
    near = nearest(folder, rest)
    return [*near, *(name for name in TESTS[folder] if name not in near), DEFAULTS]


@cache
def nearest(folder: str, stem: str) -> list[str]:
    """The test files of a source file: by hand, or those that speak most of its public names."""
    name, whole = f"{folder}/{stem}", f"{folder}/{stem.partition('/')[0]}/*"
    by_hand = [tests for files, tests in NEAREST.items() if {name, whole} & set(files.split())]
    if by_hand:
        return ["tests/{}/test_{}.py".format(*test.split("/")) for test in by_hand[0].split()]
    spoken = re.compile(rf"\b(?:{'|'.join(_public(PACKAGE / folder / f'{stem}.py'))})\b")
    counts = {
        path.relative_to(ROOT).as_posix(): len(set(hits)) + len(hits) / 1000
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if (hits := spoken.findall(path.read_text(encoding="utf-8")))
    }
    return sorted(counts, key=lambda test: (-counts[test], test not in TESTS[folder]))[:NEAR]


def _public(path: Path) -> list[str]:
    """The names that a file defines for others, and its own."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    defined = ast.parse(path.read_text(encoding="utf-8")).body
    names = [node.name for node in defined if isinstance(node, kinds)]
    public = [name for name in names if not name.startswith("_")]
    return [*public, re.escape(f"{path.parent.name}.{path.stem}")]


def outcome(
    mutant: Mutant, tests: list[str], copied: Path, limit: float, quick: bool = False
) -> str:
    """`caught`, `survived`, `never ends`, or why none of them can be said."""
    for marks in ("not slow",) if quick else ("not slow", "slow"):
        code = _tried(mutant, tests, copied, limit, marks)
        if code is None:
            same = _tried(unchanged(mutant.file), tests, copied, limit / QUICK, marks)
            return "never ends" if same in (0, NOTHING) else "too slow"
        if code not in (0, NOTHING):
            return "caught" if code in (1, 2) else "not run"
    return "survived"


def _tried(mutant: Mutant, tests: list[str], copied: Path, limit: float, marks: str) -> int | None:
    """What pytest returns with a bug planted; None where that takes too long."""
    path = copied / "tokenflock" / mutant.file
    before = path.read_text(encoding="utf-8")
    path.write_text(planted(mutant)[0], encoding="utf-8")
    options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
    options += ["-c", str(ROOT / "pyproject.toml")]  # doctests, and warnings that are errors
    try:
        child = os.fork()  # the libraries are loaded already, this one is not
        if child == 0:
            seconds = int(limit)  # of the processor: a busy machine catches no bug
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            _run_tests([*options, "-m", marks, f"--rootdir={ROOT}", str(path), *tests], copied)
        code = _waited(child, PATIENCE * limit)
    finally:
        path.write_text(before, encoding="utf-8")
    return None if code in TOO_SLOW else code


def _run_tests(arguments: list[str], copied: Path) -> None:
    """In a process of its own: pytest, in silence, with the copy in place of the library."""
    import pytest

    os.setsid()  # so that what the tests start can be ended with them
    os.chdir(ROOT)
    sys.path[:0] = [str(copied), str(ROOT)]
    sys.dont_write_bytecode = True  # a stale one would hide the bug
    os.environ |= {"PYTHONPATH": f"{copied}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    code = 3
    try:
        code = int(pytest.main(arguments))
    finally:
        os._exit(code)


def _waited(child: int, limit: float) -> int | None:
    """The exit code of a process; None, and an end to it, where it takes too long."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def load_libraries() -> None:
    """Import what the tests need, once for all bugs."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    warnings.filterwarnings("ignore", message=".*fork.*")


def score(counts: Counter) -> str:
    """Caught (or never ending, which is red too), of all that are no equivalents."""
    caught = counts["caught"] + counts["never ends"]
    whole = caught + counts["survived"] + counts["too slow"]
    share = f"{100 * caught / whole:.0f} %" if whole else "-"
    rest = ", ".join(f"{value} {key}" for key, value in counts.items() if key != "caught")
    return f"{caught}/{whole} caught = {share}" + (f" ({rest})" if rest else "")


def harmless() -> set[str]:
    """The names of bugs that are none, from the file that says why."""
    lines = HARMLESS.read_text(encoding="utf-8").splitlines() if HARMLESS.exists() else []
    return {line.split("  # ")[0].strip() for line in lines if line and not line.startswith("#")}


def unchanged(file: str) -> Mutant:
    """No bug at all: what no test must turn red on."""
    return Mutant(file, "module", 1, "nothing changed")


def judged(folder: str, bugs: list[Mutant], copied: Path, options: argparse.Namespace) -> Counter:
    """The outcomes of the bugs of a folder, told as they come."""
    counts, known = Counter(), harmless()
    first = sources(folder)[0].relative_to(PACKAGE).as_posix()
    clean = options.trust or outcome(unchanged(first), TESTS[folder], copied, 4 * options.limit)
    if clean not in (True, "survived"):
        sys.exit(f"{folder}: its tests are {clean} without any bug; mend them first")
    for mutant in bugs:
        since = time.monotonic()
        same = mutant.among(known)
        given = (mutant, tests_of(mutant), copied, options.limit, options.quick)
        result = "equivalent" if same else outcome(*given)
        counts[result] += 1
        if options.list == "all" or result not in ("caught", "equivalent"):
            print(f"{result:10} {time.monotonic() - since:4.0f} s  {mutant}", flush=True)
    print(f"{folder}: {score(counts)}", flush=True)
    return counts


def _table(folder: str) -> Iterator[str]:
    """Which tests each file of a folder is tried on first."""
    for path in sources(folder):
        stem = path.relative_to(PACKAGE / folder).with_suffix("").as_posix()
        yield f"{folder}/{stem}: {' '.join(nearest(folder, stem))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folders", default=",".join(TESTS), help="below src/tokenflock")
    parser.add_argument("--sample", type=int, default=20, help="bugs for each folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--limit", type=float, default=300, help="seconds of the processor for one bug"
    )
    parser.add_argument("--again", type=Path, help="plant what the output of another run names")
    choices = ["all", "survivors", "planted", "tests"]
    parser.add_argument("--list", choices=choices, default="survivors")
    parser.add_argument("--trust", action="store_true", help="do not first run without a bug")
    parser.add_argument("--quick", action="store_true", help="leave out the slow tests")
    options = parser.parse_args()
    names = options.folders.split(",")
    if options.list == "tests":
        print("\n".join(line for name in names for line in _table(name)))
        return
    folders = {
        name: told_before(name, options.again)
        if options.again
        else chosen(name, options.sample, options.seed)
        for name in names
    }
    if options.list == "planted":
        print("\n".join(str(mutant) for bugs in folders.values() for mutant in bugs))
        return
    load_libraries()
    total = Counter()
    with tempfile.TemporaryDirectory() as place:
        copied = Path(place) / "src"
        shutil.copytree(ROOT / "src", copied, ignore=shutil.ignore_patterns("__pycache__"))
        for name, bugs in folders.items():
            if bugs:
                total += judged(name, bugs, copied, options)
    print(f"all: {score(total)}")


if __name__ == "__main__":
    main()
