"""The reference has every public name; the catalogue and the verdicts have every member."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
ROOT = PROJECT / "src" / "tokenflock"
STUBS = sorted(ROOT.rglob("__init__.pyi"))


@pytest.fixture(scope="module")
def tools():
    """The modules of tools/docs."""
    sys.path.insert(0, str(PROJECT / "tools" / "docs"))
    import catalogues
    import reference

    yield {"reference": reference, "catalogues": catalogues}
    sys.path.remove(str(PROJECT / "tools" / "docs"))


@pytest.fixture(scope="module")
def pages(tools):
    return tools["reference"].pages()


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.parent.name)
def test_every_name_of_the_typed_surface_has_its_place(stub, tools, pages):
    """What editors see is what the reference tells, read from the stubs themselves."""
    folder = stub.parent.name
    listed = re.search(r"__all__ = \[(.*?)\]", stub.read_text(encoding="utf-8"), re.DOTALL)
    names = re.findall(r'"(\w+)"', listed[1])
    assert folder in tools["reference"].FOLDERS, f"no page of the reference is for {folder}"
    page = pages[f"reference/{folder}.md"]
    rooms = {path.name for path in stub.parent.iterdir()} | {
        f.stem for f in stub.parent.glob("*.py")
    }
    for name in names:
        label = f"({tools['reference'].anchor(folder, name)})="
        assert label in page or (name in rooms and f"`{name}`" in page), f"{folder}.{name}"


def test_entries_tell_something(pages):
    """No public name stands there without a text."""
    for name, page in pages.items():
        for row in re.findall(r"^\| \[`(\w+)`\]\(#\S+\) \| (.*) \|$", page, re.MULTILINE):
            assert row[1].strip(), f"{name}: {row[0]} says nothing"


def test_the_catalogue_lists_every_member_with_its_options(tools):
    from tokenflock.catalogue import KINDS, entries

    page = tools["catalogues"].page()
    for kind in KINDS:
        for entry in entries(kind):
            row = re.search(rf"^\|.*\[`{entry.name}`\]\(reference/{kind}\.md#.*$", page, re.M)
            assert row, f"{kind}.{entry.name} is not in the catalogue"
            assert all(f"`{option.name}`" in row[0] for option in entry.options)


@pytest.mark.parametrize(
    "module", ["cells", "docstrings", "links", "reference", "verdicts"], ids=lambda name: name
)
def test_the_tools_do_what_their_docstrings_show(tools, module):
    import doctest
    import importlib

    done = doctest.testmod(importlib.import_module(module))
    assert done.attempted > 0 and done.failed == 0


def test_a_claim_is_a_row_with_its_formula_its_number_and_its_interval(tools):
    import importlib

    from tokenflock.reproduction.claim import Claim, between

    verdicts = importlib.import_module("verdicts")
    claim = Claim("c", "the norm $|x_1|$ of x_1 is one", "(2.1)", 1.0001, between(0.9, 1.1), 0.02)
    row = verdicts._claim(verdicts.values(claim))
    sentence, source, number, interval, verdict = row.strip("| ").split(" | ")
    assert sentence.startswith("the norm <math>") and sentence.endswith(r"</math> of x\_1 is one")
    assert "<msub><mi>x</mi><mn>1</mn></msub>" in sentence and "|" not in sentence
    assert (source, number, interval, verdict) == ("(2.1)", "1.0001 ± 0.02", "0.9 to 1.1", "✓")
    false = Claim("c", "s", "(2.1)", 2.0, between(0.9, 1.1), erratum="printed 2")
    assert "✗ fails" in verdicts._claim(verdicts.values(false))
    assert "*In print:* printed 2" in verdicts._claim(verdicts.values(false))
