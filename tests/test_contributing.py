"""CONTRIBUTING is enough: what it says, word for word, in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
TEXT = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"`(src/tokenflock/\S+\.py)`:\n\n```python\n(.*?)```", TEXT, re.DOTALL)
BOUNDED = re.search(r"says so:\n\n```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The project with the files that CONTRIBUTING writes."""
    home = tmp_path_factory.mktemp("copy")
    for name in ("src", "tests", "tools"):
        shutil.copytree(PROJECT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", home)
    for place, code in BLOCKS:
        (home / place).write_text(code, encoding="utf-8")
    law = home / BLOCKS[0][0]
    law.write_text(law.read_text(encoding="utf-8") + "\n" + BOUNDED[1], encoding="utf-8")
    return home


def python(home: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(home / "src")}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_it_shows_a_law_an_observable_and_a_closed_form():
    assert [Path(place).parent.name for place, _ in BLOCKS] == ["dynamics", "observables", "theory"]


@pytest.mark.slow
def test_its_commands_run(copy):
    python(copy, "tools/stubs.py")
    python(copy, "tools/stubs.py", "--check")
    run = ["-m", "tokenflock", "simulate", "--t", "1", "--n", "8", "--d", "3", "--out", "run.nc"]
    law = ["--dynamics", "linear-attention", "--beta", "2", "--observe", "widest-pair"]
    python(copy, *run, *law)
    assert "geshkovski" in python(copy, "-m", "tokenflock", "cite", "run.nc")
    assert "1.359" in python(copy, "-m", "tokenflock", "theory", "consensus-energy", "--beta", "1")


@pytest.mark.slow
def test_its_members_keep_the_contracts_because_they_exist(copy):
    """At least one contract of each kind is met, and none fails."""
    files = ["laws/test_dynamics.py", "laws/test_observables.py", "laws/test_extremes.py"]
    files += ["laws/test_engines.py", "oracles/test_theory_contract.py", "test_house.py"]
    names = "linear or WidestPair or widest or consensus"
    out = python(copy, "-m", "pytest", *(f"tests/{file}" for file in files), "-vv", "-k", names)
    for kind in ("linear-attention", "WidestPair", "widest-pair", "consensus_energy"):
        assert re.search(rf"{kind}\S* PASSED", out), out[-3000:]


@pytest.mark.slow
def test_a_false_declaration_fails(copy):
    place = copy / BLOCKS[0][0]
    text = place.read_text(encoding="utf-8")
    place.write_text(text.replace("        return False\n", "        return True\n"), "utf-8")
    with pytest.raises(AssertionError, match=r"FAILED .*linear-attention"):
        python(copy, "-m", "pytest", "tests/laws/test_extremes.py", "-k", "linear and one_size")
    place.write_text(text, encoding="utf-8")
