"""Formulas become MathML when pages are built; what is not understood is an error."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("latex2mathml", reason="needs pip install 'tokenflock[docs]'")
pytest.importorskip("sphinx", reason="needs pip install 'tokenflock[docs]'")
PROJECT = Path(__file__).parents[2]
sys.path.append(str(PROJECT / "docs" / "_ext"))

from mathml import mathml  # noqa: E402

TEXTS = [*sorted((PROJECT / "docs").rglob("*.md")), *sorted((PROJECT / "examples").rglob("*.py"))]
FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|(?<![\\$])\$(?P<inline>[^$\n]+?)\$", re.DOTALL)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def prose(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        lines = [line for line in text.splitlines() if line.startswith("#")]
        text = "\n".join(re.sub(r"^# ?", "", line) for line in lines)
    return CODE.sub("", text)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_every_formula_can_be_set(path):
    for found in FORMULA.finditer(prose(path)):
        mathml(found["block"] or found["inline"], "block" if found["block"] else "inline")


def test_what_is_not_known_is_refused():
    with pytest.raises(ValueError, match="nonsense"):
        mathml(r"x + \nonsense y")


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\mathsf{E}", "𝖤"),
        (r"\mathrm{d}x", "<mtext>d</mtext>"),
        (r"\langle x\rangle", '<mo stretchy="false">⟨</mo>'),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "<mtr>"),
        (r"\arg\min_x f", "<munder>"),
        (r"\log n", '<mi>log</mi><mspace width="0.17em" /><mi>n</mi>'),
        (r"\mathbb E x", "𝔼"),
        (r"m|x|", '<mo stretchy="false" lspace="0em" rspace="0em">|</mo>'),
    ],
)
def test_what_latex2mathml_gets_wrong_is_mended(latex, shown):
    assert shown in mathml(latex, "block")
