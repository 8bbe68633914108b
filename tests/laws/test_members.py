"""What a law means where it says nothing, what a law around another one keeps of it, and the same
law as a block in all of its variants.
"""

from __future__ import annotations

from inspect import signature

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.laws.test_matrices import HOLDERS
from tokenflock.catalogue import entries
from tokenflock.dynamics import (
    Attention,
    Block,
    Burger,
    CausalBias,
    CausalHeads,
    Clock,
    Dynamics,
    FeedForward,
    GradientFlow,
    Hardmax,
    Kuramoto,
    MeanField,
    MultiHead,
    NeuralODE,
    Noisy,
    PreNorm,
    RescaledAttention,
    SelfAttention,
    Sinkhorn,
    Streamed,
    Switching,
    Unnormalised,
)
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.engines.job import follow
from tokenflock.errors import UserError
from tokenflock.parts import (
    Alibi,
    CausalMask,
    GivenHeads,
    GivenMask,
    LayerNorm,
    Mix,
    NoFeedForward,
    NoHeads,
    NoNorm,
    Post,
    Pre,
    TwoLayers,
    ValueNoise,
)
from tokenflock.spaces import Sphere

pytestmark = pytest.mark.usefixtures("double")
N, D, T = 5, 3, 0.4
RANDOM = np.random.default_rng(8)
X = RANDOM.normal(size=(N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
W = np.array([0.1, 0.3, 0.2, 0.15, 0.25])
G = RANDOM.normal(size=(6, D, D))
S = G[5] + G[5].T


def given():
    return jnp.asarray(X), jnp.asarray(W)


class Bare(Dynamics):
    """A law that says no more than it must: it grows in time."""

    def force(self, t, x, w):
        return (1 + t) * x * jnp.arange(1.0, 1.0 + x.shape[1])


class Climbing(GradientFlow, Bare):
    """A gradient flow that does not say which way."""

    def energy(self, x, w):
        return w @ x[:, 0]

    def metric(self, x, w):
        return w


class Heard(MeanField):
    """A law through the measure of its tokens."""

    def field(self, t, q, x, w):
        return q * (w @ x)


def test_a_law_that_says_nothing_claims_nothing():
    law = Bare()
    assert isinstance(law.space, Sphere) and isinstance(law.place, Post)
    assert law.on_chip and law.smooth and law.interacts and law.bounded
    for claim in ("noisy", "exchangeable", "isotropic", "keeps_cones"):
        assert getattr(law, claim) is False
    for what in ("inverse_temperature", "interaction", "matrices_at", "stack"):
        assert getattr(law, what) is None
    assert law.dimension is None and law.particles is None
    assert law.core is law and law.layers_around == (law,) and law.sublayers == (law,)
    assert float(law.diffusion(T, *given())) == 0
    assert np.abs(law.shake(T, *given(), jax.random.key(0))).max() == 0
    for refused in (law.as_block, lambda: law.with_matrices(None, None)):
        with pytest.raises(UserError, match="Bare"):
            refused()
    with pytest.raises(UserError, match="no attention matrix"):
        law.attention_matrix(T, *given())
    assert Climbing().ascends


def test_a_law_through_the_measure_of_its_tokens_is_blind_to_their_order():
    law = Heard()
    assert law.exchangeable
    np.testing.assert_allclose(law.force(T, *given()), X * (W @ X), rtol=1e-13)
    with pytest.raises(UserError, match="no attention matrix"):
        law.attention_matrix(T, *given())


def unit(y):
    return y / np.linalg.norm(y, axis=1, keepdims=True)


def test_layers_are_steps_of_the_force_brought_back_to_the_sphere_each_at_its_time():
    law, h, kick = Bare(), 0.3, 0.2 * X[::-1]
    grow = np.array([1.0, 2.0, 3.0])
    x, w = given()
    once = unit(X + h * (1 + T) * X * grow)
    np.testing.assert_allclose(law.layer(T, x, w, h), once, rtol=1e-13)
    shaken = unit(X + h * (1 + T) * X * grow + kick)
    np.testing.assert_allclose(law.layer(T, x, w, h, jnp.asarray(kick)), shaken, rtol=1e-13)
    y = X
    for number in range(3):
        y = unit(y + h * (1 + T + number * h) * y * grow)
    np.testing.assert_allclose(law.layers(T, x, w, h, 3), y, rtol=1e-12)
    np.testing.assert_allclose(law.settle(0.0, x, 3 * x), X, rtol=1e-13)
    tangent = X * grow - (X * X * grow).sum(axis=1, keepdims=True) * X
    np.testing.assert_allclose(law.velocity(0.0, 2 * x, w), tangent, rtol=1e-12, atol=1e-14)


BASES = [
    Attention(beta=1.3, Q=G[0], V=G[1]),
    Unnormalised(beta=1.3),
    PreNorm(beta=1.3),
]
KEPT = ("space", "core", "interacts", "bounded", "smooth", "stack", "exchangeable", "particles")


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_a_law_around_another_keeps_what_it_is(base):
    (x, w), q = given(), jnp.asarray(unit(G[3]))
    mlp = NeuralODE.example(N, D)
    noisy, streamed, fed = Noisy(base, kappa=8.0), Streamed(base), FeedForward(mlp, base)
    heard = base.attention(T, q, x, w)
    for law in (streamed, fed):
        np.testing.assert_allclose(law.attention(T, q, x, w), heard, rtol=1e-13)
    for law in (noisy, streamed, fed):
        for name in KEPT:
            assert getattr(law, name) == getattr(base, name), name
        assert type(law.place) is type(base.place)
        assert law.layers_around == (law, base)
        np.testing.assert_allclose(
            law.attention_matrix(T, x, w), base.attention_matrix(T, x, w), rtol=1e-13
        )
        at = base.matrices_at
        assert law.matrices_at == (None if at is None else ("base", *at))
    for law in (noisy, streamed):
        assert law.isotropic == base.isotropic and law.dimension == base.dimension
        assert law.interaction == base.interaction
    assert fed.dimension == D and not fed.isotropic and noisy.noisy and not streamed.noisy
    for law in (streamed, fed):
        assert float(law.diffusion(T, x, w)) == 0
    for law in (Streamed(base), FeedForward(mlp, Noisy(base, kappa=8.0))):
        assert law.noisy == (law is not streamed and isinstance(law, FeedForward))
    assert float(FeedForward(mlp, noisy).diffusion(T, x, w)) == pytest.approx(0.5, rel=1e-12)
    np.testing.assert_allclose(
        fed.field(T, q, x, w),
        np.asarray(base.field(T, q, x, w)) + np.asarray(fed.think(T, q)),
        rtol=1e-12,
    )


def test_noise_is_drawn_by_the_law_that_is_shaken():
    """Independent normal numbers of the key, times the root of two over kappa."""
    x, w = given()
    key = jax.random.key(5)
    law = Noisy(SelfAttention(), kappa=8.0)
    wanted = 0.5 * jax.random.normal(key, x.shape, x.dtype)
    for one in (law, FeedForward(NeuralODE.example(N, D), law)):
        np.testing.assert_allclose(one.shake(T, x, w, key), wanted, rtol=1e-13)


def test_oscillators_of_one_frequency_are_a_block():
    angle = np.array([0.1, 1.0, 2.5, 4.0, 5.5])
    x = jnp.asarray(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    for law in (Kuramoto(coupling=1.3, omega=0.7), Kuramoto(coupling=-0.4)):
        block = law.as_block()
        np.testing.assert_allclose(
            block.velocity(T, x, W), law.velocity(T, x, W), rtol=1e-12, atol=1e-14
        )
    assert isinstance(Kuramoto().as_block().feed_forward, NoFeedForward)


VARIANTS = [
    SelfAttention(1.3, repulsive=True),
    Unnormalised(1.3, Clock.PEAK, repulsive=True),
    Sinkhorn(1.3, repulsive=True),
    CausalBias(1.3, slope=2.5),
    Attention(0.7, Q=G[0], K=G[1], V=G[2], normalised=False),
    Burger(D=0.3 * S, ascend=False),
    Burger(D=0.3 * S, normalised=True),
    MultiHead(V=G[:2], Q=G[2:4], K=G[4:], beta=0.7, average=True),
    Hardmax(Q=G[0], K=G[1], V=G[2], tie=0.8),
]


@pytest.mark.parametrize("law", VARIANTS, ids=repr)
def test_every_variant_of_a_law_is_its_block(law):
    x, w = given()
    block = law.as_block()
    np.testing.assert_allclose(block.force(T, x, w), law.force(T, x, w), rtol=1e-11, atol=1e-12)
    assert block.isotropic == law.isotropic and block.dimension == law.dimension


@pytest.mark.parametrize("law", HOLDERS, ids=lambda law: type(law).__name__)
def test_other_matrices_take_the_place_of_those_that_a_law_has(law):
    """Q and V where they are, K = I, and all else as it was."""
    sides = (D, D) if law.stack is None else (law.stack, D, D)
    Q, V = RANDOM.normal(size=(2, *sides))
    filled = law.with_matrices(Q, V)
    holder = follow(filled, law.matrices_at)
    assert np.array_equal(holder.Q, Q) and np.array_equal(holder.V, V) and holder.K is None
    assert type(filled) is type(law) and filled.stack == law.stack
    assert repr(filled.inverse_temperature) == repr(law.inverse_temperature)
    still = follow(law.with_matrices(Q, None), law.matrices_at)
    if isinstance(holder, (MultiHead, CausalHeads)):
        assert still.V.shape == sides and (np.asarray(still.V) == np.eye(D)).all()
    else:
        assert still.V is None
    if isinstance(law, Block):
        assert filled.heads.share == law.heads.share


def test_heads_that_are_averaged_stay_so_and_a_block_without_heads_takes_no_matrices():
    block = Block(GivenHeads(V=G[:2], average=True))
    assert block.with_matrices(G[:2], None).heads.average
    assert not Block(GivenHeads(V=G[:2])).with_matrices(G[:2], None).heads.average
    with pytest.raises(UserError, match="a block with heads"):
        Block(NoHeads()).with_matrices(G[:2], None)
    with pytest.raises(UserError, match="left out"):
        RescaledAttention().with_matrices(G[0], Switching(G[:2]))
    assert RescaledAttention().with_matrices(G[0], 2.0).V == 2.0


def test_who_fits_on_a_chip_is_known():
    """The kernel of the resident engine has no stacks of matrices, eigenvalues or series."""
    off = {kind: {e.name for e in entries(kind) if not e.load().on_chip} for kind in (
        "dynamics", "observables")}  # fmt: skip
    assert off["dynamics"] == {"Block", "CausalHeads", "Fast", "MultiHead", "Streamed"}
    assert off["observables"] == {"ConeMargin", "EffectiveRank", "SpanDimension"}
    assert [kind.on_chip for kind in Activation] == [True, True, True, False, True, True]


def test_velocities_stay_of_one_size_where_attention_is_divided():
    bounded = [SelfAttention(), Attention(), Unnormalised(clock=Clock.PEAK), Burger(S, True, True)]
    assert all(law.bounded for law in bounded)
    free = [Unnormalised(), Attention(normalised=False), CausalBias(), Burger(S)]
    assert not any(law.bounded for law in free)


def test_pairs_interact_by_the_kernel_of_their_law():
    for law in (SelfAttention(3.0), Unnormalised(3.0), Attention(3.0)):
        assert law.interaction.beta == 3.0 and law.interaction.D is None
        assert law.inverse_temperature == 3.0
    for parts in ({"Q": 2.0}, {"K": 2.0}, {"V": 2.0}):
        assert Attention(3.0, **parts).interaction is None
    assert Burger(S).interaction.beta == 1.0 and Burger(S).interaction.D is not None
    assert Burger(S).inverse_temperature is None and Noisy(Attention(3.0)).inverse_temperature == 3


def test_activations_are_their_functions():
    x = np.linspace(-3, 3, 8)
    known = {
        "relu": np.maximum(x, 0),
        "tanh": np.tanh(x),
        "gelu": x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        "silu": x / (1 + np.exp(-x)),
        "identity": x,
    }
    for name, wanted in known.items():
        np.testing.assert_allclose(Activation(name)(jnp.asarray(x)), wanted, rtol=1e-9, atol=1e-12)
    apart = np.asarray(Activation("exact-gelu")(jnp.asarray(x))) - known["gelu"]
    assert 1e-5 < np.abs(apart).max() < 1e-3


def test_the_bias_of_causal_attention_counts_tokens_that_are_there():
    """A token of no weight takes no place and is not counted."""
    x, w = np.insert(X, 2, X[0], axis=0), np.insert(W, 2, 0.0)
    law, there = CausalBias(1.3, slope=2.5), np.arange(N + 1) != 2
    whole = np.asarray(law.attention_matrix(T, jnp.asarray(x), jnp.asarray(w)))
    assert np.abs(whole[:, 2]).max() == 0
    np.testing.assert_allclose(
        whole[there][:, there], law.attention_matrix(T, *given()), rtol=1e-12
    )


# -------------------------------------------------------------------------------------------------
# blocks


def test_a_block_has_the_sublayers_that_it_is_made_of():
    mlp = TwoLayers.example(N, D)
    for block, kinds in (
        (Block(), ["_Attention"]),
        (Block(feed_forward=mlp), ["_Attention", "_FeedForward"]),
        (Block(NoHeads(), feed_forward=mlp), ["_FeedForward"]),
        (Block(NoHeads()), ["_Attention"]),
    ):
        assert [type(part).__name__ for part in block.sublayers] == kinds
    assert np.abs(Block(NoHeads()).force(T, *given())).max() == 0
    with pytest.raises(UserError, match="no attention matrix"):
        Block(NoHeads()).attention_matrix(T, *given())
    with pytest.raises(UserError, match="is no flow"):
        Block(norm=Post(LayerNorm(np.ones(D)), LayerNorm(np.ones(D)))).velocity(T, *given())


def test_a_block_knows_the_sizes_that_its_parts_ask_for():
    assert Block().dimension is None and Block().particles is None and Block().stack == 1
    assert Block(GivenHeads(V=G[:2])).dimension == D and Block(GivenHeads(V=G[:2])).stack == 2
    assert Block(mask=GivenMask(np.eye(4))).particles == 4
    assert Block(feed_forward=TwoLayers.example(N, D)).dimension == D
    assert Block(beta=2.0).inverse_temperature == 2.0
    assert Block(beta=Switching([1.0, 2.0])).inverse_temperature is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Block(GivenHeads(V=G[0]), feed_forward=TwoLayers.example(N, 4)), "one R"),
        (lambda: Block(GivenHeads(V=G[:2]), positions=Alibi([0.1, 0.2, 0.3])), "for 2 heads"),
        (lambda: Block(mask="causal", attention="sinkhorn"), "Block.mask"),
        (lambda: Block(norm=Mix(), noise="common"), "Block.noise"),
        (lambda: Block(NoHeads(), noise=ValueNoise(alone=True)), "there are no heads"),
        (lambda: Block(beta=Switching(np.ones((2, 3, 3)))), "Block.beta"),
        (lambda: Block(mask="winding"), "Block.mask must be"),
        (lambda: Hardmax(tie=-1e-9), "tie"),
        (lambda: Streamed(block=0), "block"),
        (lambda: Streamed(Sinkhorn()), "Streamed.base"),
        (lambda: Burger(D=np.ones((2, 3))), "symmetric"),
        (lambda: Burger(D=np.ones(3)), "symmetric"),
        (lambda: Sinkhorn(rounds=10_001), "rounds"),
    ],
)
def test_what_makes_no_block_and_no_law_is_refused(make, words):
    with pytest.raises(UserError, match=words):
        make()


def test_what_is_at_the_edge_is_taken():
    assert Hardmax(tie=0.0).tie == 0 and Streamed(block=1).block == 1
    assert Sinkhorn(rounds=10_000).rounds == 10_000
    assert Noisy(kappa=1e-3).kappa == 1e-3
    assert Block(GivenHeads(V=G[:2]), positions=Alibi([0.1, 0.2])).stack == 2
    assert Block(noise=ValueNoise(alone=True)).noisy
    assert Block(NoHeads(), noise="common").noisy and Block(norm=Mix()).norm == Mix()


def test_a_fresh_block_is_that_of_a_gpt_unless_told_otherwise():
    block = Block.random(2, 4)
    assert block.mask == CausalMask() and type(block.norm) is Pre
    assert block.heads.Q.shape == (2, 2, 4) and block.feed_forward.A.shape == (16, 4)
    assert block.feed_forward.activation is Activation.GELU
    small = Block.random(2, 4, scale=0.5, hidden=3, activation="tanh", norm="none")
    np.testing.assert_allclose(small.heads.Q, 0.5 * np.asarray(block.heads.Q), rtol=1e-12)
    assert small.feed_forward.A.shape == (12, 4) and small.norm == NoNorm()
    assert small.feed_forward.activation is Activation.TANH
    assert signature(Block.random).parameters["seed"].default == 0
    other = Block.random(2, 4, seed=1)
    assert not np.allclose(other.heads.Q, block.heads.Q)
    assert not np.allclose(other.feed_forward.A, block.feed_forward.A)
    assert signature(Block.from_model).parameters["layer"].default == 0
    third = Block(heads=3, mask="causal")
    assert third.heads.number == 3 and third.mask == CausalMask()


def test_noise_of_values_shakes_what_attention_says():
    """strength W u_i, one matrix W of variance 1/d for all tokens."""
    x, w = given()
    key = jax.random.key(2)
    block = Block(GivenHeads(V=G[0]), norm="pre", noise=ValueNoise(2.0), beta=0.7)
    M = jax.random.normal(key, (D, D), x.dtype) / np.sqrt(D)
    said = np.asarray(block.attend(T, x, w))
    np.testing.assert_allclose(block.shake(T, 3 * x, w, key), 2 * said @ M.T, rtol=1e-11)
    alone = Block(GivenHeads(V=G[0]), noise=ValueNoise(2.0, alone=True))
    assert np.abs(alone.force(T, x, w)).max() == 0


def test_heads_that_are_drawn_when_they_are_asked_attend_as_those_that_were_drawn():
    lazy = Block(heads=2, beta=0.7)
    drawn = Block(lazy.heads.draw(D), beta=0.7)
    ours, theirs = (block.attention_matrix(T, *given()) for block in (lazy, drawn))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(ours).sum(axis=1), 1, rtol=1e-12)


def test_a_perceptron_is_that_of_the_beginning_unless_a_time_is_given():
    A, out = G[0], G[1]
    law = NeuralODE(W=lambda t: (1 + t) * out, A=A, activation="identity")
    np.testing.assert_allclose(law.perceptron(X), X @ A.T @ out.T, rtol=1e-12)
    np.testing.assert_allclose(law.perceptron(X, 0.5), 1.5 * X @ A.T @ out.T, rtol=1e-12)
    batch = NeuralODE(W=jnp.zeros((2, 9, 9)), A=A)  # what JAX holds was checked before
    assert batch.dimension == D
