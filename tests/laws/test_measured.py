"""Observables beside their definitions in NumPy, in all of their conventions and ways."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from tokenflock.catalogue import entries
from tokenflock.dynamics import (
    Attention,
    Burger,
    Causal,
    Clock,
    Kuramoto,
    SelfAttention,
    Unnormalised,
)
from tokenflock.errors import UserError
from tokenflock.observables import (
    AttentionEntropy,
    AttentionMatrix,
    ClusterCount,
    ClusterLabels,
    ConeMargin,
    Convention,
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
    SpanDimension,
    _components,
    observable,
)
from tokenflock.observables._components import (
    by_hooking,
    by_squaring,
    components,
    counted,
    of_frames,
)
from tokenflock.observables.effective_rank import _gram
from tokenflock.observables.observable import (
    cosines,
    in_strips,
    on_sphere,
    pairs,
    reads_cosines,
    real_pairs,
)
from tokenflock.precision import precision

pytestmark = pytest.mark.usefixtures("double")
N, D = 6, 3
RANDOM = np.random.default_rng(12)
X = RANDOM.normal(size=(N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
W = np.array([0.3, 0.1, 0.25, 0.0, 0.2, 0.15])  # one token counts nothing
COUNT = 5
S = RANDOM.normal(size=(D, D))
S = S + S.T


def given(x=X):
    return jnp.asarray(x), jnp.asarray(W)


def factor(convention, beta):
    """The table of the docstring."""
    return {
        "paper": 1 / (2 * beta),
        "sum": COUNT**2 / (2 * beta),
        "metastable": np.exp(-beta) / (2 * beta),
        "staircase": np.exp(-beta),
        "burger": 1.0,
        "normalisation": -(COUNT**2),
    }[convention.value]


@pytest.mark.parametrize("convention", Convention, ids=lambda one: one.value)
def test_energies_are_their_factor_times_the_double_sum(convention, monkeypatch):
    monkeypatch.setattr(observable, "STRIP", 4)  # two strips, the second filled up
    for beta in (1.7, -1.7):
        for D_, G in ((None, X @ X.T), (S, X @ S @ X.T)):
            wanted = factor(convention, beta) * (W @ np.exp(beta * G) @ W)
            one = Energy(beta, convention, D=D_)
            assert float(one.measure(*given())) == pytest.approx(wanted, rel=1e-12)
            if convention is Convention.SUM:
                assert float(one.by_strips(*given())) == pytest.approx(wanted, rel=1e-12)
            log = Energy(beta, convention, log=True, D=D_).measure(*given())
            assert float(log) == pytest.approx(np.log(abs(wanted)), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("convention", Convention, ids=lambda one: one.value)
def test_energies_at_infinite_temperature_are_their_limits(convention):
    """(1/2) sum_ij w_i w_j <x_i, x_j> without the constant 1/(2 beta), or the factor itself."""
    half = convention.value in ("paper", "sum", "metastable")
    assert convention.has_half == half
    limit = 0.5 * np.sum((W @ X) ** 2) * (COUNT**2 if convention.value == "sum" else 1)
    wanted = limit if half else {"normalisation": -(COUNT**2)}.get(convention.value, 1.0)
    assert float(Energy(0.0, convention).measure(*given())) == pytest.approx(wanted, rel=1e-12)
    log = Energy(0.0, convention, log=True).measure(*given())
    assert float(log) == pytest.approx(np.log(abs(wanted)), rel=1e-11, abs=1e-12)


def test_the_energy_takes_what_it_lacks_from_the_law():
    assert Energy().needs_law and not Energy(beta=2.0).needs_law
    assert Energy(beta=2.0).bind(SelfAttention(5.0)).beta == 2.0
    bound = Energy(convention="sum", log=True).bind(SelfAttention(5.0))
    assert bound.beta == 5.0 and bound.D is None
    assert bound.convention is Convention.SUM and bound.log
    assert Energy().bind(Causal(3.0)).beta == 3.0  # no pair interaction, but a beta
    of_matrix = Energy().bind(Burger(S))
    assert of_matrix.beta == 1.0 and np.array_equal(of_matrix.D, S)
    own = Energy(D=np.eye(D)).bind(Burger(S))
    assert own.beta == 1.0 and np.array_equal(own.D, np.eye(D))
    assert Energy(D=S).bind(Kuramoto()).beta == 1.0
    with pytest.raises(UserError, match="Energy needs a beta: Kuramoto"):
        Energy().bind(Kuramoto())
    assert Energy(2.0).isotropic and not Energy(2.0, D=S).isotropic
    assert (Energy().name, Energy(log=True).name) == ("energy", "log_energy")


def test_what_needs_a_law_says_so_until_it_has_one():
    law = SelfAttention(2.0)
    for kind in (AttentionEntropy, AttentionMatrix, Dissipation, FlowEnergy):
        assert kind().needs_law and not kind(law).needs_law
        assert not kind().bind(law).needs_law
        with pytest.raises(UserError, match=f"{kind.__name__}|AttentionMatrix"):
            kind().measure(*given())
    for kind in (MeanCosine, PairDensity, ClusterCount, Radius):
        assert not kind().needs_law and kind().bind(law) == kind()
    with pytest.raises(UserError, match=r"FlowEnergy\.dynamics must be a gradient flow"):
        FlowEnergy(Attention()).measure(*given())
    assert float(FlowEnergy(law).measure(*given())) == pytest.approx(
        (W @ np.exp(2 * X @ X.T) @ W) / 4, rel=1e-12
    )


def test_attention_is_that_of_the_points_of_the_space_and_its_rows_have_their_entropy():
    A = W * np.exp(2 * X @ X.T)
    A /= A.sum(axis=1, keepdims=True)
    law = SelfAttention(2.0)
    np.testing.assert_allclose(AttentionMatrix(law).measure(*given(3 * X)), A, rtol=1e-12)
    seen = A[:, W > 0]
    np.testing.assert_allclose(
        AttentionEntropy(law).measure(*given()), -(seen * np.log(seen)).sum(axis=1), rtol=1e-11
    )
    assert AttentionMatrix().name == "attention" and AttentionMatrix().t == 0
    for clock in Clock:  # rows that sum to more than one, and to less
        same = AttentionEntropy(Unnormalised(2.0, clock)).measure(*given())
        np.testing.assert_allclose(same, AttentionEntropy(law).measure(*given()), rtol=1e-11)


def test_observables_say_truly_what_they_are():
    kinds = {entry.name: entry.load() for entry in entries("observables")}
    strips = {name for name, kind in kinds.items() if kind.strips}
    assert strips == {"Energy", "Histogram", "MeanCosine", "MinimumCosine", "PairDensity"}
    assert {name for name, kind in kinds.items() if kind.labels} == {"ClusterLabels"}
    assert {name for name, kind in kinds.items() if kind.isotropic is False} == {"ConeMargin"}
    read = {name for name, kind in kinds.items() if reads_cosines(kind())}
    assert read == (strips - {"Energy"}) | {"ClusterCount", "ClusterLabels"}
    assert not reads_cosines(ClusterCount(radius=0.1))
    rest = {name: kind().rests_within for name, kind in kinds.items() if kind().rests_within}
    assert rest == {"ClusterCount": 1e-3, "PairDensity": 1e-3}
    assert ClusterCount(delta=0.2).rests_within == 0.2
    assert ClusterCount(radius=0.2).rests_within is None
    assert MeanCosine().at_rest(jnp.asarray(1.0)) is None and MeanCosine().coords() == {}
    assert MeanCosine().on_host(*given()) is None and MeanCosine().name == "mean_cosine"


# -------------------------------------------------------------------------------------------------
# clusters

ANGLES = np.array([0.0, 1.0, 0.1, 3.0, 0.2, 1.05, 2.0])


def on_circle(angles, radius=1.0):
    return jnp.asarray(radius * np.stack([np.cos(angles), np.sin(angles)], axis=1))


@pytest.mark.parametrize("few", [128, 2], ids=["by squaring", "by hooking"])
def test_clusters_are_chains_of_close_tokens_that_count(few, monkeypatch):
    """0, 0.1 and 0.2 are a chain; so are 1 and 1.05; 3 counts nothing."""
    monkeypatch.setattr(_components, "FEW", few)
    monkeypatch.setattr(_components, "by_hooking" if few == 128 else "by_squaring", None)
    w = jnp.asarray(np.where(ANGLES == 3.0, 0, 1 / 6))
    delta = 1 - np.cos(0.11)
    wanted = [0, 1, 0, -1, 0, 1, 6]
    for x in (on_circle(ANGLES), on_circle(ANGLES, 2.5)):
        assert ClusterLabels(delta=delta).measure(x, w).tolist() == wanted
        assert int(ClusterCount(delta=delta).measure(x, w)) == 3
        # distances in the plane, up to a radius
        near = ClusterLabels(radius=0.11 * float(jnp.linalg.norm(x[0])))
        assert near.measure(x, w).tolist() == wanted
        told = ClusterLabels(delta=delta).on_host(x[None], w[None])
        assert told is None if few == 2 else told.tolist() == [wanted]
    assert ClusterLabels(radius=0.11).on_host(x[None], w[None]) is None


def test_tokens_of_one_direction_are_close_by_cosine_and_not_by_distance():
    pair, half = jnp.array([[1.0, 0.0], [3.0, 0.0]]), jnp.full(2, 0.5)
    assert int(ClusterCount().measure(pair, half)) == 1
    assert int(ClusterCount(radius=1.9).measure(pair, half)) == 2
    assert int(ClusterCount(radius=2.0).measure(pair, half)) == 1


def test_a_pair_at_the_distance_itself_is_joined():
    x, w = jnp.eye(2), jnp.full(2, 0.5)
    assert int(ClusterCount(delta=1.0).measure(x, w)) == 1
    assert ClusterCount(delta=1.0).on_host(x[None], w[None]).tolist() == [1]
    assert float(PairDensity(delta=1.0).measure(x, w)) == 1
    assert int(ClusterCount(delta=0.999).measure(x, w)) == 2


def test_a_token_is_close_to_itself_where_it_counts():
    near = np.asarray(counted(jnp.zeros((3, 3), bool), jnp.array([0.5, 0.0, 0.5])))
    assert near.tolist() == [[True, False, False], [False, False, False], [False, False, True]]


def test_components_of_any_graph_are_those_of_scipy():
    """Random graphs, and paths in a shuffled order, the longest that there are."""
    n = 40
    graphs = [RANDOM.random((n, n)) < share for share in (0.01, 0.03, 0.06)]
    path = np.zeros((n, n), bool)
    order = RANDOM.permutation(n)
    path[order[:-1], order[1:]] = True
    graphs += [path, np.eye(n, dtype=bool)]
    near = np.stack([graph | graph.T | np.eye(n, dtype=bool) for graph in graphs])
    gone = order[0]  # one does not count
    near[:, gone], near[:, :, gone] = False, False
    for graph, frame in zip(near, of_frames(near)):
        _, names = connected_components(graph, directed=False)
        wanted = np.array([np.flatnonzero(names == name)[0] for name in names])
        wanted[gone] = -1
        assert frame.tolist() == wanted.tolist()
        assert by_squaring(jnp.asarray(graph)).tolist() == wanted.tolist()
        assert by_hooking(jnp.asarray(graph)).tolist() == wanted.tolist()
    assert components(jnp.ones((1, 1), bool)).tolist() == [0]


# -------------------------------------------------------------------------------------------------
# the others


def test_pairs_and_cosines_are_all_of_them():
    np.testing.assert_allclose(pairs(jnp.asarray(W)), np.outer(W, W), rtol=1e-15)
    scaled = X * np.array([2.0, 3, 1, 0.5, 7, 1])[:, None]
    G = np.asarray(cosines(jnp.asarray(scaled)))
    np.testing.assert_allclose(G, X @ X.T, rtol=1e-12, atol=1e-14)
    many = RANDOM.normal(size=(60, 3))
    G = np.asarray(cosines(jnp.asarray(np.concatenate([many, -many]))))
    assert G.max() == 1 and G.min() == -1  # though unit vectors are rounded
    inner = InnerProducts(normalise=False).measure(*given(scaled))
    np.testing.assert_allclose(inner[0, 1], scaled[0] @ scaled[1], rtol=1e-13)
    assert InnerProducts().normalise


def test_strips_of_tokens_know_their_numbers(monkeypatch):
    monkeypatch.setattr(observable, "STRIP", 4)
    rows = in_strips(lambda strip, first: first + 10 * strip[:, 0], jnp.arange(6.0)[:, None])
    assert rows.tolist() == [0, 10, 20, 30, 44, 54]


@pytest.mark.parametrize(
    "one",
    [MeanCosine(), MinimumCosine(), PairDensity(0.7), Histogram(5), Histogram(5, True)],
    ids=repr,
)
def test_strips_are_the_whole(one, monkeypatch):
    monkeypatch.setattr(observable, "STRIP", 4)
    whole = one.measure(*given())
    np.testing.assert_allclose(one.by_strips(*given(3 * X)), whole, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(on_sphere(one, *given()), whole, rtol=1e-12)


def test_pairs_that_met_are_counted_by_their_weights():
    G, weights = X @ X.T, np.outer(W, W) * (1 - np.eye(N))
    for delta in (0.3, 0.9, 1.6):
        wanted = weights[1 - delta <= G].sum() / weights.sum()
        assert float(PairDensity(delta).measure(*given())) == pytest.approx(wanted, rel=1e-12)
    assert float(PairDensity().measure(jnp.asarray(X), jnp.eye(N)[2])) == 1  # one token alone
    same = PairDensity().measure(jnp.ones((3, 2)), jnp.array([0.1, 0.2, 0.7]))
    assert float(same) == pytest.approx(1, rel=1e-12) and float(same) <= 1
    density = PairDensity()
    told = [bool(density.at_rest(jnp.asarray(1 - gap))) for gap in (0.0, 9e-7, 1.1e-6, 0.01)]
    assert told == [True, True, False, False]
    for delta in (0.0, 2.0, -1.0):
        with pytest.raises(UserError, match="delta"):
            PairDensity(delta)
    assert PairDensity(1.99).delta == 1.99


def test_the_histogram_of_one_token_is_empty_and_its_bins_have_bounds():
    alone = Histogram(4).measure(jnp.asarray(X), jnp.eye(N)[2])
    assert np.asarray(alone).tolist() == [0, 0, 0, 0]
    opposite = jnp.array([[1.0, 0.0], [-1.0, 0.0]])
    assert Histogram(4).measure(opposite, jnp.full(2, 0.5)).tolist() == [1, 0, 0, 0]
    assert Histogram(1).bins == 1 and Histogram().bins == 100
    assert Histogram(10_000_000).bins == 10_000_000
    for bins in (0, 10_000_001):
        with pytest.raises(UserError, match="bins"):
            Histogram(bins)


def test_the_order_parameter_and_the_rank_are_blind_to_lengths():
    order = OrderParameter().measure(*given(2 * X))
    assert float(order) == pytest.approx(np.linalg.norm(W @ X), rel=1e-12)
    p = np.linalg.eigvalsh((W[:, None] * X).T @ X)
    p /= p.sum()
    wanted = np.exp(-(p * np.log(p)).sum())
    for x in (X, 2 * X):
        assert float(EffectiveRank().measure(*given(x))) == pytest.approx(wanted, rel=1e-10)
    two = np.linalg.eigvalsh((W[:2, None] * X[:2]).T @ X[:2])[1:]
    two /= two.sum()
    frames = EffectiveRank().on_host(*(a[None, :2] for a in given()))  # fewer tokens than d
    assert frames.tolist() == [pytest.approx(np.exp(-(two * np.log(two)).sum()), rel=1e-9)]
    lost = np.stack([X, np.where(np.arange(D) == 1, np.nan, X)])
    found = np.asarray(EffectiveRank().on_host(jnp.asarray(lost), jnp.asarray(np.stack([W, W]))))
    assert found[0] == pytest.approx(wanted, rel=1e-10) and np.isnan(found[1])
    few = np.stack([X[:2], np.where(np.arange(2)[:, None] == 0, np.nan, X[:2])])
    found = EffectiveRank().on_host(jnp.asarray(few), jnp.asarray(np.stack([W[:2], W[:2]])))
    assert np.isfinite(found[0]) and np.isnan(found[1])


def test_the_span_is_counted_by_eigenvalues_above_the_threshold():
    """Two tokens at an angle: 1 +- cos, whatever their lengths."""
    x, w = on_circle(np.array([0.0, 0.5]), 3.0), jnp.array([0.9, 0.1])
    low = 1 - np.cos(0.5)
    for threshold, count in ((0.9 * low, 2), (1.1 * low, 1), (1.9, 0)):
        assert int(SpanDimension(threshold).measure(x, w)) == count
    assert int(SpanDimension().measure(jnp.eye(3), jnp.array([0.5, 0.5, 0.0]))) == 2
    for threshold in (0.0, -1.0):
        with pytest.raises(UserError, match="threshold"):
            SpanDimension(threshold)
    assert SpanDimension(1e-9).threshold == 1e-9


def test_the_axis_of_a_cone_is_a_vector():
    for axis in (np.ones((2, 2)), np.ones((1, 3))):
        with pytest.raises(UserError, match="axis"):
            ConeMargin(axis=axis)
    tall = ConeMargin(axis=np.array([0.0, 0.0, 5.0])).measure(*given())
    assert float(tall) == pytest.approx(X[W > 0, 2].min()) == float(ConeMargin().measure(*given()))


def test_the_rate_of_a_flow_is_its_metric_times_the_square_of_its_speed():
    for flow in (SelfAttention(1.3), SelfAttention(1.3, repulsive=True), Burger(0.3 * S)):
        v = np.asarray(flow.velocity(0.0, *given()))
        wanted = (np.asarray(flow.metric(*given())) * (v**2).sum(axis=1)).sum()
        found = float(Dissipation(flow).measure(*given()))
        assert found == pytest.approx(wanted if flow.ascends else -wanted, rel=1e-12)


def test_the_effective_rank_of_many_tokens_in_few_dimensions_has_its_digits():
    """By the matrix of their dimensions: that of all pairs has thousands of eigenvalues which are
    rounding alone.
    """
    x = np.random.default_rng(3).normal(size=(3000, 3))
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    p = np.linalg.eigvalsh(u.T @ u / 3000)
    exact = np.exp(-(p * np.log(p)).sum())
    x, w = jnp.asarray(u, jnp.float32), jnp.full(3000, 1 / 3000, jnp.float32)
    np.testing.assert_allclose(EffectiveRank().measure(x, w), exact, rtol=2e-6)
    np.testing.assert_allclose(EffectiveRank().on_host(x[None], w), exact, rtol=2e-6)
    assert _gram(x, w).shape == (3, 3) and _gram(x[:2], w[:2]).shape == (2, 2)


def test_pairs_that_count_are_two_different_tokens_with_weights():
    found = real_pairs(jnp.array([0.5, 0.0, 0.5, 0.0]))
    wanted = np.zeros((4, 4), bool)
    wanted[0, 2] = wanted[2, 0] = True
    np.testing.assert_array_equal(found, wanted)


def test_clusters_are_found_for_any_number_of_tokens_too(monkeypatch):
    """Where the number is not known while the program is made: a chain in a random order."""
    n = 200
    order = np.random.default_rng(1).permutation(n)
    near = np.eye(n, dtype=bool)
    near[order[:-1], order[1:]] = near[order[1:], order[:-1]] = True
    near[order[99], order[100]] = near[order[100], order[99]] = False
    monkeypatch.setattr(_components, "is_counted", lambda n: False)
    labels = np.asarray(_components.by_hooking(jnp.asarray(near)))
    halves = order[:100], order[100:]
    assert all((labels[half] == half.min()).all() for half in halves)


@pytest.mark.parametrize("length", [1e-200, 1.0, 1e200])
def test_a_margin_is_along_the_axis_of_any_length(length):
    x = jnp.asarray([[0.6, 0.8], [-0.6, 0.8]])
    margin = ConeMargin(axis=np.array([length, 0.0])).measure(x, jnp.full(2, 0.5))
    assert float(margin) == pytest.approx(-0.6)


def test_a_margin_needs_a_direction():
    with pytest.raises(UserError, match="axis must be a direction"):
        ConeMargin(axis=[0.0, 0.0])


def test_clusters_by_radius_are_those_of_distances_far_from_the_origin():
    """|x|^2 + |y|^2 - 2 <x, y> is 0 for tokens 1 apart at 1e8."""
    far = np.array([[1e8, 0.0], [1e8 + 1, 0.0], [1e8 + 1.0625, 0.0]])
    for radius, count in ((0.01, 3), (0.1, 2), (2.0, 1)):
        with precision("float64"):
            clusters = ClusterCount(radius=radius).measure(jnp.asarray(far), jnp.full(3, 1 / 3))
        assert int(clusters) == count
