"""The way through the house: data flows to the right, imports point to the left."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import FunctionType

import pytest

ROOT = Path(__file__).parents[1] / "src" / "tokenflock"
ORDER = [
    {"errors", "shapes", "catalogue"},
    {"frozen", "theory", "locks"},
    {"files"},
    {"precision", "spaces"},
    {"starts", "dynamics", "parts"},
    {"matrices", "solvers", "observables"},
    {"events"},
    {"recipe"},
    {"engines"},
    {"meanfield"},
    {f"sweeps/{name}" for name in ("cut", "own", "arrays", "log", "unfinished", "store", "pooling")}
    | {"sweeps/reading"},
    {"verbs"},
    {"sweeps"},
    {"steering"},
    {"probing/texts", "probing/surveying"},
    {"gpt"},
    {"probing"},
    {"gpt/probing"},
    {"plots"},
    {"laboratory"},
    {"reproduction"},
    {"pages", "papers"},
    {"reproduction/folder"},
    {"reproduction/reproduce"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
ONLY_IN = {  # heavy libraries, and the rooms that may import them
    "matplotlib": {"plots"},
    "imageio_ffmpeg": {"plots"},
    "PIL": {"plots"},
    "cyclopts": {"cli"},
    "rich": {"cli"},
    "diffrax": {"engines"},
    "llvmlite": {"engines"},
    "optax": {"gpt", "steering"},
    "safetensors": {"gpt"},
    "distributed": {"sweeps"},
    "zarr": {"sweeps/reading"},
    "torch": {"probing"},
    "transformers": {"probing"},
}
FILES = sorted(ROOT.rglob("*.py"))
LONGEST = 60  # lines of a function, its docstring included
MOST_PARAMETERS = 13
WIDEST = 100  # characters of a line
MOST_ROOT_MODULES = 8


def room(parts: Sequence[str]) -> str:
    """The room of a module: its folder, or the file itself where it has a place of its own."""
    return next((name for name in ("/".join(parts[:2]), parts[0]) if name in RANK), parts[0])


def home(path: Path) -> str:
    return room(path.relative_to(ROOT).with_suffix("").parts)


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_to_the_left_and_heavy_libraries_stay_in_their_rooms(path):
    here = home(path)
    for module, names in imports(path):
        first, *rest = module.split(".")
        assert here in ONLY_IN.get(first, {here}), f"{path} imports {first}"
        if first != "tokenflock":
            continue
        for part in (room([*rest, name]) for name in names or [""]):
            if here in RANK and part in RANK:
                assert RANK[part] <= RANK[here], f"{path} imports {part}, which lies to its right"


def test_every_room_has_a_place():
    assert {home(path) for path in FILES} - {"__init__", "__main__"} <= set(RANK)


def test_no_two_public_classes_share_a_name():
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_the_project_names_no_device_and_flips_no_global_switch():
    """Known bugs of the field: a device name hard-coded, a precision switched for everybody."""
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert "cuda:0" not in text
        assert "jax_enable_x64" not in text


def test_listing_and_importing_load_nothing_heavy():
    code = (
        "import sys, tokenflock; from tokenflock.catalogue import entries, KINDS;"
        "n = sum(len(entries(kind)) for kind in KINDS); assert n > 100, n;"
        "import tokenflock.dynamics, tokenflock.plots;"
        "print(sorted({'jax', 'diffrax', 'matplotlib', 'xarray', 'scipy'} & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == "[]"


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom tokenflock.cli import main\n"
        "try:\n    main(['simulate', '--dynamics', 'causal', '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'jax', 'diffrax', 'matplotlib'} & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip().endswith("[]")
    assert "queries" in out


def test_stubs_say_what_is_there():
    """Editors see every public name: `python tools/stubs.py` writes what this compares."""
    folder = ROOT.parents[1] / "tools"
    done = subprocess.run(
        [sys.executable, str(folder / "stubs.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, f"run python tools/stubs.py: {done.stdout}{done.stderr}"


def test_the_version_is_said_in_one_way():
    import tokenflock

    project = ROOT.parents[1]
    assert f"version: {tokenflock.__version__}\n" in (project / "CITATION.cff").read_text()
    assert 'dynamic = ["version"]' in (project / "pyproject.toml").read_text()


def test_the_module_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "tokenflock", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.strip()


def functions(path: Path):
    """Every function of a file, methods and inner ones too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def parameters(function: ast.FunctionDef) -> list[str]:
    """What a function is called with; `self` and `cls` are not asked for."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [part.arg for part in named if part is not None and part.arg not in ("self", "cls")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_are_short_and_ask_for_little(path):
    for function in functions(path):
        length = (function.end_lineno or 0) - function.lineno + 1
        assert length <= LONGEST, f"{path}: {function.name} has {length} lines"
        count = len(parameters(function))
        assert count <= MOST_PARAMETERS, f"{path}: {function.name} has {count} parameters"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        assert len(line) <= WIDEST, f"{path}:{number} has {len(line)} characters"


def test_most_functions_ask_for_less_than_nine():
    counts = [len(parameters(function)) for path in FILES for function in functions(path)]
    assert sum(count >= 9 for count in counts) <= 0.01 * len(counts)


def test_the_root_holds_few_modules():
    modules = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}
    assert len(modules) <= MOST_ROOT_MODULES, sorted(modules)


def undocumented(module: str) -> list[str]:
    """Public functions, classes and methods without a text, their own or of what they override."""
    home = importlib.import_module(module)
    own = {
        name: value
        for name, value in vars(home).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module
    }
    bare = [
        name
        for name, value in own.items()
        if (inspect.isfunction(value) or inspect.isclass(value)) and not inspect.getdoc(value)
    ]
    for name, cls in own.items():
        if inspect.isclass(cls):
            bare += [f"{name}.{part}" for part in _methods(cls) if not _told(cls, part)]
    return bare


def _methods(cls: type) -> list[str]:
    """Public methods and properties that a class defines; a default that is a lambda is none."""
    kinds = (property, cached_property, classmethod, staticmethod, FunctionType)
    return [
        name
        for name, value in vars(cls).items()
        if not name.startswith("_")
        and isinstance(value, kinds)
        and getattr(value, "__name__", name) != "<lambda>"
    ]


def _told(cls: type, name: str) -> bool:
    return any(inspect.getdoc(vars(base)[name]) for base in cls.__mro__ if name in vars(base))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_function_says_what_it_does(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    if parts[-1] == "__main__":
        return  # it runs the command when it is imported
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    assert undocumented(module) == []
