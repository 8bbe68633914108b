"""What a terminal shows: whole words, whole names, verdicts above one bar; a pipe gets lines."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console
from rich.text import Text

from tokenflock.cli import console as home
from tokenflock.cli import listing, main, reproduce, verdicts
from tokenflock.reproduction.claim import Claim, at_most
from tokenflock.reproduction.item import find, papers
from tokenflock.reproduction.outcome import Outcome, Report

CLAIM = Claim(
    "perspective/orthogonal/sa-1",
    "at $β = 4$ the greatest of all differences between the cosines of tokens falls below $1e-09$",
    "Theorem 6.8, (6.9)",
    4.85183382,
    at_most(4.0),
    error=9.9e-7,
    note="from $-3.2e+03$ on",
)


@pytest.fixture
def screen(monkeypatch):
    """A terminal of some width, or a pipe, in place of the real one; what was written on it."""

    def make(width: int | None) -> io.StringIO:
        file = io.StringIO()
        shown = Console(file=file, width=width, force_terminal=width is not None, highlight=False)
        for module in (home, listing, reproduce, verdicts):
            monkeypatch.setattr(module, "console", shown)
        monkeypatch.setattr(home.hanging, "__defaults__", (shown,))
        return file

    return make


def lines(file: io.StringIO) -> list[str]:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue()).splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_a_list_keeps_names_whole_and_hangs_titles(screen, width):
    file = screen(width)
    reproduce._list()
    shown = lines(file)
    assert all(len(line) <= width for line in shown)
    names = [item.name for paper in papers() for item in paper.items]
    assert [
        line.split()[0] for line in shown if re.match(r"  \S", line) and "/" in line.split()[0]
    ] == names
    words = set(" ".join(shown).split())
    assert all(set(item.title.split()) & words for paper in papers() for item in paper.items)


def test_a_member_in_full_has_its_paragraphs_in_lines_of_the_terminal(screen):
    file = screen(80)
    listing.listing("observables", "energy")
    shown = lines(file)
    assert all(len(line) <= 80 for line in shown)
    filled = [line for line in shown if line.startswith(("`paper`", "arXiv", "domain"))]
    assert len(filled) == 3 and min(map(len, filled)) > 70  # no line ends where the file's does
    assert ">>> import jax.numpy as jnp" in shown
    assert any("(default paper)" in line for line in shown) and "None" not in file.getvalue()


def test_help_names_a_choice_once(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["plot", "--help"])
    assert "--kind CHOICE  " in capsys.readouterr().out


@pytest.mark.parametrize("width", [80, 120])
def test_no_word_of_a_verdict_is_broken(screen, width):
    file = screen(width)
    (item,) = find(["perspective/orthogonal"])
    verdicts.tell(Report((Outcome(item, "quick", (CLAIM,), 1.0, "cpu"),)))
    shown = lines(file)
    assert all(len(line) <= width for line in shown)
    said = " ".join(" ".join(shown).split())
    assert "falls below 10⁻⁹ [Theorem 6.8, (6.9)]" in said
    assert "measured 4.851834 ± 0.000001, must be ≤ 4" in said and "from −3200 on" in said


@pytest.mark.parametrize("width", range(40, 80))
def test_no_line_of_a_verdict_ends_within_a_formula(screen, width):
    file = screen(width)
    (item,) = find(["perspective/orthogonal"])
    claim = replace(
        CLAIM, statement="a rate of the tokens is $C e^(2t) + 1/n <= 4 t$ where they go"
    )
    verdicts.tell(Report((Outcome(item, "quick", (claim,), 1.0, "cpu"),)))
    assert any("C e²ᵗ + 1/n ≤ 4 t" in line for line in lines(file))


def test_a_pipe_gets_one_line_each_and_no_bar(screen):
    file = screen(None)
    items = find(["perspective/orthogonal", "perspective/hemisphere"])
    with verdicts.watching(items) as watcher:
        for item in items:
            watcher.begins(item)
            watcher.goes(1, 2)
            watcher.ends(Outcome(item, "quick", (CLAIM,), 1.0, "cpu"), False)
    assert "\x1b" not in file.getvalue() and "━" not in file.getvalue()
    assert [line.split() for line in lines(file)] == [
        [item.name, "1.0", "s", "1", "fails"] for item in items
    ]


def test_on_a_terminal_the_verdicts_stand_above_the_bar(screen):
    file = screen(80)
    (item,) = find(["perspective/orthogonal"])
    with verdicts.watching([item]) as watcher:
        watcher.begins(item)
        watcher.ends(Outcome(item, "quick", (CLAIM,), 1.0, "cpu"), False)
    written = file.getvalue()
    verdict, bar = written.index("1 fails"), written.rindex("━")
    assert verdict < bar  # drawn again below it
    assert written.rindex("\x1b[2K") > bar  # and wiped in the end


def test_further_lines_of_an_error_are_indented(screen):
    file = screen(40)
    home.hanging(Text("error: " + "word " * 20), 7)
    first, *rest = lines(file)
    assert first.startswith("error: word") and rest
    assert all(line.startswith("       word") for line in rest)
    assert " ".join(lines(file)).split().count("word") == 20
