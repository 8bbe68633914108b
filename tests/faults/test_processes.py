"""Long commands as processes: stopped, killed, run twice, out of room. Nothing is lost."""

from __future__ import annotations

import random
import signal
import time

import numpy as np
import pytest

import tokenflock as flock

OFTEN = (
    "import tokenflock.sweeps.unfinished as s; s.SECONDS = 0.05"  # what is done is written often
)
SIMULATE = "simulate --n 8 --t 5 --frames 11 --out run.nc"
ENDLESS = "simulate --n 8 --solver layer --step 1e-6 --t 1000 --frames 3 --out run.nc"
PHASE = (
    "phase --n 24 --d 3 --beta 0.5,4,9 --t 20 --frames 21 --repeats 2800 --engine batch --out p.nc"
)
TRAIN = (
    "gpt train --preset quick --steps 60 --every 10 --batch 4 --context 16 --width 16 --heads 2"
    " --depth 1 --watch 5,25 --out m"
)


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def same(one, two) -> None:
    """The same numbers, bit for bit."""
    assert set(one.variables) == set(two.variables)
    for name in one.variables:
        np.testing.assert_array_equal(one[name].values, two[name].values)


# --------------------------------------------------------------------------------------------------
# Ctrl-C


def test_ctrl_c_ends_compiled_code_that_does_not_look_at_it(start, tmp_path):
    """The first frame takes minutes and is one compiled call."""
    endless = start(ENDLESS)
    time.sleep(0.5)
    endless.until(lambda: _cpu(endless) > 4)
    seconds = endless.send(signal.SIGINT)
    code, _, err = endless.end()
    assert code == 130 and err.strip() == "error: stopped"
    assert seconds < 10 and names(tmp_path) == []


def _cpu(command) -> float:
    """Seconds of processor time of a command."""
    with open(f"/proc/{command.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_no_interrupt_is_swallowed_whenever_it_comes(start, tmp_path, number):
    chance = random.Random(int(number))
    for _ in range(12):
        command = start(ENDLESS)
        moment = chance.uniform(0.3, 5.0)
        command.until(lambda moment=moment, command=command: _cpu(command) > moment)
        assert command.send(number) < 10
        code, _, err = command.end()
        assert code == 128 + number and err.strip() == "error: stopped", (moment, code, err)
        assert names(tmp_path) == []


# --------------------------------------------------------------------------------------------------
# kill -9 and go on


def _written(path) -> int:
    """When a file was written last; 0 where it is not there."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


@pytest.mark.slow
def test_a_killed_phase_goes_on_and_ends_with_the_same_numbers(start, tmp_path):
    store = tmp_path / "p.nc.part" / ".tokenflock" / "unfinished.npz"
    for _ in range(3):
        seen = _written(store)
        command = start(PHASE, OFTEN)
        command.until(lambda seen=seen: _written(store) > seen)
        command.kill()
    stopped = start(PHASE, OFTEN)
    stopped.until(lambda: _cpu(stopped) > 4)
    stopped.send(signal.SIGINT)
    code, _, err = stopped.end()
    assert code in (0, 130)
    if code == 130:
        assert "the same command goes on from there" in err
    code, _, err = start(PHASE).end()
    assert code == 0, err
    assert names(tmp_path) == ["p.nc"]
    code, _, err = start(PHASE.replace("p.nc", "whole.nc")).end()
    assert code == 0, err
    same(flock.load(tmp_path / "p.nc"), flock.load(tmp_path / "whole.nc"))


@pytest.mark.slow
def test_a_killed_training_goes_on_and_ends_with_the_same_weights(start, tmp_path):
    weights = tmp_path / "m" / "model.safetensors"
    for _ in range(3):
        seen = weights.stat().st_mtime_ns if weights.exists() else 0
        command = start(TRAIN)
        command.until(lambda seen=seen: weights.exists() and weights.stat().st_mtime_ns > seen)
        command.kill()
    code, _, err = start(TRAIN).end()
    assert code == 0, err
    code, _, err = start(TRAIN.replace("--out m", "--out whole")).end()
    assert code == 0, err
    for name in ("config.json", "model.safetensors", "prompts.json"):
        assert (tmp_path / "m" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    same(flock.load(tmp_path / "m" / "watch.nc"), flock.load(tmp_path / "whole" / "watch.nc"))
    assert names(tmp_path / "m") == names(tmp_path / "whole")


@pytest.mark.slow
def test_a_killed_simulation_and_film_leave_nothing_half_and_run_again(start, tmp_path):
    assert start(SIMULATE).end()[0] == 0
    first = flock.load(tmp_path / "run.nc")
    film = "film run.nc --out run.mp4 --seconds 20"
    filming = start(film)
    filming.until(lambda: any(name.startswith(".tokenflock-") for name in names(tmp_path)))
    filming.kill()
    assert "run.mp4" not in names(tmp_path)
    code, out, err = start("film run.nc --out run.mp4 --seconds 1").end()
    assert code == 0, err
    assert names(tmp_path) == ["run.mp4", "run.nc"]  # the leftover is gone
    code, out, err = start(SIMULATE).end()
    assert code == 0 and "saved run.nc (replaced)" in out
    same(first, flock.load(tmp_path / "run.nc"))


@pytest.mark.slow
def test_a_killed_report_goes_on_item_by_item(start, tmp_path):
    line = "reproduce perspective/fig6 perspective/orthogonal --out r"
    notes = tmp_path / "r" / "data" / "perspective"
    command = start(line)
    command.until(lambda: notes.exists() and list(notes.glob("*.json")))
    command.kill()
    code, out, err = start(line).end()
    assert code == 0, err
    assert "as before" in out and (tmp_path / "r" / "index.html").exists()
    assert not [path for path in (tmp_path / "r").rglob(".tokenflock-*")]


# --------------------------------------------------------------------------------------------------
# two processes


@pytest.mark.slow
def test_of_two_trainings_in_one_folder_the_second_is_refused(start, tmp_path):
    first = start(TRAIN.replace("--steps 60", "--steps 100000"))
    first.until((tmp_path / "m" / "model.safetensors").exists)
    code, _, err = start(TRAIN.replace("--steps 60", "--steps 100000")).end()
    assert code == 2 and "another process is training this model" in err
    assert first.send(signal.SIGINT) < 10
    code, _, err = first.end()
    assert code == 130 and "the same command goes on from the last checkpoint in m" in err


@pytest.mark.slow
def test_two_simulations_of_one_file_both_end_well(start, tmp_path):
    pair = [start(SIMULATE), start(SIMULATE)]
    assert [command.end()[0] for command in pair] == [0, 0]
    assert names(tmp_path) == ["run.nc"] and flock.load(tmp_path / "run.nc").sizes["time"] == 11


# --------------------------------------------------------------------------------------------------
# full and read-only disks, no home


@pytest.mark.slow
def test_a_full_disk_loses_nothing(start, small_disk):
    disk = small_disk(64)
    code, _, err = start(SIMULATE.replace("--frames 11", "--frames 2001"), folder=disk).end()
    assert code == 1 and err.count("\n") == 1 and "no space left on" in err, err
    assert names(disk) == []
    line = "phase --n 4 --d 2 --beta 0.1:9:45 --t 40 --frames 401 --repeats 2 --out p.nc"
    code, _, err = start(line, folder=disk).end()
    assert code == 1 and err.count("\n") == 1 and "no space left on" in err, err
    code, _, err = start("reproduce perspective/fig6 --out r", folder=disk).end()
    assert code == 1 and err.strip().count("\n") == 0 and "no space left on" in err, err
    code, _, err = start(TRAIN.replace("--width 16", "--width 64"), folder=disk).end()
    assert code == 1 and "no space left on" in err.splitlines()[-1], err
    assert not list(disk.rglob(".tokenflock-*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["film.mp4", "film.gif", "film.html"])
def test_a_full_disk_ends_a_film_in_one_line(start, small_disk, name):
    disk = small_disk(96)
    assert start(SIMULATE.replace("--frames 11", "--frames 61"), folder=disk).end()[0] == 0
    line = f"film run.nc --out {name} --seconds 8 --size 1280x720"
    code, _, err = start(line, folder=disk).end()
    assert code == 1 and err.count("\n") == 1 and f"to write {name}; free some" in err, err
    assert names(disk) == ["run.nc"]


@pytest.mark.slow
def test_read_only_folders_and_no_home_are_borne(start, small_disk, tmp_path):
    disk = small_disk(64, "ro")
    for line in (SIMULATE, PHASE, TRAIN, "reproduce perspective/fig6 --out r"):
        code, _, err = start(line, folder=disk).end()
        assert code == 2 and err.count("\n") == 1 and "choose another" in err, err
    nowhere = {"HOME": None, "TMPDIR": "/nowhere", "TOKENFLOCK_CACHE": None}
    code, _, err = start(SIMULATE, **nowhere, XDG_CACHE_HOME=str(disk)).end()
    assert code == 0 and err == "", err
    homeless = "import pathlib; pathlib.Path.home = lambda: (_ for _ in ()).throw(RuntimeError())"
    code, _, err = start(SIMULATE, homeless, **nowhere, XDG_CACHE_HOME=None).end()
    assert code == 0 and err == "", err
