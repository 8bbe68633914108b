"""The words around the picture of a film: what it shows above, when it is beside that, and what
colours and trails mean below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from tokenflock.plots._story import Story
from tokenflock.plots.styles import Theme

_TITLE, _NOTE, _LEAST = 11.0, 8.5, 6.5  # points: of the title, of a note, and of the smallest


def headline(figure: Figure, canvas: FigureCanvasAgg, title: str, panel: float | None) -> Text:
    """Write the title, and return the clock, which has no text yet.

    Both stand at the top, where no player covers them: the clock above the panels that begin at a
    share of the width, or below the title where there are none beside the tokens.
    """
    words = figure.text(0.025, 0.965, title, ha="left", va="top", fontsize=_TITLE)
    _fit(words, canvas, 0.955 if panel is None else panel - 0.045)
    place = (0.025, 0.925) if panel is None else (panel, 0.965)
    return figure.text(*place, "", ha="left", va="top", fontsize=_TITLE)


def footnotes(
    figure: Figure, canvas: FigureCanvasAgg, theme: Theme, notes: Sequence[str], panel: float | None
) -> None:
    """What colours and trails mean, a line each, in the lower left corner."""
    lines = [note for note in notes if note]
    for number, line in enumerate(reversed(lines)):
        words = figure.text(
            0.025, 0.022 + 0.037 * number, line, va="bottom", fontsize=_NOTE, color=theme.soft
        )
        _fit(words, canvas, 0.955 if panel is None else panel - 0.045)


def trail_note(run: Story, begins: str, tail: int) -> str:
    """What a trail is: 'trails: the last 1.5 of time', or so many frames where they are uneven."""
    if tail == 0 or run.frames < 2:
        return ""
    steps = np.diff(run.times.astype(float))
    span = tail * steps[0]
    if not np.allclose(steps, steps[0], rtol=1e-3, atol=1e-9):
        return f"{begins} {tail} pictures"
    if run.of_model:
        return f"{begins} {span:.2g} layers"
    if "layer" in run.result.coords:
        layers = tail * int(np.diff(run.result["layer"].values[:2])[0])
        return f"{begins} {layers} layers"
    return f"{begins} {span:.3g} units of time"


def _fit(words: Text, canvas: FigureCanvasAgg, share: float) -> None:
    """Make a line small enough for a share of the width of the picture."""
    width = words.get_window_extent(canvas.get_renderer()).width
    room = share * canvas.get_width_height()[0]
    if width > room:
        words.set_fontsize(max(_LEAST, float(words.get_fontsize()) * room / width))
