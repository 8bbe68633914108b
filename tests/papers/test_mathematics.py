"""Formulas in the texts of claims: set as they are meant, on the page, on the terminal, in JSON."""

from __future__ import annotations

import ast
import re
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenflock import papers
from tokenflock.reproduction import item
from tokenflock.reproduction.claim import Claim, at_most
from tokenflock.reproduction.formulas import power_of_ten, read
from tokenflock.reproduction.mathematics import mathml, plain, unicode

PIECES = [*"xβn1e^_(){}[]⟨⟩|√²₁⁻-−+=<,*&\"'ẋ≠ ", "2.5", "cos", "max", "1e-9"]


def tree(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<p>{mathml(text)}</p>")


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("$1e-09$", "10⁻⁹"),
        ("$4.2e+26$", "4.2·10²⁶"),
        ("$3.16e+03$", "3160"),
        ("$10^14.7$", "10^14.7"),
        ("$10^14$.7", "10¹⁴.7"),
        ("$-0.5 - 1$", "−0.5 − 1"),
        ("$x_i$, $x_12$, $t_crit$, $λ_max$", "xᵢ, x₁₂, t_crit, λ_max"),
        ("$I_(d/2+1)(β)$", "I_(d/2+1)(β)"),
        ("$e^{−2t}$", "e⁻²ᵗ"),
        ("$e^{2β}$", "e^(2β)"),
        ("$e^tx$", "eᵗx"),
        ("$e^(−β)$", "e^−β"),
        ("$e^(β cos τ)$", "e^(β cos τ)"),
        ("$τ*_β <= π/2$", "τ_β* ≤ π/2"),
        ("$a != b$", "a ≠ b"),
        ("$√(1 + 4β²)$", "√(1 + 4β²)"),
        ("$ẋ = 10,000 u̇$", "ẋ = 10,000 u̇"),
        ("the integral `C1`, 5 $$", "the integral C1, 5 $"),
        (r"$\beta \le \sqrt{n}$", "β ≤ √(n)"),
        ("a lone $ stays, and `", "a lone $ stays, and `"),
    ],
)
def test_a_line_of_a_terminal(typed, line):
    assert unicode(typed) == line


MINUS = '<mo form="prefix">−</mo>'  # before a number, not between two


@pytest.mark.parametrize(
    ("typed", "elements"),
    [
        ("$10^14.7$", "<msup><mn>10</mn><mn>14.7</mn></msup>"),
        ("$1e-09$", "<msup><mn>10</mn><mn>−9</mn></msup>"),
        ("$x_i^2$", "<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>"),
        ("$x_i²$", "<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>"),
        ("$√n$", "<msqrt><mi>n</mi></msqrt>"),
        ("$√(n)$", "<msqrt><mi>n</mi></msqrt>"),
        ("$-t$", '<mo form="prefix">−</mo><mi>t</mi>'),
        ("$β = −1$", f'<mi>β</mi><mo form="infix">=</mo>{MINUS}<mn>1</mn>'),
        ("$2 · −1$", f'<mn>2</mn><mo form="infix">·</mo>{MINUS}<mn>1</mn>'),
        ("$a, −1$", f"<mi>a</mi><mo>,</mo>{MINUS}<mn>1</mn>"),
        ("$x − 1$", '<mi>x</mi><mo form="infix">−</mo><mn>1</mn>'),
        ("$λ_max$", '<msub><mi>λ</mi><mi class="word">max</mi></msub>'),
        ("$Dz$", "<mi>D</mi><mi>z</mi>"),
    ],
)
def test_what_stands_above_below_and_under_a_root(typed, elements):
    assert mathml(typed) == f"<math>{elements}</math>"


def test_a_group_that_is_only_typed_is_not_shown():
    shown = ElementTree.tostring(tree("$e^(−2t)$"), encoding="unicode", method="text")
    assert shown == "e−2t"


def test_a_line_may_break_before_a_relation_and_after_a_comma_of_what_is_long():
    long = "a + b + c + d + e + f + g"
    assert mathml(f"$h = {long}$").count("</math> <math>") == 2  # and before a late sum
    assert mathml(f"${long}, h$").endswith("</math> <math><mi>h</mi></math>")
    assert mathml("$β = 5.912396$").count("<math>") == 1
    assert mathml(f"$[{long}, 1)$").count("<math>") == 1
    assert mathml(f"$f(h = {long})$").count("<math>") == 1


def test_plain_text_is_what_was_typed():
    assert plain("at $β_* >= 1e-9$ the `C1`") == "at β_* >= 1e-9 the C1"


def letters(text: str) -> list[str]:
    """The letters of a text but e, which is also that of 1e-9."""
    even = unicodedata.normalize("NFKD", text)
    return sorted(letter for letter in even if letter.isalpha() and letter != "e")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=25).map("".join))
def test_whatever_is_typed_is_set_and_no_letter_is_lost(formula):
    typed = f"see ${formula}$ <b>"
    shown = ElementTree.tostring(tree(typed), encoding="unicode", method="text")
    assert "<b>" not in mathml(typed)
    assert letters(shown) == letters(unicode(typed)) == letters(typed)


@pytest.mark.parametrize("sign", "([{√^_⟨")
def test_a_thousand_brackets_are_no_trouble(sign):
    assert "<math>" in mathml(f"${sign * 900}x$")
    assert "<math>" not in mathml(f"${sign * 9000}x$")
    assert unicode(f"${'(' * 300}{')' * 300}$").count("(") == 300


def typed(node: ast.expr) -> str | None:
    """A text as its file has it; a number stands for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        words = (v.value if isinstance(v, ast.Constant) else "7" for v in node.values)
        return "".join(map(str, words))
    return None


def marked(node: ast.AST) -> list[ast.expr]:
    """The texts of a claim, or the setting of an item."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Claim":
        named = [word.value for word in node.keywords if word.arg in ("note", "erratum")]
        return [*node.args[1:3], *named]
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "setting":
        return [node.value]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values)
        return [
            value for key, value in pairs if key is not None and ast.unparse(key) == "'setting'"
        ]
    return []


def texts():
    """The texts of all claims and items as their files have them."""
    for path in sorted(Path(papers.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield from ((path.name, text) for part in marked(node) if (text := typed(part)))
    for paper in item.papers():
        yield paper.name, paper.question
        for one in paper.items:
            captions = (text for _, text in one.captions)
            yield from ((one.name, text) for text in (one.title, one.source, one.how, one.caption))
            yield from ((one.name, text) for text in captions)


def test_no_formula_stands_outside_its_marks():
    """Greek letters, relations, powers and indices are mathematics, and set as such."""
    told = list(texts())
    assert len(told) > 900
    names = "alpha|beta|gamma|delta|kappa|lambda|rho|sigma|tau|theta|sqrt"
    for name, text in told:
        rest = re.sub(r"\$[^$]+\$|`[^`]+`", "", text)
        assert "$" not in rest and "`" not in rest, (name, text)
        assert re.search(r"[α-ωΓ=≤≥√^_∫²⁻₁]|\de[-−+]\d", rest) is None, (name, text)
        assert re.search(rf"(?<![\w-])(?:{names})(?![\w-])", rest) is None, (name, text)


def test_claims_are_plain_in_json_and_marked_where_they_are_remembered():
    claim = Claim("name", "at $β = 1e-9$", "(1)", 1.0, at_most(2), note="$x_1$ of `C1`")
    assert claim.as_json()["statement"] == "at β = 1e-9"
    assert claim.as_json()["note"] == "x_1 of C1"
    assert claim.as_json(marked=True)["statement"] == claim.statement


def test_scripts_in_brackets_may_lie_twenty_deep_and_what_is_deeper_stays_a_character():
    """Each counts twice, for itself and for its bracket: no formula exhausts the stack."""

    def depth(atoms):
        return max((1 + depth(atom.above) for atom in atoms if atom.above), default=0)

    nested = [depth(read("x" + "^(x" * k + ")" * k)) for k in (1, 5, 20, 21, 60)]
    assert nested == [1, 5, 20, 21, 21]


def test_one_times_ten_to_the_zero_is_one():
    assert power_of_ten("1e+00") == ("1", "") and power_of_ten("1e+01") == ("10", "")


def test_raised_characters_are_in_brackets_where_they_are_several():
    (several,), (single,) = read("x⁻¹"), read("x²")
    assert several.grouped == (False, True) and single.grouped == (False, False)
