"""Wrong command lines: one clear line each, no traceback, nothing left behind.

The options come from the catalogue: what is added there is tried here.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.catalogue import entries
from tokenflock.cli import main
from tokenflock.cli.language import spoken
from tokenflock.cli.values import joined
from tokenflock.errors import UserError
from tokenflock.files import writable

LONG = "9x" * 5_000
HOSTILE = ("nan", "-1", "1e400", "", "[/b]", LONG)


def assert_one_line(code: int, err: str) -> None:
    lines = [line for line in err.splitlines() if line.strip()]
    assert code in (1, 2), err
    assert len(lines) == 1, err
    assert lines[0].startswith("error:")
    assert "this is a bug" not in lines[0], lines[0]
    assert "Traceback" not in err


NETCDF = ("simulate", "phase", "branch", "spectrum", "lyapunov", "steer")
LINES = [
    ("simulate --n inf", "--n must be a whole number"),
    ("simulate --n 2.5", "--n must be a whole number"),
    ("simulate --seed 1.9", "--seed must be a whole number"),
    ("simulate --frames 2.9", "--frames must be a whole number"),
    ("simulate --frames 1", "2 or more"),
    ("simulate --seed -1", "--seed"),
    ("simulate --t nan", "--t must be"),
    ("simulate --t inf", "--t must be"),
    ("simulate --t 1e400", "--t must be"),
    ("simulate --times 0,1,40 --t 30", "--times end at 40, and --t is 30"),
    ("simulate --times nan", "--times must be numbers"),
    ("simulate --times 0:30:1000000000", "--times must hold at most"),
    ("simulate --n 1e12", "GB"),
    ("simulate --d 1e9", "GB"),
    ("simulate --frames 1000000000", "fewer frames"),
    ("simulate --solver euler --h 1e-9 --t 4.295", "2^31"),
    ("simulate --solver euler --h nan", "--h must be"),
    ("simulate --dynamics attention --V nan", "--V must be"),
    ("simulate --dynamics attention --V 1,0;0,1 --d 3", "write --d 2"),
    ("simulate --dynamics noisy --solver rk4", "use euler-maruyama"),
    ("simulate --start given --x missing.npy", "does not exist"),
    ("simulate --observe energy:log=maybe", "true or false"),
    ("simulate --observe cluster-count:radius=-1", "0 or more"),
    ("simulate --dynamics pure-attention --start box --side -1", "--side must be positive"),
    ("gpt train --out m --rate nan", "--rate must be above 0, got nan"),
    ("simulate --observe foo", "observables has no member"),
    ("simulate --until foo", "events has no member"),
    ("simulate --out [/b]/x.nc", "[/b]"),
    ("simulate --dynamics [bold]", "[bold]"),
    ("phase --repeats 2.5", "--repeats must be a whole number"),
    ("phase --beta nan", "--beta must be numbers"),
    ("phase --beta 0:1:1000000000", "--beta must hold at most"),
    ("phase --n 1e12", "GB"),
    ("phase --quantiles 2", "--quantiles must be"),
    ("tour --n 0", "--n must be"),
    ("tour --beta nan", "--beta must be"),
    ("plot [b].nc", "[b].nc does not exist"),
    ("film [b].nc", "[b].nc does not exist"),
    ("plot nowhere/run.nc", "nowhere/run.nc does not exist"),
    ("film nowhere/run.nc", "nowhere/run.nc does not exist"),
    ("simulate --t 3o", "--t must be a number, got '3o'; write e.g. --t 0.5"),
    ("simulate --beta=", "--beta must be a number, got ''"),
    ("theory gaussian-speed --covariance 1,2", "Write for example --covariance diag:1."),
    ("theory gaussian-flow --t -1", "--t must be"),
    ("theory gaussian-speed --mean 1,2", "--covariance must be of shape (2, 2)"),
    ("theory gaussian-speed --covariance 1,2;3", "rows of one length"),
    ("theory transition-curve --n 1.5 --t 10", "--n must be a whole number"),
    ("theory transition-curve --n 2:9999:9998 --t 1:9:10000000", "at most 100,000 rows"),
    ("theory dirac-energy --beta 1:2:100001", "or 10,000,000 with --json, got 100,001 of --beta"),
    ("theory uniform-energy --beta 1:9:1000001 --d 2:11:10 --json", "at most 10,000,000 rows,"),
    ("theory layer-crossing --most 1,2", "--most takes one number, got '1,2'"),
    ("theory layer-crossing --most 1e9", "Write for example --most 20000."),
    (
        "theory plateau-energy --cosine 0.1,0.2,0.9",
        "--cosine must be one number, or a 2 x 2 matrix",
    ),
    ("theory layer-transition-curve --h 0.001", "Write for example --t 20."),
    ("theory pair-time --gamma1 2", "--gamma1 must be between"),
    ("theory normalised-flow --rho0 -1", "--rho0 must be between"),
    ("theory mode-switch --k 1e308", "--k must be a whole number, at most 1e+15"),
    ("theory dirac-energy --beta 1e308", "double precision"),
    ("gpt train --out m --watch nan", "--watch must be"),
    ("gpt train --out m --watch inf", "--watch must be whole"),
    ("gpt train --out m --watch 1.5", "--watch must be whole"),
    ("gpt train --out m --watch -1", "--watch must be 0 or more, got -1"),
    ("gpt train --out m --preset quick --watch 0,301", "--watch must be 300 or less, got 301"),
    ("gpt train --out m --rung head --depth 3", "--depth must be left out with --rung head, got 3"),
    ("gpt probe m --seed 3", "--seed has no effect without --untrained; leave it out"),
    ("probe m --string a --prompts 3", "--prompts has no effect beside --string; leave it out"),
    ("probe m --string a --seed 3", "--seed has no effect beside --string without --untrained"),
    ("probe m --out a.nc --follow", "--follow has no effect beside --out without --report"),
    ("reproduce --list --scale paper", "--scale has no effect beside --list; leave it out"),
    ("steer --inputs a.npy --clouds 3", "--clouds has no effect beside --inputs; leave it out"),
    ("steer --targets a.npy --aims 3", "--aims has no effect beside --targets; leave it out"),
    ("sweep --status a.zarr --repair", "--status has no effect beside --repair; leave it out"),
    ("gpt train --out m --steps 0", "--steps must be"),
    ("gpt train --out m --dropout nan", "--dropout must be"),
    ("gpt train --out m --width 100000000", "GB"),
    ("gpt train --out m --batch 1000000000000", "--batch"),
    ("probe m --prompts 0", "--prompts must be 1 or more"),
    ("probe m --seed -1", "--seed must be 0 or more"),
    ("theory cap-fraction --d inf", "--d must be finite"),
    ("gpt sample nowhere", "nowhere"),
    ("gpt [/b]", "[/b]"),
    ("list [/b]", "[/b]"),
    ("cite nothere.nc", "does not exist"),
    ("reproduce perspective/fig99", "fig99"),
    ("[/b]", "[/b]"),
    ("simulate --dynamics noisy --base noisy", "--base must be a law without noise"),
    ("simulate --dynamics fast --base fast", "--base must be SelfAttention or Unnormalised"),
    ("simulate --dynamics streamed --base streamed", "--base must be an AttentionLaw"),
    ("simulate --dynamics feed-forward --base feed-forward", "needs --W"),
    ("simulate --dynamics fast --d 5", "--d must be 2 or 3 for fast sums, got 5; use --dynamics s"),
    ("simulate --dynamics noisy --base fast --d 5", "--d must be 2 or 3 for fast sums, got 5"),
    ("lyapunov --t 1 --settle inf --n 3", "--settle must be a finite time"),
    ("lyapunov --t 1 --settle 1e300 --n 3", "--settle must be shorter"),
    ("branch --step inf --most 3", "--step must be positive and finite, got inf"),
    ("branch --most 0 --points 32", "--most must be 1 or more, got 0"),
    ("branch --degree 0", "--degree must be 1 or more, got 0"),
    ("branch --repulsive --most 3", "never gives way to a ripple of --degree 1"),
    ("branch --within 5,1 --parameter beta", "the lower one first, got '5,1'; write e.g. --within"),
    ("branch --kappa 3", "--kappa 3 and --parameter kappa contradict each other"),
    ("branch --dynamics attention --V 1,0;0,-1 --within 1,2", "tells directions apart"),
    ("lab --seed -1", "--seed must be 0 or more, got -1"),
    (
        "lab --solver adaptive",
        "--solver must be one of fixed step, in the lab, got adaptive; use l",
    ),
    ("lab --n 1000000", "--n must be 20,000 or less in the lab"),
    ("phase --dynamics kuramoto", "--dynamics kuramoto does not have"),
    ("phase --beta 2,1,1", "--beta must name each value once"),
    ("steer --aims 0", "--aims must be 1 or more, got 0"),
    ("simulate --times inf", "--times must be finite"),
    ("simulate --times 3,1,2", "--times must be increasing times from 0 on, got [3.0, 1.0, 2.0]"),
    ("simulate --times 0,1 --frames 5", "--times 0,1 and --frames 5 both say"),
    (
        "simulate --step 0.1",
        "belongs to --solver euler, euler-maruyama, heun, layer, rk4; write e.g",
    ),
    ("simulate --dynamics noisy --solver rk4", "--solver must be one that takes noise"),
    ("simulate --kapp 3", "Unknown option: --kapp. See them all: tokenflock simulate --help"),
    ("lab run.nc --beta 4", "Unknown option: --beta. Here there are --prompt, --out"),
    ("simulate --dynamics block --heads 3.5", "--heads must be a whole number or one of given"),
    ("simulate --dynamics block --mask causl", "got 'causl'; did you mean causal?"),
    ("simulate --dynamics block --feed-forward gelus", "--feed-forward must be one of relu"),
    ("simulate --observe energy:convention=foo", "--observe energy:convention must be one of"),
    ("simulate --observe histogram:bins=0", "--observe histogram:bins must be from 1"),
    ("simulate --observe pair-density:delta=-1", "write e.g. --observe pair-density:delta=1e-3"),
    ("simulate --observe=", "--observe takes names"),
    ("simulate --dynamics unnormalised --beta 800", "use --clock peak"),
    ("simulate --dynamics zzz", "fast, feed-forward, ... (all: tokenflock list dynamics)"),
    ("simulate --dynamics --n 3", "--dynamics needs a name, got none"),
    ("simulate --solver", "--solver needs a name, got none"),
    ("simulate --repulsive=foo", "--repulsive takes no value, got 'foo'"),
    ("simulate extra", "simulate takes no 'extra' here"),
    ("--import nofile.py simulate", "--import nofile.py: there is no such file"),
    ("--import", "--import needs a Python file"),
    ("list dynamic", "did you mean dynamics?"),
    ("reproduce --list extra", "--list shows everything, got 'extra'"),
    *((f"{name} --out x.png", "x.png is written as netCDF") for name in NETCDF),
]


@pytest.mark.parametrize(("line", "words"), LINES, ids=[line for line, _ in LINES])
def test_a_wrong_command_line_gets_one_line_that_names_the_option(call, line, words):
    code, out, err = call(line)
    assert_one_line(code, err)
    assert words in err
    assert not out.strip()


ROLES = {"dynamics": "dynamics", "starts": "start", "solvers": "solver", "events": "until"}
MEMBERS = [
    (role, entry, option)
    for kind, role in ROLES.items()
    for entry in entries(kind)
    for option in entry.options
    if option.annotation != "bool"
]


@pytest.mark.parametrize(
    ("role", "entry", "option"), MEMBERS, ids=[f"{e.slug}-{o.name}" for _, e, o in MEMBERS]
)
@pytest.mark.parametrize("value", ["", "[/b]", LONG], ids=["empty", "markup", "long"])
def test_a_text_that_is_no_value_is_refused_by_every_option(call, role, entry, option, value):
    name = f"--{option.name.replace('_', '-')}"
    code, out, err = call(
        ["simulate", f"--{role}", entry.slug, f"{name}={value}", "--n=4", "--out=a.nc"]
        if option.name != "n"
        else ["simulate", f"--{role}", entry.slug, f"{name}={value}", "--out=a.nc"]
    )
    assert_one_line(code, err)
    assert not out.strip()


FORMS = [(entry, option) for entry in entries("theory") for option in entry.options]


@pytest.mark.parametrize(("entry", "option"), FORMS, ids=[f"{e.slug}-{o.name}" for e, o in FORMS])
def test_theory_refuses_text_in_every_argument(call, entry, option):
    if option.annotation == "bool":
        pytest.skip("a switch takes no value")
    code, out, err = call(["theory", entry.slug, f"--{option.name.replace('_', '-')}=[/b]"])
    assert_one_line(code, err)
    assert not out.strip()


@pytest.mark.parametrize("value", HOSTILE[:5])
@pytest.mark.parametrize("option", ["n", "d", "seed", "frames"])
def test_hostile_counts_are_refused_by_simulate(call, option, value):
    code, _, err = call(["simulate", f"--{option}={value}"])
    assert_one_line(code, err)
    assert f"--{option}" in err


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"not an array", b"\x93NUMPY\x01\x00\x76\x00{'descr'"]
)
def test_a_broken_array_file_is_one_line(call, tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    code, _, err = call("simulate --start given --x x.npy")
    assert_one_line(code, err)
    assert "x.npy" in err


@pytest.mark.parametrize("array", [np.zeros(0), np.array(["a"]), np.ones((2, 2)) * 1j])
def test_an_array_that_holds_no_numbers_is_refused(call, tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    code, _, err = call("simulate --start given --x x.npy")
    assert_one_line(code, err)


def test_negative_values_need_no_equals_sign():
    assert joined(["--beta", "-1,0", "--V", "-1"]) == ["--beta=-1,0", "--V=-1"]
    assert joined(["--text", "-", "--n", "4"]) == ["--text", "-", "--n", "4"]


def test_brackets_in_a_path_are_told_as_they_are(call, tmp_path):
    code, out, err = call(["simulate", "--n=4", "--t=1", "--frames=3", "--out=x[bold].nc"])
    assert code == 0, err
    assert "saved x[bold].nc" in out
    assert (tmp_path / "x[bold].nc").exists()


@pytest.mark.slow
def test_a_result_is_drawn_as_asked_or_not_at_all(call, tmp_path):
    import xarray as xr

    assert call("simulate --n 4 --t 1 --frames 3 --out a.nc")[0] == 0
    tokens = xr.DataArray(np.full((2, 3, 2), "a"), dims=("time", "particle", "coord"))
    xr.Dataset({"x": tokens}).to_netcdf(tmp_path / "text.nc", engine="h5netcdf")
    (tmp_path / "hello.txt").write_text("hello")
    (tmp_path / "cut.nc").write_bytes((tmp_path / "a.nc").read_bytes()[:2000])
    for line, words in (
        ("plot a.nc --tail -5", "--tail must be 0 or more"),
        ("film a.nc --spin 1e308", "--spin must be from -36,000 to 36,000, got 1e+308"),
        ("film a.nc --spin 90", "--spin must be left out in a film of a circle"),
        ("film a.nc --tail -1", "--tail must be from 0 to 1,000,000, got -1"),
        ("plot a.nc --observable foo", "the file holds"),
        ("plot text.nc", "numbers"),
        ("film text.nc", "numbers"),
        ("plot cut.nc", "cut.nc"),
        ("film a.nc --seconds inf", "--seconds must be"),
        ("film a.nc --seconds nan", "--seconds must be"),
        ("film a.nc --fps 0", "--fps must be"),
        ("film a.nc --size 1280", "--size must be"),
        ("film a.nc --size 100000x100000", "--size must be"),
        ("film a.nc --size 50x50", "write e.g. --size 1280x720"),
        ("film a.nc --spin nan", "--spin must be from -36,000 to 36,000, got nan"),
        ("film a.nc --prompt -1", "--prompt is for several prompts"),
        ("plot a.nc --prompt 0", "--prompt is for several prompts"),
        ("plot a.nc --kind circle --at 1,2", "--at takes one time here"),
        ("plot a.nc --landscape", "--landscape is for circle, sphere, not for overview"),
        ("plot a.nc a.nc", "plot takes no 'a.nc' here"),
        ("plot hello.txt", "(it does not begin as one)"),
        ("simulate --start given --x hello.txt", "row 1, column 1 holds 'hello'"),
        ("film a.nc --size 0x0", "--size must be width x height, got '0x0'"),
        ("film a.nc --seconds 1e-9", "--seconds must be positive, long enough for a picture"),
        ("film a.nc --out y.avi", "--out must be a .mp4, .gif or .html"),
        ("lab a.nc a.nc a.nc", "the files must be at most two runs or probes"),
        ("rerun a.nc --member beta=4", "--member runs one system of an ensemble"),
        ("rerun a.nc --set dynamics=causal", "run it anew with: tokenflock simulate --dynamics c"),
        (
            "rerun a.nc --set n=0",
            "--set n must be a number of tokens, 1 or more, got 0; write e.g.",
        ),
        ("rerun a.nc --set beta=3 --set beta=4", "--set beta is given more than once"),
        ("rerun a.nc --part beta=3 --part beta=4", "--part beta is given more than once"),
        ("rerun a.nc --set bta=3", "did you mean beta?"),
        ("rerun a.nc --out x.png", "x.png is written as netCDF"),
    ):
        code, _, err = call(line)
        assert_one_line(code, err)
        assert words in err, line


def test_what_the_user_typed_is_never_translated():
    from tokenflock.cli.app import build

    tokens = ["simulate", "--out", "n=3.nc"]
    told = spoken("n=3.nc is no folder; write n=4", build(tokens), tokens)
    assert told == "n=3.nc is no folder; write --n 4"


@pytest.mark.parametrize(
    ("command", "python", "typed"),
    [
        (
            "plot",
            "select one, e.g. result.isel(head=0)",
            "select one, e.g. in Python result.isel(head=0)",
        ),
        ("phase", "write e.g. over={'beta': [1.0, 2.0]}", "write e.g. --beta 1,2,4"),
        ("film", "write e.g. size=(1280, 720)", "write e.g. --size 1280x720"),
        ("simulate", "use RK4(h=0.1)", "use --solver rk4 --h 0.1"),
        (
            "simulate",
            "Noisy(base=SelfAttention(beta=4.0, repulsive=True), kappa=2.0) left the numbers",
            "--dynamics noisy --base self-attention --beta 4.0 --repulsive --kappa 2.0 left the"
            " numbers",
        ),
        (
            "simulate",
            "use Streamed(SelfAttention(beta=2.0, repulsive=False))",
            "use --dynamics streamed --base self-attention --beta 2.0",
        ),
        (
            "simulate",
            "take Energy(log=True), or clock='peak'",
            "take --observe energy:log=true, or clock='peak'",
        ),
        ("simulate", "write RandomMatrices(t=3)", "write RandomMatrices(t=3)"),
        ("branch", "write e.g. within=(0.5, 3.0)", "write e.g. --within 0.5,3.0"),
        ("simulate", "write repulsive=False", "write --no-repulsive"),
        ("sweep", "free some or choose another --out", "free some or choose another --store"),
        ("phase", "free some or choose another --out", "free some or choose another --out"),
    ],
)
def test_a_command_never_answers_in_python(command, python, typed):
    from tokenflock.cli.app import build

    assert spoken(python, build([command]), [command]) == typed


def test_an_ensemble_is_told_what_it_lacks(call):
    line = "phase --n 4 --d 2 --beta 1,2 --t 1 --repeats 2 --frames 3 --out p.nc"
    assert call(line)[0] == 0
    for line, words in (
        ("plot p.nc --kind survival", "tokenflock phase --until consensus"),
        ("plot p.nc --landscape", "--landscape is for circle, sphere"),
        ("film p.nc", "no tokens to film; draw it with: tokenflock plot p.nc"),
    ):
        code, _, err = call(line)
        assert_one_line(code, err)
        assert words in err, line


def test_a_run_that_overflows_leaves_nothing_in_the_way_of_others(call, tmp_path):
    code, _, err = call("phase --beta 1e30 --n 4 --repeats 2 --t 1 --out p.nc")
    assert_one_line(code, err)
    assert "SelfAttention at beta = 1e+30 is not finite in float32" in err
    assert "energy" not in err and "peak" not in err
    assert list(tmp_path.iterdir()) == []


def test_tolerances_are_options_without_naming_their_solver(call, tmp_path):
    assert call("simulate --rtol 1e-3 --n 3 --t 1 --frames 3 --out a.nc")[0] == 0
    recipe = flock.load(tmp_path / "a.nc").attrs["recipe"]
    assert json.loads(recipe)["solver"]["rtol"] == 1e-3
    assert call("simulate --dynamics noisy --n 3 --t 1 --frames 3 --out b.nc")[0] == 0


def test_laws_around_laws_are_typed_with_the_role_before_their_options(call, tmp_path):
    line = "simulate --dynamics noisy --base streamed --base-base attention --V 1,0;0,-1"
    code, _, err = call(f"{line} --n 3 --t 0.1 --frames 3 --out a.nc")
    assert code == 0, err
    law = json.loads(flock.load(tmp_path / "a.nc").attrs["recipe"])["dynamics"]
    assert law["base"]["base"]["V"]["array"] == [[1, 0], [0, -1]]


def test_a_path_is_shown_as_a_shell_takes_it(call):
    out = call(["simulate", "--n=3", "--t=1", "--frames=3", "--out=a[b] n.nc"])[1]
    assert "tokenflock plot 'a[b] n.nc' --out 'a[b] n.png'" in out


def test_a_folder_that_takes_no_files_is_told_before_anything_runs(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("tempfile.mkdtemp", refused)
    with pytest.raises(UserError, match="cannot be written; choose another path"):
        writable(tmp_path / "run.nc")


def test_a_gap_in_a_file_is_told_and_one_of_ours_is_not_taken_for_it():
    import xarray as xr

    from tokenflock.cli.opening import doubted

    result = xr.Dataset({"energy": ("time", [1.0, 2.0])})
    with pytest.raises(UserError, match=r"has no .*'w'"), doubted("a.nc", result, "drawn"):
        result["w"]
    with pytest.raises(KeyError), doubted("a.nc", result, "drawn"):
        {}["w"]


def test_an_unforeseen_error_is_one_line_and_a_traceback_where_wanted(call, monkeypatch):
    monkeypatch.setattr("tokenflock.cli.app.build", lambda tokens: 1 / 0)
    code, _, err = call("list")
    assert code == 1
    assert "TOKENFLOCK_DEBUG=1" in err
    monkeypatch.setenv("TOKENFLOCK_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["list"])
