"""Figures on disk: written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from tokenflock.errors import UserError
from tokenflock.files import whole, writable
from tokenflock.plots.styles import root_of

# the same figure gives the same file
_UNDATED = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def save_figure(figure: FigureBase | Axes, path: str | os.PathLike[str], *, dpi: int = 220) -> Path:
    """Write a figure (or the figure of some axes) as .png, .pdf or .svg.

    The file appears only once it is complete.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _UNDATED:
        raise UserError(
            f"a figure is written as .png, .pdf or .svg, got {path.name!r}; write e.g."
            f" {path.with_suffix('.png')}"
        )
    writable(path)
    root = root_of(figure)
    with (
        whole(path) as part,
        matplotlib.rc_context({"pdf.fonttype": 42, "svg.hashsalt": "tokenflock"}),
    ):
        root.savefig(part, dpi=dpi, metadata=_UNDATED[suffix])
    return path
