"""What the kernels of a GPU are given, and what they refuse: room, padding, halves and bounds, to
the number. Nothing here is compiled for a GPU.
"""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tokenflock.dynamics import (
    Attention,
    Block,
    Causal,
    Clock,
    FeedForward,
    SelfAttention,
    Sinkhorn,
    Streamed,
    Unnormalised,
)
from tokenflock.engines import choose, resident, tiled
from tokenflock.engines._split_products import UNIT, Lookup, _bound, _split, halves, whole
from tokenflock.engines._split_products import with_split_products as split
from tokenflock.engines.job import Job
from tokenflock.events import Consensus
from tokenflock.observables import Histogram, MeanCosine, OrderParameter, PairDensity
from tokenflock.parts import NoHeads, NoWeighing
from tokenflock.solvers import Layer

RNG = np.random.default_rng(0)


def job(law=None, observe=(PairDensity(),), n=7, paths=(), dtype="float32", until=None):
    law, w = SelfAttention(beta=2.0) if law is None else law, np.arange(1.0, n + 1)
    steps = np.array([0, 2, 5])
    parts = law, Layer(h=0.1), tuple(observe)
    return Job(*parts, w / w.sum(), steps, paths, dtype, True, until)


def matrices(d, count):
    return Attention(beta=2.0, **{name: np.eye(d) for name in "QKV"[:count]})


# --------------------------------------------------------------------------------------------------
# what fits on chip


@pytest.mark.parametrize(
    ("asked", "n", "d", "words"),
    [
        (job(), 128, 256, None),
        (job(), 129, 256, "n = 129, d = 256 does not fit"),
        (job(), 128, 257, "n = 128, d = 257 does not fit"),
        (job(matrices(128, 2)), 128, 128, None),
        (job(matrices(129, 2)), 7, 129, "side 129 do not fit on chip"),
        (job(matrices(65, 3)), 16, 65, "3 matrices of side 65 need 256 KiB of shared memory, of"),
        (job(matrices(65, 2)), 65, 65, None),
        (job(matrices(64, 3)), 65, 64, None),
        (job(dtype="float64"), 7, 3, "float32"),
        (job(until=Consensus()), 7, 3, "not for events"),
        (job(observe=(PairDensity(), Histogram())), 7, 3, "one number"),
        (job(observe=()), 7, 3, None),
    ],
)
def test_what_fits_on_chip_and_what_does_not(asked, n, d, words):
    found = resident.refusal(asked, n, d)
    assert found is None if words is None else words in str(found)


@pytest.mark.parametrize(
    ("device", "room", "most"),  # how many matrices of side 96 fit
    [
        ({"platform": "cpu"}, 227 * 1024, 2),
        ({"platform": "gpu", "shared_memory_per_block_optin": 232_448}, 232_448, 2),
        ({"platform": "gpu", "compute_capability": "9.0"}, 227 * 1024, 2),
        ({"platform": "gpu", "compute_capability": "8.0"}, 163 * 1024, 1),
        ({"platform": "gpu", "compute_capability": "8.6"}, 99 * 1024, 0),
        ({"platform": "gpu", "shared_memory_per_block_optin": 400_000}, 400_000, 5),
    ],
)
def test_matrices_fit_where_the_card_has_room_for_them(monkeypatch, device, room, most):
    """Else the engine that is chosen on a GPU is another one."""
    device = SimpleNamespace(**device)
    monkeypatch.setattr(resident.jax, "devices", lambda: [device])
    assert resident.shared_memory() == room
    for count in range(4):
        asked = job(matrices(96, count), n=16)
        refusal = resident.refusal(asked, 16, 96)
        assert (refusal is None) == (count <= most)
        refusals = {"resident": lambda refusal=refusal: refusal, "tiled": lambda: None}
        engine, why = choose._automatic(refusals, asked, True, 16, None)
        assert engine == ("resident" if refusal is None else "batch")
        assert refusal is None or "shared memory" in why
    assert (resident.refusal(job(), 16, 96, random_matrices=True) is None) == (most >= 2)


def launched(monkeypatch, asked, n, d, swept=()):
    """What the kernel is called with."""
    seen = SimpleNamespace()

    def call(kernel, **options):
        seen.layout, seen.frames = kernel.keywords["layout"], kernel.keywords["frames"]
        seen.delta, seen.options = kernel.keywords["delta"], options

        def run(*given):
            seen.given = given
            return [np.zeros(1) for _ in options["out_shape"]]

        return run

    monkeypatch.setattr(resident.pl, "pallas_call", call)
    x = jnp.asarray(RNG.normal(size=(3, n, d)), jnp.float32)
    strides, w = jnp.asarray([2, 3, 0], jnp.int32), jnp.asarray(asked.w, jnp.float32)
    launch = resident._launch.__wrapped__
    launch(asked.parts, asked.paths, x, w, strides, list(swept), asked.delta, False)
    seen.x, seen.warps = x, seen.options["compiler_params"].num_warps
    return seen


def test_tokens_and_weights_are_filled_up_to_powers_of_two(monkeypatch):
    """With unit vectors of weight zero; matrices with zeros, also those that are swept."""
    V = jnp.asarray(RNG.normal(size=(3, 5, 5)), jnp.float32)
    law = Attention(beta=2.0, Q=RNG.normal(size=(5, 5)))
    asked = job(law, (PairDensity(), MeanCosine()), 20, ((0, "V"), (0, "beta")))
    seen = launched(monkeypatch, asked, 20, 5, (V, jnp.arange(3.0)))
    x, w, strides, *numbers = seen.given
    assert x.shape == (3, 32, 16) and w.shape == (32,)
    np.testing.assert_array_equal(x[:, :20, :5], seen.x)
    assert (x[:, :20, 5:] == 0).all()
    np.testing.assert_array_equal(x[:, 20:], np.broadcast_to(np.eye(16)[0], (3, 12, 16)))
    np.testing.assert_allclose(w, [*asked.w, *[0] * 12], rtol=1e-6)
    assert strides.tolist() == [2, 3, 0] and seen.frames == 3
    assert [one.shape for one in numbers if one.ndim] == [(16, 16), (3, 16, 16), (3,)]
    np.testing.assert_array_equal(numbers[-2][:, :5, :5], V)
    assert (numbers[-2][:, 5:] == 0).all() and (numbers[-2][:, :, 5:] == 0).all()
    assert seen.layout.shared == len(numbers) - 2 == seen.layout.inputs - 2
    assert seen.options["grid"] == (3,) and seen.options["interpret"] is False
    assert [(one.shape, one.dtype) for one in seen.options["out_shape"]] == [
        ((3, 3), "float32")
    ] * 2
    assert not seen.layout.large and seen.delta is None


@pytest.mark.parametrize(
    ("n", "d", "count", "keeps", "warps"),
    [
        (7, 3, 0, True, 2),
        (64, 16, 0, True, 2),
        (65, 16, 0, True, 4),
        (16, 65, 0, True, 4),
        (128, 256, 0, False, 4),
        (7, 65, 1, True, 4),
        (7, 64, 2, True, 2),
        (32, 65, 2, True, 4),
        (33, 65, 2, False, 8),
        (7, 65, 3, False, 8),
    ],
)
def test_matrices_stay_in_shared_memory_where_they_fit_beside_the_tokens(
    monkeypatch, n, d, count, keeps, warps
):
    """Halves of a wide matrix take 4 bytes an entry, tokens 16, of 220 kB."""
    law = matrices(d, count) if count else None
    seen = launched(monkeypatch, job(law, n=n), n, d)
    assert (seen.layout.large, seen.layout.keeps) == (d > 64 and count > 0, keeps)
    assert seen.warps == warps
    assert seen.delta == (pytest.approx(1e-3) if count == 0 else seen.delta)


def test_large_matrices_come_in_halves_and_all_else_as_it_is(monkeypatch):
    monkeypatch.setattr(resident, "halves", lambda a: "halves")
    for shape, lead, large in (
        ((65, 65), 0, True),
        ((64, 65), 0, False),
        ((65, 64), 0, False),
        ((64, 64), 0, False),
        ((3, 65, 65), 1, True),
        ((65, 65), 1, False),
        ((70, 70, 70), 0, False),
        ((100,), 0, False),
    ):
        found = resident._on_chip(np.ones(shape), lead)  # type: ignore[arg-type]
        assert (found == "halves") if large else (found.shape == shape)


def layout(keeps):
    """Two numbers that all share, of which one is in halves, and one of each system."""
    numbers = [jnp.ones(3), halves(jnp.ones((65, 65))), jnp.arange(4.0)]
    _, places = jax.tree.flatten(numbers)
    return resident._Layout(None, (), (), 2, places, True, keeps)  # type: ignore[arg-type]


class Ref:
    """A reference that counts how often it is read."""

    def __init__(self, value):
        self.value, self.reads, self.shape = value, 0, value.shape

    def __getitem__(self, at):
        self.reads += 1
        return self.value[at]


@pytest.mark.parametrize("keeps", [True, False])
def test_matrices_that_fit_are_read_once_and_the_rest_at_every_step(keeps):
    made = halves(jnp.asarray(RNG.normal(size=(65, 66)), jnp.float32))
    refs = [Ref(jnp.ones(3)), *map(Ref, made), Ref(jnp.arange(4.0) * 10), Ref(jnp.zeros(1))]
    read = layout(keeps).reader(refs, 2)
    for _ in range(3):
        plain, matrix, own = read()
        assert plain.shape == (3,) and float(own) == 20
        assert isinstance(matrix, Lookup) and matrix.shape.shape == (65, 66)
        np.testing.assert_array_equal(matrix.read().high, made.high)
    assert [one.reads for one in refs[1:4]] == [1 if keeps else 3] * 3
    assert refs[0].reads == refs[4].reads == 3 + keeps and refs[5].reads == 0


def test_a_system_rests_by_its_values_or_by_its_least_cosine():
    x = jnp.asarray([[1.0, 0.0], [np.cos(0.1), np.sin(0.1)]])
    w, one, half = jnp.asarray([0.5, 0.5]), jnp.asarray(1.0), jnp.asarray(0.5)
    pairs = PairDensity(), PairDensity(delta=0.1)
    assert bool(resident._settled(pairs, (one, one), x, w, 0.0))
    assert not bool(resident._settled(pairs, (one, half), x, w, 2.0))
    mixed = PairDensity(), OrderParameter()
    near = 1 - np.cos(0.1)
    assert bool(resident._settled(mixed, (half, half), x, w, 1.01 * near))
    assert not bool(resident._settled(mixed, (half, half), x, w, 0.99 * near))


# --------------------------------------------------------------------------------------------------
# halves


def wide(shape, seed=0):
    """Entries of very different size, the largest negative."""
    a = np.random.default_rng(seed).normal(size=shape) * np.geomspace(1, 50, shape[-1])
    a.flat[3] = -3 * np.abs(a).max()
    return jnp.asarray(a, jnp.float32)


def test_halves_of_many_matrices_are_each_relative_to_its_own_largest():
    a = jnp.stack([wide((5, 7)), 100 * wide((5, 7), 1), jnp.zeros((5, 7))])
    top = np.array([*np.abs(a[:2]).max(axis=(1, 2)), 1.0])
    high, low, scale = halves(a)
    assert high.dtype == low.dtype == jnp.float16 and scale.shape == (3,)
    np.testing.assert_allclose(scale, top / 4096, rtol=1e-6)
    assert float(jnp.abs(high).max()) == 4096
    together = (np.asarray(high, float) + np.asarray(low, float)) * np.asarray(scale)[:, None, None]
    assert (np.abs(together - a) <= 2.0**-22 * top[:, None, None]).all()
    assert np.abs(np.asarray(high, float) * np.asarray(scale)[:, None, None] - a).max() > 1e-4
    one = halves(a[0])
    np.testing.assert_allclose(one.joined(), a[0], atol=2.0**-22 * top[0])
    np.testing.assert_allclose(one.T.joined(), a[0].T, atol=2.0**-22 * top[0])
    lookup = Lookup(jax.ShapeDtypeStruct((5, 7), jnp.float32), lambda: one)
    np.testing.assert_array_equal(whole(lookup), one.joined())
    assert whole(a) is a and whole(Lookup(lookup.shape, lambda: a)) is a


@pytest.mark.parametrize("axis", [0, 1])
def test_a_matrix_is_split_relative_to_the_largest_of_each_line(axis):
    a = wide((5, 7)).at[2].set(0).at[:, 4].set(0)
    a = a.at[4, 1].set(-2000.0)
    high, low, scale = _split(a, axis, None)
    top = np.abs(a).max(axis=axis)
    np.testing.assert_allclose(scale, np.where(top == 0, 1, top))
    spread = np.expand_dims(np.asarray(scale), axis)
    together = (np.asarray(high, float) + np.asarray(low, float)) * spread
    assert (np.abs(together - a) <= 2.0**-20 * spread).all()
    assert 0.99 < float(jnp.abs(high).max()) <= 1


def test_a_known_bound_takes_the_place_of_the_largest():
    a, made = wide((5, 7)), halves(wide((5, 7)))
    assert _split(made, 0, None) is made
    high, low, scale = _split(a, 0, jnp.asarray(1000.0))
    assert float(scale) == pytest.approx(1000 / 4096)
    together = (np.asarray(high, float) + np.asarray(low, float)) * float(scale)
    np.testing.assert_allclose(together, a, atol=1e-3)
    unit = a / 1000
    high, low, scale = _split(unit, 0, UNIT)
    assert scale is None
    together = np.asarray(high, float) + np.asarray(low, float)
    np.testing.assert_allclose(together, unit, atol=1e-6)


def test_unit_vectors_times_a_matrix_are_bounded_by_its_entries():
    """|<x, M_k>| <= sqrt(side) max |M|; of other products nothing is known."""
    made, plain = halves(wide((5, 7))), wide((5, 7))
    bound = np.sqrt(7) * np.abs(plain).max()
    assert float(_bound(plain, made, UNIT, None)) == pytest.approx(bound, rel=1e-6)
    assert float(_bound(made, plain, None, UNIT)) == pytest.approx(bound, rel=1e-6)
    for other in (
        (plain, made, None, None),
        (made, plain, None, None),
        (plain, plain, UNIT, UNIT),
        (made, plain, UNIT, None),
        (plain, made, None, UNIT),
    ):
        assert _bound(*other) is None


def test_the_largest_entry_is_looked_for_only_where_no_bound_is_known():
    """Of unit vectors, also transposed and inside functions, and of their products with halves
    nothing is searched; of other matrices each side is.
    """
    x = jnp.asarray(np.eye(16, 72), jnp.float32)
    M = jnp.asarray(RNG.normal(size=(72, 72)), jnp.float32)
    shape = jax.ShapeDtypeStruct((72, 72), jnp.float32)

    def searches(law, ahead=False):
        def given(x, M):
            return split(law, ahead)(x, Lookup(shape, lambda: halves(M)))

        def known(x, M):  # those of `halves` itself
            return halves(M)

        texts = [str(jax.make_jaxpr(one)(x, M)) for one in (given, known)]
        return texts[0].count("reduce_max") - texts[1].count("reduce_max") * (
            texts[0].count("reduce_precision")
        )

    inner = jax.jit(lambda x: x @ x.T)
    for ahead in (False, True):
        assert searches(lambda x, M: x @ x.T, ahead) == 0
        assert searches(lambda x, M: inner(x), ahead) == 0
        assert searches(lambda x, M: x @ M.T, ahead) == 0
        assert searches(lambda x, M: (x @ M) @ x.T, ahead) == 0
        assert searches(lambda x, M: x @ (M @ x.T), ahead) == 0
        assert searches(lambda x, M: (2 * x) @ x.T, ahead) == 1
        assert searches(lambda x, M: (2 * x) @ (x.T + 1), ahead) == 2


# --------------------------------------------------------------------------------------------------
# tiles

W = np.array([0.25, 0.25, 0.5])


def test_which_laws_listen_by_tiles():
    some, none = W, np.array([0.5, 0.5, 0.0])
    wide = Attention(Q=np.ones((129, 3)), K=np.ones((129, 3)))
    for law, w, d, words in (
        (SelfAttention(), none, 128, None),
        (SelfAttention(), some, 129, "of 129 coordinates"),
        (wide, some, 3, "of 129 coordinates"),
        (Attention(Q=np.ones((128, 3)), K=np.ones((128, 3))), some, 3, None),
        (Attention(V=np.eye(3)), some, 3, None),
        (Causal(), some, 3, None),
        (Causal(), none, 3, "every token has a weight"),
        (Causal(), 0 * none, 3, "every token has a weight"),
        (Unnormalised(), none, 3, None),
        (Block(attention=NoWeighing(shares=True)), some, 3, "exponentials"),
        (Block(attention="sigmoid"), some, 3, "exponentials"),
        (Block(heads=NoHeads(), feed_forward="relu"), some, 3, "laws with attention"),
        (Block(positions="rotary"), some, 4, None),
        (Sinkhorn(), some, 3, "the tiled engine"),
    ):
        found = tiled.law_refusal(law, w, d)
        assert found is None if words is None else words in str(found), (law, found)


def test_many_tokens_of_one_system_go_by_tiles_where_they_can(monkeypatch):
    law = SelfAttention(beta=2.0)
    for n in (2047, 2048):
        found = tiled.for_many(law, np.zeros((n, 3)), np.full(n, 1 / n))  # type: ignore[arg-type]
        assert isinstance(found, tiled.TiledBlock) == (n == 2048)
    monkeypatch.setattr(tiled, "MANY", 3)
    x = jnp.eye(3)
    found = tiled.for_many(law, x, W)
    assert isinstance(found, tiled.TiledBlock) and found.peaked and not found.interpret
    assert not tiled.for_many(SelfAttention(beta=-2.0), x, W).peaked
    for other, tokens in ((law, x[:2]), (Streamed(law), x), (Sinkhorn(), x)):
        assert tiled.for_many(other, tokens, W[: len(tokens)]) is other
    assert tiled.for_many(FeedForward.example(3, 3), x, W) is not None


def test_how_a_block_listens():
    """Softmax divides; a peak of the clock takes beta off every logit; masks are asked by place."""
    for law, divides, shift in (
        (SelfAttention(beta=3.0), True, 0.0),
        (Unnormalised(beta=3.0), False, 0.0),
        (Unnormalised(beta=3.0, clock=Clock.PEAK), False, 3.0),
    ):
        block = tiled.tiled(law, True, False)
        how = block.listening()
        assert (how.divides, how.sees, how.causal) == (divides, None, False)
        assert how.peaked and how.unit == block.unit and block.shift(3.0) == shift
        assert block.unit and len(block.sublayers) == 1
    assert not tiled.tiled(SelfAttention(), False, False).unit
    assert not tiled.tiled(Attention(V=2 * np.eye(3)), True, False).unit
    how = tiled.tiled(Causal(), False, False).listening()
    places = np.arange(3)
    seen = how.sees(places[:, None], places)
    assert how.causal and not how.peaked
    np.testing.assert_array_equal(seen, np.tril(np.ones((3, 3), bool)))
    plain = tiled.TiledBlock()
    assert not plain.peaked and not plain.interpret


def test_the_kernel_of_a_machine_is_taken_there():
    """By the kernel where it is asked for, by rows in double precision, else where it runs."""
    block = tiled.tiled(SelfAttention(), True, False)
    asked = tiled.tiled(SelfAttention(), True, True)
    single, double = jnp.ones(2, jnp.float32), SimpleNamespace(dtype=np.dtype("float64"))
    assert asked._where("kernel", "rows", double) == "kernel"  # type: ignore[arg-type]
    assert block._where("kernel", "rows", double) == "rows"  # type: ignore[arg-type]
    for near, words in ((None, {"cuda"}), ("near", {"cuda", "cpu"})):
        chosen = block._where("kernel", "rows", single, near)  # type: ignore[arg-type]
        assert set(chosen.keywords) == words | {"default"}
        assert chosen.keywords["cuda"] == "kernel" and chosen.keywords["default"] == "rows"
        assert chosen.keywords.get("cpu") == near
