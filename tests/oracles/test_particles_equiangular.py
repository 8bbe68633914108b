"""Equiangular tokens: one scalar equation for the flow, one recursion for layers, one table for
normalisation schemes.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import (
    NGPT,
    Attention,
    MixNorm,
    PeriNorm,
    PostNorm,
    PreNorm,
    SelfAttention,
    SqrtNorm,
    Unnormalised,
)
from tokenflock.observables import Radius
from tokenflock.precision import cast
from tokenflock.solvers import RK4, Adaptive, Layer
from tokenflock.starts import Equiangular, Orthogonal, Scaled
from tokenflock.theory import equiangular_cosine, initial_speed, layer_cosines, normalised_flow

pytestmark = pytest.mark.usefixtures("float64")

TIGHT = Adaptive(rtol=1e-12, atol=1e-14)


def off_diagonal(x):
    """The cosines of all pairs, (time, pairs)."""
    u = x / np.linalg.norm(x, axis=-1, keepdims=True)
    gram = u @ np.swapaxes(u, -1, -2)
    return gram[..., ~np.eye(x.shape[-2], dtype=bool)]


def recursion(rho, n, beta, h, layers):
    """F3b as printed."""
    for _ in range(layers):
        Z = np.exp(beta) + (n - 1) * np.exp(beta * rho)
        a, c = 1 + h * np.exp(beta) / Z, h * np.exp(beta * rho) / Z
        above = (
            a**2 * rho
            + 2 * a * c * (1 + (n - 2) * rho)
            + c**2 * ((n - 2) + ((n - 1) ** 2 - (n - 2)) * rho)
        )
        rho = above / (a**2 + 2 * a * c * (n - 1) * rho + c**2 * (n - 1) * (1 + (n - 2) * rho))
    return rho


@pytest.mark.parametrize(
    ("beta", "layers", "printed"),
    [(1.0, 10, 0.137887159767), (4.0, 50, 0.906724703802), (4.0, 80, 0.999658064773)],
)
def test_layers_follow_the_recursion(beta, layers, printed):
    run = flock.simulate(
        SelfAttention(beta), Orthogonal(n=32, d=32), t=layers / 10, frames=2, solver=Layer(h=0.1)
    )
    found = off_diagonal(run.x.values[-1])
    np.testing.assert_allclose(found, recursion(0.0, 32, beta, 0.1, layers), atol=1e-13, rtol=0)
    np.testing.assert_allclose(found, printed, atol=1e-12, rtol=0)
    np.testing.assert_allclose(layer_cosines(layers, 32, beta), printed, atol=1e-12, rtol=0)
    assert run.layer.values[-1] == layers


@pytest.mark.parametrize(("rho", "h"), [(-0.12, 0.1), (0.4, 0.7)])
def test_layers_from_any_equiangular_start(rho, h):
    run = flock.simulate(
        SelfAttention(2.0), Equiangular(n=8, d=8, rho=rho), t=9 * h, frames=10, solver=Layer(h=h)
    )
    expected = [recursion(rho, 8, 2.0, h, k) for k in range(10)]
    np.testing.assert_allclose(
        off_diagonal(run.x.values), np.array(expected)[:, None] + np.zeros(56), atol=1e-13, rtol=0
    )


@pytest.mark.parametrize(
    ("law", "table"),
    [
        (SelfAttention(1.0), {1: 0.151849335544, 2: 0.589772822900, 5: 0.998284248622}),
        (Unnormalised(1.0), {1: 0.189942113749, 2.89704862: 0.999, 5: None}),
    ],
)
def test_orthogonal_tokens_follow_the_scalar_equation(law, table):
    """Theorem 6.8, n = 32: all 496 cosines are one number, the solution of (6.9) or (6.10)."""
    run = flock.simulate(law, Orthogonal(n=32, d=32), times=list(table), solver=TIGHT)
    for frame, (t, printed) in enumerate(table.items(), start=1):
        found = off_diagonal(run.x.values[frame])
        expected = equiangular_cosine(t, 32, 1.0, unnormalised=isinstance(law, Unnormalised))
        np.testing.assert_allclose(found, expected, atol=1e-9, rtol=0)
        if printed:
            np.testing.assert_allclose(found, printed, atol=1e-9, rtol=0)


def test_equiangular_flow_at_beta_zero():
    n, t = 12, np.linspace(0, 3, 7)
    run = flock.simulate(
        SelfAttention(0.0), Orthogonal(n=n, d=15), t=3.0, frames=7, solver=RK4(h=0.01)
    )
    expected = (np.exp(2 * t) - 1) / (np.exp(2 * t) + n - 1)
    np.testing.assert_allclose(
        off_diagonal(run.x.values).T, np.tile(expected, (n * (n - 1), 1)), atol=1e-9, rtol=0
    )


@pytest.mark.parametrize("rho", [-0.19, -0.05, 0.5])
def test_flow_from_any_equiangular_start(rho):
    """From just above the simplex (-1/5) as well: the same equation, with a long wait near the
    unstable point.
    """
    for law, unnormalised in ((SelfAttention(2.5), False), (Unnormalised(2.5), True)):
        run = flock.simulate(
            law, Equiangular(n=6, d=6, rho=rho), t=4.0, frames=5, solver=RK4(h=0.0025)
        )
        expected = equiangular_cosine(run.time.values, 6, 2.5, rho, unnormalised)
        np.testing.assert_allclose(
            off_diagonal(run.x.values), np.tile(expected, (30, 1)).T, atol=1e-9, rtol=0
        )


def test_simplex_is_stationary():
    run = flock.simulate(
        SelfAttention(2.0), Equiangular(n=6, d=5, rho=-1 / 5), t=1.0, frames=2, solver=RK4(h=0.1)
    )
    np.testing.assert_allclose(run.x[-1], run.x[0], atol=1e-13)


# arXiv 2510.22026: n = 256, beta = 5, r_0 = 1 at t = 1, 5, 10, 20.
NORMALISATION = [
    pytest.param(
        PostNorm(5.0), [0.0100193231, 0.9117764300, 0.9999955999, 1.0], 1.0, marks=pytest.mark.slow
    ),
    (PreNorm(5.0), [0.0076229833, 0.1537910093, 0.6886033688, 0.9571294732], 13.94064787),
]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "rho", "radius"), NORMALISATION)
def test_normalisation_table(law, rho, radius):
    run = flock.simulate(
        law,
        Orthogonal(n=256, d=256),
        times=[1, 5, 10, 20],
        solver=Adaptive(rtol=1e-10),
        observe=[Radius()],
    )
    np.testing.assert_allclose(
        off_diagonal(run.x.values)[1:].T, np.tile(rho, (256 * 255, 1)), atol=1e-8, rtol=0
    )
    np.testing.assert_allclose(run.radius[-1], radius, rtol=1e-8)


# The scheme of each law in `theory.normalised_flow`; the radius at which it starts.
SCHEMES = [
    (PostNorm(2.0), "post", 1.0),
    (PreNorm(2.0), "pre", 1.7),
    (MixNorm(2.0, tau=1.0), "mix", 1.0),
    (PeriNorm(2.0), "peri", 1.7),
    (NGPT(2.0, alpha=0.4), "ngpt", 1.0),
    (SqrtNorm(2.0), "sqrt", 1.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "scheme", "r0"), SCHEMES)
def test_every_normalisation_scheme_follows_its_equation(law, scheme, r0):
    """From an equiangular start; cosine and radius together."""
    start = Scaled(Equiangular(n=8, d=8, rho=0.1), radius=r0)
    # a fixed step loses its order at the switch
    solver = RK4(h=0.01) if scheme != "mix" else Adaptive(rtol=1e-10)
    run = flock.simulate(law, start, t=6.0, frames=7, solver=solver, observe=[Radius()])
    expected = normalised_flow(
        run.time.values, 8, 2.0, scheme, r0=r0, rho0=0.1, alpha=0.4, switch=1.0
    )
    np.testing.assert_allclose(
        off_diagonal(run.x.values), np.tile(expected.rho, (56, 1)).T, atol=1e-8, rtol=0
    )
    np.testing.assert_allclose(run.radius, np.tile(expected.r, (8, 1)).T, rtol=1e-8)


def cosine_speed(law, x):
    """d cosine(y_0, y_1)/dt and d|y_0|/dt under a law, from its velocity."""
    y = jnp.asarray(x)
    v = np.asarray(cast(law, "float64").velocity(jnp.zeros(()), y, jnp.full(len(x), 1 / len(x))))
    r = np.linalg.norm(x, axis=1, keepdims=True)
    u = x / r
    turn = (v - (v * u).sum(1, keepdims=True) * u) / r
    return turn[0] @ u[1] + u[0] @ turn[1], v[0] @ u[0]


@pytest.mark.slow
def test_initial_speeds_of_the_schemes():
    """At rho = 0, n = 40, beta = 3."""
    n, beta, r0, alpha = 40, 3.0, 2.5, 0.2
    soft, hard = 2 / (np.exp(beta) + n - 1), 2 / np.sqrt(np.exp(2 * beta) + n - 1)
    expected = {
        PostNorm(beta): soft,
        MixNorm(beta): soft,
        SqrtNorm(beta): soft,
        NGPT(beta, alpha=alpha): alpha * hard,
        PreNorm(beta): soft / r0,
        PeriNorm(beta): hard / r0,
    }
    for law, speed in expected.items():
        scale = r0 if isinstance(law, (PreNorm, PeriNorm)) else 1.0
        np.testing.assert_allclose(cosine_speed(law, scale * np.eye(n))[0], speed, rtol=1e-12)
    radial = cosine_speed(PreNorm(beta), r0 * np.eye(n))[1]
    np.testing.assert_allclose(radial, np.exp(beta) / (np.exp(beta) + n - 1), rtol=1e-12)
    np.testing.assert_allclose(initial_speed(n, beta, "peri", r0), hard / r0, rtol=1e-12)


@pytest.mark.parametrize(("law", "exponent"), [(PreNorm(5.0), -2.0337), (PeriNorm(5.0), -2.0042)])
def test_terminal_exponent_of_pre_and_peri_norm(law, exponent):
    """1 - rho ~ t^-2 under Pre-LN and Peri-LN, local exponents at t = 400 for n = 256
    (equiangular, so any n serves).
    """
    scheme = "pre" if isinstance(law, PreNorm) else "peri"
    theory = normalised_flow(np.array([396.0, 404.0]), 256, 5.0, scheme).rho
    local = np.diff(np.log(1 - theory)) / np.diff(np.log([396.0, 404.0]))
    np.testing.assert_allclose(local, exponent, atol=1e-3)
    run = flock.simulate(
        law, Equiangular(n=6, d=6, rho=0.2), t=404.0, times=[396.0, 404.0], solver=RK4(h=0.1)
    )
    rho = off_diagonal(run.x.values[1:]).mean(1)
    found = np.diff(np.log(1 - rho)) / np.diff(np.log([396.0, 404.0]))
    np.testing.assert_allclose(found, -2, atol=0.05)


@pytest.mark.parametrize(
    ("n", "printed"), [(100, 0.6379501414), pytest.param(400, None, marks=pytest.mark.slow)]
)
def test_one_attention_layer_at_critical_scaling(n, printed):
    """At beta = gamma log n the outputs of equiangular tokens have one cosine, known exactly
    for every n.
    """
    rho = 0.3
    x = jnp.asarray(Equiangular(n=n, d=n, rho=rho).draw(None))
    for gamma in (0.8, 1 / (1 - rho), 2.5):
        a = 1 / (1 + (n - 1) * n ** (gamma * (rho - 1)))
        b = (1 - a) / (n - 1)
        above, below = (
            (1 - rho) * (2 * a * b + (n - 2) * b**2) + rho,
            (1 - rho) * (a**2 + (n - 1) * b**2) + rho,
        )
        for law in (SelfAttention(gamma * np.log(n)), Attention(gamma * np.log(n))):
            output = np.asarray(law.force(jnp.zeros(()), x, jnp.full(n, 1 / n)))
            np.testing.assert_allclose(off_diagonal(output), above / below, atol=1e-10, rtol=0)
        if printed and gamma == 1 / (1 - rho):
            np.testing.assert_allclose(above / below, printed, atol=1e-10)


@pytest.mark.parametrize(
    ("start", "rho"),
    [
        (Orthogonal(n=5, d=9), 0.0),
        (Equiangular(n=5, d=7, rho=-0.2), -0.2),
        (Equiangular(n=5, rho=0.9), 0.9),
    ],
)
def test_starts_have_the_gram_matrix_that_they_promise(start, rho):
    x = np.asarray(start.draw(None))
    assert x.shape == start.shape
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(off_diagonal(x), rho, atol=1e-14)
