"""The command `sweep`, and what `plot` makes of a store."""

from __future__ import annotations

import pytest
import xarray as xr

import tokenflock as flock

SPEC = """\
repeats = 4
t = 1.0
frames = 3
engine = "batch"
observe = ["mean-cosine"]
[dynamics]
name = "self-attention"
[start]
name = "uniform"
n = 4
d = 2
[solver]
name = "layer"
h = 0.1
[over]
beta = [1.0, 2.0, 4.0]
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path / "spec.toml"


def test_a_sweep_is_run_watched_checked_and_drawn(call, tmp_path, spec):
    store = tmp_path / "s.zarr"
    code, out, err = call(f"sweep {spec} --store {store}")
    assert code == 0 and "3 of 3 cells are done (3 of 3 blocks)" in out, err
    code, out, _ = call(f"sweep --status {store}")
    assert code == 0 and "nobody is at work" in out and "SelfAttention over beta" in out
    assert call(f"sweep --check {store}")[0] == 0
    (store / "mean_cosine" / "c" / "1" / "0").unlink()
    code, out, err = call(f"sweep --check {store}")
    assert code == 1 and "block 1 is damaged" in err and "1 damaged block;" in out
    code, out, err = call(f"sweep {spec} --store {store} --repair")
    assert code == 0 and "1 damaged block forgotten" in out, err
    code, out, err = call(f"plot {store} --out {tmp_path / 's.png'}")
    assert code == 0 and (tmp_path / "s.png").stat().st_size > 1000, err
    assert set(xr.open_zarr(store).data_vars) >= set(flock.load(store).data_vars)


def test_a_dry_run_counts_and_writes_nothing(call, tmp_path, spec):
    code, out, err = call(f"sweep {spec} --dry-run")
    assert code == 0 and "3 cells: beta (3); 12 systems" in out and "about" in out, err
    assert [path.name for path in tmp_path.iterdir()] == ["spec.toml"]


def test_every_mistake_has_a_line_of_its_own(call, spec):
    spec.write_text(SPEC.replace("repeats = 4", "repeats = 0").replace("h = 0.1", "k = 0.1"))
    code, _, err = call(f"sweep {spec} --dry-run")
    told = err.strip().splitlines()
    assert code == 2 and len(told) == 2
    assert told[0].startswith("error: spec.toml, line 1: repeats must be 1 or more")
    assert told[1].startswith("error: spec.toml, line 14: layer has no option 'k'")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sweep", "needs a spec"),
        ("sweep nothing.toml", "cannot be read"),
        ("sweep {spec}", "write e.g. --store big.zarr"),
        ("sweep --status nothing", "is no store of a sweep"),
        ("sweep --check {folder}", "is no store of a sweep"),
        ("sweep {spec} --store {spec}", "not the beginning of a run"),
        ("sweep {spec} --store {folder}", "holds other things"),
        ("sweep {spec} --store {folder}/s --processes 0", "--processes must be 1 or more"),
        ("plot {folder}", "is no store of a sweep"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line(call, tmp_path, spec, line, words):
    code, _, err = call(line.format(spec=spec, folder=tmp_path))
    assert code == 2 and words in err and err.strip().count("\n") == 0, err
