"""A verdict that is shown is the verdict that was reached: on the page, on the terminal, in what is
remembered.
"""

from __future__ import annotations

import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
import xarray as xr

from tests.papers.test_reproduce import broken, item, only, two
from tokenflock.cli import main
from tokenflock.errors import UserError
from tokenflock.pages.paper import page
from tokenflock.reproduction.claim import Claim, at_least, at_most, near
from tokenflock.reproduction.item import find
from tokenflock.reproduction.outcome import Outcome, Report
from tokenflock.reproduction.reproduce import Audience, reproduce

__all__ = ["only"]  # a fixture

TRUE = Claim("true", "one is one", "Axiom 1", 1.0, near(1, 0.1))
FALSE = Claim("false", "one is two", "Axiom 2", 1.0, near(2, 0.1))
ABSENT = Claim("absent", "none is one", "Axiom 3", None, near(1, 0.1))


class Cells(HTMLParser):
    """The verdict and its colour in each row of a page, by claim, and in its contents, by item."""

    def __init__(self, text: str):
        super().__init__()
        self.rows, self.contents, self._row, self._link, self._into = {}, {}, None, None, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        have = dict(attrs)
        if tag == "tr":
            self._row = have.get("id")
        if tag == "a" and have.get("href", "").startswith("#"):
            self._link = have["href"][1:]
        if have.get("class", "").startswith("verdict"):
            table, key = (self.rows, self._row) if tag == "td" else (self.contents, self._link)
            self._into = table, key, have["class"].removeprefix("verdict ")

    def handle_data(self, text):
        if self._into is not None:
            table, key, colour = self._into
            table[key], self._into = (text, colour), None


def outcome(*claims: Claim, stem: str = "fig6") -> Outcome:
    (known,) = find([f"perspective/{stem}"])
    judged = tuple(replace(claim, id=f"{known.name}/{claim.id}") for claim in claims)
    return Outcome(known, "quick", judged, 1.0, "cpu", setting="n = 2")


def test_the_page_prints_the_verdict_of_each_claim():
    cells = Cells(page([outcome(TRUE, FALSE, ABSENT)], Path()))
    assert cells.rows == {
        "perspective/fig6/true": ("holds", "holds"),
        "perspective/fig6/false": ("fails", "fails"),
        "perspective/fig6/absent": ("not run", "not-run"),
    }


def test_the_contents_show_the_worst_verdict_of_an_item_and_count_all():
    parts = [outcome(TRUE, FALSE, ABSENT), outcome(TRUE, ABSENT, stem="fig3"), outcome(TRUE, TRUE)]
    shown = [Cells(page([part], Path())).contents for part in parts]
    assert shown == [
        {"perspective-fig6": ("1 holds, 1 fails, 1 not run", "fails")},
        {"perspective-fig3": ("1 holds, 1 not run", "not-run")},
        {"perspective-fig6": ("2 hold", "holds")},
    ]


def test_an_item_is_as_good_as_its_worst_claim():
    for claims, verdict in (
        ((TRUE,), "holds"),
        ((TRUE, ABSENT), "not run"),
        ((TRUE, FALSE), "fails"),
        ((ABSENT, FALSE, TRUE), "fails"),
    ):
        assert outcome(*claims).verdict == outcome(*reversed(claims)).verdict == verdict


def test_a_report_holds_unless_a_claim_fails():
    parts = outcome(TRUE), outcome(ABSENT, stem="fig3"), outcome(TRUE, FALSE, stem="fig5")
    assert Report(parts[:2]).holds and not Report(parts).holds
    assert [line.split()[0] for line in str(Report(parts)).splitlines()] == [
        "holds",
        "not",
        "holds",
        "fails",
    ]


@pytest.mark.parametrize(
    "interval",
    [
        (-math.inf, math.inf),
        (2.0, 1.0),
        (math.inf, math.inf),
        (-math.inf, -math.inf),
    ],
)
def test_a_claim_that_cannot_fail_or_cannot_hold_is_an_error(interval):
    with pytest.raises(UserError, match=r"interval of the claim 'front'.*write at_least"):
        Claim("front", "it moves", "Figure 9", 1.0, interval)


@pytest.mark.parametrize("interval", [(math.nan, 1.0), (0.0, math.nan), near(math.nan, 1)])
def test_where_no_number_is_expected_a_claim_fails_and_stays_so(tmp_path, only, interval):
    """A front whose theory gave no number is not met by every number, nor after it was saved."""
    only(item("fake", two, lambda data: [replace(TRUE, measured=0.5, interval=interval)]))
    for _ in range(2):
        report = reproduce(out=tmp_path)
        assert [claim.verdict for claim in report.claims] == ["fails"]


def test_an_item_with_such_a_claim_breaks(only):
    only(item("fake", two, lambda data: [Claim("any", "", "", 1.0, (-math.inf, math.inf))]))
    report = reproduce()
    assert [claim.id for claim in report.claims] == ["perspective/fake/finishes"]
    assert not report.holds and "interval" in report.claims[0].note


@pytest.mark.parametrize("name", ["holds", "fails"])
def test_the_interval_is_closed(name):
    step = 0.0 if name == "holds" else 1e-12
    for measured, interval in ((1 + step, at_most(1)), (1 - step, at_least(1))):
        assert Claim("", "", "", measured, interval).verdict == name


def test_a_result_of_one_model_is_not_that_of_another(tmp_path, only):
    """The number of an item that needs a model is that of the model which is asked for."""
    sizes = {str(tmp_path / "small"): 2.0, str(tmp_path / "large"): 3.0, None: 5.0}
    for path in list(sizes)[:2]:
        Path(path).mkdir()
        (Path(path) / "weights").write_text(path)
    told = []

    def measured(scale):
        return xr.Dataset({"two": sizes[scale.model]}, attrs={"setting": ""})

    only(item("fake", measured))
    watcher = Audience(ends=lambda outcome, remembered: told.append(remembered))
    for model in (*sizes, *sizes):
        report = reproduce(out=tmp_path / "report", model=model, watcher=watcher)
        assert report.claims[0].measured == sizes[model]
        same = reproduce(out=tmp_path / "report", model=model, watcher=watcher)
        assert same.claims[0].measured == sizes[model] and told[-1]


def test_a_model_with_other_weights_is_another_model(tmp_path, only):
    """The folder has the same name, its weights have changed: nothing is as before."""
    folder, weights = tmp_path / "model", [2.0, 3.0]
    folder.mkdir()

    def measured(scale):
        return xr.Dataset({"two": float((folder / "weights").read_text())}, attrs={"setting": ""})

    only(item("fake", measured))
    for weight in weights:
        (folder / "weights").write_text(str(weight))
        report = reproduce(out=tmp_path / "report", model=str(folder))
        assert report.claims[0].measured == weight


def test_what_broke_is_tried_again_and_nothing_before_it_speaks_for_it(tmp_path, only):
    """Neither its failure is remembered nor what it was when it last came to its end."""
    now = SimpleNamespace(compute=broken)
    only(item("fake", lambda scale: now.compute(scale)), item("other", two))

    def verdicts(**how):
        return [claim.verdict for claim in reproduce(out=tmp_path, **how).claims]

    assert verdicts() == ["fails", "holds"]
    now.compute = two
    assert verdicts() == ["holds", "holds"]
    now.compute = broken
    assert verdicts() == ["holds", "holds"]  # as before
    assert verdicts(again=True) == ["fails", "holds"]
    assert verdicts() == ["fails", "holds"]
    now.compute = two
    assert verdicts() == ["holds", "holds"]


def test_a_fall_stays_a_fall_on_the_way_to_disk_and_back(tmp_path, only):
    """A page that is made again from what is remembered shows the same verdicts."""
    only(item("fake", two, lambda data: [TRUE, FALSE]))
    reproduce(out=tmp_path)
    first = Cells((tmp_path / "index.html").read_text())
    report = reproduce(out=tmp_path)
    assert [claim.verdict for claim in report.claims] == ["holds", "fails"]
    assert Cells((tmp_path / "index.html").read_text()).rows == first.rows
    assert [verdict for verdict, _ in first.rows.values()] == ["holds", "fails"]


@pytest.mark.parametrize(
    ("claims", "line", "head"),
    [
        ([TRUE], "1 claim: 1 holds", "<b>1</b> claim holds"),
        ([TRUE, replace(TRUE, id="again")], "2 claims: 2 hold", "<b>2</b> claims hold"),
        ([TRUE, FALSE], "2 claims: 1 holds, 1 fails", "<b>1</b> claim fails"),
        ([FALSE, replace(FALSE, id="again")], "2 claims: 2 fail", "<b>0</b> claims hold"),
    ],
)
def test_one_claim_holds_and_two_hold(tmp_path, capsys, only, claims, line, head):
    only(item("fake", two, lambda data: claims))
    with pytest.raises(SystemExit):
        main(["reproduce", "perspective/fig6", "--out", str(tmp_path)])
    assert line in capsys.readouterr().out.splitlines()
    assert head in (tmp_path / "index.html").read_text()


def test_verify_prints_each_claim_with_its_own_verdict(capsys, only):
    only(item("fake", two, lambda data: [TRUE, FALSE]))
    with pytest.raises(SystemExit) as end:
        main(["verify", "perspective/fig6"])
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["holds", "perspective/fake/true"] in said and [
        "fails",
        "perspective/fake/false",
    ] in said
    assert end.value.code == 1
