"""A spec says what it means, or everything that is wrong with it, each with its line."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tokenflock.dynamics import Block, Noisy, SelfAttention
from tokenflock.errors import UserError
from tokenflock.events import Consensus
from tokenflock.matrices import RandomMatrices, Wigner
from tokenflock.observables import Histogram, PairDensity
from tokenflock.parts import Pre, RandomHeads, Rotary
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.sweeps import Refine, Spec, SpecError, forecast, read_spec, sweep
from tokenflock.sweeps.lines import key_lines
from tokenflock.sweeps.spec import parse

GOOD = """\
seed = 3
repeats = 64
t = 20.0
frames = 21
[dynamics]
name = "self-attention"
[start]
name = "uniform"
n = 24
d = 5
[solver]
name = "layer"
h = 0.1
[over]
beta = [0.5, 1.0, 2.0, 4.0, 9.0]
"""


def test_a_text_and_an_object_ask_for_the_same_sweep():
    told = parse(GOOD)
    spec = Spec(
        SelfAttention(),
        Uniform(n=24, d=5),
        {"beta": [0.5, 1.0, 2.0, 4.0, 9.0]},
        Layer(h=0.1),
        seed=3,
        repeats=64,
        t=20.0,
        frames=21,
    )
    assert told.asked().mark() == spec.asked().mark()
    assert told.asked().mark() != parse(GOOD.replace("seed = 3", "seed = 4")).asked().mark()


def test_every_part_of_a_sweep_can_be_told():
    spec = parse(
        """
precision = "float64"
repeats = 4
times = [0, 0.5, 1]
quantiles = [0.1, 0.5]
observe = ["pair-density", { name = "histogram", bins = 7 }]
[dynamics]
name = "block"
heads = 2
norm = { name = "pre" }
[dynamics.positions]
name = "rotary"
[start]
name = "uniform"
n = 6
d = 4
[solver]
name = "layer"
step = 0.5
[until]
name = "consensus"
delta = 0.3
[over]
dynamics.beta = { first = 1.0, last = 4.0, count = 3, log = true }
"""
    )
    assert isinstance(spec.dynamics, Block) and isinstance(spec.dynamics.heads, RandomHeads)
    assert isinstance(spec.dynamics.norm, Pre) and isinstance(spec.dynamics.positions, Rotary)
    assert spec.observe == [PairDensity(), Histogram(bins=7)] and spec.until == Consensus(delta=0.3)
    assert list(spec.over) == ["dynamics.beta"] and spec.precision == "float64"
    np.testing.assert_allclose(spec.over["dynamics.beta"], [1, 2, 4])
    assert spec.solver == Layer(h=0.5) and spec.asked().plan.when.times is not None


def test_nested_laws_matrices_and_refinement_are_tables_too():
    spec = parse(
        GOOD.replace('[dynamics]\nname = "self-attention"', NESTED).replace(
            "[over]", "[refine]\nbend = 0.1\nevery = 2\n[over]"
        )
    )
    assert spec.dynamics == Noisy(base=SelfAttention(beta=2.0), kappa=0.5)
    assert spec.refine == Refine(bend=0.1, every=2)
    law = GOOD.replace("self-attention", "attention")
    drawn = parse(law + '[matrices]\nkernel = "wigner"\nvalue = "kernel"\n')
    assert isinstance(drawn.matrices, RandomMatrices) and isinstance(drawn.matrices.kernel, Wigner)


NESTED = """\
[dynamics]
name = "noisy"
kappa = 0.5
[dynamics.base]
name = "self-attention"
beta = 2.0
"""

WRONG = {  # a line of the good spec -> what is written there, and what is said of it
    "seed": ("seed = 3", "seed = -3", "seed must be a whole number from 0"),
    "repeats": ("repeats = 64", "repeats = 6.5", "repeats must be a whole number, got 6.5"),
    "t": ("t = 20.0", 't = "20"', "t must be a number"),
    "frames": ("frames = 21", "framez = 21", "did you mean 'frames'"),
    "member": ('"self-attention"', '"self-atention"', "dynamics has no member"),
    "n": ("n = 24", "n = -4", "n must be a number of tokens"),
    "option": ("d = 5", "e = 5", "uniform has no option 'e'"),
    "solver": ("h = 0.1", "h = 0.3", "t must be a multiple of the step"),
    "step": ("h = 0.1", "h = 0", "h must be"),
    "over": ("beta = [0.5", 'beta = ["a"', "beta must be a list of numbers"),
    "axis": ("beta = [0.5", "gamma = [0.5", "over has no parameter 'gamma'"),
    "value": ("beta = [0.5", "n = [0", "n must be a number of tokens"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_mistake_is_told_with_its_line(what):
    old, new, words = WRONG[what]
    line = GOOD[: GOOD.index(old)].count("\n") + 1
    line = 3 if what == "solver" else line  # it is t that does not fit
    with pytest.raises(SpecError) as told:
        parse(GOOD.replace(old, new), "s.toml")
    lines = [each for each in told.value.mistakes if words in each]
    assert lines, told.value.mistakes
    assert lines[0].startswith(f"s.toml, line {line}: "), lines


def test_all_mistakes_are_told_at_once():
    text = GOOD
    for what in ("seed", "repeats", "t", "frames", "member", "n", "option", "step", "over"):
        text = text.replace(*WRONG[what][:2])
    with pytest.raises(SpecError) as told:
        parse(text)
    for what in ("seed", "repeats", "t", "frames", "member", "n", "option", "step", "over"):
        assert any(WRONG[what][2] in each for each in told.value.mistakes), what
    numbers = [int(each.split("line ")[1].split(":")[0]) for each in told.value.mistakes]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seed = = 3", "line 1"),
        ("\n\n[dynamics\n", "line 3"),
        ("", r"needs a table \[dynamics\]"),
        ("[dynamics]\n[start]", "must be a table with a name"),
        (GOOD + "[refine]\nbend = -1", "line 17: bend must be positive"),
        (GOOD + "[refine]\nevery = 2", "line 16: refine must be by bend"),
        (GOOD + "[refine]\nbend = 1\nobservable = 'energy'", "observable must be one of"),
        ("keep = true\n" + GOOD + "[refine]\nbend = 1", "without keep"),
        ("quantiles = [0.5, 2.0]\n" + GOOD, "line 1: quantiles must be between 0 and 1"),
    ],
)
def test_what_is_no_spec_is_told_in_words(text, words):
    with pytest.raises(SpecError, match=words):
        parse(text)


def test_a_file_that_is_no_text_or_not_there_is_told(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read_spec(tmp_path / "none.toml")
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="must be text"):
        read_spec(tmp_path / "s.toml")


def test_lines_of_keys_see_through_what_goes_over_several_lines():
    text = 'a = """\nb = 1\n"""\nc = [\n  1, # ]\n  "]",\n]\n'
    text += "[[x]]\ny.z = 1\n[[x]]\n[x.w]\nv = {k = 1}\n"
    lines = key_lines(text)
    assert lines == {
        ("a",): 1,
        ("c",): 4,
        ("x", 0): 8,
        ("x", 0, "y"): 9,
        ("x", 0, "y", "z"): 9,
        ("x", 1): 10,
        ("x", 1, "w"): 11,
        ("x", 1, "w", "v"): 12,
    }


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 100_000 + " = 1\n" + GOOD,
        GOOD + "[" + "a." * 50_000 + "a]\n",
        "x = {" + "'a' . \"b\" ." * 50_000 + "a = 1}\n" + GOOD,
        "x" + ".'a.b'" * 16 + " = 1\n" + GOOD,
    ],
)
def test_a_key_of_endless_parts_is_refused_at_once(text):
    began = time.perf_counter()
    with pytest.raises(SpecError, match="at most 16 parts") as told:
        parse(text)
    assert time.perf_counter() - began < 1 and len(str(told.value)) < 500


def test_dots_in_texts_numbers_and_comments_are_no_keys():
    dots = ".".join("abcdefghijklmnopqrstuvwxyz")
    text = f"# {dots}\n" + GOOD.replace("[solver]", f"[solver] # {dots}")
    spec = parse(text.replace("beta = [0.5, 1.0", "beta = [0.5,1.0"))
    assert spec.asked().mark() == parse(GOOD).asked().mark()
    for quoted in (f'"{dots}"', f"'{dots}'", f'"""\n{dots}"""', f"'''\n{dots}'''", f'"\\"{dots}"'):
        with pytest.raises(SpecError, match="dynamics has no member"):
            parse(GOOD.replace('"self-attention"', quoted))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[0.5, 1.0, 2.0, 4.0, 9.0]", "{first = 0.1, last = 2, count = 100000000}", "beta.count"),
        (
            "[0.5, 1.0, 2.0, 4.0, 9.0]",
            "{first = 0.1, last = 2, count = 2000000}\n"
            "dynamics.beta = {first = 0.1, last = 2, count = 2000000}",
            "cells must be",
        ),
    ],
)
def test_a_grid_beyond_all_keeping_is_refused_at_once(old, new, words):
    began = time.perf_counter()
    with pytest.raises(SpecError, match=words):
        parse("cells = 1\n" + GOOD.replace(old, new))
    assert time.perf_counter() - began < 10


def test_an_object_of_too_many_blocks_is_refused_before_a_folder_is_made(tmp_path):
    long = np.linspace(0.1, 2, 5000)
    spec = Spec(SelfAttention(), Uniform(n=4, d=2), {"beta": long, "n": np.arange(2, 5002)})
    many = Spec(spec.dynamics, spec.start, spec.over, cells=1)
    refined = Spec(spec.dynamics, spec.start, spec.over, refine=Refine(bend=0.1))
    for each in (many, refined):
        with pytest.raises(UserError, match="blocks"):
            forecast(each, calibrate=False)
        with pytest.raises(UserError, match="blocks"):
            sweep(each, tmp_path / "s.zarr")
    assert list(tmp_path.iterdir()) == []


def test_of_endless_mistakes_the_first_are_told_and_how_many_more():
    began = time.perf_counter()
    with pytest.raises(SpecError) as told:
        parse("\n".join(f"key{k} = 1" for k in range(20_000)) + "\n" + GOOD)
    lines = str(told.value).splitlines()
    assert len(lines) == 21 and lines == told.value.mistakes
    assert lines[0].startswith("spec, line 1: ") and "19,980 more" in lines[-1]
    for table in ("[over]\n", "[dynamics]\n", "[start]\n", "[refine]\n"):
        rest = GOOD if table == "[refine]\n" else GOOD.replace(table, "[other]\n")
        text = rest + table + 'name = "uniform"\n' * (table == "[start]\n")
        text += 'name = "causal"\n' * (table == "[dynamics]\n")
        with pytest.raises(SpecError) as told:
            parse(text + "\n".join(f"key{k} = [1]" for k in range(20_000)))
        assert len(told.value.mistakes) <= 21
    assert time.perf_counter() - began < 15


LONG = "a_" * 200_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"uniform"', f'"{LONG}"'),
        ('"self-attention"', f'"{LONG}"'),
        ('"layer"', f'"{"ä" * 200}"'),
        ("seed = 3", f"{LONG} = 3"),
        ("seed = 3", f'engine = "{LONG}"'),
        ("seed = 3", f'precision = "{LONG}"'),
        ("d = 5", f"{LONG} = 5"),
        ("beta = [", f"{LONG} = ["),
        ("beta = [0.5", f'beta = ["{LONG}"'),
        ("seed = 3", f'seed = "{LONG}"'),
        ("seed = 3", "seed = " + "9" * 5000),
        ("t = 20.0", "t = 1e999"),
        ("t = 20.0", "t = 1979-99-27T07:32:00Z"),
        ("seed = 3", "x = " + "[" * 5000 + "]" * 5000),
        ("seed = 3", "memory = inf"),
        ("[solver]", f'[[observe]]\nname = "{LONG}"\n[solver]'),
    ],
)
def test_what_is_endless_is_told_in_short(old, new):
    with pytest.raises(UserError) as told:
        parse(GOOD.replace(old, new, 1))
    assert all(len(line) < 1000 for line in str(told.value).splitlines())
    assert "Errno" not in str(told.value)
