"""A system may rest early only where rest is for ever, and each frame of the compiled loop is right
by itself.
"""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest

from tests.laws.test_lanes import LAWS, job, tokens
from tokenflock.dynamics import CausalBias, SelfAttention
from tokenflock.engines import batch, lanes
from tokenflock.observables import InnerProducts, PairDensity
from tokenflock.precision import precision
from tokenflock.solvers import Layer
from tokenflock.starts import Given
from tokenflock.verbs.ensemble import ensemble

DELTA = 0.3
NEAR = Given([[1.0, 0.0], [1.0, 0.02], [1.0, -0.02]])


@pytest.mark.parametrize("betas", [[2.0, -3.0], [-3.0, 2.0]])
def test_every_law_of_a_sweep_must_keep_cones_for_any_system_to_rest(betas):
    """With beta < 0 tokens leave the consensus that they began in, whichever law is named first."""
    options = {
        "over": {"beta": betas},
        "repeats": 1,
        "t": 8,
        "frames": 25,
        "solver": Layer(h=0.1),
        "observe": [PairDensity(delta=0.01)],
        "engine": "batch",
        "keep": True,
    }
    early, whole = (
        ensemble(CausalBias(), NEAR, settle=settle, **options) for settle in (True, False)
    )
    assert json.loads(early.attrs["recipe"])["chosen"]["settling"] is False
    np.testing.assert_array_equal(early.pair_density, whole.pair_density)
    ends = whole.pair_density.values[:, 0, [0, -1]]
    assert ends[betas.index(2.0)].tolist() == [1, 1] and ends[betas.index(-3.0), 1] < 0.9


def gathered(n, d, seed=0):
    """Systems that all begin within a small cap."""
    random = np.random.default_rng(seed)
    x = np.eye(d)[0] + 0.05 * random.normal(size=(20, n, d))
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("name", ["repulsive", "repulsive USA"])
def test_the_compiled_loop_follows_tokens_that_leave_their_consensus(name):
    pytest.importorskip("llvmlite")
    work, x = job(LAWS[name], 5, delta=DELTA), gathered(5, 3)
    found = lanes.run(work, x, [])["pair_density"]
    assert (found[:, 0] == 1).all() and (found[:, -1] < 0.6).all()


def test_the_compiled_loop_does_not_rest_unless_it_may():
    """Under an attraction that turns into a repulsion, by the sign of h, tokens meet and part."""
    pytest.importorskip("llvmlite")
    path = ((1, "h"),)
    work = job(SelfAttention(beta=1.0), 5, path, delta=DELTA, settle=False)
    found = lanes.run(work, gathered(5, 3), [np.full(20, -0.1, np.float32)])["pair_density"]
    assert (found[:, 0] == 1).all() and (found[:, -1] < 0.6).all()


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize(
    ("n", "d"),
    [(7, 2), *(pytest.param(*sides, marks=pytest.mark.slow) for sides in ((7, 6), (12, 3)))],
)
def test_every_frame_of_the_compiled_loop_is_that_of_batch_but_for_pairs_on_the_verge(law, n, d):
    """Frame by frame and system by system, the last frame too: a mean over all of them would hide
    one that is wrong.
    """
    pytest.importorskip("llvmlite")
    work, x = job(law, n, delta=DELTA), tokens(n, d)
    watched = job(law, n, observe=(InnerProducts(),), settle=False)
    with precision("float32"):
        keys = jax.random.split(jax.random.key(0), len(x))
        cosine = batch.run(watched, x, keys, [])["inner_products"]
    i, j = np.tril_indices(n, -1)
    pairs = cosine[:, :, i, j]
    sure = (np.abs(pairs - (1 - DELTA)) > 5e-4).all(axis=-1)
    expected = (pairs >= 1 - DELTA).mean(axis=-1)
    ours = lanes.run(work, x, [])["pair_density"]
    assert sure.mean(axis=0).min() > 0.6 and np.ptp(expected[:, -1]) + np.ptp(expected) > 0.1
    for frame in range(ours.shape[1]):
        np.testing.assert_allclose(
            ours[sure[:, frame], frame], expected[sure[:, frame], frame], atol=1e-5
        )
