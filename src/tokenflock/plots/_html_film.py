"""A film as one page: what stands still as a picture, what moves as numbers that the page draws."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from collections.abc import Callable
from html import escape
from pathlib import Path

import numpy as np

from tokenflock.plots._records import Recorder
from tokenflock.plots._scene import Scene

_PAGE = Path(__file__).with_name("film.html")
_COLOURS = 255  # of what stands still


def write_html(path: Path, scene: Scene, fps: float, progress: Callable[[float], None]) -> None:
    """Write one page that plays by itself: nothing is fetched, and no codec is needed."""
    recorder = Recorder(scene.size, scene.figure.dpi)
    stream, order = _recorded(scene, recorder, progress)
    width, height = scene.size
    head = {
        "width": width,
        "height": height,
        "fps": fps,
        "scale": recorder.scale,
        "artists": len(scene.moving),
        "order": order,
    }
    filled = {
        "TITLE": escape(scene.caption),
        "PAPER": scene.theme.paper,
        "INK": scene.theme.ink,
        "SOFT": scene.theme.soft,
        "FAINT": scene.theme.faint,
        "ACCENT": scene.theme.palette[0],
        "WIDTH": str(width),
        "HEIGHT": str(height),
        "HEAD": json.dumps(head, separators=(",", ":")),
        "BACKDROP": base64.b64encode(_png(scene.backdrop())).decode(),
        "RECORDS": base64.b64encode(zlib.compress(stream)).decode(),
    }
    page = _PAGE.read_text(encoding="utf-8")
    for name, text in filled.items():
        page = page.replace(f"%{name}%", text)
    path.write_text(page, encoding="utf-8")


def _recorded(
    scene: Scene, recorder: Recorder, progress: Callable[[float], None]
) -> tuple[bytes, list[int]]:
    """The records of all pictures that differ, and for each picture which of them it is.

    A record has its length before it; no length where it is the one of the picture before.
    """
    changes = scene.changes()
    last: list[bytes] = [b""] * len(scene.moving)
    stream = io.BytesIO()
    for number in np.flatnonzero(changes):
        scene.show(int(number))
        for place, artist in enumerate(scene.moving):
            record = recorder.record(artist)
            same = record == last[place]
            stream.write(struct.pack("<I", 0 if same else len(record)))
            stream.write(b"" if same else record)
            last[place] = record
        progress((int(number) + 1) / len(scene.frames))
    return stream.getvalue(), (np.cumsum(changes) - 1).tolist()


def _png(picture: np.ndarray) -> bytes:
    """A picture in few colours, which the ball and letters do not miss."""
    from PIL import Image

    stream = io.BytesIO()
    few = Image.fromarray(picture[..., :3]).quantize(_COLOURS, dither=Image.Dither.NONE)
    few.save(stream, "PNG")
    return stream.getvalue()
