"""Every code block of README and docs runs as printed, in an empty folder, page by page."""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python(?P<words>[^\n]*)\n(?P<code>.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(
    r"^(?:tokenflock --import \S+|tokenflock|\.venv/bin/tokenflock) ([a-z]+)", re.M
)
QUICK = {"docs/index.md"}  # one page in the default run


def blocks(page: Path) -> list[str]:
    """The blocks of a page that are to run: not those marked `norun`."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [block["code"] for block in found if "norun" not in block["words"].split()]


def marked(page: Path):
    name = str(page.relative_to(PROJECT))
    return pytest.param(page, id=name, marks=() if name in QUICK else pytest.mark.slow)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if blocks(page)])
def test_its_code_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home = ModuleType("shown_on_a_page")
    monkeypatch.setitem(sys.modules, home.__name__, home)  # classes look for the module they are in
    scope = vars(home)
    for number, code in enumerate(blocks(page), 1):
        with redirect_stdout(io.StringIO()):
            exec(compile(code, f"{page.name}, block {number}", "exec"), scope)


def test_blocks_that_do_not_run_say_what_they_need():
    """A model, or a cluster: nothing else is excused."""
    for page in PAGES:
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            if "norun" in block["words"].split():
                wanted = r"probe\(|from_model\(|SLURMCluster|flock\.probe"
                assert re.search(wanted, block["code"]), f"{page}: {block['code']}"


def test_commands_that_are_shown_exist():
    """The subcommands in blocks of a shell are commands of the program."""
    from tokenflock.cli.app import COMMANDS

    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```(?:bash|sh)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            for name in COMMAND.findall(block):
                assert name in COMMANDS, f"{page.name} shows `tokenflock {name}`"


NAMES = re.compile(r"`((?:theory|meanfield|plots|steering|sweeps|probing|flock)\.\w+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_names_that_are_mentioned_exist(page):
    import tokenflock as flock

    for name in NAMES.findall(page.read_text(encoding="utf-8")):
        home, _, last = name.partition(".")
        folder = flock if home == "flock" else getattr(flock, home)
        assert last in dir(folder), f"{page.name} mentions {name}"
