"""A picture that moves: drawn once, then only what moves is drawn again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tokenflock.plots.styles import Theme

INCHES = 4.5  # the shorter side of a film, so that letters keep their share of the picture


class Scene(ABC):
    """What stands still and what moves in a film, and how it comes to each picture."""

    caption: str = "tokens"
    "what it shows, in plain words"
    moving: Sequence[Artist]
    "what is drawn again for each picture, in this order"

    def __init__(
        self, theme: Theme, size: tuple[int, int], frames: np.ndarray, spin: float
    ) -> None:
        self.theme, self.size, self.frames, self.spin = theme, size, frames, spin
        self.wide = size[0] > 1.25 * size[1]
        dpi = min(size) / INCHES
        self.figure = Figure(figsize=(size[0] / dpi, size[1] / dpi), dpi=dpi)
        self.canvas = FigureCanvasAgg(self.figure)

    @abstractmethod
    def show(self, number: int) -> None:
        """Bring all that moves to one picture."""

    def turn(self, number: int) -> float:
        """By how many degrees the camera has turned."""
        return self.spin * number / max(1, len(self.frames) - 1)

    def settle(self, moving: Sequence[Artist]) -> None:
        """Draw all that stands still, once."""
        self.moving = moving
        for artist in moving:
            artist.set_animated(True)
        self.canvas.draw()
        self.empty = self.canvas.copy_from_bbox(self.figure.bbox)

    def backdrop(self) -> np.ndarray:
        """All that stands still, (height, width, 4) bytes."""
        self.canvas.restore_region(self.empty)
        return np.array(self.canvas.buffer_rgba())

    def picture(self, number: int) -> np.ndarray:
        """One picture, (height, width, 4) bytes."""
        self.canvas.restore_region(self.empty)
        self.show(number)
        for artist in self.moving:
            self.figure.draw_artist(artist)
        return np.array(self.canvas.buffer_rgba())

    def changes(self) -> np.ndarray:
        """Whether each picture differs from the one before it."""
        if self.spin != 0:
            return np.ones(len(self.frames), bool)
        return np.diff(self.frames, prepend=-1) != 0

    def pictures(self, progress: Callable[[float], None]) -> Iterator[np.ndarray]:
        """The pictures of a film; one that would be the same as the one before is not drawn
        again.
        """
        picture = np.empty(0)
        for number, new in enumerate(self.changes()):
            picture = self.picture(number) if new else picture
            yield picture
            progress((number + 1) / len(self.frames))
