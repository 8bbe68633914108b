"""The options of an ensemble: one list, and no word that is not on it."""

from __future__ import annotations

import dataclasses

import pytest

from tokenflock.dynamics import SelfAttention
from tokenflock.errors import UserError
from tokenflock.starts import Uniform
from tokenflock.verbs.ensemble import ensemble
from tokenflock.verbs.options import Choices, Options
from tokenflock.verbs.phase_diagram import phase_diagram


def test_what_editors_see_is_what_runs():
    assert list(Options.__annotations__) == [field.name for field in dataclasses.fields(Choices)]


@pytest.mark.parametrize(("wrong", "near"), [("setle", "settle"), ("engin", "engine")])
def test_a_typo_is_refused_with_the_nearest_name(wrong, near):
    with pytest.raises(UserError, match=f"no option '{wrong}'; did you mean {near}"):
        ensemble(SelfAttention(), Uniform(n=4, d=2), **{wrong: False})
    with pytest.raises(UserError, match=f"no option '{wrong}'"):
        phase_diagram(SelfAttention(), Uniform(n=4, d=2), beta=[1.0], **{wrong: False})
