"""What every closed form answers, over its whole range: numbers that change only on purpose.

That they are right is the business of the other files of this folder; here small, usual, large and
negative values of each argument are kept, also where a formula changes its form and no other test
looks. After a change that is meant: `python -m tests.oracles.test_theory_kept` writes them anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenflock import theory
from tokenflock.catalogue import entries
from tokenflock.errors import UserError
from tokenflock.theory._guard import numbers_in

TABLE = Path(__file__).parents[1] / "data" / "theory.txt"
FLOATS = (-1.3, -0.4, 0.0, 1e-3, 0.07, 0.45, 0.9, 1.7, 6.0, 40.0, 1e3, 3e8)
WHOLE = (0, 1, 2, 3, 4, 9, 33, 400, 10**5)
TOO_LONG = {"steps", "most"}  # as many steps are taken as they say
SLOW = {"gaussian_flow", "layer_crossing", "layer_transition_curve", "transition_curve"}
SLOW |= {"mode_switch", "normalised_flow", "pair_cosine"}
FORMS = {entry.name: getattr(theory, entry.name) for entry in entries("theory")}


def calls(form: Callable) -> Iterator[dict[str, Any]]:
    """The arguments in turn, from the defaults and from a little beside them."""
    defaults = {name: p.default for name, p in inspect.signature(form).parameters.items()}
    beside = {
        name: 1.13 * value if type(value) is float and np.isfinite(value) else value
        for name, value in defaults.items()
    }
    slow = form.__name__ in SLOW
    for base in (beside,) if slow else ({}, beside):
        yield base
        for name in (name for name in defaults if name not in TOO_LONG):
            yield from ({**base, name: other} for other in others(defaults[name], slow))


def others(value: Any, slow: bool) -> tuple:
    """What stands in for a default."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return WHOLE[1:5] if slow else WHOLE
    return (FLOATS[2:9:2] if slow else FLOATS) if isinstance(value, float) else ()


def answered(form: Callable, options: dict[str, Any]) -> str:
    """The answer in one line: of a long array its ends and its mean."""
    try:
        parts = [np.ravel(part) for part in numbers_in(form(**options))]
    except UserError:
        return "refused"
    short = [p if p.size <= 3 else np.array([p[0], p[-1], p.mean()]) for p in parts]
    return " ".join(f"{number:.10g}" for part in short for number in part)


def row(name: str) -> str:
    """The answers of one form, in order."""
    return f"{name}: " + "; ".join(answered(FORMS[name], given) for given in calls(FORMS[name]))


@pytest.mark.parametrize("name", FORMS)
def test_a_closed_form_answers_what_it_answered(name):
    kept = dict(line.split(": ", 1) for line in TABLE.read_text(encoding="utf-8").splitlines())
    before = kept[name].split("; ")
    for given, old in zip(calls(FORMS[name]), before, strict=True):
        new = answered(FORMS[name], given)
        assert (new == "refused") == (old == "refused"), given
        if old != "refused":
            numbers = [np.array(said.split(), float) for said in (new, old)]
            np.testing.assert_allclose(*numbers, rtol=1e-7, atol=1e-11, err_msg=str(given))


if __name__ == "__main__":
    TABLE.write_text("\n".join(map(row, FORMS)) + "\n", encoding="utf-8")
