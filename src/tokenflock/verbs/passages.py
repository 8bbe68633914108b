"""How long until: survival curves of times of first passage, some of which are censored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tokenflock.errors import require
from tokenflock.events.event import Event

DIMS = {  # the variables of an ensemble with an event, and their axes behind those that it sweeps
    "first_passage": ("repeat",),
    "survival": ("time",),
    "survival_error": ("time",),
    "censored": (),
    "median_time": (),
    "mean_time": (),
    "mean_time_error": (),
    "dwell": ("repeat",),
}
LABELS = {
    "first_passage": "time of first passage, NaN where it did not happen by the end",
    "survival": "share of systems in which it has not happened yet (Kaplan-Meier)",
    "survival_error": "share of systems, standard error (Greenwood)",
    "censored": "systems in which it did not happen",
    "median_time": "median time of first passage",
    "mean_time": "restricted mean time of first passage (longer times count as the end)",
    "mean_time_error": "restricted mean time of first passage, standard error",
    "dwell": "time spent at each number of clusters, cut off at the end",
}


class Survival(NamedTuple):
    """The Kaplan-Meier curve: a step after each time at which something happened."""

    times: np.ndarray  # at which something happened, increasing
    share: np.ndarray  # that is left after each
    error: np.ndarray  # of it
    at_risk: np.ndarray  # systems that were watched just before each
    happened: np.ndarray  # how many of them had it happen
    watched: np.ndarray  # until when each system was watched, increasing

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(share that is left, its standard error) at these times."""
        where = np.searchsorted(self.times, t, side="right")
        return np.append(1.0, self.share)[where], np.append(0.0, self.error)[where]

    @property
    def median(self) -> float:
        """The first time at which half or less is left; NaN where more is left for ever."""
        low = self.share <= 0.5
        return float(self.times[np.argmax(low)]) if low.any() else np.nan

    def mean(self, end: float) -> tuple[float, float]:
        """Return the restricted mean, that of min(time, end), and its standard error.

            mean = area under the curve up to end,
            error^2 = m / (m - 1) sum_{t_k < end} A_k^2 h_k / (r_k (r_k - h_k))

        Letters: A_k is the area from t_k to end; m systems have min(time, end) observed, those in
        which it happened and those that were watched to the end. Without losses before the end
        the error is that of a sample mean, std(ddof=1) / sqrt(m). It is NaN where it cannot be
        estimated: for m < 2, or where nothing happened before the end.

        Source: Kaplan and Meier (1958), section 6.2, with their factor m / (m - 1).
        """
        before = self.times < end
        times, at_risk, happened = self.times[before], self.at_risk[before], self.happened[before]
        edges = np.concatenate([[0.0], times, [end]])
        areas = np.append(1.0, self.share[before]) * np.diff(edges)
        right = areas[::-1].cumsum()[::-1][1:]
        left = at_risk - happened
        terms = right**2 * happened / np.where(left > 0, at_risk * left, 1)
        observed = int(happened.sum() + (self.watched >= end).sum())
        if observed < 2 or not len(times):
            return float(areas.sum()), np.nan
        variance = terms[left > 0].sum() * observed / (observed - 1)
        return float(areas.sum()), float(np.sqrt(variance))


def kaplan_meier(times: np.ndarray, happened: np.ndarray | None = None) -> Survival:
    """The share of systems that is left against time, from times of which some are censored.

        S(t) = prod_{t_k <= t} (1 - h_k / r_k),
        error^2 = S^2 sum_{t_k <= t} h_k / (r_k (r_k - h_k))

    Letters: h_k systems have it happen at t_k, of r_k that were watched until then. `times` are
    those of the events, or, where not `happened`, until when a system was watched.

    Source: Kaplan and Meier (1958); the error is Greenwood's.

    >>> curve = kaplan_meier(np.array([1.0, 2.0, 2.0, 3.0]), np.array([True, True, False, True]))
    >>> curve.times.tolist(), curve.share.tolist()
    ([1.0, 2.0, 3.0], [0.75, 0.5, 0.0])
    """
    times = np.asarray(times, float)
    happened = np.ones(times.shape, bool) if happened is None else np.asarray(happened, bool)
    fine = times.ndim == 1 and times.shape == happened.shape and bool(np.isfinite(times).all())
    require(fine, "times", "finite times, one for each system", f"shape {times.shape}")
    moments, counts = np.unique(times[happened], return_counts=True)
    watched = np.sort(times)
    at_risk = len(times) - np.searchsorted(watched, moments, side="left")
    share = np.cumprod(1 - counts / at_risk)
    left = at_risk - counts
    terms = np.where(left > 0, counts / (at_risk * np.where(left > 0, left, 1)), 0.0)
    return Survival(moments, share, share * np.sqrt(np.cumsum(terms)), at_risk, counts, watched)


def passages(times: np.ndarray, frames: np.ndarray) -> dict[str, np.ndarray]:
    """What an ensemble tells of its event: (cells, repeats, levels) -> named arrays (cells, ...).

    NaN stands for a system that was watched to the last frame and in which nothing happened.
    """
    end = float(frames[-1])
    cells, _, levels = times.shape
    curves = [
        [_told(times[cell, :, level], frames, end) for level in range(levels)]
        for cell in range(cells)
    ]
    told: dict[str, np.ndarray] = {"first_passage": times}
    for name in curves[0][0]:
        values = np.array([[curve[name] for curve in row] for row in curves])
        told[name] = np.moveaxis(values, 1, -1)
    if levels > 1:
        until = np.where(np.isnan(times), end, times)
        told["dwell"] = np.diff(until, axis=-1, append=end)
        return told
    return {name: value[..., 0] for name, value in told.items()}


def _told(times: np.ndarray, frames: np.ndarray, end: float) -> dict[str, Any]:
    """The numbers of one cell and level."""
    happened = ~np.isnan(times)
    curve = kaplan_meier(np.where(happened, times, end), happened)
    share, error = curve.at(frames)
    mean, spread = curve.mean(end)
    return {
        "survival": share,
        "survival_error": error,
        "censored": int((~happened).sum()),
        "median_time": curve.median,
        "mean_time": mean,
        "mean_time_error": spread,
    }


def passage_variable(
    name: str, values: np.ndarray, axes: tuple[str, ...], until: Event
) -> tuple[tuple[str, ...], np.ndarray, dict[str, str]]:
    """A variable of the result: its axes, values and attributes."""
    dims = (*axes, *DIMS[name], *until.levels)
    return dims, values, {"long_name": LABELS[name], "event": repr(until)}
