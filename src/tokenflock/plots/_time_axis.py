"""The axis of frames, the same on every plot against time."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tokenflock.errors import require


class FrameAxis(Protocol):
    """What has an axis of frames: tokens, a density, an ensemble."""

    @property
    def times(self) -> np.ndarray:
        """The time, or layer, of each frame."""
        ...

    @property
    def frames(self) -> int:
        """How many there are."""
        ...

    @property
    def axis(self) -> str:
        """The name of the axis in the result."""
        ...

    @property
    def label(self) -> str:
        """What a plot writes on it."""
        ...


def time_axis(ax: Axes, run: FrameAxis, log_time: bool = False, label: bool = True) -> None:
    """Limits, scale and label of the axis of frames.

    A logarithmic one starts at the first positive time.
    """
    times = run.times.astype(float)
    if log_time:
        positive = times[times > 0]
        require(
            len(positive) > 1,
            "log_time",
            "False where fewer than two frames have a positive time",
            True,
        )
        ax.set_xscale("log")
        ax.set_xlim(positive[0], positive[-1])
    elif times[-1] > times[0]:
        ax.set_xlim(times[0], times[-1])
    else:
        ax.set_xticks(times)
    if not log_time and run.axis != "time" and run.frames > 1:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if label:
        ax.set_xlabel(run.label)


def edges(times: np.ndarray, log: bool = False) -> np.ndarray:
    """Borders between frames, for cells that are centred on them.

    The first and the last frame have half a cell.
    """
    times = times.astype(float)
    if len(times) == 1:
        return times[0] + np.array([-0.5, 0.5])
    middle = np.sqrt(times[1:] * times[:-1]) if log else (times[1:] + times[:-1]) / 2
    return np.concatenate([[times[0]], middle, [times[-1]]])


def geometric(values: np.ndarray, decades: float = 3.0, stray: float = 0.2) -> bool:
    """Whether ascending values, but for a zero, span more than so many decades in about equal
    ratios.

    Their logarithms may stray from equal steps by a share of their range: a solver of fixed step
    rounds early times.
    """
    positive = values[values > 0].astype(float)
    if (
        len(positive) < 3
        or len(positive) < len(values) - 1
        or np.log10(positive[-1] / positive[0]) <= decades
    ):
        return False
    return _bend(np.log(positive)) < min(stray, _bend(positive))


def series(values: np.ndarray) -> bool:
    """Whether values of a parameter are a geometric series, such as 4, 8, 16 or 1, 2, 5, 10."""
    return bool(values[0] > 0) and geometric(values, decades=0.5, stray=0.05)


def _bend(values: np.ndarray) -> float:
    """How far ascending values stray from equal steps, as a share of their range."""
    return float(
        np.abs((values - values[0]) / np.ptp(values) - np.linspace(0, 1, len(values))).max()
    )
