"""Options that commands share, and those of a film, each a small object on its own."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

from tokenflock.cli.values import numbers
from tokenflock.errors import UserError
from tokenflock.files import replaceable
from tokenflock.plots._shot import ViewName

_PICTURES = (".png", ".pdf", ".svg")


def drawable(plot: Path | None) -> bool:
    """Whether --plot replaces a picture; a file that can hold none is refused.

    >>> drawable(None)
    False
    """
    if plot is None:
        return False
    replaced = replaceable(plot)
    if plot.suffix.lower() not in _PICTURES:
        raise UserError(
            f"--plot writes .png, .pdf or .svg, got {plot.name!r}; write e.g. --plot"
            f" {plot.with_suffix('.png')}"
        )
    return replaced


@Parameter(name="*")
@dataclass(frozen=True)
class WhenOptions:
    """Until when a system is followed, and at which times it is kept."""

    t: Annotated[
        float | None, Parameter(help="final time [default: 30, or the last of --times]")
    ] = None
    times: Annotated[str | None, Parameter(help="times to keep, e.g. 0,1,10 or 0:30:301")] = None
    frames: Annotated[
        int | None, Parameter(help="how many equal times to keep, without --times [default: 201]")
    ] = None

    def asked(self) -> dict[str, Any]:
        """The same for `simulate` and `phase_diagram`.

        >>> WhenOptions(times="0,2", t=2).asked()["times"].tolist()
        [0.0, 2.0]
        """
        return {"t": self.t, "times": self._kept(), "frames": self.frames}

    def _kept(self) -> np.ndarray | None:
        """The times of --times, of which the last must be --t where both are given."""
        if self.times is None:
            return None
        keep = numbers(self.times, "--times")
        if self.frames is not None:
            raise UserError(
                f"--times {self.times} and --frames {self.frames} both say which times to keep;"
                " leave one of them out"
            )
        if not np.isfinite(keep).all():
            raise UserError(
                f"--times must be finite, got {self.times!r}; write e.g. --times 0,1,10"
            )
        if self.t is not None and not np.isclose(keep.max(), self.t, rtol=1e-9):
            raise UserError(f"--times end at {keep.max():g}, and --t is {self.t:g}; leave --t out")
        return keep


@Parameter(name="*")
@dataclass(frozen=True)
class EnsembleOptions:
    """How many systems there are for each value, and how they run."""

    repeats: Annotated[int, Parameter(help="systems for each beta")] = 256
    quantiles: Annotated[str | None, Parameter(help="quantiles over systems, e.g. 0.1,0.5,0.9")] = (
        None
    )
    engine: Annotated[
        Literal["auto", "batch", "resident", "tiled", "lanes"], Parameter(help="how to run it")
    ] = "auto"
    seed: Annotated[int, Parameter(help="seed of all systems")] = 0
    dtype: Annotated[
        str | None,
        Parameter(help="float32 or float64 [default: float32 where it resolves all thresholds]"),
    ] = None

    tolerance: Annotated[
        float, Parameter(help="error of time stepping, as a share of the largest value")
    ] = 1e-3

    def asked(self) -> dict[str, Any]:
        """The same for `phase_diagram`."""
        given = self.quantiles
        shares = [] if given is None else numbers(given, "--quantiles").tolist()
        return asdict(self) | {"quantiles": shares}


@Parameter(name="*")
@dataclass(frozen=True)
class FilmOptions:
    """How a film looks at its tokens."""

    view: Annotated[ViewName, Parameter(help="how to look at the tokens")] = "auto"
    tail: Annotated[int, Parameter(help="earlier frames drawn behind each token")] = 15
    landscape: Annotated[bool, Parameter(help="draw the potential of the tokens", negative=())] = (
        False
    )
    log_time: Annotated[
        bool | None,
        Parameter(help="logarithmic time beside the tokens [default: as the frames lie]"),
    ] = None
    spin: Annotated[float, Parameter(help="degrees by which the camera turns (sphere)")] = 0.0
    between: Annotated[
        int | None, Parameter(help="pictures between two layers of a model, on straight lines")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class ReelOptions:
    """How long a film is, how large and how bright."""

    fps: Annotated[int, Parameter(help="pictures a second")] = 30
    seconds: Annotated[
        float | None, Parameter(help="length of the film [default: every frame once]")
    ] = None
    size: Annotated[str | None, Parameter(help="width x height in pixels, e.g. 1280x720")] = None
    theme: Annotated[Literal["light", "dark"], Parameter(help="light or dark")] = "light"

    def asked(self) -> dict[str, Any]:
        """The same for `plots.film`.

        >>> ReelOptions(size="640x360").asked()["size"]
        (640, 360)
        """
        return asdict(self) | {"size": self._size()}

    def _size(self) -> tuple[int, int] | None:
        if self.size is None:
            return None
        try:
            width, height = (int(part) for part in self.size.lower().split("x"))
            if min(width, height) < 1:
                raise ValueError
        except ValueError:
            raise UserError(
                f"--size must be width x height, got {self.size!r}; write e.g. --size 1280x720"
            ) from None
        return width, height
