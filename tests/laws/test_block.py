"""`Block`: every law of the catalogue is one, and every part does what its paper says."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tests.laws.specimens import LAWS, NAMES, tokens
from tokenflock.catalogue import family
from tokenflock.dynamics import Block, SelfAttention, Switching
from tokenflock.errors import UserError
from tokenflock.parts import (
    Alibi,
    CausalMask,
    CommonNoise,
    Gated,
    GivenHeads,
    GivenMask,
    HardmaxWeighing,
    LinearWeighing,
    NoHeads,
    NoWeighing,
    RandomFeedForward,
    RandomHeads,
    RelativeBias,
    Rotary,
    SigmoidWeighing,
    SinkhornWeighing,
    SoftmaxWeighing,
    TwoLayers,
    ValueNoise,
    WindowMask,
)
from tokenflock.precision import cast
from tokenflock.solvers import EulerMaruyama, Layer
from tokenflock.starts import Given

pytestmark = pytest.mark.usefixtures("double")
T = 0.3
NO_BLOCK = {  # laws that are made of other things, and the words that say so
    "rescaled-attention": "a frame that moves",
    "rescaled-attention-default": "a frame that moves",
    "kuramoto": "frequencies of their own",
}


@pytest.mark.parametrize(("name", "law"), list(zip(NAMES, LAWS)), ids=NAMES)
def test_every_law_of_the_catalogue_is_its_block(name, law):
    """The same force, the same flow and the same layer, noise and all."""
    x, w = tokens(law)
    if name in NO_BLOCK:
        with pytest.raises(UserError, match=NO_BLOCK[name]):
            law.as_block()
        return
    block, key = law.as_block(), jax.random.key(1)
    assert type(block) is Block and type(block.space) is type(law.space)
    assert block.noisy == law.noisy and block.smooth == law.smooth
    assert block.exchangeable == law.exchangeable and block.isotropic == law.isotropic
    assert block.dimension in (law.dimension, None)
    rounding = 1e-10 if type(law).__name__ == "Fast" else 1e-13
    for ours, theirs in (
        (block.force(T, x, w), law.force(T, x, w)),
        (block.velocity(T, x, w), law.velocity(T, x, w)),
        *(
            (s.step(block, T, x, w, key), s.step(law, T, x, w, key))
            for s in (Layer(), EulerMaruyama())
        ),
    ):
        assert np.abs(ours - theirs).max() < rounding * (1 + np.abs(theirs).max())


# -------------------------------------------------------------------------------------------------
# each part against its own formula

N, D = 5, 4
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
W = np.array([1.0, 2.0, 3.0, 4.0, 5.0]) / 15
G = RANDOM.normal(size=(4, 2, D, D))
HEADS = GivenHeads(Q=G[0, :, :2], K=G[1, :, :2], V=G[2, :, :3], O=G[3, :, :, :3])


def weights(**parts):
    """The attention matrix of a block with one head and beta = 2."""
    block = Block(**({"beta": 2.0} | parts))
    return np.asarray(block.attention_matrix(T, jnp.asarray(X), jnp.asarray(W)))


def test_one_head_with_the_identity_is_self_attention():
    ours, theirs = Block(beta=2.0), SelfAttention(beta=2.0)
    assert np.abs(ours.force(T, X, W) - theirs.force(T, X, W)).max() < 1e-15


def test_heads_by_their_formula():
    """sum_h O_h sum_j A^h_ij (V_h x_j + v_h) + o, logits beta <Q_h x_i + q_h, K_h x_j + k_h>."""
    q, k, v, o = (RANDOM.normal(size=size) for size in ((2, 2), (2, 2), (2, 3), (D,)))
    heads = replace(HEADS, q=q, k=k, v=v, o=o)
    expected = np.zeros((N, D)) + o
    for h in range(2):
        S = 0.7 * (X @ heads.Q[h].T + q[h]) @ (X @ heads.K[h].T + k[h]).T
        A = W * np.exp(S) / (W * np.exp(S)).sum(axis=1, keepdims=True)
        expected += A @ (X @ heads.V[h].T + v[h]) @ heads.O[h].T
    assert np.abs(Block(heads, beta=0.7).force(T, X, W) - expected).max() < 1e-13
    mean = Block(replace(HEADS, average=True)).force(T, X, W)
    assert np.abs(2 * mean - Block(HEADS).force(T, X, W)).max() < 1e-13


def test_rotary_positions_by_complex_numbers():
    """Coordinates k and k + m/2 are a complex number, turned by place * base^(-2k/m)."""
    m, base = D, 100.0
    z = X[:, : m // 2] + 1j * X[:, m // 2 :]
    turned = z * np.exp(1j * np.arange(N)[:, None] * base ** (-2 * np.arange(m // 2) / m))
    S = 2.0 * (turned @ turned.conj().T).real
    expected = W * np.exp(S) / (W * np.exp(S)).sum(axis=1, keepdims=True)
    assert np.abs(weights(positions=Rotary(base=base)) - expected).max() < 1e-14
    half = Rotary(base=base, share=0.5)  # the first two coordinates, one plane
    z = (X[:, 0] + 1j * X[:, 1]) * np.exp(1j * np.arange(N))
    S = 2.0 * (np.outer(z, z.conj()).real + X[:, 2:] @ X[:, 2:].T)
    expected = W * np.exp(S) / (W * np.exp(S)).sum(axis=1, keepdims=True)
    assert np.abs(weights(positions=half) - expected).max() < 1e-14


def test_rotary_logits_depend_on_differences_of_places():
    """The same sequence, begun two places later, hears the same."""
    block = Block(positions="rotary", mask=WindowMask(width=2), beta=3.0)
    x = jnp.asarray(np.concatenate([X[:2], X]))
    later = block.attention_matrix(T, x, jnp.ones(N + 2) / (N + 2))[3:, 3:]
    now = block.attention_matrix(T, jnp.asarray(X), jnp.ones(N) / N)[1:, 1:]
    assert np.abs(later[1:] - now[1:]).max() < 1e-14


def test_biases_by_their_formulas():
    away = np.arange(N)[:, None] - np.arange(N)
    for positions, bias in (
        (Alibi(slope=0.3), -0.3 * abs(away)),
        (Alibi(slope=0.3, relative=True), -0.3 * abs(away) / N),
        (
            RelativeBias([5.0, 1.0, 0.0, 2.0, 7.0]),
            np.array([5.0, 1, 0, 2, 7])[np.clip(away, -2, 2) + 2],
        ),
    ):
        E = W * np.exp(2.0 * X @ X.T + bias)
        assert np.abs(weights(positions=positions) - E / E.sum(1, keepdims=True)).max() < 1e-14
    each = Block(HEADS, positions=Alibi(slope=[0.0, 9.0])).attention_by_head(T, X, W)
    plain = Block(HEADS).attention_by_head(T, X, W)
    assert np.abs(each[0] - plain[0]).max() < 1e-15 and np.abs(each[1] - plain[1]).max() > 0.1


@pytest.mark.parametrize(
    ("mask", "seen"),
    [
        (CausalMask(), lambda i, j: j <= i),
        (CausalMask(strict=True), lambda i, j: j < i),
        (WindowMask(width=2), lambda i, j: i - 2 < j <= i),
        (WindowMask(width=2, past=False), lambda i, j: abs(i - j) < 2),
        (GivenMask(np.eye(N) + np.eye(N, k=3)), lambda i, j: j in (i, i + 3)),
    ],
    ids=lambda value: repr(value) if isinstance(value, CausalMask | WindowMask) else "",
)
def test_masks_let_through_what_they_say(mask, seen):
    expected = np.array([[bool(seen(i, j)) for j in range(N)] for i in range(N)])
    for attention in (SoftmaxWeighing(), NoWeighing(), HardmaxWeighing(tie=1e9), SigmoidWeighing()):
        A = weights(mask=mask, attention=attention)
        assert np.array_equal(A > 0, expected), attention
    rows = weights(mask=mask).sum(axis=1)
    assert np.allclose(rows, expected.any(axis=1))


def test_a_sliding_window_and_rotary_positions_skip_tokens_of_weight_zero():
    """A token that is not there takes no place."""
    parts = {"mask": WindowMask(width=2), "positions": Rotary(base=10.0), "beta": 2.0}
    x, w = np.insert(X, 2, X[0], axis=0), np.insert(W, 2, 0.0)
    there = np.arange(N + 1) != 2
    A = Block(**parts).attention_matrix(T, jnp.asarray(x), jnp.asarray(w))
    assert np.abs(A[there][:, there] - weights(**parts)).max() < 1e-14
    assert np.abs(A[:, 2]).max() == 0


def test_weighings_by_their_formulas():
    S = 2.0 * X @ X.T
    assert np.allclose(weights(attention=NoWeighing()), W * np.exp(S), atol=1e-14)
    assert np.allclose(weights(attention=NoWeighing("peak")), W * np.exp(S - 2.0), atol=1e-14)
    assert np.allclose(weights(attention=SigmoidWeighing(0.5)), W / (1 + np.exp(-S - 0.5)))
    assert np.allclose(weights(attention=LinearWeighing(1.0)), W * (1 + S), atol=1e-14)
    assert np.array_equal(weights(attention="hardmax"), np.eye(N))
    heads = GivenHeads(Q=-1.0)
    expected = np.eye(N)[np.argmin(X @ X.T, axis=1)]
    assert np.array_equal(weights(heads=heads, attention="hardmax"), expected)


def test_sinkhorn_weights_are_doubly_stochastic_for_any_queries_and_keys():
    heads = GivenHeads(Q=G[0, 0], K=G[1, 0])
    A = weights(heads=heads, attention=SinkhornWeighing(rounds=4000), beta=0.3)
    assert np.abs(A.sum(axis=1) - 1).max() < 1e-12 and np.abs(W @ A - W).max() < 1e-9
    S = 0.3 * (X @ G[0, 0].T) @ (X @ G[1, 0].T).T
    scales = np.log(A / W) - S  # f_i + g_j: mixed differences vanish
    assert np.abs(scales - scales[:1] - scales[:, :1] + scales[0, 0]).max() < 1e-12


CAUSAL = [CausalMask(), CausalMask(strict=True), WindowMask(2), GivenMask(np.tril(np.ones((N, N))))]
WEIGHINGS = ["softmax", "none", "hardmax", "sigmoid", "linear"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mask", "positions", "attention"),
    [
        *((mask, Rotary(), "softmax") for mask in CAUSAL),
        *((CausalMask(), Alibi(), attention) for attention in WEIGHINGS),
        (WindowMask(2), RelativeBias([1.0, 0.0, 2.0]), "none"),
    ],
    ids=repr,
)
def test_a_later_token_never_changes_an_earlier_one(mask, positions, attention):
    """The Jacobian is zero above the diagonal of tokens, and not below it; moving the last token
    moves no other one.
    """
    assert mask.causal
    block = Block(HEADS, mask, positions, attention, "tanh", "pre", beta=1.5)
    J = jax.jacfwd(lambda x: block.force(T, x, jnp.asarray(W)))(jnp.asarray(X))
    moves = np.abs(np.asarray(J)).max(axis=(1, 3))
    assert np.array_equal(np.triu(moves, 1), np.zeros((N, N)))
    if attention not in ("hardmax",) and not isinstance(mask, WindowMask):
        assert (moves[np.tril_indices(N, -1)] > 0).all()
    other = X.copy()
    other[-1] = X[0]
    step = Layer(h=0.5)
    a, b = (
        step.step(block, T, jnp.asarray(x), jnp.asarray(W), jax.random.key(0)) for x in (X, other)
    )
    assert np.array_equal(a[:-1], b[:-1]) and np.abs(a[-1] - b[-1]).max() > 0.1


def test_masks_that_look_ahead_claim_nothing():
    ahead = np.tril(np.ones((N, N)))
    ahead[0, 3] = 1
    assert not GivenMask(ahead).causal and not WindowMask(2, past=False).causal
    assert {entry.name for entry in family("Mask").values()} == {
        "NoMask",
        "CausalMask",
        "WindowMask",
        "GivenMask",
    }


def test_gates_and_perceptrons_by_their_formulas():
    A, B, C = (RANDOM.normal(size=(6, D)) for _ in range(3))
    gated = Gated(W=C.T, A=A, G=B).think(T, X)
    assert np.allclose(gated, ((X @ B.T) / (1 + np.exp(-X @ B.T)) * (X @ A.T)) @ C)
    a, b = RANDOM.normal(size=6), RANDOM.normal(size=D)
    two = TwoLayers(C.T, A, a, b, "tanh").think(T, X)
    assert np.allclose(two, np.tanh(X @ A.T + a) @ C + b)


def test_beta_may_be_a_schedule():
    block = Block(beta=Switching([1.0, 4.0], 0.5))
    for t, beta in ((0.0, 1.0), (0.4, 1.0), (0.5, 4.0), (3.0, 4.0)):
        assert np.abs(block.force(t, X, W) - SelfAttention(beta).force(t, X, W)).max() < 1e-15
    assert block.inverse_temperature is None and block.interaction is None
    layers = flock.simulate(block, Given(X), t=1.0, frames=3, solver=Layer(h=0.5))
    assert np.array_equal(flock.rerun(layers).x, layers.x)


# -------------------------------------------------------------------------------------------------
# fresh models


def test_fresh_heads_have_the_variances_that_they_say():
    drawn = RandomHeads(count=16, size=8, seed=3).draw(64)
    for letter, variance in (("Q", 8**-0.5), ("K", 8**-0.5), ("V", 1 / 64), ("O", 1 / 128)):
        M = getattr(drawn, letter)
        assert abs(M.var() / variance - 1) < 0.06, letter
    x = flock.starts.Uniform(n=64, d=64).draw(jax.random.key(0))
    S = jnp.einsum("hmd,nd,hme,ke->hnk", drawn.Q, x, drawn.K, x)
    assert abs(float(jnp.var(S)) - 1) < 0.1  # logits of a fresh model
    small = RandomHeads(count=16, size=8, seed=3, scale=0.5).draw(64)
    assert np.allclose(small.Q, 0.5 * drawn.Q)
    mlp = RandomFeedForward(hidden=4, seed=3).draw(64)
    assert abs(mlp.A.var() - 1) < 0.05 and abs(mlp.W.var() * 64 * 256 - 1) < 0.05


def test_fresh_weights_are_drawn_anew_in_every_layer_and_for_ever():
    block = Block(RandomHeads(2, period=0.5), feed_forward=RandomFeedForward("tanh", period=0.5))
    forces = [np.asarray(block.force(t, X, W)) for t in (0.0, 0.49, 0.5, 1.0, 1e6)]
    assert np.array_equal(forces[0], forces[1])
    assert all(np.abs(a - b).max() > 0.1 for a, b in combinations(forces[1:], 2))
    still = replace(
        block, heads=block.heads.draw(D, 0.5), feed_forward=block.feed_forward.draw(D, 0.5)
    )
    assert np.abs(still.force(9.0, X, W) - forces[2]).max() < 1e-14


@pytest.mark.slow
def test_a_random_block_is_what_its_parts_draw_and_both_precisions_agree():
    block = Block.random(2, D, seed=5)
    lazy = Block(
        RandomHeads(2, seed=5), "causal", feed_forward=RandomFeedForward(seed=5), norm="pre"
    )
    assert np.abs(block.force(T, X, W) - lazy.force(T, X, W)).max() < 1e-14
    single = flock.simulate(lazy, Given(X), t=1, frames=2, solver=Layer(h=0.5), dtype="float32")
    double = flock.simulate(block, Given(X), t=1, frames=2, solver=Layer(h=0.5))
    assert float(abs(single.x - double.x).max()) < 1e-5


# -------------------------------------------------------------------------------------------------
# noise


def rate(block, h, sign, d, times):
    """Mean of log(1 - sign cos) over one layer, by unit of time, from two tokens near consensus
    (sign 1) or opposite each other (sign -1).
    """
    x = np.zeros((2, d))
    x[0, 0], x[1, 0], x[1, 1] = 1.0, sign, 1e-4
    sign = jnp.asarray(float(sign))
    x = jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))

    keys = jax.random.split(jax.random.key(0), len(times))
    return float(jnp.mean(_grown(cast(block, "float64"), jnp.asarray(h), sign, x, times, keys)) / h)


@eqx.filter_jit
def _grown(block, h, sign, x, times, keys):
    """log of how much 1 - sign cos grows in one layer, for each time and key."""

    def grown(t, key):
        y = Layer(h=h).step(block, t, x, jnp.ones(2) / 2, key)
        gap, before = y[0] - sign * y[1], x[0] - sign * x[1]
        return jnp.log(jnp.sum(gap**2) / jnp.sum(before**2))

    return jax.vmap(grown)(times, keys)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "beta"), [(3, 1.0), (8, 4.0)])
def test_fresh_values_draw_two_tokens_together_or_apart_at_the_rates_of_theory(d, beta):
    """-(d-1)/d at consensus and [(d-1)/cosh^2 beta - 2]/d at the antipode.

    Each draw is used with both signs, which takes the odd moments away.
    """
    h, count = 1e-3, 6000
    times = h * jnp.arange(count)

    def both(sign):
        heads = [RandomHeads(1, scale=s * h**-0.5, letters="V", period=h) for s in (1, -1)]
        return np.mean([rate(Block(each, beta=beta), h, sign, d, times) for each in heads])

    assert abs(both(1) + (d - 1) / d) < 0.06
    assert abs(both(-1) - ((d - 1) / np.cosh(beta) ** 2 - 2) / d) < 0.06


def test_the_same_rates_come_from_the_noise_of_values():
    """In 40,000 samples, whose error is 2 / sqrt(d h count)."""
    d, beta, h, count = 8, 1.0, 0.01, 40_000
    block = Block(noise=ValueNoise(alone=True), beta=beta)
    times, error = jnp.zeros(count), 2 / np.sqrt(d * h * count)
    assert abs(rate(block, h, 1, d, times) + (d - 1) / d) < 4 * error + 0.02
    opposite = ((d - 1) / np.cosh(beta) ** 2 - 2) / d
    assert abs(rate(block, h, -1, d, times) - opposite) < 4 * error + 0.02


def test_common_noise_is_the_same_for_all_tokens_and_independent_noise_is_not():
    x, w, key = jnp.asarray(X), jnp.asarray(W), jax.random.key(4)
    common = Block(noise=CommonNoise(kappa=3.0), norm="none").shake(T, x, w, key)
    assert np.ptp(common, axis=0).max() == 0 and np.abs(common).max() > 0.1
    own = Block(noise="independent", norm="none").shake(T, x, w, key)
    assert np.ptp(own, axis=0).min() > 0.01
    many = jax.vmap(lambda k: Block(noise=CommonNoise(3.0)).shake(T, x, w, k)[0])
    drawn = many(jax.random.split(key, 4000))
    assert np.allclose(np.cov(drawn.T), 2 / 3 * np.eye(D), atol=0.07)
    values = Block(noise=ValueNoise(2.0)).shake(T, x, w, key)
    said = np.asarray(Block().attend(T, x, w))
    assert np.linalg.matrix_rank(np.hstack([said, values]), tol=1e-9) == D  # one matrix for all


def test_under_common_noise_alone_tokens_in_r_d_keep_their_differences():
    block = Block(GivenHeads(V=0.0), noise="common", norm="none")
    run = flock.simulate(block, Given(X), t=1.0, frames=3, solver=EulerMaruyama(h=0.1))
    moved = run.x[-1] - run.x[0]
    assert float(abs(moved - moved.isel(particle=0)).max()) < 1e-14 < float(abs(moved).max())


def test_where_nothing_is_said_the_noise_of_values_shakes_nothing():
    block = Block(heads=NoHeads(), noise=ValueNoise())
    assert not np.any(block.shake(T, jnp.asarray(X), jnp.asarray(W), jax.random.key(0)))
