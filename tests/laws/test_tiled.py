"""Attention by tiles is attention: the kernel gives the sums of its formula, the engine the numbers
of `batch`, strips the observables of whole matrices.
"""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.catalogue import entries
from tokenflock.dynamics import (
    NGPT,
    Attention,
    AttentionLaw,
    Block,
    Burger,
    Causal,
    Noisy,
    PureAttention,
    SelfAttention,
    Streamed,
    Unnormalised,
    _tiles,
    streamed,
)
from tokenflock.dynamics._streaming import by_products, by_tiles
from tokenflock.dynamics._tiles import (
    Listening,
    Sides,
    _tiles_seen,
    layers,
    listen,
    listen_by_rows,
    sides,
)
from tokenflock.engines import choose, peaks, tiled
from tokenflock.engines.blocks import Tiles
from tokenflock.engines.job import Job
from tokenflock.errors import UserError
from tokenflock.matrices import RandomMatrices
from tokenflock.observables import (
    Energy,
    MeanCosine,
    MinimumCosine,
    OrderParameter,
    PairDensity,
)
from tokenflock.observables.observable import by_strips
from tokenflock.parts import CausalMask
from tokenflock.precision import cast, precision
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Uniform

N = 70  # more than a tile, and no multiple of one
LAWS = [entry.load() for entry in entries("dynamics")]
HOW = {
    "softmax": Listening(),
    "its own peak": Listening(peaked=True),
    "no division": Listening(divides=False),
    "past": Listening(sees=lambda i, j: i > j, causal=True),
    "window, no division": Listening(False, lambda i, j: (i >= j) & (i - j < 7), causal=True),
}


@pytest.fixture(scope="module", autouse=True)
def compile_quickly():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def unit(d: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(N, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def exact(q, k, v, w, c, shift, how):
    """The sums, with the matrix of all pairs."""
    seen = np.ones((len(q), len(k)), bool)
    if how.sees is not None:
        seen = np.asarray(how.sees(np.arange(len(q))[:, None], np.arange(len(k))))
    E = np.where(seen, w * np.exp(c * q @ k.T - shift), 0)
    Z = E.sum(axis=1)
    if not how.divides:
        return E @ v, Z
    return E @ v / np.where(Z == 0, 1, Z)[:, None], (Z > 0).astype(float)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("d", [3, 18])
def test_the_kernel_is_its_formula(how, d):
    """Weights differ and some are zero; values and keys are of any size."""
    random = np.random.default_rng(1)
    x, w = unit(d), random.uniform(size=N) * (random.uniform(size=N) > 0.2)
    v, w = 30 * x @ random.normal(size=(d, d)), w / w.sum()
    k, c = (x, 4.0) if HOW[how].peaked else (5 * x @ random.normal(size=(d, d)), -0.5)
    given = [jnp.asarray(a, jnp.float32) for a in (x, k, v, w, c)]
    for value, wanted in zip(
        listen(*given, 0.3, HOW[how], interpret=True), exact(x, k, v, w, c, 0.3, HOW[how])
    ):
        np.testing.assert_allclose(value, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
    with precision("float64"):
        rows = listen_by_rows(*map(jnp.asarray, (x, k, v, w, c, 0.3)), HOW[how])
    for value, wanted in zip(rows, exact(x, k, v, w, c, 0.3, HOW[how])):
        np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-13)


def test_small_numbers_keep_their_digits():
    """Entries of 1e-3 and weights of attention far below the largest: half precision alone, or
    halves that are not raised, would lose them.
    """
    x, w = 1e-3 * unit(18), np.full(N, 1 / N)
    with jax.default_matmul_precision("highest"):
        heard, _ = listen(*map(jnp.float32, (x, x, x, w, 1e6)), 0.0, Listening(), interpret=True)
    wanted, _ = exact(x, x, x, w, 1e6, 1.0, Listening())
    np.testing.assert_allclose(heard, wanted, rtol=0, atol=3e-10)


@pytest.mark.parametrize("on_chip", [True, False])
def test_the_engine_gives_the_numbers_of_batch(monkeypatch, on_chip):
    """Many systems, several betas, a law with matrices, one with heads, a mask and a norm: by the
    kernel of a GPU, interpreted, and as a CPU does it.
    """
    how = partial(Tiles, interpret=on_chip)
    monkeypatch.setattr(choose, "_tiles", lambda job, swept: how(peaks.peaked(job, swept)))
    laws = [
        (SelfAttention(), 6, {"beta": [1.0, 3.0]}, Layer(h=0.1)),
        (Attention.example(d=6), 6, {}, RK4(h=0.1)),
        (Block(heads=2, mask="window", norm="pre"), 6, {}, Layer(h=0.1)),
    ]
    observe = [PairDensity(delta=0.3), MeanCosine(), Energy(beta=2.0), OrderParameter()]
    for law, d, over, solver in laws:
        options = {"repeats": 2, "t": 0.2, "frames": 2, "keep": True, "dtype": "float32"}
        results = [
            flock.ensemble(
                law,
                Uniform(n=N, d=d),
                over=over,
                solver=solver,
                observe=observe,
                engine=engine,
                **options,
            )
            for engine in ("tiled", "batch")
        ]
        for name in ("mean_cosine", "energy", "order_parameter", "pair_density"):
            a, b = (result[name].values for result in results)
            np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-7, err_msg=name)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_every_law_listens_by_tiles_or_says_why_not(law):
    law, d, w = law.example(n=N, d=3), 3, np.full(N, 1 / N)
    why = tiled.law_refusal(law, w, d)
    if why is not None:
        assert why.startswith("the tiled engine")
        return
    with precision("float64"):
        law, x = cast(law, "float64"), law.space.project(jnp.asarray(unit(d)))
        by_rows = tiled.tiled(law, peaks.is_peaked(law, [law.inverse_temperature], w), False)
        t, w = jnp.float64(0.3), jnp.asarray(w)
        np.testing.assert_allclose(
            by_rows.velocity(t, x, w), law.velocity(t, x, w), rtol=0, atol=1e-13
        )
        np.testing.assert_allclose(
            Layer(h=0.1).step(by_rows, t, x, w, jax.random.key(0)),
            Layer(h=0.1).step(law, t, x, w, jax.random.key(0)),
            rtol=0,
            atol=1e-13,
        )


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_inner_products_are_the_logits(law):
    law, x, q = law.example(n=N, d=3), 1.5 * unit(3), 2 * unit(3, seed=1)[:9]
    if not isinstance(law, AttentionLaw) or law.products(0.0, q, x) is None:
        return
    with precision("float64"):
        queries, keys, scale, shift = law.products(0.3, jnp.asarray(q), jnp.asarray(x))
        np.testing.assert_allclose(
            scale * (queries @ keys.T) - shift,
            law.logits(0.3, jnp.asarray(q), jnp.asarray(x)),
            rtol=1e-12,
            atol=1e-13,
        )


@pytest.mark.parametrize("beta", [3.0, -3.0])
def test_the_field_by_products_is_the_law_s(beta):
    with precision("float32"):
        law, x = cast(SelfAttention(beta=beta), "float32"), jnp.asarray(unit(3), jnp.float32)
        w, t = jnp.full(N, 1 / N, jnp.float32), jnp.float32(0)
        wanted = law.field(t, x, x, w)
        np.testing.assert_allclose(by_products(law, t, x, x, w, interpret=True), wanted, atol=5e-7)
        np.testing.assert_allclose(
            by_products(law, t, x[:9], x, w, interpret=True), wanted[:9], atol=5e-7
        )


def test_most_laws_do():
    w = np.full(N, 1 / N)
    kinds = {law.__name__ for law in LAWS if tiled.law_refusal(law.example(N, 3), w, 3) is None}
    assert kinds >= {"SelfAttention", "Unnormalised", "Attention", "Causal", "MultiHead", "Block"}
    assert "Sinkhorn" not in kinds and "Hardmax" not in kinds


def test_a_token_is_its_own_peak_only_where_it_is():
    """Where the carried maximum is left out, the own logit must be the largest."""
    w, zero = np.full(4, 0.25), np.array([0.5, 0.5, 0.0, 0.0])
    assert peaks.is_peaked(SelfAttention(), [2.0], w)
    assert peaks.is_peaked(Causal(), [np.array([0.0, 2.0])], w)
    for law, beta, weights in (
        (SelfAttention(), [np.array([2.0, -1.0])], w),
        (SelfAttention(), [None], w),
        (SelfAttention(), [2.0], zero),
        (Attention.example(), [2.0], w),
        (Block(mask=CausalMask(strict=True)), [2.0], w),
        (Attention(Q=-1.0), [2.0], w),
        (Block(norm="none"), [2.0], w),
        (Block(positions="rotary"), [2.0], w),
    ):
        assert not peaks.is_peaked(law, beta, weights)


def test_the_kernel_lowers_for_a_gpu_that_is_not_there():
    w = jnp.full(N, 1 / N, jnp.float32)
    for law, d in ((SelfAttention(beta=2.0), 3), (Unnormalised(), 40), (Causal(), 40)):
        with precision("float32"):
            block = tiled.tiled(cast(law, "float32"), True, False)
            step = jax.vmap(
                lambda x, law=block: Layer(h=0.1).step(law, jnp.float32(0), x, w, jax.random.key(0))
            )
            lowered = jax.jit(step).trace(jnp.ones((2, N, d), jnp.float32))
            assert "triton" in lowered.lower(lowering_platforms=("cuda",)).as_text()


def test_simulate_takes_tiles_for_many_tokens(monkeypatch):
    """And gives what it gives for few; the recipe names the law that was asked for."""
    asked = {"t": 0.5, "frames": 2, "observe": [MeanCosine()], "seed": 1}
    whole = flock.simulate(Noisy(SelfAttention()), Uniform(n=N, d=3), **asked)
    seen = []
    monkeypatch.setattr(tiled, "MANY", N)
    monkeypatch.setattr(tiled.TiledBlock, "listening", lambda block: seen.append(1) or Listening())
    by_tiles = flock.simulate(Noisy(SelfAttention()), Uniform(n=N, d=3), **asked)
    assert seen
    np.testing.assert_allclose(by_tiles.x, whole.x, rtol=0, atol=1e-12)
    assert by_tiles.attrs["recipe"] == whole.attrs["recipe"]


@pytest.mark.parametrize("kind", [entry.load() for entry in entries("observables")])
def test_strips_give_the_observable_of_the_whole(kind):
    observable = kind.example() if hasattr(kind, "example") else kind()
    if not observable.strips:
        return
    observable = observable.bind(SelfAttention(beta=2.0))
    random = np.random.default_rng(0)
    w = random.uniform(size=N) * (random.uniform(size=N) > 0.3)
    with precision("float64"):
        for weights in (w / w.sum(), np.eye(N)[3]):
            x = jnp.asarray(unit(3)), jnp.asarray(weights)
            np.testing.assert_allclose(observable.by_strips(*x), observable.measure(*x), rtol=1e-12)


def test_what_tiles_cannot_do_is_refused_in_words():
    job = Job(SelfAttention(), Layer(), (), np.full(4, 0.25), np.arange(2), (), "float64", True)
    assert "float32" in str(tiled.refusal(job, 3))
    for law, word in (
        (Block(attention="sinkhorn"), "exponentials"),
        (Block(positions="alibi"), "bias"),
        (Block.example().as_block(), None),
    ):
        why = tiled.law_refusal(law, np.full(4, 0.25), 3)
        assert (why is None) if word is None else (word in str(why))
    assert "200 coordinates" in str(tiled.law_refusal(SelfAttention(), np.full(4, 0.25), 200))
    with pytest.raises(UserError, match="tiled"):
        flock.ensemble(Block(attention="sinkhorn"), Uniform(n=4, d=3), engine="tiled", t=1.0)


class Warming(NamedTuple):
    """An inverse temperature that grows in time."""

    def __call__(self, t):
        return 1 + 2 * t


@pytest.mark.parametrize("law", [SelfAttention(beta=4.0), Causal(beta=2.0)], ids=["all", "past"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_layers_on_chip_are_layers_one_by_one(law, count):
    """The kernel leaves halves of the tokens for the next layer: so many layers in a row are so
    many by the definition, whatever the number of tokens and of coordinates.
    """
    w = np.random.default_rng(3).uniform(0.5, 1, size=N)
    w = w / w.sum()
    with precision("float64"):
        x = jnp.asarray(unit(18))
        wanted = Layer(h=0.3).steps(law, jnp.asarray(0.0), x, jnp.asarray(w), count)
    with jax.default_matmul_precision("highest"):
        block = tiled.tiled(cast(law, "float32"), True, True)
        given = jnp.float32(0), jnp.float32(unit(18)), jnp.float32(w)
        found = Layer(h=jnp.float32(0.3)).steps(block, *given, count)
    assert block.unit and found.dtype == jnp.float32
    np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-7)


@pytest.mark.parametrize("part", ["none", "relu"])
def test_time_goes_on_within_a_round(part):
    """Steps of a round have their own times: a law that warms up sees each of them, in all of its
    sublayers.
    """
    law = Block(beta=Warming(), feed_forward=part)
    with precision("float64"):
        one = x = jnp.asarray(unit(6))
        w = jnp.full(N, 1 / N)
        for number in range(4):
            one = Layer(h=0.5).step(law, jnp.asarray(0.5 * number), one, w, None)
        four = Layer(h=0.5).steps(law, jnp.asarray(0.0), x, w, 4)
        cold = Layer(h=0.5).steps(Block(beta=1.0), jnp.asarray(0.0), x, w, 4)
    np.testing.assert_allclose(four, one, rtol=0, atol=1e-6)
    assert np.abs(cold - one).max() > 0.01


def test_layers_on_chip_have_their_own_times():
    law = Block(beta=Warming())
    x, w = jnp.float32(unit(18)), jnp.full(N, 1 / N, jnp.float32)
    found = [
        Layer(h=jnp.float32(0.5)).steps(block, jnp.float32(0), x, w, 3)
        for block in (law, tiled.tiled(law, True, True))
    ]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("law", "matrices"),
    [
        (SelfAttention(), None),
        (Noisy(SelfAttention()), None),
        (Attention(), RandomMatrices(period=0.3)),
    ],
    ids=["plain", "noisy", "matrices that change"],
)
def test_rounds_make_up_all_steps(monkeypatch, law, matrices):
    """Of twelve steps that a GPU goes without asking the host, four at a time, none is lost, and
    each has its time.
    """
    found = []
    for length in (1, 4):
        how = partial(Tiles, interpret=False, round=length)
        monkeypatch.setattr(choose, "_tiles", lambda job, swept, how=how: how(False))
        options = {"repeats": 2, "t": 1.2, "frames": 2, "observe": [MeanCosine()]}
        options |= {"matrices": matrices}
        start, solver = Uniform(n=N, d=5), Layer(h=0.1)
        found.append(
            flock.ensemble(law, start, solver=solver, engine="tiled", dtype="float32", **options)
        )
    np.testing.assert_allclose(found[0].mean_cosine, found[1].mean_cosine, rtol=1e-6)
    assert found[0].mean_cosine.values[..., 1] != found[0].mean_cosine.values[..., 0]


TILES = [  # tokens, coordinates, whether all are alike: the tile, its warps and stages
    ((70, 1, False), (32, 32, 4, 2)),
    ((5000, 4, True), (32, 32, 4, 2)),
    ((5000, 5, False), (64, 64, 4, 3)),
    ((5000, 32, True), (64, 64, 4, 3)),
    ((64, 128, True), (64, 64, 4, 3)),
    ((65, 33, True), (64, 128, 4, 3)),
    ((65, 33, False), (64, 64, 4, 3)),
    ((5000, 64, True), (64, 128, 4, 3)),
    ((5000, 65, True), (64, 64, 4, 2)),
    ((5000, 128, False), (64, 32, 4, 2)),
]


@pytest.mark.parametrize(("asked", "tile"), TILES)
def test_tiles_are_those_that_were_found_quickest(asked, tile):
    """Measured once on a GPU; that they are powers of two, its compiler wants."""
    assert tuple(sides(*asked)) == tile


def heard(q, k, v, w, c, shift, how):
    with jax.default_matmul_precision("highest"):
        return listen(*map(jnp.float32, (q, k, v, w, c, shift)), how, interpret=True)


@pytest.mark.parametrize(
    ("m", "n", "d", "e", "divides"),
    [(9, N, 3, 2, False), (N, 40, 6, 20, False), (9, 33, 20, 2, True)],
)
def test_queries_keys_and_values_may_be_of_any_number_and_width(m, n, d, e, divides, monkeypatch):
    random = np.random.default_rng(5)
    q, k, v = random.normal(size=(m, d)), random.normal(size=(n, d)), random.normal(size=(n, e))
    w = random.uniform(size=n) / n
    given, how = (q, k, v, w, 0.4, 0.7), Listening(divides)
    asked = []
    monkeypatch.setattr(_tiles, "sides", lambda *sizes: asked.append(sizes) or sides(*sizes))
    if max(d, e) > _tiles.FEW:  # plain multiplications are for few coordinates alone
        monkeypatch.setattr(_tiles, "_few", None)
    for value, wanted in zip(heard(*given, how), exact(*given, how)):
        np.testing.assert_allclose(value, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
    assert asked == [(n, max(d, e), False)]


def test_unit_vectors_that_listen_to_each_other_need_no_scale():
    """Where rows and columns of a tile differ, both must hold all tokens."""
    random, n, d = np.random.default_rng(6), 130, 40
    x = random.normal(size=(n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    w = random.uniform(0.5, 1, size=n)
    for how in (
        Listening(peaked=True, unit=True),
        Listening(divides=False, peaked=True, unit=True),
        Listening(sees=lambda i, j: i >= j, causal=True, peaked=True, unit=True),
    ):
        plain = how._replace(unit=False)
        given = x, x, x, w / w.sum(), 3.0, 0.2
        for value, wanted in zip(heard(*given, how), exact(*given, plain)):
            np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())


def test_layers_of_more_tokens_than_a_tile_lose_none():
    n, d, h = 130, 40, 0.3
    random = np.random.default_rng(7)
    x = random.normal(size=(n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    w = random.uniform(0.5, 1, size=n)
    w, y = w / w.sum(), x
    how = Listening(divides=False, peaked=True, unit=True)
    for number in range(2):
        said, _ = exact(y, y, y, w, 3.0 + number, 0.5 - number, how)
        y = (y + h * said) / np.linalg.norm(y + h * said, axis=1, keepdims=True)

    def after(x, said, h):
        y = x + h * said
        return y / jnp.sqrt(jnp.maximum(jnp.sum(y * y, axis=1, keepdims=True), 1e-12))

    given = jnp.float32(x), jnp.float32(w), lambda k: 3.0 + k, lambda k: 0.5 - k, h, 2, after, how
    with jax.default_matmul_precision("highest"):
        found = layers(*given, interpret=True)
    np.testing.assert_allclose(found, y, rtol=0, atol=5e-7)


@pytest.mark.parametrize("d", [3, 18])
@pytest.mark.parametrize("peaked", [True, False])
def test_sharp_attention_neither_overflows_nor_fades(d, peaked):
    """Logits of 200 and more: the largest is taken off, the own one or the one that is carried."""
    x, w = unit(d), np.full(N, 1 / N)
    given, how = (x, x, x, w, 200.0, 0.0), Listening(peaked=peaked)
    for value, wanted in zip(heard(*given, how), exact(*given, how)):
        np.testing.assert_allclose(value, wanted, rtol=0, atol=3e-4)


def test_numbers_of_one_sign_and_of_none_keep_their_size():
    """Values far below zero, of which the largest is small; and values that are all zero."""
    x, w = unit(18), np.full(N, 1 / N)
    far = -np.abs(x) * np.where(np.arange(N) == 3, 1e5, 1e-2)[:, None]
    for v in (far, np.zeros((N, 18))):
        found, _ = heard(x, x, v, w, 2.0, 0.0, Listening())
        wanted, _ = exact(x, x, v, w, 2.0, 0.0, Listening())
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())


def far_apart():
    """Tokens about one pole, and one of no weight at the other."""
    x = unit(3)[:40]
    x[:, 2] = 3 * np.abs(x[:, 2])
    x[0] = [0.0, 0.0, -1.0]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x, np.where(np.arange(40) == 0, 0, 1 / 39)


@pytest.mark.parametrize(
    ("law", "heavy", "away"),
    [
        (SelfAttention(200.0), False, False),  # a token without weight, far from all others
        (SelfAttention(200.0), True, True),  # points that are no tokens
        (SelfAttention(-200.0), True, False),
        (Attention(200.0, Q=-1.0), True, False),
        (Attention(200.0, K=-1.0), True, False),
        (PureAttention(200.0), True, False),  # tokens of several lengths
    ],
)
def test_a_maximum_is_left_out_only_where_the_own_logit_is_known_to_be_it(law, heavy, away):
    """Else sums of sharp attention overflow or vanish."""
    x, w = far_apart()
    w = np.full(40, 1 / 40) if heavy else w
    if isinstance(law, PureAttention):
        x = x * np.linspace(0.5, 1.5, 40)[:, None]
    q = -x[5:9] if away else x
    with precision("float64"):
        wanted = law.field(0.0, *map(jnp.asarray, (q, x, w)))
    with precision("float32"):
        single, tokens = cast(law, "float32"), jnp.float32(x)
        points = jnp.float32(q) if away else tokens
        given = jnp.float32(0), points, tokens, jnp.float32(w)
        found = by_products(single, *given, interpret=True)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3)


def test_kernels_run_on_the_chip_unless_told_otherwise():
    for kernel in (listen, layers, by_products, by_tiles):
        assert signature(kernel).parameters["interpret"].default is False


def test_the_widest_tokens_are_taken_and_wider_ones_are_not():
    w = np.full(4, 0.25)
    assert tiled.law_refusal(SelfAttention(), w, 128) is None
    assert tiled.law_refusal(SelfAttention(), w, 129) is not None


@pytest.mark.parametrize(
    ("law", "dtype", "way"),
    [
        (SelfAttention(2.0), "float32", "by_products"),
        (SelfAttention(2.0), "float64", None),
        (NGPT(), "float32", None),  # what it hears is changed afterwards
        (Burger.example(N, 3), "float32", "by_tiles"),  # no inner products of tokens
    ],
    ids=["products", "double", "changed", "tiles"],
)
def test_streamed_sums_run_by_tiles_exactly_where_these_serve(law, dtype, way, monkeypatch):
    """On a GPU; and they know whether tokens listen to themselves."""
    seen = []

    def told(name):
        return lambda law, t, q, x, w: seen.append((name, q is x)) or jnp.zeros_like(q)

    for name in ("by_products", "by_tiles"):
        monkeypatch.setattr(streamed, name, told(name))
    with precision(dtype):
        whole = cast(Streamed(law, block=8), dtype)
        x, w = jnp.asarray(unit(3), dtype), jnp.full(N, 1 / N, dtype)
        jax.eval_shape(lambda x: whole.field(0.0, x, x, w), x)
        jax.eval_shape(lambda q: whole.field(0.0, q, x, w), x[:9])
        if way == "by_products":
            found = whole.field(0.0, x[:9], x, w)
            wanted = cast(law, dtype).field(0.0, x[:9], x, w)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)
    assert seen == ([] if way is None else [(way, True), (way, False)])


def test_no_query_looks_for_tiles_beyond_the_last():
    tile, causal = Sides(64, 32, 4, 2), Listening(causal=True)
    seen = [int(_tiles_seen(causal, first, tile, 3)) for first in (0, 64)]
    assert seen == [2, 3] and int(_tiles_seen(Listening(), 64, tile, 3)) == 3


def test_rows_of_attention_are_held_a_few_at_a_time():
    n = 3000
    x, w = jax.ShapeDtypeStruct((n, 3), jnp.float32), jax.ShapeDtypeStruct((n,), jnp.float32)
    told = jax.jit(lambda x, w: listen_by_rows(x, x, x, w, 2.0, 0.0, Listening()))
    held = told.lower(x, w).compile().memory_analysis().temp_size_in_bytes
    assert held < 4 * n * n / 4, held  # of the whole matrix


def test_sums_by_strips_stay_cosines_whatever_is_rounded():
    """Of antipodal tokens, whose inner product may come out as -1.0000001."""
    x, w = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32), jnp.full(2, 0.5)
    least = [float(by_strips(MinimumCosine(), jnp.asarray([v, -v]), w)) for v in x]
    assert min(least) >= -1 and max(least) < -0.999
