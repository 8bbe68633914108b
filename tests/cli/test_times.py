"""How long until, on the command line: events of many systems, long times, and runs again."""

from __future__ import annotations

import numpy as np
import pytest

import tokenflock as flock


@pytest.mark.slow
def test_phase_tells_how_long_until(call, tmp_path):
    code, out, err = call(
        "phase --n 3 --d 2 --beta 1,3 --solver rk4 --t 12 --frames 7 --repeats 8 --until"
        " consensus --delta 0.01 --out p.nc"
    )
    assert code == 0, err
    result = flock.load(tmp_path / "p.nc")
    assert "time until Consensus(delta=0.01)" in out
    assert f"median {float(result.median_time[0]):.6g}" in out
    assert result.first_passage.dims == ("beta", "repeat")
    code, _, err = call("plot p.nc --kind survival --out p.png")
    assert code == 0, err
    assert (tmp_path / "p.png").stat().st_size > 5_000
    code, _, err = call("rerun p.nc --member beta=3 --member repeat=5 --out m.nc")
    assert code == 0, err
    trajectory = flock.load(tmp_path / "m.nc")
    assert float(trajectory.time[-1]) == pytest.approx(float(result.first_passage[1, 5]), rel=1e-5)
    code, _, err = call("rerun p.nc --part beta=3 --out q.nc")
    assert code == 0, err
    part = flock.load(tmp_path / "q.nc")
    np.testing.assert_array_equal(part.first_passage, result.first_passage[1])  # with its NaN
    for line, words in (
        ("rerun p.nc --part beta=2 --out u.nc", "--part beta must be one of 1.0, 3.0, got 2"),
        ("rerun p.nc --member beta=x --out u.nc", "--member beta must be a number, got 'x'"),
        ("rerun p.nc --part gamma=2 --out u.nc", "--part must be of beta, repeat, time"),
        ("rerun p.nc --member beta=3 --set seed=1 --out u.nc", "leave --set and --part out"),
        ("rerun p.nc --member beta=3 --member repeat=9 --out u.nc", "from 0 to 7"),
    ):
        code, _, err = call(line)
        assert code == 2 and words in err, err


def test_phase_prints_the_restricted_mean_beside_the_share_censored(call):
    """In opposite tokens nothing happens: no error can be estimated then."""
    code, out, err = call(
        "phase --start polygon --n 2 --beta 1 --solver rk4 --step 0.5 --t 2 --frames 2 --repeats 4"
        " --until consensus --observe= --out p.nc"
    )
    assert code == 0, err
    assert "median more than 2, restricted mean 2, 1 censored" in " ".join(out.split())


@pytest.mark.slow
def test_simulate_coalesces_and_rerun_changes(call, tmp_path):
    code, out, err = call(
        "simulate --beta 9 --n 6 --d 3 --t 1e9 --frames 2 --until consensus --coalesce 1e-9"
        " --seed 0 --out r.nc"
    )
    assert code == 0, err
    first = flock.load(tmp_path / "r.nc")
    assert float(first.time[-1]) > 1e6 and first.heavy.values.tolist() == [6, 2]
    code, out, err = call("rerun r.nc --set beta=2 --set seed=4 --out s.nc")
    assert code == 0, err
    assert "SelfAttention(beta=2.0" in out
    again = flock.rerun(first, beta=2.0, seed=4)
    assert (flock.load(tmp_path / "s.nc").x == again.x).all()
    for line, words in (
        ("rerun r.nc --set beta --out u.nc", "name=value"),
        ("rerun r.nc --set gamma=1 --out u.nc", "no parameter 'gamma'"),
        ("rerun none.nc --out u.nc", "none.nc"),
    ):
        code, _, err = call(line)
        assert code == 2 and words in err, err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("simulate --coalesce 1e-20 --out a.nc", "ten times the solver's atol"),
        ("simulate --dynamics causal --coalesce 1e-9 --out a.nc", "tells tokens apart"),
        ("phase --until never --out a.nc", "events has no member"),
    ],
)
def test_refusals(call, line, words):
    code, _, err = call(line)
    assert code == 2 and words in err, err
