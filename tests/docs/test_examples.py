"""The scripts of examples/ are well-formed lessons and run as printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
sys.path.append(str(PROJECT / "tools" / "docs"))

from cells import FormatError, of_page, of_script, summary, title  # noqa: E402

SCRIPTS = sorted((PROJECT / "examples").rglob("plot_*.py"))
LESSONS = [path for path in SCRIPTS if path.parent.name == "lessons"]


def named(path: Path) -> str:
    return str(path.relative_to(PROJECT))


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_a_script_has_a_title_a_summary_and_captions(path):
    cells = of_script(path.read_text(encoding="utf-8"), path.name)
    assert title(cells)
    assert 20 < len(summary(cells)) < 400
    assert all("\n" not in cell.caption for cell in cells)


@pytest.mark.parametrize("path", LESSONS, ids=named)
def test_a_lesson_has_one_live_figure_and_exercises_with_answers(path):
    text = path.read_text(encoding="utf-8")
    cells = of_script(text, path.name)
    assert text.count("embed=True") == 1
    assert "## Exercises" in text
    folded = [cell.folded for cell in cells]
    answers = sum(now and not before for before, now in zip([False, *folded], folded))
    assert 2 <= answers <= 4


def ran(path: Path, folder: Path) -> subprocess.CompletedProcess:
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(PROJECT / "src")}
    command = [sys.executable, str(path)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_it_runs_as_plain_python_and_leaves_nothing_behind(path, tmp_path):
    done = ran(path, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(tmp_path.iterdir()) == []


def test_a_script_that_is_not_one_is_refused_with_the_remedy():
    with pytest.raises(FormatError, match=r"begin with '# %% \[markdown\]'"):
        of_script("import numpy\n", "x.py")
    with pytest.raises(FormatError, match="must start with '# '"):
        of_script("# %% [markdown]\n# # Title\nnot a comment\n", "x.py")


def test_the_runner_shows_what_a_notebook_would(tmp_path):
    """Printed text, a value, a figure, a live figure: in that order, of the cell that made it."""
    import json

    cells = [
        "print('said')\n1 + 1",
        "from matplotlib.figure import Figure\nfigure = Figure()\nfigure.subplots().plot([1, 2])",
        "figure.axes[0]",
        "x = 3",
        "class Page:\n    html = '<style></style><body></body>'\n    save = None\nPage()",
    ]
    (tmp_path / "cells.json").write_text(json.dumps(cells), encoding="utf-8")
    runner = PROJECT / "tools" / "docs" / "runner.py"
    command = [sys.executable, str(runner), str(tmp_path / "cells.json"), str(tmp_path), "page"]
    subprocess.run(command, check=True, capture_output=True)
    shown = json.loads((tmp_path / "outputs.json").read_text(encoding="utf-8"))["cells"]
    assert (shown[0]["printed"], shown[0]["value"]) == ("said\n", "2")
    assert shown[2]["pictures"] == ["page-1.png"] and (tmp_path / "page-1.png").exists()
    assert shown[3] == {"pictures": [], "live": [], "value": "", "printed": ""}
    assert shown[4]["live"] == ["page-2.html"]
    assert "tokenflockTheme" in (tmp_path / "page-2.html").read_text(encoding="utf-8")


def test_blocks_of_a_page_are_cells():
    shown = "```python\n# caption: See.\nf()\n```\n\n```python norun\ng()\n```\n"
    cells = of_page("---\nrun: true\n---\n# T\n\n" + shown)
    assert [(cell.kind, cell.caption, cell.runs) for cell in cells] == [
        ("markdown", "", False),
        ("code", "See.", True),
        ("code", "", False),
    ]
