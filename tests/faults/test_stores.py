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
from tokenflock.sweeps import Store
from tokenflock.sweeps import unfinished as storing
from tokenflock.sweeps.cut import Cut
from tokenflock.sweeps.store import Form
from tokenflock.sweeps.unfinished import Unfinished
from tokenflock.verbs.ensemble import ensemble
from tokenflock.verbs.simulate import simulate

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
    path = tmp_path / "run.zarr"
    monkeypatch.setattr(storing, "SECONDS", 0.0)
    monkeypatch.setattr(storing, "SHARE", 0)
    calls, keep, stops = [], Unfinished.keep, 0
    every = 7 if options.get("engine") == "lanes" else 1  # reports: 23 groups, or two at once

    def killed(self, rows, values):
        keep(self, rows, values)
        calls.append(len(rows))
        if len(calls) % every == 0:
            raise ZeroDivisionError  # nothing more is written on the way out

    monkeypatch.setattr(Unfinished, "keep", killed)
    found = None
    while found is None and stops < 9:
        try:
            found = ensemble(law, Uniform(n=6, d=3), out=path, **(SHORT | options))
        except ZeroDivisionError:
            stops += 1
            assert path.exists()
    assert stops >= 2 and sum(calls) == 360  # no system ran twice
    monkeypatch.setattr(Unfinished, "keep", keep)
    whole = ensemble(law, Uniform(n=6, d=3), **(SHORT | options))
    for variable in whole.data_vars:
        np.testing.assert_array_equal(found[variable], whole[variable])
    assert list(tmp_path.iterdir()) == [path]
    assert Store(path).look().damaged() == []


def test_the_store_stays_and_belongs_to_its_owner(tmp_path):
    path = tmp_path / "run.zarr"
    with (
        Store(path),
        pytest.raises(UserError, match="another process is adding to this run"),
    ):
        ensemble(SelfAttention(), Uniform(n=4, d=2), out=path, **SHORT)
    ensemble(SelfAttention(), Uniform(n=4, d=2), out=path, **SHORT)
    assert path.exists()
    steps = []
    ensemble(
        SelfAttention(),
        Uniform(n=4, d=2),
        out=path,
        progress=lambda done, total: steps.append(done / total),
        **SHORT,
    )
    assert steps == [1.0]  # nothing ran again


def small(path, blocks=(0, 1)) -> Store:
    """A store of three blocks, some of which are written."""
    store = Store(path)
    with store:
        store.begin("mark", Cut(("a",), (5,), (2,)), {"title": "small"})
        values = {"x": np.arange(8.0).reshape(2, 4)}
        axes = {"a": (("a",), np.arange(5), {}), "time": (("time",), np.arange(4.0), {})}
        store.prepare(Form({"x": (("a", "time"), {})}, axes, {}), values)
        for block in blocks:
            store.put(block, {"x": values["x"][: store.cut.size(block)]}, 1.0)
    return store


def log(path):
    return path / ".tokenflock" / "blocks"


DAMAGE = {
    "a file": ("not the beginning of a run", lambda path: path.write_bytes(b"PK and so on")),
    "cut": ("does not describe", lambda path: _cut(path / "zarr.json")),
    "format": ("format 9 of stores", lambda path: _swap(path, '"format": 1', '"format": 9')),
    "grid": ("its grid makes no sense", lambda path: _swap(path, '"chunk": [2]', '"chunk": [0]')),
    "other": ("another run", lambda path: _swap(path, '"mark": "mark"', '"mark": "else"')),
    "log": ("damaged in line 1", lambda path: _scratch(log(path), 12)),
    "chunk": ("missing or damaged", lambda path: _cut(path / "x" / "c" / "1" / "0")),
    "codec": ("is none that a sweep", lambda path: _swap(path, '"name": "bytes"', '"name": "x"')),
    "name": ("is none that a sweep", lambda path: _swap(path, '"x": {', '"../x": {')),
    "arrays": ("is damaged", lambda path: _swap(path, '"metadata": {', '"metadata": {}, "was": {')),
}


def _cut(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _swap(path, old, new):
    text = (path / "zarr.json").read_text()
    assert old in text
    (path / "zarr.json").write_text(text.replace(old, new))


def _scratch(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_store_is_told_in_one_line(tmp_path, damage):
    path = tmp_path / "run.zarr"
    words, harm = DAMAGE[damage]
    if damage != "a file":
        small(path)
    harm(path)
    with pytest.raises(UserError, match=words) as told, Store(path) as store:
        store.begin("mark", Cut(("a",), (5,), (2,)), {})
    assert str(told.value).count("\n") == 0


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="holds other things"):
        Store(tmp_path).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_last_line_that_was_cut_short_is_none_and_its_block_is_done_again(tmp_path):
    path = tmp_path / "run.zarr"
    small(path)
    data = log(path).read_bytes()
    for cut in range(1, len(data.splitlines(keepends=True)[-1])):
        log(path).write_bytes(data[:-cut])
        assert Store(path).look().progress.done.tolist() == [True, False, False]
    with Store(path) as store:
        store.begin("mark", Cut(("a",), (5,), (2,)), {})
        store.put(2, {"x": np.ones((1, 4))}, 0.5)
    assert Store(path).look().progress.done.tolist() == [True, False, True]


def test_a_scratched_block_is_seen_and_mended(tmp_path):
    path = tmp_path / "run.zarr"
    store = small(path, (0, 1, 2))
    assert store.damaged() == []
    _scratch(path / "x" / "c" / "1" / "0", 3)
    assert store.damaged() == [1]
    with Store(path) as store:
        store.look().mend([1])
    assert Store(path).look().progress.done.tolist() == [True, False, True]
    assert Store(path).look().damaged() == []


def test_large_systems_are_kept_by_whole_blocks_only(tmp_path, monkeypatch):
    monkeypatch.setattr(storing, "MOST", 100)
    kept = Unfinished(tmp_path / "unfinished.npz")
    group = kept.open(0, 4)
    kept.keep(np.array([1, 2]), {"x": np.zeros((2, 50))})
    assert len(group.missing) == 4
    kept.keep(np.array([1, 2]), {"x": np.zeros((2, 2))})
    assert group.missing.tolist() == [0, 3]


def test_what_is_known_of_another_block_or_of_no_block_is_not_taken(tmp_path):
    kept = Unfinished(tmp_path / "unfinished.npz")
    kept.open(3, 4)
    kept.keep(np.array([1, 2]), {"x": np.ones((2, 2))})
    kept.write()
    assert kept.open(3, 4).missing.tolist() == [0, 3]
    assert len(kept.open(2, 4).missing) == 4 and len(kept.open(3, 2).missing) == 2
    kept.path.write_bytes(kept.path.read_bytes()[:-30])
    assert len(kept.open(3, 4).missing) == 4


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
