"""Put the source of the site together: text, scripts, and pages generated from the code."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import examples
from running import all_ran

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"


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
        shutil.copytree(DOCS / name, source / name)
