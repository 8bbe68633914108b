"""How a film looks at its tokens: a shot."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypedDict

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

    @classmethod
    def of(cls, options: ShotOptions) -> Shot:
        """The shot that these keywords ask for.

        >>> Shot.of({"tail": 3}).tail
        3
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise TypeError(f"film has no option {name!r}; it has also {', '.join(known)}")
        return cls(**options)
