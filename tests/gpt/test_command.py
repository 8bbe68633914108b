"""`tokenflock gpt` from a terminal."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tokenflock as flock
from tokenflock import gpt
from tokenflock.cli import main
from tokenflock.gpt.text import read


def run(capsys, *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    told = capsys.readouterr()
    return stop.value.code, told.out, told.err


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_CACHE", "off")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "manual.txt"
    path.write_text(read()[:20_000], encoding="utf-8")
    return path


SMALL = ("--preset", "quick", "--width", 16, "--depth", 2, "--steps", 4, "--every", 2, "--batch", 2)


@pytest.mark.slow
def test_train_sample_and_probe(capsys, text, tmp_path):
    out = tmp_path / "run"
    code, told, err = run(
        capsys, "gpt", "train", "--text", text, "--out", out, "--shared", "--watch", "0,4", *SMALL
    )
    assert code == 0, err
    assert "val loss" in told and "tokens/s" in told
    code, told, _ = run(capsys, "gpt", "sample", out, "--prompt", "The", "--count", 20)
    assert code == 0 and told.startswith("The")
    code, told, _ = run(capsys, "gpt", "probe", out, "--flow", "--out", tmp_path / "probe.nc")
    assert code == 0 and "effective rank" in told and "distance to the finest" in told
    assert flock.load(tmp_path / "probe.nc").sizes["layer"] == 3


@pytest.mark.slow
def test_every_rung_trains_and_the_probe_of_models_takes_them(capsys, text, tmp_path):
    code, told, err = run(
        capsys, "gpt", "ladder", "--text", text, "--steps", 3, "--out", tmp_path / "ladder"
    )
    assert code == 0, err
    assert told.count("val loss") == 6
    code, told, _ = run(
        capsys, "probe", tmp_path / "ladder" / "gpt", "--out", tmp_path / "probe.nc"
    )
    assert code == 0 and "mean cosine" in told


def test_errors_are_one_line(capsys, text, tmp_path):
    code, _, err = run(capsys, "gpt", "sample", tmp_path)
    assert code == 2 and "tokenflock gpt train" in err and err.count("\n") == 1
    code, _, err = run(
        capsys, "gpt", "train", "--text", tmp_path / "none.txt", "--out", tmp_path / "a"
    )
    assert code == 2 and "not a text file" in err
    short = tmp_path / "short.txt"
    short.write_text("too short", encoding="utf-8")
    code, _, err = run(capsys, "gpt", "train", "--text", short, "--out", tmp_path / "b")
    assert code == 2 and "too few" in err
    code, _, err = run(
        capsys, "gpt", "train", "--text", text, "--context", 4000, "--out", tmp_path / "c"
    )
    assert code == 2 and "shorter context" in err


@pytest.mark.parametrize("verb", ["train", "sample", "probe", "ladder"])
def test_every_verb_shows_an_example(capsys, verb):
    code, told, _ = run(capsys, "gpt", verb, "--help")
    assert code == 0 and "Example" in told


@pytest.mark.slow
def test_nothing_of_torch_is_needed(tmp_path, text):
    """The whole of it runs where torch is not installed."""
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\nfrom tokenflock"
        f" import gpt; from tokenflock.gpt.text import read\ngpt.train({str(tmp_path / 'run')!r},"
        f" read({str(text)!r}), gpt.Shape(context=8, width=8, heads=2, depth=1),"
        " gpt.Schedule(steps=2, batch=2, every=2,"
        f" chunk=2))\nprint(gpt.probe({str(tmp_path / 'run')!r}).sizes['layer'])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.split() == ["2"]
    assert (
        json.loads((tmp_path / "run" / "config.json").read_text())["model_type"] == "tokenflock-gpt"
    )


def test_what_a_model_writes_steers_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(gpt, "sample", lambda *_, **__: "\x1b[31mred\x9b\nend")
    code, told, _ = run(capsys, "gpt", "sample", "any")
    assert code == 0 and told == "\ufffd[31mred\ufffd\nend\n"
