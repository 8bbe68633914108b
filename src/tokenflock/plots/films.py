"""Films of tokens and of densities."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Unpack, get_args

import numpy as np
import xarray as xr

from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError, require
from tokenflock.files import whole, writable
from tokenflock.plots._density_stage import DensityStage
from tokenflock.plots._ffmpeg import write_gif, write_mp4
from tokenflock.plots._html_film import write_html
from tokenflock.plots._shot import Shot, ShotOptions, ViewName
from tokenflock.plots._spread import Spread, is_spread
from tokenflock.plots._stage import Stage
from tokenflock.plots._story import Story, story
from tokenflock.plots._time_axis import geometric
from tokenflock.plots.density_maps import timed
from tokenflock.plots.styles import ThemeName, style

LONGEST = 86_400  # seconds of a film: a day
SECONDS = 20  # about as long is the film of a deep model, unless asked otherwise
_SIZES = {".mp4": (1280, 720), ".gif": (640, 360), ".html": (1600, 900)}
_WRITERS = {".mp4": write_mp4, ".gif": write_gif, ".html": write_html}


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

    The suffix says the format: .mp4 (H.264), .gif, or .html (one page that any browser plays, with
    a slider, sharp at every size, no network). The file appears only once it is complete; a film
    that is interrupted leaves none. Pictures of a run are its frames: keep more frames for a
    smoother film. Between the layers of a model tokens move on straight lines, and nothing is
    measured there. What colours and trails mean is said in the lower left corner.

    Args:
      result: a run, or a model, or a result of `meanfield.evolve`.
      path: where to write.
      fps: pictures a second.
      seconds: length, by leaving out or repeating frames evenly; every frame once unless given.
      size: width and height in pixels, made even; 1280 x 720 (.gif: 640 x 360, .html: 1600 x
        900) unless given. A narrow film is stacked.
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
      title: what stands above it; what ran unless given.
    """
    path, how = Path(path), Shot.of(shot)
    size = _checked(path, fps, seconds, size)
    run = timed(result) if is_spread(result) else story(_moving(result, how.between, fps))
    how = _settled(how, run)
    count = run.frames if seconds is None else max(1, round(seconds * fps))
    frames = np.linspace(0, run.frames - 1, count).round().astype(int)
    with style(theme) as colours, whole(path, lasting=True) as part:
        scene = (
            DensityStage(run, colours, size, frames, how)
            if isinstance(run, Spread)
            else Stage(run, _measured(result, run), colours, size, frames, how)
        )
        _WRITERS[path.suffix.lower()](part, scene, fps, progress or (lambda share: None))
    return path


def _measured(result: xr.Dataset, run: Story) -> Story:
    """What has frames of its own: a run itself, or a model without the pictures between layers."""
    return story(result) if run.of_model else run


def _settled(shot: Shot, run: Story | Spread) -> Shot:
    """The shot with its view and its time axis chosen, as what is filmed asks.

    Raise on an option that this view would drop.
    """
    view = _view(shot.view, run.d)
    dropped = {
        f"a {view}": () if view == "sphere" else ("spin", "azimuth", "elevation"),
        "a plane": ("landscape",) if view == "plane" else (),
        "a measure": ("landscape", "clusters_at") if isinstance(run, Spread) else (),
    }
    for what, names in dropped.items():
        for name in names:
            value = getattr(shot, name)
            require(not value, name, f"left out in a film of {what}", value)
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
    path: Path, fps: float, seconds: float | None, size: tuple[int, int] | None
) -> tuple[int, int]:
    """Refuse what cannot be filmed, before any work is done.

    Returns the size, made even as H.264 asks.
    """
    suffix = path.suffix.lower()
    require(
        suffix in _SIZES,
        "path",
        "a .mp4, .gif or .html",
        repr(path.name),
        f"write e.g. {path.with_suffix('.mp4')}",
    )
    most = 50 if suffix == ".gif" else 120  # browsers slow down a GIF that is faster
    require(0 < fps <= most, "fps", f"above 0 and at most {most}", fps, "write e.g. fps=30")
    require(
        seconds is None or (0 < seconds <= LONGEST and round(seconds * fps) >= 1),
        "seconds",
        f"positive, long enough for a picture, and at most {LONGEST}",
        seconds,
        "write e.g. seconds=20",
    )
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
    if "x" not in result or result["x"].dims[:1] != ("layer",) or result.sizes["layer"] < 2:
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
