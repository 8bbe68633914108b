"""Results that somebody sent, with numbers that are none: one clear line each, never a traceback, a
picture of nothing, or a command that does not end.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock import meanfield
from tokenflock.cli import main
from tokenflock.dynamics import Kuramoto, NeuralODE, SelfAttention
from tokenflock.errors import UserError
from tokenflock.meanfield import Mixture, Ripple, evolve, wasserstein
from tokenflock.observables import Energy
from tokenflock.parts import RandomHeads
from tokenflock.starts import Uniform
from tokenflock.steering import clouds, steer

LAW, START = SelfAttention(beta=2.0), Uniform(n=4, d=2)


@pytest.fixture(scope="module")
def result():
    return flock.simulate(LAW, START, t=1, frames=3, solver=flock.solvers.Layer(h=0.5))


@pytest.fixture(scope="module")
def several():
    return flock.ensemble(LAW, START, over={"beta": [1.0, 2.0]}, repeats=2, t=0.2, frames=2)


@pytest.fixture(scope="module")
def watched():
    """What a training watches."""
    names = ("mean_cosine", "cluster_count", "effective_rank")
    values = np.linspace(0.1, 0.9, 12).reshape(2, 3, 2)
    return xr.Dataset(
        {name: (("step", "layer", "prompt"), values) for name in names},
        {"step": [0, 10], "layer": [0, 1, 2]},
    )


def told(arguments, capsys) -> str:
    """What a command that refuses says: one line, exit code 2."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr().err
    assert end.value.code == 2 and "unexpected" not in said and said.startswith("error")
    return said


def test_what_is_no_run_of_ours_is_not_run_again_and_no_law_is_asked_for(result):
    strange = {"format": 2, "verb": "probe", "dynamics": {"type": "mine/Law", "own": {}}}
    probe = result.assign_attrs(recipe=json.dumps(strange))
    with pytest.raises(
        UserError, match="result must be one of simulate, ensemble, evolve, got 'probe'"
    ):
        flock.rerun(probe)


def huge(run):
    return run.assign(w=run.w * 0 + 1e300)


DAMAGES = {
    "w beyond measure": (huge, "w must be"),
    "w of words": (lambda run: run.assign(w=("particle", list("abcd"))), "w must be"),
    "w of NaN": (lambda run: run.assign(w=run.w * np.nan), "w must be"),
    "x beyond measure": (lambda run: run.assign(x=run.x * 1e300), "x must be"),
    "x a number": (lambda run: run.drop_vars("x").assign(x=1.0), "x must be"),
    "no frames": (lambda run: run.isel(time=slice(0)), "x must be"),
    "times of words": (lambda run: run.assign_coords(time=list("abc")), "time must be"),
    "times of NaN": (lambda run: run.assign_coords(time=[0, np.nan, 1]), "time must be"),
    "times without end": (lambda run: run.assign_coords(time=[0, 1, np.inf]), "time must be"),
}


@pytest.mark.parametrize("command", ["plot", "film"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_run_with_numbers_that_are_none_is_refused(damage, command, result, tmp_path, capsys):
    spoil, words = DAMAGES[damage]
    path, out = tmp_path / "run.nc", tmp_path / ("a.png" if command == "plot" else "a.gif")
    spoil(result).to_netcdf(path, engine="h5netcdf")
    said = told([command, path, "--out", out], capsys)
    assert words in " ".join(said.split())
    assert not out.exists()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (
            lambda data: data.assign(mean_cosine=data.mean_cosine * np.nan),
            "must be finite somewhere",
        ),
        (
            lambda data: data.assign_coords(step=[0, np.nan]),
            "cannot be drawn: step holds what is no number",
        ),
        (lambda data: data.isel(prompt=slice(0)), "must be finite somewhere"),
        (
            lambda data: data.assign(effective_rank=data.effective_rank.astype(str)),
            "cannot be drawn",
        ),
    ],
)
def test_a_training_that_lost_its_numbers_is_told_so(spoil, reason, watched, tmp_path, capsys):
    """As one that diverged may write."""
    path = tmp_path / "watch.nc"
    spoil(watched).to_netcdf(path, engine="h5netcdf")
    said = " ".join(told(["plot", path, "--out", tmp_path / "a.png"], capsys).split())
    assert reason in said
    assert "cannot be drawn" in said or "compute it first" in said


RECIPES = {
    "t": (None, "abc", [1], {}, 10**400, -1),
    "times": ("abc", -1, {}, [], True, [2, 1]),
    "frames": (None, "abc", -1, [1], {}, 2.5),
    "noise": ("abc", -1, [1], {}, [1, -1], [1, 2**32]),
}


@pytest.mark.parametrize("key", RECIPES)
def test_a_recipe_with_other_kinds_of_numbers_is_refused(key, result, tmp_path, capsys):
    """In a recipe that is complete, so that it is the number which is refused."""
    path = tmp_path / "run.nc"
    for value in RECIPES[key]:
        recipe = json.loads(result.attrs["recipe"]) | {key: value}
        result.assign_attrs(recipe=json.dumps(recipe)).to_netcdf(path, engine="h5netcdf")
        assert key in told(["rerun", path, "--out", tmp_path / "again.nc"], capsys)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("over", value) for value in ("abc", [1], True, {"beta": None})),
        ("over", {"beta": [[1, 2], [3]]}),
        *(("repeats", value) for value in (None, "3", 10**15)),
        *(("quantiles", value) for value in ("a", 0.5)),
        *(("part", [1]), ("keep", "no"), ("settle", 1), ("matrices", "goe")),
    ],
)
def test_an_ensemble_of_other_kinds_of_numbers_is_refused(key, value, several):
    recipe = json.loads(several.attrs["recipe"]) | {key: value}
    with pytest.raises(UserError, match=key):
        flock.rerun(several.assign_attrs(recipe=json.dumps(recipe)))


@pytest.mark.parametrize(
    "options",
    [
        {"dynamics": None},
        *({"t": value} for value in ("1", [1], np.inf, 10**400)),
        *({"times": value} for value in ("abc", [], 5, [0, np.nan], [-1, 1])),
        *({"frames": value} for value in (2.5, True, 10**12)),
        *({"d": value} for value in (None, "a", 1e308, 1)),
        *({"points": value} for value in ("a", 0, 2.5, 10**12)),
    ],
)
def test_a_measure_is_not_followed_to_what_is_no_time_or_place(options):
    (name,) = options
    with pytest.raises(UserError, match=name):
        evolve(**({"dynamics": LAW, "start": Ripple(k=2), "points": 16} | options))


@pytest.mark.parametrize(
    "options",
    [{name: "no"} for name in ("keep", "rotate", "settle")]
    + [{"over": "abc"}, {"over": [1]}, {"over": {"beta": [[1, 2], [3]]}}, {"times": "a"}]
    + [{"quantiles": "a"}, {"quantiles": 0.5}, {"matrices": "wigner"}, {"matrices": 3}]
    + [{"repeats": 10**15}, {"repeats": True}],
)
def test_an_ensemble_takes_no_word_for_a_switch_or_a_number(options):
    (name,) = options
    with pytest.raises(UserError, match=name):
        flock.ensemble(LAW, START, **({"t": 0.2, "frames": 2, "repeats": 2} | options))


def test_distances_are_between_numbers():
    """The exact algorithm of the circle would look for NaN for ever."""
    x = np.eye(2)
    for bad in (x * np.nan, x + np.inf, "x", [[1, 0], [1]]):
        with pytest.raises(UserError, match=r"measure|^a must be"):
            wasserstein(bad, x)
    for w in ([1, np.nan], [1, -1], [0, 0], "ab"):
        with pytest.raises(UserError, match=r"w(_a)? must be"):
            wasserstein(x, x, w_a=w)
    assert wasserstein(x, x[::-1], w_a=[1, 3], w_b=[3, 1]) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        *(lambda value=value: Mixture(parts=value) for value in (None, np.nan, True, 1j, [])),
        lambda: NeuralODE(A=[], W=[]),
        lambda: NeuralODE(A=[1.0, 2.0], W=[[1.0], [2.0]]),
        lambda: Kuramoto(omega=[]),
        lambda: Energy(D=[]),
        lambda: Energy(D=[[10**400]]),
        lambda: RandomHeads(2, letters=""),
    ],
)
def test_fields_hold_numbers_that_there_are(make):
    with pytest.raises(UserError):
        make()


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "--beta", "none"],
        ["simulate", "--beta=null"],
        ["simulate", "--t", "None"],
        ["simulate", "--coalesce", "none"],
        ["spectrum", "--beta", "none"],
    ],
)
def test_none_is_no_number(arguments, tmp_path, monkeypatch, capsys):
    """It would mean the default, which is another law than the one that was typed."""
    monkeypatch.chdir(tmp_path)
    assert "must be a number" in told(arguments, capsys)
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_into_the_memory_is_refused_with_a_number(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"needs .*B of memory"):
        clouds(10**12)
    with pytest.raises(UserError, match="points"):
        meanfield.grid(2, 10**9)
    with pytest.raises(UserError, match="t must be"):
        steer(clouds(2, 4), clouds(2, 1, seed=1)[:, 0], t=np.inf, steps=1)
