"""Every rung: its gradient, its mask, and its attention beside the core's."""

from __future__ import annotations

from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenflock.dynamics import NGPT, Causal, PeriNorm, PostNorm, PreNorm
from tokenflock.errors import UserError
from tokenflock.gpt import Shape
from tokenflock.gpt.checkpoint import fresh
from tokenflock.gpt.gpt import FusedAttention, Move, dropout
from tokenflock.gpt.head import Head
from tokenflock.gpt.positions import rotated
from tokenflock.gpt.settings import NORMS, POSITIONS, RUNGS
from tokenflock.precision import cast, precision
from tokenflock.spaces.sphere import normalise

pytestmark = pytest.mark.slow

SMALL = {"vocab": 7, "context": 6, "width": 8, "heads": 2, "depth": 1}
QUICK = {"xla_llvm_disable_expensive_passes": True}  # compile soon, run slowly
SHAPES = [Shape(**SMALL, rung=rung) for rung in RUNGS[:-1]]
SHAPES += [Shape(**SMALL, norm=norm) for norm in NORMS]
SHAPES += [Shape(**SMALL, positions=one) for one in POSITIONS[1:]] + [
    Shape(**SMALL | {"depth": 2}, shared=True)
]


def name(shape: Shape) -> str:
    return f"{shape.rung}-{shape.norm}-{shape.positions}{'-shared' * shape.shared}"


@cache
def lively(shape: Shape):
    """A model whose weights are large enough for every part to matter, and small enough for
    attention to be no choice of one token, in which the others drown.
    """
    with precision("float32"):
        model = jax.tree.map(np.asarray, fresh(shape))
    return jax.tree.map(lambda leaf: leaf * np.float32(15) if 0 < leaf.std() < 0.1 else leaf, model)


def compiled(model):
    return jax.jit(lambda *inputs: model(*inputs), compiler_options=QUICK)


def tokens(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, SMALL["vocab"], (2, SMALL["context"] + 1))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=name)
def test_gradients_agree_with_finite_differences(shape):
    """Along a random direction in the space of all weights, in float64."""
    with precision("float64"):
        arrays, rest = eqx.partition(cast(lively(shape), "float64"), eqx.is_array)
        ids = jnp.asarray(tokens())
        rng = np.random.default_rng(1)
        direction = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), arrays)
        norm = np.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(direction)))

        @partial(jax.jit, compiler_options=QUICK)
        @jax.value_and_grad
        def loss(e):
            moved = jax.tree.map(lambda leaf, u: leaf + e / norm * u, arrays, direction)
            return eqx.combine(moved, rest).loss(ids[:, :-1], ids[:, 1:])

        exact, h = loss(0.0)[1], 1e-4
        difference = (8 * (loss(h)[0] - loss(-h)[0]) - (loss(2 * h)[0] - loss(-2 * h)[0])) / (
            12 * h
        )
        assert abs(exact) > 1e-3
        assert abs(exact - difference) < 1e-7 * abs(exact)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=name)
def test_nothing_leaks_from_the_future(shape):
    """Changing a token changes its own logits, and never those before it."""
    model = compiled(lively(shape))

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(
        st.lists(st.integers(0, 6), min_size=6, max_size=6), st.integers(0, 5), st.integers(1, 6)
    )
    def check(ids, place, shift):
        ids = np.asarray([ids])
        changed = ids.copy()
        changed[0, place] = (ids[0, place] + shift) % 7
        before, after = np.asarray(model(ids))[0], np.asarray(model(changed))[0]
        np.testing.assert_array_equal(before[:place], after[:place])
        assert np.abs(before[place] - after[place]).max() > 1e-4

    check()


def test_one_head_is_the_force_of_causal_attention():
    with precision("float64"):
        x = jax.random.normal(jax.random.key(0), (1, 9, 6))
        head = jax.tree.map(lambda leaf: 40 * leaf, Head(6, 6, jax.random.key(1)))
        law = Causal(beta=6**-0.5, Q=head.Q.T, K=head.K.T, V=head.V.T)
        force = law.force(jnp.zeros(()), x[0], jnp.full(9, 1 / 9))
        np.testing.assert_allclose(head(x)[0], force, rtol=1e-12, atol=1e-13)


def test_fused_attention_is_the_sum_of_causal_forces_over_heads():
    with precision("float64"):
        d, heads, m = 8, 2, 4
        layer = cast(
            FusedAttention(Shape(vocab=5, width=d, heads=heads), jax.random.key(2)), "float64"
        )
        layer = jax.tree.map(lambda leaf: 30 * leaf, layer)
        x = jax.random.normal(jax.random.key(3), (1, 7, d))
        Q, K, V = (M.reshape(d, heads, m) for M in jnp.split(layer.qkv, 3, axis=1))
        w = jnp.full(7, 1 / 7)
        laws = [
            Causal(m**-0.5, Q[:, h].T, K[:, h].T, (V[:, h] @ layer.mix[m * h : m * h + m]).T)
            for h in range(heads)
        ]
        force = sum(law.force(jnp.zeros(()), x[0], w) for law in laws)
        np.testing.assert_allclose(layer(x)[0], force, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("norm", "law"), [("pre", PreNorm), ("post", PostNorm), ("peri", PeriNorm), ("ngpt", NGPT)]
)
def test_a_move_is_a_layer_of_the_core_up_to_the_radius(norm, law):
    """On centred tokens the norm is sqrt(d) x/|x|: one move with h is then a step of the scheme of
    the core.
    """
    with precision("float64"):
        d, h = 6, 0.3
        x = jax.random.normal(jax.random.key(0), (1, 5, d))
        x = x - x.mean(-1, keepdims=True)
        x = normalise(x) if norm == "ngpt" else x
        centre = jnp.eye(d) - 1 / d
        V = centre @ jax.random.normal(jax.random.key(1), (d, d)) @ centre
        core = law(V=V)
        w = jnp.full(5, 1 / 5)

        def part(y, key):  # attention on directions, as the core has it
            A = jax.nn.softmax(normalise(y) @ jnp.swapaxes(normalise(y), 1, 2), axis=-1)
            return A @ (normalise(y) @ V.T)

        move = Move(Shape(vocab=3, width=d, heads=2, norm=norm))
        move = eqx.tree_at(lambda one: one.gains, move, jnp.ones_like(move.gains))
        moved = move(part, x, h, None)[0]
        force = core.force(jnp.zeros(()), x[0], w)
        expected = {
            "pre": x[0] + h * force,
            "post": normalise(x[0] + h * force) * d**0.5,
            "peri": x[0] + h * d**0.5 * force,
            "ngpt": normalise(x[0] + h * force),
        }[norm]
        np.testing.assert_allclose(moved, expected, rtol=2e-4, atol=2e-4)  # 1e-5 inside the norm


def test_rotary_attention_depends_on_distances_only():
    """Shifting a text does not change what its tokens say to each other."""
    layer = lively(Shape(**SMALL, positions="rotary")).blocks[0].attention
    x = np.random.default_rng(1).normal(size=(1, 6, 8)).astype(np.float32)
    shifted = np.concatenate([np.zeros((1, 3, 8), np.float32), x], axis=1)
    matrix = jax.jit(lambda x: layer.matrix(x)[0], compiler_options=QUICK)
    A, B = matrix(x), matrix(shifted)[:, :, 3:, 3:]
    np.testing.assert_allclose(A, B / B.sum(-1, keepdims=True), atol=1e-5)


@pytest.mark.slow
def test_dropout_keeps_the_mean_and_asks_for_a_key():
    shape = Shape(**SMALL | {"width": 16}, dropout=0.5)
    model = compiled(fresh(shape))
    ids = tokens()[:, :-1]
    plain = model(ids)
    drawn = [model(ids, jax.random.key(seed)) for seed in (1, 1, 2)]
    assert jnp.array_equal(plain, model(ids))
    assert jnp.array_equal(drawn[0], drawn[1])
    assert float(jnp.abs(drawn[0] - drawn[2]).max()) > 0
    x = dropout(jnp.ones(100_000), 0.25, jax.random.key(0))
    assert abs(float(x.mean()) - 1) < 0.01 and abs(float((x == 0).mean()) - 0.25) < 0.01


def test_a_shared_model_runs_past_its_depth_and_others_do_not_change():
    shared = lively(Shape(**SMALL | {"depth": 2}, shared=True))
    ids = tokens()[:, :-1]
    assert len(shared.blocks) == 1
    states = shared.states(ids, depth=5)
    assert states.shape == (6, 2, 6, 8)
    np.testing.assert_allclose(states[:3], shared.states(ids), atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"heads": 3}, "divisor"),
        ({"norm": "rms"}, "norm must be"),
        ({"dropout": 1.0}, "dropout"),
        ({"depth": 0}, "depth"),
    ],
)
def test_shapes_that_cannot_be_are_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        Shape(**wrong)


def test_a_plane_turns_by_its_own_angle():
    """Planes (k, k + m/2) of place t by t 10^(-4 k / (m/2)), as complex numbers."""
    m, x = 8, np.random.default_rng(0).normal(size=(5, 8))
    turn = np.exp(1j * np.arange(5)[:, None] * 10_000.0 ** (-np.arange(m // 2) / (m // 2)))
    expected = (x[:, : m // 2] + 1j * x[:, m // 2 :]) * turn
    with precision("float64"):
        found = np.asarray(rotated(jnp.asarray(x)))
    np.testing.assert_allclose(found[:, : m // 2] + 1j * found[:, m // 2 :], expected, rtol=1e-12)


def test_attention_of_ngpt_is_that_of_unit_vectors_at_its_beta():
    layer = FusedAttention(Shape(vocab=5, width=8, heads=2, norm="ngpt"), jax.random.key(2))
    x = jax.random.normal(jax.random.key(3), (1, 7, 8))
    q, k, _ = (M.reshape(7, 2, 4) for M in jnp.split(x[0] @ layer.qkv, 3, axis=1))
    for h in range(2):
        S = layer.beta[h] * normalise(q[:, h]) @ normalise(k[:, h]).T
        weights = np.tril(np.exp(S))
        rows = weights / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(layer.matrix(x)[0][0, h], rows, rtol=1e-4, atol=1e-6)
