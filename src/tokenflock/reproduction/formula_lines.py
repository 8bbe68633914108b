"""A formula as one line of Unicode, for a terminal: what stands above and below in small signs,
where Unicode has them.
"""

from __future__ import annotations

import unicodedata

from tokenflock.reproduction.formulas import DOWN, UP, Atom, power_of_ten, read


def line(formula: str) -> str:
    """A formula in a line.

    >>> line("I_(d/2) <= e^(-2t)")
    'I_(d/2) ≤ e⁻²ᵗ'
    """
    return "".join(flat(atom) for atom in read(formula))


def flat(atom: Atom) -> str:
    """One atom with its scripts."""
    inside = "".join(flat(part) for part in atom.inside)
    base = {
        "number": lambda: _power(atom.text),
        "accented": lambda: unicodedata.normalize("NFC", atom.text),
        "space": lambda: " ",
        "group": lambda: atom.text + inside + atom.close,
        "root": lambda: f"√({inside})" if atom.text == "group" else f"√{inside}",
    }.get(atom.kind, lambda: atom.text)()
    below = _scripted("_", atom.below, DOWN, atom.grouped[0])
    return base + below + _scripted("^", atom.above, UP, atom.grouped[1])


def _scripted(mark: str, atoms: tuple[Atom, ...], table: dict[str, str], grouped: bool) -> str:
    """Small signs where there are such for all of it, else as it was typed."""
    text = "".join(flat(atom) for atom in atoms)
    tight = text.replace(" ", "")
    if not text or text == "∗":
        return "*" if text and mark == "^" else "_*" if text else ""
    if all(letter in table for letter in tight):
        return "".join(table[letter] for letter in tight)
    one = len(atoms) - (atoms[0].kind == "sign") == 1  # e^2β would be read as e^2 times β
    return mark + text if not grouped or (one and mark == "^") else f"{mark}({text})"


def _power(text: str) -> str:
    """A number in a line.

    >>> _power("1.5e-9"), _power("1e-09"), _power("3.16e+03"), _power("0.25")
    ('1.5·10⁻⁹', '10⁻⁹', '3160', '0.25')
    """
    digits, exponent = power_of_ten(text)
    small = "".join(UP[letter] for letter in exponent)
    return digits + ("·" if digits and small else "") + ("10" + small if small else "")
