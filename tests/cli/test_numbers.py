"""Hostile numbers in every option of every member: one clear line, or a run of finite numbers.

The command lines come from the catalogue, so that a new member is tried because it exists.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import tokenflock as flock
from tests.cli.hostile import lines, write_arrays

SECONDS = 90  # on a busy machine, the compilation of a law among them
REFUSED = ("nan", "inf", "-inf", "", "abc")  # before anything runs
EVERY = list(lines())
QUICK = [line for line in EVERY if line[-1].partition("=")[2] in REFUSED][::7]


def judge(call, line):
    """One line on standard error, or numbers; a value that is not finite is told."""
    since = time.monotonic()
    code, out, err = call(line)
    told = [part for part in err.splitlines() if part.strip()]
    assert time.monotonic() - since < SECONDS
    assert "Traceback" not in err and "this is a bug" not in err, err
    if code != 0:
        assert code in (1, 2) and len(told) == 1 and told[0].startswith("error:"), err
        words = ("numbers", "stiff", "not a number", "not finite")
        assert code == 2 or any(each in err for each in words), err
        return
    run = flock.load("run.nc")
    assert np.isfinite(run.x).all()
    for name, variable in run.variables.items():
        if variable.dtype.kind == "f" and not np.isfinite(variable.values).all():
            assert f"{name} is not finite" in out or "nan" in str(variable.attrs), (name, out)


@pytest.mark.parametrize("line", QUICK, ids=lambda line: " ".join(line[4:])[:60])
def test_a_hostile_number_is_refused_in_one_line(call, tmp_path, line):
    write_arrays(tmp_path)
    judge(call, line)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("line", EVERY, ids=lambda line: " ".join(line[4:])[:60])
def test_a_hostile_number_is_one_line_or_a_run_of_numbers(call, tmp_path, line):
    write_arrays(tmp_path)
    judge(call, line)


def test_every_member_with_a_number_is_tried():
    """The list is no shorter than the catalogue: its laws, starts, solvers, events and parts."""
    words = {word for line in EVERY for word in line}
    for member in ("dynamics=sinkhorn", "start=cap", "solver=rk4", "until=merged", "norm=mix"):
        assert f"--{member}" in words
    assert any(word.startswith("--observe=histogram:bins=") for word in words)
    assert len(EVERY) > 1500
