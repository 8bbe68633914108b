"""Every field of every object checks its kind, over all classes, by one mechanism."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import pkgutil

import numpy as np
import pytest

import tokenflock
from tokenflock.catalogue import BASES, base, entries
from tokenflock.errors import UserError
from tokenflock.frozen import Frozen, choice, kinds_of, settle
from tokenflock.meanfield import Goal, Ground, optimal_tokens, wasserstein

WRONG = {
    "float": ["4", None, "peak", [1.0, 2.0], float("nan"), float("inf"), True, 1j, object()],
    "int": ["4", None, 1.5, float("nan"), float("inf"), True],
    "bool": ["no", "yes", 1, 0, 2.0, None],
    "Array": ["no", "1,2", object(), [[1.0, "x"]], [float("nan")], [[1.0], [1.0, 2.0]]],
    "str": [3, None],
}


def members():
    """One object of every class whose fields are checked: the catalogue, and what goes with it."""
    from tokenflock.dynamics import Switching
    from tokenflock.matrices import RandomMatrices
    from tokenflock.meanfield import Empirical
    from tokenflock.parts import LayerNorm
    from tokenflock.starts import Given

    special = {"Given": Given(np.eye(3)), "Empirical": Empirical(np.eye(2))}
    objects = [RandomMatrices(), Switching(np.ones((2, 3, 3)), 0.5), LayerNorm(gain=np.ones(2))]
    for kind in BASES:
        for entry in entries(kind):
            cls = entry.load()
            if not issubclass(cls, base(kind)) or cls is base(kind):
                continue  # a helper beside the densities
            made = special.get(entry.name) or _made(cls, kind)
            objects.append(made)
    return objects


def _made(cls, kind):
    return cls.example() if kind in ("dynamics", "parts") else cls()


MEMBERS = members()
FIELDS = [
    (value, name, kinds) for value in MEMBERS for name, kinds in kinds_of(type(value)).items()
]
NAMES = [f"{type(value).__name__}.{name}" for value, name, _ in FIELDS]


def changed(value, name, other):
    return type(value)(
        **{f.name: getattr(value, f.name) for f in dataclasses.fields(value)} | {name: other}
    )


@pytest.mark.parametrize(("value", "name", "kinds"), FIELDS, ids=NAMES)
def test_a_value_of_the_wrong_kind_is_refused_by_name(value, name, kinds):
    allowed = {kind for kind in kinds if isinstance(kind, str)}
    for kind in allowed & set(WRONG):
        for wrong in WRONG[kind]:
            if wrong is None and "None" in allowed:
                continue
            fits_another = any(_fits(other, wrong) for other in allowed - {kind})
            if fits_another:
                continue
            with pytest.raises(UserError, match=rf"{type(value).__name__}\.{name} must"):
                changed(value, name, wrong)
    for cls in (kind for kind in kinds if isinstance(kind, type)):
        with pytest.raises(UserError, match=rf"{type(value).__name__}\.{name} must"):
            changed(value, name, "no such thing")
        with pytest.raises(UserError, match=rf"{type(value).__name__}\.{name} must"):
            changed(value, name, cls if issubclass(cls, Frozen) else 3)


def _fits(kind, value):
    try:
        settle("x", [kind], value)
    except UserError:
        return False
    return True


@pytest.mark.parametrize(("value", "name", "kinds"), FIELDS, ids=NAMES)
def test_every_annotation_says_a_kind(value, name, kinds):
    assert kinds, f"{type(value).__name__}.{name} is never checked"


def test_no_field_of_any_class_escapes():
    """An annotation that the mechanism does not understand would be an open door."""
    for module in pkgutil.walk_packages(tokenflock.__path__, "tokenflock."):
        if module.name.split(".")[1] in BASES:
            importlib.import_module(module.name)
    known = {"AbstractVar", "Sequence"}  # abstract ones; a sequence checks its members itself
    for cls in _below(Frozen):
        if cls.__module__.startswith("tokenflock."):
            for field in dataclasses.fields(cls):
                named = field.name in kinds_of(cls)
                assert named or any(word in str(field.type) for word in known), (cls, field.name)


def _below(cls):
    for below in cls.__subclasses__():
        yield below
        yield from _below(below)


CHOICES = [
    (value, name, kind)
    for value, name, kinds in FIELDS
    for kind in kinds
    if isinstance(kind, type) and issubclass(kind, enum.Enum)
]


def test_there_are_choices():
    assert len(CHOICES) >= 6


@pytest.mark.parametrize(
    ("value", "name", "kind"), CHOICES, ids=lambda part: getattr(part, "__name__", "")
)
def test_the_right_text_becomes_its_member_and_a_wrong_one_names_the_nearest(value, name, kind):
    for member in kind:
        for text in (
            member.name,
            member.name.lower(),
            str(member.value),
            str(member.value).upper(),
        ):
            made = changed(value, name, text)
            assert getattr(made, name) is member
            assert repr(made) == repr(changed(value, name, member))
    typo = str(next(iter(kind)).value) + "x"
    with pytest.raises(UserError, match="did you mean"):
        changed(value, name, typo)


def test_choices_of_functions_are_checked_too():
    x = np.eye(3)
    chordal = wasserstein(x[:1], x[1:2], ground="chordal")
    assert chordal == wasserstein(x[:1], x[1:2], ground=Ground.CHORDAL)
    assert chordal == pytest.approx(np.sqrt(2))
    with pytest.raises(UserError, match="ground must be one of"):
        wasserstein(x, x, ground="cordal")
    with pytest.raises(UserError, match="goal must be one of"):
        optimal_tokens(np.eye(2), n=3, goal="smallest")
    assert choice(Goal, "maximise", "goal") is Goal.MAXIMISE


def test_arrays_are_copies_that_nobody_can_change():
    from tokenflock.starts import Given

    a = np.eye(3)
    start = Given(a)
    a[0, 0] = 7
    assert start.x[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        start.x[0, 0] = 7


def test_verbs_refuse_classes_names_and_numbers_of_the_wrong_kind():
    import tokenflock as flock
    from tokenflock.dynamics import SelfAttention
    from tokenflock.observables import Energy
    from tokenflock.solvers import Layer
    from tokenflock.starts import Uniform

    law, start = SelfAttention(), Uniform(n=3, d=2)
    bad = [
        ("solver", {"solver": Layer}),
        ("solver", {"solver": "layer"}),
        ("until", {"until": "consensus"}),
        ("observe", {"observe": "energy"}),
        ("observe", {"observe": [Energy]}),
        ("t", {"t": "30"}),
        ("frames", {"frames": 2.5}),
        ("seed", {"seed": 1.9}),
        ("seed", {"seed": -1}),
    ]
    for argument, options in bad:
        with pytest.raises(UserError, match=f"^{argument} must"):
            flock.simulate(law, start, **({"t": 1.0} | options))
    with pytest.raises(UserError, match="dynamics must"):
        flock.simulate(SelfAttention, start)
    single = flock.simulate(law, start, t=0.1, frames=2, observe=Energy())
    assert single.energy.dims == ("time",)
