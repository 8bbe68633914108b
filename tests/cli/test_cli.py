"""The command line: what it writes, and how it says no."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.catalogue import entries
from tokenflock.cli.app import COMMANDS


def test_simulate_writes_positions_by_time_particle_and_coordinate(call, tmp_path):
    code, out, _ = call(
        "simulate --dynamics self-attention --beta 4 --n 8 --d 2 --t 3 --seed 1 --out run.nc"
    )
    assert code == 0
    assert "saved run.nc" in out
    run = flock.load(tmp_path / "run.nc")
    assert run.x.dims == ("time", "particle", "coord")
    assert run.x.shape[1:] == (8, 2)
    assert float(run.time[-1]) == 3
    recipe = json.loads(run.attrs["recipe"])
    assert recipe["dynamics"]["beta"] == 4
    assert recipe["seed"] == 1


def test_every_kind_of_option_reaches_the_library(call, tmp_path):
    line = (
        "simulate --dynamics noisy --base attention --beta 2 --V 1,0.5;-0.5,1 --kappa 20 --start"
        " von-mises-fisher --n 5 --d 2 --start-kappa 3 --solver euler-maruyama --step 0.05 --t 1"
        " --frames 5 --out a.nc --observe order-parameter,energy:beta=1:convention=staircase"
    )
    code, _, err = call(line)
    assert code == 0, err
    run = flock.load(tmp_path / "a.nc")
    recipe = json.loads(run.attrs["recipe"])
    assert recipe["dynamics"]["base"]["V"]["array"] == [[1, 0.5], [-0.5, 1]]
    assert recipe["dynamics"]["kappa"] == 20
    assert recipe["start"]["kappa"] == 3
    assert recipe["solver"]["h"] == 0.05
    assert {"order_parameter", "energy"} <= set(run)
    assert run.sizes["time"] == 5


def test_matrices_come_from_files_and_short_forms(call, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    code, _, err = call(
        "simulate --dynamics burger --D diag:1,0,1 --no-ascend --start given --x x.npy --w 1,1,2"
        " --out b.nc"
    )
    assert code == 0, err
    run = flock.load(tmp_path / "b.nc")
    assert np.allclose(run.w, [0.25, 0.25, 0.5])
    assert json.loads(run.attrs["recipe"])["dynamics"]["ascend"] is False


@pytest.mark.slow
def test_until_stops_early_and_says_so(call):
    code, out, _ = call(
        "simulate --beta 1 --n 6 --d 3 --t 200 --until consensus --delta 1e-2 --out c.nc"
    )
    assert code == 0
    assert "stopped by Consensus(delta=0.01) at t =" in out


def test_layer_map_counts_layers(call, tmp_path):
    call("simulate --n 6 --d 3 --t 2 --solver layer --step 0.1 --out d.nc")
    run = flock.load(tmp_path / "d.nc")
    assert run.attrs["convention"] == "layer map"
    assert int(run.layer[-1]) == 20


BAD = [
    ("simulate --beta abc --out r.nc", "--beta"),
    ("simulate --bta 3 --out r.nc", "Did you mean"),
    ("simulate --n -3 --out r.nc", "n must be"),
    ("simulate --dynamics selfattention --out r.nc", "self-attention"),
    ("simulate --dynamics burger --out r.nc", "needs --D"),
    ("simulate --dynamics attention --V 1,0;0,1 --d 3 --out r.nc", "write --d 2"),
    ("simulate --dynamics attention --V 1,0;0 --out r.nc", "rows of one length"),
    ("simulate --dynamics attention --Q 1,0 --out r.nc", "Q"),
    ("simulate --dynamics unnormalised --clock noon --out r.nc", "paper, peak"),
    ("simulate --dynamics unnormalised --beta 1e4 --out r.nc", "peak"),
    ("simulate --dynamics noisy --solver rk4 --out r.nc", "euler-maruyama"),
    ("simulate --solver layer --step 0.1 --t 0.55 --out r.nc", "multiple"),
    ("simulate --t -1 --out r.nc", "t must be"),
    ("simulate --times 3,2,1 --out r.nc", "increasing"),
    ("simulate --observe enrgy --out r.nc", "energy"),
    ("simulate --observe energy:conv=2 --out r.nc", "convention"),
    ("simulate --dtype float16 --out r.nc", "float32"),
    ("simulate --out nowhere/r.nc", "mkdir -p nowhere"),
    ("plot missing.nc", "does not exist"),
    ("film missing.nc --out f.mp4", "does not exist"),
    ("theory transition-curv --t 10", "transition-curve"),
    ("theory transition-curve --n abc --t 10", "numbers like"),
    ("theory transition-curve --delta 2 --t 10", "delta"),
    ("theory", "name a closed form"),
    ("list fishes", "dynamics"),
    ("simulat", "simulate"),
]


@pytest.mark.parametrize(("line", "words"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_gets_one_line_that_names_the_fix_and_leaves_nothing(call, tmp_path, line, words):
    code, out, err = call(line)
    assert code == 2
    assert words in err
    assert err.strip().count("\n") == 0
    assert not out.strip()
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_run_is_refused(call, tmp_path):
    (tmp_path / "junk.nc").write_text("not a netCDF file")
    code, _, err = call("plot junk.nc")
    assert code == 2
    assert "junk.nc" in err


def test_theory_prints_the_known_transition_curve(call):
    code, out, _ = call("theory transition-curve --n 32 --delta 1e-3 --t 10,20,30")
    assert code == 0
    values = [float(row.split()[1]) for row in out.splitlines()[1:] if row.strip()]
    assert values == pytest.approx([5.109904, 6.344740, 6.906459], abs=1e-6)


def test_theory_as_json_over_a_grid(call):
    _, out, _ = call("theory hemisphere-probability --n 3,4 --d 2:3:2 --json")
    table = json.loads(out)
    assert table["n"] == [3, 3, 4, 4]
    assert table["hemisphere_probability"] == pytest.approx([0.75, 1.0, 0.5, 0.875])


def test_theory_takes_matrices_as_they_are_and_lists_as_rows(call):
    line = "theory gaussian-flow --mean 1,0 --covariance diag:1,2 --A diag:1,1 --V diag:1,1"
    code, out, err = call(f"{line} --t 0,0.1 --json")
    assert code == 0, err
    shown = json.loads(out)
    assert shown["t"] == [0.0, 0.1]
    # V = I: S(t)^-1 = S(0)^-1 - 2 t
    assert shown["covariance[0]"] == pytest.approx([1.0, 1 / 0.8])
    assert shown["covariance[3]"] == pytest.approx([2.0, 1 / 0.3])
    code, out, err = call("theory plateau-energy --masses 0.25,0.75 --beta 1 --json")
    assert code == 0 and len(next(iter(json.loads(out).values()))) == 1, err
    _, out, _ = call(
        "theory gaussian-flow --mean 1,0,0 --covariance diag:1,2,3 --A diag:1,1,1 --V diag:1,1,1"
    )
    assert "covariance[8]" in out and "\u2026" not in out  # too wide for a terminal, and whole


FORMS = [entry.slug for entry in entries("theory")]


@pytest.mark.parametrize("form", FORMS)
def test_the_help_of_a_closed_form_has_its_own_example_which_runs(call, form):
    _, out, _ = call(f"theory {form} --help")
    words = " ".join(out.split())
    assert words.startswith(f"Usage: tokenflock theory {form} [OPTIONS]")
    line = words.partition("Example: tokenflock ")[2].partition(" \u256d")[0]
    assert line.startswith(f"theory {form} --")
    code, shown, err = call(line.replace("'", ""))
    assert code == 0 and len(shown.splitlines()) >= 2, err
    defaults = call(f"theory {form} --json")[1]
    assert call(line.replace("'", "") + " --json")[1] == defaults  # it says the defaults


def test_the_help_of_a_closed_form_says_what_its_options_are(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = call("theory transition-curve --help")
    rows = [line.strip("\u2502 ") for line in out.splitlines()]
    assert "--n STR         number of tokens [default: 32]" in rows
    assert "--unnormalised  USA instead of SA" in rows
    _, out, _ = call("theory growth-rate --help")
    assert "inverse noise (inf: none) [default: inf]" in out and "np." not in out


def test_a_closed_form_says_below_its_table_what_nan_and_inf_mean(call):
    _, out, _ = call("theory transition-curve --t 1")
    assert out.splitlines()[-1].endswith(
        "(SA: t earlier than the crossing at beta = 0; USA: later than it))"
    )
    _, out, _ = call("theory dirac-energy --beta 1,800")
    assert out.splitlines()[-1] == "(inf: beyond double precision)"
    _, out, _ = call("theory polygon-lifetime --beta -4")
    assert out.splitlines()[-1] == "(inf where the polygon is stable (n = 3: beta < -2/3))"


def test_a_closed_form_as_json_tells_infinity_from_no_number(call):
    _, out, err = call("theory log-kernel-eigenvalue --beta 0,1 --json")
    assert json.loads(out)["log_kernel_eigenvalue"][0] == "-inf"
    assert err.strip() == "(-inf at beta = 0, k >= 1)"
    _, out, _ = call("theory strong-centres --d 1000 --json")
    assert json.loads(out) == {"strong_centres": ["inf"]}
    _, out, _ = call("theory transition-curve --t 1 --json")
    assert json.loads(out) == {"transition_curve": [None]}


def test_a_table_of_a_closed_form_has_columns_and_as_many_rows_as_are_read(call):
    code, out, _ = call("theory dirac-energy --beta 1:2:100000")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 100_001
    assert len({len(line) for line in lines}) == 1


def test_list_shows_every_member_in_one_line(call):
    from tokenflock.catalogue import entries

    code, out, _ = call("list dynamics")
    assert code == 0
    assert all(entry.slug in out for entry in entries("dynamics"))
    _, full, _ = call("list dynamics causal")
    assert "2411.04990" in full
    assert "--beta" in full


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_help_has_an_example(call, name):
    code, out, _ = call(f"{name} --help")
    assert code == 0
    assert f"tokenflock {name}" in re.sub(r"\s+", " ", out)


def test_cite_prints_what_was_used(call):
    call("simulate --dynamics causal --n 4 --d 2 --t 1 --out e.nc")
    _, out, _ = call("cite e.nc")
    assert "karagodin2024causal" in out
    assert "diffrax" in out
    assert "burger" not in out


@pytest.mark.slow
def test_plot_and_film_write_what_they_say(call, tmp_path):
    call("simulate --n 6 --d 2 --t 3 --frames 12 --out f.nc")
    for kind in (
        "overview",
        "circle",
        "histogram",
        "histogram-over-time",
        "timeline",
        "attention",
        "trajectories",
    ):
        code, _, err = call(f"plot f.nc --kind {kind} --out {kind}.png")
        assert code == 0, err
        assert (tmp_path / f"{kind}.png").stat().st_size > 5_000
    assert call("film f.nc --out f.gif --size 200x160")[0] == 0
    assert (tmp_path / "f.gif").read_bytes()[:3] == b"GIF"


@pytest.mark.slow
def test_the_tour_tells_and_writes(call, tmp_path):
    code, out, err = call("tour --n 12 --beta 2 --out here")
    assert code == 0, err
    assert "clusters" in out
    assert "->" in out
    for name in ("run.nc", "overview.png", "film.html"):
        assert str((tmp_path / "here" / name).resolve()) in out.replace("\n", "")
        assert (tmp_path / "here" / name).stat().st_size > 1_000
    run = flock.load(tmp_path / "here" / "run.nc")
    last, end = float(flock.merges(run).time[-1]), float(run.time[-1])
    assert last < 0.5 * end and run.sizes["time"] <= 202  # what it led to is seen


def test_phase_writes_pair_density_by_beta_and_time_with_its_error_and_a_plot(call, tmp_path):
    line = (
        "phase --n 8 --d 3 --beta 0.5:4:3 --t 10 --repeats 32 --solver layer --step 0.1 --frames 21"
        " --out p.nc --plot p.png"
    )
    code, out, err = call(line)
    assert code == 0, err
    result = flock.load(tmp_path / "p.nc")
    assert result.pair_density.dims == ("beta", "time")
    assert result.pair_density_error.dims == ("beta", "time")
    assert result.beta.values.tolist() == [0.5, 2.25, 4.0]
    assert result.transition.attrs["curve"] == "layer map, n = 8"
    assert "lanes" in out
    assert (tmp_path / "p.png").stat().st_size > 5_000
    assert not (tmp_path / "p.nc.part").exists()
    assert call("plot p.nc --kind curves --out c.png")[0] == 0
    code, _, err = call("plot p.nc --kind circle --out d.png")
    assert code == 2
    assert "phase-diagram" in err


def test_phase_observes_what_is_asked_in_the_flow(call, tmp_path):
    line = (
        "phase --n 6 --d 2 --beta 1,2 --t 2 --repeats 4 --solver rk4 --frames 3 --observe"
        " cluster-count,energy --out q.nc"
    )
    code, _, err = call(line)
    assert code == 0, err
    result = flock.load(tmp_path / "q.nc")
    assert result.attrs["convention"] == "flow"
    assert {"cluster_count", "cluster_count_error", "energy"} <= set(result)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("phase --dynamics kuramoto --out r.nc", "beta"),
        ("phase --beta 1:2 --out r.nc", "first:last:count"),
        ("phase --engine resident --dtype float64 --n 4 --out r.nc", "float32"),
        ("phase --repeats 0 --out r.nc", "repeats"),
    ],
)
def test_phase_refuses_with_the_remedy(call, tmp_path, line, words):
    code, _, err = call(line)
    assert code == 2
    assert words in err
    assert not list(tmp_path.iterdir())
