"""The way through the house: data flows to the right, imports point to the left."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "tokenflock"
ORDER = [
    {"errors", "shapes", "catalogue"},
    {"frozen", "theory", "files"},
    {"precision", "spaces"},
    {"starts", "dynamics", "parts"},
    {"matrices", "solvers", "observables"},
    {"events"},
    {"recipe"},
    {"engines"},
    {"meanfield"},
    {"verbs"},
    {"probing/texts", "probing/surveying"},
    {"gpt"},
    {"probing"},
    {"gpt/probing"},
    {"plots"},
    {"reproduction"},
    {"pages", "papers"},
    {"reproduction/folder"},
    {"reproduction/reproduce"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
ONLY_IN = {
    "matplotlib": "plots",
    "imageio_ffmpeg": "plots",
    "PIL": "plots",
    "cyclopts": "cli",
    "rich": "cli",
    "diffrax": "engines",
    "numba": "engines",
    "optax": "gpt",
    "safetensors": "gpt",
    "torch": "probing",
    "transformers": "probing",
}
FILES = sorted(ROOT.rglob("*.py"))


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
def test_imports_point_to_the_left_and_heavy_libraries_have_one_room(path):
    here = home(path)
    for module, names in imports(path):
        first, *rest = module.split(".")
        assert ONLY_IN.get(first, here) == here, f"{path} imports {first}"
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
