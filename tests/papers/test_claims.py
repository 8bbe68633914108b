"""A claim holds where its number lies in its interval, ends included, and nowhere else."""

from __future__ import annotations

import json
import math

import pytest

from tokenflock.errors import UserError
from tokenflock.reproduction.claim import (
    Claim,
    at_least,
    at_most,
    between,
    monte_carlo,
    near,
    near_relative,
)
from tokenflock.reproduction.folder import _claim, _old_report


def verdict(measured, interval):
    return Claim("name", "statement", "source", measured, interval).verdict


@pytest.mark.parametrize(
    ("interval", "ends"),
    [
        (near(2, 0.5), (1.5, 2.5)),
        (near_relative(-4, 0.25), (-5, -3)),
        (near_relative(4, 0.25), (3, 5)),
        (monte_carlo(1, 0.25), (0, 2)),
        (monte_carlo(1, 0.25, sigmas=2, slack=0.5), (0, 2)),
        (at_most(3), (-math.inf, 3)),
        (at_least(3), (3, math.inf)),
        (between(1, 2), (1, 2)),
    ],
)
def test_intervals_are_what_their_names_say(interval, ends):
    assert interval == pytest.approx(ends)
    assert all(isinstance(end, float) for end in interval)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (0.999, "fails"),
        (1.0, "holds"),
        (1.5, "holds"),
        (2.0, "holds"),
        (2.001, "fails"),
        (math.nan, "fails"),
        (None, "not run"),
    ],
)
def test_a_claim_holds_between_its_ends(measured, expected):
    assert verdict(measured, between(1, 2)) == expected


def test_what_is_no_number_never_holds():
    for measured in (math.inf, math.nan):
        assert verdict(measured, at_least(0)) == "fails"
    assert verdict(-math.inf, at_most(0)) == "fails"


@pytest.mark.parametrize("ends", [(-math.inf, math.inf), (2.0, 1.0)])
def test_an_interval_that_holds_everything_or_nothing_is_refused(ends):
    with pytest.raises(UserError, match="interval"):
        verdict(1.0, ends)


def test_plain_values_of_a_claim():
    claim = Claim("pi", "around", "Archimedes", 3.1, at_least(3), error=0.5, note="n", erratum="e")
    assert claim.as_json() == {
        "id": "pi",
        "statement": "around",
        "source": "Archimedes",
        "measured": 3.1,
        "interval": [3.0, None],
        "error": 0.5,
        "note": "n",
        "erratum": "e",
        "verdict": "holds",
    }
    lost = Claim("pi", "around", "Archimedes", math.nan, at_most(3)).as_json()
    assert (lost["measured"], lost["interval"], lost["error"]) == (None, [None, 3.0], None)
    assert lost["verdict"] == "fails"


@pytest.mark.parametrize("interval", [near(2, 0.5), at_most(3), at_least(1), (math.nan, math.nan)])
@pytest.mark.parametrize("measured", [2.0, 9.0, math.nan, None])
def test_a_claim_that_was_noted_returns_with_its_verdict(interval, measured):
    claim = Claim("name", "statement", "source", measured, interval, error=0.5, note="n")
    again = _claim(json.loads(json.dumps(claim.as_json())))
    assert again.verdict == claim.verdict
    assert again.as_json() == claim.as_json()
    if not math.isnan(interval[0]):
        assert again.interval == claim.interval


def test_only_a_report_is_taken_for_one(tmp_path):
    """A folder of somebody else must not be written over."""
    assert not _old_report(tmp_path)
    for text in ("not JSON", "3", '[{"id": "mine"}]'):
        (tmp_path / "claims.json").write_text(text, encoding="utf-8")
        assert not _old_report(tmp_path)
    told = [Claim("name", "statement", "source", 1.0, at_least(0)).as_json()]
    (tmp_path / "claims.json").write_text(json.dumps(told), encoding="utf-8")
    assert _old_report(tmp_path)
