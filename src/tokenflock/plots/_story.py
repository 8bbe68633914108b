"""A result as plots read it: one axis of frames, the tokens that count, and the words for both."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import OverflowWarning, finite_numbers, require, require_increasing
from tokenflock.observables.energy import Convention, Energy
from tokenflock.observables.observable import Observable
from tokenflock.observables.order_parameter import OrderParameter
from tokenflock.plots._titles import law_title, space_title
from tokenflock.spaces import Euclidean
from tokenflock.verbs.measure import dynamics_of, measure
from tokenflock.verbs.merges import merges

CLUSTER = 1e-3  # the delta of the papers, by which clusters are counted
MOST = 1.5  # that weights, which sum to one, may sum to
CLOSE = 1e-3  # by which an observable differs if it is measured again, in single precision
LOOSE = 0.1  # the same for a model, whose tokens come near each other but never meet


@dataclass(frozen=True)
class Story:
    """Frames of tokens, be they times of a run or layers of a model."""

    result: xr.Dataset  # with axes (time, particle, coord), whatever their names were
    axis: str  # the name that the axis of frames had; none where tokens have no time
    x: np.ndarray  # directions (frames, n, d) of the tokens of positive weight
    w: np.ndarray  # (n,)
    kept: np.ndarray  # which tokens of the result these are

    @property
    def times(self) -> np.ndarray:
        """The times (or layers) of the frames."""
        return self.result["time"].values

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return self.x.shape[0]

    @property
    def n(self) -> int:
        """How many tokens there are."""
        return self.x.shape[1]

    @property
    def d(self) -> int:
        """Dimension of the space of a token."""
        return self.x.shape[2]

    @cached_property
    def law(self) -> Dynamics | None:
        """The law of motion, where there is one that can be read."""
        return dynamics_of(self.result)

    @property
    def beta(self) -> float | None:
        """The inverse temperature of the law, where it has one."""
        return None if self.law is None else self.law.inverse_temperature

    @property
    def of_model(self) -> bool:
        """Whether frames are layers of a model, not times of a run."""
        return self.axis == "layer"

    @property
    def delta(self) -> float:
        """Tokens whose cosine is at least 1 - delta are in one cluster."""
        return LOOSE if self.of_model else CLUSTER

    @property
    def words(self) -> np.ndarray | None:
        """The tokens as words, where there are any."""
        return (
            self.result["word"].values[self.kept].astype(str)
            if "word" in self.result.coords
            else None
        )

    @property
    def free(self) -> bool:
        """Whether tokens live in R^d: their directions are drawn then, and an energy of long tokens
        says little.
        """
        return self.law is not None and isinstance(self.law.space, Euclidean)

    @property
    def heading(self) -> str:
        """What ran: 'Self-attention, beta = 4'."""
        if self.law is None:
            return plain_title(self.result, "Tokens")
        return law_title(self.law) + (" (directions of tokens)" if self.free else "")

    @property
    def subject(self) -> str:
        """What ran, how many tokens, and where: 'Self-attention, beta = 4, n = 32 on S^1'."""
        place = f", $d$ = {self.d}" if self.law is None else f" on {space_title(self.d, self.free)}"
        return f"{self.heading}, $n$ = {self.n}{place}"

    @property
    def convention(self) -> str:
        """How time is counted, in words: flow, or layer map."""
        return literal(self.result.attrs.get("convention", ""))

    @property
    def label(self) -> str:
        """What the axis of frames is called on a plot."""
        if self.axis != "time":
            return self.axis
        return time_label(self.convention)

    def frame(self, at: float | None) -> int:
        """The frame nearest to a time (or layer); the last one unless given."""
        return nearest(self.times, at)

    def moment(self, frame: int, convention: bool = True, decimals: int | None = None) -> str:
        """When it is: 't = 3.2 (flow)', 'layer 32, t = 3.2 (layer map)' or 'layer 7'; nothing where
        tokens have no time.
        """
        if not self.axis:
            return ""
        time = (
            f"{self.times[frame]:.4g}" if decimals is None else f"{self.times[frame]:.{decimals}f}"
        )
        if self.axis != "time":
            return f"{self.axis} {time}"
        layer = (
            f"layer {int(self.result['layer'][frame])}, " if "layer" in self.result.coords else ""
        )
        return f"{layer}$t$ = {time}" + (
            f" ({self.convention})" if convention and self.convention else ""
        )

    @property
    def decimals(self) -> int:
        """How many decimals tell neighbouring frames apart, so that a clock keeps its width.

        One at most between layers.
        """
        most = 1 if self.of_model else 3
        return next(
            (
                k
                for k in range(most)
                if np.allclose(self.times, np.round(self.times, k), rtol=0, atol=1e-6)
            ),
            most,
        )

    def measured(self, observable: Observable, frames: np.ndarray | None = None) -> xr.DataArray:
        """Return an observable at every frame or at chosen ones.

        It is taken from the result if it is there already and belongs to its tokens.
        """
        bound = observable if self.law is None else observable.bind(self.law)
        if self._is_current(bound):
            stored = self.result[bound.name]
            return stored if frames is None else stored.isel(time=frames)
        part = self.result if frames is None else self.result.isel(time=frames)
        # what else is there may have other axes of the same name
        return measure(part[["x", "w"]], bound)[bound.name]

    def _is_current(self, bound: Observable) -> bool:
        """Return whether the result has an observable, measured on the tokens that it has now.

        Tokens may have been selected or changed since. That is known by measuring the first and
        the last frame again.
        """
        stored = self.result.get(bound.name)
        if stored is None or stored.attrs.get("observable") != repr(bound):
            return False
        if stored.dims[:1] != ("time",):
            return False
        ends = self.result.isel(time=[0, -1])
        again = measure(ends[["x", "w"]], bound)[bound.name].values
        values = ends[bound.name].values
        return values.shape == again.shape and np.allclose(
            values, again, rtol=CLOSE, atol=CLOSE, equal_nan=True
        )

    def height(self) -> xr.DataArray:
        """How far the tokens have climbed: the energy, one at consensus; where there is no beta,
        the order parameter.
        """
        if self.free or self.law is None or (self.beta is None and self.law.interaction is None):
            return self.measured(OrderParameter())
        with warnings.catch_warnings():  # its logarithm is shown then
            warnings.simplefilter("ignore", OverflowWarning)
            energy = self.measured(Energy(convention=Convention.STAIRCASE))
        finite = bool(np.isfinite(energy.values).all())
        return (
            energy if finite else self.measured(Energy(convention=Convention.STAIRCASE, log=True))
        )

    def merged(self, delta: float) -> np.ndarray:
        """The times of merges."""
        return merges(self.result, delta)["time"].values


def nearest(times: np.ndarray, at: float | None) -> int:
    """The place of the time that is nearest; the last one unless given."""
    if at is None:
        return len(times) - 1
    low, high = times[0], times[-1]
    require(low <= at <= high, "at", f"within [{low:g}, {high:g}]", at)
    return int(np.argmin(np.abs(times - at)))


def plain_title(result: xr.Dataset, otherwise: str) -> str:
    """The title of a result as plain text for a figure: none of it is a formula."""
    return literal(str(result.attrs.get("title", otherwise)).removeprefix("tokenflock: "))


def literal(text: object) -> str:
    """A text of a file for a figure: none of it is a formula, and no more of it than fits."""
    return str(text)[:200].replace("$", r"\$")


def time_label(convention: str = "") -> str:
    """'time t (layer map)'."""
    return r"time $t$" + (f" ({convention})" if convention else "")


def story(result: xr.Dataset) -> Story:
    """Read a result, or say what is wrong with it."""
    require("x" in result, "result", "a Dataset with tokens x", sorted(map(str, result.data_vars)))
    timeless = result["x"].dims == ("particle", "coord") and "time" not in result.coords
    if result["x"].dims == ("particle", "coord"):
        result = _one_frame(result)
    x = result["x"]
    fits = x.ndim == 3 and x.dims[2] == "coord" and x.size > 0 and x.dtype.kind in "fiu"
    require(
        fits,
        "x",
        "numbers of axes (time, particle, coord), none of them empty",
        f"{x.dtype} of {dict(x.sizes)}",
        f"select one of them, e.g. result.isel({x.dims[0]}=0)" if x.ndim > 3 else "",
    )
    axis, token = str(x.dims[0]), str(x.dims[1])
    plain = _renamed(result, axis, token)
    w = finite_numbers("w", plain["w"].values)
    require(
        w.ndim == 1 and bool((w >= 0).all()) and 0 < w.sum() < MOST,
        "w",
        "one weight a token, some positive, that sum to one",
        f"shape {w.shape}, sum {w.sum():g}",
    )
    require_increasing(axis, finite_numbers(axis, plain["time"].values))
    kept = np.flatnonzero(w > 0)
    tokens = plain["x"].values[:, kept].astype(float, copy=False)
    largest = float(np.abs(tokens).max())  # whose square is a number too
    require(largest < 1e150, "x", "finite", "NaN, infinity or beyond 1e150")
    length = np.linalg.norm(tokens, axis=-1, keepdims=True)
    name = "" if timeless else axis
    return Story(plain, name, tokens / np.where(length > 0, length, 1), w[kept], kept)


def _one_frame(result: xr.Dataset) -> xr.Dataset:
    """Tokens without a time, as those that are optimal, or one frame of a run: a run of one."""
    x = result["x"].expand_dims("time")
    layer = {"layer": ("time", [result["layer"].item()])} if "layer" in result.coords else {}
    return result.drop_vars(["time", "layer"], errors="ignore").assign(x=x).assign_coords(layer)


def _renamed(result: xr.Dataset, axis: str, token: str) -> xr.Dataset:
    """The same with axes called time and particle, a coordinate on the frames, and weights."""
    if axis != "time":
        result = result.drop_vars("time", errors="ignore").rename({axis: "time"})
    if token != "particle":
        result = result.drop_vars("particle", errors="ignore").rename({token: "particle"})
    if "time" not in result.coords:
        result = result.assign_coords(time=np.arange(result.sizes["time"]))
    if "w" not in result:
        n = result.sizes["particle"]
        result = result.assign(w=("particle", np.full(n, 1 / n)))
    return result
