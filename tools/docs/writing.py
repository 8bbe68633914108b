"""A page of the site, in MyST, from cells and what they showed."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from cells import Cell
from running import Ran

OPEN = "```{raw} html\n<details class='answer'><summary>Answer</summary>\n```\n"
CLOSE = "```{raw} html\n</details>\n```\n"
FILMS = (".mp4",)


@dataclass(frozen=True)
class Place:
    """Where a page lies on the site: its folder under the source, and how far up the root is."""

    source: Path
    page: str

    @property
    def folder(self) -> Path:
        """The folder of the page."""
        return (self.source / self.page).parent

    @property
    def up(self) -> str:
        """The way to the root of the site."""
        return "../" * self.page.count("/")


def text_of(cells: list[Cell], ran: Ran, place: Place) -> str:
    """The page: text, code, and under the code what it showed. Answers are folded."""
    shown = iter(ran.cells)
    outputs = [next(shown) if cell.runs else None for cell in cells]
    parts = []
    for folded, members in groupby(zip(cells, outputs), key=lambda pair: pair[0].folded):
        body = "\n".join(_cell(cell, output, ran, place) for cell, output in members)
        parts.append(f"{OPEN}\n{body}\n{CLOSE}" if folded else body)
    return "\n".join(parts)


def _cell(cell: Cell, output: dict[str, Any] | None, ran: Ran, place: Place) -> str:
    if cell.kind == "markdown":
        return cell.text + "\n"
    code = f"```python\n{cell.text}\n```\n"
    return code if output is None else code + _output(cell, output, ran, place)


def _output(cell: Cell, output: dict[str, Any], ran: Ran, place: Place) -> str:
    parts = []
    told = (output["printed"] + output["value"]).rstrip()
    if told:
        parts.append(f"```{{code-block}} text\n:class: output\n\n{told}\n```\n")
    for name in output["pictures"]:
        parts.append(picture(copied(ran.folder / name, place), cell.caption))
    for name in output["live"]:
        parts.append(live(ran.folder / name, cell.caption, place))
    return "\n" + "\n".join(parts)


def copied(path: Path, place: Place) -> str:
    """A file beside the page; its address from there."""
    home = place.folder / "pictures"
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, home / path.name)
    return f"pictures/{path.name}"


def picture(address: str, caption: str) -> str:
    """A picture or a film with its caption."""
    if address.endswith(FILMS):
        video = f"<video src='{escape(address)}' autoplay loop muted playsinline controls></video>"
        return f"```{{raw}} html\n{video}\n```\n\n{_caption(caption)}"
    alt = plain(caption) or "what the code above draws"
    return f"```{{figure}} {address}\n:alt: {alt}\n\n{caption}\n```\n"


def live(path: Path, caption: str, place: Place) -> str:
    """A live figure: a page of its own in a frame, fetched when the reader comes near."""
    home = place.source / "_static" / "live"
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, home / path.name)
    title = escape(plain(caption) or "live figure", quote=True)
    frame = (
        f'<iframe class="live" loading="lazy" src="{place.up}_static/live/{path.name}"'
        f' title="{title}" sandbox="allow-scripts allow-downloads"></iframe>'
    )
    return f"```{{raw}} html\n{frame}\n```\n\n{_caption(caption)}"


def _caption(caption: str) -> str:
    return f"```{{container}} caption\n{caption}\n```\n" if caption else ""


def plain(caption: str) -> str:
    """A caption without marks, on one line."""
    return " ".join(caption.replace("$", "").replace("`", "").replace("\\", "").split())


def notebook(cells: list[Cell]) -> str:
    """The same cells as a Jupyter notebook, without outputs."""
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"language_info": {"name": "python"}},
            "cells": [_notebook_cell(cell, k) for k, cell in enumerate(cells)],
        },
        indent=1,
    )


def _notebook_cell(cell: Cell, number: int) -> dict[str, Any]:
    told = {"cell_type": cell.kind, "id": f"cell-{number}", "metadata": {"tags": list(cell.tags)}}
    told["source"] = cell.text
    return told if cell.kind == "markdown" else told | {"outputs": [], "execution_count": None}
