"""How formulas and numbers of claims are set, kept: they change only on purpose.

That a setting is right is the business of `test_mathematics` and of the docstrings; here formulas
of all papers, and strange ones that a slip of the hand would type, are kept as they are set, so
that no branch changes unseen. After a change that is meant: `python -m
tests.papers.test_kept_texts` writes them anew.
"""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import pytest

from tokenflock.reproduction.claim import Claim
from tokenflock.reproduction.mathematics import mathml, unicode
from tokenflock.reproduction.numerals import interval, measured, number, with_error

DATA = Path(__file__).parents[1] / "data"
FORMULAS, NUMERALS = DATA / "formulas.txt", DATA / "numerals.txt"

VALUES = (0.0, 1.0, -2.5, 0.61803, 9.995e-4, 123456.789, -1.2345678e8, 3.2e-9, 51234.5, 1e-4, 1e7)
WIDTHS = (1.0, 0.013, 0.2, 1e-9, 4e-10, 130.0, 1.96e-3, 1e7)
ENDS = (-math.inf, -1e-9, -2.0, 0.0, 0.12, 2.0, 2.5, 1234.5678, math.inf)


def settings(typed: str) -> str:
    """A formula on a terminal and on a page."""
    return f"{unicode(typed, '~')}\t{mathml(typed)}"


def numerals() -> list[str]:
    """Numbers with widths and errors, and claims of every kind of interval."""
    pairs = list(product(VALUES, WIDTHS))
    rows = [f"number {a:g} {b:g}: {number(a, b)}" for a, b in pairs]
    rows += [
        f"with_error {a:g} {b:g}: {with_error(a, b)} | {with_error(a, b, brief=True)}"
        for a, b in pairs
    ]
    rows += [f"number {a} {b}: {number(a, b)}" for a, b in ((math.nan, 1.0), (0.5, 0.0))]
    for low, high in product(ENDS, ENDS):
        if low <= high and math.isfinite(min(abs(low), abs(high))):
            claim = Claim("", "", "", 1.23456789, (low, high))
            rows.append(f"claim {low:g} {high:g}: {measured(claim)} in {interval(claim)}")
    for value, error in ((None, None), (math.nan, None), (0.75, math.inf), (0.75, 0.01), (0.0, 0)):
        claim = Claim("", "", "", value, (math.nan, math.nan), error=error)
        rows.append(f"claim {value} {error}: {measured(claim)} in {interval(claim)}")
    return rows


def kept() -> list[tuple[str, str]]:
    rows = FORMULAS.read_text(encoding="utf-8").splitlines()
    return [(typed, done) for typed, _, done in (row.partition("\t") for row in rows)]


@pytest.mark.parametrize("part", range(4))
def test_formulas_are_set_as_they_were(part):
    rows = kept()
    assert len(rows) > 150
    assert [settings(typed) for typed, _ in rows[part::4]] == [done for _, done in rows[part::4]]


def test_numbers_are_set_as_they_were():
    assert numerals() == NUMERALS.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    rows = [f"{typed}\t{settings(typed)}\n" for typed, _ in kept()]
    FORMULAS.write_text("".join(rows), encoding="utf-8")
    NUMERALS.write_text("\n".join(numerals()) + "\n", encoding="utf-8")
