"""The page of a reproduction: what was checked, with which parameters, how well, and what is wrong
in print.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from tokenflock import recipe as recipes
from tokenflock.pages import html as pages
from tokenflock.reproduction.claim import FAILS, HOLDS, NOT_RUN, Claim
from tokenflock.reproduction.item import papers
from tokenflock.reproduction.outcome import Outcome

_PLURAL = {HOLDS: "hold", FAILS: "fail", NOT_RUN: "not run"}


def page(outcomes: Sequence[Outcome], folder: Path) -> str:
    """The whole report as one page; figures and films come from the folder and go into the page."""
    parts = [_head(outcomes), _contents(outcomes), _errata(outcomes)]
    parts += [_section(outcome, folder) for outcome in outcomes]
    return pages.page(_title(outcomes), "\n".join(part for part in parts if part))


def counted(claims: Sequence[Claim]) -> dict[str, str]:
    """How many claims have each verdict that occurs, in words.

    >>> true = Claim("", "", "", 0.0, (-1.0, 1.0))
    >>> counted([true]), counted([true, true])
    ({'holds': '1 holds'}, {'holds': '2 hold'})
    """
    count = Counter(claim.verdict for claim in claims)
    return {
        verdict: f"{count[verdict]} {_verb(verdict, count)}"
        for verdict in _PLURAL
        if count[verdict]
    }


def claims_in_words(number: int) -> str:
    """One claim, or so many claims."""
    return "1 claim" if number == 1 else f"{number} claims"


def _verb(verdict: str, count: Counter[str]) -> str:
    return verdict if count[verdict] == 1 else _PLURAL[verdict]


def measured(claim: Claim) -> str:
    """The number, with as many digits as its interval has a use for, and its standard error.

    >>> measured(Claim("front", "", "", 6.7812345, (6.70, 6.86)))
    '6.781'
    """
    if claim.measured is None:
        return "–"
    text = _number(claim.measured, _width(claim))
    return text if claim.error is None else f"{text} ± {claim.error:.2g}"


def interval(claim: Claim) -> str:
    """Where the number must lie.

    >>> low, inside = (-math.inf, 1e-9), (6.70, 6.86)
    >>> interval(Claim("", "", "", 0.0, low)), interval(Claim("", "", "", 0.0, inside))
    ('≤ 1e-09', '6.780 ± 0.08')
    >>> interval(Claim("", "", "", 0.0, (0.12, 0.88)))
    '0.12 to 0.88'
    """
    low, high = claim.interval
    if math.isinf(low) or math.isinf(high):
        return f"≤ {high:.4g}" if math.isinf(low) else f"≥ {low:.4g}"
    if low == high:
        return f"= {low:.6g}"
    middle, half = (low + high) / 2, (high - low) / 2
    if half < 0.2 * abs(middle):
        return f"{_number(middle, half)} ± {half:.2g}"
    return f"{_number(low, high - low)} to {_number(high, high - low)}"


def _width(claim: Claim) -> float:
    low, high = claim.interval
    widths = [(high - low) / 2, claim.error, abs(claim.measured or 0.0), 1.0]
    width = next((width for width in widths if width and math.isfinite(width)), None)
    return 1.0 if width is None else min(width, claim.error or width)


def _number(value: float, width: float) -> str:
    """A number to a tenth or a hundredth of a width."""
    if not math.isfinite(value):
        return "no number"
    if value == 0:
        return "0"
    places = 1 - math.floor(math.log10(width)) if width > 0 else 6
    size = math.floor(math.log10(abs(value)))
    if -4 < size < 6:
        return f"{value:.{min(max(places, 0), 14)}f}" if places + size >= 2 else f"{value:.3g}"
    return f"{value:.{min(max(places + size, 1), 12)}e}"


def _title(outcomes: Sequence[Outcome]) -> str:
    names = list(dict.fromkeys(outcome.item.paper for outcome in outcomes))
    titles = {paper.name: paper.title for paper in papers()}
    return "; ".join(titles[name] for name in names) or "Nothing was run"


def _head(outcomes: Sequence[Outcome]) -> str:
    names = {outcome.item.paper for outcome in outcomes}
    references = "".join(
        f"<p class='soft'>{escape(p.reference)}</p>" for p in papers() if p.name in names
    )
    count = Counter(claim.verdict for outcome in outcomes for claim in outcome.claims)
    totals = "".join(
        f"<span class='{_css(verdict)}'><b>{count[verdict]}</b>"
        f" {'claim' if count[verdict] == 1 else 'claims'} {_verb(verdict, count)}</span>"
        for verdict in _PLURAL
    )
    scales = ", ".join(sorted({outcome.scale for outcome in outcomes}))
    devices = ", ".join(sorted({outcome.device for outcome in outcomes}))
    spent = sum(outcome.seconds for outcome in outcomes)
    versions = ", ".join(
        f"{name} {value}" for name, value in recipes.versions("jax", "numpy", "scipy").items()
    )
    return (
        f"<h1>{escape(_title(outcomes))}, rerun</h1>{references}\n<div"
        f" class='totals'>{totals}</div>\n<p class='soft'>Scale: {escape(scales)}. Computed in"
        f" {_duration(spent)} on {escape(devices)} with {escape(versions)}.</p>\n<p>Each claim is a"
        " sentence, a number that was measured by running the model, and the interval in which the"
        " number must lie for the sentence to hold. Intervals come from theory (a closed form, a"
        " bound), widened by the error of the measurement, or, where the note says so, from"
        " reading a figure. Beside a measured number, ± is one standard error over random systems;"
        " in the last column it is half the width of the interval.</p>"
    )


def _contents(outcomes: Sequence[Outcome]) -> str:
    rows = "\n".join(
        f"<li><a href='#{_anchor(outcome)}'>{escape(outcome.item.source)}</a>:"
        f" {pages.formulas(outcome.item.title)} <span class='verdict"
        f" {_css(outcome.verdict)}'>{', '.join(counted(outcome.claims).values())}</span></li>"
        for outcome in outcomes
    )
    return f"<h3>What was checked</h3>\n<ol class='contents'>\n{rows}\n</ol>"


def _errata(outcomes: Sequence[Outcome]) -> str:
    """Where print departs from what was measured, gathered in one place."""
    pairs = [(outcome, claim) for outcome in outcomes for claim in outcome.claims if claim.erratum]
    first = {claim.erratum: (outcome, claim) for outcome, claim in reversed(pairs)}
    errata = list(first.values())[::-1]
    if not errata:
        return ""
    rows = "\n".join(
        f"<tr><td>{pages.formulas(claim.source)}</td><td>{pages.formulas(claim.erratum)}</td>"
        f"<td class='number'>{measured(claim)}<small>{escape(interval(claim))}</small></td>"
        f"<td><a href='#{_anchor(outcome)}'>evidence</a></td></tr>"
        for outcome, claim in errata
    )
    return (
        "<h2 id='errata'>Where print departs from what is right</h2>\n<div"
        " class='scroll'><table><tr><th>where</th><th>what is printed, and what is"
        f" right</th><th>measured</th><th></th></tr>\n{rows}\n</table></div>"
    )


def _section(outcome: Outcome, folder: Path) -> str:
    item = outcome.item
    pictures = "\n".join(_figure(outcome, stem, folder) for stem in outcome.figures)
    films = "\n".join(
        f"<figure>{pages.film(folder / path, item.title)}<figcaption><a"
        f" href='{path}'>{path}</a></figcaption></figure>"
        for path in outcome.films
    )
    title = f"{pages.formulas(item.title)} <span class='source'>({escape(item.source)})</span>"
    how = f"<details><summary>How it was computed</summary>{pages.paragraphs(item.how)}</details>"
    head = f"<h2 id='{_anchor(outcome)}'>{title}</h2>"
    shown = [_facts(outcome), pictures, films, _claims(outcome.claims), how, _remake(outcome)]
    return "\n".join([head, *shown])


def _facts(outcome: Outcome) -> str:
    """The setting and the time it took, or what came in the way."""
    if outcome.verdict == NOT_RUN:
        return f"<p class='not-run'>{escape(outcome.problem)}</p>"
    if outcome.problem:
        return f"<p class='fails'>It broke.</p><pre>{escape(outcome.problem)}</pre>"
    facts = f"{outcome.setting}. {outcome.scale.capitalize()} scale, {_duration(outcome.seconds)}."
    return f"<p class='soft'>{pages.formulas(facts)}</p>"


def _figure(outcome: Outcome, stem: str, folder: Path) -> str:
    caption = f"{outcome.item.source}: {outcome.item.title}"
    links = f"<a href='{stem}.png'>png</a>, <a href='{stem}.pdf'>pdf</a>"
    picture = pages.picture(folder / (stem + ".png"), caption)
    words = f"{pages.formulas(outcome.item.caption)} " if outcome.item.caption else ""
    return f"<figure>{picture}<figcaption>{words}{links}</figcaption></figure>"


def _claims(claims: Sequence[Claim]) -> str:
    rows = "\n".join(_row(claim) for claim in claims)
    head = "<tr><th>verdict</th><th>claim</th><th>measured</th><th>must be</th></tr>"
    return f"<div class='scroll'><table>{head}\n{rows}\n</table></div>"


def _row(claim: Claim) -> str:
    note = (
        f"<small>{pages.formulas(claim.note)}</small>"
        if claim.note and claim.verdict != NOT_RUN
        else ""
    )
    erratum = (
        f"<small class='erratum'>Erratum: {pages.formulas(claim.erratum)}</small>"
        if claim.erratum
        else ""
    )
    statement = pages.formulas(_sentence(claim.statement))
    return (
        f"<tr id='{escape(claim.id)}'><td class='verdict"
        f" {_css(claim.verdict)}'>{claim.verdict}</td><td>{statement} <span"
        f" class='soft'>[{pages.formulas(claim.source)}]</span>{note}{erratum}</td><td"
        f" class='number'>{escape(measured(claim))}</td><td"
        f" class='number'>{escape(interval(claim))}</td></tr>"
    )


def _sentence(text: str) -> str:
    """With a capital and a full stop; a symbol at the beginning (n = 32, log W) stays as it is."""
    word = re.match(r"(?!log )[a-z]{2,}(?![\w^(])|a (?=[a-z]{2})", text)
    text = text[0].upper() + text[1:] if word else text
    return text if text.endswith(".") else text + "."


def _remake(outcome: Outcome) -> str:
    command = f"tokenflock reproduce {outcome.item.name} --scale {outcome.scale} --out report"
    data = f"Numbers: <a href='{outcome.data}'>{outcome.data}</a>. " if outcome.data else ""
    return f"<p class='soft'>{data}To remake it:</p><code class='command'>{escape(command)}</code>"


def _anchor(outcome: Outcome) -> str:
    return outcome.item.name.replace("/", "-")


def _css(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"
