"""Sweeps as real processes: killed, out of room, scratched, run twice, on a Dask cluster.

Nothing is lost, nothing counts twice, and the result is the same bit for bit.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.errors import SimulationError
from tokenflock.sweeps import check, crews, read_spec, status, sweep
from tokenflock.sweeps.store import Store

SPEC = """
seed = 3
repeats = 20
t = 2.0
frames = 5
engine = "batch"
cells = 1
observe = ["mean-cosine", "pair-density"]
[dynamics]
name = "self-attention"
[start]
name = "uniform"
n = 6
d = 3
[solver]
name = "layer"
h = 0.1
[over]
beta = { first = 0.5, last = 9.0, count = 40 }
"""
RUN = "sweep spec.toml --store s.zarr"
# each file is written slowly, so that a kill falls between two of them
SLOW = (
    "import time, tokenflock.sweeps.store as s; put = s.put;"
    " s.put = lambda *a: (time.sleep(0.02), put(*a), time.sleep(0.02))"
)
SLOWER = SLOW.replace("0.02", "1")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The result of a run that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "spec.toml").write_text(SPEC)
    return sweep(read_spec(folder / "spec.toml"), folder / "s.zarr")


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def same(path: Path, whole) -> None:
    """A store holds the same numbers, bit for bit, and each block once."""
    result = flock.load(path)
    assert set(result.variables) == set(whole.variables)
    for name in whole.variables:
        np.testing.assert_array_equal(result[name].values, whole[name].values)
    lines = (path / ".tokenflock" / "blocks").read_text().splitlines()
    done = [line.split(",")[1] for line in lines if '["done"' in line]
    assert len(done) == len(set(done)) == 40
    assert check(path) == [] and not list(path.rglob("new"))


def blocks(path: Path) -> int:
    """How many blocks are done, as another process sees it."""
    with suppress(flock.UserError, OSError):
        return status(path).done
    return 0


def children(process: int) -> list[int]:
    """The processes that compute for a driver."""
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    lines = {int(child): Path(f"/proc/{child}/cmdline") for child in text.split()}
    return [child for child, line in lines.items() if b"spawn_main" in _read(line)]


def _read(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""


def test_a_driver_killed_twenty_times_loses_nothing(start, spec, whole):
    path, chance, kills = spec / "s.zarr", random.Random(5), 0
    while kills < 20:
        before = blocks(path)
        command = start(RUN, SLOW)
        with suppress(AssertionError):  # it may be through
            wanted = before + chance.randrange(1, 3)
            command.until(lambda wanted=wanted: blocks(path) >= min(wanted, 39))
        time.sleep(chance.uniform(0, 0.2))
        command.kill()
        kills += 1
        assert blocks(path) >= before
    code, _, err = start(RUN).end()
    assert code == 0, err
    same(path, whole)


def test_workers_that_die_have_their_blocks_done_elsewhere(start, spec, whole):
    path = spec / "s.zarr"
    command = start(f"{RUN} --processes 2", SLOW)
    for wanted in (2, 12):
        command.until(lambda wanted=wanted: blocks(path) >= wanted)
        os.kill(children(command.process.pid)[0], signal.SIGKILL)
    code, _, err = command.end()
    assert code == 0, err
    assert "died" in (path / ".tokenflock" / "log.txt").read_text()
    same(path, whole)


def test_workers_end_when_their_driver_is_killed(start, spec, whole):
    path = spec / "s.zarr"
    command = start(f"{RUN} --processes 2", SLOW)
    command.until(lambda: blocks(path) >= 3)
    workers = children(command.process.pid)
    command.kill()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    code, _, err = start(RUN).end()  # this process by itself goes on with it
    assert code == 0 and len(workers) == 2, err
    same(path, whole)


def test_a_dask_cluster_that_loses_a_worker_computes_the_same(start, spec, whole):
    from distributed import LocalCluster

    path = spec / "s.zarr"
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        command = start(f"{RUN} --dask {cluster.scheduler_address}", SLOW)
        command.until(lambda: blocks(path) >= 2)
        nanny = next(iter(cluster.workers.values()))
        os.kill(nanny.process.pid, signal.SIGKILL)
        code, _, err = command.end()
    assert code == 0, err
    same(path, whole)


@pytest.fixture
def dask_crew(monkeypatch):
    """A cluster of one worker that counts the cells of a block, and the crew that it is."""
    from distributed import LocalCluster

    monkeypatch.setattr(crews, "compute", lambda order, cells: f"{len(cells)} cells")
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        crew = crews.Cluster(None, cluster.scheduler_address)  # pyright: ignore[reportArgumentType]
        crew.give(7, [None] * 3)  # pyright: ignore[reportArgumentType]
        (future,) = crew.client.futures.values()
        _wait(lambda: future.status == "finished")
        yield cluster, crew, future
        crew.close()


def _wait(done, seconds=60):
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_answer_that_was_lost_with_its_dask_worker_is_computed_again(dask_crew):
    cluster, crew, future = dask_crew
    os.kill(cluster.workers[0].process.pid, signal.SIGKILL)
    _wait(lambda: future.status == "lost")
    assert crew.take() == (7, "3 cells")


def test_a_dask_scheduler_that_is_gone_is_told_in_one_line(dask_crew):
    cluster, crew, future = dask_crew
    cluster.close()
    _wait(lambda: future.status == "cancelled")
    with pytest.raises(SimulationError, match="is gone; what is done is kept"):
        crew.take()


def test_items_of_papers_run_side_by_side_with_the_same_verdicts(start, tmp_path):
    from distributed import LocalCluster

    line = "reproduce perspective/fig6 perspective/orthogonal"
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        code, _, err = start(f"{line} --dask {cluster.scheduler_address} --out there").end()
    assert code == 0, err
    assert start(f"{line} --out here").end()[0] == 0
    there, here = (tmp_path / name / "claims.json" for name in ("there", "here"))
    assert there.read_text() == here.read_text()
    assert (tmp_path / "there" / "index.html").exists()


def test_no_scheduler_is_told_in_one_line(start, spec):
    code, _, err = start(f"{RUN} --dask tcp://127.0.0.1:9").end()
    assert code == 2 and "no Dask scheduler answers" in err and err.count("\n") == 1, err


def test_a_full_disk_loses_nothing_and_more_room_goes_on(start, spec, small_disk, whole):
    disk = small_disk(400)
    (disk / "spec.toml").write_text(SPEC)
    code, _, err = start(RUN, folder=disk).end()
    assert code == 1 and err.count("\n") == 1 and "no space left on" in err, err
    assert 0 < blocks(disk / "s.zarr") < 40 and check(disk / "s.zarr") == []
    subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
    code, _, err = start(RUN, folder=disk).end()
    assert code == 0, err
    same(disk / "s.zarr", whole)


def test_of_two_drivers_the_second_is_refused_and_a_killed_one_leaves_no_lock(start, spec, whole):
    path = spec / "s.zarr"
    first = start(RUN, SLOWER)
    first.until(lambda: blocks(path) >= 1)
    code, _, err = start(RUN).end()
    assert code == 2 and "another process is adding to this run" in err, err
    code, out, err = start("sweep --status s.zarr").end()
    assert code == 0 and "a process is at work" in out, err
    first.kill()
    code, _, err = start(RUN).end()
    assert code == 0, err
    same(path, whole)


def test_a_scratched_block_is_found_and_computed_again(start, spec, whole):
    path = spec / "s.zarr"
    assert start(RUN).end()[0] == 0
    chunk = path / "mean_cosine" / "c" / "7" / "0"
    data = bytearray(chunk.read_bytes())
    data[3] ^= 8
    chunk.write_bytes(bytes(data))
    (path / "pair_density" / "c" / "9" / "0").unlink()
    code, _, err = start(RUN).end()
    assert code == 2 and "missing or damaged" in err and "--repair" in err, err
    code, _, err = start("sweep --check s.zarr").end()
    assert code == 1 and "block 7 is damaged" in err and "block 9 is damaged" in err, err
    code, out, err = start(f"{RUN} --repair").end()
    assert code == 0 and "2 damaged blocks forgotten" in out, err
    same(path, whole)


def test_a_clock_that_jumps_changes_nothing(start, spec, whole):
    jumps = (
        "import time, random; t = time.time; time.time = lambda: t() + random.uniform(-1e8, 1e8)"
    )
    code, _, err = start(RUN, jumps).end()
    assert code == 0, err
    same(spec / "s.zarr", whole)


def test_ctrl_c_says_how_to_go_on(start, spec, whole):
    command = start(RUN, SLOW)
    command.until(lambda: blocks(spec / "s.zarr") >= 2)
    command.send(signal.SIGINT)
    code, _, err = command.end()
    assert code == 130 and "the same command goes on from there" in err, err
    assert Store(spec / "s.zarr").look().progress.done.any()
    assert start(RUN).end()[0] == 0
    same(spec / "s.zarr", whole)
