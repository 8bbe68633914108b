"""Claims on a page: a row each, or one row for several that differ in a few values.

On a narrow screen a row is a card (`page.css`), so each cell knows its own name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from html import escape

from tokenflock.pages.grouping import ClaimGroup, grouped
from tokenflock.reproduction.claim import FAILS, HOLDS, NOT_RUN, Claim
from tokenflock.reproduction.mathematics import mathml
from tokenflock.reproduction.numerals import interval, measured

PLURAL = {HOLDS: "hold", FAILS: "fail", NOT_RUN: "not run"}


def table(claims: Sequence[Claim]) -> str:
    """All claims of an item; those that were not run stand last."""
    groups = sorted(grouped(claims), key=lambda group: worst(group.claims) == NOT_RUN)
    rows = "\n".join(_single(g.claims[0]) if len(g.claims) == 1 else _many(g) for g in groups)
    head = "".join(
        f"<th scope='col'>{name}</th>" for name in ("verdict", "claim", "measured", "must be")
    )
    return (
        f"<table class='claims'>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
    )


def counted(claims: Sequence[Claim]) -> dict[str, str]:
    """How many claims have each verdict that occurs, in words.

    >>> true = Claim("", "", "", 0.0, (-1.0, 1.0))
    >>> counted([true]), counted([true, true])
    ({'holds': '1 holds'}, {'holds': '2 hold'})
    """
    count = Counter(claim.verdict for claim in claims)
    return {
        verdict: f"{count[verdict]} {verb(verdict, count[verdict])}"
        for verdict in PLURAL
        if count[verdict]
    }


def verb(verdict: str, number: int) -> str:
    """One claim holds, two hold."""
    return verdict if number == 1 else PLURAL[verdict]


def worst(claims: Sequence[Claim]) -> str:
    """The verdict that matters most."""
    found = {claim.verdict for claim in claims}
    return next((verdict for verdict in (FAILS, NOT_RUN, HOLDS) if verdict in found), HOLDS)


def css(verdict: str) -> str:
    """The class of a verdict."""
    return verdict.replace(" ", "-")


def sentence(text: str) -> str:
    """With a capital and a full stop; a symbol at the beginning (n = 32, log W) stays as it is.

    >>> sentence("tokens meet"), sentence("$n = 2$ meet")
    ('Tokens meet.', '$n = 2$ meet.')
    """
    word = re.match(r"(?!log |nGPT)[a-z]{2,}(?![\w^(])|a (?=[a-z]{2})", text)
    text = text[0].upper() + text[1:] if word else text
    return text if text.endswith(".") else text + "."


def _single(claim: Claim) -> str:
    said = _said(claim.statement, [claim.source]) + _remarks([claim])
    return (
        f"<tr id='{escape(claim.id)}'><td class='verdict {css(claim.verdict)}'>{claim.verdict}</td>"
        f"<td class='said'>{said}</td>{_numbers(claim)}</tr>"
    )


def _many(group: ClaimGroup) -> str:
    """One row whose cases are a small table."""
    claims = group.claims
    shared = len({claim.note for claim in claims}) == 1
    names = [mathml(column.name) for column in group.columns]
    head = "".join(f"<th scope='col'>{n}</th>" for n in (*names, "measured", "must be", ""))
    rows = "\n".join(_case(group, k, shared) for k in range(len(claims)))
    said = _said(group.statement, [claim.source for claim in claims])
    remarks = _remarks(claims[:1], errata=False) if shared else ""
    tally = ", ".join(counted(claims).values())
    return (
        f"<tr class='many'><td class='tally {css(worst(claims))}'>{tally}</td>"
        f"<td class='said' colspan='3'>{said}{remarks}{_errata(claims)}<table class='cases'>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></td></tr>"
    )


def _case(group: ClaimGroup, place: int, shared: bool) -> str:
    claim = group.claims[place]
    values = "".join(f"<td>{_value(column.values[place])}</td>" for column in group.columns)
    note = "" if shared else _remarks([claim], errata=False)
    verdict = f"<td class='verdict {css(claim.verdict)}'>{claim.verdict}</td>"
    row = f"<tr id='{escape(claim.id)}'>{values}{_numbers(claim)}{verdict}</tr>"
    width = len(group.columns) + 3
    return row + (f"<tr class='of-case'><td colspan='{width}'>{note}</td></tr>" if note else "")


def _value(text: str) -> str:
    return mathml(f"${text}$" if text[:1] in "-−0123456789" else text)


def _numbers(claim: Claim) -> str:
    return (
        f"<td class='number' data-name='measured'>{mathml(measured(claim))}</td>"
        f"<td class='number' data-name='must be'>{mathml(interval(claim))}</td>"
    )


def _said(statement: str, sources: Sequence[str]) -> str:
    where = "; ".join(mathml(source) for source in dict.fromkeys(sources))
    return f"{mathml(sentence(statement))} <span class='soft'>[{where}]</span>"


def _remarks(claims: Sequence[Claim], errata: bool = True) -> str:
    notes = dict.fromkeys(c.note for c in claims if c.note and c.verdict != NOT_RUN)
    shown = "".join(f"<small>{mathml(sentence(note))}</small>" for note in notes)
    return shown + (_errata(claims) if errata else "")


def _errata(claims: Sequence[Claim]) -> str:
    errata = dict.fromkeys(claim.erratum for claim in claims if claim.erratum)
    return "".join(f"<small class='erratum'>Erratum: {mathml(text)}</small>" for text in errata)
