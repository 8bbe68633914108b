"""Pages of the scripts in `examples/`: the lessons in their order, the open problems."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from cells import Cell, of_script, summary, title
from links import example_page, relinked
from PIL import Image
from running import Ran
from writing import Place, notebook, text_of

THUMBNAIL = (640, 360)


@dataclass(frozen=True)
class Example:
    """One script: its path in the repository, its page, its cells."""

    path: Path
    source: str  # examples/lessons/plot_03_sphere.py
    cells: list[Cell]

    @property
    def page(self) -> str:
        """Where the site has it: lessons/03-sphere.md."""
        return example_page(self.source)

    @property
    def name(self) -> str:
        """A word for its files: lessons-03-sphere."""
        return self.page.removesuffix(".md").replace("/", "-")

    @property
    def code(self) -> list[str]:
        """What is run."""
        return [cell.text for cell in self.cells if cell.runs]


def found(examples: Path, only: str = "") -> list[Example]:
    """The scripts of a folder `examples/`, in their order."""
    made = []
    for path in sorted(examples.glob("*/plot_*.py")):
        source = f"examples/{path.parent.name}/{path.name}"
        if re.search(only, source):
            made.append(Example(path, source, of_script(path.read_text(encoding="utf-8"), source)))
    return made


def write(example: Example, ran: Ran, source: Path, made: frozenset[str] | None) -> None:
    """The page of one script, with the script and its notebook to take along."""
    place = Place(source, example.page)
    place.folder.mkdir(parents=True, exist_ok=True)
    if made is None:
        text = text_of(example.cells, ran, place)
    else:
        cells = [_relinked(cell, example, made) for cell in example.cells]
        text = text_of(cells, ran, place)
    shutil.copy(example.path, place.folder / example.path.name)
    book = example.path.with_suffix(".ipynb").name
    (place.folder / book).write_text(notebook(example.cells), encoding="utf-8")
    (source / example.page).write_text(text + _footer(example, book, ran), encoding="utf-8")


def _relinked(cell: Cell, example: Example, made: frozenset[str]) -> Cell:
    if cell.kind == "code":
        return cell
    return Cell("markdown", relinked(cell.text, example.source, example.page, made), "", cell.tags)


def _footer(example: Example, book: str, ran: Ran) -> str:
    return (
        "\n\n---\n\n"
        f"Take it along: {{download}}`{example.path.name}`, or as a notebook {{download}}`{book}`."
        f" It computed for {ran.seconds:.0f} s when this page was built.\n"
    )


def index(examples: list[Example], runs: dict[str, Ran], source: Path, head: str) -> str:
    """Cards of the scripts, and the table of contents that orders them."""
    cards = "\n".join(_card(example, runs[example.name], source) for example in examples)
    pages = "\n".join(example.page.partition("/")[2].removesuffix(".md") for example in examples)
    if not examples:
        return f"{head}\n\nThere are none yet.\n"
    return (
        f"{head}\n\n````{{container}} cards\n{cards}\n````\n\n"
        f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{pages}\n```\n"
    )


def _card(example: Example, ran: Ran, source: Path) -> str:
    page = example.page.partition("/")[2]
    pictures = [name for cell in ran.cells for name in cell["pictures"] if name.endswith(".png")]
    shown = ""
    if pictures:
        place = Place(source, example.page)
        path = place.folder / "pictures" / f"{example.name}-card.png"
        _thumbnail(ran.folder / pictures[0], path)
        address = f"pictures/{path.name}"
        shown = f"[![]({address})]({page})\n\n"
    words = f"[{title(example.cells)}]({page})\n\n{unlinked(summary(example.cells))}"
    return f"```{{container}} card\n{shown}:::{{container}} words\n{words}\n:::\n```\n"


def unlinked(text: str) -> str:
    """Links as their words."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def _thumbnail(picture: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(picture) as image:
        small = image.convert("RGB")
        small.thumbnail((THUMBNAIL[0], 2 * THUMBNAIL[1]))
        small.save(to, optimize=True)
