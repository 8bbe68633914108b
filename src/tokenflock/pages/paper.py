"""The page of a reproduction: what was asked, what came out, with which parameters, how well, and
what is wrong in print.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from tokenflock import recipe as recipes
from tokenflock.pages import claims as verdicts
from tokenflock.pages import html as pages
from tokenflock.pages.claims import counted
from tokenflock.reproduction.claim import FAILS, NOT_RUN
from tokenflock.reproduction.item import Paper, papers
from tokenflock.reproduction.mathematics import mathml, unicode
from tokenflock.reproduction.numerals import interval, measured
from tokenflock.reproduction.outcome import Outcome

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def page(outcomes: Sequence[Outcome], folder: Path) -> str:
    """The whole report as one page; figures and films come from the folder and go into the page.
    What was not run stands last.
    """
    outcomes = sorted(outcomes, key=lambda outcome: outcome.verdict == NOT_RUN)
    parts = [_head(outcomes, folder), _contents(outcomes), _errata(outcomes)]
    parts += [_section(outcome, folder) for outcome in outcomes]
    parts += [_reading(), _machine(outcomes)]
    return pages.page(_title(outcomes), "\n".join(part for part in parts if part))


def claims_in_words(number: int) -> str:
    """One claim, or so many claims."""
    return "1 claim" if number == 1 else f"{number} claims"


def _papers(outcomes: Sequence[Outcome]) -> list[Paper]:
    names = {outcome.item.paper for outcome in outcomes}
    return [paper for paper in papers() if paper.name in names]


def _title(outcomes: Sequence[Outcome]) -> str:
    known = _papers(outcomes)
    if len(known) > 2:
        return f"{_in_words(len(known)).capitalize()} papers on Transformers"
    return "; ".join(paper.title for paper in known) or "Nothing was run"


def _in_words(number: int) -> str:
    return _WORDS[number] if number < len(_WORDS) else str(number)


def _head(outcomes: Sequence[Outcome], folder: Path) -> str:
    known = _papers(outcomes)
    references = "".join(f"<p class='soft'>{escape(paper.reference)}</p>" for paper in known)
    questions = " ".join(mathml(paper.question) for paper in known if paper.question)
    count = Counter(claim.verdict for outcome in outcomes for claim in outcome.claims)
    totals = "".join(
        f"<span class='{verdicts.css(verdict) if count[verdict] else 'none'}'>"
        f"<b>{count[verdict]}</b> {'claim' if count[verdict] == 1 else 'claims'}"
        f" {verdicts.verb(verdict, count[verdict])}</span>"
        for verdict in verdicts.PLURAL
    )
    return (
        f"<h1>{escape(_title(outcomes))}, rerun</h1>\n{_cover(outcomes, folder)}\n<p"
        f" class='lead'>{questions} {_outcome(outcomes)}</p>\n<div"
        f" class='totals'>{totals}</div>\n{references}"
    )


def _outcome(outcomes: Sequence[Outcome]) -> str:
    """What came out, in a sentence or three."""
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    count = Counter(claim.verdict for claim in claims)
    judged = len(claims) - count[NOT_RUN]
    fails = [claim for claim in claims if claim.verdict == FAILS]
    words = [
        f"Of {claims_in_words(judged)} that were checked here by running the models,"
        f" {'none fails' if not fails else verdicts.counted(fails)[FAILS]}."
        if judged
        else "Nothing could be run here."
    ]
    errata = len({claim.erratum for claim in claims if claim.erratum})
    if errata:
        places = "one place" if errata == 1 else f"{_in_words(errata)} places"
        words.append(f"In <a href='#errata'>{places}</a> print departs from what is right.")
    if count[NOT_RUN]:
        words.append(f"{claims_in_words(count[NOT_RUN]).capitalize()} could not be run.")
    return " ".join(words)


def _cover(outcomes: Sequence[Outcome], folder: Path) -> str:
    """The picture that the page opens with: the one that its paper names, else the first."""
    covers = [f"{paper.name}/{paper.cover}" for paper in _papers(outcomes) if paper.cover]
    drawn = [outcome for outcome in outcomes if outcome.figures]
    drawn.sort(key=lambda outcome: outcome.item.name not in covers)
    if not drawn:
        return ""
    stem = drawn[0].figures[0]
    more = f"<a href='#{_anchor(drawn[0])}'>{mathml(drawn[0].item.source)}</a>"
    return (
        f"<figure class='cover'>{_picture(drawn[0], stem, folder)}"
        f"<figcaption>{_caption(drawn[0], stem)}(From {more}.)</figcaption></figure>"
    )


def _contents(outcomes: Sequence[Outcome]) -> str:
    rows = "\n".join(
        f"<li><a href='#{_anchor(outcome)}'>{mathml(outcome.item.source)}</a>:"
        f" {mathml(outcome.item.title)} <span class='verdict {verdicts.css(outcome.verdict)}'>"
        f"{', '.join(counted(outcome.claims).values())}</span></li>"
        for outcome in outcomes
    )
    return f"<h2>What was checked</h2>\n<ol class='contents'>\n{rows}\n</ol>"


def _errata(outcomes: Sequence[Outcome]) -> str:
    """Where print departs from what was measured, gathered in one place."""
    pairs = [(outcome, claim) for outcome in outcomes for claim in outcome.claims if claim.erratum]
    first = {claim.erratum: (outcome, claim) for outcome, claim in reversed(pairs)}
    errata = list(first.values())[::-1]
    if not errata:
        return ""
    rows = "\n".join(
        f"<tr><td>{mathml(claim.source)}</td><td class='said'>{mathml(claim.erratum)}</td>"
        f"<td class='number' data-name='measured'>{mathml(measured(claim))}</td>"
        f"<td class='number' data-name='must be'>{mathml(interval(claim))}</td>"
        f"<td><a href='#{escape(claim.id)}'>evidence</a></td></tr>"
        for outcome, claim in errata
    )
    names = ("where", "what is printed, and what is right", "measured", "must be", "")
    head = "".join(f"<th scope='col'>{name}</th>" for name in names)
    return (
        "<h2 id='errata'>Where print departs from what is right</h2>\n<table class='claims"
        f" errata'>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
    )


def _section(outcome: Outcome, folder: Path) -> str:
    item = outcome.item
    pictures = "\n".join(_figure(outcome, stem, folder) for stem in outcome.figures)
    films = "\n".join(
        f"<figure>{pages.film(folder / path, item.alt(_part(outcome, path)))}<figcaption>"
        f"{_caption(outcome, path)}<a href='{quote(path)}'>mp4</a></figcaption></figure>"
        for path in outcome.films
    )
    source = f"<span class='source'>({mathml(item.source)})</span>"
    head = f"<h2 id='{_anchor(outcome)}'>{mathml(item.title)} {source}</h2>"
    how = f"<details><summary>How it was computed</summary>{pages.paragraphs(item.how)}</details>"
    claims = verdicts.table(outcome.claims)
    shown = [head, _facts(outcome), pictures, _live(outcome), films, claims, how, _remake(outcome)]
    return "\n".join(part for part in shown if part)


def _facts(outcome: Outcome) -> str:
    """The setting and the time it took, or what came in the way."""
    if outcome.verdict == NOT_RUN:
        return f"<p class='not-run'>{escape(outcome.problem)}</p>"
    if outcome.problem:
        return f"<p class='fails'>It broke.</p><pre>{escape(outcome.problem)}</pre>"
    took = f"{outcome.scale.capitalize()} scale, {_duration(outcome.seconds)}."
    facts = f"{verdicts.sentence(outcome.setting)} {took}"
    return f"<p class='soft'>{mathml(facts)}</p>"


def _figure(outcome: Outcome, stem: str, folder: Path) -> str:
    place = quote(stem)
    links = f"<a href='{place}.png'>png</a>, <a href='{place}.pdf'>pdf</a>"
    picture = _picture(outcome, stem, folder)
    return (
        f"<figure>{picture}<figcaption>{_caption(outcome, stem)}"
        f"<span class='files'>{links}</span></figcaption></figure>"
    )


def _picture(outcome: Outcome, stem: str, folder: Path) -> str:
    dark = folder / (stem + "-dark.png")
    alt = outcome.item.alt(_part(outcome, stem))
    return pages.picture(folder / (stem + ".png"), alt, dark if dark.exists() else None)


def _caption(outcome: Outcome, place: str) -> str:
    caption = outcome.item.caption_of(_part(outcome, place))
    return f"{mathml(caption)} " if caption else ""


def _part(outcome: Outcome, place: str) -> str:
    """Which of an item's figures or films a file is: '' where there is but one."""
    return Path(place).name.removesuffix(".mp4").removeprefix(Path(outcome.item.name).name)[1:]


def _live(outcome: Outcome) -> str:
    if not outcome.live:
        return ""
    place = quote(outcome.live)
    return (
        f"<figure class='live'><iframe loading='lazy' src='{place}'"
        f" title='{escape(unicode(outcome.item.source))}, live'></iframe><figcaption>Live: the same"
        f" law, computed in this page. Press play, drag to turn. <a href='{place}'>On a page of its"
        " own</a></figcaption></figure>"
    )


def _remake(outcome: Outcome) -> str:
    command = f"tokenflock reproduce {outcome.item.name} --scale {outcome.scale} --out report"
    place = quote(outcome.data)
    data = f"Numbers: <a href='{place}'>{escape(outcome.data)}</a>. " if outcome.data else ""
    return f"<p class='soft'>{data}To remake it:</p><code class='command'>{escape(command)}</code>"


def _reading() -> str:
    return (
        "<h2>How to read a claim</h2>\n<p>Each claim is a sentence, a number that was measured by"
        " running the model, and the interval in which the number must lie for the sentence to"
        " hold. Intervals come from theory (a closed form, a bound), widened by the error of the"
        " measurement, or, where the note says so, from reading a figure. Beside a measured number,"
        " ± is one standard error over random systems; where it says what a number must be, it is"
        " half the width of the interval.</p>"
    )


def _machine(outcomes: Sequence[Outcome]) -> str:
    scales = ", ".join(sorted({outcome.scale for outcome in outcomes}))
    devices = ", ".join(sorted({outcome.device for outcome in outcomes}))
    spent = sum(outcome.seconds for outcome in outcomes)
    versions = ", ".join(
        f"{name} {value}" for name, value in recipes.versions("jax", "numpy", "scipy").items()
    )
    return (
        f"<p class='soft'>Scale: {escape(scales)}. Computed in {_duration(spent)} on"
        f" {escape(devices)} with {escape(versions)}.</p>"
    )


def _anchor(outcome: Outcome) -> str:
    return outcome.item.name.replace("/", "-")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"
