"""What ran, in a few words: the law, what sets it apart from others of its kind, and where its
tokens live.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import numpy as np

from tokenflock.catalogue import slug
from tokenflock.dynamics.dynamics import Around, Dynamics

_GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "kappa", "lambda", "sigma", "tau"}
_SAID = {"burger": "Burger's flow"}  # where the name of the class is no name of the law
_WORDS = {("ascend", False): "downhill"}  # what a switch means, where it is not the default
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LEGIBLE = 4  # rows up to which the diagonal of a matrix is written out


def spoken(law: Dynamics) -> str:
    """A dynamics in words: 'Self-attention', 'Noisy self-attention'."""
    words = [slug(type(part).__name__) for part in law.layers_around]
    text = " ".join(_SAID.get(word, word) for word in words)
    return text[:1].upper() + text[1:]


def law_title(law: Dynamics) -> str:
    """A dynamics in words, with beta and with what else sets it apart: the numbers of what is
    around it, numbers and switches that are not the default, matrices that are short to write.
    """
    beta = law.inverse_temperature
    parts = [] if beta is None else [rf"$\beta$ = ${beta:.6g}$"]
    return ", ".join([spoken(law), *parts, *_marks(law)])


def space_title(d: int, free: bool) -> str:
    """The space of tokens of dimension d: a sphere, or R^d."""
    return rf"$\mathbb{{R}}^{{{d}}}$" if free else rf"$\mathbb{{S}}^{{{d - 1}}}$"


def matrix_title(D: np.ndarray, letter: str = "D") -> str:
    """A matrix in a few words: '$D$ = diag(1, 0.25, 1)', or its eigenvalues."""
    diagonal = np.diag(D)
    if not np.allclose(D, np.diag(diagonal)):
        values = np.linalg.eigvalsh(D)
        return f"${letter}$ of eigenvalues {', '.join(f'{value:.4g}' for value in values)}"
    if np.allclose(diagonal, 1):
        return f"${letter}$ = $I$"
    return f"${letter}$ = diag({', '.join(f'{value:.4g}' for value in diagonal)})"


def unmarked(title: str) -> str:
    """A title without the marks of formulas, for where letters are plain.

    >>> unmarked(space_title(3, free=False))
    'S²'
    """
    text = re.sub(r"\\mathbb\{(\w)\}", r"\1", title.replace(r"\$", "\0").replace("$", ""))
    text = re.sub(r"\^\{(\d+)\}", lambda found: found[1].translate(_RAISED), text)
    for name in _GREEK:
        text = text.replace(f"\\{name}", unicodedata.lookup(f"GREEK SMALL LETTER {_spelt(name)}"))
    return text.replace("\0", "$")


def _spelt(name: str) -> str:
    return "LAMDA" if name == "lambda" else name.upper()


def _marks(law: Dynamics) -> Iterator[str]:
    for part in law.layers_around:
        for field in dataclasses.fields(part):
            yield from _mark(field, getattr(part, field.name), isinstance(part, Around))


def _mark(field: dataclasses.Field, value: Any, always: bool) -> Iterator[str]:
    name = field.name
    if isinstance(value, np.ndarray):
        if value.ndim == 2 and value.shape[0] == value.shape[1] <= _LEGIBLE and name == "D":
            yield matrix_title(value)
    elif isinstance(value, bool):
        if value != field.default and (name, value) in _WORDS:
            yield _WORDS[name, value]
    elif isinstance(value, int | float) and name != "beta" and (always or value != field.default):
        letter = rf"$\{name}$" if name in _GREEK else f"${name}$" if len(name) == 1 else name
        yield f"{letter} = {value:.4g}"
