"""Folders of results: what is in them is ours, and true."""

from __future__ import annotations

import json
import os

import pytest

from tests.papers.test_reproduce import broken, item, only, two  # noqa: F401
from tokenflock import gpt
from tokenflock.errors import UserError
from tokenflock.files import NoSpace
from tokenflock.reproduction.folder import Folder, model_mark
from tokenflock.reproduction.reproduce import Audience, reproduce


@pytest.fixture
def told():
    """(watcher, names of the items that ran)."""
    ran: list[str] = []
    return Audience(begins=lambda item: ran.append(item.name)), ran


def test_reports_of_ours_old_and_new_are_written_over_and_no_others(tmp_path):
    page, claims = tmp_path / "index.html", tmp_path / "claims.json"
    page.write_text("<html>our first pages had no mark</html>")
    with pytest.raises(UserError, match=r"index\.html is not a report of tokenflock"):
        Folder(tmp_path).refuse_foreign()
    claims.write_text(json.dumps([{"id": "a/b/c", "verdict": "holds", "interval": [0, 1]}]))
    Folder(tmp_path).refuse_foreign()  # claims of an old report beside it
    claims.unlink()
    page.write_text('<html><meta name="generator" content="tokenflock"></html>')
    Folder(tmp_path).refuse_foreign()  # a page of ours whose claims are gone


def test_a_result_belongs_to_the_weights_not_to_the_name_of_their_folder(tmp_path, only, told):  # noqa: F811
    model, watcher, ran = tmp_path / "m", *told
    (model / "inner").mkdir(parents=True)
    weights = model / "inner" / "model.safetensors"
    weights.write_bytes(b"first")
    only(item("fake", two))
    for _ in range(2):
        reproduce(out=tmp_path / "r", model=str(model), watcher=watcher)
    assert len(ran) == 1
    before = weights.stat()
    weights.write_bytes(b"other")  # as many bytes
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    reproduce(out=tmp_path / "r", model=str(model), watcher=watcher)
    assert len(ran) == 2
    weights.write_bytes(b"first")
    os.rename(model, tmp_path / "n")  # the same weights under another name
    first = model_mark(str(tmp_path / "n"))
    weights = tmp_path / "n" / "inner" / "model.safetensors"
    weights.rename(tmp_path / "n" / "model.safetensors")
    assert model_mark(str(tmp_path / "n")) != first
    assert model_mark("albert-xlarge-v2") == "albert-xlarge-v2"


def test_an_item_that_breaks_is_not_remembered_as_it_was(tmp_path, only, told):  # noqa: F811
    watcher, ran = told
    only(item("fake", two))
    assert reproduce(out=tmp_path).holds
    only(item("fake", broken))
    assert not reproduce(out=tmp_path, again=True).holds
    assert not reproduce(out=tmp_path, watcher=watcher).holds
    assert len(ran) == 1


def test_a_full_disk_is_no_verdict_on_an_item(tmp_path, only):  # noqa: F811
    def full(scale):
        raise NoSpace(tmp_path / "data.nc")

    only(item("fake", full))
    with pytest.raises(NoSpace, match="no space left"):
        reproduce(out=tmp_path)
    assert json.loads((tmp_path / "claims.json").read_text()) == []


@pytest.mark.parametrize("name", ["index.html", "claims.json"])
def test_a_folder_with_a_page_of_someone_else_is_refused(tmp_path, only, name):  # noqa: F811
    only(item("fake", two))
    (tmp_path / name).write_text("<html>my home page</html>")
    with pytest.raises(UserError, match="choose another folder with --out"):
        reproduce(out=tmp_path)
    assert os.listdir(tmp_path) == [name]
    (tmp_path / name).unlink()
    reproduce(out=tmp_path)
    reproduce(out=tmp_path)  # our own is taken again


@pytest.mark.parametrize("claims", ["[" * 100_000, "pipe", "5", "[5]", '{"a": 1}', "\udcff"])
def test_whatever_lies_for_claims_or_notes_a_foreign_page_is_refused_in_one_line(
    tmp_path,
    only,  # noqa: F811
    claims,
):
    fake = item("fake", two)
    only(fake)
    reproduce(out=tmp_path)
    (note,) = (tmp_path / "data").rglob("*.json")
    for path in (tmp_path / "claims.json", note):
        path.unlink()
        if claims == "pipe":
            os.mkfifo(path)
        else:
            path.write_text(claims, errors="surrogateescape")
    assert Folder(tmp_path).recall(fake, "quick", None, False) is None
    (tmp_path / "index.html").write_text("<html>my home page</html>")
    with pytest.raises(UserError, match=r"not a report of tokenflock|claims.json must be a file"):
        reproduce(out=tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_with_another_model_is_refused(tmp_path, name):
    (tmp_path / name).write_text('{"model_type": "albert"}')
    shape, schedule = gpt.preset("quick", steps=1)
    with pytest.raises(UserError, match="belongs to another model"):
        gpt.train(tmp_path, "to be or not to be " * 500, shape, schedule)
    assert os.listdir(tmp_path) == [name]
