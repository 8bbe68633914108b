"""What every closed form answers, over its whole range: numbers that change only on purpose.

That they are right is the business of the other files of this folder; here small, usual, large and
negative values of each argument are kept, also where a formula changes its form and no other test
looks, and then all arguments moved at once. After a change that is meant:
`python -m tests.oracles.test_theory_kept` writes them anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
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
FEW = {"layer_transition_curve": 0, "transition_curve": 12, "mode_switch": 12, "gaussian_flow": 12}
CHOICES = {
    "scheme": ("post", "pre", "mix", "peri", "ngpt", "sqrt"),
    "model": ("SA", "USA", "Sinkhorn"),
}
GIVEN = {  # of what is no number or choice
    "mean": (0.3, -0.8),
    "covariance": ((0.9, 0.2), (0.2, 0.5)),
    "A": ((0.4, -0.3), (0.1, 0.6)),
    "V": ((0.7, 0.2), (-0.5, 1.1)),
    "masses": (0.2, 0.3, 0.5),
}
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


def mixed(form: Callable) -> Iterator[dict[str, Any]]:
    """All arguments moved at once, each time by something else."""
    defaults = {name: p.default for name, p in inspect.signature(form).parameters.items()}
    drawn = Random(form.__name__)
    for _ in range(FEW.get(form.__name__, 40)):
        yield {name: moved(name, defaults[name], drawn.random()) for name in defaults}


def moved(name: str, value: Any, share: float) -> Any:
    """What stands in for a default, the further from it the further a share is from 1/2."""
    if name in CHOICES or isinstance(value, bool):
        among = CHOICES.get(name, (False, True))
        return among[int(share * len(among))]
    if isinstance(value, tuple) or (type(value) is float and np.isinf(value)):
        return GIVEN.get(name, value if share < 0.4 else 50 * share**3)
    if isinstance(value, int):
        return max(1, round(min(value, 60) * 8 ** (share - 0.4)))
    if value == 0:
        return 0.0 if share < 0.2 else 1.5 * share - 0.5
    if 0 < value < 1:
        return value ** (4 * share**2 + 0.2)
    return (-1 if share < 0.1 else 0 if share < 0.15 else 1) * value * 20 ** (share - 0.5)


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
    every = (*calls(FORMS[name]), *mixed(FORMS[name]))
    return f"{name}: " + "; ".join(answered(FORMS[name], given) for given in every)


@pytest.mark.parametrize("name", FORMS)
def test_a_closed_form_answers_what_it_answered(name):
    kept = dict(line.split(": ", 1) for line in TABLE.read_text(encoding="utf-8").splitlines())
    before = kept[name].split("; ")
    every = (*calls(FORMS[name]), *mixed(FORMS[name]))
    for given, old in zip(every, before, strict=True):
        new = answered(FORMS[name], given)
        assert (new == "refused") == (old == "refused"), given
        if old != "refused":
            numbers = [np.array(said.split(), float) for said in (new, old)]
            np.testing.assert_allclose(*numbers, rtol=1e-7, atol=1e-11, err_msg=str(given))


if __name__ == "__main__":
    TABLE.write_text("\n".join(map(row, FORMS)) + "\n", encoding="utf-8")
