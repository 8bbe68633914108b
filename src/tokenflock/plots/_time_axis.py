"""The axis of frames, the same on every plot against time."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tokenflock.errors import require
from tokenflock.plots._story import Story


def time_axis(ax: Axes, tale: Story, log_time: bool = False, label: bool = True) -> None:
    """Limits, scale and label of the axis of frames. A logarithmic one starts at the first positive time."""
    times = tale.times.astype(float)
    if log_time:
        positive = times[times > 0]
        require(len(positive) > 1, "log_time", "False where fewer than two frames have a positive time", True)
        ax.set_xscale("log")
        ax.set_xlim(positive[0], positive[-1])
    elif times[-1] > times[0]:
        ax.set_xlim(times[0], times[-1])
    else:
        ax.set_xticks(times)
    if not log_time and tale.axis != "time" and tale.frames > 1:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if label:
        ax.set_xlabel(tale.label)


def edges(times: np.ndarray) -> np.ndarray:
    """Borders between frames, for cells that are centred on them."""
    times = times.astype(float)
    if len(times) == 1:
        return times[0] + np.array([-0.5, 0.5])
    middle = (times[1:] + times[:-1]) / 2
    return np.concatenate([[times[0]], middle, [times[-1]]])
