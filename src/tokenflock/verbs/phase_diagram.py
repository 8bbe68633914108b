"""`phase_diagram`: what has clustered by when, for which beta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import xarray as xr

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.dynamics.unnormalised import Clock, Unnormalised
from tokenflock.errors import all_numbers
from tokenflock.events.event import Event
from tokenflock.observables.observable import Observable
from tokenflock.observables.pair_density import PairDensity
from tokenflock.solvers.layer import Layer
from tokenflock.solvers.solver import Solver
from tokenflock.starts.start import Start
from tokenflock.verbs.ensemble import ensemble
from tokenflock.verbs.options import Options
from tokenflock.verbs.prepare import as_start


def phase_diagram(
    dynamics: Dynamics,
    start: Start | np.ndarray,
    *,
    beta: Sequence[float] | np.ndarray,
    repeats: int = 256,
    t: float | None = None,
    times: Sequence[float] | np.ndarray | None = None,
    frames: int | None = None,
    solver: Solver | None = None,
    observe: Observable | Sequence[Observable] = (PairDensity(),),
    until: Event | None = None,
    seed: int = 0,
    **options: Unpack[Options],
) -> xr.Dataset:
    """An ensemble over beta, with the curve that theory predicts for orthogonal tokens where there
    is one.

    The variable `transition` (time) holds the beta up to which n tokens have clustered at each time
    as d grows to infinity: of the layer map's own recursion for the solver `Layer` (the default, h
    = 0.1), of the flow for others. Everything else is as in `ensemble`.

    >>> from tokenflock.starts import Uniform
    >>> start, beta = Uniform(n=8, d=8), [1.0, 4.0]
    >>> result = phase_diagram(SelfAttention(), start, beta=beta, t=10, frames=11, repeats=4)
    >>> result.pair_density.dims, result.transition.attrs["curve"]
    (('beta', 'time'), 'layer map, n = 8')
    """
    solver = solver or Layer(h=0.1)
    start = as_start(dynamics, start)
    result = ensemble(
        dynamics,
        start,
        over={"beta": all_numbers("beta", beta)},
        repeats=repeats,
        t=t,
        times=times,
        frames=frames,
        solver=solver,
        observe=observe,
        until=until,
        seed=seed,
        **options,
    )
    several = (observe,) if isinstance(observe, Observable) else observe
    return with_transition(result, dynamics, start, solver, several)


def with_transition(
    result: xr.Dataset,
    dynamics: Dynamics,
    start: Start,
    solver: Solver,
    observe: Sequence[Observable],
) -> xr.Dataset:
    """An ensemble over beta with the predicted front, where theory has one."""
    curve = transition(dynamics, start, solver, observe, result["time"].values)
    return result if curve is None else result.assign(transition=curve)


def transition(
    dynamics: Dynamics,
    start: Start,
    solver: Solver,
    observe: Sequence[Observable],
    times: np.ndarray,
) -> xr.DataArray | None:
    """The predicted front at these times; None where theory has none for this law."""
    n = start.shape[0]
    densities = [each for each in observe if isinstance(each, PairDensity)]
    delta = densities[0].delta if densities else 1e-3
    attractive = isinstance(dynamics, (SelfAttention, Unnormalised)) and not dynamics.repulsive
    if not attractive or n < 2:
        return None
    unnormalised = isinstance(dynamics, Unnormalised)
    values = np.full(len(times), np.nan)
    later = times > 0
    if isinstance(solver, Layer):
        if unnormalised:
            return None
        from tokenflock.theory.layers import layer_crossing, layer_transition_curve

        values[later] = layer_transition_curve(times[later], n=n, delta=delta, h=solver.h)
        onset = float(layer_crossing(0.0, n=n, delta=delta, h=solver.h) * solver.h)
        name = f"layer map, n = {n}"
    else:
        if unnormalised and dynamics.clock is Clock.PEAK:
            return None
        from tokenflock.theory.transition import crossing_time, transition_curve

        values[later] = transition_curve(times[later], n=n, delta=delta, unnormalised=unnormalised)
        onset = float(crossing_time(0.0, n=n, delta=delta, unnormalised=unnormalised))
        name = f"flow, n = {n}"
    attrs = {"long_name": "predicted transition", "curve": name, "delta": delta, "onset": onset}
    return xr.DataArray(values, dims="time", attrs=attrs)
