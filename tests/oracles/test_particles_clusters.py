"""Where tokens go: consensus, cones, metastable steps, leaders and polytopes, causal order.

And how clusters are counted.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull

import tokenflock as flock
from tokenflock.dynamics import (
    Attention,
    Causal,
    Hardmax,
    PureAttention,
    RescaledAttention,
    SelfAttention,
)
from tokenflock.observables import (
    AttentionMatrix,
    ClusterCount,
    ClusterLabels,
    ConeMargin,
    ConsensusDistance,
    Convention,
    Energy,
    MinimumCosine,
)
from tokenflock.observables._components import by_hooking, by_squaring
from tokenflock.precision import cast
from tokenflock.solvers import RK4, Euler, Layer
from tokenflock.starts import Box, Given, Hemisphere, Uniform
from tokenflock.theory import merging_time, plateau_energy

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.slow]


def circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], -1)


# ------------------------------------------------------------------------------------------------
# how clusters are counted


def test_clusters_do_not_depend_on_the_order_of_rows():
    """Chains, whose ends are far apart, are one cluster in every order: a greedy count breaks them
    up in most orders.
    """
    # three chains and a loner: 4
    angles = np.concatenate([np.arange(9) * 0.04, 2.0 + np.arange(4) * 0.04, [4.0], [0.5]])
    x, w = circle(angles), np.full(15, 1 / 15)
    delta = 1 - np.cos(0.045)
    count = jax.jit(lambda y: ClusterCount(delta).measure(y, jnp.asarray(w)))
    label = jax.jit(lambda y: ClusterLabels(delta).measure(y, jnp.asarray(w)))
    home = np.asarray(label(jnp.asarray(x)))
    random = np.random.default_rng(0)
    for order in [np.arange(15), np.arange(15)[::-1], *(random.permutation(15) for _ in range(20))]:
        assert int(count(jnp.asarray(x[order]))) == 4
        labels = np.asarray(label(jnp.asarray(x[order])))
        same = labels[:, None] == labels
        np.testing.assert_array_equal(same, (home[:, None] == home)[np.ix_(order, order)])


def test_clusters_are_connected_components():
    """Against SciPy, on random points whose graph has many components, by angle and by distance."""
    n = 40
    random = np.random.default_rng(n)
    x = circle(random.uniform(0, 2 * np.pi, n))
    w = jnp.full(n, 1 / n)
    count = jax.jit(lambda y, delta: ClusterCount(delta).measure(y, w))
    for delta in (1e-3, 5e-3, 2e-2):
        expected, _ = connected_components(x @ x.T >= 1 - delta)
        assert int(count(jnp.asarray(x), jnp.asarray(delta))) == expected
    y = random.uniform(-1, 1, (n, 3))
    near = np.linalg.norm(y[:, None] - y, axis=-1) <= 0.45
    by_distance = jax.jit(lambda y: ClusterCount(radius=0.45).measure(y, w))
    assert int(by_distance(jnp.asarray(y))) == connected_components(near)[0]


@pytest.mark.slow
@pytest.mark.parametrize("n", [150, 400])
def test_many_tokens_have_the_same_clusters(n):
    """Above 128 tokens components are found by hooking: the same labels as by squaring, and SciPy's
    partition, on graphs that are sparse, near the threshold of one great component, a long chain in
    random order, and empty; some tokens do not count.
    """
    random = np.random.default_rng(n)
    chain = np.abs(np.subtract.outer(*[random.permutation(n)] * 2)) <= 1
    hooked, squared = jax.jit(by_hooking), jax.jit(by_squaring)
    for near in [
        *(random.random((n, n)) < p / n for p in (0.3, 0.6, 1.0, 4.0)),
        chain,
        np.zeros((n, n), bool),
    ]:
        near = near | near.T | np.eye(n, dtype=bool)
        here = random.random(n) < 0.9
        near = near & np.outer(here, here)
        labels = np.asarray(hooked(jnp.asarray(near)))
        np.testing.assert_array_equal(labels, np.asarray(squared(jnp.asarray(near))))
        np.testing.assert_array_equal(labels == -1, ~here)
        _, expected = connected_components(near)
        np.testing.assert_array_equal(
            (labels[:, None] == labels)[here][:, here],
            (expected[:, None] == expected)[here][:, here],
        )


# --------------------------------------------------------------------------------------------------
# consensus


@pytest.mark.slow
def test_consensus_at_beta_zero_from_every_seed():
    """Thm 4.1 (small): n = 20, d = 2 and 3, 60 seeds each, T = 40: one cluster in every run."""
    random = np.random.default_rng(1)
    law, solver = cast(SelfAttention(0.0), "float64"), cast(RK4(h=0.2), "float64")
    w = jnp.full(20, 1 / 20)

    def end(x):
        x = jax.lax.fori_loop(0, 200, lambda _, y: solver.step(law, jnp.zeros(()), y, w, None), x)
        return MinimumCosine().measure(x, w)

    for d in (2, 3):
        x = random.normal(size=(60, 20, d))
        least = jax.jit(jax.vmap(end))(jnp.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True)))
        assert least.min() > 1 - 1e-6


def test_balanced_tokens_are_a_strict_saddle_at_beta_zero():
    """(C.2): where the mean vanishes, the Hessian of E_0 = (1/n) sum <x_i, x_j> has an eigenvalue
    of at least 2 (d-1)/d.
    """
    d, pairs = 3, 5
    x = np.random.default_rng(2).normal(size=(pairs, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x = np.concatenate([x, -x])  # mean zero
    n = 2 * pairs
    # (n, d-1, d): tangent frames
    basis = np.stack([np.linalg.svd(point[None])[2][1:] for point in x])

    def E(u):
        y = jnp.asarray(x) + jnp.einsum("ik,ikd->id", u, jnp.asarray(basis))
        y = y / jnp.linalg.norm(y, axis=1, keepdims=True)
        return 2 * n * SelfAttention(0.0).energy(y, jnp.full(n, 1 / n))

    gradient, hessian = (
        jax.jit(jax.grad(E))(jnp.zeros((n, d - 1))),
        jax.jit(jax.hessian(E))(jnp.zeros((n, d - 1))),
    )
    np.testing.assert_allclose(gradient, 0, atol=1e-13)
    assert (
        np.linalg.eigvalsh(np.asarray(hessian).reshape(n * (d - 1), -1))[-1]
        >= 2 * (d - 1) / d - 1e-12
    )


def test_small_beta_moves_tokens_linearly():
    """Thm 4.2: sup_{t <= 3} |x^beta - x^0| is of order beta."""
    betas = [0.0, 1e-3, 1e-2, 1e-1]
    runs = [
        flock.simulate(
            SelfAttention(beta), Uniform(n=10, d=3), t=3.0, frames=31, solver=RK4(h=0.02)
        ).x.values
        for beta in betas
    ]
    distance = [np.linalg.norm(run - runs[0], axis=-1).max() for run in runs[1:]]
    slope = np.polyfit(np.log(betas[1:]), np.log(distance), 1)[0]
    assert abs(slope - 1) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_cones_shrink_for_any_queries_and_keys(seed):
    """Lemma 6.4: V = I and random Q, K.

    Min_i <x_i, w> never falls, for every w that sees all tokens, and all tokens meet.
    """
    random = np.random.default_rng(seed)
    d = 4
    law = Attention(
        beta=2.0,
        Q=random.normal(size=(d, d)) / np.sqrt(d),
        K=random.normal(size=(d, d)) / np.sqrt(d),
    )
    run = flock.simulate(
        law,
        Hemisphere(n=16, d=d),
        t=60.0,
        frames=601,
        solver=RK4(h=0.05),
        seed=seed,
        observe=[ConeMargin(), ConsensusDistance()],
    )
    heights = np.einsum("tid,ad->tai", run.x.values, random.normal(size=(400, d)))
    margins = [run.cone_margin.values, *heights.min(-1).T]
    seen = [margin for margin in margins if margin[0] > 0]
    assert len(seen) >= 1
    for margin in seen:
        assert np.diff(margin).min() >= -1e-12
    assert run.consensus_distance[-1] < 1e-6


# --------------------------------------------------------------------------------------------------
# metastability

KINETIC = [
    (0.99806638, 0.06215705),
    (0.97712061, 0.21268594),
    (-0.24578194, 0.96932515),
    (-0.97354734, 0.2284854),
    (-0.99892629, -0.04632772),
]


@pytest.mark.slow
def test_staircase_of_five_tokens():
    """Experiment A of arXiv 2410.06833 (SA, beta = 4): {1, 2} and {4, 5}, then 3 joins {4, 5}, then
    a long plateau near 13/25.
    """
    run = flock.simulate(
        SelfAttention(4.0),
        KINETIC,
        t=400.0,
        frames=2001,
        solver=RK4(h=0.05),
        observe=[ClusterLabels(), Energy(convention=Convention.STAIRCASE)],
    )
    stages = [tuple(row) for row in run.cluster_labels.values]
    order = list(dict.fromkeys(stages))
    assert order[0] == (0, 1, 2, 3, 4)
    assert order[-3:] == [(0, 0, 2, 3, 3), (0, 0, 2, 2, 2), (0, 0, 0, 0, 0)]
    times = run.time.values
    joins, last = times[stages.index(order[-2])], times[stages.index(order[-1])]
    assert last > 50 * joins
    plateau = (times > 3 * joins) & (times < last / 2)
    assert np.abs(run.energy.values[plateau] - 13 / 25).max() < 0.02
    assert np.diff(run.energy.values).min() > -1e-12
    merges = flock.merges(run)
    assert merges.after.values[-2:].tolist() == [2, 1]
    np.testing.assert_allclose(merges.time.values[-2:], [joins, last])
    # the last merge is that of a pair with masses 2/5 and 3/5, whose time has a closed form
    frame = stages.index(order[-2]) + 50
    x = run.x.values[frame]
    angle = np.arccos(np.clip(x[0] @ x[4], -1, 1))
    np.testing.assert_allclose(
        times[frame] + merging_time(angle, 4.0, 1e-3, 2 / 5), last, rtol=0.03
    )
    cosine = np.cos(angle)
    np.testing.assert_allclose(
        run.energy[frame], plateau_energy((0.4, 0.6), 4.0, cosine), rtol=1e-4
    )


# --------------------------------------------------------------------------------------------------
# causal


def test_causal_tokens_all_end_at_the_first():
    """x_1 never moves, and at T = 1000 every token is within 1e-3 of it (beta = 1, d = 3, n =
    16).
    """
    run = flock.simulate(
        Causal(1.0), Uniform(n=16, d=3), t=1000.0, frames=6, solver=RK4(h=0.2), seed=3
    )
    first = run.x.values[:, 0]
    np.testing.assert_allclose(first, np.tile(first[0], (6, 1)), atol=1e-14, rtol=0)
    assert 2 * np.arcsin(np.linalg.norm(run.x[-1] - first[0], axis=1).max() / 2) < 1e-3


def test_causal_tokens_do_not_see_the_future():
    """The first five tokens move as if the other three were not there."""
    x = np.random.default_rng(4).normal(size=(8, 3))
    G = np.random.default_rng(5).normal(size=(2, 3, 3))
    law = Causal(1.5, Q=G[0], K=G[1], V=np.diag([1.0, -0.5, 0.3]))
    velocity = jax.jit(lambda y: law.velocity(jnp.zeros(()), y, jnp.full(len(y), 1 / len(y))))
    whole, part = np.asarray(velocity(jnp.asarray(x))), np.asarray(velocity(jnp.asarray(x[:5])))
    np.testing.assert_allclose(whole[:5], part, rtol=1e-12, atol=1e-14)


# -------------------------------------------------------------------------------------- leaders,
# polytopes and flat space


def test_hardmax_followers_approach_their_leaders():
    """Leaders are their own favourites and stay.

    A follower of v is at v + (1 + a)^{-t} (z - v) after t layers.
    """
    a = 0.5
    leaders = np.array([(1.0, 1.0), (0.5, -0.5), (-1.0, -1.0)])
    followers = np.array([(0.3, 0.5), (-0.2, -0.6), (0.4, -0.1), (0.2, -0.3)])
    z0 = np.concatenate([leaders, followers])
    run = flock.simulate(Hardmax(), z0, t=30 * a / (1 + a), frames=31, solver=Layer(h=a / (1 + a)))
    favourite = np.argmax(z0 @ leaders.T, axis=1)
    assert set(favourite) == {0, 1, 2}
    target = leaders[favourite]
    expected = target + (1 + a) ** -np.arange(31.0)[:, None, None] * (z0 - target)
    np.testing.assert_allclose(run.x, expected, atol=1e-12)
    np.testing.assert_array_equal(run.x[:, :3], np.tile(leaders, (31, 1, 1)))


def test_hardmax_ties_are_averaged():
    """Example 9.3: the token at the origin likes all equally and goes to their mean."""
    z = np.array([[1.0, 1.0], [-1.0, 1.0], [1e-12, 0.0]])
    force = np.asarray(Hardmax().force(jnp.zeros(()), jnp.asarray(z), jnp.full(3, 1 / 3)))
    np.testing.assert_allclose(force[2], [0, 2 / 3], atol=1e-9)
    np.testing.assert_allclose(force[:2], 0, atol=1e-15)


def test_frank_wolfe_steps_go_straight_to_the_vertices():
    """B > 0 and vertices of equal B-norm stay.

    X_i = v + prod (1 - gamma) (x_i(0) - v) with v = argmax <B x, v_j>.
    """
    B = np.array([[2.0, 0.5], [0.5, 1.0]])
    corners = circle(2 * np.pi * np.arange(5) / 5 + 0.2) @ np.linalg.inv(np.linalg.cholesky(B))
    inside = 0.6 * np.random.default_rng(6).uniform(-0.5, 0.5, (8, 2))
    x0 = np.concatenate([corners, inside])
    target = corners[np.argmax(x0 @ B @ corners.T, axis=1)]
    assert len(np.unique(np.argmax(inside @ B @ corners.T, axis=1))) >= 3
    gamma = 0.2 / 1.2
    run = flock.simulate(Hardmax(Q=B), x0, t=20 * gamma, frames=21, solver=Layer(h=gamma))
    expected = target + (1 - gamma) ** np.arange(21.0)[:, None, None] * (x0 - target)
    np.testing.assert_allclose(run.x, expected, atol=1e-12)
    flow = flock.simulate(Hardmax(Q=B), x0, t=1.0, frames=2, solver=Euler(h=1e-4))
    np.testing.assert_allclose(flow.x[-1], np.exp(-1) * x0 + (1 - np.exp(-1)) * target, atol=1e-4)


def depth(points, hull):
    """How far points stick out of a convex hull (negative inside)."""
    return (points @ hull.equations[:, :-1].T + hull.equations[:, -1]).max()


def test_rescaled_tokens_shrink_to_the_vertices_of_a_polytope():
    """V = I: hulls are nested, and at T = 5 every token is near a vertex of the hull or the
    origin.
    """
    run = flock.simulate(
        RescaledAttention(beta=1.0), Box(n=20, d=2, side=5.0), t=5.0, frames=51, solver=RK4(h=0.02)
    )
    frames = run.x.values
    for before, after in pairwise(frames):
        assert depth(after, ConvexHull(before)) < 1e-9
    corners = np.concatenate([frames[-1][ConvexHull(frames[-1]).vertices], [[0.0, 0.0]]])
    distance = np.linalg.norm(frames[-1][:, None] - corners, axis=-1).min(1)
    assert distance.max() < 1e-2 * 5  # e^{-5} of the way is left, in units of the box
    assert len(ConvexHull(frames[0]).vertices) < 20


@pytest.mark.slow
def test_rescaled_frame_is_the_flat_law_seen_from_e_to_the_tv():
    """(9.2): x = e^{tV} z."""
    V = np.array([[0.5, 0.8], [-0.3, 0.2]])
    start, solver = Box(n=6, d=2, side=1.0), RK4(h=0.01)
    flat = flock.simulate(PureAttention(0.8, V=V), start, t=1.0, frames=2, solver=solver)
    frame = flock.simulate(RescaledAttention(0.8, V=V), start, t=1.0, frames=2, solver=solver)
    value, vector = np.linalg.eig(V)
    growth = (vector * np.exp(value) @ np.linalg.inv(vector)).real
    np.testing.assert_allclose(flat.x[-1], frame.x[-1].values @ growth.T, atol=1e-8)


@pytest.mark.slow
def test_attention_on_the_line_becomes_boolean():
    """Thm 2.1 of 2305.05465 (d = 1, V > 0): all rows of A but at most one are e_first or e_last."""
    run = flock.simulate(
        RescaledAttention(1.0), Box(n=12, d=1, side=3.0), t=4.0, frames=2, solver=RK4(h=0.02)
    )
    z = jnp.asarray(run.x.values[-1])
    A = np.asarray(AttentionMatrix(RescaledAttention(1.0), t=4.0).measure(z, jnp.full(12, 1 / 12)))
    first, last = int(np.argmin(run.x[0, :, 0].values)), int(np.argmax(run.x[0, :, 0].values))
    near = np.minimum(np.abs(A - np.eye(12)[first]).max(1), np.abs(A - np.eye(12)[last]).max(1))
    assert (near < 1e-6).sum() >= 11
    assert (A[:, first] > 0.5).any() and (A[:, last] > 0.5).any()


def test_negative_values_bring_tokens_to_the_origin():
    """Thm C.5 of 2305.05465: V = -I, Q^T K = I: x_i -> 0 without rescaling."""
    run = flock.simulate(
        PureAttention(1.0, V=-1.0), Box(n=12, d=2, side=2.0), t=400.0, frames=3, solver=RK4(h=0.05)
    )
    radii = np.linalg.norm(run.x, axis=-1).max(1)
    assert radii[0] > 1 and radii[1] < 0.1 and radii[2] < radii[1]


def test_given_matrices_act_as_written():
    """(2.3) against NumPy: A_ij ~ w_j e^{beta <Q x_i, K x_j>}, values V x_j, with Q and K of
    another height than d.
    """
    random = np.random.default_rng(8)
    x, Q, K, V = (
        random.normal(size=(5, 3)),
        random.normal(size=(2, 3)),
        random.normal(size=(2, 3)),
        random.normal(size=(3, 3)),
    )
    w = np.array([0.1, 0.3, 0.2, 0.25, 0.15])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    expected = np.zeros_like(x)
    for i in range(5):
        share = [w[j] * np.exp(1.3 * (Q @ x[i]) @ (K @ x[j])) for j in range(5)]
        expected[i] = sum(s * (V @ y) for s, y in zip(share, x)) / sum(share)
    found = Attention(1.3, Q=Q, K=K, V=V).force(jnp.zeros(()), jnp.asarray(x), jnp.asarray(w))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    flat = flock.simulate(
        PureAttention(1.3, Q=Q, K=K, V=V), Given(x, w), t=1e-3, frames=2, solver=Euler(h=1e-3)
    )
    np.testing.assert_allclose(flat.x[1], x + 1e-3 * expected, rtol=1e-12)
