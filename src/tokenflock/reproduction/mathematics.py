"""Mathematics in the texts of claims, notes, captions and errata: written once, set three ways.

What stands between dollars is a formula in the linear notation of plain text: `$β_* ≥ e^(−2t)/√n$`.
`mathml` sets it for a page, `unicode` for a terminal, `plain` leaves it as it was typed.

    letters     x β Γ are italic; cos, log, diag and words of three letters or more upright
    below       x_i  λ_max  I_(d/2+1)  or  I_{d/2+1}; parentheses that only group are not shown
    above       e^β  10^14.7  e^(−2t); also as they are: n⁻² x₁ ẋ τ*
    roots       √n  √(1 + 4β²)
    numbers     1e-09 is set as a power of ten, 3.2e+03 as 3200
    commands    those of TeX that stand for one sign: \\beta \\le \\langle \\cdot
    signs       <= >= != -> - and ... are set as ≤ ≥ ≠ → − …

Outside, `names of code` stand between backticks, and two dollars are a dollar.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from html import escape

GREEK = {
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
}
_GREEK = GREEK | {"sqrt": "√"}
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
_RELATIONS = set("=<>≤≥≠≈∼~∝→←≼≽⪯⪰≪≫∈↦")
_BINARY = set("+−·×±")
_UP = dict(zip("0123456789+−=()nitT", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵗᵀ"))
_DOWN = dict(zip("0123456789+−=()aeijkmnst", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₘₙₛₜ"))
_RAISED = {above: plain for plain, above in _UP.items()}
_LOWERED = {below: plain for plain, below in _DOWN.items()}
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
_PIECE = re.compile(r"\$\$|\$([^$]+)\$|`([^`]+)`")
_DEEPEST = 40  # brackets within brackets
_CLOSE = ' lspace="0"'  # what begins a piece has a space before it already
_MOST = 1000  # characters of a formula; what is longer is none
_WHOLE = 22  # characters of a formula that stays in one line
_LONGEST = 18  # characters of a piece that a line need not be able to break


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


@dataclass(frozen=True)
class _Atom:
    """A number, a letter, a word, a sign or a space, with what stands below and above it."""

    kind: str  # number, name, word, accented, sign, space, group, root
    text: str = ""
    inside: tuple[_Atom, ...] = ()
    below: tuple[_Atom, ...] = ()
    above: tuple[_Atom, ...] = ()
    close: str = ""
    grouped: tuple[bool, bool] = (False, False)  # whether below and above were in brackets


def mathml(text: str) -> str:
    """For a page: everything escaped, formulas as MathML, which browsers set without any script.

    >>> mathml("at $β_1$ < 4")
    'at <math><msub><mi>β</mi><mn>1</mn></msub></math> &lt; 4'
    """
    return _rendered(text, escape, _page, lambda code: f"<code>{escape(code)}</code>")


def unicode(text: str) -> str:
    """For a terminal: one line of Unicode.

    >>> unicode("$e^(-2t)$ is 1e-9, that is $1e-9$, at $x_1$; $10^14.7$ is no power of `ten`")
    'e⁻²ᵗ is 1e-9, that is 10⁻⁹, at x₁; 10^14.7 is no power of ten'
    """
    return _rendered(text, str, _line, str)


def plain(text: str) -> str:
    """As it was typed, without the marks.

    >>> plain("$e^(-2t)$ costs 3 $$")
    'e^(-2t) costs 3 $'
    """
    return _rendered(text, str, str, str)


def _rendered(
    text: str,
    words: Callable[[str], str],
    formula: Callable[[str], str],
    code: Callable[[str], str],
) -> str:
    parts, at = [], 0
    for piece in _PIECE.finditer(text):
        parts.append(words(text[at : piece.start()]))
        if piece[1] is not None:
            parts.append((formula if len(piece[1]) < _MOST else words)(piece[1]))
        else:
            parts.append("$" if piece[2] is None else code(piece[2]))
        at = piece.end()
    return "".join(parts) + words(text[at:])


@lru_cache(maxsize=4096)
def _parsed(formula: str) -> tuple[_Atom, ...]:
    formula = _COMMAND.sub(lambda found: _COMMANDS.get(found[1], found[1]), formula)
    letters = (unicodedata.normalize("NFD", sign) if sign.isalpha() else sign for sign in formula)
    found = _TOKEN.finditer("".join(letters))
    tokens = [_Token(str(one.lastgroup), one[0]) for one in found]
    return _Parser(tokens).row("", 0)


class _Parser:
    """Tokens to atoms, from left to right."""

    def __init__(self, tokens: list[_Token]):
        self.tokens, self.at = tokens, 0

    def row(self, close: str, depth: int) -> tuple[_Atom, ...]:
        """Atoms up to a closing bracket, which is taken too, or to the end."""
        atoms: list[_Atom] = []
        while self.at < len(self.tokens) and not (close and self._next(close)):
            atoms.extend(self._atom(depth))
        self.at += 1
        return tuple(atoms)

    def _next(self, text: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].text == text

    def _atom(self, depth: int) -> list[_Atom]:
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
                script, bracketed = (_Atom("sign", "∗"),), False
            else:
                break
            down = token.kind == "lowered" or token.text == "_"
            atom = _with(atom, script, bracketed, down)
        return [*before, atom]

    def _base(self, depth: int) -> list[_Atom]:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind in ("raised", "lowered"):
            table = _RAISED if token.kind == "raised" else _LOWERED
            return list(_small(table, token.text))
        if token.kind == "letters" and _GREEK.get(token.text) != "√":
            return _letters(token.text)
        if token.kind != "sign" and token.text != "sqrt":
            return [_Atom({"letter": "name"}.get(token.kind, token.kind), token.text)]
        return [self._bracket(_GREEK.get(token.text, token.text), depth)]

    def _bracket(self, text: str, depth: int) -> _Atom:
        """A sign, or what it opens."""
        if depth < _DEEPEST and self._closes(text):
            return _Atom("group", text, self.row(_CLOSES[text], depth + 1), close=_CLOSES[text])
        if text == "√" and depth < _DEEPEST and self.at < len(self.tokens):
            if self.tokens[self.at].kind == "space":
                return _Atom("sign", text)
            self._first_letter()
            (inside,) = self._base(depth + 1)
            rows = inside.inside if inside.kind == "group" else (inside,)
            return _Atom("root", inside.kind, rows)
        return _Atom("sign", _SIGNS.get(text, text))

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

    def _script(self, depth: int, down: bool) -> tuple[tuple[_Atom, ...], bool]:
        """What stands below or above: a bracket, a signed number, a letter, or a word below."""
        sign: list[_Atom] = []
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


def _with(atom: _Atom, script: tuple[_Atom, ...], bracketed: bool, down: bool) -> _Atom:
    below, above = (script, ()) if down else ((), script)
    grouped = (
        atom.grouped[0] or (down and bracketed),
        atom.grouped[1] or (not down and bracketed),
    )
    return _Atom(
        atom.kind,
        atom.text,
        atom.inside,
        (*atom.below, *below),
        (*atom.above, *above),
        atom.close,
        grouped,
    )


def _letters(text: str) -> list[_Atom]:
    """A word, or letters that stand side by side.

    >>> [atom.text for atom in _letters("Dz") + _letters("cos") + _letters("beta")]
    ['D', 'z', 'cos', 'β']
    """
    if text in _GREEK:
        return [_Atom("name", _GREEK[text])]
    if text in _FUNCTIONS or len(text) > 2:
        return [_Atom("word", text)]
    return [_Atom("name", letter) for letter in text]


def _small(table: dict[str, str], text: str) -> tuple[_Atom, ...]:
    """Small letters and digits as large ones."""
    return _parsed("".join(table[letter] for letter in text))


# --- a line of Unicode ---


def _line(formula: str) -> str:
    return "".join(_flat(atom) for atom in _parsed(formula))


def _flat(atom: _Atom) -> str:
    inside = "".join(_flat(part) for part in atom.inside)
    base = {
        "number": lambda: _power(atom.text),
        "accented": lambda: unicodedata.normalize("NFC", atom.text),
        "space": lambda: " ",
        "group": lambda: atom.text + inside + atom.close,
        "root": lambda: f"√({inside})" if atom.text == "group" else f"√{inside}",
    }.get(atom.kind, lambda: atom.text)()
    below = _scripted("_", atom.below, _DOWN, atom.grouped[0])
    return base + below + _scripted("^", atom.above, _UP, atom.grouped[1])


def _scripted(mark: str, atoms: tuple[_Atom, ...], table: dict[str, str], grouped: bool) -> str:
    """Small signs where there are such for all of it, else as it was typed."""
    text = "".join(_flat(atom) for atom in atoms)
    tight = text.replace(" ", "")
    if not text or text == "∗":
        return "*" if text and mark == "^" else "_*" if text else ""
    if all(letter in table for letter in tight):
        return "".join(table[letter] for letter in tight)
    signed = re.fullmatch(r"[+−]?[\w.]+", text) is not None and mark == "^"
    return f"{mark}({text})" if grouped and not signed else mark + text


def _power(text: str) -> str:
    """A number in a line.

    >>> _power("1.5e-9"), _power("1e-09"), _power("3.16e+03"), _power("0.25")
    ('1.5·10⁻⁹', '10⁻⁹', '3160', '0.25')
    """
    digits, exponent = _parts(text)
    small = "".join(_UP[letter] for letter in exponent)
    return digits + ("·" if digits and small else "") + ("10" + small if small else "")


def _parts(text: str) -> tuple[str, str]:
    """Digits, and the power of ten that they are to be multiplied with."""
    if "e" not in text:
        return text, ""
    digits, _, exponent = text.replace("−", "-").partition("e")
    power = int(exponent)
    if abs(power) > 400:
        return text.replace("-", "−"), ""
    if -4 < power < 6 and not (float(digits) == 1 and power < 0):
        return f"{Decimal(digits).scaleb(power):f}", ""
    return "" if float(digits) == 1 else digits, str(power).replace("-", "−")


# --- MathML ---


def _page(formula: str) -> str:
    """One `<math>`, or several where it is long: a line may break between them, before a relation
    or after a comma.
    """
    whole = _parsed(formula)
    short = len(_words(whole)) <= _WHOLE
    pieces = [piece for piece in ([whole] if short else _pieces(whole)) if _words(piece)]
    return " ".join(f"<math>{_row(piece)}</math>" for piece in pieces)


def _words(piece: tuple[_Atom, ...]) -> str:
    return "".join(_flat(atom) for atom in piece).strip()


def _pieces(atoms: tuple[_Atom, ...]) -> list[tuple[_Atom, ...]]:
    """Where a line may break: before relations, after commas, in long pieces before + and −."""
    pieces: list[list[_Atom]] = [[]]
    for atom in atoms:
        here = "".join(_flat(part) for part in pieces[-1]).strip()
        relation = atom.kind == "sign" and atom.text in _RELATIONS
        long = atom.kind == "sign" and atom.text in _BINARY and len(here) >= _LONGEST
        before = (relation or long) and here and here[-1] not in _RELATIONS
        whole = here.count("[") + here.count("(") == here.count("]") + here.count(")")
        if whole and (before or here.endswith((",", ";"))):
            pieces.append([])
        pieces[-1].append(atom)
    return [tuple(piece) for piece in pieces]


def _row(atoms: tuple[_Atom, ...]) -> str:
    """Atoms side by side; a thin space around words, and between numbers."""
    parts: list[str] = []
    before: _Atom | None = None
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


def _apart(before: _Atom, atom: _Atom) -> bool:
    if before.kind == "sign" and before.text == ":":
        return True
    signs = "sign" in (before.kind, atom.kind)
    wordy = "word" in (before.kind, atom.kind) or (before.kind, atom.kind) == ("number", "number")
    return wordy and (not signs or atom.text in ("|", "√"))


def _ends(atom: _Atom) -> bool:
    """Whether a sign after this one stands before its number: −1."""
    return atom.kind == "sign" and (atom.text in _RELATIONS | _BINARY or atom.text in ",;:/")


def _element(atom: _Atom, first: bool, begins: bool) -> str:
    below, above = _grouped(atom.below), _grouped(atom.above)
    base = _bare(atom, first, begins)
    if below and above:
        return f"<msubsup>{base}{below}{above}</msubsup>"
    if below or above:
        tag = "msub" if below else "msup"
        return f"<{tag}>{base}{below or above}</{tag}>"
    return base


def _grouped(atoms: tuple[_Atom, ...]) -> str:
    row = _row(atoms)
    return row if len(atoms) < 2 else f"<mrow>{row}</mrow>"


def _bare(atom: _Atom, first: bool, begins: bool) -> str:
    if atom.kind == "number":
        digits, exponent = _parts(atom.text)
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
