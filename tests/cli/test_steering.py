"""The commands `steer`, `branch`, `spectrum` and `lyapunov`, and what `plot` makes of files."""

from __future__ import annotations

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.theory import polygon_eigenvalue


@pytest.mark.slow
def test_steer_reads_clouds_and_targets_and_draws_what_it_found(call, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(2, 3, 3)))
    np.save(tmp_path / "y.npy", np.eye(3)[:2])
    code, out, err = call(
        "steer --inputs x.npy --targets y.npy --pieces 1 --heads 1 --width 2 --t 0.4 --steps 3"
        " --out s.nc --plot s.png"
    )
    assert code == 0, err
    assert out.count("W2 to its target") == 2
    found = flock.load(tmp_path / "s.nc")
    assert np.allclose(found.target[:, 0], np.eye(3)[:2])
    assert (tmp_path / "s.png").stat().st_size > 10_000
    code, _, err = call("plot s.nc --theme dark --out again.png")
    assert code == 0, err
    assert call("plot s.nc --kind timeline")[0] == 2
    code, _, err = call("steer --inputs x.csv")
    assert code == 2 and ".npy" in err


def test_steer_of_width_0_is_attention_alone(call, tmp_path):
    code, out, err = call("steer --width 0 --clouds 2 --n 3 --pieces 1 --heads 1 --steps 2 --t 0.4")
    assert code == 0, err
    assert "0 neurons" in out and "W" not in flock.load(tmp_path / "steer.nc")


@pytest.mark.slow
def test_branch_follows_draws_and_refuses(call, tmp_path):
    code, out, err = call("branch --beta 4 --points 64 --step 0.3 --out b.nc --plot b.png")
    assert code == 0, err
    assert "leaves the uniform measure at kappa = 0.4098585257" in out
    assert "fold at kappa = 0.38706" in out
    assert flock.load(tmp_path / "b.nc").attrs["parameter"] == "kappa"
    code, _, err = call("plot b.nc --theme dark")
    assert code == 0, err
    code, _, err = call("branch --dynamics sinkhorn --out c.nc")
    assert code == 2 and "--within" in err


def test_spectrum_tells_rates_and_whether_the_state_is_at_rest(call, tmp_path):
    code, out, err = call("spectrum --beta 4 --n 3 --out s.nc")
    assert code == 0, err
    expected = polygon_eigenvalue([1, 2, 0], 3, 4.0)
    assert np.allclose(flock.load(tmp_path / "s.nc").rate, expected, atol=1e-6)
    assert out.count("rate +0.02589") == 2 and "not at rest" not in out
    assert call("plot s.nc --theme dark")[0] == 0 and (tmp_path / "s.png").exists()
    assert call("plot s.nc --kind circle")[0] == 2
    told = " ".join(call("spectrum --start uniform --n 3 --d 2 --out t.nc")[1].split())
    assert "warning: the state is not at rest" in told and "lyapunov" in told
    code, _, err = call("spectrum --t 0.1")
    assert code == 2 and "--solver" in err


def test_lyapunov_tells_exponents(call, tmp_path):
    code, out, err = call(
        "lyapunov --beta 1 --start cap --angle 0.5 --n 3 --d 2 --solver layer --step 0.1 --t 30"
        " --exponents 2"
    )
    assert code == 0, err
    exponents = flock.load(tmp_path / "lyapunov.nc").exponent
    assert np.allclose(exponents, [0, -np.log(1.1) / 0.1], atol=1e-3)
    assert out.count("exponent") == 2
    assert call("plot lyapunov.nc --out l.svg")[0] == 0 and (tmp_path / "l.svg").exists()


@pytest.mark.parametrize("command", ["steer", "branch", "phase"])
def test_what_holds_no_picture_is_refused_before_anything_runs(call, tmp_path, command):
    code, _, err = call(f"{command} --plot picture.txt")
    assert code == 2 and "--plot writes .png, .pdf or .svg" in err and "picture.png" in err
    assert list(tmp_path.iterdir()) == []
