"""The items of all papers, read from their files without importing them."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import ModuleType

from tokenflock.catalogue import summary
from tokenflock.errors import UserError
from tokenflock.reproduction.mathematics import unicode

_CONSTANTS = ("SOURCE", "CAPTION", "REFERENCE", "QUESTION", "COVER")
_ROOT = Path(__file__).parents[1] / "papers"


@dataclass(frozen=True)
class Paper:
    """A folder: its name, and from its `__init__` the title (first line of the docstring) and the
    reference.
    """

    name: str  # perspective
    title: str
    reference: str
    items: tuple[Item, ...]
    question: str = ""  # what was asked, in a sentence
    cover: str = ""  # the item whose picture stands for the paper


@dataclass(frozen=True)
class Item:
    """One file of a paper."""

    paper: str
    stem: str
    title: str
    how: str  # the rest of the docstring
    source: str  # Figure 3; Theorem 6.3, Lemma 6.4
    caption: str = ""  # one sentence: what to see in the picture
    captions: tuple[tuple[str, str], ...] = ()  # of each picture or film, by name, where given

    @property
    def name(self) -> str:
        """As on the command line: perspective/fig3."""
        return f"{self.paper}/{self.stem.replace('_', '-')}"

    def caption_of(self, part: str) -> str:
        """What to see in one of its pictures or films, marked as in `mathematics`."""
        return dict(self.captions).get(part, self.caption)

    def alt(self, part: str = "") -> str:
        """What a picture shows, for those who do not see it: its source, its title, its caption."""
        shown = self.caption_of(part).removeprefix("See ")
        words = f"{self.source}: {self.title}." + (
            f" {shown[:1].upper()}{shown[1:]}" if shown else ""
        )
        return unicode(words)

    def load(self) -> ModuleType:
        """Import the file of the item."""
        return importlib.import_module(
            f"tokenflock.papers.{self.paper.replace('-', '_')}.{self.stem}"
        )


@cache
def papers() -> tuple[Paper, ...]:
    """All papers, in alphabetical order."""
    return tuple(
        _paper(folder) for folder in sorted(_ROOT.iterdir()) if (folder / "__init__.py").exists()
    )


def find(names: list[str] | tuple[str, ...]) -> list[Item]:
    """The items that names mean: `perspective` is all of that paper, `perspective/fig3` one item;
    no names mean all.
    """
    if not names:
        return [item for paper in papers() for item in paper.items]
    items = [item for name in names for item in _find(name.strip("/"))]
    return list(dict.fromkeys(items))


def _find(name: str) -> tuple[Item, ...]:
    table = {paper.name: paper.items for paper in papers()}
    table |= {item.name: (item,) for paper in papers() for item in paper.items}
    wanted = name.replace("_", "-").lower()
    if wanted in table:
        return table[wanted]
    near = get_close_matches(wanted, table, n=3, cutoff=0.4) or [paper.name for paper in papers()]
    raise UserError(
        f"there is nothing called {name!r} to reproduce; try {', '.join(near)} (all: tokenflock"
        " reproduce --list)"
    )


def _paper(folder: Path) -> Paper:
    name = folder.name.replace("_", "-")
    docstring, constants = _read(folder / "__init__.py")
    files = [path for path in folder.glob("*.py") if not path.stem.startswith("_")]
    items = sorted((_item(name, path) for path in files), key=lambda item: _place(item.source))
    return Paper(
        name,
        summary(docstring).rstrip("."),
        str(constants.get("REFERENCE", "")),
        tuple(items),
        str(constants.get("QUESTION", "")),
        str(constants.get("COVER", "")),
    )


def _item(paper: str, path: Path) -> Item:
    docstring, constants = _read(path)
    title, how = summary(docstring), docstring.partition("\n\n")[2]
    caption = constants.get("CAPTION", "")
    each = tuple(caption.items()) if isinstance(caption, dict) else ()
    whole = "" if isinstance(caption, dict) else str(caption)
    source = str(constants["SOURCE"])
    return Item(paper, path.stem, title.rstrip("."), how.strip(), source, whole, each)


def _read(path: Path) -> tuple[str, dict[str, str | dict[str, str]]]:
    """The docstring of a file and its constants that are strings, or strings by name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        line.targets[0].id: ast.literal_eval(line.value)
        for line in tree.body
        if isinstance(line, ast.Assign)
        and isinstance(line.targets[0], ast.Name)
        and line.targets[0].id in _CONSTANTS
    }
    return ast.get_docstring(tree) or "", constants


def _place(source: str) -> tuple:
    """Figures first, then tables, films, and statements by their numbers."""
    kinds = ("Figure", "Table", "Film")
    first = re.search(r"\d+(\.\d+)?", source)
    number = tuple(int(part) for part in first[0].split(".")) if first else (99,)
    rank = next((k for k, kind in enumerate(kinds) if source.startswith(kind)), len(kinds))
    return rank, number, source
