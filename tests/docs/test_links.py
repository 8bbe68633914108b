"""Links between files of the repository lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
TEXTS = [
    *(PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((PROJECT / "docs").rglob("*.md")),
    *sorted((PROJECT / "examples").rglob("*.py")),
]
LINK = re.compile(r"(?:\]\(|\bsrc(?:set)?=\")(?P<to>[^)\s\"]+)")
CODE = re.compile(  # and formulas
    r"^```.*?^```|\$\$.+?\$\$|\$[^$\n]+\$|`[^`\n]*`", re.DOTALL | re.MULTILINE
)
MADE = ("verdicts/", "catalogue.md", "reference/")  # pages that are generated from the code


def leads_somewhere(path: Path, to: str) -> bool:
    target = (path.parent / to.partition("#")[0]).resolve()
    docs = PROJECT / "docs"
    made = docs in target.parents and str(target.relative_to(docs)).startswith(MADE)
    return made or target.exists()


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_links_lead_to_files(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":  # the text of a script is in its comments
        text = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    prose = CODE.sub("", text)
    for to in (found["to"] for found in LINK.finditer(prose)):
        if to.startswith(("http:", "https:", "#", "mailto:")):
            continue
        assert leads_somewhere(path, to), f"{path.name} links to {to}"
