"""Links of the repository as links of the site.

A link is written so that it leads somewhere in the repository. Here it is followed there, and
written as the link between two pages. What the site does not hold becomes plain text; what is
nowhere is an error.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from pathlib import Path

from home import PROJECT

LINK = re.compile(r"(?P<bang>!?)\[(?P<text>[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*)\]\((?P<to>[^)\s]+)\)")
VERBATIM = re.compile(  # fenced code, formulas, code in a line
    r"^```.*?^```|\$\$.+?\$\$|(?<!\\)\$[^$\n]+\$|`[^`\n]+`(?!\])", re.DOTALL | re.MULTILINE
)
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}


class BrokenLink(ValueError):
    """A link that leads nowhere."""


def example_page(path: str) -> str:
    """`examples/lessons/plot_03_sphere.py` as the site calls it: lessons/03-sphere.md.

    >>> example_page("examples/lessons/plot_03_sphere.py")
    'lessons/03-sphere.md'
    """
    folder, name = posixpath.split(path.removeprefix("examples/"))
    return f"{folder}/{name.removeprefix('plot_').removesuffix('.py').replace('_', '-')}.md"


def site_path(target: str) -> str | None:
    """Where the site has a file of the repository; None where it has not."""
    if target in PAGES:
        return PAGES[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if re.fullmatch(r"examples/\w+/plot_\w+\.py", target):
        return example_page(target)
    if target.rstrip("/") in ("examples", "examples/lessons"):
        return "lessons/index.md"
    if target.rstrip("/") == "examples/problems":
        return "problems/index.md"
    return None


def relinked(text: str, source: str, page: str, made: frozenset[str] = frozenset()) -> str:
    """The text of `source` (a path of the repository) as it stands on `page` of the site.

    `made` are pages that exist only on the site.
    """

    def change(link: re.Match[str]) -> str:
        to, _, part = link["to"].partition("#")
        if not to or re.match(r"[a-z]+:", to):
            return link[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), to))
        home = site_path(target)
        there = (PROJECT / target).exists() or home in made
        if not there and link["bang"]:
            print(f"{source}: the picture {link['to']} is not there yet", file=sys.stderr)
            return f"*({link['text']})*"
        if not there:
            raise BrokenLink(f"{source}: [{link['text']}]({link['to']}) leads to no file")
        if home is None:
            return link["text"] if "`" in link["text"] else f"`{link['text']}`"
        way = posixpath.relpath(home, posixpath.dirname(page) or ".")
        return f"{link['bang']}[{link['text']}]({way}{'#' + part if part else ''})"

    return _outside_code(text, lambda prose: LINK.sub(change, prose))


def _outside_code(text: str, change) -> str:
    """Change prose; code and formulas stay."""
    parts, end = [], 0
    for block in VERBATIM.finditer(text):
        parts += [change(text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(text[end:])])


def within(path: Path) -> str:
    """A file as a path of the repository."""
    return os.path.relpath(path, PROJECT).replace(os.sep, "/")
