"""Wrong command lines: one clear line each, no traceback, nothing left behind.

The options come from the catalogue: what is added there is tried here.
"""

from __future__ import annotations

import numpy as np
import pytest

from tokenflock.catalogue import entries
from tokenflock.cli import main
from tokenflock.cli.language import spoken
from tokenflock.cli.values import joined

LONG = "9x" * 5_000
HOSTILE = ("nan", "-1", "1e400", "", "[/b]", LONG)


def assert_one_line(code: int, err: str) -> None:
    lines = [line for line in err.splitlines() if line.strip()]
    assert code in (1, 2), err
    assert len(lines) == 1, err
    assert lines[0].startswith("error:")
    assert "this is a bug" not in lines[0], lines[0]
    assert "Traceback" not in err


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
    ("simulate --times 0,1,40 --t 30", "--times must end by --t 30"),
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
    ("simulate --observe foo", "observables has no member"),
    ("simulate --until foo", "events has no member"),
    ("simulate --out [/b]/x.nc", "[/b]"),
    ("simulate --dynamics [bold]", "[bold]"),
    ("phase --repeats 2.5", "--repeats must be a whole number"),
    ("phase --beta nan", "--beta must be numbers"),
    ("phase --beta 0:1:1000000000", "--beta must hold at most"),
    ("phase --n 1e12", "GB"),
    ("phase --quantiles 2", "--quantiles must be"),
    ("phase --solver adaptive", "--solver rk4 --h 0.1"),
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
    ("theory transition-curve --n 2:9999:9998 --t 1:9:10000000", "rows needs"),
    ("theory dirac-energy --beta 1e308", "double precision"),
    ("gpt train --out m --watch nan", "--watch must be"),
    ("gpt train --out m --watch inf", "--watch must be whole"),
    ("gpt train --out m --watch 1.5", "--watch must be whole"),
    ("gpt train --out m --steps 0", "--steps must be"),
    ("gpt train --out m --dropout nan", "--dropout must be"),
    ("gpt train --out m --width 100000000", "GB"),
    ("gpt train --out m --batch 1000000000000", "--batch"),
    ("probe m --string a --prompts 0", "--prompts must be 1 or more"),
    ("probe m --string a --seed -1", "--seed must be 0 or more"),
    ("theory cap-fraction --d inf", "--d must be finite"),
    ("gpt sample nowhere", "nowhere"),
    ("gpt [/b]", "[/b]"),
    ("list [/b]", "[/b]"),
    ("cite nothere.nc", "does not exist"),
    ("reproduce perspective/fig99", "fig99"),
    ("[/b]", "[/b]"),
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
    (tmp_path / "cut.nc").write_bytes((tmp_path / "a.nc").read_bytes()[:2000])
    for line, words in (
        ("plot a.nc --tail -5", "--tail must be 0 or more"),
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
        ("film a.nc --spin nan", "--spin must be degrees"),
        ("film a.nc --prompt -1", "--prompt is for several prompts"),
        ("plot a.nc --prompt 0", "--prompt is for several prompts"),
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
        ("sweep", "free some or choose another --out", "free some or choose another --store"),
        ("phase", "free some or choose another --out", "free some or choose another --out"),
    ],
)
def test_a_command_never_answers_in_python(command, python, typed):
    from tokenflock.cli.app import build

    assert spoken(python, build([command]), [command]) == typed


def test_a_gap_in_a_file_is_told_and_one_of_ours_is_not_taken_for_it():
    import xarray as xr

    from tokenflock.cli.opening import doubted
    from tokenflock.errors import UserError

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
