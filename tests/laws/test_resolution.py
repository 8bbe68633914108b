"""Thresholds against the rounding of numbers: every observable and event says in float32 what it
says in float64, or takes float64.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.catalogue import entries
from tokenflock.dynamics import SelfAttention
from tokenflock.errors import UserError
from tokenflock.events import Consensus, Stationary
from tokenflock.observables import (
    ClusterCount,
    ClusterLabels,
    MinimumCosine,
    PairDensity,
    SpanDimension,
)
from tokenflock.observables.observable import by_strips, on_sphere, reads_cosines
from tokenflock.precision import precision
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Given, Uniform

LAW = SelfAttention(beta=1.0)
SINGLE = float(np.finfo(np.float32).eps)
DEFAULTS = [entry.load()() for entry in entries("observables")]
FINEST = [
    type(one)(**{name: least})
    for one in [*DEFAULTS, ClusterCount(radius=0.1), ClusterLabels(radius=0.1)]
    for name, least in one.resolution(SINGLE).items()
]
EVENTS = [entry.load().example() for entry in entries("events")]


def near(gaps):
    """Unit vectors in pairs, the k-th with 1 - cosine = gaps[k], far from all other pairs."""
    turn = np.arccos(1 - np.asarray(gaps))
    first = 2 * np.pi * np.arange(len(gaps)) / (3 * len(gaps))
    angle = np.stack([first, first + turn], axis=1).ravel()
    return np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)


def gap(one):
    """The 1 - cosine at which a threshold changes its mind."""
    (name, value), *_ = [*((key, getattr(one, key)) for key in one.resolution(1.0)), ("", 1e-3)]
    return {"radius": value**2 / 2}.get(name, value)


@pytest.mark.parametrize("one", DEFAULTS + FINEST, ids=repr)
def test_an_observable_says_in_float32_what_it_says_in_float64(one):
    """Pairs 5 % nearer and farther than the threshold, by each way in which engines measure it."""
    x, w, values = near(gap(one) * np.array([0.95, 1.05, 0.5, 2.0])), np.full(8, 1 / 8), []
    ways = [by_strips] if one.strips else [lambda one, x, w: one.measure(x, w)]
    ways += [on_sphere] if reads_cosines(one) else []
    for dtype, looks in (("float64", ways[:1]), ("float32", ways)):
        with precision(dtype):
            tokens, weights = jnp.asarray(x, dtype), jnp.asarray(w, dtype)
            values += [np.asarray(look(one.bind(LAW), tokens, weights), float) for look in looks]
    for single in values[1:]:
        np.testing.assert_allclose(single, values[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("engine", ["batch", "tiled", "lanes", "resident"])
def test_every_engine_resolves_the_finest_threshold(engine):
    delta = PairDensity().resolution(SINGLE)["delta"]
    start, options = Given(near(delta * np.array([0.95, 1.05, 0.5, 2.0]))), {"dtype": "float32"}
    kinds = [PairDensity(delta), MinimumCosine()]
    options |= {"solver": Layer(h=0.1), "t": 0.1, "frames": 2, "repeats": 1, "engine": engine}
    for observe in [kinds[:1], kinds]:  # the loop written by hand, and the one of equations
        first = flock.ensemble(LAW, start, observe=observe, **options).isel(time=0)
        assert float(first.pair_density) == pytest.approx(2 / 28, rel=1e-6)


@pytest.mark.parametrize("event", [*EVENTS, Consensus(delta=1e-9)], ids=repr)
def test_an_event_happens_in_a_default_ensemble_when_it_does_in_float64(event):
    options = {"t": 60.0, "frames": 2, "repeats": 4, "solver": RK4(h=0.1), "observe": []}
    times = [
        flock.ensemble(LAW, Uniform(n=4, d=3), until=event, **options, **dtype).first_passage
        for dtype in ({}, {"dtype": "float64"})
    ]
    assert np.isfinite(times[1]).all()
    np.testing.assert_allclose(*times, rtol=1e-3)


@pytest.mark.parametrize("observe", [PairDensity(delta=1e-8), ClusterCount(delta=1e-8)], ids=repr)
def test_a_threshold_below_float32_takes_float64(observe):
    options = {"t": 20.0, "frames": 3, "repeats": 4, "solver": RK4(h=0.1), "observe": [observe]}
    runs = [
        flock.ensemble(LAW, Uniform(n=8, d=3), keep=True, **options, **dtype)
        for dtype in ({}, {"dtype": "float64"})
    ]
    assert runs[0].identical(runs[1].assign_attrs(runs[0].attrs))
    with pytest.raises(UserError, match=r"delta must be 7.6e-06 or more in float32.*float64"):
        flock.ensemble(LAW, Uniform(n=8, d=3), dtype="float32", **options)


def test_finer_thresholds_than_the_precision_are_refused_wherever_they_come_from():
    small = {"repeats": 1, "t": 0.1, "frames": 2, "solver": RK4(h=0.1)}
    with pytest.raises(UserError, match=r"1.4e-14 or more in float64.*ConsensusDistance"):
        flock.ensemble(LAW, Uniform(n=4, d=3), over={"delta": [1e-3, 1e-15]}, **small)
    with pytest.raises(
        UserError, match=r"speed must be 0.00098 or more in float32, for Stationary"
    ):
        flock.simulate(LAW, Uniform(n=4, d=3), t=1, until=Stationary(), dtype="float32")
    run = flock.simulate(LAW, Uniform(n=4, d=3), t=1, frames=2, dtype="float32")
    with pytest.raises(UserError, match=r"threshold must be 0.00012 or more in float32"):
        flock.measure(run, SpanDimension(threshold=1e-6))
