"""Scripts and pages as cells: what is read, what is run, in which order.

A script is in jupytext's percent format: `# %% [markdown]` opens text, `# %% caption` code. A page
of Markdown that says `run: true` in its front matter is the same thing the other way round: text,
and ```python blocks.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

MARKER = re.compile(r"^# %%(?P<rest>.*)$")
TAGS = re.compile(r"tags=(?P<tags>\[[^\]]*\])")
FENCE = re.compile(r"^```python(?P<words>[^\n]*)\n(?P<code>.*?)^```\n?", re.DOTALL | re.MULTILINE)
FRONT = re.compile(r"\A---\n(?P<front>.*?)\n---\n", re.DOTALL)
CAPTION = re.compile(r"\A# caption: (?P<caption>.*)\n")


@dataclass(frozen=True)
class Cell:
    """Text in Markdown, or code with the caption of what it shows."""

    kind: Literal["markdown", "code"]
    text: str
    caption: str = ""
    tags: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether it is code that is to be run."""
        return self.kind == "code" and "norun" not in self.tags

    @property
    def folded(self) -> bool:
        """Whether a reader opens it first: an answer."""
        return "answer" in self.tags


class FormatError(ValueError):
    """A script or a page that is not written as it should be."""


def of_script(text: str, name: str = "the script") -> list[Cell]:
    """The cells of a script.

    >>> [cell.kind for cell in of_script("# %% [markdown]\\n# # Title\\n\\n# %% See.\\n1 + 1\\n")]
    ['markdown', 'code']
    """
    cells: list[Cell] = []
    head: str | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), "# %%"]:
        opened = MARKER.match(line)
        if opened is None:
            lines.append(line)
            continue
        if head is not None:
            cells.append(_cell(head, lines, name))
        elif any(each.strip() for each in lines):
            raise FormatError(f"{name}: begins with {lines[0]!r}; begin with '# %% [markdown]'")
        head, lines = opened["rest"].strip(), []
    if not cells or cells[0].kind != "markdown" or not cells[0].text.startswith("# "):
        raise FormatError(f"{name}: the first cell must be '# %% [markdown]' with a '# # Title'")
    return cells


def _cell(head: str, lines: list[str], name: str) -> Cell:
    found = TAGS.search(head)
    tags = tuple(json.loads(found["tags"])) if found else ()
    head = TAGS.sub("", head).strip()
    if not head.startswith("[markdown]"):
        return Cell("code", "\n".join(lines).strip(), head, tags)
    for line in lines:
        if line.strip() and line != "#" and not line.startswith("# "):
            raise FormatError(f"{name}: a line of text must start with '# ', got {line!r}")
    return Cell("markdown", "\n".join(line[2:] for line in lines).strip(), "", tags)


def of_page(text: str) -> list[Cell]:
    """The cells of a page: its text, and its ```python blocks.

    >>> [cell.kind for cell in of_page("Text.\\n\\n```python\\n1 + 1\\n```\\n\\nMore.\\n")]
    ['markdown', 'code', 'markdown']
    """
    cells, end = [], 0
    body = text[len(_front(text)) :]
    for block in FENCE.finditer(body):
        cells.append(Cell("markdown", body[end : block.start()].strip()))
        code, said = block["code"], CAPTION.match(block["code"])
        code = code[said.end() :] if said else code
        tags = tuple(block["words"].split())
        cells.append(Cell("code", code.strip(), said["caption"] if said else "", tags))
        end = block.end()
    cells.append(Cell("markdown", body[end:].strip()))
    return [cell for cell in cells if cell.text]


def _front(text: str) -> str:
    found = FRONT.match(text)
    return found[0] if found else ""


def asks_to_run(text: str) -> bool:
    """Whether the front matter of a page says `run: true`."""
    return "run: true" in _front(text).splitlines()


def title(cells: list[Cell]) -> str:
    """The title of a script, without its mark."""
    return cells[0].text.splitlines()[0].removeprefix("# ").strip()


def summary(cells: list[Cell]) -> str:
    """The first paragraph under the title."""
    paragraphs = [part for part in cells[0].text.split("\n\n")[1:] if part.strip()]
    return " ".join(paragraphs[0].split()) if paragraphs else ""
