"""Every engine obeys the one equation: the GPU kernels give the numbers of `batch`, and lower for a
GPU that is not there.
"""

from __future__ import annotations

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
    Causal,
    FeedForward,
    Kuramoto,
    MultiHead,
    Noisy,
    PostNorm,
    PureAttention,
    SelfAttention,
    Sinkhorn,
    SqrtNorm,
    Streamed,
    Unnormalised,
)
from tokenflock.dynamics._matrices import Switching
from tokenflock.dynamics._streaming import SIDE, by_rows, by_tiles, tiles
from tokenflock.dynamics.neural_ode import Activation, NeuralODE
from tokenflock.engines import resident
from tokenflock.engines._split_products import Lookup, halves, with_split_products
from tokenflock.engines.job import Job
from tokenflock.matrices import Ginibre, Per, RandomMatrices, Value
from tokenflock.observables import (
    ClusterCount,
    ConeMargin,
    ConsensusDistance,
    Dissipation,
    Energy,
    Histogram,
    MeanCosine,
    MinimumCosine,
    OrderParameter,
    PairDensity,
)
from tokenflock.precision import cast, precision
from tokenflock.solvers import RK4, Euler, Layer
from tokenflock.spaces import Sphere
from tokenflock.starts import Given
from tokenflock.verbs.ensemble import ensemble

N, D = 7, 3
SMOOTH = (MinimumCosine(), OrderParameter())
MANY = (*SMOOTH, MeanCosine(), Energy(), Dissipation(), ConsensusDistance())
RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module", autouse=True)
def compile_quickly():
    """These tests compile many small programs that run once: half the time goes into making them
    fast.
    """
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def both(law, start, observe=SMOOTH, **options):
    """The values of every repeat by either engine."""
    defaults = {"repeats": 1, "t": 0.6, "frames": 4, "solver": Layer(h=0.1), "keep": True}
    options = defaults | {"tolerance": None} | options
    found = [
        ensemble(law, start, observe=observe, engine=engine, **options)
        for engine in ("resident", "batch")
    ]
    assert [one.attrs["engine"] for one in found] == ["resident: asked for", "batch: asked for"]
    return found


def check(law, start, observe=SMOOTH, tolerance=2e-5, **options):
    ours, theirs = both(law, start, observe, **options)
    for name in theirs.data_vars:
        assert np.ptp(theirs[name].values) > 1e-3, f"{name}: nothing to compare"
        assert np.abs(ours[name].values - theirs[name].values).max() < tolerance, name
        assert ours[name].dims == theirs[name].dims


def square(d=D, seed=0):
    return np.random.default_rng(seed).normal(size=(d, d)) / np.sqrt(d)


def given(n=N, d=D, seed=0):
    """Tokens that need no drawing, which is slow to compile."""
    return Given(np.random.default_rng(seed).normal(size=(n, d)))


def unequal(n=N, d=D, seed=0):
    random = np.random.default_rng(seed)
    w = random.uniform(0.2, 2, size=n)
    w[2] = 0
    return Given(random.normal(size=(n, d)), w)


ON_SPHERE = {
    "SA": SelfAttention(beta=2.0),
    "repulsive": SelfAttention(beta=2.0, repulsive=True),
    "USA": Unnormalised(beta=1.0),
    "Sinkhorn": Sinkhorn(beta=2.0, rounds=10),
    "causal": Causal(beta=1.5),
    "causal with matrices": Causal.example(N, D),
    "attention": Attention.example(N, D),
    "unnormalised attention": Attention(beta=0.5, K=square(), V=square(seed=1), normalised=False),
    "post-norm": PostNorm(beta=2.0),
    "sqrt-norm": SqrtNorm(beta=2.0, V=square()),
    "nGPT": NGPT(beta=2.0, alpha=0.5),
    "feed-forward": FeedForward.example(N, D),
}


# -------------------------------------------------------------------------------------------------
# resident equals batch


@pytest.mark.parametrize("law", ON_SPHERE.values(), ids=ON_SPHERE.keys())
def test_resident_equals_batch(law):
    check(law, given())


@pytest.mark.parametrize("name", ["SA", "Sinkhorn", "causal"])
def test_resident_equals_batch_with_unequal_weights_and_a_token_of_none(name):
    check(ON_SPHERE[name], unequal())


def test_resident_equals_batch_for_other_laws_of_the_catalogue():
    """Those that need a d or an n of their own."""
    check(Kuramoto(coupling=1.5, omega=RANDOM.normal(size=N)), given(d=2))
    check(flock.dynamics.CausalBias(beta=1.0, slope=2.0), unequal())
    check(flock.dynamics.Burger.example(N, D), given())


@pytest.mark.parametrize(
    "solver", [Layer(h=0.2), Euler(h=0.2), RK4(h=0.2)], ids=["layer", "euler", "rk4"]
)
def test_resident_equals_batch_for_every_solver(solver):
    check(SelfAttention(beta=3.0), given(12, 5), solver=solver, t=0.8, frames=3)


def test_resident_equals_batch_for_many_observables_at_once():
    """Energy takes the beta of each system."""
    check(SelfAttention(), given(), MANY, over={"beta": [0.5, 2.0]})


def test_solvers_differ():
    """Else the test above could not fail."""
    last = [
        ensemble(
            SelfAttention(3.0),
            given(12, 5),
            solver=one,
            repeats=1,
            t=0.8,
            frames=3,
            observe=[MeanCosine()],
        )
        for one in (Layer(h=0.2), Euler(h=0.2), RK4(h=0.2))
    ]
    assert len({round(float(one.mean_cosine[-1]), 4) for one in last}) == 3


def test_resident_equals_batch_over_two_axes():
    check(
        Attention(V=0.5), given(), over={"beta": [0.5, 4.0], "V": [0.5, 2.0, -1.0]}, observe=SMOOTH
    )
    check(Attention(), given(), over={"V": [square(), np.eye(D)]}, observe=SMOOTH)


@pytest.mark.parametrize("per", Per, ids=lambda one: one.value)
def test_resident_equals_batch_with_random_matrices(per):
    law = RandomMatrices(Ginibre(), Value.WISHART, per)
    check(Attention(beta=1.0), given(), over={"beta": [1.0, 3.0]}, matrices=law, observe=SMOOTH)


@pytest.mark.parametrize("shared", [True, False], ids=["one for all", "each its own"])
def test_resident_equals_batch_with_large_matrices_in_halves(shared):
    """Matrices wider than 64 come in halves of half precision, with the digits of single."""
    d, rng = 96, np.random.default_rng(3)
    Q, V = (rng.normal(size=(2, d, d)) / np.sqrt(d) for _ in range(2))
    law, over = (Attention(Q=Q[0], V=V[0]), {"beta": [1.0, 4.0]})
    if not shared:
        law, over = Attention(beta=2.0), {"Q": Q, "V": V}
    check(law, Given(rng.normal(size=(8, d))), over=over, observe=SMOOTH)


@pytest.mark.slow
@pytest.mark.parametrize(
    "observe",
    [(PairDensity(),), (PairDensity(delta=0.2), ClusterCount(delta=1e-3))],
    ids=["one", "two"],
)
def test_resident_equals_batch_where_it_settles(observe):
    """Counts are equal but for a pair on the verge.

    Frames after consensus are the last one again.
    """
    options = {
        "over": {"beta": np.linspace(0.2, 2, 6)},
        "t": 16,
        "frames": 17,
        "solver": Layer(h=0.5),
    }
    settled, theirs = both(SelfAttention(), given(), observe, **options)
    full = ensemble(
        SelfAttention(),
        given(),
        observe=observe,
        engine="resident",
        settle=False,
        keep=True,
        repeats=1,
        **options,
    )
    for name in theirs.data_vars:
        assert np.mean(np.abs(settled[name].values - theirs[name].values) > 1e-5) < 0.03
        assert (
            abs(settled[name].values[..., -1] - 1).min() < 1e-5
            and len(np.unique(settled[name])) > 2
        )
        assert np.array_equal(settled[name], full[name])


def test_a_wide_threshold_does_not_settle_a_narrow_one():
    """The pair density of delta = 1 is one long before the other observable is final."""
    observe = (PairDensity(delta=1.0), ClusterCount(delta=1e-3))
    start = Given(np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]))
    ours, theirs = both(
        SelfAttention(), start, observe, repeats=1, t=8, frames=9, solver=Layer(h=0.5)
    )
    assert abs(ours.pair_density.values - 1).max() < 1e-6
    assert (
        ours.cluster_count.values.ravel().tolist() == theirs.cluster_count.values.ravel().tolist()
    )
    assert theirs.cluster_count.values.ravel()[[0, -1]].tolist() == [3, 1]


def test_resident_does_not_hide_tokens_that_are_lost():
    given_step = {"solver": RK4(h=0.1), "tolerance": None}
    with pytest.raises(flock.errors.SimulationError, match="not finite"):
        ensemble(
            Unnormalised(beta=200.0),
            given(),
            repeats=1,
            t=1,
            frames=2,
            engine="resident",
            **given_step,
        )


# ----------------------------------------------------------------------------------------- products
# of halves on the chip


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_products_of_halves_are_exact_to_single_precision(size):
    """Whatever the size of entries, and however different rows are.

    Plain half precision would be off by 5e-4 or overflow.
    """
    x = np.asarray(Sphere().project(jnp.asarray(RANDOM.normal(size=(16, 32)))), np.float32)
    M = (size * RANDOM.normal(size=(16, 16)) * np.geomspace(1, 1e6, 16)[:, None]).astype(np.float32)
    with precision("float32"):
        found = with_split_products(
            lambda x, M: (x @ x.T, M @ x, M[0] @ x, jnp.zeros((16, 16)) @ x)
        )(jnp.asarray(x), jnp.asarray(M))
    x, M = x.astype(float), M.astype(float)
    for ours, exact, scale in zip(
        found,
        (x @ x.T, M @ x, M[0] @ x, 0 * x),
        (1, abs(M).max(axis=1)[:, None], abs(M[0]).max(), 1),
    ):
        assert (np.abs(np.asarray(ours, float) - exact) / scale).max() < 2e-6


def test_columns_of_any_size_are_products_of_halves_too():
    x = np.asarray(Sphere().project(jnp.asarray(RANDOM.normal(size=(16, 32)))), np.float32)
    N = (RANDOM.normal(size=(32, 8)) * np.geomspace(1e-6, 1e6, 8)).astype(np.float32)
    with precision("float32"):
        found = with_split_products(lambda x, N: x @ N)(jnp.asarray(x), jnp.asarray(N))
    exact = x.astype(float) @ N.astype(float)
    assert (np.abs(np.asarray(found, float) - exact) / abs(N).max(axis=0)).max() < 2e-6


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_large_matrices_in_halves_give_single_precision(size, ahead):
    """A matrix that comes in halves, on either side and transposed, and a product of its product,
    whose entries have a bound that needs no search: rows and columns end where they belong.
    """
    x = np.asarray(Sphere().project(jnp.asarray(RANDOM.normal(size=(16, 72)))), np.float32)
    M = (size * RANDOM.normal(size=(72, 72)) * np.geomspace(1e-3, 1, 72)[:, None]).astype("float32")

    def law(x, M):
        return x @ M.T, M @ x.T, (x @ M) @ x.T, x @ (M @ x.T)

    with precision("float32"):
        large = Lookup(jax.ShapeDtypeStruct((72, 72), jnp.float32), lambda: halves(jnp.asarray(M)))
        found = with_split_products(law, ahead)(jnp.asarray(x), large)
    x, M = x.astype(float), M.astype(float)
    for ours, exact in zip(found, law(x, M)):
        assert np.abs(np.asarray(ours, float) - exact).max() < 1e-6 * np.abs(exact).max()
        assert ours.shape == exact.shape


def test_products_of_halves_reach_into_functions_and_leave_loops():
    """The traced function is the same function: called functions, several results, and a loop that
    is not entered.
    """

    @jax.jit
    def inner(x):
        return x @ x.T

    def law(x, step):
        y = jax.lax.fori_loop(0, 2, lambda _, y: 0.5 * (y @ y), inner(x))
        return {"x": jax.nn.relu(y), "step": step + 1}

    x = jnp.asarray(Sphere().project(jnp.asarray(RANDOM.normal(size=(16, 16)))), jnp.float32)
    with precision("float32"):
        ours, theirs = with_split_products(law)(x, 3), law(x, 3)
        text = str(jax.make_jaxpr(with_split_products(law))(x, 3))
    assert ours["step"] == 4
    assert np.abs(ours["x"] - theirs["x"]).max() < 1e-6 * np.abs(theirs["x"]).max()
    assert text.count("dot_general") == 4 and "f16[16,16]" in text


# ------------------------------------------------------------------------------------------------
# it lowers without a GPU


def job(law, observe, n, paths=(), solver=None, settle=True):
    w = np.full(n, 1 / n)
    with precision("float32"):
        parts = cast((law, solver or Layer(h=0.1), observe), "float32")
        return Job(*parts, w, np.arange(0, 31, 10), paths, "float32", settle)


def lower(work, n, d, swept=()):
    """Compile the kernel for CUDA as far as a machine without one can: to the text that Triton
    takes.
    """

    def launch(x, swept):
        strides = jnp.array([10, 10, 10, 1], jnp.int32)
        w = jnp.asarray(work.w, jnp.float32)
        return resident._launch.__wrapped__(
            work.parts, work.paths, x, w, strides, swept, work.delta, False
        )

    with precision("float32"), jax.default_matmul_precision("TF32_TF32_F32_X3"):
        x = jax.ShapeDtypeStruct((4, n, d), jnp.float32)
        return jax.jit(launch).trace(x, list(swept)).lower(lowering_platforms=("cuda",)).as_text()


def members() -> list:
    found = []
    for entry in entries("dynamics"):
        cls = entry.load()
        d = cls.example(N, D).dimension or D
        law = cls.example(N, d)
        if isinstance(law.space, Sphere):
            found.append(pytest.param(law, d, id=entry.slug))
    return found


ACCEPTED = {
    "attention",
    "burger",
    "causal",
    "causal-bias",
    "feed-forward",
    "kuramoto",
    "ngpt",
    "post-norm",
    "self-attention",
    "sinkhorn",
    "sqrt-norm",
    "unnormalised",
}


@pytest.mark.parametrize(("law", "d"), members())
def test_every_law_that_resident_accepts_lowers(law, d, request):
    work = job(law, (PairDensity(),), N)
    refused = resident.refusal(work, N, d)
    assert refused is None or request.node.callspec.id not in ACCEPTED
    if refused is None:
        assert "triton" in lower(work, N, d)
    else:
        assert refused.startswith("the resident engine ")


@pytest.mark.parametrize("entry", entries("observables"), ids=lambda entry: entry.slug)
def test_every_observable_that_resident_accepts_lowers(entry):
    work = job(SelfAttention(beta=2.0), (entry.load()(),), N)
    refused = resident.refusal(work, N, D)
    if refused is None:
        assert "triton" in lower(work, N, D)
    else:
        assert refused.startswith("the resident engine ")


@pytest.mark.parametrize(
    "name", ["cluster-count", "energy", "order-parameter", "dissipation", "mean-cosine"]
)
def test_observables_that_people_ask_for_are_accepted(name):
    from tokenflock.catalogue import find

    assert (
        resident.refusal(job(SelfAttention(), (find("observables", name).load()(),), N), N, D)
        is None
    )


def test_several_observables_swept_numbers_and_solvers_lower():
    beta = jax.ShapeDtypeStruct((4,), jnp.float32)
    V = jax.ShapeDtypeStruct((4, D, D), jnp.float32)
    everything = (PairDensity(), ClusterCount(), Energy(), Dissipation())
    for solver in (Euler(h=0.1), RK4(h=0.1)):
        for settle in (True, False):
            assert "triton" in lower(
                job(SelfAttention(), everything, N, ((0, "beta"),), solver, settle), N, D, [beta]
            )
    assert "triton" in lower(
        job(Attention(), (PairDensity(),), N, ((0, "beta"), (0, "V"))), N, D, [beta, V]
    )
    assert "triton" in lower(job(SelfAttention(), (PairDensity(),), 32), 32, 128)


@pytest.mark.parametrize("activation", Activation, ids=lambda one: one.value)
def test_every_activation_lowers_or_is_refused(activation):
    law = FeedForward(NeuralODE(W=square(), A=square(), activation=activation))
    refusal = resident.refusal(job(law, (PairDensity(),), N), N, D)
    assert (refusal is None) == activation.on_chip, refusal
    if activation.on_chip:
        assert "triton" in lower(job(law, (PairDensity(),), N), N, D)
    else:
        assert "Activation" in refusal


def test_resident_refuses_in_sentences():
    observe = (PairDensity(),)
    sa, moving = SelfAttention(), Attention(V=Switching(np.stack([np.eye(D)] * 2), 0.1))
    deep = FeedForward(NeuralODE.example(N, D), MultiHead.example(N, D))
    cases = {
        "on the sphere, not PureAttention": resident.refusal(
            job(PureAttention(), observe, N), N, D
        ),
        "no random numbers": resident.refusal(job(Noisy(), observe, N), N, D),
        "do not change in time": resident.refusal(job(moving, observe, N), N, D),
        "one number": resident.refusal(job(sa, (Histogram(),), N), N, D),
        "cannot do ConeMargin": resident.refusal(job(sa, (ConeMargin(),), N), N, D),
        "cannot do MultiHead": resident.refusal(job(deep, observe, N), N, D),
        "cannot do Streamed": resident.refusal(job(Streamed(sa), observe, N), N, D),
        "n = 129": resident.refusal(job(sa, observe, 129), 129, D),
        "side 129": resident.refusal(job(Attention(V=np.eye(129)), observe, N), N, 129),
        "of side 140": resident.refusal(job(Attention(), observe, N), N, 140, random_matrices=True),
    }
    for words, sentence in cases.items():
        assert sentence is not None and words in sentence
    assert resident.refusal(job(Attention(), observe, N), N, 140) is None


# --------------------------------------------------------------------------------------------------
# streamed sums

PLAIN = {
    "SA": SelfAttention(beta=3.0),
    "USA": Unnormalised(beta=1.0),
    "sharp": SelfAttention(beta=200.0),
    "matrices": Attention(beta=1.0, Q=square()[:2], K=square(seed=1)[:2], V=square(seed=2)),
    "no partition": Attention(beta=1.0, V=square(), normalised=False),
    "moving": Attention(V=Switching(np.stack([np.eye(D), square()]), 0.5)),
    "repulsive": SelfAttention(beta=3.0, repulsive=True),
    "off the sphere": PureAttention(beta=0.5, V=square()),
}


def large(n, seed=0):
    """Tokens with weights, some of them zero: a run of zeros that fills a whole tile, and the
    largest logits.
    """
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, D))
    w = random.uniform(0.5, 1.5, size=n)
    w[random.integers(0, n, size=n // 4)] = 0
    w[: min(SIDE, n // 3)] = 0
    return x / np.linalg.norm(x, axis=1, keepdims=True), w / w.sum()


def sums(law, n, t=0.7):
    """(by tiles, by rows, direct) in single precision, and the truth in double."""
    x, w = large(n)
    with precision("float64"):
        truth = np.asarray(cast(law, "float64").field(t, x, x, w))
    with precision("float32"):
        law, x, w = cast((law, x, w), "float32")
        q = x[: n - 5]
        return [
            np.asarray(one)
            for one in (
                by_tiles(law, t, q, x, w, interpret=True),
                by_rows(law, t, q, x, w, 64),
                law.field(t, q, x, w),
            )
        ], truth[: n - 5]


@pytest.mark.parametrize("law", PLAIN.values(), ids=PLAIN.keys())
def test_streamed_sums_are_the_field(law):
    found, truth = sums(law, 2 * SIDE + 22)
    scale = np.abs(truth).max()
    for one in found:
        assert one.shape == truth.shape
        assert np.abs(one - truth).max() < 3e-5 * scale * (10 if law == PLAIN["sharp"] else 1)


def test_every_attention_law_is_a_plain_sum_or_says_no():
    """nGPT normalises the sum, square-root scaling divides it: tiles know logits and values only
    and must not serve them.
    """
    x, w = large(40)
    for entry in entries("dynamics"):
        law = entry.load().example(N, D)
        if isinstance(law, AttentionLaw):
            with precision("float64"):
                plain = law.attention(0.7, x, x, w) @ law.values(0.7, x)
                same = np.allclose(plain, law.field(0.7, x, x, w), rtol=1e-9)
            assert same or not tiles(law), entry.slug
    assert tiles(SelfAttention()) and not tiles(NGPT()) and not tiles(SqrtNorm())


def test_streamed_is_its_base_in_a_run():
    start = given(20)
    laws = SelfAttention(3.0), Streamed(SelfAttention(3.0), block=7)
    plain, streamed = (flock.simulate(law, start, t=2, frames=3, solver=RK4(h=0.1)) for law in laws)
    assert np.abs(plain.x.values - streamed.x.values).max() < 1e-9


@pytest.mark.parametrize("law", PLAIN.values(), ids=PLAIN.keys())
def test_tiles_lower_for_cuda(law):
    with precision("float32"):
        law = cast(law, "float32")
        x, w = (
            jax.ShapeDtypeStruct((1000, D), jnp.float32),
            jax.ShapeDtypeStruct((1000,), jnp.float32),
        )
        text = (
            jax.jit(lambda x, w: by_tiles(law, 0.0, x, x, w))
            .trace(x, w)
            .lower(lowering_platforms=("cuda",))
            .as_text()
        )
    assert "triton" in text
    assert "1000x1000" not in text and "1024x1024" not in text


def test_memory_of_a_streamed_sum_grows_like_n():
    def scratch(law, n):
        with precision("float32"):
            x, w = (
                jax.ShapeDtypeStruct((n, D), jnp.float32),
                jax.ShapeDtypeStruct((n,), jnp.float32),
            )
            compiled = (
                jax.jit(lambda x, w: cast(law, "float32").field(0.0, x, x, w)).lower(x, w).compile()
            )
        return compiled.memory_analysis().temp_size_in_bytes

    sizes = [scratch(Streamed(SelfAttention(), block=64), n) for n in (1000, 2000, 4000)]
    assert sizes[1] < 2.3 * sizes[0] and sizes[2] < 2.3 * sizes[1]
    assert scratch(SelfAttention(), 4000) > 10 * sizes[2]  # what it saves
