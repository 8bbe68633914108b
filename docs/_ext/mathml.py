"""Formulas as MathML, made when the pages are: nothing is fetched, and no script runs.

latex2mathml reads the LaTeX. What it writes is mended where browsers, which read MathML Core, would
show something else than was meant.
"""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

logger = logging.getLogger(__name__)
SPACE = "http://www.w3.org/1998/Math/MathML"
FENCES = "⟨⟩⌊⌋⌈⌉"
RELATIONS = {"~": "∼", ":": ":", "⟂": "⟂"}
TIGHT = ("|", "‖", "/")  # of a norm or a quotient; browsers set them as relations
LIMITS = ("max", "min", "lim", "sup", "inf", "argmin", "argmax")
WORDS = {  # what latex2mathml does not know, in words that it knows
    r"\\(mathbb|mathcal|mathbf) ([A-Za-z])": r"\\\1{\2}",  # else it is a plain letter
    r"\\arg(?![a-z])": r"\\operatorname{arg}",
    r"\\(begin|end)\{aligned\}": r"\\\1{align*}",
    r"\\!": "",
    r"\\[bB]igg?\|": r"\\|",
    r"\\mathsf\{([A-Z])\}": lambda found: chr(0x1D5A0 + ord(found[1]) - ord("A")),
    r"\\mathsf\{([a-z])\}": lambda found: chr(0x1D5BA + ord(found[1]) - ord("a")),
    r"\\mathrm\{([A-Za-z])\}": r"\\text{\1}",
    r"\\(?:mathrm|mathsf)\{([A-Za-z]{2,})\}": r"\\operatorname{\1}",
}


def mathml(latex: str, display: str = "inline") -> str:
    """LaTeX as MathML; what is not understood is an error, never a stray word on a page.

    >>> mathml("x^2").startswith("<math")
    True
    """
    words = latex.strip()
    for old, new in WORDS.items():
        words = re.sub(old, new, words)
    text = convert(words, display=display).replace("<mi>&</mi>", r"<mi>\&amp;</mi>")
    root = ElementTree.fromstring(text)
    for node in root.iter():
        node.tag = node.tag.removeprefix(f"{{{SPACE}}}")
    for node in list(root.iter()):
        _mend(node, display)
        _space(node)
    root.set("display", display)
    root.set("aria-label", " ".join(latex.split()))
    return ElementTree.tostring(root, encoding="unicode")


def _mend(node: ElementTree.Element, display: str) -> None:
    text = node.text or ""
    if re.fullmatch(r"\\.*", text):
        raise ValueError(f"{text} is not known")
    if node.tag == "mi" and text and text in FENCES:
        node.tag, node.attrib["stretchy"] = "mo", "false"
    elif node.tag == "mi" and text in RELATIONS:
        node.tag, node.text = "mo", RELATIONS[text]
    elif node.tag == "mo" and text in TIGHT:
        node.attrib |= {"lspace": "0em", "rspace": "0em"}
    elif node.tag == "mo" and len(text) > 1 and text.isalpha() and text not in LIMITS:
        node.attrib |= {"lspace": "0.1em", "rspace": "0.1em"}
    elif display == "block" and node.tag == "msub" and (node[0].text or "") in LIMITS:
        node.tag = "munder"
    if node.get("columnalign"):
        node.set("style", f"text-align: {node.get('columnalign')}")


def _space(row: ElementTree.Element) -> None:
    """A thin space between the name of a function and what it is taken of: log n, cosh^2 beta."""
    for at in reversed(range(len(row) - 1)):
        name, after = row[at], row[at + 1]
        if name.tag in ("msub", "msup"):
            name = name[0]
        word = name.text or ""
        function = name.tag == "mi" and len(word) > 1 and word.isascii()
        if row.tag == "mrow" and function and after.tag not in ("mo", "mspace"):
            row.insert(at + 1, ElementTree.Element("mspace", {"width": "0.17em"}))


def _shown(self, node, display: str) -> str:
    try:
        return mathml(node.astext(), display)
    except Exception as error:  # latex2mathml raises many kinds
        logger.warning("no formula: %r (%r)", node.astext(), error, location=node)
        return f"<code>{escape(node.astext())}</code>"


def inline(self, node) -> None:
    """A formula in a line."""
    self.body.append(_shown(self, node, "inline"))
    raise nodes.SkipNode


def block(self, node) -> None:
    """A formula on a line of its own, which scrolls where the page is narrow."""
    self.body.append(f'<div class="math">{_shown(self, node, "block")}</div>')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
