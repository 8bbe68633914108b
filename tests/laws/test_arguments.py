"""Every public function refuses what is of another kind, in one line that names the argument.

The arguments are read from the signatures: what is added there is tried here.
"""

from __future__ import annotations

import inspect
import re

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

import tokenflock as flock
from tokenflock import theory
from tokenflock.dynamics import SelfAttention
from tokenflock.errors import hints_of, require_kind
from tokenflock.meanfield import Goal, Ripple
from tokenflock.plots._shot import ShotOptions
from tokenflock.starts import Uniform
from tokenflock.verbs.options import Options

HOMES = (
    *(flock, flock.meanfield, flock.steering, flock.sweeps, flock.probing, flock.gpt, flock.plots),
    theory,
)
LAW, START = SelfAttention(), Uniform(n=4, d=2)
RUN = flock.simulate(LAW, START, t=0.1, frames=2)


def arguments():
    """Every argument of every public function with its annotation; fields of options too."""
    options = {"Options": Options, "ShotOptions": ShotOptions}
    for home in HOMES:
        for name in home.__all__:
            form = getattr(home, name)
            if inspect.isfunction(form) or name in ("Recording", "Selection", "Variant"):
                for each in inspect.signature(form).parameters.values():
                    table = options.get(str(each.annotation).removeprefix("Unpack[")[:-1])
                    rows = [(each.name, each.annotation)] if table is None else kinds(table)
                    yield from ((home, name, *row) for row in rows)


def kinds(table):
    return [(name, kind.__forward_arg__) for name, kind in table.__annotations__.items()]


# wrong values, and the words of annotations that they fit after all
WRONG = [
    (object(), ()),
    ("no such name", ("str", "Texts", "Goal", "Ground")),
    (2.5, ("float", "Time")),
    (1j, ()),
    (np.ma.masked, ("np.ndarray", "Numbers", "Array")),
    ({1: object()}, ("Mapping",)),
    ([object()], ("np.ndarray", "Numbers", "Array")),
    (1, ("int", "float", "Time")),
    (True, ("bool",)),
    (SelfAttention, ("Callable", "Tell")),
    (RUN.x, ("np.ndarray", "Numbers", "Array", "Sequence[float]")),
    (LAW, ("Dynamics",)),
]
UNTOLD = ("Any", "ArrayLike", "**")  # checked where they are read
CALLS = [
    (home, name, argument, value)
    for home, name, argument, annotation in arguments()
    for value, fits in WRONG
    if not {*fits, *UNTOLD} & set(re.findall(r"Sequence\[float\]|[\w.]+|\*\*", str(annotation)))
]
MODEL = flock.gpt.build(flock.gpt.Shape(rung="bigram"), jax.random.key(0))
GRID = flock.meanfield.grid(2, 8)
MADE = [LAW, MODEL, START, RUN, GRID, Ripple(), Goal.MAXIMISE, Figure()]
VALID = [*MADE, 1, "name", [], (0, 1), np.eye(2)]


def valid(form, name):
    """A value of the kind that an argument takes, such as it is: nothing looks into it."""
    hint = hints_of(form).get(name)
    for value in VALID:
        try:
            require_kind("", hint, value)
        except flock.UserError:
            continue
        return value
    return object.__new__(hint) if inspect.isclass(hint) else None


@pytest.mark.parametrize(("home", "name"), dict.fromkeys(call[:2] for call in CALLS))
def test_every_argument_refuses_what_is_of_another_kind(home, name):
    form = getattr(home, name)
    needed = {
        each.name: valid(form, each.name)
        for each in inspect.signature(form).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    }
    for _, _, argument, value in (call for call in CALLS if call[:2] == (home, name)):
        with pytest.raises(flock.UserError, match=rf"\b{argument}\b") as told:
            form(**needed | {argument: value})
        assert "\n" not in str(told.value)


def test_no_argument_is_left_out():
    assert len(CALLS) > 3000
    assert len({call[:2] for call in CALLS}) > 110
