"""Energies: their values, gradients and Hessians, and the identities by which each gradient flow
dissipates them.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Burger, SelfAttention, Sinkhorn, Unnormalised
from tokenflock.dynamics.unnormalised import Clock
from tokenflock.observables import Convention, Dissipation, Energy
from tokenflock.precision import cast, precision
from tokenflock.solvers import RK4
from tokenflock.starts import Given, Uniform
from tokenflock.theory import interaction_curvature, sampled_energy, uniform_energy

pytestmark = pytest.mark.usefixtures("float64")

N, D = 7, 4
RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
W = RANDOM.uniform(0.2, 1.0, N)
W /= W.sum()
M = RANDOM.normal(size=(D, D))
M = (M + M.T) / 2
BETA = 1.7


def slow(value):
    return pytest.param(value, marks=pytest.mark.slow)


def kernel(x, beta):
    return np.exp(beta * x @ x.T)


# Each law with the positive factors that the theory puts before |dx_i/dt|^2, written out here
# on their own.
LAWS = {
    "SA": (SelfAttention(BETA), lambda x, w: w * (kernel(x, BETA) @ w)),
    "SA repulsive": (SelfAttention(BETA, repulsive=True), lambda x, w: -w * (kernel(x, BETA) @ w)),
    "USA": (Unnormalised(BETA), lambda x, w: w),
    "USA peak": (Unnormalised(BETA, Clock.PEAK), lambda x, w: w * np.exp(BETA)),
    "USA repulsive": (Unnormalised(BETA, repulsive=True), lambda x, w: -w),
    "USA peak repulsive": (
        Unnormalised(BETA, Clock.PEAK, repulsive=True),
        lambda x, w: -w * np.exp(BETA),
    ),
    "Burger": (Burger(M), lambda x, w: 2 * w),
    "Burger down": (Burger(M, ascend=False), lambda x, w: -2 * w),
    "Burger normalised": (
        Burger(M, normalised=True),
        lambda x, w: 2 * w * (np.exp(x @ M @ x.T) @ w),
    ),
    "Burger normalised down": (
        Burger(M, False, True),
        lambda x, w: -2 * w * (np.exp(x @ M @ x.T) @ w),
    ),
    "SA at beta = 0": (SelfAttention(0.0), lambda x, w: w),
    "USA at beta = 0": (Unnormalised(0.0), lambda x, w: w),
    "Sinkhorn": (Sinkhorn(BETA), lambda x, w: w),
    "Sinkhorn repulsive": (Sinkhorn(BETA, repulsive=True), lambda x, w: -w),
}


@eqx.filter_jit
def energy_rate(law, x, w):
    """(velocity, d energy / dt along it, gradient of the energy)."""
    v = law.velocity(jnp.zeros(()), x, w)
    return v, jax.jvp(lambda y: law.energy(y, w), (x,), (v,))[1], jax.grad(law.energy)(x, w)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_dissipation_identity_with_unequal_weights(name):
    law, factors = LAWS[name]
    v, rate, _ = energy_rate(cast(law, "float64"), jnp.asarray(X), jnp.asarray(W))
    expected = factors(X, W) @ (np.asarray(v) ** 2).sum(1)
    np.testing.assert_allclose(rate, expected, rtol=1e-8)
    np.testing.assert_allclose(
        Dissipation(law).measure(jnp.asarray(X), jnp.asarray(W)), expected, rtol=1e-8
    )
    assert np.sign(expected) == (1 if law.ascends else -1)


FOLLOWED = ("SA", "USA peak", "Burger normalised down")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name if name in FOLLOWED else slow(name) for name in LAWS])
def test_energy_of_a_simulated_run_changes_at_the_rate_of_its_dissipation(name):
    law, _ = LAWS[name]
    h = 0.004 * (np.exp(BETA) if "peak" in name else 1)
    run = flock.simulate(
        law, Given(X, W), t=6 * h, solver=RK4(h=h), frames=7, observe=[Dissipation()]
    )
    E = [float(law.energy(jnp.asarray(x), jnp.asarray(W))) for x in run.x.values]
    derivative = np.dot([-1 / 60, 3 / 20, -3 / 4, 0, 3 / 4, -3 / 20, 1 / 60], E) / h
    np.testing.assert_allclose(derivative, run.dissipation[3], rtol=1e-8)


@pytest.mark.slow
def test_energy_is_monotone_along_a_long_run():
    for law, sign in [(SelfAttention(4.0), 1), (SelfAttention(4.0, repulsive=True), -1)]:
        run = flock.simulate(
            law, Uniform(n=12, d=3), t=40.0, solver=RK4(h=0.05), frames=201, observe=[Energy()]
        )
        E = run.energy.values
        assert (sign * np.diff(E) >= -1e-12 * E[:-1]).all()
        assert sign * (E[-1] - E[0]) > 0.1 * E[0]


def test_unequal_weights_are_not_a_detail():
    """Had a law ignored the weights, the identities above would hold for equal ones only."""
    w = jnp.full(N, 1 / N)
    for law, _ in LAWS.values():
        assert (
            abs(law.energy(jnp.asarray(X), w) - law.energy(jnp.asarray(X), jnp.asarray(W))) > 1e-4
        )


def factor(convention, beta, n):
    """The factor before sum_ij w_i w_j e^{beta <x_i, x_j>} of each convention."""
    return {
        "PAPER": 1 / (2 * beta),
        "SUM": n**2 / (2 * beta),
        "METASTABLE": np.exp(-beta) / (2 * beta),
        "STAIRCASE": np.exp(-beta),
        "BURGER": 1.0,
        "NORMALISATION": -(n**2),
    }[convention.name]


@pytest.mark.parametrize("convention", list(Convention))
@pytest.mark.parametrize("beta", [-1.0, 0.5, 3.0])
def test_energy_conventions(convention, beta):
    """Two values of beta, so an energy that forgets beta, in the exponent or before it, cannot
    pass.
    """
    expected = factor(convention, beta, N) * (W @ kernel(X, beta) @ W)
    np.testing.assert_allclose(
        Energy(beta, convention).measure(jnp.asarray(X), jnp.asarray(W)), expected, rtol=1e-13
    )
    logs = Energy(beta, convention, log=True).measure(jnp.asarray(X), jnp.asarray(W))
    np.testing.assert_allclose(logs, np.log(abs(expected)), rtol=1e-12, atol=1e-13)
    consensus = Energy(beta, convention).measure(
        jnp.tile(jnp.asarray(X[:1]), (N, 1)), jnp.asarray(W)
    )
    np.testing.assert_allclose(consensus, factor(convention, beta, N) * np.exp(beta), rtol=1e-13)


def test_energy_of_the_laws():
    x, w = jnp.asarray(X), jnp.asarray(W)
    for beta in (-0.7, 0.4, 2.5):
        expected = (W @ kernel(X, beta) @ W) / (2 * beta)
        np.testing.assert_allclose(SelfAttention(beta).energy(x, w), expected, rtol=1e-13)
        np.testing.assert_allclose(Unnormalised(beta).energy(x, w), expected, rtol=1e-13)
        np.testing.assert_allclose(
            Unnormalised(beta, Clock.PEAK).energy(x, w), expected, rtol=1e-13
        )
    np.testing.assert_allclose(Burger(M).energy(x, w), W @ np.exp(X @ M @ X.T) @ W, rtol=1e-13)
    flat = SelfAttention(0.0).energy(x, w)
    # (K/2) r^2 at K = 1
    np.testing.assert_allclose(flat, 0.5 * ((W @ X) ** 2).sum(), rtol=1e-13)


def test_log_energy_survives_any_beta():
    x, w = jnp.asarray(X), jnp.asarray(W)
    top = np.log((W**2).sum())  # at beta -> infinity only the diagonal counts
    np.testing.assert_allclose(
        Energy(5e4, Convention.STAIRCASE, log=True).measure(x, w), top, rtol=1e-10
    )


def tangent(x, v):
    return v - (v * x).sum(1, keepdims=True) * x


@pytest.mark.parametrize("convention", list(Convention))
def test_gradient_of_every_energy(convention):
    """Lemma 3.6: grad_i E = 2 beta factor w_i P_{x_i} sum_j w_j e^{beta <x_i, x_j>} x_j."""
    beta = 1.3
    measured = jax.jit(jax.grad(lambda x: Energy(beta, convention).measure(x, jnp.asarray(W))))
    gradient = measured(jnp.asarray(X))
    expected = (
        2 * beta * factor(convention, beta, N) * W[:, None] * (kernel(X, beta) @ (W[:, None] * X))
    )
    np.testing.assert_allclose(
        tangent(X, np.asarray(gradient)), tangent(X, expected), rtol=1e-10, atol=1e-14
    )


@pytest.mark.parametrize("name", LAWS)
def test_velocity_is_gradient_over_metric(name):
    """Token by token: stronger than the dissipation identity, which only sees one direction."""
    law, factors = LAWS[name]
    v, _, gradient = energy_rate(cast(law, "float64"), jnp.asarray(X), jnp.asarray(W))
    np.testing.assert_allclose(
        tangent(X, np.asarray(gradient)), factors(X, W)[:, None] * v, rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("beta", [0.5, 2.0, 6.0])
def test_hessian_on_the_circle(beta):
    """Thm 5.1: w_i w_j g(theta_i - theta_j) off the diagonal, minus the row sum on it, g = (cos -
    beta sin^2) e^{beta cos}.
    """
    theta = np.random.default_rng(3).uniform(0, 2 * np.pi, N)
    hessian = np.asarray(circle_hessian(jnp.asarray(theta), jnp.asarray(W), jnp.asarray(beta)))
    gap = theta[:, None] - theta
    g = (np.cos(gap) - beta * np.sin(gap) ** 2) * np.exp(beta * np.cos(gap))
    np.testing.assert_allclose(interaction_curvature(gap, beta), g, rtol=1e-12, atol=1e-14)
    expected = np.outer(W, W) * g
    np.fill_diagonal(expected, 0)
    np.fill_diagonal(expected, -expected.sum(1))
    np.testing.assert_allclose(hessian, expected, rtol=1e-10, atol=1e-11)
    # the derivative of sin alone, as if e^{beta cos} were constant
    wrong = np.cos(gap) * np.exp(beta * np.cos(gap))
    assert np.abs(np.outer(W, W) * (wrong - g)).max() > 1e-3


@jax.jit
def circle_hessian(theta, w, beta):
    def E(angle):
        x = jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1)
        return SelfAttention(beta).energy(x, w)

    return jax.hessian(E)(theta)


def test_hessian_of_the_burger_energy_on_the_circle():
    """Block rotations of p delta_{e1} + (1-p) delta_{-e1}: a 2 x 2 Hessian."""
    l1, l2, p = 1.4, 0.6, 0.3
    law = Burger(np.diag([l1, l2]))

    def E(angle):
        return law.energy(jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1), jnp.array([p, 1 - p]))

    a, b, c = (l1 - l2) * np.exp(l1), l1 * np.exp(-l1), l2 * np.exp(-l1)
    off = -2 * p * (1 - p) * c
    expected = [[-2 * p * (p * a - (1 - p) * b), off], [off, -2 * (1 - p) * ((1 - p) * a - p * b)]]
    np.testing.assert_allclose(
        jax.jit(jax.hessian(E))(jnp.array([0.0, np.pi])), expected, rtol=1e-10
    )


@pytest.mark.slow
def test_second_variation_in_any_dimension():
    """x_0 on a great circle with direction u, the rest fixed: d^2E/dt^2 = w_0 sum_j w_j e^{beta c}
    (beta <u, x_j>^2 - c).
    """
    beta, u = 1.9, tangent(X[:1], RANDOM.normal(size=(1, D)))[0]
    u /= np.linalg.norm(u)

    def E(t):
        moved = jnp.asarray(X).at[0].set(jnp.cos(t) * X[0] + jnp.sin(t) * u)
        return SelfAttention(beta).energy(moved, jnp.asarray(W))

    c, s = X[1:] @ X[0], X[1:] @ u
    expected = W[0] * (W[1:] * np.exp(beta * c) * (beta * s**2 - c)).sum()
    np.testing.assert_allclose(jax.grad(jax.grad(E))(0.0), expected, rtol=1e-10)


def test_field_is_gradient_of_log_partition_function():
    """Erratum 3: X[mu] = beta^{-1} grad log Z; the printed (3.7) is beta times too large."""
    beta, q = 2.3, jnp.asarray(RANDOM.normal(size=(3, D)))
    q = q / jnp.linalg.norm(q, axis=1, keepdims=True)
    field = SelfAttention(beta).field(jnp.zeros(()), q, jnp.asarray(X), jnp.asarray(W))
    logs = jax.vmap(
        jax.grad(lambda p: jnp.log(jnp.asarray(W) @ jnp.exp(beta * jnp.asarray(X) @ p)))
    )(q)
    q = np.asarray(q)
    np.testing.assert_allclose(
        tangent(q, np.asarray(field)), tangent(q, np.asarray(logs)) / beta, rtol=1e-10
    )


@pytest.mark.parametrize(
    ("d", "beta", "printed"),
    [(2, 0.5, 1.0634833707), (3, 4.0, 0.8528099124), (16, 9.0, 0.5322741027)],
)
def test_energy_of_uniform_tokens(d, beta, printed):
    """By Monte Carlo the mean over 24 draws of 400 tokens lies within four standard errors of
    the closed form.
    """
    n = 400
    np.testing.assert_allclose(uniform_energy(beta, d), printed, rtol=1e-9)
    with precision("float32"):
        draws = np.stack(
            [np.asarray(Uniform(n=n, d=d).draw(jax.random.key(seed))) for seed in range(24)]
        )
    E = jax.lax.map(
        lambda x: Energy(beta).measure(x, jnp.full(n, 1 / n)), jnp.asarray(draws.astype(float))
    )
    error = np.std(E, ddof=1) / np.sqrt(len(E))
    assert error < 0.03 * printed
    assert abs(np.mean(E) - sampled_energy(n, beta, d)) < 4 * error
    assert float(np.min(E)) > printed  # Prop 3.4: the uniform measure alone is the minimiser


def polytope_energies(beta):
    """In the 1/(2 beta n^2) convention."""
    e, r = np.exp, np.sqrt(5)
    return {
        4: (4 * e(beta) + 12 * e(-beta / 3)) / (2 * beta * 16),
        6: (e(beta) + 4 + e(-beta)) / (2 * beta * 6),
        12: (e(beta) + 5 * e(beta / r) + 5 * e(-beta / r) + e(-beta)) / (2 * beta * 12),
    }


@pytest.mark.parametrize("n", [slow(4), 6, 12])
def test_repulsion_finds_the_sharp_configurations(n):
    """Simplex, cross-polytope and icosahedron (V = -I, d = 3, beta = 2), by USA."""
    run = flock.simulate(
        Unnormalised(2.0, repulsive=True),
        Uniform(n=n, d=3),
        t=400.0,
        solver=RK4(h=0.05),
        frames=2,
        observe=[Energy()],
    )
    np.testing.assert_allclose(run.energy[-1], polytope_energies(2.0)[n], rtol=1e-9)
    assert run.energy[0] > 1.01 * polytope_energies(2.0)[n]
