"""Members away from the points where they are simple: other radii than one, unequal weights, Q
that is not K, cosines within a bin.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ortho_group

import tokenflock as flock
from tokenflock.catalogue import entries
from tokenflock.dynamics import (
    NGPT,
    Attention,
    Burger,
    CausalHeads,
    MixNorm,
    MultiHead,
    PeriNorm,
    PostNorm,
    PreNorm,
    SelfAttention,
    Sinkhorn,
    SqrtNorm,
    Unnormalised,
)
from tokenflock.dynamics._matrices import Switching
from tokenflock.observables import (
    AttentionEntropy,
    AttentionMatrix,
    ClusterCount,
    ConeMargin,
    ConsensusDistance,
    Dissipation,
    EffectiveRank,
    Energy,
    FlowEnergy,
    Histogram,
    InnerProducts,
    MeanCosine,
    MinimumCosine,
    OrderParameter,
    PairDensity,
    Radius,
)
from tokenflock.observables.observable import Observable, on_sphere
from tokenflock.solvers import Layer
from tokenflock.starts import Given

pytestmark = pytest.mark.usefixtures("double")

RANDOM = np.random.default_rng(4)
N, D, M, HEADS = 5, 3, 2, 3
Q, K = RANDOM.normal(size=(2, HEADS, M, D))  # no head has Q = K, and neither is square
V = RANDOM.normal(size=(HEADS, D, D))
W = RANDOM.uniform(0.2, 2.0, size=N)
W /= W.sum()
X = RANDOM.normal(size=(N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
RADII = np.array([0.3, 0.8, 1.5, 2.0, 5.0])[:, None]


def attention(q, k, v, x, beta, last=lambda i: N):
    """sum_j A_ij v x_j with A_ij = w_j e^{beta <q x_i, k x_j>} / Z_i over j < last(i), by loops."""
    rows = []
    for i in range(N):
        terms = [W[j] * np.exp(beta * (q @ x[i]) @ (k @ x[j])) for j in range(last(i))]
        rows.append(sum(a * (v @ x[j]) for j, a in enumerate(terms)) / sum(terms))
    return np.array(rows)


@pytest.mark.parametrize("average", [False, True])
def test_several_heads_are_the_sum_of_their_softmaxes_over_queries_and_keys(average):
    law = MultiHead(V=V, Q=Q, K=K, beta=1.7, average=average)
    heads = [attention(Q[h], K[h], V[h], X, 1.7) for h in range(HEADS)]
    expected = np.mean(heads, axis=0) if average else np.sum(heads, axis=0)
    np.testing.assert_allclose(law.force(0.0, jnp.asarray(X), jnp.asarray(W)), expected, rtol=1e-12)
    swapped = sum(attention(K[h], Q[h], V[h], X, 1.7) for h in range(HEADS))
    assert np.abs(swapped - np.sum(heads, axis=0)).max() > 0.1  # else a swap would go unseen


def test_a_head_without_queries_or_keys_takes_the_tokens_themselves():
    square, eye = RANDOM.normal(size=(HEADS, D, D)), np.eye(D)
    for parts, pairs in (
        ({"Q": square}, [(square[h], eye) for h in range(HEADS)]),
        ({"K": square}, [(eye, square[h]) for h in range(HEADS)]),
    ):
        found = MultiHead(V=V, beta=0.8, **parts).force(0.0, jnp.asarray(X), jnp.asarray(W))
        expected = sum(attention(*pairs[h], V[h], X, 0.8) for h in range(HEADS))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_several_causal_heads_see_the_past_through_queries_and_keys():
    law = CausalHeads(V=V, Q=Q, K=K, beta=1.7)
    expected = sum(attention(Q[h], K[h], V[h], X, 1.7, lambda i: i + 1) for h in range(HEADS))
    found = law.force(0.0, jnp.asarray(X), jnp.asarray(W))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    shares = np.asarray(law.attention_matrix(0.0, jnp.asarray(X), jnp.asarray(W)))
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    assert (np.triu(shares, 1) == 0).all()


def tangent(x, a):
    """The part of a that is orthogonal to the unit vectors x."""
    return a - (a * x).sum(axis=1, keepdims=True) * x


def unit(a):
    return a / np.linalg.norm(a, axis=1, keepdims=True)


A = attention(Q[0], K[0], V[0], X, 1.3)
SCHEMES = {
    "pre": (PreNorm, {}, 1.0, A),
    "peri": (PeriNorm, {}, 1.0, unit(A)),
    "mix, before": (MixNorm, {"tau": 2.0}, 1.0, RADII * tangent(X, A)),
    "mix, at the switch": (MixNorm, {"tau": 2.0}, 2.0, A),
    "mix, after": (MixNorm, {"tau": 2.0}, 3.0, A),
}
ON_SPHERE = {
    "post": (PostNorm, {}, 1.0, tangent(X, A)),
    "sqrt": (SqrtNorm, {}, 3.0, tangent(X, A) / 2),
    "ngpt": (NGPT, {"alpha": 0.7}, 1.0, 0.7 * tangent(X, unit(A))),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_off_the_sphere_moves_tokens_of_any_radius_by_its_formula(name):
    law, options, t, expected = SCHEMES[name]
    law = law(beta=1.3, Q=Q[0], K=K[0], V=V[0], **options)
    found = law.velocity(t, jnp.asarray(RADII * X), jnp.asarray(W))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ON_SPHERE)
def test_a_scheme_on_the_sphere_moves_tokens_by_its_formula(name):
    law, options, t, expected = ON_SPHERE[name]
    law = law(beta=1.3, Q=Q[0], K=K[0], V=V[0], **options)
    found = law.velocity(t, jnp.asarray(X), jnp.asarray(W))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_mix_norm_turns_tokens_of_every_radius_alike_before_the_switch():
    """Post-LN knows directions only: dtheta/dt = v / r is the same for every r."""
    law = MixNorm(beta=1.3, Q=Q[0], K=K[0], V=V[0], tau=2.0)
    turns = [np.asarray(law.velocity(1.0, jnp.asarray(r * X), jnp.asarray(W))) / r for r in (1, 4)]
    np.testing.assert_allclose(*turns, rtol=1e-12, atol=1e-14)


H = 0.7
LAYERS = {  # tokens RADII X, or X on the sphere, after one step of `Layer(h=H)`
    "pre": RADII * X + H * A,
    "peri": RADII * X + H * unit(A),
    "mix, before": RADII * unit(X + H * A),
    "mix, at the switch": RADII * X + H * A,
    "mix, after": RADII * X + H * A,
    "post": unit(X + H * A),
    "sqrt": unit(X + H * A / 2),
    "ngpt": unit(X + H * 0.7 * unit(A)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_of_a_scheme_is_its_formula(name):
    law, options, t, _ = (SCHEMES | ON_SPHERE)[name]
    law = law(beta=1.3, Q=Q[0], K=K[0], V=V[0], **options)
    x, w = jnp.asarray(RADII * X if name in SCHEMES else X), jnp.asarray(W)
    for same in (law, law.as_block()):
        found = Layer(h=H).step(same, jnp.asarray(t), x, w, jax.random.key(0))
        np.testing.assert_allclose(found, LAYERS[name], rtol=1e-12, atol=1e-13)


def test_mix_norm_under_layers_is_post_norm_until_the_switch_and_pre_norm_from_it():
    start, options = Given(x=np.eye(2)), {"solver": Layer(h=1.0), "frames": 6, "t": 5.0}
    mix, post = (
        flock.simulate(law, start, **options).x.values
        for law in (MixNorm(beta=1.0, tau=3.0), PostNorm(beta=1.0))
    )
    np.testing.assert_allclose(mix[:4], post[:4], rtol=1e-13)
    assert np.einsum("td,td->t", mix[1:4, 0], mix[1:4, 1]) == pytest.approx(
        [0.303401, 0.615407, 0.844542], abs=1e-6
    )
    pre = flock.simulate(PreNorm(beta=1.0), Given(x=post[3]), **(options | {"t": 2.0, "frames": 3}))
    np.testing.assert_allclose(mix[3:], pre.x.values, rtol=1e-13)


@pytest.mark.parametrize("bins", [1, 7, 40])
@pytest.mark.parametrize("diagonal", [False, True])
def test_histogram_is_that_of_numpy(bins, diagonal):
    """Every cosine is counted in the bin that holds it, by the product of its weights."""
    pairs = np.outer(W, W) if diagonal else np.outer(W, W) * (1 - np.eye(N))
    G = np.clip(X @ X.T, -1, 1)
    G[np.diag_indices(N)] = 1
    expected, _ = np.histogram(G, bins=bins, range=(-1, 1), weights=pairs / pairs.sum())
    found = Histogram(bins=bins, diagonal=diagonal).measure(jnp.asarray(X), jnp.asarray(W))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_cosine_in_the_upper_half_of_its_bin_stays_there():
    """Rounded, the cosine 0.49 would fall into the bin that begins at 0.5."""
    angle = np.arccos(0.49)
    x = jnp.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    shares = np.asarray(Histogram(bins=4).measure(x, jnp.full(2, 0.5)))
    assert shares.tolist() == [0, 0, 1, 0]
    assert Histogram(bins=4).coords()["bin"].tolist() == [-0.75, -0.25, 0.25, 0.75]


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 4, 9])
def test_effective_rank_is_the_perplexity_of_the_weights_of_orthogonal_clusters(d):
    """Tokens on the axes, more or fewer of them than dimensions: the eigenvalues are the weights
    that the axes hold.
    """
    axes = np.array([0, 1, 1, 0, 1])
    shares = np.array([W[axes == 0].sum(), W[axes == 1].sum()])
    expected = np.exp(-(shares * np.log(shares)).sum())
    x = jnp.asarray(3.0 * np.eye(d)[axes])  # lengths do not count
    assert float(EffectiveRank().measure(x, jnp.asarray(W))) == pytest.approx(expected, rel=1e-10)
    frames = EffectiveRank().on_host(x[None], jnp.asarray(W))
    assert np.asarray(frames).tolist() == [pytest.approx(expected, rel=1e-10)]
    assert abs(expected - 2) > 1e-3  # equal weights would not tell w from w^2


def test_effective_rank_of_three_weights():
    w = np.array([0.5, 0.3, 0.2])
    expected = np.prod(w**-w)  # exp of the entropy
    found = EffectiveRank().measure(jnp.eye(3), jnp.asarray(w))
    assert float(found) == pytest.approx(expected, rel=1e-12)


READERS = (AttentionMatrix, AttentionEntropy, Dissipation, FlowEnergy)


@pytest.mark.parametrize("reader", READERS, ids=lambda one: one.__name__)
def test_what_reads_a_law_is_blind_to_rotations_exactly_where_the_law_is(reader):
    """Else an ensemble would turn its tokens and measure something else."""
    flow = reader in (Dissipation, FlowEnergy)
    U = ortho_group.rvs(D, random_state=2)
    law = Burger.example(N, D) if flow else Attention.example(N, D)
    assert reader().isotropic and reader(SelfAttention(beta=2.0)).isotropic
    assert not law.isotropic and not reader(law).isotropic
    for blind, of in ((True, SelfAttention(beta=2.0)), (False, law)):
        before, after = (reader(of).measure(x, jnp.asarray(W)) for x in (X, X @ U.T))
        assert np.allclose(before, after, atol=1e-10) == blind


@pytest.mark.parametrize("reader", READERS, ids=lambda one: one.__name__)
def test_a_law_that_was_given_is_kept_and_one_that_was_not_is_taken(reader):
    own, ran = SelfAttention(beta=2.0), SelfAttention(beta=5.0)
    assert reader(own).bind(ran).dynamics.beta == 2.0
    assert reader().bind(ran).dynamics.beta == 5.0
    if reader in (AttentionMatrix, AttentionEntropy):
        assert reader(t=0.5).bind(ran).t == 0.5


def test_attention_is_that_of_the_time_that_was_asked_for():
    moving = Switching(np.stack([np.zeros((D, D)), 4 * np.eye(D)]), 1.0)
    law = Attention(beta=1.0, Q=moving)
    matrices = [AttentionMatrix(law, t).measure(X, jnp.asarray(W)) for t in (0.0, 1.5)]
    np.testing.assert_allclose(matrices[0], np.tile(W, (N, 1)), rtol=1e-12)
    sharp = W * np.exp(4 * X @ X.T)
    np.testing.assert_allclose(matrices[1], sharp / sharp.sum(axis=1, keepdims=True), rtol=1e-12)
    entropies = AttentionEntropy(law, 1.5).measure(X, jnp.asarray(W))
    expected = -(np.asarray(matrices[1]) * np.log(matrices[1])).sum(axis=1)
    np.testing.assert_allclose(entropies, expected, rtol=1e-10)


def test_entropy_of_unnormalised_attention_is_that_of_its_shares():
    found, expected = (
        AttentionEntropy(law).measure(X, jnp.asarray(W))
        for law in (Unnormalised(beta=2.0), SelfAttention(beta=2.0))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


Y = RADII * X  # tokens of many lengths, one of which counts nothing
HALF = np.where(np.arange(N) == 2, 0, W) / (1 - W[2])
REST = np.arange(N) != 2
C = (X @ X.T)[np.ix_(REST, REST)]
PAIRS = np.outer(HALF[REST], HALF[REST]) * (1 - np.eye(N - 1))
AXIS = np.array([1.0, -2.0, 2.0])
OFF_SPHERE = {
    "mean cosine": (MeanCosine(), (PAIRS * C).sum() / PAIRS.sum()),
    "least cosine": (MinimumCosine(), C.min()),
    "order": (OrderParameter(), np.linalg.norm(HALF @ X)),
    "radius": (Radius(), RADII[:, 0]),
    "largest distance": (
        ConsensusDistance(),
        max(np.linalg.norm(a - b) for a in Y[REST] for b in Y[REST]),
    ),
    "height": (ConeMargin(), Y[REST, -1].min()),
    "height along an axis": (ConeMargin(axis=AXIS), (Y[REST] @ AXIS / 3).min()),
    "pairs that met": (PairDensity(delta=0.9), PAIRS[C >= 0.1].sum() / PAIRS.sum()),
}


@pytest.mark.parametrize("name", OFF_SPHERE)
def test_an_observable_is_its_formula_for_tokens_of_any_length_and_weight(name):
    observable, expected = OFF_SPHERE[name]
    found = observable.measure(jnp.asarray(Y), jnp.asarray(HALF))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


TURN = 0.7  # between two unit vectors, who weigh 1/4 and 3/4 beside one of no weight
SPLIT = math.sqrt(1 - 0.75 * math.sin(TURN) ** 2)  # of the eigenvalues (1 +- SPLIT) / 2
OF_TWO = [
    (MeanCosine(), math.cos(TURN)),
    (MinimumCosine(), math.cos(TURN)),
    (OrderParameter(), math.sqrt(10 + 6 * math.cos(TURN)) / 4),
    (ConsensusDistance(), 2 * math.sin(TURN / 2)),
    (PairDensity(delta=0.1), 0.0),
    (PairDensity(delta=0.5), 1.0),
    (ClusterCount(delta=0.1), 2),
    (ClusterCount(delta=0.5), 1),
    (Energy(beta=2.0), (10 * math.exp(2) + 6 * math.exp(2 * math.cos(TURN))) / 64),
    (EffectiveRank(), math.exp(-sum(p * math.log(p) for p in ((1 + SPLIT) / 2, (1 - SPLIT) / 2)))),
]


@pytest.mark.parametrize(("observable", "expected"), OF_TWO)
def test_an_observable_is_its_formula_for_two_tokens(observable, expected):
    x = jnp.array([[1.0, 0.0], [0.6, 0.8], [math.cos(TURN), math.sin(TURN)]])
    found = observable.measure(x, jnp.array([0.25, 0.0, 0.75]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_inner_products_are_cosines_unless_told_otherwise():
    for normalise, expected in ((True, X @ X.T), (False, Y @ Y.T)):
        G = np.asarray(InnerProducts(normalise).measure(jnp.asarray(Y), jnp.asarray(HALF)))
        assert np.isnan(G[2]).all() and np.isnan(G[:, 2]).all()
        np.testing.assert_allclose(G[np.ix_(REST, REST)], expected[np.ix_(REST, REST)], rtol=1e-10)


def _unit(n: int = 6, d: int = 3, seed: int = 0):
    x = np.random.default_rng(seed).normal(size=(n, d))
    w = np.random.default_rng(seed + 1).uniform(0.5, 1.5, size=n)
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True)), jnp.asarray(w / w.sum())


def test_a_single_token_has_the_least_cosine_of_one():
    x, _ = _unit()
    assert float(MinimumCosine().measure(x, jnp.eye(6)[2])) == 1.0


@pytest.mark.parametrize("observable", [ClusterCount(), ClusterCount(radius=0.9), MinimumCosine()])
def test_on_the_sphere_the_value_is_the_same(observable):
    """Also where distances count and not cosines."""
    x, w = _unit()
    assert float(on_sphere(observable, x, w)) == pytest.approx(float(observable.measure(x, w)))
    assert observable.by_cosines == (getattr(observable, "radius", None) is None)


@pytest.mark.parametrize(
    "flow",
    [
        SelfAttention(2.0),
        SelfAttention(2.0, repulsive=True),
        Sinkhorn(2.0, repulsive=True),
        Unnormalised(1.5, repulsive=True),
    ],
)
def test_dissipation_is_the_slope_of_the_energy_up_and_down(flow):
    x, w = _unit()
    velocity = flow.velocity(jnp.zeros(()), x, w)
    slope = jax.jvp(lambda y: flow.energy(y, w), (x,), (velocity,))[1]
    assert float(Dissipation(flow).measure(x, w)) == pytest.approx(float(slope), rel=1e-9)
    assert (float(slope) > 0) == flow.ascends


def test_a_sum_of_weights_that_rounds_below_one_is_at_rest():
    density = PairDensity()
    assert bool(density.at_rest(jnp.asarray(1 - 5e-7)))
    assert not bool(density.at_rest(jnp.asarray(0.999)))


HASTY = [
    member(**options)
    for member in (entry.load() for entry in entries("observables"))
    if member.on_host is not Observable.on_host
    for options in [{}, {"delta": 1.2}][: 2 if "delta" in member.__dataclass_fields__ else 1]
]


@pytest.mark.parametrize("observable", HASTY, ids=repr)
def test_the_quicker_way_of_an_observable_is_its_definition(observable):
    """Also with a token at the origin, one without weight, two in one place, and all of them so."""
    origin, twice = X.copy(), X.copy()
    origin[1], twice[2] = 0, twice[4]
    frames = np.stack([X, 3 * X, origin, twice, 0 * X, 0 * X + X[0]])
    for weights in (W, np.where(np.arange(N) == 3, 0, W)):
        every = np.tile(weights, (len(frames), 1))
        quick = observable.on_host(jnp.asarray(frames), jnp.asarray(every))
        slow = jax.vmap(observable.measure)(jnp.asarray(frames), jnp.asarray(every))
        np.testing.assert_allclose(quick, slow, rtol=1e-6, atol=1e-9)
