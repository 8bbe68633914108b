"""An ensemble that was stopped goes on from every finished system and ends with the same numbers,
bit for bit.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import zlib
from pathlib import Path

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
from tokenflock.sweeps import Spec, Store, check, repair, status, sweep
from tokenflock.sweeps import unfinished as storing
from tokenflock.sweeps.cut import MOST_BLOCKS, Cut
from tokenflock.sweeps.log import LONGEST
from tokenflock.sweeps.reading import drawable, lazily, read
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


class Killed(BaseException):
    """The end of a process, of which no code of ours hears."""


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
            raise Killed  # nothing more is written on the way out

    monkeypatch.setattr(Unfinished, "keep", killed)
    found = None
    while found is None and stops < 9:
        try:
            found = ensemble(law, Uniform(n=6, d=3), out=path, **(SHORT | options))
        except Killed:
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


# --------------------------------------------------------------------------------------------------
# stores that somebody sent

OURS = [
    "zarr.json",
    ".tokenflock",
    ".tokenflock/blocks",
    ".tokenflock/unfinished.npz",
    ".tokenflock/log.txt",
    ".tokenflock/new",
    "x",
    "x/zarr.json",
    "x/c",
    "x/c/1",
    "x/c/1/0",
    "a/c/0",
]


def goes_on(path) -> None:
    """Add the last block to a store of three."""
    with Store(path) as store:
        store.begin("mark", Cut(("a",), (5,), (2,)), {})
        store.put(2, {"x": np.ones((1, 4))}, 0.5)


WAYS = {
    "status": status,
    "check": check,
    "repair": repair,
    "goes on": goes_on,
    "draw": lambda path: drawable(Store(path).look()),
    "open": lambda path: lazily(Store(path).look()).x.values,
}


def refusal(walk, path) -> str:
    """Why something is refused; empty where it is not."""
    try:
        walk(path)
    except UserError as error:
        return str(error)
    return ""


def put_away(path: Path, name: str) -> Path:
    """Take what lies at a place of a store out of it, and have a link there."""
    away = path.with_name("away")
    if (path / name).exists():
        (path / name).rename(away)
    else:
        away.write_bytes(b"precious")
    (path / name).symlink_to(away)
    return away


def told(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, or the file itself, and what it holds."""
    files = [path for path in (folder, *folder.rglob("*")) if path.is_file()]
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", OURS)
def test_a_link_in_a_store_leads_to_no_file_of_the_user(tmp_path, name):
    path = tmp_path / "run.zarr"
    small(path)
    away = put_away(path, name)
    before = told(away)
    for way, walk in WAYS.items():
        words = refusal(walk, path)
        # what is not looked at is not written either
        unseen = name == "a/c/0" or (way == "status" and name in ("x/c/1", "x/c/1/0"))
        assert "is a link" in words or (unseen and not words), (way, words)
        assert "\n" not in words
    assert told(away) == before


def test_a_link_where_a_store_would_begin_is_refused(tmp_path):
    path, away = tmp_path / "run.zarr", tmp_path / "away"
    for name in (".tokenflock", ".tokenflock/blocks", "zarr.json", "x", "a"):
        shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(away, ignore_errors=True)
        (path / ".tokenflock").mkdir(parents=True)
        away.mkdir()
        (away / "blocks").write_bytes(b"precious")
        if name == ".tokenflock":
            (path / name).rmdir()
        (path / name).symlink_to(away / "blocks" if name.endswith("blocks") else away)
        with pytest.raises(UserError):
            small(path)
        assert told(away) == {str(away / "blocks"): b"precious"}


def test_a_link_to_a_store_is_followed(tmp_path):
    (tmp_path / "run.zarr").symlink_to(tmp_path / "large.zarr")
    (tmp_path / "large.zarr").mkdir()
    small(tmp_path / "run.zarr")
    goes_on(tmp_path / "run.zarr")
    assert Store(tmp_path / "large.zarr").look().progress.done.all()
    assert repair(tmp_path / "run.zarr") == []


@pytest.mark.parametrize("name", [name for name in OURS if "." in name or "/0" in name])
def test_a_pipe_in_a_store_is_not_waited_for(tmp_path, name):
    path = tmp_path / "run.zarr"
    small(path)
    shutil.rmtree(path / name) if (path / name).is_dir() else (path / name).unlink(missing_ok=True)
    os.mkfifo(path / name)
    for way, walk in WAYS.items():
        if way in ("draw", "open") or "/0" not in name:
            with pytest.raises(UserError, match="pipe"):
                walk(path)
    if name == "x/c/1/0":
        with pytest.raises(UserError, match="pipe"):
            check(path)


def test_a_link_that_comes_later_is_not_followed_either(tmp_path):
    """Each file is looked at again when it is written."""
    path, away = tmp_path / "run.zarr", tmp_path / "away"
    away.write_bytes(b"precious")
    with Store(path) as store:
        store.begin("mark", Cut(("a",), (5,), (2,)), {})
        store.log.close()
        (path / ".tokenflock" / "new").symlink_to(away)
        store.unfinished.open(0, 2)
        store.unfinished.keep(np.array([1]), {"x": np.ones((1, 2))})
        store.unfinished.write()
        (path / ".tokenflock" / "new").symlink_to(away)
        store.mend([])
        store.log.path.unlink()
        store.log.path.symlink_to(away)
        with pytest.raises(UserError, match="is a link"):
            store.log.open()
        with pytest.raises(UserError, match="is a link"):
            store.log.read(3)
    assert away.read_bytes() == b"precious"


def plain(path: Path) -> dict:
    return json.loads((path / "zarr.json").read_text())


def arrays_of(told: dict) -> dict:
    return told["consolidated_metadata"]["metadata"]


def grid_of(told: dict, name: str) -> dict:
    return arrays_of(told)[name]["chunk_grid"]["configuration"]


def swap_dims(told: dict) -> None:
    arrays_of(told)["x"]["dimension_names"] = ["a", "a"]


LIES = {  # what a description says that is not so
    "a grid that the arrays do not have": lambda told: told["attributes"]["tokenflock"].update(
        shape=[2**23], chunk=[1]
    ),
    "blocks beyond all counting": lambda told: told["attributes"]["tokenflock"].update(
        dims=["a", "b"], shape=[2**39] * 2, chunk=[1, 1]
    ),
    "chunks larger than the grid": lambda told: told["attributes"]["tokenflock"].update(
        chunk=[2**39]
    ),
    "a longer array": lambda told: arrays_of(told)["x"].update(shape=[50, 4]),
    "chunks of an array": lambda told: grid_of(told, "x").update(chunk_shape=[1, 4]),
    "a cut frame": lambda told: grid_of(told, "x").update(chunk_shape=[2, 1]),
    "chunks of an axis": lambda told: grid_of(told, "time").update(chunk_shape=[1]),
    "another length": lambda told: arrays_of(told)["x"].update(shape=[5, 8]),
    "an axis twice": swap_dims,
    "no array of what is done": lambda told: arrays_of(told).pop("done"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_description_that_disagrees_with_itself_is_refused(tmp_path, lie):
    path = tmp_path / "run.zarr"
    small(path)
    wrong = plain(path)
    LIES[lie](wrong)
    (path / "zarr.json").write_text(json.dumps(wrong))
    for walk in (status, check, repair, goes_on):
        with pytest.raises(UserError, match=r"is damaged|none that a sweep") as error:
            walk(path)
        assert "\n" not in str(error.value)


def test_more_blocks_than_can_be_kept_are_refused_before_anything_is_made(tmp_path):
    path = tmp_path / "run.zarr"
    for shape in ((MOST_BLOCKS + 1,), (2**39, 2**39)):
        with Store(path) as store, pytest.raises(UserError, match="larger cells"):
            store.begin("mark", Cut(("a", "b")[: len(shape)], shape, (1,) * len(shape)), {})
    assert not (path / "zarr.json").exists()


def entry(*words) -> bytes:
    text = json.dumps(list(words)).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


@pytest.mark.parametrize(
    "words",
    [
        ("done", 0, 1, -1e308),
        ("done", 0, 1, float("nan")),
        ("done", 0, 1, float("inf")),
        ("done", 0, 1, 1e308),
        ("done", 0, 1, "long"),
        ("done", 0, 1, []),
        ("done", 0, -1, 1.0),
        ("done", 0, 2**64, 1.0),
        ("done", 0, 1.5, 1.0),
        ("done", True, 1, 1.0),
        ("done", 7, 1, 1.0),
        ("failed", 7, "why"),
    ],
)
@pytest.mark.parametrize("blank", [b"", b" "])
def test_numbers_of_the_log_that_make_no_sense_are_damage(tmp_path, words, blank):
    path = tmp_path / "run.zarr"
    small(path, ())
    text = blank + json.dumps(list(words)).encode()
    log(path).write_bytes(b"%08x %s\n" % (zlib.crc32(text), text) + entry("failed", 1, "why"))
    with pytest.raises(UserError, match="damaged in line 1"):
        status(path)
    repair(path)
    assert status(path).done == 0 and status(path).seconds == 0


def test_a_log_far_too_long_is_not_read(tmp_path):
    path = tmp_path / "run.zarr"
    small(path)
    os.truncate(log(path), 2**40)  # takes no room on the disk
    for walk in (status, repair):
        with pytest.raises(UserError, match="bytes"):
            walk(path)


def test_the_longest_error_makes_a_line_that_can_be_read(tmp_path):
    path = tmp_path / "run.zarr"
    with Store(path) as store:
        store.begin("mark", Cut(("a",), (5,), (2,)), {})
        store.fail(1, "\U0001f426" * 1000)
    assert max(map(len, log(path).read_bytes().splitlines())) < LONGEST
    assert status(path).failed[1].startswith("\U0001f426")


def test_unfinished_systems_that_cannot_be_read_are_none(tmp_path):
    """Whatever bits flip, the file is taken or is not; it never stops a run."""
    kept = Unfinished(tmp_path / "unfinished.npz")
    kept.open(3, 10)
    kept.group.put(np.arange(4), {"x": np.ones((4, 5)), "y": np.ones((4, 2), np.float32)})
    kept.write()
    whole, chance = kept.path.read_bytes(), random.Random(1)
    for k in range(600):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2])):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        kept.path.write_bytes(data[: chance.randrange(len(data))] if k % 10 == 0 else data)
        group = Unfinished(kept.path).open(3, 10)
        assert len(group.missing) in (6, 10)
        assert all(len(array) == 10 for array in group.values.values())


@pytest.mark.parametrize(
    "held",
    [
        {"rows": np.arange(2), "~x": np.float64(3)},
        {"rows": np.array(3), "~x": np.ones(1)},
        {"rows": np.arange(2), "~x": np.array(["a", "b"])},
        {"rows": np.arange(2)},
        {"rows": np.zeros(2, int), "~x": np.ones((2, 5))},
    ],
)
def test_unfinished_systems_of_another_kind_are_none(tmp_path, held):
    kept = Unfinished(tmp_path / "unfinished.npz")
    np.savez(kept.path, block=np.asarray(3), **held)
    assert len(kept.open(3, 10).missing) == 10


@pytest.mark.parametrize("name", ["pair_density", "other"])
def test_a_run_goes_on_from_its_beginning_where_unfinished_systems_are_of_another_kind(
    tmp_path, name
):
    """Whether their shape is another, or the name: the same numbers come."""
    path = tmp_path / "run.zarr"
    spec = Spec(SelfAttention(), Uniform(n=4, d=2), {"beta": [1.0]}, Layer(h=0.1), t=1.0, frames=3)
    whole = sweep(spec, tmp_path / "whole.zarr")
    with Store(path) as store:
        store.begin(spec.asked().mark(), Cut(("beta",), (1,), (1,)), spec.asked().told())
        group = store.unfinished.open(0, spec.repeats)
        group.put(np.arange(9), {name: np.ones((9, 7))})
        store.unfinished.write()
    np.testing.assert_array_equal(sweep(spec, path).pair_density, whole.pair_density)


def test_a_store_of_which_bits_flip_is_told_in_one_line_or_read(tmp_path):
    path, chance = tmp_path / "run.zarr", random.Random(2)
    small(path, (0, 1, 2))
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    for k in range(400):
        file = chance.choice(files)
        whole = file.read_bytes()
        data = bytearray(whole)
        if k % 4:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        else:
            data = data[: chance.randrange(len(data))]
        file.write_bytes(data)
        for walk in (status, check, lambda path: read(Store(path).look())):
            assert "\n" not in refusal(walk, path)
        file.write_bytes(whole)


def test_a_block_that_is_to_be_done_again_is_not_shown(tmp_path):
    path = tmp_path / "run.zarr"
    small(path, (0, 1, 2))
    _scratch(path / "x" / "c" / "1" / "0", 7)
    assert repair(path) == [1]
    result = read(Store(path).look())
    assert result.done.values.tolist() == [True, True, False, False, True]
    assert np.isnan(result.x.values[2:4]).all()
