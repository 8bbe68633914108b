"""Contracts of every observable, and known values."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.stats import ortho_group

import tokenflock as flock
from tokenflock.catalogue import entries
from tokenflock.dynamics import Block, Causal, SelfAttention
from tokenflock.observables import (
    AttentionEntropy,
    ClusterCount,
    ClusterLabels,
    ConsensusDistance,
    Convention,
    Dissipation,
    EffectiveRank,
    Energy,
    Histogram,
    MeanCosine,
    MinimumCosine,
    OrderParameter,
    PairDensity,
    SpanDimension,
)
from tokenflock.observables._components import by_hooking, by_squaring, of_frames
from tokenflock.parts import CausalMask
from tokenflock.verbs import measure as measuring

LAW = SelfAttention(beta=2.0)
OBSERVABLES = [entry.load()().bind(LAW) for entry in entries("observables")]
every_observable = pytest.mark.parametrize("one", OBSERVABLES, ids=lambda one: type(one).__name__)
pytestmark = pytest.mark.usefixtures("double")


def tokens(n=6, d=3, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d))
    w = random.uniform(0.5, 1.5, size=n)
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True)), jnp.asarray(w / w.sum())


@every_observable
def test_dims_say_what_comes(one):
    x, w = tokens()
    assert jnp.ndim(one.measure(x, w)) == len(one.dims)


@every_observable
def test_order_of_tokens_does_not_matter(one):
    x, w = tokens()
    order = np.array([3, 0, 5, 1, 4, 2])
    x = x.at[4].set(x[1])  # so that there is a group
    value, permuted = one.measure(x, w), one.measure(x[order], w[order])
    if one.labels:  # their names may change, who is in one group may not
        value, permuted = (names[:, None] == names for names in (value[order], permuted))
        assert not bool(value.all()) and bool(value.sum() > 6)
        assert np.array_equal(value, permuted)
        return
    for axis, dim in enumerate(one.dims):
        if dim in ("particle", "other"):
            value = jnp.take(value, order, axis=axis)
    assert np.allclose(value, permuted, atol=1e-12)


@every_observable
def test_tokens_of_weight_zero_do_not_count(one):
    x, w = tokens()
    strangers, _ = tokens(3, seed=7)
    value = np.asarray(one.measure(x, w))
    padded = np.asarray(
        one.measure(jnp.concatenate([x, strangers]), jnp.concatenate([w, jnp.zeros(3)]))
    )
    inside = tuple(slice(0, 6) if dim in ("particle", "other") else slice(None) for dim in one.dims)
    assert np.allclose(padded[inside], value, atol=1e-12)


@every_observable
def test_rotations_do_not_matter_exactly_where_declared(one):
    x, w = tokens()
    U = ortho_group.rvs(3, random_state=0)
    same = np.allclose(one.measure(x @ U.T, w), one.measure(x, w), atol=1e-10)
    assert same == one.isotropic


@pytest.mark.slow
@every_observable
def test_a_result_holds_it_under_its_name_with_its_dims(one, run, monkeypatch):
    """Frame by frame what `measure` gives, though frames go in chunks, cosines are shared, and some
    know a quicker way.
    """
    monkeypatch.setattr(measuring, "ENTRIES", 4 * run.sizes["particle"] ** 2)
    measured = flock.measure(run, [MeanCosine(), one])[one.name]
    assert measured.dims == ("time", *one.dims) and measured.attrs["long_name"]
    bound, w = (
        one.bind(measuring.dynamics_of(run)),
        jnp.full(run.sizes["particle"], 1 / run.sizes["particle"]),
    )
    for k in (0, 4, -1):
        assert np.allclose(
            measured[k], bound.measure(jnp.asarray(run.x.values[k]), w), rtol=1e-9, atol=1e-9
        )


def test_a_lost_frame_is_nan_and_the_others_are_not(run):
    broken = run.assign(x=run.x.where(run.time > run.time[0]))
    found = flock.measure(broken, [EffectiveRank(), MeanCosine()])
    for name in ("effective_rank", "mean_cosine"):
        assert np.isnan(found[name][0]) and np.isfinite(found[name][1:]).all()


def test_a_model_is_measured_like_a_simulation():
    x, w = tokens(5, 4)
    model = xr.Dataset(
        {
            "x": (("prompt", "layer", "token", "coord"), np.stack([np.stack([x] * 3)] * 2)),
            "w": (("prompt", "token"), np.stack([w, w])),
        }
    )
    measured = flock.measure(model, [MeanCosine(), Energy(beta=1.0), ClusterLabels()])
    assert measured.mean_cosine.dims == ("prompt", "layer")
    assert measured.cluster_labels.dims == ("prompt", "layer", "token")
    assert np.allclose(measured.mean_cosine, float(MeanCosine().measure(x, w)))


@pytest.mark.slow
def test_values_at_consensus():
    x, w = jnp.tile(jnp.array([[0.6, 0.8]]), (4, 1)), jnp.full(4, 0.25)
    beta = 3.0
    known = {
        Convention.PAPER: np.exp(beta) / (2 * beta),
        Convention.SUM: 16 * np.exp(beta) / (2 * beta),
        Convention.METASTABLE: 1 / (2 * beta),
        Convention.STAIRCASE: 1.0,
        Convention.BURGER: np.exp(beta),
        Convention.NORMALISATION: -16 * np.exp(beta),
    }
    for convention, value in known.items():
        assert float(Energy(beta, convention).measure(x, w)) == pytest.approx(value, rel=1e-13)
        assert float(Energy(beta, convention, log=True).measure(x, w)) == pytest.approx(
            np.log(abs(value)), abs=1e-12
        )
    ones = [PairDensity(), MeanCosine(), MinimumCosine(), OrderParameter(), EffectiveRank()]
    assert [float(one.measure(x, w)) for one in ones] == pytest.approx([1] * 5)
    assert [int(one.measure(x, w)) for one in (ClusterCount(), SpanDimension())] == [1, 1]
    assert float(ConsensusDistance().measure(x, w)) == 0
    assert np.allclose(AttentionEntropy(LAW).measure(x, w), np.log(4))


def test_values_for_orthonormal_tokens():
    x, w = jnp.eye(5), jnp.full(5, 0.2)
    assert float(EffectiveRank().measure(x, w)) == pytest.approx(5)
    assert int(SpanDimension().measure(x, w)) == 5
    assert int(ClusterCount().measure(x, w)) == 5
    assert float(MeanCosine().measure(x, w)) == 0
    assert float(OrderParameter().measure(x, w)) == pytest.approx(1 / np.sqrt(5))


def test_clusters_are_chains_and_do_not_depend_on_the_order_of_rows():
    """A chain of tokens, each close to the next only: one cluster, in any order of rows."""
    angles = np.arange(9) * 0.04
    x, w = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1), jnp.full(9, 1 / 9)
    for order in (np.arange(9), np.array([8, 0, 4, 2, 6, 1, 7, 3, 5])):
        assert int(ClusterCount(delta=1e-3).measure(x[order], w)) == 1
        labels = ClusterLabels(delta=1e-3).measure(x[order], w)
        assert len(set(labels.tolist())) == 1


@pytest.mark.slow
def test_histogram_counts_every_pair_once_and_leaves_the_diagonal_out():
    x, w = tokens(8, 2)
    shares = Histogram(bins=40).measure(x, w)
    assert float(shares.sum()) == pytest.approx(1)
    assert float(
        Histogram(bins=40, diagonal=True).measure(jnp.eye(3), jnp.full(3, 1 / 3))[-1]
    ) == pytest.approx(1 / 3)
    assert float(Histogram(bins=40).measure(jnp.eye(3), jnp.full(3, 1 / 3))[-1]) == 0


def test_what_is_missing_is_asked_for():
    x, w = tokens()
    with pytest.raises(flock.UserError, match="beta"):
        Energy().measure(x, w)
    with pytest.raises(flock.UserError, match="gradient flow"):
        Dissipation(Causal()).measure(x, w)


@pytest.mark.slow
def test_an_energy_beyond_the_numbers_is_told():
    run = flock.simulate(SelfAttention(beta=1e4), np.eye(3), t=0.1, frames=2)
    with pytest.warns(RuntimeWarning, match=r"energy is not finite in float64.*Energy\(log=True\)"):
        assert np.isinf(flock.measure(run, Energy()).energy.values).any()
    assert np.isfinite(flock.measure(run, Energy(log=True)).log_energy.values).all()


def test_a_single_token_agrees_with_itself():
    for w in ([1.0], [1.0, 0.0]):
        x = jnp.eye(len(w), 3)
        assert float(MeanCosine().measure(x, jnp.asarray(w))) == 1
        assert float(MinimumCosine().measure(x, jnp.asarray(w))) == 1


def test_who_listens_to_nobody_has_no_entropy():
    law = Block(mask=CausalMask(strict=True))
    x, w = tokens(4)
    heard = np.asarray(AttentionEntropy(law).measure(x, w))
    assert heard[0] == 0 and heard[1] == pytest.approx(0)
    assert (heard[2:] > 0).all()


def test_clusters_of_many_tokens_are_those_of_few():
    """Both ways to find connected components, on graphs with chains and tokens left out."""
    random = np.random.default_rng(1)
    for share in (0.01, 0.05, 0.3):
        near = random.random((40, 40)) < share
        here = random.random(40) < 0.8
        near = jnp.asarray((near | near.T | np.eye(40, dtype=bool)) & here[:, None] & here)
        labels = np.asarray(by_squaring(near))
        np.testing.assert_array_equal(by_hooking(near), labels)
        np.testing.assert_array_equal(of_frames(np.asarray(near)[None])[0], labels)
        assert (labels[~here] == -1).all() and (labels[here] >= 0).all()
