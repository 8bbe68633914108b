"""A report on disk, piece by piece: films, live pages, what is recalled, numbers from workers."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from tests.papers.test_reproduce import draw, item, only, two
from tokenflock import plots
from tokenflock.dynamics import SelfAttention
from tokenflock.laboratory import lab as laboratory
from tokenflock.reproduction import folder as filing
from tokenflock.reproduction import reproduce as reproducing
from tokenflock.reproduction.claim import Claim, near
from tokenflock.reproduction.folder import Folder, mark, model_mark
from tokenflock.reproduction.item import Item, find
from tokenflock.reproduction.outcome import Outcome
from tokenflock.reproduction.reproduce import Audience, compute_item, reproduce
from tokenflock.starts import Uniform

__all__ = ["only"]  # a fixture


def films(data):
    return {"plain": data, "turned": (data, {"view": "sphere"})}


def test_films_and_live_pages_are_made_where_the_report_says(tmp_path, only, monkeypatch):
    """Ten seconds a film, with the options that the item gives; the page is the law's own."""
    shot, shown = {}, {}

    class Page:
        def save(self, path):
            path.write_text("live", encoding="utf-8")

    def film(run, path, **how):
        shot[path.relative_to(tmp_path).as_posix()] = how
        path.write_bytes(b"film")

    def lab(law, start, **how):
        shown.update(law=law, start=start, **how)
        return Page()

    monkeypatch.setattr(plots, "film", film)
    monkeypatch.setattr(laboratory, "lab", lab)
    law, start = SelfAttention(beta=4.0), Uniform(n=8, d=2)
    only(item("moves", two, films=films, live=lambda: (law, start)))
    (outcome,) = reproduce(out=tmp_path).outcomes
    places = ("films/perspective/moves-plain.mp4", "films/perspective/moves-turned.mp4")
    assert outcome.films == places and outcome.figures == ()
    assert shot == {places[0]: {"seconds": 10}, places[1]: {"seconds": 10, "view": "sphere"}}
    assert outcome.live == "live/perspective/moves.html" and (tmp_path / outcome.live).exists()
    assert shown == {"law": law, "start": start, "embed": True}
    (again,) = reproduce(out=tmp_path).outcomes
    assert again == outcome


@pytest.mark.parametrize(
    "lost",
    ["data/perspective/all.nc", "films/perspective/all-plain.mp4", "live/perspective/all.html"]
    + [f"figures/perspective/all-again{end}" for end in (".png", ".pdf", "-dark.png")],
)
def test_an_item_of_which_a_file_is_lost_is_run_again(tmp_path, lost):
    known = item("all", two, draw=draw)
    stems = ("figures/perspective/all", "figures/perspective/all-again")
    outcome = Outcome(
        known,
        "quick",
        (Claim("all/two", "two", "Axiom", 2.0, near(2, 0.1)),),
        1.5,
        "cpu",
        "n = 2",
        stems,
        ("films/perspective/all-plain.mp4",),
        "live/perspective/all.html",
        "data/perspective/all.nc",
    )
    files = [outcome.data, outcome.live, *outcome.films]
    files += [stem + end for stem in stems for end in (".png", ".pdf", "-dark.png")]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    folder = Folder(tmp_path)
    folder.remember(outcome, None)
    assert folder.recall(known, "quick", None, True) == outcome
    assert folder.recall(known, "quick", None, False) == outcome
    assert folder.recall(known, "paper", None, True) is None
    assert folder.recall(known, "quick", "albert", True) is None
    (tmp_path / lost).unlink()
    assert folder.recall(known, "quick", None, True) is None


def test_what_was_not_drawn_is_recalled_only_where_no_figure_is_wanted(tmp_path, only):
    drawn = item("drawn", two, draw=draw)
    only(drawn)
    reproduce(out=tmp_path, figures=False)
    folder = Folder(tmp_path)
    assert folder.recall(drawn, "quick", None, True) is None
    assert folder.recall(drawn, "quick", None, False) is not None
    bare = item("drawn", two)  # has nothing to draw
    assert folder.recall(bare, "quick", None, True) is not None


@pytest.mark.parametrize("name", ["data", "figures", "films", "live"])
@pytest.mark.parametrize(
    "place", ["{folder}/perspective/other", "{folder}/perspective/own/../../x", "/etc/passwd", 7]
)
def test_a_note_names_files_of_its_own_item_alone(tmp_path, only, name, place):
    known = item("own", two)
    only(known)
    reproduce(out=tmp_path)
    path = tmp_path / "data" / "perspective" / "own.json"
    note = json.loads(path.read_text(encoding="utf-8"))
    place = place.format(folder=name) if isinstance(place, str) else place
    path.write_text(json.dumps(note), encoding="utf-8")
    assert Folder(tmp_path).recall(known, "quick", None, False) is not None
    note[name] = [place] if name in ("figures", "films") else place
    path.write_text(json.dumps(note), encoding="utf-8")
    assert Folder(tmp_path).recall(known, "quick", None, False) is None


def test_a_page_has_no_item_of_other_code(tmp_path, only, monkeypatch):
    """What another version of the library noted is neither recalled nor on the page."""
    first, second = item("first", two), item("second", two)
    only(first)
    reproduce(out=tmp_path)
    monkeypatch.setattr(filing, "source_mark", lambda: "0123456789abcdef")
    monkeypatch.setattr(reproducing, "find", lambda names: [second])
    monkeypatch.setattr(filing, "find", lambda names: [first, second])
    reproduce(out=tmp_path)
    claims = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in claims] == ["perspective/second/two"]


def test_a_mark_is_that_of_code_scale_and_model(tmp_path):
    code = filing.source_mark()
    assert len(code) == 16 and set(code) <= set("0123456789abcdef")
    assert mark("quick", None) == f"{code} quick"
    assert mark("paper", "org/albert") == f"{code} paper org/albert"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "weights").write_bytes(bytes(3 << 20))
    before = model_mark(str(tmp_path))
    assert len(before) == 64 and mark("quick", str(tmp_path)) == f"{code} quick {before}"
    (tmp_path / "deep" / "weights").write_bytes(bytes((3 << 20) - 1) + b"1")  # the last byte
    after = model_mark(str(tmp_path))
    (tmp_path / "config").touch()
    assert len({before, after, model_mark(str(tmp_path))}) == 3


def test_workers_give_numbers_seconds_and_device(monkeypatch):
    """What is not done is computed by workers, judged here, and told in the order of the items."""
    begun, ended = [], []
    names = [f"perspective/{stem}" for stem in ("fig6", "fig3")]
    data = xr.Dataset({"two": 2.0}, attrs={"setting": "from elsewhere"})

    def side_by_side(address, work, each):
        assert address == "tcp://there" and work is compute_item
        assert each == [(name, "paper", "albert") for name in names]
        for number in (1, 0):  # the last is ready first
            yield number, lambda number=number: (data, 1000.0 + number, f"card {number}")

    homes = [item(name.split("/")[1], two) for name in names]
    monkeypatch.setattr(reproducing, "find", lambda asked: homes)
    monkeypatch.setattr(reproducing, "side_by_side", side_by_side)
    watcher = Audience(
        begins=lambda one: begun.append(one.name),
        ends=lambda outcome, remembered: ended.append((outcome.item.name, remembered)),
    )
    report = reproduce(names, scale="paper", model="albert", dask="tcp://there", watcher=watcher)
    assert begun == names[::-1] and ended == [(name, False) for name in names[::-1]]
    assert [outcome.item.name for outcome in report.outcomes] == names
    for number, outcome in enumerate(report.outcomes):
        assert outcome.device == f"card {number}" and outcome.setting == "from elsewhere"
        assert 0 <= outcome.seconds - (1000 + number) < 60
        assert outcome.verdict == "holds" and outcome.scale == "paper"


def test_a_worker_computes_an_item_at_its_scale(monkeypatch):
    asked = []

    def compute(scale):
        asked.append((scale.name, scale.progress, scale.model))
        time.sleep(0.02)
        return two(scale)

    monkeypatch.setattr(reproducing, "find", lambda names: [item("slow", compute)])
    data, seconds, device = compute_item("perspective/slow", "paper", "albert")
    assert asked == [("paper", None, "albert")] and float(data.two) == 2.0
    assert 0.02 <= seconds < 60 and isinstance(device, str)


def test_an_item_is_told_of_with_its_seconds(only):
    def compute(scale):
        scale.progress(1, 2)
        time.sleep(0.02)
        return two(scale)

    told = []
    only(item("slow", compute))
    report = reproduce(watcher=Audience(goes=lambda done, total: told.append((done, total))))
    assert told == [(1, 2)] and 0.02 <= report.outcomes[0].seconds < 60
    assert (
        report.out is None and str(report) == "holds    perspective/slow/two: one and one are two"
    )


def test_names_mean_items_in_their_order_and_each_once():
    fig3, paper = find(["perspective/fig3"]), find(["perspective"])
    assert [one.name for one in fig3] == ["perspective/fig3"]
    assert find(["perspective/fig3", "perspective"]) == [
        *fig3,
        *(one for one in paper if one != fig3[0]),
    ]
    assert find(["/Perspective/Fig3/"]) == fig3 and len(find(())) > len(paper)
    first = ("Figure", "Table", "Film")
    ranks = [
        next((k for k, kind in enumerate(first) if one.source.startswith(kind)), 3) for one in paper
    ]
    assert ranks == sorted(ranks) and ranks[0] == 0
    figures = [one.source for one in paper if one.source.startswith("Figure")]
    numbers = [int(source.split()[1].strip(",;").split(".")[0]) for source in figures]
    assert numbers == sorted(numbers) and len(set(numbers)) > 3


def test_what_a_picture_shows_is_told_in_words():
    one = Item("perspective", "fig_3", "Tokens on $S^1$", "", "Figure 3", "See how they meet.")
    assert one.name == "perspective/fig-3"
    assert one.alt() == "Figure 3: Tokens on S¹. How they meet."
    named = replace(one, captions=(("left", "See the left."),))
    assert named.caption_of("left") == "See the left." and named.caption_of("x") == one.caption
    assert named.alt("left").endswith(". The left.")
    assert replace(one, caption="").alt() == "Figure 3: Tokens on S¹."


def test_a_scale_picks_its_own_value():
    from tokenflock.reproduction.scale import PAPER, QUICK

    assert (QUICK.pick(1, 2), PAPER.pick(1, 2)) == (1, 2)
    assert (QUICK.name, PAPER.name) == ("quick", "paper")


def test_a_claim_of_an_error_no_number_has_none_in_json():
    claim = Claim("a", "$x_1$", "", np.float32(1.5), near(1, 1), error=float("inf"))
    plain = claim.as_json()
    assert (plain["measured"], plain["error"], plain["statement"]) == (1.5, None, "x_1")
    assert claim.as_json(marked=True)["statement"] == "$x_1$" and plain["interval"] == [0.0, 2.0]


def test_figures_are_printed_with_220_dots_an_inch_and_shown_dark_with_150(tmp_path, only):
    only(item("drawn", two, draw=draw))
    (outcome,) = reproduce(out=tmp_path).outcomes
    for suffix, dots in ((".png", 220), ("-dark.png", 150)):
        with Image.open(tmp_path / (outcome.figures[0] + suffix)) as picture:
            assert picture.info["dpi"][0] == pytest.approx(dots, rel=1e-3)
