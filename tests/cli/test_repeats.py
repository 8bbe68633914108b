"""The same command or recipe gives the same numbers, and another seed gives others."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Attention, SelfAttention
from tokenflock.events import Consensus
from tokenflock.matrices import Ginibre, Per, RandomMatrices, Value
from tokenflock.observables import MeanCosine, PairDensity
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Uniform
from tokenflock.verbs.ensemble import ensemble

START = Uniform(n=5, d=3)


def recipe(result) -> dict:
    """What ran, without what it ran on."""
    told = json.loads(result.attrs["recipe"])
    return {key: value for key, value in told.items() if key not in ("versions", "chosen")}


RUNS = {
    "float32": lambda: flock.simulate(
        SelfAttention(beta=2.0), START, t=2, frames=5, solver=RK4(h=0.1), seed=3, dtype="float32"
    ),
    "times and an event": lambda: flock.simulate(
        SelfAttention(beta=2.0),
        START,
        times=[0.5, 2.0, 9.0],
        solver=RK4(h=0.25),
        until=Consensus(delta=0.3),
        observe=[MeanCosine()],
        seed=4,
    ),
    "an ensemble in float64": lambda: ensemble(
        SelfAttention(),
        START,
        over={"beta": [1.0, 3.0]},
        t=1,
        frames=3,
        repeats=3,
        solver=Layer(h=0.25),
        observe=[PairDensity(delta=0.4)],
        quantiles=[0.5],
        seed=6,
        dtype="float64",
        engine="batch",
        rotate=False,
        settle=False,
    ),
    "an ensemble of random matrices": lambda: ensemble(
        Attention(beta=1.0),
        START,
        times=[0.5, 1.0],
        repeats=2,
        solver=Layer(h=0.25),
        observe=[MeanCosine()],
        matrices=RandomMatrices(Ginibre(), Value.WISHART, Per.SYSTEM),
        keep=True,
        seed=7,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_recipe_that_is_run_again_gives_the_same_numbers_in_the_same_precision(name):
    first = RUNS[name]()
    again = flock.rerun(first)
    assert recipe(again) == recipe(first)
    assert set(again.data_vars) == set(first.data_vars)
    for variable in first.data_vars:
        assert again[variable].dtype == first[variable].dtype
        np.testing.assert_array_equal(again[variable], first[variable])


def test_single_precision_stays_single():
    """Else the last digits would differ."""
    assert RUNS["float32"]().x.dtype == flock.rerun(RUNS["float32"]()).x.dtype == np.float32


@pytest.mark.slow
def test_phase_draws_by_its_seed(call, tmp_path):
    line = "phase --n 5 --d 3 --beta 1,3 --t 2 --repeats 4 --frames 5 --observe mean-cosine"
    found = []
    for k, seed in enumerate((1, 1, 2, None)):
        option = "" if seed is None else f" --seed {seed}"
        code, _, err = call(f"{line}{option} --out p{k}.nc")
        assert code == 0, err
        result = flock.load(tmp_path / f"p{k}.nc")
        assert recipe(result)["seed"] == (seed or 0)
        found.append(result.mean_cosine.values)
    np.testing.assert_array_equal(found[0], found[1])
    for a, b in ((0, 2), (0, 3), (2, 3)):
        assert np.abs(found[a][:, 0] - found[b][:, 0]).min() > 1e-4


def test_simulate_draws_by_its_seed(call, tmp_path):
    for k, seed in enumerate((1, 1, 2)):
        code, _, err = call(
            f"simulate --n 4 --d 3 --t 1 --frames 3 --solver rk4 --seed {seed} --out s{k}.nc"
        )
        assert code == 0, err
    one, same, other = (flock.load(tmp_path / f"s{k}.nc").x.values for k in range(3))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one[0] - other[0]).max() > 0.1
