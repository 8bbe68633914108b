"""What `reproduce` promises: pages, claims, resuming, honesty about what broke or did not run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import xarray as xr

from tokenflock.cli import main
from tokenflock.plots import panels
from tokenflock.reproduction import folder as filing
from tokenflock.reproduction import reproduce as reproducing
from tokenflock.reproduction.claim import (
    Claim,
    NotRun,
    at_least,
    at_most,
    between,
    monte_carlo,
    near,
)
from tokenflock.reproduction.item import Item, find, papers
from tokenflock.reproduction.reproduce import Audience, reproduce


@dataclass(frozen=True)
class Fake(Item):
    """An item that lives in a test."""

    home: Any = field(default=None, compare=False)

    def load(self):
        return self.home


def item(stem: str, compute, claims=None, **more) -> Fake:
    claims = claims or (
        lambda data: [
            Claim("two", "one and one are two", "Axiom 1", float(data.two), near(2, 1e-9))
        ]
    )
    return Fake(
        "perspective",
        stem,
        f"Title of {stem}",
        "How <it> was done.",
        "Figure 9",
        home=SimpleNamespace(compute=compute, claims=claims, **more),
    )


def two(scale):
    return xr.Dataset({"two": 1 + 1.0}, attrs={"setting": "n = 2"})


def draw(data):
    figure, (ax,) = panels()
    ax.plot([0, 1], [0, float(data.two)])
    return {"": figure, "again": figure}


def broken(scale):
    raise ZeroDivisionError("one by zero")


def absent(scale):
    raise NotRun("needs a model")


@pytest.fixture
def only(monkeypatch):
    """Make these the only items there are."""

    def put(*items):
        for home in (reproducing, filing):
            monkeypatch.setattr(home, "find", lambda names: list(items))

    return put


def test_verdicts():
    def claim(measured, interval):
        return Claim("", "", "", measured, interval).verdict

    assert claim(1.0, near(1, 0.1)) == "holds"
    assert claim(1.2, near(1, 0.1)) == "fails"
    assert claim(None, near(1, 0.1)) == "not run"
    assert claim(float("nan"), between(-1e9, 1e9)) == "fails"
    assert claim(float("inf"), at_least(0)) == "fails"
    assert claim(-3.0, at_most(0)) == "holds"
    assert claim(0.58, monte_carlo(0.5, 0.02)) == "holds"
    assert claim(0.59, monte_carlo(0.5, 0.02)) == "fails"


def test_a_report_has_its_page_its_claims_its_numbers_and_its_figures(tmp_path, only):
    only(item("fake", two, draw=draw))
    report = reproduce(out=tmp_path)
    assert report.holds
    page = (tmp_path / "index.html").read_text()
    assert "One and one are two" in page and "How &lt;it&gt; was done." in page and "n = 2" in page
    assert 'src="data:image/png;base64,' in page
    # letters of a picture are no address
    words = re.sub(r"base64,[^\"']+|https://arxiv\.org", "", page.split("</style>")[1])
    assert "http" not in words
    (claim,) = json.loads((tmp_path / "claims.json").read_text())
    assert (
        claim["id"] == "perspective/fake/two"
        and claim["verdict"] == "holds"
        and claim["measured"] == 2.0
    )
    assert set(claim) >= {"id", "statement", "source", "measured", "interval", "verdict", "note"}
    assert float(xr.load_dataset(tmp_path / "data/perspective/fake.nc").two) == 2.0
    for name in ("fake", "fake-again"):
        for suffix in ("png", "pdf"):
            assert (tmp_path / f"figures/perspective/{name}.{suffix}").stat().st_size > 1000


def test_what_breaks_or_cannot_run_is_said_and_stops_nothing(tmp_path, only):
    def unrun(data):
        return [Claim("mean", "it clusters", "Figure 1", data and float(data.two), at_least(0))]

    only(item("bad", broken), item("none", absent, unrun), item("good", two))
    report = reproduce(out=tmp_path)
    assert [claim.verdict for claim in report.claims] == ["fails", "not run", "holds"]
    assert not report.holds
    assert "one by zero" in report.claims[0].note
    assert "needs a model" in report.claims[1].note
    page = (tmp_path / "index.html").read_text()
    assert "ZeroDivisionError" in page and "needs a model" in page


def test_a_report_resumes_and_runs_again_only_when_it_must(tmp_path, only):
    count = []

    def counted(scale):
        return count.append(scale.name) or two(scale)

    stop = SimpleNamespace(now=True)

    def interrupted(scale):
        if stop.now:
            raise KeyboardInterrupt
        return two(scale)

    only(item("first", counted), item("second", interrupted))
    with pytest.raises(KeyboardInterrupt):
        reproduce(out=tmp_path)
    assert len(json.loads((tmp_path / "claims.json").read_text())) == 1
    stop.now = False
    told = []
    report = reproduce(
        out=tmp_path, watcher=Audience(ends=lambda outcome, remembered: told.append(remembered))
    )
    assert count == ["quick"] and told == [True, False] and len(report.claims) == 2
    reproduce(out=tmp_path, again=True)
    assert count == ["quick", "quick"]
    reproduce(out=tmp_path, scale="paper")
    assert count == ["quick", "quick", "paper"]
    (tmp_path / "data/perspective/first.nc").unlink()
    reproduce(out=tmp_path, scale="paper")
    assert len(count) == 4


def test_a_page_keeps_what_was_there_of_other_items(tmp_path, monkeypatch):
    """One item today, another tomorrow: the page and the claims have both."""
    items = [item("first", two), item("second", two)]
    monkeypatch.setattr(filing, "find", lambda names: items)
    for one in items:
        monkeypatch.setattr(reproducing, "find", lambda names, one=one: [one])
        reproduce(out=tmp_path)
    assert len(json.loads((tmp_path / "claims.json").read_text())) == 2
    page = (tmp_path / "index.html").read_text()
    assert all(one.name.rpartition("/")[2] in page for one in items)


def test_claims_survive_the_way_to_disk_and_back(tmp_path, only):
    def many(data):
        return [
            Claim("a", "s", "t", 1.5, at_most(2), error=0.1, note="n", erratum="e"),
            Claim("b", "s", "t", float("nan"), at_least(2)),
        ]

    only(item("fake", two, many))
    first, second = reproduce(out=tmp_path), reproduce(out=tmp_path)
    assert first.claims[0] == second.claims[0]
    assert [claim.verdict for claim in second.claims] == ["holds", "fails"]


def test_every_item_says_where_it_comes_from():
    assert {"perspective"} <= {paper.name for paper in papers()}
    for one in find(()):
        assert one.title and one.how and one.source, one.name
    names = [one.source for one in find(["perspective"])]
    assert names[0].startswith("Figure") and not names[-1].startswith("Figure")


def test_the_command_line(tmp_path, capsys):
    def run(*words):
        with pytest.raises(SystemExit) as end:
            main(list(words))
        return end.value.code, capsys.readouterr()

    code, said = run("reproduce", "perspective/fig6", "--out", str(tmp_path / "report"))
    assert code == 0 and "6 hold" in said.out and (tmp_path / "report/index.html").exists()
    code, said = run("verify", "perspective/fig6", "--out", str(tmp_path / "claims.json"))
    assert code == 0 and len(json.loads((tmp_path / "claims.json").read_text())) == 6
    code, said = run("reproduce", "--list")
    assert code == 0 and "perspective/fig6" in said.out
    code, said = run("reproduce", "perspectiv")
    assert code == 2 and "perspective" in said.err
    code, said = run("reproduce", "perspective/fig6", "--out", "/proc/none")
    assert code == 2 and "--out" in said.err


def test_a_claim_that_fails_makes_the_exit_code_one(tmp_path, monkeypatch, only):
    def wrong(data):
        return [Claim("two", "one and one are three", "Axiom 1", float(data.two), near(3, 1e-9))]

    only(item("fake", two, wrong))
    for words in (
        ["reproduce", "perspective/fig6", "--out", str(tmp_path)],
        ["verify", "perspective/fig6"],
    ):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 1
