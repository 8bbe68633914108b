"""Films of tokens and of densities."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Unpack, cast, get_args

import numpy as np
import xarray as xr
from matplotlib.colors import to_rgba_array

from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError, require
from tokenflock.files import whole, writable
from tokenflock.plots._density_stage import DensityStage
from tokenflock.plots._shot import Shot, ShotOptions, ViewName
from tokenflock.plots._spread import Spread, is_spread
from tokenflock.plots._stage import Stage
from tokenflock.plots._story import Story, story
from tokenflock.plots._time_axis import geometric
from tokenflock.plots.density_maps import timed
from tokenflock.plots.styles import ThemeName, style

if TYPE_CHECKING:
    from PIL import Image

LONGEST = 86_400  # seconds of a film: a day
SECONDS = 20  # about as long is the film of a deep model, unless asked otherwise
_QUALITY = 18  # of H.264: a smaller number is a larger file
_SIZES = {".mp4": (1280, 720), ".gif": (640, 360)}


def film(
    result: xr.Dataset,
    path: str | os.PathLike[str],
    *,
    fps: float = 30,
    seconds: float | None = None,
    size: tuple[int, int] | None = None,
    theme: ThemeName = "light",
    progress: Callable[[float], None] | None = None,
    **shot: Unpack[ShotOptions],
) -> Path:
    """A film of tokens, beside it energy and number of clusters with a marker that moves. Returns
    the path.

    A measure is filmed too: its density around the circle or on a ball, beside it what it climbs
    and the density over time.

    The suffix says the format: .mp4 (H.264, plays everywhere) or .gif. The file appears only once
    it is complete; a film that is interrupted leaves none. Pictures of a run are its frames: keep
    more frames for a smoother film. Between the layers of a model tokens move on straight lines,
    and the clock tells the layer with decimals.

    Args:
      result: a run, or a model, or a result of `meanfield.evolve`.
      path: where to write.
      fps: pictures a second.
      seconds: length, by leaving out or repeating frames evenly; every frame once unless given.
      size: width and height in pixels, made even; 1280 x 720 (.gif: 640 x 360) unless given. A
        narrow film is stacked.
      theme: 'light' or 'dark'.
      progress: called with the share of pictures that are done.
      view: 'circle' (d = 2), 'sphere' (d >= 3), 'plane' (of the first two principal axes), or
        'auto' by the dimension.
      landscape: draw the potential of the tokens (not for a measure, as `tail`, `clusters_at`).
      tail: how many earlier frames to draw behind each token; 15 unless given.
      azimuth, elevation: of the camera, in degrees (sphere).
      spin: degrees by which the camera turns during the film (sphere).
      clusters_at: the time whose clusters give the colours; unless given see `trajectories`.
      log_time: logarithmic time beside the tokens; unless given, where frames span over three
        decades in about equal ratios.
      between: pictures between two layers of a model; as many as make twenty seconds, at most 29,
        unless given.
    """
    path, how = Path(path), Shot.of(shot)
    size = _checked(path, fps, seconds, size, how.tail)
    run = timed(result) if is_spread(result) else story(_moving(result, how.between, fps))
    how = _settled(how, run)
    count = run.frames if seconds is None else max(1, round(seconds * fps))
    frames = np.linspace(0, run.frames - 1, count).round().astype(int)
    with style(theme) as colours:
        stage = (
            DensityStage(run, colours, size, frames, how)
            if isinstance(run, Spread)
            else Stage(run, colours, size, frames, how)
        )
        _write(path, stage, fps, progress or (lambda share: None))
    return path


def _settled(shot: Shot, run: Story | Spread) -> Shot:
    """The shot with its view and its time axis chosen, as what is filmed asks."""
    view = _view(shot.view, run.d)
    if isinstance(run, Spread):
        require(
            view != "plane" and (view == "circle") == (run.d == 2),
            "view",
            "'auto' for a measure: a circle for d = 2, else a sphere",
            f"{shot.view!r} for d = {run.d}",
        )
    log_time = geometric(run.times) if shot.log_time is None else shot.log_time
    return replace(shot, view=view, log_time=log_time)


def _checked(
    path: Path, fps: float, seconds: float | None, size: tuple[int, int] | None, tail: int
) -> tuple[int, int]:
    """Refuse what cannot be filmed, before any work is done.

    Returns the size, made even as H.264 asks.
    """
    suffix = path.suffix.lower()
    require(
        suffix in _SIZES,
        "path",
        "a .mp4 or .gif",
        repr(path.name),
        f"write e.g. {path.with_suffix('.mp4')}",
    )
    most = 120 if suffix == ".mp4" else 50  # browsers slow down a GIF that is faster
    require(0 < fps <= most, "fps", f"above 0 and at most {most}", fps, "write e.g. fps=30")
    require(
        seconds is None or (0 < seconds <= LONGEST),
        "seconds",
        f"positive, and at most {LONGEST}",
        seconds,
        "write e.g. seconds=20",
    )
    require(tail >= 0, "tail", "0 or more", tail)
    width, height = size or _SIZES[suffix]
    require(
        min(width, height) >= 120 and max(width, height) <= 8192,
        "size",
        "at least 120 and at most 8192 pixels each way",
        size,
        "write e.g. size=(1280, 720)",
    )
    writable(path)
    return width + width % 2, height + height % 2


def _moving(result: xr.Dataset, between: int | None, fps: float) -> xr.Dataset:
    """A model with pictures between its layers, for which tokens go on straight lines.

    A run as it is.
    """
    require(between is None or between >= 0, "between", "0 or more", between)
    if "x" not in result or result["x"].dims[0] != "layer" or result.sizes["layer"] < 2:
        require(
            not between,
            "between",
            "left out: only layers of a model have nothing between them",
            between,
        )
        return result
    layers = (
        result["layer"].values if "layer" in result.coords else np.arange(result.sizes["layer"])
    )
    between = int(np.clip(SECONDS * fps / len(layers), 1, 30)) - 1 if between is None else between
    _check_memory(result, (len(layers) - 1) * (between + 1) + 1)
    places = np.interp(
        np.arange((len(layers) - 1) * (between + 1) + 1) / (between + 1),
        np.arange(len(layers)),
        layers,
    )
    return result.drop_dims("layer").assign(
        x=result["x"].assign_coords(layer=layers).interp(layer=places)
    )


def _check_memory(result: xr.Dataset, pictures: int) -> None:
    """Refuse more pictures between layers than the memory holds."""
    require_memory(
        float(pictures) * result["x"][0].size * 8 * 3,
        f"a film of {pictures:,} pictures",
        "write fewer of them between layers, e.g. between=10",
    )


def _view(view: ViewName, d: int) -> ViewName:
    require(
        view in get_args(ViewName), "view", " or ".join(map(repr, get_args(ViewName))), repr(view)
    )
    if d < 2:
        raise UserError(f"film needs d >= 2, got d = {d}; use timeline")
    return view if view != "auto" else "circle" if d == 2 else "sphere"


def _write(
    path: Path, stage: Stage | DensityStage, fps: float, progress: Callable[[float], None]
) -> None:
    """Write beside the path, then move into place."""
    write = _write_mp4 if path.suffix.lower() == ".mp4" else _write_gif
    with whole(path) as part:
        write(part, stage, fps, progress)


def _pictures(
    stage: Stage | DensityStage, progress: Callable[[float], None]
) -> Iterator[np.ndarray]:
    """The pictures of a film; one that would be the same as the one before is not drawn again."""
    turning, shown, picture = stage.spin != 0, -1, np.empty(0)
    for number, frame in enumerate(stage.frames):
        if turning or frame != shown:
            shown, picture = frame, stage.picture(number)
        yield picture
        progress((number + 1) / len(stage.frames))


def _write_mp4(
    path: Path, stage: Stage | DensityStage, fps: float, progress: Callable[[float], None]
) -> None:
    """Pipe pictures into ffmpeg, which has its own session: Ctrl-C reaches us alone, and we end it.

    The session is asked for by an argument, not by a `preexec_fn`: that would run Python in a fork,
    which JAX warns about.
    """
    from imageio_ffmpeg import get_ffmpeg_exe

    # raw pictures in, H.264 out
    width, height = stage.size
    source = f"-f rawvideo -pix_fmt rgba -s {width}x{height} -r {fps:g} -i -".split()
    target = f"-an -c:v libx264 -pix_fmt yuv420p -crf {_QUALITY} -preset fast".split()
    target += ["-movflags", "+faststart"]
    command = [get_ffmpeg_exe(), "-y", "-loglevel", "error", *source, *target, str(path)]
    with open(path.with_suffix(".log"), "w+b") as log:
        coder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )
        pipe = cast(IO[bytes], coder.stdin)
        try:
            for picture in _pictures(stage, progress):
                pipe.write(picture.tobytes())
            pipe.close()
            failed = coder.wait() != 0
        except BrokenPipeError:
            failed = True
        finally:
            if coder.poll() is None:
                coder.kill()
                coder.wait()
        if failed:
            log.seek(0)
            raise UserError(
                "ffmpeg could not write the film; is the disk full? It said:"
                f" {log.read().decode().strip()[-300:]}"
            )


def _write_gif(
    path: Path, stage: Stage | DensityStage, fps: float, progress: Callable[[float], None]
) -> None:
    from PIL import Image

    palette = _palette(stage)
    # a GIF counts in hundredths of a second
    clock = np.round(100 * np.arange(len(stage.frames) + 1) / fps)

    def quantised(picture: np.ndarray) -> Image.Image:
        return Image.fromarray(picture[..., :3]).quantize(palette=palette, dither=Image.Dither.NONE)

    images = map(quantised, _pictures(stage, progress))
    durations = [int(10 * step) for step in np.diff(clock)]
    next(images).save(
        path, save_all=True, append_images=images, duration=durations, loop=0, optimize=False
    )


def _palette(stage: Stage | DensityStage) -> Image.Image:
    """Few colours for a whole film: those of three of its pictures, and surely those of tokens,
    which are small in them.
    """
    from PIL import Image

    samples = [
        stage.picture(number)[..., :3]
        for number in (0, len(stage.frames) // 2, len(stage.frames) - 1)
    ]
    frequent = Image.fromarray(np.concatenate(samples)).quantize(72, dither=Image.Dither.NONE)
    sure = to_rgba_array(
        [stage.theme.paper, stage.theme.ink, *stage.theme.palette, stage.theme.neutral]
    )[:, :3]
    sure = np.concatenate(
        [
            sure,
            (sure + sure[0]) / 2,
            (3 * sure + 7 * to_rgba_array(stage.theme.ball[1])[0, :3]) / 10,
        ]
    )
    sure = np.round(255 * sure).astype(int)
    colours = np.concatenate(
        [np.array((frequent.getpalette() or [])[: 3 * 72]).reshape(-1, 3), sure]
    )
    near = np.abs(colours - sure[0]).max(axis=1) <= 6  # would tint the paper
    colours[near] = sure[0]
    palette = Image.new("P", (1, 1))
    palette.putpalette(colours.ravel().tolist())
    return palette
