"""Films of tokens."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import xarray as xr

from tokenflock.errors import UserError, require
from tokenflock.plots._stage import Stage
from tokenflock.plots._story import story
from tokenflock.plots.styles import ThemeName, style
from tokenflock.results import writable

ViewName = Literal["auto", "circle", "sphere"]
_SIZES = {".mp4": (1280, 720), ".gif": (640, 360)}


def film(
    result: xr.Dataset,
    path: str | os.PathLike[str],
    *,
    view: ViewName = "auto",
    fps: int = 30,
    seconds: float | None = None,
    size: tuple[int, int] | None = None,
    theme: ThemeName = "light",
    landscape: bool = False,
    tail: int = 15,
    azimuth: float | None = None,
    elevation: float | None = None,
    spin: float = 0.0,
    clusters_at: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """A film of tokens, beside it energy and number of clusters with a marker that moves. Returns the path.

    The suffix says the format: .mp4 (H.264, plays everywhere) or .gif. The file appears only once it is complete; a film that
    is interrupted leaves none. Pictures are frames of the result, never interpolated: keep more frames for a smoother film.

    Args:
      result: a run, or a model.
      path: where to write.
      view: 'circle' (d = 2), 'sphere' (d >= 3), or 'auto' by the dimension.
      fps: pictures a second.
      seconds: length, by leaving out or repeating frames evenly; every frame once unless given.
      size: width and height in pixels, made even; 1280 x 720 (.gif: 640 x 360) unless given. A narrow film is stacked.
      theme: 'light' or 'dark'.
      landscape: draw the potential of the tokens.
      tail: how many earlier frames to draw behind each token.
      azimuth: of the camera, in degrees (sphere).
      elevation: of the camera, in degrees (sphere).
      spin: degrees by which the camera turns during the film (sphere).
      clusters_at: the time whose clusters give the colours; the last unless given (see `trajectories`).
      progress: called with the share of pictures that are done.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    require(suffix in _SIZES, "path", "a .mp4 or .gif", repr(path.name), f"write e.g. {path.with_suffix('.mp4')}")
    require(fps > 0 and fps <= 120, "fps", "between 1 and 120", fps, "write e.g. fps=30")
    require(seconds is None or seconds > 0, "seconds", "positive", seconds)
    require(tail >= 0, "tail", "0 or more", tail)
    width, height = size or _SIZES[suffix]
    require(min(width, height) >= 120, "size", "at least 120 pixels each way", size, "write e.g. size=(1280, 720)")
    writable(path)
    tale = story(result)
    kind = _kind(view, tale.d)
    count = tale.frames if seconds is None else max(1, round(seconds * fps))
    frames = np.linspace(0, tale.frames - 1, count).round().astype(int)
    with style(theme) as colours:
        stage = Stage(
            tale, colours, kind, (width + width % 2, height + height % 2), frames,
            tail=tail, landscape=landscape, azimuth=azimuth, elevation=elevation, spin=spin, clusters_at=clusters_at,
        )  # fmt: skip
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".tokenflock-") as folder:
            part = Path(folder) / path.name
            write = _write_mp4 if suffix == ".mp4" else _write_gif
            write(part, stage, fps, progress or (lambda share: None))
            os.replace(part, path)
    return path


def _kind(view: str, d: int) -> str:
    require(view in ("auto", "circle", "sphere"), "view", "'auto', 'circle' or 'sphere'", repr(view))
    if d < 2:
        raise UserError(f"film needs d >= 2, got d = {d}; use timeline")
    return view if view != "auto" else "circle" if d == 2 else "sphere"


def _pictures(stage: Stage, progress: Callable[[float], None]) -> Iterator[np.ndarray]:
    for number in range(len(stage.frames)):
        yield stage.picture(number)
        progress((number + 1) / len(stage.frames))


def _write_mp4(path: Path, stage: Stage, fps: int, progress: Callable[[float], None]) -> None:
    import imageio_ffmpeg

    options = ["-crf", "18", "-preset", "fast", "-movflags", "+faststart"]
    writer = imageio_ffmpeg.write_frames(
        str(path), stage.size, pix_fmt_in="rgba", pix_fmt_out="yuv420p", fps=fps, codec="libx264",
        quality=None, macro_block_size=2, output_params=options,
    )  # fmt: skip
    try:
        writer.send(None)
        for picture in _pictures(stage, progress):
            writer.send(picture)
    finally:
        writer.close()


def _write_gif(path: Path, stage: Stage, fps: int, progress: Callable[[float], None]) -> None:
    from PIL import Image

    samples = [stage.picture(number)[..., :3] for number in {0, len(stage.frames) // 2, len(stage.frames) - 1}]
    palette = Image.fromarray(np.concatenate(samples)).quantize(96, dither=Image.Dither.NONE)
    clock = np.round(100 * np.arange(len(stage.frames) + 1) / fps)  # a GIF counts in hundredths of a second

    def quantised(picture: np.ndarray) -> Image.Image:
        return Image.fromarray(picture[..., :3]).quantize(palette=palette, dither=Image.Dither.NONE)

    images = map(quantised, _pictures(stage, progress))
    durations = [int(10 * step) for step in np.diff(clock)]
    next(images).save(path, save_all=True, append_images=images, duration=durations, loop=0, optimize=False)
