"""A run as a function that can be differentiated: the numbers of `simulate`, exact derivatives, and
little memory.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Attention, MultiHead, Noisy, SelfAttention, Unnormalised
from tokenflock.solvers import RK4, Adaptive, EulerMaruyama, Layer
from tokenflock.starts import Given


def tokens(n, d, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def angle_of_two(phi0, t):
    """The angle of two tokens at beta = 0."""
    return 2 * np.arctan(np.tan(phi0 / 2) * np.exp(-t))


CASES = [
    (SelfAttention(beta=3.0), Layer(h=0.1)),
    (Unnormalised(beta=1.0), RK4(h=0.05)),
    (Noisy(Unnormalised(beta=1.0), kappa=5.0), EulerMaruyama(h=0.1)),
    (SelfAttention(beta=3.0), Adaptive(method="tsit5")),
]


@pytest.mark.parametrize(("law", "solver"), CASES, ids=["layer", "rk4", "noise", "adaptive"])
def test_it_ends_where_simulate_ends(law, solver, double):
    x, w = tokens(5, 3), np.array([1, 2, 3, 4, 5]) / 15
    run = flock.simulate(law, Given(x, w=w), t=1.3, frames=2, solver=solver, seed=4)
    noise = jax.random.split(jax.random.key(4))[1]
    y = flock.flow_map(law, 1.3, solver)(x, w, noise)
    assert np.abs(np.asarray(y) - run.x.values[-1]).max() < 1e-14


def test_the_number_of_steps_need_be_no_square(double):
    """Chunks of steps and what is left of them give the same as layers one by one."""
    law, x = SelfAttention(beta=2.0), tokens(4, 3)
    single = jax.jit(flock.flow_map(law, 0.1, Layer(h=0.1)))
    y = jnp.asarray(x)
    for steps in range(1, 13):
        y = single(y)
        if steps in (1, 2, 3, 5, 7, 12):
            many = flock.flow_map(law, 0.1 * steps, Layer(h=0.1))(x)
            assert jnp.abs(many - y).max() < 1e-14


@pytest.mark.parametrize(
    "solver",
    [RK4(h=0.02), pytest.param(Adaptive(method="tsit5"), marks=pytest.mark.slow)],
    ids=["rk4", "tsit5"],
)
def test_two_tokens_have_the_derivative_of_their_closed_form(solver, double):
    def angle(phi0):
        x = jnp.array([[1.0, 0.0], [jnp.cos(phi0), jnp.sin(phi0)]])
        y = flock.flow_map(SelfAttention(beta=0.0), 1.0, solver)(x)
        return jnp.arccos(y[0] @ y[1])

    value, slope = jax.jit(jax.value_and_grad(angle))(1.2)
    exact = np.exp(-1) / np.cos(0.6) ** 2 / (1 + (np.tan(0.6) * np.exp(-1)) ** 2)
    assert abs(value - angle_of_two(1.2, 1.0)) < 1e-8
    assert abs(slope - exact) < 1e-8


def test_gradients_are_finite_differences_for_tokens_weights_beta_and_matrices(double):
    rng = np.random.default_rng(1)
    x, w = tokens(4, 3), rng.uniform(0.5, 1, 4)
    start = {"x": x, "w": w / w.sum(), "beta": np.array(1.5)}
    start |= {name: np.eye(3) + 0.3 * rng.normal(size=(3, 3)) for name in "QKV"}
    aim = rng.normal(size=(4, 3))

    @jax.jit
    def loss(p):
        law = Attention(beta=p["beta"], Q=p["Q"], K=p["K"], V=p["V"])
        return jnp.sum(aim * flock.flow_map(law, 2.0, Layer(h=0.1))(p["x"], p["w"]))

    exact = jax.grad(loss)(start)
    assert all(np.abs(value).max() > 1e-3 for value in exact.values())
    for name, value in start.items():
        direction = rng.normal(size=value.shape)
        ends = [loss(start | {name: value + s * direction}) for s in (1e-5, -1e-5)]
        slope = (ends[0] - ends[1]) / 2e-5
        assert abs(jnp.sum(exact[name] * direction) - slope) < 1e-8, name


@pytest.mark.slow
def test_forwards_and_backwards_agree_alone_and_in_a_batch(double):
    law = MultiHead(V=np.stack([np.eye(3), np.diag([1.0, -1.0, 0.5])]))
    phi = flock.flow_map(law, 0.5, Layer(h=0.1))
    x = np.stack([tokens(3, 3, seed) for seed in (0, 1)])
    backwards = jax.jit(jax.vmap(jax.jacrev(phi)))(x)
    forwards = jax.jit(jax.vmap(jax.jacfwd(phi)))(x)
    assert jnp.abs(backwards - forwards).max() < 1e-13
    assert jnp.abs(forwards[0] - jax.jit(jax.jacfwd(phi))(x[0])).max() < 1e-13
    along = jnp.einsum("biajk,bjk->bia", forwards, x)  # moving all tokens along their normals
    assert jnp.abs(along).max() < 1e-13


def test_an_adaptive_solver_goes_forwards_when_asked(double):
    """d x(t) / dt is the velocity at the end."""
    law, x = SelfAttention(beta=2.0), tokens(3, 3)

    def end(t):
        return flock.flow_map(law, t, Adaptive(method="bosh3"), forward=True)(x)

    y, slope = jax.jvp(end, (1.0,), (1.0,))
    assert jnp.abs(slope - law.velocity(1.0, y, jnp.full(3, 1 / 3))).max() < 1e-7


def memory(checkpoint):
    """Bytes that the gradient through a thousand layers holds besides what goes in and out."""
    phi = flock.flow_map(SelfAttention(beta=1.0), 100.0, Layer(h=0.1), checkpoint=checkpoint)
    x = jax.ShapeDtypeStruct((64, 16), jnp.float64)
    compiled = jax.jit(jax.grad(lambda x: jnp.sum(phi(x) ** 3))).lower(x).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def test_a_thousand_layers_backwards_fit_into_little_memory(double):
    """Under 1 GB is the promise; about sqrt(1000) states are the reason."""
    assert memory(checkpoint=True) < 5e6
    assert memory(checkpoint=False) > 5e7


def test_wrong_inputs_are_refused():
    law = SelfAttention()
    with pytest.raises(flock.UserError, match="one weight for each"):
        flock.flow_map(law, 1.0, Layer())(tokens(3, 2), np.ones(2))
    with pytest.raises(flock.UserError, match="multiple of the step"):
        flock.flow_map(law, 1.05, Layer(h=0.1))(tokens(3, 2))
    with pytest.raises(flock.UserError, match="key of the noise"):
        flock.flow_map(Noisy(), 1.0, EulerMaruyama(h=0.1))(tokens(3, 2))
    with pytest.raises(flock.UserError, match="fixed steps"):
        flock.flow_map(law, 1.0, Layer(), forward=True)
    with pytest.raises(flock.UserError, match="tokens of shape"):
        flock.flow_map(law, 1.0, Layer())(np.ones(3))
