"""An ensemble that was stopped goes on from every finished system and ends with the same numbers,
bit for bit.
"""

from __future__ import annotations

import numpy as np
import pytest

from tokenflock.dynamics import SelfAttention
from tokenflock.dynamics.noisy import Noisy
from tokenflock.engines import single
from tokenflock.errors import UserError
from tokenflock.events import Consensus
from tokenflock.observables import MeanCosine, PairDensity
from tokenflock.solvers import RK4, EulerMaruyama, Layer
from tokenflock.starts import Uniform
from tokenflock.verbs import store as storing
from tokenflock.verbs.ensemble import ensemble
from tokenflock.verbs.simulate import simulate
from tokenflock.verbs.store import Store

SHORT = {"t": 2.0, "frames": 5, "over": {"beta": [1.0, 4.0, 9.0]}, "repeats": 120}
LAWS = {
    "lanes": (SelfAttention(), {"engine": "lanes", "solver": Layer(h=0.1)}),
    "batch": (SelfAttention(), {"engine": "batch", "observe": [MeanCosine(), PairDensity()]}),
    "noisy": (
        Noisy(base=SelfAttention(), kappa=0.1),
        {"solver": EulerMaruyama(h=0.1), "observe": [MeanCosine()]},
    ),
    "quantiles": (SelfAttention(), {"engine": "batch", "quantiles": [0.1, 0.5]}),
    "kept": (SelfAttention(), {"engine": "lanes", "solver": Layer(h=0.1), "keep": True}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_the_same_numbers_wherever_it_was_stopped(tmp_path, monkeypatch, name):
    """Stopped again and again as a kill would: what was written last is all there is."""
    law, options = LAWS[name]
    path = tmp_path / "run.part"
    monkeypatch.setattr(storing, "SECONDS", 0.0)
    monkeypatch.setattr(storing, "SHARE", 0)
    calls, keep, stops = [], Store.keep, 0
    every = 7 if options.get("engine") == "lanes" else 1  # reports: 23 groups, or two at once

    def killed(self, rows, values):
        keep(self, rows, values)
        calls.append(len(rows))
        if len(calls) % every == 0:
            raise ZeroDivisionError  # nothing more is written on the way out

    monkeypatch.setattr(Store, "keep", killed)
    found = None
    while found is None and stops < 9:
        try:
            found = ensemble(law, Uniform(n=6, d=3), store=path, **(SHORT | options))
        except ZeroDivisionError:
            stops += 1
            assert path.exists()
    assert stops >= 2 and sum(calls) == 360  # no system ran twice
    monkeypatch.setattr(Store, "keep", keep)
    whole = ensemble(law, Uniform(n=6, d=3), **(SHORT | options))
    for variable in whole.data_vars:
        np.testing.assert_array_equal(found[variable], whole[variable])
    assert list(tmp_path.iterdir()) == []


def test_the_store_stays_until_its_owner_has_saved_the_result(tmp_path):
    path = tmp_path / "run.part"
    with Store(path) as store:
        ensemble(SelfAttention(), Uniform(n=4, d=2), store=store, **SHORT)
        store.write()
        with pytest.raises(UserError, match="another process is adding to this run"):
            ensemble(SelfAttention(), Uniform(n=4, d=2), store=path, **SHORT)
    assert path.exists()
    steps = []
    ensemble(
        SelfAttention(),
        Uniform(n=4, d=2),
        store=path,
        progress=lambda done, total: steps.append(done / total),
        **SHORT,
    )
    assert steps == [1.0]  # nothing ran again


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_store_is_told_in_one_line(tmp_path, damage):
    path = tmp_path / "run.part"
    with Store(path) as store:
        store.begin("recipe")
        store.put((0,), {"x": np.zeros(100)})
        store.write()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"PK\x03\x04 and so on")
    with Store(path) as store, pytest.raises(UserError, match="not the beginning of a run"):
        store.begin("recipe")


def test_large_systems_are_kept_by_whole_cells_only(tmp_path, monkeypatch):
    monkeypatch.setattr(storing, "MOST", 100)
    with Store(tmp_path / "run.part") as store:
        group = store.open([(0,)], 4)
        store.keep(np.array([1, 2]), {"x": np.zeros((2, 50))})
        assert len(group.missing) == 4
        store.keep(np.array([1, 2]), {"x": np.zeros((2, 2))})
        assert group.missing.tolist() == [0, 3]


@pytest.mark.parametrize("until", [None, Consensus(delta=0.3)])
def test_long_runs_go_in_short_calls_with_the_same_numbers(monkeypatch, until):
    """A run that can be stopped between calls is the run of one call, bit for bit."""
    law, start = SelfAttention(beta=1.0), Uniform(n=6, d=3)
    options = {"t": 20.0, "times": [0, 0.3, 3, 4, 19, 20], "solver": RK4(h=0.05), "until": until}
    whole = simulate(law, start, **options)
    monkeypatch.setattr(single, "STEPS", 7.0)
    cut = simulate(law, start, **options)
    assert until is None or 0 < whole.time[-1] < 20
    np.testing.assert_array_equal(whole.time, cut.time)
    np.testing.assert_array_equal(whole.x, cut.x)
