"""The programs that the library ships, so that the lab opens without tracing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tokenflock as flock
from tests.page.node import NODE, answers, decoded, encoded, state
from tokenflock.catalogue import entries
from tokenflock.dynamics import SelfAttention
from tokenflock.laboratory import collection
from tokenflock.laboratory.ready import shipped_model
from tokenflock.starts import Cap, Uniform

STALE = "the code of the lab's programs has changed: run tools/lab_collection.py"


@pytest.fixture(scope="module")
def shipped():
    """What is shipped."""
    read = collection.fresh()
    assert read is not None, STALE
    return read


def same(shipped: dict, names: list[str]) -> None:
    """Some laws, traced now, are those that are shipped: their schema and their programs."""
    if shipped["jax"] != collection.JAX:
        pytest.skip(f"traced by JAX {shipped['jax']}, which may write it another way")
    anew = json.loads(json.dumps(collection.made_anew(names=names)))
    laws = {law["name"]: law for law in shipped["schema"]["laws"]}
    assert [law["name"] for law in anew["schema"]["laws"]] == names
    for law in anew["schema"]["laws"]:
        told = laws[law["name"]]
        assert _plain(law, anew["programs"]) == _plain(told, shipped["programs"])


def _plain(law: dict, programs: list[dict]) -> dict:
    """A law with its programs in place of their numbers."""

    def filled(value):
        if isinstance(value, dict):
            return {name: filled(each) for name, each in value.items()}
        return programs[value]

    built = law.get("built", {})
    return law | {
        "variants": {
            key: each | {name: filled(each[name]) for name in ("programs", "sights")}
            for key, each in law["variants"].items()
        },
        "built": built | {"pieces": filled(built.get("pieces", {}))},
    }


def test_what_is_shipped_is_what_tracing_gives(shipped):
    same(shipped, ["Kuramoto"])


@pytest.mark.slow
def test_everything_that_is_shipped_is_what_tracing_gives(shipped):
    names = [law["name"] for law in shipped["schema"]["laws"]]
    assert set(names) <= {entry.name for entry in entries("dynamics")} and len(names) > 20
    same(shipped, names)


@pytest.mark.skipif(NODE is None, reason="node is not installed: no page can be run")
def test_a_shipped_program_steps_as_the_library_does_whatever_jax_is_installed(shipped, tmp_path):
    law = next(law for law in shipped["schema"]["laws"] if law["name"] == "SelfAttention")
    place = law["variants"]["false"]["programs"]["3"]["Layer"]
    run = flock.simulate(
        SelfAttention(beta=3.0), Uniform(n=9, d=3), t=5, frames=2, solver=flock.solvers.Layer(0.1)
    )
    first, last = run.x.values
    job = {
        "source": shipped["programs"][place]["source"],
        "params": [encoded([3.0])],
        "states": [state(first, run.w.values, steps=50)],
    }
    (told,) = answers([job], tmp_path)
    assert np.abs(decoded(told[0]["x"]).reshape(9, 3) - last).max() < 1e-12


def test_a_figure_is_cut_out_of_it_and_one_of_another_law_is_traced(shipped, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("a law of the catalogue was traced")

    with monkeypatch.context() as patch:
        patch.setattr("tokenflock.laboratory.opening._traced", refuse)
        for start in (Uniform(n=8, d=3), Cap(n=8, d=2, angle=0.3)):
            flock.lab(SelfAttention(beta=2.0, repulsive=True), start, embed=True)
        with pytest.raises(AssertionError):
            flock.lab(SelfAttention(beta=2.0), Uniform(n=8, d=5), embed=True)
    assert "1" in flock.lab(SelfAttention(beta=2.0), Uniform(n=8, d=5), embed=True).html


def test_stale_programs_are_not_used(shipped, tmp_path, monkeypatch):
    collection.write({**shipped, "key": "of other code"}, tmp_path / "old.xz")
    assert collection.fresh(tmp_path / "old.xz") is None
    (tmp_path / "old.xz").write_bytes(b"torn")
    assert collection.fresh(tmp_path / "old.xz") is None


def test_the_plain_lab_needs_no_jax_and_is_the_same_page(shipped):
    script = (
        "import sys; from tokenflock.laboratory.ready import ready_page; page = ready_page();"
        "assert 'jax' not in sys.modules and 'xarray' not in sys.modules"
    )
    from tokenflock.laboratory.ready import ready_page

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert flock.lab().html == ready_page().html


def test_the_notice_tells_the_text_of_the_shipped_model():
    """It is that of the script, and no other text stands in the file."""
    root, told = Path(__file__).parents[2], shipped_model()
    text = "".join(told["words"])
    assert f'SENTENCE = "{text}"' in (root / "tools" / "lab_model.py").read_text(encoding="utf-8")
    notice = (root / "NOTICE").read_text(encoding="utf-8")
    assert f'"{text}"' in notice and "Python Software Foundation License" in notice
    sentences = {key for key, value in told.items() if isinstance(value, str) and " " in value}
    assert sentences == {"format", "title"}
    assert "NOTICE" in (root / "pyproject.toml").read_text(encoding="utf-8")
