"""A formula in the linear notation of plain text, read into atoms: letters, numbers, signs,
brackets and roots, each with what stands below and above it.

Nothing is refused: what is not understood is a sign that stands as it was typed.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

_GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "psi": "ψ",
    "Gamma": "Γ",
    "sqrt": "√",
}
_COMMANDS = _GREEK | {
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "ne": "≠",
    "neq": "≠",
    "approx": "≈",
    "to": "→",
    "infty": "∞",
    "cdot": "·",
    "times": "×",
    "pm": "±",
    "langle": "⟨",
    "rangle": "⟩",
    "sum": "Σ",
    "int": "∫",
    "partial": "∂",
    "nabla": "∇",
    "ell": "ℓ",
    "top": "ᵀ",
    "left": "",
    "right": "",
}
_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "->": "→", "-": "−", "...": "…", "'": "′", "*": "∗"}
_FUNCTIONS = {"ln", "tr"}  # and all words of three letters or more
UP = dict(zip("0123456789+−=()nitT", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵗᵀ"))
DOWN = dict(zip("0123456789+−=()aeijkmnst", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₘₙₛₜ"))
_RAISED = {above: plain for plain, above in UP.items()}
_LOWERED = {below: plain for plain, below in DOWN.items()}
_CLOSES = {"(": ")", "[": "]", "{": "}", "⟨": "⟩", "‖": "‖"}
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+\-−]?\d+)?|[½⅓¼¾])"
    rf"|(?P<raised>[{re.escape(''.join(_RAISED))}]+)"
    rf"|(?P<lowered>[{re.escape(''.join(_LOWERED))}]+)"
    r"|(?P<accented>[^\W\d_][\u0300-\u036f])"
    r"|(?P<letters>[A-Za-z]+)"
    r"|(?P<letter>[^\W\d_])"
    r"|(?P<sign><=|>=|!=|->|\.\.\.|.)",
    re.DOTALL,
)
_COMMAND = re.compile(r"\\([A-Za-z]+|[,;!] ?)")
_DEEPEST = 40  # brackets within brackets


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


@dataclass(frozen=True)
class Atom:
    """A number, a letter, a word, a sign or a space, with what stands below and above it."""

    kind: str  # number, name, word, accented, sign, space, group, root
    text: str = ""
    inside: tuple[Atom, ...] = ()
    below: tuple[Atom, ...] = ()
    above: tuple[Atom, ...] = ()
    close: str = ""
    grouped: tuple[bool, bool] = (False, False)  # whether below and above were in brackets


@lru_cache(maxsize=4096)
def read(formula: str) -> tuple[Atom, ...]:
    """The atoms of a formula, from left to right."""
    formula = _COMMAND.sub(lambda found: _COMMANDS.get(found[1], found[1]), formula)
    letters = (unicodedata.normalize("NFD", sign) if sign.isalpha() else sign for sign in formula)
    found = _TOKEN.finditer("".join(letters))
    tokens = [_Token(str(match.lastgroup), match[0]) for match in found]
    return _Parser(tokens).row("", 0)


class _Parser:
    """Tokens to atoms, from left to right."""

    def __init__(self, tokens: list[_Token]):
        self.tokens, self.at = tokens, 0

    def row(self, close: str, depth: int) -> tuple[Atom, ...]:
        """Atoms up to a closing bracket, which is taken too, or to the end."""
        atoms: list[Atom] = []
        while self.at < len(self.tokens) and not (close and self._next(close)):
            atoms.extend(self._atom(depth))
        self.at += 1
        return tuple(atoms)

    def _next(self, text: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].text == text

    def _atom(self, depth: int) -> list[Atom]:
        """One atom with its scripts; a run of letters that is no word is several."""
        *before, atom = self._base(depth)
        while self.at < len(self.tokens) and atom.kind != "space":
            token = self.tokens[self.at]
            if token.kind in ("raised", "lowered"):
                self.at += 1
                table = _RAISED if token.kind == "raised" else _LOWERED
                script, bracketed = _small(table, token.text), len(token.text) > 1
            elif token.text in ("^", "_") and self.at + 1 < len(self.tokens):
                self.at += 1
                script, bracketed = self._script(depth, token.text == "_")
            elif token.text == "*" and atom.kind == "name" and not atom.above:
                self.at += 1
                script, bracketed = (Atom("sign", "∗"),), False
            else:
                break
            down = token.kind == "lowered" or token.text == "_"
            atom = _with(atom, script, bracketed, down)
        return [*before, atom]

    def _base(self, depth: int) -> list[Atom]:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind in ("raised", "lowered"):
            table = _RAISED if token.kind == "raised" else _LOWERED
            return list(_small(table, token.text))
        if token.kind == "letters" and _GREEK.get(token.text) != "√":
            return _letters(token.text)
        if token.kind != "sign" and token.text != "sqrt":
            return [Atom({"letter": "name"}.get(token.kind, token.kind), token.text)]
        return [self._bracket(_GREEK.get(token.text, token.text), depth)]

    def _bracket(self, text: str, depth: int) -> Atom:
        """A sign, or what it opens."""
        if depth < _DEEPEST and self._closes(text):
            return Atom("group", text, self.row(_CLOSES[text], depth + 1), close=_CLOSES[text])
        if text == "√" and depth < _DEEPEST and self.at < len(self.tokens):
            if self.tokens[self.at].kind in ("space", "raised", "lowered"):  # a root of nothing
                return Atom("sign", text)
            self._first_letter()
            (inside,) = self._base(depth + 1)
            rows = inside.inside if inside.kind == "group" else (inside,)
            return Atom("root", inside.kind, rows)
        return Atom("sign", _SIGNS.get(text, text))

    def _closes(self, text: str) -> bool:
        """Whether a bracket that has just been read is closed later on."""
        close, level = _CLOSES.get(text), 1
        for token in self.tokens[self.at :] if close else ():
            level += -1 if token.text == close else token.text == text
            if level == 0:
                return True
        return False

    def _first_letter(self) -> None:
        """Letters side by side are taken one by one: e^tx is e^t x."""
        token = self.tokens[self.at]
        if token.kind == "letters" and len(_letters(token.text)) > 1:
            each = [_Token("letters", letter) for letter in token.text]
            self.tokens[self.at : self.at + 1] = each

    def _script(self, depth: int, down: bool) -> tuple[tuple[Atom, ...], bool]:
        """What stands below or above: a bracket, a signed number, a letter, or a word below."""
        sign: list[Atom] = []
        if self.tokens[self.at].text in ("-", "−", "+") and self.at + 1 < len(self.tokens):
            sign = self._base(depth)
        token = self.tokens[self.at]
        if token.text in ("(", "{") and depth < _DEEPEST:
            *_, group = self._base(depth + 1)
            if group.kind == "group":
                return (*sign, *group.inside), True
            return (*sign, group), False
        if not down:
            self._first_letter()
        return (*sign, *self._base(depth)), bool(sign)


def _with(atom: Atom, script: tuple[Atom, ...], bracketed: bool, down: bool) -> Atom:
    below, above = (script, ()) if down else ((), script)
    grouped = (
        atom.grouped[0] or (down and bracketed),
        atom.grouped[1] or (not down and bracketed),
    )
    return Atom(
        atom.kind,
        atom.text,
        atom.inside,
        (*atom.below, *below),
        (*atom.above, *above),
        atom.close,
        grouped,
    )


def _letters(text: str) -> list[Atom]:
    """A word, or letters that stand side by side.

    >>> [atom.text for atom in _letters("Dz") + _letters("cos") + _letters("beta")]
    ['D', 'z', 'cos', 'β']
    """
    if text in _GREEK:
        return [Atom("name", _GREEK[text])]
    if text in _FUNCTIONS or len(text) > 2:
        return [Atom("word", text)]
    return [Atom("name", letter) for letter in text]


def _small(table: dict[str, str], text: str) -> tuple[Atom, ...]:
    """Small letters and digits as large ones."""
    return read("".join(table[letter] for letter in text))


def power_of_ten(text: str) -> tuple[str, str]:
    """Digits of a number, and the power of ten that they are to be multiplied with.

    >>> power_of_ten("1.5e-09"), power_of_ten("3.16e+03"), power_of_ten("1e-9")
    (('1.5', '−9'), ('3160', ''), ('', '−9'))
    """
    if "e" not in text:
        return text, ""
    digits, _, exponent = text.replace("−", "-").partition("e")
    power = int(exponent)
    if abs(power) > 400:
        return text.replace("-", "−"), ""
    if -4 < power < 6 and not (float(digits) == 1 and power < 0):
        return f"{Decimal(digits).scaleb(power):f}", ""
    return "" if float(digits) == 1 else digits, str(power).replace("-", "−")
