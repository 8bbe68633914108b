"""Put the source of the site together: text, scripts, and pages generated from the code."""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path

import catalogues
import docstrings
import examples
import reference
import verdicts
from cells import Cell, asks_to_run, of_page
from home import PROJECT
from links import PAGES, relinked, within
from running import Ran, all_ran, digest
from writing import Place, text_of

DOCS = PROJECT / "docs"
CONTENTS = {  # in its order; a page that is not here is an error
    "Learn": ["lessons/index", "questions", "problems/index", "gallery"],
    "Do": ["howto/index", "everything", "sharp-bits", "glossary"],
    "Essays": [
        "block",
        "measures",
        "times",
        "gradients",
        "real-models",
        "small-gpts",
        "lab",
        "sweeps",
    ],
    "Look up": ["catalogue", "verdicts/index", "errata", "corrections", "reference/index"],
    "Carry on": ["architecture/index", "speed", "testing", "contributing", "changes"],
}
LESSONS = """# Lessons

Each lesson is a script of `examples/lessons` that was run when this page was built: text, code,
what the code showed, a live figure, and exercises with folded answers. Read them in order. If you
know gradient flows but never saw a layer norm, read the first, then the third and the fifth, and
the rest as you like. Then come [ten questions](../questions.md).
"""
PROBLEMS = """# Open problems

What the papers leave open, each with a script of `examples/problems` that starts an attack and ends
with a verdict: supported, refuted or undecided. How an attack is made is told in
[lesson 16](../lessons/16-open-problems.md).
"""
HEADS = {"lessons": LESSONS, "problems": PROBLEMS}
REFERENCE = """# Reference

Every public name, from the code itself; a test compares these pages with the typed surface.
Members of the catalogue are also listed, with their options, in [the catalogue](../catalogue.md).

| folder | |
|---|---|
{rows}

```{{toctree}}
:hidden:
:maxdepth: 1

{pages}
```
"""


def whole(asked: argparse.Namespace, source: Path, kept: Path) -> None:
    """The whole site."""
    _frame(source)
    shutil.copytree(DOCS / "images", source / "images")
    scripts = examples.found(asked.examples)
    texts = _texts()
    generated = _generated(asked.claims, kept)
    made = frozenset(
        [*generated, *(page for _, page in texts.values()), *(each.page for each in scripts)]
    ) | {f"{name}/index.md" for name in HEADS}
    live = {page: of_page(text) for text, page in texts.values() if asks_to_run(text)}
    cells = {each.name: each.code for each in scripts}
    cells |= {
        _word(page): [cell.text for cell in found if cell.runs] for page, found in live.items()
    }
    runs = all_ran(cells, kept, asked.workers)
    for page, text in generated.items():
        _write(source / page, text)
    for name, (text, page) in texts.items():
        _write(source / page, _page(name, page, (text, live.get(page)), runs, (source, made)))
    for each in scripts:
        examples.write(each, runs[each.name], source, made)
    for folder, head in HEADS.items():
        own = [each for each in scripts if each.page.startswith(f"{folder}/")]
        (source / folder).mkdir(exist_ok=True)
        _write(source / folder / "index.md", examples.index(own, runs, source, head))
    _contents(source)


def _page(
    name: str,
    page: str,
    told: tuple[str, list[Cell] | None],
    runs: dict[str, Ran],
    home: tuple[Path, frozenset[str]],
) -> str:
    """The text of one page of docs/, run where it asks to be."""
    text, cells = told
    source, made = home
    if cells is None:
        return _fences(relinked(text, name, page, made))
    shown = [
        Cell("markdown", relinked(cell.text, name, page, made)) if cell.kind == "markdown" else cell
        for cell in cells
    ]
    return text_of(shown, runs[_word(page)], Place(source, page))


def _fences(text: str) -> str:
    """Words after the language of a block are for tests: `python norun`."""
    return re.sub(r"^```(\w+) norun$", r"```\1", text, flags=re.MULTILINE)


def _word(page: str) -> str:
    return page.removesuffix(".md").replace("/", "-")


def _texts() -> dict[str, tuple[str, str]]:
    """Every text by its path in the repository: what it says, and its page."""
    paths = sorted(DOCS.rglob("*.md"))
    made = {
        within(path): (path.read_text(encoding="utf-8"), str(path.relative_to(DOCS)))
        for path in paths
    }
    for name, page in PAGES.items():
        if page != "index.md":
            made[name] = ((PROJECT / name).read_text(encoding="utf-8"), page)
    return made


def _generated(reports: Path | None, kept: Path) -> dict[str, str]:
    """Pages that come from the code; kept while it stays the same."""
    makers = (reference, verdicts, catalogues, docstrings)
    mark = digest(*(Path(str(maker.__file__)) for maker in makers)) + (
        "" if reports is None else str(reports.resolve())
    )
    store = kept / "generated.json"
    if reports is None and store.exists():
        old = json.loads(store.read_text(encoding="utf-8"))
        if old["mark"] == mark:
            return old["pages"]
    made = reference.pages() | verdicts.pages(reports)
    made["catalogue.md"] = catalogues.page()
    rows = "\n".join(
        f"| [`{name}`]({name}.md) | {head} |" for name, head in reference.HEADS.items()
    )
    made["reference/index.md"] = REFERENCE.format(rows=rows, pages="\n".join(reference.FOLDERS))
    kept.mkdir(parents=True, exist_ok=True)
    store.write_text(json.dumps({"mark": mark, "pages": made}), encoding="utf-8")
    return made


def _contents(source: Path) -> None:
    """The table of contents, at the end of the first page; what is not there yet is left out."""
    blocks = []
    for caption, pages in CONTENTS.items():
        there = "\n".join(page for page in pages if (source / f"{page}.md").exists())
        blocks.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{there}\n```\n")
    first = source / "index.md"
    first.write_text(first.read_text(encoding="utf-8") + "\n" + "\n".join(blocks), encoding="utf-8")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def some(asked: argparse.Namespace, source: Path, kept: Path) -> None:
    """A site of a few scripts alone, links unchecked: for those who write them."""
    _frame(source)
    chosen = examples.found(asked.examples, asked.only)
    if not chosen:
        raise ValueError(f"no script of {asked.examples} has {asked.only!r} in its path")
    runs = all_ran({each.name: each.code for each in chosen}, kept, asked.workers)
    for each in chosen:
        examples.write(each, runs[each.name], source, None)
        print(f"{each.source}: {runs[each.name].seconds:.1f} s of CPU")
    pages = "\n".join(each.page.removesuffix(".md") for each in chosen)
    toctree = f"# A look\n\n```{{toctree}}\n{pages}\n```\n"
    (source / "index.md").write_text(toctree, encoding="utf-8")


def _frame(source: Path) -> None:
    """What Sphinx needs: settings, extensions, styles."""
    source.mkdir(parents=True)
    shutil.copy(DOCS / "conf.py", source)
    for name in ("_ext", "_static"):
        shutil.copytree(DOCS / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
