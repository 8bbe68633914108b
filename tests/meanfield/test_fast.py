"""Fast sums: the same field and energy as the direct sum."""

from __future__ import annotations

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import spherical_in

import tokenflock as flock
from tokenflock.dynamics import Clock, Fast, SelfAttention, Sinkhorn, Unnormalised
from tokenflock.dynamics._harmonics import degrees
from tokenflock.errors import UserError
from tokenflock.observables import Energy, FlowEnergy
from tokenflock.starts import Uniform
from tokenflock.theory import log_kernel_eigenvalue, uniform_energy


def system(n: int, d: int, spread: float = np.inf):
    """Weighted tokens, all over the sphere or close to one point."""
    random = np.random.default_rng(1)
    x = random.normal(size=(n, d)) + (0 if np.isinf(spread) else np.eye(d)[0] / spread)
    w = random.uniform(size=n)
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True)), jnp.asarray(w / w.sum())


@pytest.mark.slow
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("spread", [np.inf, 0.1])
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("beta", [0.0, -2.0, 4.0, 100.0])
def test_fast_sums_are_the_direct_sums(beta, d, spread):
    x, w = system(1500, d, spread)  # more than one block
    for base in (
        SelfAttention(beta),
        SelfAttention(beta, repulsive=True),
        Unnormalised(beta),
        Unnormalised(beta, Clock.PEAK),
    ):
        force = base.force(0.0, x, w)
        assert abs(Fast(base).force(0.0, x, w) - force).max() < 1e-10 * abs(force).max()
        assert float(Fast(base).energy(x, w)) == pytest.approx(float(base.energy(x, w)), rel=1e-10)


@pytest.mark.slow
@pytest.mark.usefixtures("double")
def test_a_light_token_far_from_the_others_is_still_moved_rightly():
    x, w = system(1000, 2, 0.1)
    x, w = x.at[0].set(jnp.array([-0.9, np.sqrt(0.19)])), w.at[0].set(1e-6)
    direct = SelfAttention(30.0).velocity(0.0, x, w)
    assert abs(Fast(SelfAttention(30.0)).velocity(0.0, x, w) - direct).max() < 1e-10


@pytest.mark.slow
@pytest.mark.usefixtures("double")
def test_the_order_follows_beta_and_the_tolerance():
    orders = [Fast(SelfAttention(beta)).order for beta in (0.1, 1.0, 10.0, 100.0, 1000.0)]
    assert orders == sorted(set(orders))
    x, w = system(300, 2)
    exact = SelfAttention(9.0).force(0.0, x, w)
    errors = [
        abs(Fast(SelfAttention(9.0), tolerance=tol).force(0.0, x, w) - exact).max()
        for tol in (1e-3, 1e-6, 1e-9)
    ]
    assert all(error < 10 * tol for error, tol in zip(errors, (1e-3, 1e-6, 1e-9)))
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.usefixtures("double")
def test_a_beta_beyond_the_order_is_nan_and_never_wrong():
    x, w = system(10, 2)
    assert bool(jnp.isnan(Fast(SelfAttention(50.0), order=10).force(0.0, x, w)).all())


@pytest.mark.usefixtures("double")
def test_memory_grows_like_n():
    def scratch(n):
        x, w = jax.ShapeDtypeStruct((n, 2), jnp.float64), jax.ShapeDtypeStruct((n,), jnp.float64)
        compiled = (
            jax.jit(lambda x, w: Fast(SelfAttention(4.0)).velocity(0.0, x, w)).lower(x, w).compile()
        )
        return compiled.memory_analysis().temp_size_in_bytes

    assert scratch(1_000_000) < 300e6


@pytest.mark.slow
def test_simulate_runs_on_fast_sums():
    base, start = SelfAttention(beta=4.0), Uniform(n=40, d=2)
    slow = flock.simulate(base, start, t=3.0, frames=4, observe=[Energy()])
    fast = flock.simulate(Fast(base), start, t=3.0, frames=4, observe=[FlowEnergy(), Energy()])
    assert abs(slow.x - fast.x).max() < 1e-8
    np.testing.assert_allclose(fast.flow_energy, slow.energy, rtol=1e-8)
    np.testing.assert_allclose(fast.energy, slow.energy, rtol=1e-8)


@pytest.mark.slow
def test_a_hundred_thousand_tokens_on_the_circle_have_nearly_the_energy_of_the_uniform_measure():
    run = flock.simulate(
        Fast(SelfAttention(4.0)), Uniform(n=100_000, d=2), t=0.1, frames=2, observe=[FlowEnergy()]
    )
    assert float(run.flow_energy[0]) == pytest.approx(uniform_energy(4.0, 2), rel=1e-3)
    assert run.flow_energy[1] > run.flow_energy[0]


def test_other_dimensions_and_laws_are_refused_with_a_way_out():
    with pytest.raises(flock.UserError, match="Streamed"):
        flock.simulate(Fast(), Uniform(n=8, d=4), t=1.0)
    with pytest.raises(flock.UserError, match="Streamed"):
        Fast(Sinkhorn())
    with pytest.raises(flock.UserError, match="tolerance"):
        Fast(tolerance=0.0)
    with pytest.raises(flock.UserError, match="tolerance"):
        Fast(tolerance=0.9e-30)
    assert Fast(tolerance=1e-30).tolerance == 1e-30


@pytest.mark.usefixtures("double")
def test_a_beta_that_the_order_does_not_serve_gives_no_number():
    """On S^2 the first term that is left out weighs (2 l + 1) i_l(beta) / i_0(beta), l = order + 1:
    up to ten times the tolerance it may be, and no more.
    """
    order, tolerance = 10, 1e-6
    x, w = system(5, 3)

    def left_out(beta):
        l = order + 1
        return (2 * l + 1) * spherical_in(l, beta) / spherical_in(0, beta) / tolerance

    for share, served in ((9.0, True), (11.0, False)):
        beta = brentq(lambda beta, share=share: left_out(beta) - share, 0.1, 50.0)
        law = Fast(SelfAttention(beta=beta), tolerance=tolerance, order=order)
        assert bool(jnp.isfinite(law.velocity(0.0, x, w)).all()) == served


@pytest.mark.parametrize("beta", [1.0, 4.0, 1e4, 5e4, -1e4])
@pytest.mark.parametrize("tolerance", [1e-8, 1e-16, 1e-30])
def test_the_degrees_that_are_left_out_weigh_less_than_the_tolerance_and_the_last_kept_more(
    beta, tolerance
):
    last, l = degrees(beta, tolerance), np.arange(20_000)
    share = np.exp(log_kernel_eigenvalue(l, beta, 3) - log_kernel_eigenvalue(0, beta, 3))
    terms = (2 * l + 1) * share
    assert terms[last + 1 :].sum() <= tolerance < terms[last:].sum()


@pytest.mark.parametrize("beta", [1e10, 1e12, 1e20, 1e300])
def test_a_beta_of_too_many_degrees_is_refused_without_counting_them(beta):
    tracemalloc.start()
    with pytest.raises(UserError, match="order must be from 1 to 100,000"):
        Fast(SelfAttention(beta=beta))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 300e6, most


def test_finding_the_degrees_holds_as_many_terms_as_count():
    tracemalloc.start()
    degrees(1e6, 1e-16)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20e6, most
