"""Results written by version 0.1 load, plot, measure, cite and run again to the same numbers."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.catalogue import _OWN, include
from tokenflock.dynamics import Noisy
from tokenflock.errors import UserError
from tokenflock.observables import ClusterCount, Energy, MeanCosine
from tokenflock.recipe import sources
from tokenflock.solvers import EulerMaruyama

OLD = Path(__file__).parents[1] / "data" / "v0.1"
RUNS = sorted(path.stem for path in OLD.glob("simulate*.nc"))
AGAIN = [
    "ensemble",
    "ensemble-matrices",
    "phase",
    "evolve",
    "simulate",
    "simulate-layers",
    "simulate-noisy",
    "simulate-switching",
]
OWN = '''"""Laws of a user."""

from tokenflock.dynamics.dynamics import MeanField


class LinearAttention(MeanField):
    """Attention with the linear kernel 1 + beta <x, y>."""

    beta: float = 1.0
    "inverse temperature"

    def field(self, t, q, x, w):
        return (w * (1 + self.beta * (q @ x.T))) @ x
'''


@pytest.mark.slow
@pytest.mark.parametrize("name", AGAIN)
def test_old_results_run_again_to_the_same_numbers(name):
    old = flock.load(OLD / f"{name}.nc")
    new = flock.rerun(old)
    for variable in old.data_vars:
        a, b = old[variable].values, new[variable].values
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7, err_msg=str(variable))
    assert json.loads(new.attrs["recipe"])["format"] == 2
    again = flock.rerun(new)
    for variable in new.data_vars:
        np.testing.assert_array_equal(new[variable].values, again[variable].values)


@pytest.mark.parametrize("name", [*RUNS, "probe"])
def test_old_results_are_measured_and_cited(name, capsys):
    old = flock.load(OLD / f"{name}.nc")
    measured = flock.measure(old, [MeanCosine(), ClusterCount()])
    assert np.isfinite(measured.mean_cosine.values).all()
    flock.cite(old)
    assert "tokenflock" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "verb", "words"),
    [
        ("probe", flock.merges, r"select one, e\.g\. result\.isel\(prompt=0\)"),
        ("probe", flock.dwell_times, r"select one, e\.g\. result\.isel\(prompt=0\)"),
        ("ensemble", lambda result: flock.measure(result, MeanCosine()), "tokens x.*observe="),
    ],
)
def test_what_has_no_single_trajectory_is_refused_in_words(name, verb, words):
    with pytest.raises(UserError, match=words):
        verb(flock.load(OLD / f"{name}.nc"))


def test_one_prompt_of_a_model_has_its_merges():
    assert "layer" in flock.merges(flock.load(OLD / "probe.nc").isel(prompt=0))


@pytest.mark.parametrize("name", ["simulate", "simulate-noisy"])
def test_old_laws_are_known_to_their_observables(name):
    old = flock.load(OLD / f"{name}.nc")
    assert np.isfinite(flock.measure(old, Energy()).energy.values).all()


def test_old_enumerations_keep_their_meaning():
    old = flock.load(OLD / "simulate-noisy.nc")
    from tokenflock.dynamics import Clock
    from tokenflock.verbs.measure import dynamics_of

    assert dynamics_of(old).base.clock is Clock.PEAK


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({path.stem for path in OLD.glob("*.nc")} - {"ensemble"}))
def test_old_results_are_drawn(name, tmp_path):
    from tokenflock.cli import main

    shutil.copy(OLD / f"{name}.nc", tmp_path / "old.nc")
    picture = tmp_path / "old.png"
    with pytest.raises(SystemExit) as end:
        main(["plot", str(tmp_path / "old.nc"), "--out", str(picture)])
    assert end.value.code == 0
    assert picture.stat().st_size > 5000


def test_an_old_checkpoint_still_runs():
    from tokenflock import gpt

    assert len(gpt.sample(OLD / "gpt", "To be", 5)) >= 5


# ---------------------------------------------------------------- a law that is not here


def test_a_result_of_a_missing_law_degrades(tmp_path, capsys):
    """Everything that needs no law works; what needs it says what is missing and how to give it."""
    old = flock.load(OLD / "simulate-own-law.nc")
    assert flock.measure(old, MeanCosine()).mean_cosine.sizes["time"] == 5
    assert flock.merges(old).sizes["merge"] >= 0
    flock.cite(old)
    for verb in (lambda: flock.rerun(old), lambda: flock.measure(old, Energy())):
        with pytest.raises(UserError, match=r"LinearAttention.*--import"):
            verb()


@pytest.fixture
def laws(tmp_path):
    """A file of a user's own laws, in the catalogue for one test."""
    path = tmp_path / "laws_of_a_user.py"
    path.write_text(OWN, encoding="utf-8")
    yield path
    sys.modules.pop(path.stem, None)
    _OWN.clear()


def test_who_lacks_a_law_is_told_where_its_text_is(laws, tmp_path):
    """A file from a machine whose script is not here: its law can be read, and brought back."""
    (entry,) = include(laws)
    run = flock.simulate(Noisy(entry.load()(beta=2.0)), np.eye(3), t=1.0, solver=EulerMaruyama())
    away = run.copy()
    away.attrs["recipe"] = run.attrs["recipe"].replace("LinearAttention", "FarAway")
    with pytest.raises(UserError, match=r"tokenflock\.recipe\.sources\(result\)\['FarAway'\]"):
        flock.rerun(away)
    assert list(sources(away)) == ["FarAway"] and sources(flock.load(OLD / "simulate.nc")) == {}
    text = sources(away)["FarAway"]
    assert "1 + self.beta" in text and text.startswith("class FarAway(MeanField):")


def test_the_recipe_keeps_the_source_of_a_law_that_is_not_of_the_catalogue(laws, tmp_path):
    (entry,) = include(laws)
    run = flock.simulate(entry.load()(beta=2.0), np.eye(3), t=1.0, frames=2)
    told = json.loads(run.attrs["recipe"])["dynamics"]
    assert told["type"] == "dynamics/LinearAttention"
    assert "1 + self.beta" in told["own"]["source"]
    again = flock.rerun(flock.load(flock.save(run, tmp_path / "own.nc")))
    np.testing.assert_array_equal(again.x, run.x)


def test_a_law_of_a_file_is_a_member_like_any_other(laws, tmp_path, capsys):
    from tokenflock.cli import main

    out = tmp_path / "run.nc"
    words = [
        "simulate",
        "--dynamics",
        "linear-attention",
        "--beta",
        "2",
        "--t",
        "1",
        "--out",
        str(out),
    ]
    with pytest.raises(SystemExit) as end:
        main(["--import", str(laws), *words])
    assert end.value.code == 0 and out.exists()
    with pytest.raises(SystemExit) as end:
        main(["list", "dynamics"])
    assert "linear-attention" in capsys.readouterr().out


def test_an_old_file_with_a_law_of_the_user_runs_again_once_it_is_imported(laws):
    include(laws)
    old = flock.load(OLD / "simulate-own-law.nc")
    np.testing.assert_allclose(flock.rerun(old).x, old.x, atol=1e-9)


@pytest.mark.parametrize(
    ("text", "words"),
    [("x = 1\n", "brings nothing"), ("def (", "cannot be run"), ("1 / 0\n", "ZeroDivisionError")],
)
def test_a_file_that_brings_nothing_says_so(tmp_path, text, words):
    path = tmp_path / "odd_laws_of_mine.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=words):
        include(path)
    sys.modules.pop(path.stem, None)


def test_renamed_members_are_found_by_their_old_name(monkeypatch):
    from tokenflock import recipe
    from tokenflock.dynamics import SelfAttention

    monkeypatch.setitem(recipe.RENAMED, "dynamics/Softmax", "dynamics/SelfAttention")
    for path in ("dynamics/Softmax", "tokenflock.dynamics.anywhere:Softmax"):
        assert isinstance(recipe.rebuild({"type": path, "beta": 3.0}), SelfAttention)


def test_a_recipe_of_a_newer_format_says_so(run):
    newer = run.copy()
    newer.attrs = run.attrs | {"recipe": run.attrs["recipe"].replace('"format": 2', '"format": 3')}
    with pytest.raises(UserError, match="update it"):
        flock.rerun(newer)
    assert "cluster_count" in flock.measure(newer, ClusterCount())
