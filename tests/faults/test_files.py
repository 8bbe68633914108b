"""What files promise: whole or not at all, ours alone, nobody else's."""

from __future__ import annotations

import fcntl
import os
import resource
import stat
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock import files
from tokenflock.errors import UserError
from tokenflock.files import NETCDF, NoSpace, replaceable, whole, writable
from tokenflock.locks import alone
from tokenflock.probing.streaming import File


@contextmanager
def full_disk(room: int = 20_000):
    """No file may grow beyond `room` bytes: a full disk, for anyone who is not root."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def result(value: float = 1.0, size: int = 10) -> xr.Dataset:
    return xr.Dataset({"x": ("k", np.full(size, value))}, attrs={"recipe": "{}"})


def block(value: float, prompts: int = 1, size: int = 100) -> xr.Dataset:
    x = np.full((prompts, size), value)
    return xr.Dataset({"x": (("prompt", "k"), x)}, attrs={"recipe": "{}"})


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --------------------------------------------------------------------------------------------------
# one name per process, nothing left


def test_two_writers_of_one_file_both_complete_and_the_last_wins_whole(tmp_path):
    path = tmp_path / "a"
    with whole(path) as mine:
        mine.write_text("mine")
        with whole(path) as theirs:
            assert theirs != mine
            theirs.write_text("theirs")
        assert path.read_text() == "theirs"
    assert path.read_text() == "mine" and names(tmp_path) == ["a"]


def test_what_a_killed_process_left_is_cleared_and_what_a_living_one_writes_is_not(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for process, name in ((gone.pid, "dead"), (os.getppid(), "alive")):
        (tmp_path / f".tokenflock-{process}-{name}").mkdir()
        (tmp_path / f".tokenflock-{process}-{name}" / "run.nc").write_text("half")
    (tmp_path / ".tokenflock-notes").mkdir()  # the user's own
    flock.save(result(), tmp_path / "run.nc")
    assert names(tmp_path) == sorted(
        [f".tokenflock-{os.getppid()}-alive", ".tokenflock-notes", "run.nc"]
    )


def test_what_a_process_of_another_container_writes_is_not_cleared(tmp_path):
    """Its number is nobody's here; its lock says that it lives."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    other = tmp_path / f".tokenflock-{gone.pid}-other"
    other.mkdir()
    handle = os.open(other, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    flock.save(result(), tmp_path / "run.nc")
    assert names(tmp_path) == [other.name, "run.nc"]
    os.close(handle)
    flock.save(result(), tmp_path / "run.nc")
    assert names(tmp_path) == ["run.nc"]


def test_the_hidden_folder_is_locked_as_long_as_it_is_written_to(tmp_path):
    with whole(tmp_path / "a") as part:
        handle = os.open(part.parent, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.write_text("a")
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)


def test_who_stops_waits_for_a_file_that_is_soon_written_not_for_one_that_grows(tmp_path):
    with whole(tmp_path / "a") as part:
        assert files.busy()
        part.write_text("a")
    with whole(tmp_path / "b", lasting=True) as part:
        assert not files.busy()
        part.write_text("b")
    assert not files.busy()


def test_what_was_sent_is_read_from_files_only_and_within_bounds(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    os.mkfifo(tmp_path / "pipe")
    assert files.received(tmp_path / "a", 5) == b"12345"
    with pytest.raises(UserError, match="holds 5 bytes; at most 4"):
        files.received(tmp_path / "a", 4)
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(UserError, match="must be a file"):
            files.received(path, 100)
    with pytest.raises(FileNotFoundError):
        files.received(tmp_path / "b", 100)


def test_a_writing_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")

    def fail():
        with whole(path) as part:
            part.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "old" and names(tmp_path) == ["a"] and not files.busy()


def test_a_process_that_must_end_takes_its_half_written_files_with_it(tmp_path):
    with suppress(FileNotFoundError), whole(tmp_path / "a") as part:
        part.write_text("half")
        assert files.busy()
        files.discard()
    assert names(tmp_path) == []


# --------------------------------------------------------------------------------------------------
# links, modes, devices, foreign files


def test_a_link_stays_and_its_target_is_written(tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "run.nc", tmp_path / "run.nc"
    link.symlink_to(target)
    for value in (1.0, 2.0):  # the target is made, then replaced
        flock.save(result(value), link)
        assert link.is_symlink() and float(flock.load(target).x[0]) == value
    assert names(tmp_path) == ["far", "run.nc"]


def test_a_replaced_file_keeps_its_mode_and_a_new_one_honours_the_umask(tmp_path):
    path = tmp_path / "run.nc"
    before = os.umask(0o027)
    try:
        flock.save(result(), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        os.umask(0o022)
        flock.save(result(), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)


def test_devices_pipes_and_endless_links_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "null").symlink_to("/dev/null")
    for path in ("/dev/null", tmp_path / "pipe", tmp_path / "null"):
        with pytest.raises(UserError, match="not a file; choose another path"):
            writable(path)
    with pytest.raises(UserError, match="cannot be written"):
        writable(tmp_path / "loop")


@pytest.mark.parametrize("kind", [NETCDF, ".png", ".pdf", ".svg", ".gif", ".mp4", ".html", ".json"])
def test_a_file_that_is_not_ours_is_not_written_over(tmp_path, kind):
    path = tmp_path / "mine"
    assert replaceable(path, kind) is False
    path.write_text("the only copy of my thesis")
    with pytest.raises(UserError, match="move it away, or choose another path"):
        replaceable(path, kind)
    path.write_text("")
    assert replaceable(path, kind) is True  # nothing to lose


def test_a_netcdf_file_of_someone_else_is_not_ours(tmp_path):
    path = tmp_path / "climate.nc"
    result().drop_attrs().to_netcdf(path, engine="h5netcdf")
    with pytest.raises(UserError, match="no netCDF file of tokenflock"):
        replaceable(path, NETCDF)
    flock.save(result(), path)
    assert replaceable(path, NETCDF)


# --------------------------------------------------------------------------------------------------
# a full disk


def test_a_full_disk_is_one_clear_line_and_nothing_is_left(tmp_path):
    with full_disk(), pytest.raises(NoSpace, match=r"no space left on .*; free some or choose"):
        flock.save(result(size=100_000), tmp_path / "run.nc")
    assert names(tmp_path) == []
    flock.save(result(), tmp_path / "run.nc")  # the library is still sound


def test_a_full_disk_ends_a_streamed_result_at_once(tmp_path):
    added = []

    def stream():
        with File(tmp_path / "probe.nc", 1000) as file:
            for k in range(1000):
                file.add(block(float(k)))
                added.append(k)

    with full_disk(), pytest.raises(NoSpace):
        stream()
    assert len(added) < 100 and names(tmp_path) == []


def test_two_streams_to_one_file_leave_no_gaps(tmp_path):
    path = tmp_path / "probe.nc"
    with File(path, 4) as first:
        first.add(block(1.0, 2))
        with File(path, 4) as second:
            second.add(block(2.0, 4))
        first.add(block(1.0, 2))
    found = flock.load(path)
    assert (found.x == 1.0).all() and found.sizes["prompt"] == 4 and names(tmp_path) == ["probe.nc"]


# --------------------------------------------------------------------------------------------------
# one process at a time where work accumulates


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_the_second_process_is_refused_and_the_lock_goes_with_its_owner(tmp_path, kind):
    path = tmp_path if kind == "folder" else tmp_path / "run.part"
    with (
        alone(path, "training"),
        pytest.raises(UserError, match="is training"),
        alone(path, "training"),
    ):
        pass
    with alone(path, "training this model"):
        pass
    assert names(tmp_path) == []
