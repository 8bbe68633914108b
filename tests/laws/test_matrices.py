"""Random matrices have the moments that the papers write, and are drawn as often as they say."""

from __future__ import annotations

import json
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tests.laws.test_engines import compile_quickly  # noqa: F401 (a fixture)
from tokenflock import recipe
from tokenflock.catalogue import entries
from tokenflock.dynamics import (
    Attention,
    Block,
    FeedForward,
    MultiHead,
    NeuralODE,
    Noisy,
    PreNorm,
    RescaledAttention,
    SelfAttention,
)
from tokenflock.dynamics._matrices import Switching
from tokenflock.engines.choose import Systems
from tokenflock.engines.job import follow
from tokenflock.errors import UserError
from tokenflock.matrices import (
    GOE,
    GaussianEntries,
    Ginibre,
    Identity,
    Per,
    RandomMatrices,
    Value,
    Wigner,
)
from tokenflock.observables import MeanCosine
from tokenflock.precision import precision
from tokenflock.solvers import Layer
from tokenflock.starts import Given, Uniform
from tokenflock.verbs.ensemble import ensemble

D, DRAWS = 6, 4000
LAWS = [entry.load()() for entry in entries("matrices")]
every_law = pytest.mark.parametrize("law", LAWS, ids=repr)
every_random_law = pytest.mark.parametrize("law", [law for law in LAWS if law.random], ids=repr)


@cache
def drawn(law, count=DRAWS, d=D):
    with precision("float32"):
        return np.asarray(
            jax.vmap(lambda key: law.draw(key, d))(jax.random.split(jax.random.key(1), count)),
            np.float64,
        )


@every_law
def test_matrices_are_symmetric_as_declared(law):
    B = drawn(law)
    assert np.array_equal(B, np.swapaxes(B, 1, 2)) == law.symmetric


@every_random_law
def test_moments_are_as_declared(law):
    B = drawn(law)
    variance = np.where(np.eye(D, dtype=bool), law.diagonal, 1.0)
    error = np.sqrt((B**4).mean(0) - (B**2).mean(0) ** 2) / DRAWS**0.5
    assert np.abs(B.mean(0) / np.sqrt(variance) * DRAWS**0.5).max() < 4.5
    assert (np.abs((B**2).mean(0) - variance) < 5 * error).all()
    # entries of different pairs are uncorrelated
    assert abs((B[:, 0, 1] * B[:, 2, 3]).mean()) < 5 / DRAWS**0.5
    mirror = (B[:, 0, 1] * B[:, 1, 0]).mean()
    assert abs(mirror - law.symmetric) < 0.1


@every_law
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_key_says_which_matrix(law, dtype):
    with precision(dtype):
        first, again, other = (np.asarray(law.draw(jax.random.key(k), 5)) for k in (0, 0, 1))
    assert first.shape == (5, 5) and first.dtype == dtype
    assert np.array_equal(first, again)
    if law.random:
        assert np.abs(first - other).max() > 0.1
    else:
        assert np.array_equal(first, other)


@every_law
def test_a_batch_of_keys_draws_what_each_key_draws_alone(law):
    keys = jax.random.split(jax.random.key(1), 3)
    with precision("float64"):
        batch = np.asarray(jax.vmap(lambda key: law.draw(key, 4))(keys))
        alone = np.stack([np.asarray(law.draw(key, 4)) for key in keys])
    assert np.allclose(batch, alone, atol=1e-12)


@every_law
def test_as_a_value_matrix_its_spectrum_is_of_order_one_in_every_dimension(law):
    """The root mean square of the singular values of B / scale is one up to 1/d, for every d."""
    for d in (24, 96):
        size = np.linalg.norm(drawn(law, 8, d) / law.value_scale(d), axis=(1, 2)) / d**0.5
        assert np.abs(size - 1).max() < 0.15


@every_law
def test_a_recipe_builds_the_same_matrices(law):
    again = recipe.rebuild(recipe.describe(law))
    assert type(again) is type(law)
    key = jax.random.key(2)
    assert np.array_equal(again.draw(key, 4), law.draw(key, 4))


def test_a_product_of_gaussians_has_heavier_tails_than_a_gaussian():
    """Ginibre is G_1 G_2 / sqrt(d): its entries have kurtosis 3 + 6/d."""
    kurtosis = [
        (B**4).mean() / (B**2).mean() ** 2 for B in (drawn(Ginibre()), drawn(GaussianEntries()))
    ]
    assert abs(kurtosis[0] - (3 + 6 / D)) < 0.15
    assert abs(kurtosis[1] - 3) < 0.05


def test_goe_is_blind_to_rotations_and_wigner_is_not():
    """Rotate by 45 degrees: the new diagonal entry (B_11 + B_22)/2 + B_12 has variance 2 for GOE,
    3/2 for Wigner.
    """
    found = [
        ((B[:, 0, 0] + B[:, 1, 1]) / 2 + B[:, 0, 1]).var() for B in (drawn(GOE()), drawn(Wigner()))
    ]
    assert abs(found[0] - 2.0) < 0.2 and abs(found[1] - 1.5) < 0.15


def test_as_a_value_matrix_it_is_of_order_one():
    """Spectral norms of B / scale at large d: 2 for a symmetric matrix (semicircle), sqrt(27/4) for
    G_1 G_2 / d.
    """
    for law, norm in ((GOE(), 2.0), (Ginibre(), 6.75**0.5)):
        found = np.linalg.norm(drawn(law, 4, 128) / law.value_scale(128), 2, axis=(1, 2))
        assert np.abs(found - norm).max() < 0.15 * norm


def pairs(law, d=5, layers=3):
    with precision("float32"):
        return [
            None if matrix is None else np.asarray(matrix)
            for matrix in law.draw(jax.random.key(3), d, layers)
        ]


@pytest.mark.slow
def test_values():
    B, V = pairs(RandomMatrices())
    assert B.shape == (3, 5, 5) and V is None
    B, V = pairs(RandomMatrices(value=Value.WISHART))
    assert np.allclose(V, np.swapaxes(V, 1, 2), atol=1e-6)
    assert (np.linalg.eigvalsh(V) > -1e-5).all() and np.linalg.eigvalsh(V).max() > 1
    assert abs(np.corrcoef(B.ravel(), V.ravel())[0, 1]) < 0.5
    with precision("float32"):
        traces = jax.vmap(
            lambda key: jnp.trace(RandomMatrices(value=Value.WISHART).draw(key, 5, 1)[1][0])
        )
        assert (
            abs(float(traces(jax.random.split(jax.random.key(0), 2000)).mean()) / 5**1.5 - 1) < 0.02
        )  # E G G^T / sqrt(d) = sqrt(d) I
    _, V = pairs(RandomMatrices(value=Value.GINIBRE), d=200, layers=1)
    assert abs(V.std() * 200**0.5 - 1) < 0.02  # G / sqrt(d): its spectrum fills the unit disc
    assert abs(np.abs(np.linalg.eigvals(V[0])).max() - 1) < 0.15
    for kernel, scale in ((Ginibre(), 5**0.5), (Wigner(), 5**0.5), (GOE(), 6**0.5)):
        B, V = pairs(RandomMatrices(kernel, Value.KERNEL))
        assert np.allclose(V, np.swapaxes(B, 1, 2) / scale, atol=1e-6)
        minus_B, minus_V = pairs(RandomMatrices(kernel, Value.MINUS_KERNEL))
        assert np.array_equal(minus_B, B) and np.array_equal(minus_V, -V)


def test_layers_are_redrawn_and_count_the_periods():
    B, V = pairs(RandomMatrices(value=Value.WISHART))
    for M in (B, V):
        assert all(np.abs(M[i] - M[j]).max() > 0.1 for i in range(3) for j in range(i))
    assert RandomMatrices().layers(30.0) == 1
    assert RandomMatrices(period=0.5).layers(3.0) == 6
    assert RandomMatrices(period=0.5).layers(3.1) == 7
    assert RandomMatrices(period=9.0).layers(3.0) == 1


def test_the_dynamics_gets_the_kernel_that_was_drawn():
    """Logits are beta <x_i, B x_j>, and the k-th matrix acts in the k-th period."""
    law = RandomMatrices(value=Value.KERNEL, period=0.5)
    B, V = pairs(law)
    x = np.random.default_rng(0).normal(size=(4, 5))
    filled = law.fill(Attention(beta=2.0), jnp.asarray(B), jnp.asarray(V))
    for t, k in ((0.0, 0), (0.49, 0), (0.5, 1), (1.2, 2), (7.0, 2)):
        assert np.allclose(filled.logits(t, x, x), 2.0 * x @ B[k] @ x.T, atol=1e-4)
        assert np.allclose(filled.values(t, x), x @ V[k].T, atol=1e-4)
    still = RandomMatrices().fill(Attention(beta=2.0), jnp.asarray(B), None)
    assert np.allclose(still.logits(3.0, x, x), 2.0 * x @ B[0] @ x.T, atol=1e-4) and still.V is None


IDS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])  # (cell, repeat)
SAME = {
    Per.SYSTEM: np.eye(4, dtype=bool),
    Per.CELL: np.kron(np.eye(2, dtype=bool), np.ones((2, 2), dtype=bool)),
    Per.RUN: np.ones((4, 4), dtype=bool),
}


@pytest.mark.parametrize("per", Per, ids=lambda member: member.value)
def test_systems_share_matrices_as_they_say(per):
    law = RandomMatrices(value=Value.WISHART, per=per)
    with precision("float32"):
        B, V = Systems(Attention(), Uniform(4, 3), law, 0, "float32", 1.0, True).matrices_of(IDS)
    for M in (np.asarray(B), np.asarray(V)):
        same = np.array([[np.array_equal(a, b) for b in M] for a in M])
        assert np.array_equal(same, SAME[per])


@pytest.mark.parametrize(
    ("per", "shared"),
    [(Per.SYSTEM, (False, False)), (Per.CELL, (True, False)), (Per.RUN, (True, True))],
    ids=["system", "cell", "run"],
)
def test_an_ensemble_shares_matrices_as_it_says(per, shared):
    """From one start, only matrices can tell systems apart."""
    start = Given(np.random.default_rng(0).normal(size=(4, 3)))
    result = ensemble(
        Attention(beta=1.0),
        start,
        over={"dynamics.beta": [2.0, 2.0]},
        matrices=RandomMatrices(per=per),
        repeats=2,
        t=1,
        frames=2,
        solver=Layer(h=0.1),
        observe=[MeanCosine()],
        keep=True,
    )
    (a, b), (c, _) = result.mean_cosine.values[..., -1]
    assert (abs(a - b) < 1e-6, abs(a - c) < 1e-6) == shared


@pytest.mark.slow
def test_one_system_of_an_ensemble_is_a_simulation_with_its_matrices():
    """Drawn anew each period, in the order in which the ensemble draws them, up to the last time
    (which `times` says).
    """
    law = RandomMatrices(Ginibre(), Value.WISHART, period=0.5)
    start = Given(np.random.default_rng(0).normal(size=(5, 3)), w=[1, 2, 3, 4, 5])
    options = {
        "t": 1.0,
        "times": [0.0, 0.5, 1.0, 1.5, 2.0],
        "solver": Layer(h=0.1),
        "observe": [MeanCosine()],
    }
    with precision("float32"):
        B, V = Systems(Attention(), start, law, 7, "float32", 2.0, True).matrices_of(
            np.array([[0, 0]])
        )
    assert B.shape == (1, 4, 3, 3)
    Q = np.swapaxes(np.asarray(B[0], float), 1, 2)
    ours = ensemble(Attention(beta=2.0), start, matrices=law, repeats=1, seed=7, **options)
    theirs = flock.simulate(
        Attention(2.0, Q=Switching(Q, 0.5), V=Switching(np.asarray(V[0], float), 0.5)),
        start,
        **options,
    )
    assert np.abs(ours.mean_cosine.values - theirs.mean_cosine.values).max() < 1e-5
    frozen = flock.simulate(Attention(2.0, Q=Q[0], V=np.asarray(V[0, 0], float)), start, **options)
    # redrawing matters
    assert np.abs(ours.mean_cosine.values - frozen.mean_cosine.values).max() > 1e-3


def test_random_matrices_are_for_attention():
    with pytest.raises(
        UserError, match=r"dynamics must be a law with matrices Q, K, V, .* got SelfAttention"
    ):
        ensemble(SelfAttention(), Uniform(4, 3), matrices=RandomMatrices(), t=1, frames=2)
    with pytest.raises(UserError, match="period must be positive"):
        RandomMatrices(period=0.0)


@pytest.mark.parametrize("value", Value, ids=lambda member: member.value)
def test_only_the_identity_settles(value):
    """Consensus is not for ever under a general V."""
    options = {"repeats": 1, "t": 0.2, "frames": 2, "solver": Layer(h=0.1)}
    result = ensemble(
        Attention(), Given(np.eye(3)), matrices=RandomMatrices(value=value), **options
    )
    assert json.loads(result.attrs["recipe"])["chosen"]["settling"] == (value is Value.IDENTITY)


def holders():
    """Every law of the catalogue that has matrices, and some around others."""
    examples = [entry.load().example(5, 3) for entry in entries("dynamics")]
    mlp = NeuralODE.example(5, 3)
    around = [
        Noisy(Attention(), kappa=5.0),
        FeedForward(mlp, base=PreNorm()),
        FeedForward(mlp, base=Noisy(MultiHead.example(5, 3))),
        Block(heads=2, mask="causal", norm="pre", feed_forward="tanh"),
    ]
    return [law for law in [*examples, *around] if law.matrices_at is not None]


HOLDERS = holders()
NO_MATRICES = {"SelfAttention", "Unnormalised", "Sinkhorn", "Burger", "Kuramoto", "NeuralODE"}
NO_MATRICES |= {"CausalBias", "Fast", "FeedForward", "Noisy", "Streamed"}


def test_every_law_with_matrices_takes_random_ones():
    without = {
        entry.name
        for entry in entries("dynamics")
        if entry.load().example(5, 3).matrices_at is None
    }
    assert without <= NO_MATRICES and len(HOLDERS) >= 16
    for entry in entries("dynamics"):
        law = entry.load().example(5, 3)
        if entry.name in NO_MATRICES and law.core is law:
            with pytest.raises(UserError, match="must be a law with matrices"):
                law.with_matrices(None, None)


@pytest.mark.slow
@pytest.mark.parametrize("law", HOLDERS, ids=lambda law: type(law).__name__)
def test_random_matrices_enter_where_the_laws_own_matrices_are(law):
    """What is filled in is found by the path that engines use, and changes the force."""
    random = RandomMatrices(Ginibre(), Value.GINIBRE)
    with precision("float32"):
        B, V = random.draw(jax.random.key(0), 3, 1, law.stack)
        filled = random.fill(law, B, V)
        x, w = (
            jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)), jnp.float32),
            jnp.ones(5) / 5,
        )
        x = law.space.project(x)
        holder = follow(filled, law.matrices_at)
        assert np.array_equal(holder.Q, np.swapaxes(B[0], -1, -2)) and np.array_equal(
            holder.V, V[0]
        )
        assert holder.K is None
        assert jnp.abs(filled.force(0.2, x, w) - law.force(0.2, x, w)).max() > 1e-3
        still = random.fill(law, B, None)
        assert bool(jnp.isfinite(still.force(0.2, x, w)).all())


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [
        Block(heads=2, mask="causal", norm="pre", feed_forward="tanh"),
        FeedForward(NeuralODE.example(4, 3), base=MultiHead.example(4, 3)),
    ],
    ids=["block", "feed-forward"],
)
def test_an_ensemble_draws_matrices_for_each_system_and_head(law):
    options = {"repeats": 2, "t": 0.4, "frames": 2, "solver": Layer(h=0.1), "keep": True}
    start = Given(np.random.default_rng(0).normal(size=(4, 3)))
    random = RandomMatrices(Identity(), Value.GINIBRE, period=0.2)
    told = ensemble(law, start, matrices=random, observe=[MeanCosine()], **options)
    a, b = told.mean_cosine.values[..., -1].ravel()
    assert abs(a - b) > 1e-4
    with precision("float32"):
        B, V = Systems(law, start, random, 0, "float32", 0.4, True).matrices_of(np.array([[0, 0]]))
    assert V.shape == (1, 2, 2, 3, 3) and np.array_equal(B[0, 0, 0], np.eye(3))
    paths = [Switching(np.asarray(M[0], float), 0.2) for M in (np.swapaxes(B, -1, -2), V)]
    alone = flock.simulate(
        law.with_matrices(*paths),
        start,
        t=0.4,
        frames=2,
        solver=Layer(h=0.1),
        observe=[MeanCosine()],
    )
    assert abs(float(alone.mean_cosine[-1]) - a) < 1e-5


def test_a_frame_takes_no_values_that_move():
    with pytest.raises(UserError, match="left out for RescaledAttention"):
        RandomMatrices(value=Value.GINIBRE, period=0.5).fill(
            RescaledAttention(), jnp.zeros((2, 3, 3)), jnp.zeros((2, 3, 3))
        )
