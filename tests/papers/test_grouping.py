"""Near-equal claims are one sentence with a table of cases; no claim is lost, none is bent."""

from __future__ import annotations

from tests.papers.numbers import stored
from tokenflock.pages.grouping import grouped
from tokenflock.reproduction.claim import Claim, at_most
from tokenflock.reproduction.item import find


def says(statement: str, name: str = "") -> Claim:
    return Claim(name or statement, statement, "Theorem 1", 0.0, at_most(1))


def test_claims_that_differ_in_numbers_or_one_name_are_one_group():
    law, beta = ("SA", "USA"), (1, 4)
    claims = [
        says(f"$n = 32$ tokens, {name} at $β = {b}$: all cosines are equal up to the end")
        for name in law
        for b in beta
    ]
    (group,) = grouped(claims)
    assert group.claims == tuple(claims)
    assert group.statement == (
        "$n = 32$ tokens, SA or USA at $β = 1, 4$: all cosines are equal up to the end"
    )
    assert [(column.name, column.values) for column in group.columns] == [
        ("case", ("SA", "SA", "USA", "USA")),
        ("$β$", ("1", "4", "1", "4")),
    ]


def test_other_sentences_stay_apart_and_in_their_order():
    claims = [
        says("tokens meet at $β = 1$ and stay"),
        says("they never part again"),
        says("tokens meet at $β = 9$ and stay"),
        says("tokens part at $β = 9$ and go"),
    ]
    shown = grouped(claims)
    assert [group.claims[0] for group in shown] == [claims[0], claims[1], claims[3]]
    assert shown[0].claims == (claims[0], claims[2])
    assert shown[1].statement == claims[1].statement and shown[1].columns == ()


def test_a_number_is_named_by_its_letter_or_by_what_is_counted():
    rows = [
        says(f"{n} uniform tokens in $d = {d}$ share a half with probability ${p}$ at least")
        for n, d, p in ((3, 2, 0.75), (4, 2, 0.5))
    ]
    (group,) = grouped(rows)
    assert [column.name for column in group.columns] == ["tokens", "probability"]


def test_every_claim_of_every_item_is_shown_once():
    """Theorem 6.8 has eight that differ in the law, in beta and in the cosine."""
    (item,) = find(["perspective/orthogonal"])
    claims = item.load().claims(stored(item.name))
    shown = grouped(claims)
    assert sorted(claim.id for group in shown for claim in group.claims) == sorted(
        claim.id for claim in claims
    )
    assert [len(group.claims) for group in shown[:2]] == [4, 4]
