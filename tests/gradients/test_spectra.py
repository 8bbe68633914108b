"""Jacobians, spectra and Lyapunov exponents against closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import NeuralODE, Noisy, PureAttention, SelfAttention, Unnormalised
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.engines import tangents
from tokenflock.events import Stationary
from tokenflock.solvers import RK4, Adaptive, Euler, EulerMaruyama, Layer
from tokenflock.spaces import Euclidean
from tokenflock.starts import Given, Polygon, Uniform
from tokenflock.theory import layer_terminal_rate, polygon_eigenvalue


def consensus(n, d):
    one = np.arange(1.0, d + 1)
    return np.tile(one / np.linalg.norm(one), (n, 1))


@pytest.mark.parametrize("law", [SelfAttention(beta=3.0), Unnormalised(beta=0.7)])
def test_consensus_contracts_at_one_rate_and_rotates_freely(law):
    """d - 1 rotations of all tokens, and (n - 1)(d - 1) contractions, whatever the weights."""
    rate = 1.0 if isinstance(law, SelfAttention) else np.exp(0.7)
    start = Given(consensus(4, 3), w=[1, 2, 3, 4])
    found = flock.spectrum(law, start)
    assert np.allclose(found.rate[:2], 0, atol=1e-12)
    assert np.allclose(found.rate[2:], -rate, atol=1e-12)
    assert found.moves < 1e-14
    turn = found.direction[:2].values  # all tokens move alike
    assert np.allclose(turn, turn[:, :1], atol=1e-10)
    mean = np.einsum("j,kja->ka", [0.1, 0.2, 0.3, 0.4], found.direction[2:].values)
    assert np.allclose(mean, 0, atol=1e-12)  # the mean stays


@pytest.mark.parametrize("unnormalised", [False, True])
def test_polygons_have_the_spectrum_of_theory(unnormalised):
    law = Unnormalised(beta=4.0) if unnormalised else SelfAttention(beta=4.0)
    found = flock.spectrum(law, Polygon(n=5))
    expected = sorted(-polygon_eigenvalue(np.arange(5), 5, 4.0, unnormalised))
    assert np.allclose(found.rate, -np.array(expected), atol=1e-6)  # corners are float32
    assert np.allclose(found.frequency, 0, atol=1e-6)


def test_a_layer_contracts_consensus_by_its_own_rate():
    found = flock.spectrum(SelfAttention(beta=2.0), consensus(3, 3), t=0.1, solver=Layer(h=0.1))
    assert np.allclose(found.rate[:2], 0, atol=1e-12)
    assert np.allclose(found.rate[2:], -layer_terminal_rate(0.1) / 2, atol=1e-12)


@pytest.mark.slow
def test_a_flow_has_the_rates_of_its_velocity_at_rest_and_a_chain_rule_elsewhere():
    law, x = SelfAttention(beta=1.0), np.random.default_rng(0).normal(size=(3, 3))
    rest = flock.spectrum(law, consensus(3, 3), t=0.5, solver=RK4(h=0.05))
    assert np.allclose(rest.rate[2:], -1, atol=1e-6)
    J = flock.jacobian(law, x, t=1.0, solver=RK4(h=0.05))
    middle = flock.simulate(law, x, t=0.5, solver=RK4(h=0.05), frames=2).x.values[-1]
    halves = [flock.jacobian(law, y, t=0.5, solver=RK4(h=0.05)) for y in (middle, x)]
    values = [np.linalg.svd(M, compute_uv=False) for M in (J, halves[0] @ halves[1])]
    assert np.allclose(*values, atol=1e-10)


def test_on_all_of_space_every_direction_counts():
    """dx/dt = tanh(A x) about 0: a spiral of rate -1 and frequency 2."""
    law = NeuralODE(W=np.eye(2), A=[[-1.0, -2.0], [2.0, -1.0]], activation="tanh")
    found = flock.spectrum(law, np.full((1, 2), 1e-12))
    assert np.allclose(found.rate, -1, atol=1e-9)
    assert np.allclose(sorted(found.frequency.values), [-2, 2], atol=1e-9)
    assert flock.jacobian(PureAttention(), np.eye(3)).shape == (9, 9)


def test_lyapunov_exponents_of_the_flow_are_those_of_consensus_where_it_ends():
    start = Given(np.random.default_rng(2).normal(size=(4, 3)) + np.eye(3)[0] * 3)
    found = flock.lyapunov(
        SelfAttention(beta=2.0), start, t=20, solver=RK4(h=0.1), settle=20, every=0.5
    )
    assert np.allclose(found.exponent[:2], 0, atol=1e-6)
    assert np.allclose(found.exponent[2:], -1, atol=1e-5)
    assert found.estimate.sizes == {"time": 40, "mode": 8}


def test_lyapunov_exponents_of_layers_and_of_the_first_few_only():
    done = []
    found = flock.lyapunov(
        SelfAttention(beta=2.0),
        consensus(3, 2),
        t=30,
        solver=Layer(h=0.1),
        exponents=2,
        progress=done.append,
    )
    expected = [0, -np.log(1.1) / 0.1]
    assert np.allclose(found.exponent, expected, atol=1e-6)
    assert done[-1] == 1 and len(done) >= 20


def test_common_brownian_motion_contracts_the_circle():
    """A token under noise alone, dx = P_x sqrt(2/kappa) dW: nearby ones meet at rate 1/kappa."""
    found = flock.lyapunov(
        Noisy(SelfAttention(beta=0.0), kappa=2.0),
        np.array([[1.0, 0.0]]),
        t=400,
        solver=EulerMaruyama(h=0.01),
    )
    assert abs(float(found.exponent[0]) + 1 / 2) < 3 / np.sqrt(400)


class Growing(MeanField):
    """dx/dt = (1 + t) c x, coordinate by coordinate, in all of space."""

    c = np.array([1.0, -0.5, 0.25])

    @property
    def space(self):
        return Euclidean()

    def field(self, t, q, x, w):
        return (1 + t) * self.c * q


def test_stretches_of_blocks_are_those_of_their_own_steps(double):
    """Euler's steps multiply a coordinate by 1 + h c (1 + t): of the blocks of two steps from the
    third step on, whatever the vectors, which are made orthonormal.
    """
    h, every, blocks, first = 0.1, 2, 3, 3
    x, w = jnp.asarray([[1.0, 2.0, -1.0]]), jnp.ones(1)
    vectors = jnp.asarray(np.eye(3)[:2, None])
    y, ends, grown = tangents.stretch(
        Growing(), Euler(h=h), x, w, vectors, jnp.asarray(first), jax.random.key(0), every, blocks
    )
    times = h * np.arange(first, first + every * blocks)
    factors = 1 + h * Growing.c * (1 + times)[:, None]
    logs = np.log(factors).reshape(blocks, every, 3).sum(axis=1)
    np.testing.assert_allclose(grown, logs[:, :2], atol=1e-12)
    np.testing.assert_allclose(y, x * factors.prod(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.abs(ends), np.eye(3)[:2, None], atol=1e-12)


def test_the_derivative_of_a_map_is_the_factor_of_its_steps(double):
    x, w, c = jnp.asarray([[1.0, 2.0, -1.0], [0.5, 0.2, 3.0]]), jnp.ones(2) / 2, Growing.c
    y, derivative = tangents.of_map(Growing(), Euler(h=0.1), x, w, 0.5, 5)
    factor = (1 + 0.1 * c * (1 + 0.1 * np.arange(5))[:, None]).prod(axis=0)
    np.testing.assert_allclose(y, x * factor, rtol=1e-12)
    both = np.einsum("ij,ab->iajb", np.eye(2), np.eye(3))
    np.testing.assert_allclose(derivative, both * factor[:, None, None], atol=1e-12)
    v, slope = tangents.of_velocity(Growing(), x, w, jnp.asarray(0.5))
    np.testing.assert_allclose(v, 1.5 * c * x, rtol=1e-12)
    np.testing.assert_allclose(slope, both * 1.5 * c[:, None, None], atol=1e-12)


def test_a_derivative_is_restricted_to_frames_before_and_after():
    rng = np.random.default_rng(0)
    M, before, after = (rng.normal(size=size) for size in ((2, 4, 2, 4), (2, 4, 3), (2, 4, 3)))
    found = tangents.restricted(M, before, after)
    assert found.shape == (6, 6)
    for i, j in np.ndindex(2, 2):
        block = after[i].T @ M[i, :, j] @ before[j]
        np.testing.assert_allclose(found[3 * i : 3 * i + 3, 3 * j : 3 * j + 3], block, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"t": 0.1, "solver": Layer(h=0.1)}])
def test_a_state_that_is_not_at_rest_is_warned_of(options, recwarn):
    law = SelfAttention(beta=1.0)
    with pytest.warns(RuntimeWarning, match=r"not at rest: tokens move .*Stationary.*lyapunov"):
        flock.spectrum(law, Uniform(n=4, d=2), **options)
    recwarn.clear()
    run = flock.simulate(law, Uniform(n=4, d=2), t=300, frames=2, until=Stationary(), seed=1)
    flock.spectrum(law, run.x.values[-1], **options)
    fast = Unnormalised(beta=30.0)  # whose clock makes rounding a speed of 1e-3
    flock.spectrum(fast, np.full((3, 2), np.sqrt(0.5)))
    assert not len(recwarn)


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(flock.UserError, match="fixed step"):
        flock.lyapunov(SelfAttention(), np.eye(2), solver=Adaptive())
    with pytest.raises(flock.UserError, match="at most 2"):
        flock.lyapunov(SelfAttention(), np.eye(2), exponents=3)
    with pytest.raises(flock.UserError, match="left out where t is"):
        flock.jacobian(SelfAttention(), np.eye(2), solver=Layer())
