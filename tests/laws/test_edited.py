"""Results that were edited with xarray: what they give is right, NaN, or an error."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.errors import UserError
from tokenflock.meanfield import wasserstein
from tokenflock.observables import (
    ClusterCount,
    Energy,
    Histogram,
    OrderParameter,
    PairDensity,
    SpanDimension,
)
from tokenflock.starts import Uniform

pytestmark = pytest.mark.usefixtures("quick_compilation")
BETA = 4.0


@pytest.fixture(scope="module")
def run():
    return flock.simulate(SelfAttention(beta=BETA), Uniform(n=8, d=3), t=6, frames=13, seed=0)


def test_some_tokens_of_a_run_are_measured_with_weights_that_sum_to_one(run):
    part = run.isel(particle=[0, 1, 2])
    told = flock.measure(part, [Energy(), OrderParameter()])
    x = part.x.values
    cosines = np.einsum("tid,tjd->tij", x, x)
    np.testing.assert_allclose(told.energy, np.exp(BETA * cosines).mean(axis=(1, 2)) / (2 * BETA))
    np.testing.assert_allclose(told.order_parameter, np.linalg.norm(x.mean(axis=1), axis=1))
    assert flock.merges(part).largest.values == pytest.approx([2 / 3])  # two of three tokens


def test_frames_without_numbers_are_measured_as_nan(run):
    """A comparison with NaN is false, which would count as no pair, no dimension, n clusters."""
    observables = [ClusterCount(), PairDensity(), SpanDimension(), Histogram(bins=4), Energy()]
    whole = flock.measure(run, observables)
    holes = run.assign(x=run.x.where(run.time < 3))
    told = flock.measure(holes, observables)
    for each in observables:
        assert bool(told[each.name].isel(time=slice(6, None)).isnull().all())
        np.testing.assert_allclose(
            told[each.name].isel(time=slice(0, 6)), whole[each.name].isel(time=slice(0, 6))
        )
    for verb in (flock.merges, flock.dwell_times):
        with pytest.raises(UserError, match="x must be finite"):
            verb(holes)


def test_merges_are_those_of_times_that_increase(run):
    backwards = run.isel(time=slice(None, None, -1))
    twice = xr.concat([run, run], "time", data_vars="minimal")
    for edited in (backwards, twice):
        for verb in (flock.merges, flock.dwell_times):
            with pytest.raises(UserError, match=r"time must be increasing.*sortby\('time'\)"):
                verb(edited)
    assert flock.merges(backwards.sortby("time")).identical(flock.merges(run))
    weighted = run.assign(w=run.w.expand_dims(time=run.time))  # as xr.concat writes weights
    assert flock.merges(weighted).identical(flock.merges(run))


def test_axes_of_tokens_in_another_order_are_refused(run):
    x = run.x.isel(time=3)
    turned = x.transpose("coord", "particle")
    law = SelfAttention(beta=BETA)
    for call in (
        lambda: flock.simulate(law, turned, t=1),
        lambda: flock.jacobian(law, turned),
        lambda: flock.spectrum(law, turned),
        lambda: wasserstein(turned, turned),
    ):
        with pytest.raises(UserError, match="an array whose last axis is 'coord'"):
            call()
    assert flock.simulate(law, x, t=1, frames=2).sizes["particle"] == 8
