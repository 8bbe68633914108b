"""Probes of real models as processes: killed, stopped, run twice, out of room."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest

import tokenflock as flock
from tests.faults.test_processes import names, same
from tests.probing.conftest import ids, small

pytestmark = pytest.mark.slow
PROBE = "probe albert --untrained --depth 24 --prompts 24 --out p.nc"


@pytest.fixture
def model(tmp_path):
    """A small ALBERT with the ids of 24 prompts beside it, in a folder of its own."""
    small("albert").save_pretrained(tmp_path / "albert")
    items = [{"text": one.text, "ids": list(one.ids)} for one in ids(*[40] * 24)]
    (tmp_path / "albert" / "prompts.json").write_text(json.dumps(items))
    return tmp_path


def begun(folder):
    """Whether a result is being written now."""
    return lambda: list(folder.glob(".tokenflock-*/p.nc"))


def test_a_killed_probe_leaves_nothing_half_and_runs_again_to_the_same_numbers(start, model):
    code, _, err = start(PROBE).end()
    assert code == 0, err
    whole = flock.load(model / "p.nc")
    assert whole.sizes["prompt"] == 24 and float(np.abs(whole.x).max("coord").min()) > 0
    (model / "p.nc").unlink()
    command = start(PROBE)
    command.until(begun(model))
    command.kill()
    assert "p.nc" not in names(model)
    code, _, err = start(PROBE).end()
    assert code == 0, err
    assert names(model) == ["albert", "p.nc"]  # the leftover is gone
    same(whole, flock.load(model / "p.nc"))


def test_a_probe_that_is_told_to_stop_stops_at_once_and_leaves_nothing(start, model):
    command = start(PROBE)
    command.until(begun(model))
    assert command.send(signal.SIGTERM) < 6
    code, _, err = command.end()
    assert code == 128 + signal.SIGTERM and err.count("\n") == 1 and "stopped" in err
    assert names(model) == ["albert"]


def test_two_probes_of_one_file_both_end_well(start, model):
    pair = [start(PROBE), start(PROBE)]
    assert [command.end()[0] for command in pair] == [0, 0]
    found = flock.load(model / "p.nc")
    assert names(model) == ["albert", "p.nc"]
    assert float(np.abs(found.x).max("coord").min()) > 0  # no prompt was lost


def test_a_full_disk_ends_a_probe_in_one_line(start, model, small_disk):
    disk = small_disk(64)
    line = PROBE.replace("albert", str(model / "albert"))
    code, _, err = start(line, folder=disk).end()
    assert code == 1 and err.count("\n") == 1 and "no space left on" in err, err
    assert names(disk) == []
