"""Counts in README and CHANGELOG are those of the catalogue and of the claims."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.papers.numbers import path, stored
from tokenflock.catalogue import KINDS, entries
from tokenflock.observables import Convention
from tokenflock.reproduction.item import find

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
CHANGELOG = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
NOUNS = {
    "dynamics": "dynamics",
    "parts": "parts of blocks",
    "starts": "starts",
    "solvers": "solvers",
    "observables": "observables",
    "events": "events",
    "matrices": "laws of random matrices",
    "theory": "closed forms",
}
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_the_readme_counts_the_members(kind):
    row = re.search(rf"^\| \*\*{kind}\*\* \((\d+)\) \|.*`tokenflock list {kind}`", README, re.M)
    assert row, f"README has no row of {kind} with their number"
    assert int(row[1]) == len(entries(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_count_of_the_changelog_is_that_of_the_catalogue(kind):
    told = re.search(rf"(\d+) {NOUNS[kind]}\b", CHANGELOG)
    assert told and int(told[1]) == len(entries(kind))


def test_the_readme_counts_the_claims():
    """At quick scale; Figure 1 for a model that is there."""
    told = re.search(r"there are (\d+) of them", README)
    counts = [len(item.load().claims(stored(item.name))) for item in find([])]
    assert told and int(told[1]) == sum(counts)


def test_every_item_of_every_paper_is_counted():
    assert all(path(item.name).exists() for item in find([]))


def test_energies_come_in_as_many_conventions_as_the_readme_says():
    told = re.findall(r"\b(\w+) (?:named conventions|conventions that differ)", README)
    assert told == [WORDS[len(Convention)]] * 2
