"""Numbers and matrices as they are typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tokenflock.errors import UserError

MOST = 10_000_000  # numbers that a range first:last:count may hold
_NEGATIVE = re.compile(r"-(\.?\d|inf|nan|diag:)", re.IGNORECASE)


def joined(tokens: Sequence[str]) -> list[str]:
    """Raw tokens, a negative value tied to its option: `--beta -1,0` is `--beta=-1,0`.

    >>> joined(["--beta", "-1,0", "--n", "4"])
    ['--beta=-1,0', '--n', '4']
    """
    tied: list[str] = []
    for token in tokens:
        option = tied[-1] if tied else ""
        if _NEGATIVE.match(token) and option.startswith("--") and "=" not in option:
            tied[-1] = f"{option}={token}"
        else:
            tied.append(token)
    return tied


def whole(text: str, name: str) -> int:
    """A whole number, also as 1e6; never rounded.

    >>> whole("1e3", "--n"), whole("-2", "--n")
    (1000, -2)
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
        if value != int(value):
            raise ValueError
        return int(value)
    except (ValueError, OverflowError):
        raise UserError(f"{name} must be a whole number, got {text!r}") from None


def number(text: str, name: str) -> float:
    """One number.

    >>> number("0.5", "--h"), number("-inf", "--h")
    (0.5, -inf)
    """
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{name} must be a number, got {text!r}; write e.g. {name} 0.5") from None


def wholes(text: str, name: str) -> list[int]:
    """A list or range of whole numbers.

    >>> wholes("0,6,12", "--layers")
    [0, 6, 12]
    """
    values = numbers(text, name)
    if not (np.isfinite(values).all() and (values == np.round(values)).all()):
        raise UserError(f"{name} must be whole numbers like 0,10,100, got {text!r}")
    return [int(value) for value in values]


def numbers(text: str, name: str = "value") -> np.ndarray:
    """`4`, `1,2,3` or `0.1:9:45` (45 values from 0.1 to 9); never NaN.

    >>> numbers("1,2,3").tolist(), numbers("0:1:5").tolist()
    ([1.0, 2.0, 3.0], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    try:
        if ":" in text:
            first, last, count = text.split(":")
            if int(count) < 1 or not np.isfinite([float(first), float(last)]).all():
                raise ValueError
            if int(count) > MOST:
                raise UserError(f"{name} must hold at most {MOST:,} numbers, got {int(count):,}")
            return np.linspace(float(first), float(last), int(count))
        values = np.array([float(part) for part in text.split(",")])
        if np.isnan(values).any():
            raise ValueError
        return values
    except UserError:
        raise
    except ValueError:
        raise UserError(
            f"{name} must be numbers like 4, 1,2,3 or 0.1:9:45 (first:last:count), got {text!r}"
        ) from None


def array(text: str, name: str) -> np.ndarray | float:
    """A matrix: `1,0;0,1`, `diag:1,-1`, a single number (a multiple of the identity), or a .npy,
    .csv or .txt file.
    """
    if text.startswith("diag:"):
        return np.diag(numbers(text.removeprefix("diag:"), name))
    if Path(text).suffix in (".npy", ".csv", ".txt"):
        return _file(Path(text), name)
    try:
        rows = [numbers(row, name) for row in text.split(";")]
    except UserError:
        raise UserError(
            f"{name} must be a matrix like '1,0;0,-1', diag:1,-1, or a .npy file, got {text!r}"
        ) from None
    if len({len(row) for row in rows}) != 1:
        raise UserError(f"{name} must have rows of one length, got {text!r}; write e.g. '1,0;0,1'")
    if len(rows) == 1:
        return float(rows[0][0]) if len(rows[0]) == 1 else rows[0]
    return np.stack(rows)


def _file(path: Path, name: str) -> np.ndarray:
    if not path.is_file():
        raise UserError(
            f"{name}: the file {path} does not exist; write a matrix like '1,0;0,1' or the path of"
            " a .npy file"
        )
    if path.stat().st_size == 0:
        raise UserError(f"{name}: {path} is empty; it must hold an array of numbers")
    try:
        if path.suffix == ".npy":  # mapped first: a header that promises too much is then an error
            values = np.array(np.load(path, mmap_mode="r", allow_pickle=False))
        else:
            values = np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None, ndmin=2)
    except (ValueError, OSError, EOFError, SyntaxError, OverflowError) as error:
        found = re.match(
            r"could not convert string (.*) to \w+ at row (\d+), column (\d+)", str(error)
        )
        reason = f"row {int(found[2]) + 1}, column {found[3]} holds {found[1]}" if found else error
        raise UserError(f"{name}: {path} is not an array of numbers ({reason})") from None
    if values.dtype.kind not in "fiub" or values.size == 0:
        raise UserError(
            f"{name}: {path} must hold numbers, got an array of {values.dtype}, shape"
            f" {values.shape}"
        )
    return values


def counted(count: int, noun: str) -> str:
    """A number of things in words.

    >>> counted(1, "prompt"), counted(3, "prompt")
    ('1 prompt', '3 prompts')
    """
    return f"{count} {noun}" + ("" if count == 1 else "s")
