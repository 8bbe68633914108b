"""Every item of every paper: it says its setting, its numbers survive the disk, it can be drawn,
and its claims hold.

The cheap ones run by default, all of them with `-m slow`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import xarray as xr

from tokenflock import papers
from tokenflock.plots import style
from tokenflock.reproduction.claim import NotRun
from tokenflock.reproduction.item import find
from tokenflock.reproduction.item import papers as find_papers
from tokenflock.reproduction.scale import QUICK

CHEAP = {"perspective/fig6", "perspective/bbgky"}


def parameters():
    return [
        pytest.param(item, id=item.name, marks=() if item.name in CHEAP else pytest.mark.slow)
        for item in find(())
    ]


@pytest.mark.parametrize("item", parameters())
def test_an_item_holds(item, tmp_path):
    home = item.load()
    try:
        data = home.compute(QUICK)
    except NotRun as reason:
        assert all(claim.measured is None for claim in home.claims(None))
        pytest.skip(str(reason))
    claims = home.claims(data)
    assert data.attrs["setting"] and claims
    assert len({claim.id for claim in claims}) == len(claims)
    failed = [
        f"{claim.id}: {claim.measured} not in {claim.interval}"
        for claim in claims
        if claim.verdict != "holds"
    ]
    assert not failed
    data.to_netcdf(tmp_path / "data.nc", engine="h5netcdf")
    loaded = xr.load_dataset if isinstance(data, xr.Dataset) else xr.open_datatree
    again = loaded(tmp_path / "data.nc", engine="h5netcdf")
    assert [claim.as_json() for claim in home.claims(again)] == [
        claim.as_json() for claim in claims
    ]
    if hasattr(home, "draw"):
        with style("light"):
            drawn = home.draw(again)
        drawn = drawn if isinstance(drawn, dict) else {"": drawn}
        assert all(figure.axes for figure in drawn.values())
        assert not any(" " in name for name in drawn)  # they are names of files


def test_ids_are_unique_over_everything():
    names = [item.name for item in find(())]
    assert len(set(names)) == len(names)


def test_a_caption_is_one_sentence_that_says_what_to_see():
    for item in find(()):
        assert item.caption.startswith("See ") and item.caption.endswith("."), item.name
        assert item.caption.count(". ") == 0, item.name


def test_no_sentence_is_cut_off():
    """Two strings on two lines are one only inside parentheses: a string that stands alone is a
    lost half of a sentence.
    """
    folder = Path(papers.__file__).parent
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            body = getattr(node, "body", None)
            for line in body[1:] if isinstance(body, list) else []:
                lost = isinstance(line, ast.Expr) and isinstance(
                    line.value, (ast.Constant, ast.JoinedStr)
                )
                assert not lost, f"{path.name}:{line.lineno}"


def test_every_paper_has_a_reference_a_question_and_a_cover():
    for paper in find_papers():
        assert len(paper.reference) > 20 and "REFERENCE" not in paper.reference
        assert paper.question.endswith("?") and paper.cover
