"""A formula as MathML, which browsers set without any script."""

from __future__ import annotations

import unicodedata
from html import escape

from tokenflock.reproduction.formula_lines import flat
from tokenflock.reproduction.formulas import Atom, power_of_ten, read

_RELATIONS = set("=<>≤≥≠≈∼~∝→←≼≽⪯⪰≪≫∈↦")
_BINARY = set("+−·×±")
_CLOSE = ' lspace="0"'  # what begins a piece has a space before it already
_WHOLE = 22  # characters of a formula that stays in one line
_LONGEST = 18  # characters of a piece that a line need not be able to break


def elements(formula: str) -> str:
    """One `<math>`, or several where it is long: a line may break between them, before a relation
    or after a comma.
    """
    whole = read(formula)
    short = len(_words(whole)) <= _WHOLE
    pieces = [piece for piece in ([whole] if short else _pieces(whole)) if _words(piece)]
    return " ".join(f"<math>{_row(piece)}</math>" for piece in pieces)


def _words(piece: tuple[Atom, ...]) -> str:
    return "".join(flat(atom) for atom in piece).strip()


def _pieces(atoms: tuple[Atom, ...]) -> list[tuple[Atom, ...]]:
    """Where a line may break: before relations, after commas, in long pieces before + and −."""
    pieces: list[list[Atom]] = [[]]
    for atom in atoms:
        here = "".join(flat(part) for part in pieces[-1]).strip()
        relation = atom.kind == "sign" and atom.text in _RELATIONS
        long = atom.kind == "sign" and atom.text in _BINARY and len(here) >= _LONGEST
        before = (relation or long) and here and here[-1] not in _RELATIONS
        whole = here.count("[") + here.count("(") == here.count("]") + here.count(")")
        if whole and (before or here.endswith((",", ";"))):
            pieces.append([])
        pieces[-1].append(atom)
    return [tuple(piece) for piece in pieces]


def _row(atoms: tuple[Atom, ...]) -> str:
    """Atoms side by side; a thin space around words, and between numbers."""
    parts: list[str] = []
    before: Atom | None = None
    spaced = False
    for atom in atoms:
        if atom.kind == "space":
            spaced = True
            continue
        if before is not None and spaced and _apart(before, atom):
            parts.append('<mspace width="0.17em"></mspace>')
        parts.append(_element(atom, before is None or _ends(before), before is None))
        before, spaced = atom, False
    return "".join(parts)


def _apart(before: Atom, atom: Atom) -> bool:
    if before.kind == "sign" and before.text == ":":
        return True
    signs = "sign" in (before.kind, atom.kind)
    wordy = "word" in (before.kind, atom.kind) or (before.kind, atom.kind) == ("number", "number")
    return wordy and (not signs or atom.text in ("|", "√"))


def _ends(atom: Atom) -> bool:
    """Whether a sign after this one stands before its number: −1."""
    return atom.kind == "sign" and (atom.text in _RELATIONS | _BINARY or atom.text in ",;:/")


def _element(atom: Atom, first: bool, begins: bool) -> str:
    below, above = _grouped(atom.below), _grouped(atom.above)
    base = _bare(atom, first, begins)
    if below and above:
        return f"<msubsup>{base}{below}{above}</msubsup>"
    if below or above:
        tag = "msub" if below else "msup"
        return f"<{tag}>{base}{below or above}</{tag}>"
    return base


def _grouped(atoms: tuple[Atom, ...]) -> str:
    row = _row(atoms)
    return row if len(atoms) < 2 else f"<mrow>{row}</mrow>"


def _bare(atom: Atom, first: bool, begins: bool) -> str:
    if atom.kind == "number":
        digits, exponent = power_of_ten(atom.text)
        power = f"<msup><mn>10</mn><mn>{exponent}</mn></msup>" if exponent else ""
        times = "<mo>·</mo>" if digits and power else ""
        whole = (f"<mn>{digits}</mn>" if digits else "") + times + power
        return f"<mrow>{whole}</mrow>" if times else whole
    if atom.kind == "name":
        return f"<mi>{atom.text}</mi>"
    if atom.kind == "accented":
        letter, accent = atom.text
        mark = {"\u0307": "˙", "\u0304": "¯", "\u0302": "^", "\u0303": "~"}.get(accent)
        if mark is None:
            return f"<mi>{unicodedata.normalize('NFC', atom.text)}</mi>"
        return f'<mover accent="true"><mi>{letter}</mi><mo stretchy="false">{mark}</mo></mover>'
    if atom.kind == "word":
        return f'<mi class="word">{atom.text}</mi>'
    if atom.kind == "group":
        inside = _row(atom.inside)
        return f"<mrow>{_fence(atom.text)}{inside}{_fence(atom.close)}</mrow>"
    if atom.kind == "root":
        return f"<msqrt>{_row(atom.inside)}</msqrt>"
    return _operator(atom.text, first, begins)


def _fence(text: str) -> str:
    return f'<mo stretchy="false">{text}</mo>'


def _operator(text: str, first: bool, begins: bool) -> str:
    """A sign; − and + before their number stand close to it, relations never do."""
    if text in "()[]{}⟨⟩":
        return _fence(text)
    if text in "|‖":
        return f'<mo stretchy="false" lspace="0" rspace="0">{text}</mo>'
    if text in _RELATIONS:
        return f'<mo form="infix"{_CLOSE if begins else ""}>{escape(text)}</mo>'
    if text in _BINARY:
        return f'<mo form="{"prefix" if first else "infix"}">{text}</mo>'
    if text in "/′∗…°%!.#ℓ∂∞":
        return f'<mo lspace="0" rspace="0">{text}</mo>'
    return f"<mo>{escape(text)}</mo>"
