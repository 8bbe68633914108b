"""Phase diagrams against the reference numbers of Figures 3 and 4 of arXiv 2312.10794 and against
Theorem 6.9.
"""

from __future__ import annotations

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Clock, SelfAttention, Unnormalised
from tokenflock.observables import ClusterCount, InnerProducts, PairDensity
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Uniform
from tokenflock.theory import equiangular_cosine, layer_transition_curve, transition_curve
from tokenflock.verbs.ensemble import ensemble
from tokenflock.verbs.phase_diagram import phase_diagram

BETA = [0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0]
TIMES = [5.0, 10.0, 20.0, 30.0]
TABLE = {  # p_delta for n = 32, delta = 1e-3, layers of step 0.1; rows beta, columns t
    2: [
        [0.118, 0.883, 1.000, 1.000],
        [0.115, 0.792, 0.990, 0.999],
        [0.168, 0.576, 0.729, 0.805],
        [0.193, 0.500, 0.563, 0.590],
        [0.201, 0.439, 0.499, 0.519],
        [0.199, 0.363, 0.405, 0.421],
        [0.183, 0.304, 0.335, 0.348],
    ],
    32: [
        [0.009, 1, 1, 1],
        [0.004, 1, 1, 1],
        [0.001, 1, 1, 1],
        [0.000, 1, 1, 1],
        [0.000, 0.993, 1, 1],
        [0.000, 0.037, 0.737, 0.872],
        [0.000, 0.001, 0.009, 0.030],
    ],
}
REPEATS = {2: 512, 32: 128}


@pytest.fixture
def lanes():
    pytest.importorskip("llvmlite")
    return "lanes"


@pytest.mark.slow
@pytest.mark.parametrize("d", TABLE)
def test_the_table_of_figure_3(d, lanes):
    result = ensemble(
        SelfAttention(),
        Uniform(n=32, d=d),
        over={"beta": BETA},
        repeats=REPEATS[d],
        times=TIMES,
        solver=Layer(h=0.1),
        engine=lanes,
    )
    ours, theirs = result.pair_density.values[:, 1:], np.array(TABLE[d])
    error = result.pair_density_error.values[:, 1:]
    assert np.abs(ours - theirs).max() > 0  # they are two experiments
    assert (np.abs(ours - theirs) <= 4 * error + 0.02).all(), (ours - theirs).round(3)
    assert error.max() < 0.04  # so that the line above says something


@pytest.mark.slow
def test_the_front_in_high_dimension(lanes):
    """In d = 1024 the layer map's front passes beta = 6.78 at t = 30, not the flow's 6.91."""
    beta = np.arange(6.4, 7.21, 0.1)
    result = phase_diagram(
        SelfAttention(),
        Uniform(n=32, d=1024),
        beta=beta,
        repeats=16,
        times=[30.0],
        solver=Layer(h=0.1),
        engine=lanes,
    )
    p = result.pair_density.values[:, -1]
    assert p[0] > 0.95 and p[-1] < 0.05
    front = np.interp(0.5, p[::-1], beta[::-1])
    assert 6.70 <= front <= 6.86
    assert abs(front - float(result.transition[-1])) < 0.08


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "clusters", "share"), [(4.0, 2, 0.8), (9.0, 3, 0.6)])
def test_two_clusters_at_beta_4_and_three_at_9_on_the_circle(beta, clusters, share):
    """Figure 4: the usual number of clusters at t = 30."""
    result = ensemble(
        SelfAttention(beta),
        Uniform(n=32, d=2),
        repeats=256,
        times=[30.0],
        solver=Layer(h=0.1),
        engine="batch",
        keep=True,
        observe=[ClusterCount(delta=1e-3)],
    )
    counts = result.cluster_count.values[:, -1]
    assert np.mean(counts == clusters) > share


def distance_to_the_equiangular_curve(d, seed):
    """sup over time and pairs of |gamma_ij(t) - gamma_beta(t)|, for n = 32 uniform tokens and beta
    = 1.
    """
    run = flock.simulate(
        SelfAttention(1.0),
        Uniform(n=32, d=d),
        t=10,
        frames=41,
        solver=RK4(h=0.05),
        seed=seed,
        observe=[InnerProducts()],
    )
    curve = equiangular_cosine(run.time.values, n=32, beta=1.0)
    pairs = run.inner_products.values[:, *np.triu_indices(32, 1)]
    return np.abs(pairs - curve[:, None]).max()


@pytest.mark.slow
def test_random_tokens_in_high_dimension_follow_the_equiangular_curve():
    """Theorem 6.9: the distance is of order sqrt(log d / d)."""
    found = {
        d: np.mean([distance_to_the_equiangular_curve(d, seed) for seed in range(3)])
        for d in (32, 128, 1024)
    }
    for d in (128, 1024):
        assert found[d] < 2 * np.sqrt(np.log(d) / d)
    assert (
        found[32] > 1.5 * found[128] and found[128] > 2 * found[1024]
    )  # sqrt(8) = 2.8 were it a power


@pytest.mark.slow
def test_random_tokens_in_very_high_dimension_follow_it_closely():
    assert distance_to_the_equiangular_curve(8192, 0) < 2 * np.sqrt(np.log(8192) / 8192)


SHORT = {"beta": [1.0], "t": 6.0, "frames": 4, "repeats": 2}


def test_the_predicted_front_is_that_of_n_and_of_the_convention():
    """Not the curve for n = 128 that the published notebook draws."""
    layers = phase_diagram(SelfAttention(), Uniform(n=8, d=3), **SHORT)
    assert layers.transition.attrs["curve"] == "layer map, n = 8"
    assert np.isnan(layers.transition[0])
    assert np.allclose(
        layers.transition[1:], layer_transition_curve([2.0, 4.0, 6.0], n=8, h=0.1), equal_nan=True
    )
    assert abs(layers.transition[-1] - layer_transition_curve(6.0, n=128)) > 0.5 or np.isnan(
        layer_transition_curve(6.0, n=128)
    )
    coarse = phase_diagram(
        SelfAttention(),
        Uniform(n=8, d=3),
        solver=Layer(h=0.5),
        observe=[PairDensity(delta=0.01)],
        **SHORT,
    )
    assert np.allclose(
        coarse.transition[1:],
        layer_transition_curve([2.0, 4.0, 6.0], n=8, delta=0.01, h=0.5),
        equal_nan=True,
    )
    assert coarse.transition.attrs["delta"] == 0.01
    flow = phase_diagram(SelfAttention(), Uniform(n=8, d=3), solver=RK4(h=0.1), **SHORT)
    assert flow.transition.attrs["curve"] == "flow, n = 8"
    assert np.allclose(flow.transition[1:], transition_curve([2.0, 4.0, 6.0], n=8), equal_nan=True)
    assert abs(float(flow.transition[-1] - layers.transition[-1])) > 0.01


def test_where_theory_has_no_front_none_is_drawn():
    start = Uniform(n=4, d=3)
    assert "transition" not in phase_diagram(SelfAttention(repulsive=True), start, **SHORT)
    assert "transition" not in phase_diagram(
        Unnormalised(), start, **SHORT
    )  # no recursion for its layers
    assert "transition" not in phase_diagram(
        Unnormalised(clock=Clock.PEAK), start, solver=RK4(h=0.1), **SHORT
    )
    usa = phase_diagram(Unnormalised(), start, solver=RK4(h=0.1), **SHORT | {"t": 1.5})
    assert np.allclose(
        usa.transition[1:],
        transition_curve([0.5, 1.0, 1.5], n=4, unnormalised=True),
        equal_nan=True,
    )


def test_the_front_at_t_30_is_where_the_papers_numbers_put_it():
    assert abs(layer_transition_curve(30.0, n=32) - 6.78) < 0.005
    assert abs(transition_curve(30.0, n=32) - 6.906459) < 1e-6
