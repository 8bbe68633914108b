"""Wrong compositions are right or errors: noise, norms, masks and moving matrices beside a
feed-forward part.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import (
    NGPT,
    Attention,
    Block,
    Causal,
    CausalHeads,
    FeedForward,
    MixNorm,
    MultiHead,
    NeuralODE,
    Noisy,
    PeriNorm,
    PreNorm,
    RescaledAttention,
    SelfAttention,
    SqrtNorm,
    Switching,
)
from tokenflock.errors import UserError
from tokenflock.parts import GivenHeads
from tokenflock.solvers import RK4, EulerMaruyama, Layer
from tokenflock.starts import Given

pytestmark = pytest.mark.usefixtures("double")
N, D, T = 5, 3, 0.4
RANDOM = np.random.default_rng(0)
X, W = RANDOM.normal(size=(N, D)), np.array([1.0, 2.0, 3.0, 4.0, 5.0]) / 15
MLP = NeuralODE.example(N, D)
SEED = 3  # of the noise


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def perceptron(x):
    """W tanh(A x + b), written again."""
    return np.tanh(x @ MLP.A.T + MLP.b) @ MLP.W.T


def test_a_layer_of_a_noisy_law_with_a_feed_forward_part_has_its_noise():
    """x <- N(x + h f + sqrt(h) s xi), then the feed-forward part; xi from the key of the step."""
    quiet, s, h = SelfAttention(beta=2.0), np.sqrt(2 / 5.0), 0.1
    law = FeedForward(MLP, base=Noisy(quiet, kappa=5.0))
    assert law.noisy and float(law.diffusion(0.0, X, W)) == pytest.approx(s)
    x = unit(X)
    xi = np.asarray(jax.random.normal(jax.random.key(SEED), x.shape))
    y = unit(x + h * np.asarray(quiet.force(T, x, W)) + np.sqrt(h) * s * xi)
    expected = unit(y + h * perceptron(y))
    assert (
        np.abs(Layer(h=h).step(law, T, jnp.asarray(x), W, jax.random.key(SEED)) - expected).max()
        < 1e-14
    )
    still = Layer(h=h).step(
        FeedForward(MLP, base=quiet), T, jnp.asarray(x), W, jax.random.key(SEED)
    )
    assert np.abs(still - expected).max() > 0.01


def test_a_noisy_law_under_a_flow_without_noise_is_refused():
    law = FeedForward(MLP, base=Noisy(SelfAttention(), kappa=5.0))
    with pytest.raises(UserError, match="takes noise"):
        flock.simulate(law, Given(X), t=1, frames=2, solver=RK4(h=0.1))
    run = [flock.simulate(law, Given(X), t=1, frames=2, seed=seed) for seed in (0, 1)]
    assert float(abs(run[0].x[-1] - run[1].x[-1]).max()) > 0.01


def test_layers_with_noise_spread_as_brownian_motion_does():
    """<x(t), x(0)> = e^{-(d-1) s^2 t / 2} for tokens that do not feel each other, weakly of order
    h.
    """
    law, s2, t, h = Noisy(Attention(V=0.0), kappa=4.0), 0.5, 0.5, 0.01
    x = jnp.tile(jnp.array([[0.0, 0.0, 1.0]]), (20_000, 1))
    w = jnp.ones(len(x)) / len(x)

    def shaken(i, x):
        noise = jnp.sqrt(h) * law.shake(0.0, x, w, jax.random.fold_in(jax.random.key(SEED), i))
        return law.settle(0.0, x, x + noise)

    one = Layer(h=h).step(law, 0.0, x[:4], w[:4], jax.random.key(SEED))
    assert (
        np.abs(
            one
            - law.settle(
                0.0,
                x[:4],
                x[:4] + jnp.sqrt(h) * law.shake(0.0, x[:4], w[:4], jax.random.key(SEED)),
            )
        ).max()
        < 1e-14
    )
    last = jax.lax.fori_loop(0, round(t / h), shaken, x)
    assert abs(float(last[:, 2].mean()) - np.exp(-(D - 1) * s2 * t / 2)) < 0.012


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (PreNorm(), lambda y: perceptron(unit(y))),
        (PeriNorm(), lambda y: unit(perceptron(unit(y)))),
        (MixNorm(tau=0.1), lambda y: perceptron(unit(y))),
        (NGPT(alpha=0.3), lambda y: 0.3 * unit(perceptron(unit(y)))),
        (SqrtNorm(), lambda y: perceptron(unit(y)) / np.sqrt(T + 1)),
        (SelfAttention(), lambda y: perceptron(unit(y))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_feed_forward_part_reads_and_writes_as_its_base_does(base, expected):
    law = FeedForward(MLP, base=base)
    y = law.space.project(jnp.asarray(X))
    apart = law.force(T, y, W) - base.force(T, y, W)
    assert np.abs(apart - expected(np.asarray(y))).max() < 1e-13
    assert np.abs(law.sublayers[1].force(T, y, W) - apart).max() < 1e-13


def test_mix_ln_holds_the_radius_of_both_parts_until_tau():
    law = FeedForward(MLP, base=MixNorm(tau=5.0))
    radial = jnp.sum(jnp.asarray(X) * law.velocity(T, jnp.asarray(X), W), axis=1)
    assert np.abs(radial).max() < 1e-13


@pytest.mark.parametrize("t", [T, 9.0], ids=["before", "after"])
def test_a_layer_of_mix_ln_normalises_after_each_part_until_tau(t):
    """r N(theta + h attention), then r N(theta + h perceptron); plain sums after tau."""
    base, h, radius = MixNorm(tau=5.0), 0.7, np.linalg.norm(X, axis=1, keepdims=True)
    said = np.asarray(PreNorm().force(t, jnp.asarray(X), W))
    y = radius * unit(unit(X) + h * said) if t < 5 else X + h * said
    z = perceptron(unit(y))
    expected = radius * unit(unit(y) + h * z) if t < 5 else y + h * z
    for law in (FeedForward(MLP, base=base), FeedForward(MLP, base=base).as_block()):
        found = Layer(h=h).step(law, jnp.asarray(t), jnp.asarray(X), W, jax.random.key(0))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        moved = Layer(h=1e-7).step(law, jnp.asarray(t), jnp.asarray(X), W, jax.random.key(0))
        flow = law.velocity(jnp.asarray(t), jnp.asarray(X), W)
        np.testing.assert_allclose((moved - X) / 1e-7, flow, atol=1e-5)


@pytest.mark.parametrize("heads", [False, True], ids=["causal", "causal-heads"])
def test_a_causal_law_with_a_feed_forward_part_flows(heads):
    base = CausalHeads.example(N, D) if heads else Causal(beta=2.0)
    law = FeedForward(MLP, base=base)
    assert not law.exchangeable
    run = flock.simulate(law, Given(X), t=1, frames=3, solver=RK4(h=0.1))
    first = flock.simulate(law, Given(X[:2]), t=1, frames=3, solver=RK4(h=0.1))
    assert float(abs(run.x[-1, :2] - first.x[-1]).max()) < 1e-13
    with pytest.raises(UserError, match="has no field at other points"):
        law.field(T, X, X, W)


def moving(array):
    """Two periods of half a unit: zero, then the array."""
    return Switching(np.stack([0 * array, array]), 0.5)


@pytest.mark.parametrize("kind", [MultiHead, CausalHeads])
def test_heads_take_matrices_that_switch_in_time(kind):
    G = RANDOM.normal(size=(3, 2, D, D))
    still = kind(V=G[0], Q=G[1], K=G[2], beta=0.5)
    law = kind(V=moving(G[0]), Q=moving(G[1]), K=moving(G[2]), beta=0.5)
    x = unit(X)
    assert law.dimension == D and law.stack == 2
    assert np.abs(law.force(0.2, x, W)).max() == 0
    assert np.abs(law.force(0.7, x, W) - still.force(0.7, x, W)).max() < 1e-15
    with pytest.raises(UserError, match="one number of heads"):
        kind(V=moving(G[0]), Q=moving(G[1, :1]))


def test_the_feed_forward_part_takes_matrices_that_switch_in_time():
    law = FeedForward(
        NeuralODE(moving(MLP.W), moving(MLP.A), moving(MLP.b), activation="tanh"),
        base=Attention(V=moving(np.eye(D))),
    )
    x = unit(X)
    still = FeedForward(MLP, base=Attention())
    assert np.abs(law.force(0.2, x, W)).max() == 0
    assert np.abs(law.force(0.7, x, W) - still.force(0.7, x, W)).max() < 1e-15
    layers = flock.simulate(law, Given(X), t=1, frames=3, solver=Layer(h=0.5))
    assert (
        float(abs(layers.x[1] - layers.x[0]).max())
        < 1e-15
        < float(abs(layers.x[2] - layers.x[0]).max())
    )
    again = flock.rerun(layers)
    assert np.array_equal(again.x, layers.x)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FeedForward(MLP, base=FeedForward(MLP)), "without a feed-forward part"),
        (lambda: FeedForward(MLP, base=Block()), "without a feed-forward part"),
        (lambda: FeedForward(MLP, base=Noisy(FeedForward(MLP))), "without a feed-forward part"),
        (lambda: FeedForward(MLP, base=RescaledAttention()), "a frame that moves"),
        (lambda: Noisy(Block(noise="common")), "a law without noise"),
        (lambda: FeedForward(MLP, base=Attention(V=np.eye(4))), r"on R\^3"),
    ],
)
def test_what_is_not_meant_is_refused(make, words):
    with pytest.raises(UserError, match=words):
        make()


def test_noise_around_a_feed_forward_part_shakes_its_layers():
    """The layer of `Noisy(FeedForward(...))` applies both parts in turn, and one noise."""
    inside = FeedForward(MLP, base=Noisy(SelfAttention(beta=2.0), kappa=5.0))
    outside = Noisy(FeedForward(MLP, base=SelfAttention(beta=2.0)), kappa=5.0)
    x = jnp.asarray(unit(X))
    for solver in (Layer(h=0.1), EulerMaruyama(h=0.1)):
        a, b = (solver.step(law, T, x, W, jax.random.key(SEED)) for law in (inside, outside))
        assert np.abs(a - b).max() < 1e-14


def test_the_layers_of_a_noisy_ensemble_have_noise():
    told = flock.ensemble(
        Noisy(Block(heads=2, mask="causal", feed_forward="tanh"), kappa=5.0),
        Given(X),
        repeats=2,
        t=0.5,
        frames=2,
        solver=Layer(h=0.1),
        observe=[flock.observables.MeanCosine()],
        keep=True,
    )
    a, b = told.mean_cosine.values[..., -1].ravel()
    assert abs(a - b) > 1e-3


def test_the_pair_interaction_of_a_block_is_that_of_self_attention_or_none():
    """Also for numbers that JAX traces."""
    known = Block(beta=2.0).interaction
    assert known is not None and known.beta == 2.0
    for law in (
        Block(mask="causal"),
        Block(norm="pre"),
        Block(heads=2),
        Block(attention="sigmoid"),
        Block(noise="common"),
        Block(feed_forward="gelu"),
    ):
        assert law.interaction is None

    def told(V):
        assert Block(GivenHeads(V=V)).interaction is None
        return V

    jax.jit(told)(1.0)
