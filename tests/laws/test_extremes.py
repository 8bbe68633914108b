"""Edges: huge beta, one token, antipodes, coincidences, high dimension.

A right answer or a clear error, never NaN.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tests.laws.specimens import LAWS, NAMES, tokens
from tokenflock.dynamics import Clock, SelfAttention, Unnormalised
from tokenflock.observables import Energy
from tokenflock.starts import Given, Uniform


def fields_of(law):
    return {field.name: getattr(law, field.name) for field in dataclasses.fields(law)}


SHARP = [(name, law) for name, law in zip(NAMES, LAWS) if "beta" in fields_of(law)]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("law", [law for _, law in SHARP], ids=[name for name, _ in SHARP])
def test_velocities_at_beta_ten_thousand_are_of_one_size_exactly_where_declared(law):
    """Others grow with beta, overflow, or are refused."""
    x, w = tokens(law)
    try:
        v = type(law)(**fields_of(law) | {"beta": 1e4}).velocity(0.0, x, w)
        small = bool((jnp.abs(v) < 100).all())
    except flock.UserError:
        small = False
    assert small == law.bounded


@pytest.mark.usefixtures("double")
def test_unnormalised_attention_at_beta_ten_thousand_needs_the_peak_clock():
    x, w = tokens(SelfAttention())
    x = x.at[1].set(x[0])
    v = Unnormalised(beta=1e4, clock=Clock.PEAK).velocity(0.0, x, w)
    assert bool(jnp.isfinite(v).all())
    with pytest.raises(flock.UserError, match="peak"):
        Unnormalised(beta=1e4)


def test_log_energy_never_overflows():
    run = flock.simulate(
        SelfAttention(beta=1e4), Uniform(n=8, d=2), t=1.0, frames=3, observe=[Energy(log=True)]
    )
    assert np.isfinite(run.log_energy).all()
    n = 8
    alone = 1e4 - np.log(2e4) - np.log(n)  # tokens far apart: only the diagonal counts
    assert (
        float(run.log_energy[0]) == pytest.approx(alone, abs=1e-6)
        or float(run.log_energy[0]) > alone
    )


@pytest.mark.usefixtures("double")
def test_log_energy_is_a_number_for_every_beta_that_is_one():
    """log (e^beta / (2 beta)) at consensus."""
    x, w = jnp.ones((3, 1)), jnp.full(3, 1 / 3)
    for beta in (1e-300, 1.0, 1e308):
        found = float(Energy(beta=beta, log=True).measure(x, w))
        assert found == pytest.approx(beta - np.log(2) - np.log(beta), rel=1e-12)


def test_an_antipodal_pair_rests_for_every_beta():
    for beta in (0.0, 1.0, 30.0):
        run = flock.simulate(
            SelfAttention(beta=beta), Given([[1.0, 0.0], [-1.0, 0.0]]), t=5.0, frames=3
        )
        assert np.array_equal(run.x[-1], run.x[0])


@pytest.mark.slow
def test_one_token_rests():
    run = flock.simulate(SelfAttention(beta=3.0), Uniform(n=1, d=4), t=5.0, frames=3)
    assert np.abs(run.x[-1] - run.x[0]).max() < 1e-12


def test_tokens_that_coincide_stay_together():
    x = np.random.default_rng(0).normal(size=(6, 3))
    x[3] = x[0]
    run = flock.simulate(SelfAttention(beta=3.0), Given(x), t=5.0, frames=5)
    assert np.abs(run.x[:, 3] - run.x[:, 0]).max() < 1e-12


def test_weight_zero_is_absence():
    x = np.random.default_rng(0).normal(size=(6, 3))
    with_ghosts = flock.simulate(
        SelfAttention(beta=3.0), Given(x, w=[1, 1, 1, 1, 0, 0]), t=5.0, frames=5
    )
    alone = flock.simulate(SelfAttention(beta=3.0), Given(x[:4]), t=5.0, frames=5)
    assert np.abs(with_ghosts.x[:, :4] - alone.x.values).max() < 1e-8


@pytest.mark.slow
def test_a_thousand_dimensions():
    run = flock.simulate(SelfAttention(beta=1.0), Uniform(n=16, d=1000), t=20.0, frames=5)
    assert float((run.x[-1] @ run.x[-1].rename(particle="other")).min()) > 1 - 1e-6


def test_a_heavy_token_is_a_cluster():
    """Masses m_a: a token of weight 3/4 acts as three tokens of weight 1/4 at one place."""
    x = np.array([[1.0, 0.0], [0.3, 0.8]])
    heavy = flock.simulate(SelfAttention(beta=2.0), Given(x, w=[3, 1]), t=3.0, frames=4)
    many = flock.simulate(SelfAttention(beta=2.0), Given(x[[0, 0, 0, 1]]), t=3.0, frames=4)
    assert np.abs(heavy.x.values - many.x.values[:, [0, 3]]).max() < 1e-8


def test_blowing_up_is_an_error_that_names_the_remedy():
    with pytest.raises(flock.SimulationError, match="float64"):
        flock.simulate(
            Unnormalised(beta=200.0), Uniform(n=8, d=2), t=1.0, dtype="float32", solver=_layer()
        )


def _layer():
    from tokenflock.solvers import Layer

    return Layer(h=0.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dynamics": SelfAttention}, "law of motion"),
        ({"observe": ["energy"]}, "observe must be"),
        ({"seed": 1.5}, "seed"),
        ({"seed": 10**20}, "seed"),
    ],
)
def test_what_is_no_law_no_observable_or_no_seed_is_refused(options, words):
    given = {"dynamics": SelfAttention(), "start": Uniform(n=4, d=2)} | options
    for verb in (flock.simulate, flock.ensemble):
        with pytest.raises(flock.UserError, match=words):
            verb(**given)


def test_logits_beyond_the_numbers_are_an_error_and_never_a_standstill():
    from tokenflock.dynamics import PureAttention
    from tokenflock.solvers import RK4

    with pytest.raises(flock.SimulationError):
        flock.simulate(PureAttention(beta=5.0), Uniform(n=8, d=2), t=400.0, solver=RK4(h=0.05))


def test_rerun_brings_the_observables_back():
    run = flock.simulate(SelfAttention(), Uniform(n=4, d=2), t=1.0, frames=3, observe=[Energy()])
    assert np.array_equal(flock.rerun(run).energy, run.energy)
