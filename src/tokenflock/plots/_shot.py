"""How a film looks at its tokens: a shot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from tokenflock.errors import require_known

ViewName = Literal["auto", "circle", "sphere", "plane"]


class ShotOptions(TypedDict, total=False):
    """The fields of a `Shot` as keywords of `film`."""

    view: ViewName
    landscape: bool
    tail: int
    azimuth: float | None
    elevation: float | None
    spin: float
    clusters_at: float | None
    log_time: bool | None
    between: int | None
    title: str | None


@dataclass(frozen=True)
class Shot:
    """Which view of the tokens is shown, from where, and what is drawn beside them."""

    view: ViewName = "auto"
    "'circle' (d = 2), 'sphere' (d >= 3), 'plane', or 'auto' by the dimension"
    landscape: bool = False
    "whether the potential of the tokens is drawn"
    tail: int = 15
    "how many earlier frames are drawn behind each token"
    azimuth: float | None = None
    "of the camera, in degrees (sphere)"
    elevation: float | None = None
    "of the camera, in degrees (sphere)"
    spin: float = 0.0
    "degrees by which the camera turns during the film (sphere)"
    clusters_at: float | None = None
    "the time whose clusters give the colours"
    log_time: bool | None = None
    "logarithmic time beside the tokens; None: as the frames lie"
    between: int | None = None
    "pictures between two layers of a model"
    title: str | None = None
    "what stands above it; None: what ran"

    @classmethod
    def of(cls, options: ShotOptions) -> Shot:
        """The shot that these keywords ask for.

        >>> Shot.of({"tail": 3}).tail
        3
        """
        require_known("film", options, ShotOptions.__annotations__)
        return cls(**options)
