"""Numbers and matrices as they are typed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tokenflock.errors import UserError


def numbers(text: str, name: str = "value") -> np.ndarray:
    """`4`, `1,2,3` or `0.1:9:45` (45 values from 0.1 to 9).

    >>> numbers("1,2,3").tolist(), numbers("0:1:5").tolist()
    ([1.0, 2.0, 3.0], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    try:
        if ":" in text:
            first, last, count = text.split(":")
            if int(count) < 1:
                raise ValueError
            return np.linspace(float(first), float(last), int(count))
        return np.array([float(part) for part in text.split(",")])
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
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None, ndmin=2)
    except ValueError as error:
        raise UserError(f"{name}: {path} is not an array of numbers ({error})") from None


def counted(count: int, thing: str) -> str:
    """A number of things in words.

    >>> counted(1, "prompt"), counted(3, "prompt")
    ('1 prompt', '3 prompts')
    """
    return f"{count} {thing}" + ("" if count == 1 else "s")
