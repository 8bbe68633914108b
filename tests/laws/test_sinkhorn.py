"""Doubly stochastic weights are doubly stochastic, or the run says that they are not."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import tokenflock as flock
from tokenflock import recipe
from tokenflock.dynamics import Block, Sinkhorn
from tokenflock.errors import SimulationError
from tokenflock.observables import MeanCosine, PairDensity
from tokenflock.parts import GivenHeads, SinkhornWeighing, WindowMask
from tokenflock.parts.weighing import Logits
from tokenflock.precision import cast, precision
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

SLOW = {"attention": SinkhornWeighing(rounds=60), "beta": 9.0}


def system(n, d, scale=1.0, seed=0):
    """Tokens on the sphere, unequal weights, and a head of general queries and keys."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d))
    w = random.uniform(0.5, 1.5, size=n)
    Q, K = scale * random.normal(size=(2, d, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True), w / w.sum(), GivenHeads(Q=Q, K=K)


def attention(law, x, w, dtype="float64"):
    with precision(dtype):
        law, x, w = cast((law, jnp.asarray(x), jnp.asarray(w)), dtype)
        return np.asarray(law.attention_matrix(jnp.zeros((), dtype), x, w))


@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-12), ("float32", 1e-4)])
@pytest.mark.parametrize(("d", "scale", "beta"), [(3, 1.0, 9.0), (8, 1.0, 1.0), (64, 1 / 8, 9.0)])
def test_rows_and_columns_have_their_sums_for_general_queries_and_keys(
    d, scale, beta, dtype, error
):
    x, w, heads = system(32, d, scale)
    A = attention(Block(heads, attention="sinkhorn", beta=beta), x, w, dtype)
    assert np.abs(A.sum(axis=1) - 1).max() < error and np.abs(w @ A / w - 1).max() < error


@pytest.mark.parametrize("beta", [1e-3, 1.0, 100.0, 1e4])
def test_with_the_identity_the_law_and_its_block_have_their_sums(beta):
    """The logits have no negative eigenvalue, so 60 halvings leave rounding, near clusters too."""
    x, w, _ = system(32, 3)
    for tokens in (x, np.vstack([x[:1] + 1e-3 * x[:16], -x[:1] + 1e-3 * x[16:]])):
        tokens = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
        for law in (Sinkhorn(beta), Sinkhorn(beta).as_block()):
            A = attention(law, tokens, w)
            assert np.abs(w @ A / w - 1).max() < 1e-13 * max(10, beta)


def test_weights_that_are_not_found_are_no_numbers():
    x, w, heads = system(32, 3)
    assert np.isnan(attention(Block(heads, **SLOW), x, w)).all()
    assert np.isnan(attention(Block(heads, **SLOW), x, w, "float32")).all()
    # below the diagonal only the identity is doubly stochastic, which is reached like 1 / rounds
    logits = Logits(jnp.zeros((4, 4)), None, jnp.tri(4) > 0, jnp.ones(()))
    assert np.isnan(SinkhornWeighing().weigh(logits, jnp.full(4, 0.25))).all()


@pytest.mark.parametrize(
    "run",
    [
        lambda law, start: flock.simulate(law, start, t=1, solver=Layer(h=0.1)),
        lambda law, start: flock.simulate(law, start, t=1),
        lambda law, start: flock.ensemble(law, start, t=1, repeats=2, observe=[MeanCosine()]),
        lambda law, start: flock.ensemble(
            law, start, t=1, repeats=2, observe=[PairDensity(delta=0.1)]
        ),
        lambda law, start: flock.lyapunov(law, start, t=1, solver=Layer(h=0.1)),
        lambda law, start: flock.jacobian(law, start),
        lambda law, start: flock.spectrum(law, start),
    ],
    ids=["layers", "flow", "means", "counts", "lyapunov", "jacobian", "spectrum"],
)
def test_a_run_whose_weights_are_not_found_names_the_remedy(run):
    _, _, heads = system(12, 3)
    with pytest.raises(SimulationError, match="more rounds of Sinkhorn"):
        run(Block(heads, **SLOW), Uniform(n=12, d=3))


def test_a_saved_number_of_rounds_is_kept():
    again = recipe.rebuild(recipe.describe(Block(attention=SinkhornWeighing(rounds=60))))
    assert again.attention == SinkhornWeighing(rounds=60)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("mask", ["none", WindowMask(2, past=False)], ids=["none", "window"])
def test_derivatives_are_those_of_the_solution(mask):
    """Forward and reverse, and with respect to weights and beta; against differences."""
    x, w, heads = system(6, 3)
    law = cast(Block(heads, mask=mask, attention="sinkhorn"), "float64")

    def velocity(x, w, beta):
        return dataclasses.replace(law, beta=beta).velocity(0.0, x, w)

    given = jnp.asarray(x), jnp.asarray(w), jnp.asarray(1.5)
    check_grads(velocity, given, order=1, modes=("fwd", "rev"), atol=1e-6, rtol=1e-6, eps=1e-5)
    forward, reverse = jax.jacfwd(velocity)(*given), jax.jacrev(velocity)(*given)
    np.testing.assert_allclose(forward, reverse, atol=1e-11)
