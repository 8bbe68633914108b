"""Every law beside the formula in its docstring, written out with NumPy at generic tokens, weights,
matrices and times.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import norm

from tokenflock.dynamics import (
    Attention,
    Burger,
    Causal,
    CausalBias,
    Clock,
    FeedForward,
    Hardmax,
    Kuramoto,
    MultiHead,
    NeuralODE,
    Noisy,
    PureAttention,
    RescaledAttention,
    SelfAttention,
    Sinkhorn,
    Streamed,
    Unnormalised,
)
from tokenflock.dynamics._matrices import Switching
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.errors import UserError
from tokenflock.spaces import Sphere

pytestmark = pytest.mark.usefixtures("double")

RANDOM = np.random.default_rng(11)
N, D, T = 6, 3, 0.4
Q, K = RANDOM.normal(size=(2, 2, D))
V, A, S = RANDOM.normal(size=(3, D, D))
S = (S + S.T) / 2
W = RANDOM.uniform(0.2, 2.0, size=N)
W /= W.sum()
X = RANDOM.normal(size=(N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Z = 1.7 * RANDOM.normal(size=(N, D))  # tokens of R^d
IN, OUT, BIAS = RANDOM.normal(size=(5, D)), RANDOM.normal(size=(D, 5)), RANDOM.normal(size=5)
C = X @ X.T
I = np.eye(D)


def tangent(a, x=X):
    return a - (a * x).sum(axis=1, keepdims=True) * x


def rows(E, w=W):
    """w_j E_ij / sum_k w_k E_ik."""
    return w * E / (w * E).sum(axis=1, keepdims=True)


def hidden(kind, x):
    y = x @ IN.T + BIAS
    return {"relu": np.maximum(y, 0), "tanh": np.tanh(y)}[kind] @ OUT.T


def past(beta, slope):
    """The bias of ALiBi, by loops."""
    a = np.zeros((N, N))
    for j in range(1, N):
        shares = np.array([W[k] * np.exp(-slope / N * (j - k)) for k in range(j)])
        a[j, :j] = shares / shares.sum()
    return a * beta * np.exp(beta * C)


def doubly(beta):
    """e^{f_i + f_j + beta <x_i, x_j>} whose rows sum to one, by SciPy-free iteration."""
    f = np.zeros(N)
    for _ in range(2000):
        f = 0.5 * (f - np.log((W * np.exp(beta * C + f)).sum(axis=1)))
    return W * np.exp(beta * C + f[:, None] + f)


def best(z):
    """Row i: the tokens that i likes best, by their weights."""
    scores = (z @ Q.T) @ (z @ K.T).T
    return rows((scores >= scores.max(axis=1, keepdims=True) - 1e-9).astype(float))


SPHERE = {
    "SA": (SelfAttention(beta=1.7), tangent(rows(np.exp(1.7 * C)) @ X)),
    "repulsive SA": (
        SelfAttention(beta=1.7, repulsive=True),
        -tangent(rows(np.exp(1.7 * C)) @ X),
    ),
    "USA": (Unnormalised(beta=1.7), tangent((W * np.exp(1.7 * C)) @ X)),
    "USA, peak": (
        Unnormalised(beta=1.7, clock=Clock.PEAK),
        tangent((W * np.exp(1.7 * (C - 1))) @ X),
    ),
    "repulsive USA": (
        Unnormalised(beta=1.7, repulsive=True),
        -tangent((W * np.exp(1.7 * C)) @ X),
    ),
    "attention": (
        Attention(beta=1.7, Q=Q, K=K, V=V),
        tangent(rows(np.exp(1.7 * (X @ Q.T) @ (X @ K.T).T)) @ X @ V.T),
    ),
    "unnormalised attention": (
        Attention(beta=0.7, Q=Q, K=K, V=V, normalised=False),
        tangent((W * np.exp(0.7 * (X @ Q.T) @ (X @ K.T).T)) @ X @ V.T),
    ),
    "attention with a number": (
        Attention(beta=1.7, Q=0.5, V=-2.0),
        tangent(rows(np.exp(0.85 * C)) @ X) * -2,
    ),
    "causal": (
        Causal(beta=1.7, Q=Q, K=K, V=V),
        tangent(rows(np.tril(np.exp(1.7 * (X @ Q.T) @ (X @ K.T).T))) @ X @ V.T),
    ),
    "causal bias": (CausalBias(beta=1.7, slope=2.5), tangent(past(1.7, 2.5) @ X)),
    "up the energy of a matrix": (Burger(D=S), tangent((W * np.exp(X @ S @ X.T)) @ X @ S)),
    "down the energy of a matrix": (
        Burger(D=S, ascend=False),
        -tangent((W * np.exp(X @ S @ X.T)) @ X @ S),
    ),
    "normalised energy of a matrix": (
        Burger(D=S, normalised=True),
        tangent(rows(np.exp(X @ S @ X.T)) @ X @ S),
    ),
    "doubly stochastic": (Sinkhorn(beta=1.7), tangent(doubly(1.7) @ X)),
    "attention and a perceptron": (
        FeedForward(NeuralODE(W=OUT, A=IN, b=BIAS), SelfAttention(beta=1.7)),
        tangent(rows(np.exp(1.7 * C)) @ X + hidden("relu", X)),
    ),
    "noisy": (Noisy(SelfAttention(beta=1.7), kappa=8.0), tangent(rows(np.exp(1.7 * C)) @ X)),
    "streamed": (Streamed(SelfAttention(beta=1.7)), tangent(rows(np.exp(1.7 * C)) @ X)),
}


@pytest.mark.parametrize("name", SPHERE)
def test_a_law_on_the_sphere_is_its_formula(name):
    law, expected = SPHERE[name]
    found = np.asarray(law.velocity(T, jnp.asarray(X), jnp.asarray(W)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    assert isinstance(law.space, Sphere)


GROWN = Z @ expm(T * V).T
FREE = {
    "pure attention": (
        PureAttention(beta=0.6, Q=Q, K=K, V=V),
        rows(np.exp(0.6 * (Z @ Q.T) @ (Z @ K.T).T)) @ Z @ V.T,
    ),
    "rescaled attention": (
        RescaledAttention(beta=0.3, Q=Q, K=K, V=V),
        (rows(np.exp(0.3 * (GROWN @ Q.T) @ (GROWN @ K.T).T)) @ Z - Z) @ V.T,
    ),
    "rescaled by a number": (
        RescaledAttention(beta=0.3, V=0.5),
        (rows(np.exp(0.3 * np.exp(2 * T * 0.5) * Z @ Z.T)) @ Z - Z) * 0.5,
    ),
    "rescaled by the identity": (
        RescaledAttention(beta=0.3),
        rows(np.exp(0.3 * np.exp(2 * T) * Z @ Z.T)) @ Z - Z,
    ),
    "hardmax": (Hardmax(Q=Q, K=K, V=V), (best(Z) @ Z - Z) @ V.T),
    "relu": (NeuralODE(W=OUT, A=IN, b=BIAS), hidden("relu", Z)),
    "tanh": (NeuralODE(W=OUT, A=IN, b=BIAS, activation=Activation.TANH), hidden("tanh", Z)),
    "no bias": (NeuralODE(W=OUT, A=IN), np.maximum(Z @ IN.T, 0) @ OUT.T),
}


@pytest.mark.parametrize("name", FREE)
def test_a_law_on_the_whole_space_is_its_formula(name):
    law, expected = FREE[name]
    found = np.asarray(law.velocity(T, jnp.asarray(Z), jnp.asarray(W)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_gelu_is_x_times_the_normal_distribution():
    x = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(Activation.GELU(jnp.asarray(x)), x * norm.cdf(x), atol=1e-3)


@pytest.mark.parametrize("omega", [0.0, 0.7, np.linspace(-1, 2, N)], ids=["none", "one", "each"])
def test_oscillators_turn_by_their_frequency_and_the_pull_of_the_others(omega):
    angle = np.array([0.1, 1.0, 2.0, 3.0, 4.5, 5.0])
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    turns = omega + 1.3 * (W * np.sin(angle - angle[:, None])).sum(axis=1)
    expected = turns[:, None] * np.stack([-x[:, 1], x[:, 0]], axis=1)
    law = Kuramoto(coupling=1.3, omega=omega)
    found = law.velocity(T, jnp.asarray(x), jnp.asarray(W))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert law.isotropic == (np.ndim(omega) == 0 and omega == 0)
    assert law.exchangeable == (np.ndim(omega) == 0)


def test_the_attention_of_several_heads_is_the_mean_of_theirs():
    Qs, Ks = np.stack([Q, 2 * K, -Q]), np.stack([K, Q, Q])
    law = MultiHead(V=np.stack([V, A, S]), Q=Qs, K=Ks, beta=0.7)
    found = law.attention(T, jnp.asarray(X[:4]), jnp.asarray(X), jnp.asarray(W))
    each = [W * np.exp(0.7 * X[:4] @ q.T @ k @ X.T) for q, k in zip(Qs, Ks)]
    expected = np.mean([rows / rows.sum(1, keepdims=True) for rows in each], axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_ties_of_hardmax_are_shared_by_weight():
    z = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    w = jnp.array([0.25, 0.25, 0.375, 0.125])
    shares = np.asarray(Hardmax().attention(0.0, z, z, w))
    expected = [[1 / 3, 0, 1 / 2, 1 / 6], [0, 1 / 3, 1 / 2, 1 / 6], [0, 0, 3 / 4, 1 / 4]]
    np.testing.assert_allclose(shares[:3], expected, atol=1e-12)
    far = np.asarray(Hardmax(tie=2.0).attention(0.0, z, z, w))
    np.testing.assert_allclose(far[0], w, atol=1e-12)  # all within the tie


def test_the_strength_of_the_noise_is_the_root_of_two_over_kappa():
    found = Noisy(SelfAttention(), kappa=8.0).diffusion(T, jnp.asarray(X), jnp.asarray(W))
    assert float(found) == pytest.approx(0.5, rel=1e-12)
    assert float(SelfAttention().diffusion(T, jnp.asarray(X), jnp.asarray(W))) == 0


def test_energies_are_their_double_sums():
    pairs = np.outer(W, W)
    x, w = jnp.asarray(X), jnp.asarray(W)
    expected = 0.5 / 1.7 * (pairs * np.exp(1.7 * C)).sum()
    for law in (SelfAttention(beta=1.7), Unnormalised(beta=1.7)):
        assert float(law.energy(x, w)) == pytest.approx(expected, rel=1e-12)
        assert law.ascends
    assert float(Burger(D=S).energy(x, w)) == pytest.approx(
        (pairs * np.exp(X @ S @ X.T)).sum(), rel=1e-12
    )
    f = np.log(np.diag(doubly(1.7)) / W / np.exp(1.7)) / 2
    assert float(Sinkhorn(beta=1.7).energy(x, w)) == pytest.approx(-(W @ f) / 1.7, rel=1e-8)
    assert float(SelfAttention(beta=0.0).energy(x, w)) == pytest.approx(0.5 * (pairs * C).sum())


def test_metrics_are_their_formulas():
    """In which each law is the gradient flow of its energy: w_i times Z_i where it divides."""
    x, w = jnp.asarray(X), jnp.asarray(W)
    partition, of_matrix = np.exp(1.7 * C) @ W, np.exp(X @ S @ X.T) @ W
    for law, expected in (
        (SelfAttention(beta=1.7), W * partition),
        (SelfAttention(beta=1.7, repulsive=True), W * partition),
        (Unnormalised(beta=1.7), W),
        (Unnormalised(beta=1.7, clock=Clock.PEAK), W * np.exp(1.7)),
        (Burger(D=S), 2 * W),
        (Burger(D=S, normalised=True, ascend=False), 2 * W * of_matrix),
        (Sinkhorn(beta=1.7), W),
    ):
        np.testing.assert_allclose(law.metric(x, w), expected, rtol=1e-12)


MOVING = Switching(np.stack([I, 2 * I]), 1.0)
BLIND = {  # commutes with rotations
    True: [
        SelfAttention(),
        Unnormalised(),
        Sinkhorn(),
        CausalBias(),
        Attention(),
        Attention(Q=2.0, K=0.5, V=-1.0),
        Causal(V=2.0),
        Hardmax(Q=2.0),
        PureAttention(),
        Noisy(SelfAttention()),
        Streamed(SelfAttention()),
    ],
    False: [
        Attention(Q=Q, K=K),
        Attention(V=V),
        Attention(V=MOVING),
        Causal(Q=A),
        Hardmax(V=V),
        Burger(D=S),
        NeuralODE(W=OUT, A=IN),
        Noisy(Attention(V=V)),
        Streamed(Attention(V=V)),
    ],
}
CONES = {  # consensus is for ever
    True: [
        SelfAttention(),
        Unnormalised(),
        Sinkhorn(),
        CausalBias(beta=0.0),
        Attention(),
        Attention(V=0.5),
        Attention(Q=Q, K=K),
        Causal(),
        Streamed(SelfAttention()),
    ],
    False: [
        SelfAttention(repulsive=True),
        Unnormalised(repulsive=True),
        Sinkhorn(repulsive=True),
        CausalBias(beta=-1.0),
        Attention(V=0.0),
        Attention(V=-0.5),
        Attention(V=V),
        Causal(V=-1.0),
        Burger(D=S),
        Noisy(SelfAttention()),
        Streamed(SelfAttention(repulsive=True)),
    ],
}


def test_laws_say_truly_whether_they_are_blind_to_rotations():
    for blind, laws in BLIND.items():
        assert [repr(law) for law in laws if law.isotropic != blind] == []


def test_laws_say_truly_whether_consensus_is_for_ever():
    for keeps, laws in CONES.items():
        assert [repr(law) for law in laws if law.keeps_cones != keeps] == []


def test_laws_ask_for_the_dimension_of_their_matrices_and_no_other():
    assert {law.dimension for law in BLIND[True]} == {None}
    assert {law.dimension for law in BLIND[False]} == {D}
    assert Kuramoto().dimension == 2 and Kuramoto().particles is None
    assert Kuramoto(omega=np.zeros(4)).particles == 4


def test_a_matrix_that_switches_is_constant_on_its_periods():
    path = Switching(np.arange(3.0)[:, None, None] * I, 0.5)
    for t, value in ((0.0, 0), (0.49, 0), (0.5, 1), (0.99, 1), (1.0, 2), (7.0, 2)):
        np.testing.assert_array_equal(path(jnp.asarray(t)), value * I)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Sinkhorn(beta=0.0),
        lambda: Sinkhorn(beta=-1.0),
        lambda: Sinkhorn(rounds=0),
        lambda: SelfAttention(beta=np.inf),
        lambda: Unnormalised(beta=np.nan),
        lambda: Unnormalised(beta=700.5),
        lambda: Noisy(SelfAttention(), kappa=0.0),
        lambda: Burger(D=V),
        lambda: NeuralODE(W=OUT, A=IN.T),
        lambda: NeuralODE(W=OUT, A=IN, b=BIAS[:2]),
        lambda: Attention(Q=Q, K=K[:1]),
        lambda: Attention(Q=Q),
        lambda: Attention(V=Q),
        lambda: RescaledAttention(V=MOVING),
        lambda: FeedForward(NeuralODE(W=OUT, A=IN), Attention(V=np.eye(2))),
    ],
)
def test_laws_that_make_no_sense_are_refused(wrong):
    with pytest.raises(UserError):
        wrong()


def test_laws_at_the_edge_of_sense_are_not():
    assert Sinkhorn(beta=1e-3, rounds=1).rounds == 1
    assert Unnormalised(beta=700.0).beta == 700
    assert Unnormalised(beta=900.0, clock=Clock.PEAK).beta == 900
