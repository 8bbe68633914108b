"""What moves in a picture as a few bytes, from which a browser draws it again.

Little-endian. A record is one byte that says its kind, then: shapes (polylines, filled or not),
discs, a text, or an image. Places are whole numbers of `1 / scale` pixels from the upper left
corner, and along a line steps from the point before. Numbers of one meaning lie side by side, so
that what repeats from picture to picture packs well.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex, to_rgba, to_rgba_array
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

NOTHING, SHAPES, DISCS, TEXT, IMAGE = range(5)
_PARTS = 8  # of a pixel, in which places are counted
_FINE = 16  # parts of a pixel in which radii and widths are counted
_UNSEEN = 0.02  # an opacity that is as good as none
_QUALITY = 85  # of the image of a landscape
_SIGNS = {r"\rho": "ρ", r"\beta": "β", r"\theta": "θ"}


class Recorder:
    """Turns artists of a figure of so many pixels into records."""

    def __init__(self, size: tuple[int, int], dpi: float) -> None:
        self.height, self.point = size[1], dpi / 72  # pixels of a point
        self.scale = min(_PARTS, 32_000 // max(size))

    def record(self, artist: Artist) -> bytes:
        """An artist as it is now."""
        if not artist.get_visible():
            return bytes([NOTHING])
        if isinstance(artist, LineCollection):
            return self._lines(artist)
        if isinstance(artist, PathCollection):
            return self._scatter(artist)
        if isinstance(artist, Line2D):
            return self._line(artist)
        if isinstance(artist, Patch):
            return self._patch(artist)
        if isinstance(artist, Text):
            return self._text(artist)
        if isinstance(artist, AxesImage):
            return self._image(artist)
        raise TypeError(f"a film has no way to record {type(artist).__name__}")

    def _places(self, pixels: np.ndarray) -> bytes:
        """Points (m, 2), counted upwards as matplotlib does, as whole numbers."""
        flipped = np.asarray(pixels, float) * [1, -1] + [0, self.height]
        return np.clip(np.round(flipped * self.scale), -32768, 32767).astype("<i2").tobytes()

    def _steps(self, lines: Sequence[np.ndarray]) -> bytes:
        """The first point of every line, then all other points as steps from the one before."""
        lengths = np.array([len(line) for line in lines])
        places = np.frombuffer(self._places(np.concatenate(lines)), "<i2").reshape(-1, 2)
        first = np.zeros(len(places), bool)
        first[np.cumsum(lengths) - lengths] = True
        steps = np.diff(places, axis=0, prepend=places[:1])  # wraps, and wraps back when summed
        return places[first].tobytes() + steps[~first].tobytes()

    def _widths(self, points: np.ndarray) -> bytes:
        return _fine(np.asarray(points, float) * self.point)

    def _shapes(
        self,
        lines: Sequence[np.ndarray],
        strokes: np.ndarray,
        widths: np.ndarray,
        fill: np.ndarray | None = None,
        dashed: bool = False,
    ) -> bytes:
        head = struct.pack("<BBBH", SHAPES, fill is not None, dashed, len(lines))
        lengths = np.array([len(line) for line in lines], "<u2").tobytes()
        points = self._steps(lines)
        fills = b"" if fill is None else _bytes(fill)
        return head + lengths + points + _bytes(strokes) + self._widths(widths) + fills

    def _lines(self, artist: LineCollection) -> bytes:
        paths = [np.asarray(path.vertices, float) for path in artist.get_paths()]
        if not paths:
            return bytes([NOTHING])
        pixels = artist.get_transform().transform(np.concatenate(paths))
        lines = np.split(pixels, np.cumsum([len(path) for path in paths])[:-1])
        strokes = np.resize(artist.get_colors(), (len(lines), 4))
        widths = np.resize(artist.get_linewidth(), len(lines))
        whole = bool(np.isfinite(pixels).all())
        pieces = [
            (piece, number)
            for number, line in enumerate(lines)
            if strokes[number, 3] > _UNSEEN
            for piece in ([line] if whole else _finite(line))
        ]
        if not pieces:
            return bytes([NOTHING])
        numbers = [number for _, number in pieces]
        return self._shapes([piece for piece, _ in pieces], strokes[numbers], widths[numbers])

    def _line(self, artist: Line2D) -> bytes:
        pixels = artist.get_transform().transform(np.asarray(artist.get_xydata(), float))
        if artist.get_marker() in (None, "None", "", " "):
            if len(pixels) < 2:
                return bytes([NOTHING])
            stroke = to_rgba_array([artist.get_color()])
            return self._shapes([pixels], stroke, np.array([artist.get_linewidth()]))
        size, count = artist.get_markersize() / 2, len(pixels)
        fill = np.tile(to_rgba(artist.get_markerfacecolor()), (count, 1))
        edge = np.tile(to_rgba(artist.get_markeredgecolor()), (count, 1))
        return self._discs(pixels, np.full(count, size), fill, edge, artist.get_markeredgewidth())

    def _scatter(self, artist: PathCollection) -> bytes:
        offsets = np.ma.filled(artist.get_offsets(), np.nan)
        pixels, count = artist.get_offset_transform().transform(offsets), len(offsets)
        radii = np.sqrt(np.resize(artist.get_sizes(), count)) / 2
        fill, edge = (
            np.resize(colour, (count, 4)) if len(colour) else np.zeros((count, 4))
            for colour in (artist.get_facecolor(), artist.get_edgecolor())
        )
        return self._discs(pixels, radii, fill, edge, float(np.max(artist.get_linewidth())))

    def _discs(
        self, pixels: np.ndarray, radii: np.ndarray, fill: np.ndarray, edge: np.ndarray, rim: float
    ) -> bytes:
        if len(pixels) == 0:
            return bytes([NOTHING])
        head = struct.pack("<BH", DISCS, len(pixels)) + self._widths(np.array([rim]))
        return head + self._places(pixels) + self._widths(radii) + _bytes(fill) + _bytes(edge)

    def _patch(self, artist: Patch) -> bytes:
        outline = artist.get_transform().transform_path(artist.get_path())
        drawn = map(np.asarray, outline.to_polygons(closed_only=False))
        lines = [line for line in drawn if len(line) > 1]
        if not lines:
            return bytes([NOTHING])
        stroke = np.tile(artist.get_edgecolor(), (len(lines), 1))
        fill = np.tile(artist.get_facecolor(), (len(lines), 1)) if artist.get_fill() else None
        dashed = artist.get_linestyle() not in ("solid", "-")
        return self._shapes(
            lines, stroke, np.full(len(lines), artist.get_linewidth()), fill, dashed
        )

    def _text(self, artist: Text) -> bytes:
        if not artist.get_text():
            return bytes([NOTHING])
        across, up = artist.get_transform().transform(artist.get_position())
        words = {
            "at": [round(float(across), 1), round(float(self.height - up), 1)],
            "lines": [_runs(line) for line in artist.get_text().split("\n")],
            "size": round(float(artist.get_fontsize()) * self.point, 1),
            "bold": artist.get_fontweight() == "bold",
            "colour": to_hex(artist.get_color()),
            "align": artist.get_horizontalalignment(),
            "baseline": artist.get_verticalalignment(),
        }
        text = json.dumps(words, ensure_ascii=False, separators=(",", ":")).encode()
        return struct.pack("<BH", TEXT, len(text)) + text

    def _image(self, artist: AxesImage) -> bytes:
        from PIL import Image

        left, right, bottom, top = artist.get_extent()
        corners = artist.axes.transData.transform([(left, top), (right, bottom)])
        values = np.asarray(artist.get_array())
        values = values if values.dtype == np.uint8 else np.round(255 * values).astype(np.uint8)
        stream = io.BytesIO()
        # matplotlib's origin is below
        Image.fromarray(values[::-1, :, :3]).save(stream, "JPEG", quality=_QUALITY)
        data = stream.getvalue()
        round_one = artist.get_clip_path() is not None
        return struct.pack("<BBI", IMAGE, round_one, len(data)) + self._places(corners) + data


def _bytes(rgba: np.ndarray) -> bytes:
    """Colours (m, 4), each part in [0, 1], as bytes; opacity in steps that pack well."""
    parts = np.round(255 * np.clip(rgba, 0, 1))
    parts[:, 3] = np.minimum(255, np.round(parts[:, 3] / 8) * 8)
    return parts.astype(np.uint8).tobytes()


def _fine(pixels: np.ndarray) -> bytes:
    return np.clip(np.round(pixels * _FINE), 0, 65535).astype("<u2").tobytes()


def _finite(line: np.ndarray) -> list[np.ndarray]:
    """The pieces of a line between its gaps."""
    good = np.isfinite(line).all(axis=1)
    if good.all():
        return [line]
    cuts = np.flatnonzero(np.diff(good)) + 1
    pieces = zip(np.split(line, cuts), np.split(good, cuts))
    return [piece for piece, seen in pieces if seen[0] and len(piece) > 1]


def _runs(line: str) -> list[list[str | int]]:
    r"""A line of a text as parts, each with whether it is italic.

    >>> _runs(r"$t$ = 3, \$")
    [['t', 1], [' = 3, $', 0]]
    """
    parts = re.split(r"(?<!\\)\$", line)
    runs: list[list[str | int]] = []
    for number, part in enumerate(parts):
        for sign, letter in _SIGNS.items() if number % 2 else ():
            part = part.replace(sign, letter)
        if part:
            runs.append([part.replace(r"\$", "$"), number % 2])
    return runs
