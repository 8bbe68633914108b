"""Nothing is taken for something else: numbers, seeds, options that contradict each other."""

from __future__ import annotations

import dataclasses
import datetime

import jax
import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock import theory
from tokenflock.catalogue import KINDS, entries
from tokenflock.dynamics import SelfAttention
from tokenflock.engines.keys import keys_of
from tokenflock.engines.systems import _keys
from tokenflock.meanfield import Ripple, evolve
from tokenflock.observables import ClusterCount, Energy, MeanCosine, PairDensity
from tokenflock.precision import precision, root_key
from tokenflock.starts import Uniform
from tokenflock.sweeps.spec import parse

LAW, START = SelfAttention(), Uniform(n=4, d=2)
NO_NUMBERS = (
    "3",
    ["1", "2"],
    np.datetime64("2020-01-01"),
    datetime.date(2020, 1, 1),
    np.timedelta64(3, "s"),
    np.ma.masked,
    np.ma.array([1.0, 2.0], mask=[0, 1]),
    [1.0, np.ma.masked],
    np.array([1 + 1j]),
)
ARGUMENTS = [
    (entry.name, option.name)
    for entry in entries("theory")
    for option in entry.options
    if option.annotation in ("ArrayLike", "ArrayLike | None")
]


@pytest.mark.parametrize(("form", "argument"), ARGUMENTS)
def test_closed_forms_take_numbers_only(form, argument):
    for wrong in NO_NUMBERS:
        with pytest.raises(flock.UserError, match=rf"{argument} must|{argument}="):
            getattr(theory, form)(**{argument: wrong})


OTHERS = [
    (entry.name, option.name, option.annotation)
    for entry in entries("theory")
    for option in entry.options
    if option.annotation not in ("ArrayLike", "ArrayLike | None", "bool")
]


@pytest.mark.parametrize(("form", "argument", "kind"), OTHERS)
def test_other_arguments_of_closed_forms_take_their_kind_only(form, argument, kind):
    for wrong in (*NO_NUMBERS, True, np.eye(2, dtype=bool), 1.5):
        if not (kind == "str" and isinstance(wrong, str)):
            with pytest.raises(flock.UserError, match=argument):
                getattr(theory, form)(**{argument: wrong})


def fields(entry):
    """The values of the fields of an example of a member."""
    cls = entry.load()
    if entry.kind == "dynamics":
        made = cls.example(4, cls.example(4, 3).dimension or 3)
    else:
        made = cls.example() if hasattr(cls, "example") else cls()
    return cls, {each.name: getattr(made, each.name) for each in dataclasses.fields(cls)}


MEMBERS = [entry for kind in KINDS if kind != "theory" for entry in entries(kind)]
NUMBERS, TRUTHS = {"float", "int", "Array"}, (True, np.True_, np.eye(2, dtype=bool))


@pytest.mark.parametrize("entry", MEMBERS, ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_members_take_what_their_fields_say_only(entry):
    """Laws, parts, starts, solvers, observables, events and random matrices."""
    cls, values = fields(entry)
    for option in entry.options:
        kinds = {word.strip() for word in option.annotation.split("|")}
        wrongs = list(NO_NUMBERS) if kinds & (NUMBERS | {"bool"}) else []
        wrongs += list(TRUTHS) if kinds & NUMBERS and "bool" not in kinds else []
        wrongs += [1, 0.0] if kinds == {"bool"} else []
        for wrong in wrongs:
            if "str" not in kinds or not isinstance(wrong, str):
                with pytest.raises(flock.UserError, match=rf"{option.name} must"):
                    cls(**values | {option.name: wrong})


@pytest.mark.parametrize("wrong", [np.timedelta64(3, "s"), np.datetime64("2020-01-01")])
def test_spans_of_time_are_no_numbers_of_verbs(wrong):
    """NumPy registers them as whole numbers."""
    for call in (
        lambda: flock.simulate(LAW, START, t=wrong),
        lambda: flock.simulate(LAW, START, t=1, frames=wrong),
        lambda: flock.simulate(LAW, START, t=1, seed=wrong),
        lambda: flock.ensemble(LAW, START, t=1, repeats=wrong),
        lambda: evolve(LAW, Ripple(), t=1, points=wrong),
        lambda: flock.simulate(LAW, START, times=np.array([wrong], dtype=object)),
    ):
        with pytest.raises(flock.UserError, match="number"):
            call()


@pytest.mark.parametrize("wrong", [each for each in NO_NUMBERS if np.ndim(each) == 1])
def test_verbs_take_numbers_only(wrong):
    for call in (
        lambda: flock.simulate(LAW, START, times=wrong),
        lambda: flock.ensemble(LAW, START, over={"beta": wrong}, t=1, repeats=2),
        lambda: flock.phase_diagram(LAW, START, beta=wrong, t=1, repeats=2),
        lambda: flock.simulate(LAW, [wrong, wrong]),
    ):
        with pytest.raises(flock.UserError, match="number") as told:
            call()
        assert "\n" not in str(told.value)


SPEC = '\n[dynamics]\nname = "causal"\n[start]\nname = "uniform"\nn = 4\nd = 2\n'


def contradicting(name):
    """A call with these options of time, for each way to say them."""
    run = flock.simulate(LAW, START, t=0.2, frames=3)
    return {
        "simulate": lambda **when: flock.simulate(LAW, START, **when),
        "ensemble": lambda **when: flock.ensemble(LAW, START, repeats=1, **when),
        "phase_diagram": lambda **when: flock.phase_diagram(
            LAW, START, beta=[1.0], repeats=1, **when
        ),
        "evolve": lambda **when: evolve(LAW, Ripple(), points=12, **when),
        "rerun": lambda **when: flock.rerun(run, **when),
        "spec": lambda **when: parse("\n".join(f"{k} = {v}" for k, v in when.items()) + SPEC),
    }[name]


@pytest.mark.parametrize(
    "verb", ["simulate", "ensemble", "phase_diagram", "evolve", "rerun", "spec"]
)
def test_times_stand_alone(verb):
    call = contradicting(verb)
    for other, told in ({"t": 0.5}, "t must be left out"), ({"frames": 3}, "frames must be left"):
        with pytest.raises(flock.UserError, match=told):
            call(times=[0.0, 0.1, 0.2], **other)
    result = call(times=[0.0, 0.1, 0.2], t=0.2)  # which says the same
    if verb not in ("spec", "evolve"):
        again = flock.rerun(result)
        np.testing.assert_allclose(again.time, [0.0, 0.1, 0.2])


def test_a_recipe_that_keeps_all_three_runs_again():
    """Those of older versions do."""
    run = flock.simulate(LAW, START, times=[0.0, 0.1])
    text = run.attrs["recipe"].replace('"t": 0.1', '"t": 30.0')
    assert text != run.attrs["recipe"]
    assert (flock.rerun(run.assign_attrs(recipe=text)).x == run.x).all()


def test_options_of_which_one_would_be_dropped_are_refused():
    two = [ClusterCount(delta=0.5), ClusterCount(delta=1e-3)]
    run = flock.simulate(LAW, START, t=0.1, frames=2)
    options = {"observe": two, "t": 0.1, "frames": 2}
    for call in (
        lambda: flock.simulate(LAW, START, **options),
        lambda: flock.ensemble(LAW, START, repeats=2, **options),
        lambda: flock.phase_diagram(LAW, START, beta=[1.0], repeats=2, **options),
        lambda: flock.measure(run, two),
        lambda: flock.probe("no such model", ["a"], observe=two),
    ):
        with pytest.raises(flock.UserError, match="observables of different names"):
            call()
    with pytest.raises(flock.UserError, match="quantiles must be left out with keep=True"):
        flock.ensemble(LAW, START, repeats=2, t=1, keep=True, quantiles=[0.5])
    axis = "[over]\nbeta = {first = 1.0, last = 4.0, count = 3, log = %s}"
    for wrong in ('"false"', "1"):
        with pytest.raises(flock.UserError, match=r"beta\.log must be True or False"):
            parse(SPEC + axis % wrong)
    np.testing.assert_allclose(parse(SPEC + axis % "true").over["beta"], [1, 2, 4])
    np.testing.assert_allclose(parse(SPEC + axis % "false").over["beta"], [1, 2.5, 4])


def test_different_seeds_are_different_runs():
    seeds = [5, 5 + 2**32, 5 + 2**33, 2**63 - 1, 2**32 - 1]
    ids = np.array([[0, 0], [3, 7]])
    for dtype in ("float32", "float64"):
        with precision(dtype):
            on_device = [np.asarray(jax.random.key_data(_keys(seed, ids, 1))) for seed in seeds]
            here = [np.asarray(jax.random.key_data(root_key(seed))) for seed in seeds]
            old = np.asarray(jax.random.key_data(jax.random.key(2**32 - 1)))
        np.testing.assert_array_equal(here[4], old)  # those below 2^32 are what they were
        np.testing.assert_array_equal(on_device, [keys_of(seed, ids, 1) for seed in seeds])
        assert len({each.tobytes() for each in here}) == len(seeds)
    means = [
        flock.ensemble(
            LAW, START, t=0.1, frames=2, repeats=2, seed=seed, observe=[MeanCosine()]
        ).mean_cosine.values[0]
        for seed in seeds
    ]
    assert len(set(means)) == len(seeds)


@pytest.mark.parametrize(
    "name",
    [
        *("dynamics.__class__", "start.__init__", "dynamics.beta.real", "dynamics.isotropic"),
        *("dynamics.", "observe.\u00b2.delta", f"observe.{'9' * 5000}.delta", "observe.9.delta"),
    ],
)
def test_only_fields_are_parameters(name):
    run = flock.simulate(LAW, START, t=0.1, frames=2, observe=ClusterCount())
    for call in (
        lambda: flock.rerun(run, **{name: 1}),
        lambda: flock.ensemble(LAW, START, over={name: [1.0, 2.0]}, t=1, repeats=2),
        lambda: parse(f'{SPEC}[over]\n"{name}" = [1.0, 2.0]\n'),
    ):
        with pytest.raises(flock.UserError, match="has no parameter"):
            call()


def test_tokens_of_more_digits_are_read_as_double():
    """As 80-bit numbers are, which JAX and linear algebra do not have."""
    run = flock.simulate(LAW, START, t=0.1, frames=2)
    long = run.assign(x=run.x.astype(np.longdouble))
    energy = [flock.measure(each, Energy()).energy for each in (run, long)]
    assert energy[1].dtype == np.float64
    np.testing.assert_array_equal(*energy)
    places = [flock.plots.plane(each).collections[0].get_offsets() for each in (run, long)]
    np.testing.assert_array_equal(*places)


@pytest.mark.parametrize("wrong", ["x", "array", "dict", "reversed"])
def test_a_file_is_replaced_by_a_whole_result_only(tmp_path, wrong):
    run = flock.simulate(LAW, START, t=0.1, frames=2)
    path = flock.save(run, tmp_path / "run.nc")
    before = path.read_bytes()
    given = {"x": run.x, "array": run.x.values, "dict": {"x": run.x.values}, "reversed": path}
    with pytest.raises(flock.UserError, match="result must be an xarray Dataset"):
        flock.save(given[wrong], run if wrong == "reversed" else path)
    assert path.read_bytes() == before


def test_one_observable_is_a_list_of_one():
    delta = PairDensity(delta=0.01)
    options = {"t": 0.2, "frames": 3, "observe": delta}
    for call in (
        lambda **asked: flock.simulate(LAW, START, **asked),
        lambda **asked: flock.ensemble(LAW, START, repeats=2, **asked),
        lambda **asked: flock.phase_diagram(LAW, START, beta=[1.0], repeats=2, **asked),
    ):
        one, several = call(**options), call(**options | {"observe": [delta]})
        xr.testing.assert_equal(one, several)
