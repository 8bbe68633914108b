"""`tokenflock probe`: a model and a text in, a file and a page out."""

from __future__ import annotations

import io
import json
import re

import pytest

import tokenflock as flock
from tests.probing.conftest import ids, small
from tokenflock.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    """A small ALBERT with ready ids beside it."""
    small("albert").save_pretrained(tmp_path / "albert")
    items = [{"text": one.text, "ids": list(one.ids)} for one in ids(40, 50, 45)]
    (tmp_path / "albert" / "prompts.json").write_text(json.dumps(items))
    return tmp_path / "albert"


def run(*tokens) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(token) for token in tokens])
    return int(ended.value.code or 0)


@pytest.mark.slow
def test_a_file_and_a_page(folder, tmp_path, capsys):
    out, page = tmp_path / "probe.nc", tmp_path / "probe.html"
    assert (
        run(
            "probe", folder, "--depth", 6, "--untrained", "--follow", "--out", out, "--report", page
        )
        == 0
    )
    result = flock.load(out)
    assert (
        result.x.dims == ("prompt", "layer", "token", "coord")
        and result.sizes["prompt"] == 3
        and result.sizes["layer"] == 7
    )
    html = page.read_text()
    assert html.count("data:image/png;base64,") == 2 * 5  # light and dark
    assert "http" not in re.sub(
        r"base64,[^\"']+|http://www\.w3\.org", "", html
    )  # by chance it may stand in a picture
    assert "untrained, seed 0" in html and "attention alone" in html and "effective" in html
    assert "mean cosine" in capsys.readouterr().out


@pytest.mark.slow
def test_some_layers_only(folder, tmp_path):
    out = tmp_path / "probe.nc"
    assert run("probe", folder, "--layers", "0,3", "--no-special", "--out", out) == 0
    assert flock.load(out).layer.values.tolist() == [0, 3]


@pytest.mark.slow
def test_two_models(folder, tmp_path):
    small("gpt2").save_pretrained(tmp_path / "gpt2")
    (tmp_path / "gpt2" / "prompts.json").write_text((folder / "prompts.json").read_text())
    page = tmp_path / "two.html"
    assert run("probe", "--compare", folder, tmp_path / "gpt2", "--report", page) == 0
    assert "<h1>albert and gpt2: do their tokens cluster?</h1>" in page.read_text()


@pytest.mark.slow
def test_standard_input(minilm, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "sys.stdin",
        io.StringIO("Tokens gather.\n\nClusters of tokens merge one after another, slowly."),
    )
    out = tmp_path / "probe.nc"
    assert run("probe", minilm, "--text", "-", "--minimum", 8, "--no-states", "--out", out) == 0
    result = flock.load(out)
    assert (
        result.sizes["prompt"] == 1
        and "x" not in result
        and "Clusters" in str(result.text.values[0])
    )


def test_one_line_for_each_mistake(folder, tmp_path, capsys):
    table = tmp_path / "rows.csv"
    table.write_text("title,body\na,One.\n")
    for tokens, said in (
        (("probe",), "name one model"),
        (("probe", "no/such-model", "--string", "x"), "hf download no/such-model"),
        (("probe", folder, "--string", "x"), "no tokenizer of its own"),
        (("probe", folder, "--text", tmp_path / "none.txt"), "none.txt"),
        (("probe", folder, "--text", table), "names a column 'text'"),
        (("probe", folder, "--minimum", 100), "the longest has 50"),
        (("probe", folder, "--string", "x", "--text", "y"), "give one of"),
    ):
        assert run(*tokens) != 0
        told = capsys.readouterr().err.strip()
        assert said in told and told.count("\n") == 0
