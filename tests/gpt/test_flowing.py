"""A shared layer as a flow, and tokens watched on their way: against the formula in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tokenflock as flock
from tests.gpt.formula import stream
from tests.gpt.made import SMALL, TOKENS, made
from tokenflock.errors import UserError
from tokenflock.gpt import Shape, Watcher, refine
from tokenflock.gpt.flowing import extend
from tokenflock.gpt.watching import followed
from tokenflock.observables import MeanCosine

pytestmark = pytest.mark.usefixtures("double", "quick_compilation")

SHARED = Shape(**SMALL, shared=True)


def logs(logits):
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def compared(model, settings):
    """Distance to the last of some runs, divergence from the first, and loss, of (depth, h)."""
    runs = [stream(model, TOKENS, depth, h) for depth, h in settings]
    finest, trained = runs[-1][0][-1], logs(runs[0][1])
    rows = []
    for states, logits in runs:
        apart = np.linalg.norm(states[-1] - finest, axis=-1) / np.linalg.norm(finest, axis=-1)
        divergence = (np.exp(trained) * (trained - logs(logits))).sum(axis=-1)
        chosen = np.take_along_axis(logs(logits)[:, :-1], TOKENS[:, 1:, None], axis=2)
        rows.append((apart.mean(), divergence.mean(), -chosen.mean()))
    return np.transpose(rows)


def test_finer_steps_are_those_of_the_flow_to_the_same_time():
    """x_{l+1} = x_l + F(x_l) / k for l < L k, whatever the order of the factors."""
    model = made(SHARED)
    found = refine(model, TOKENS, factors=(4, 1, 2, 2))
    assert found.factor.values.tolist() == [1, 2, 4]
    assert found.depth.values.tolist() == [2, 4, 8]
    assert found.h.values.tolist() == [1, 1 / 2, 1 / 4]
    expected = compared(model, [(2, 1.0), (4, 1 / 2), (8, 1 / 4)])
    for name, values in zip(("distance", "divergence", "loss"), expected, strict=True):
        np.testing.assert_allclose(found[name], values, rtol=1e-8, atol=1e-10)
        assert found[name].dims == ("factor",)
    assert (np.diff(found.distance.values) < 0).all() and found.divergence.values[1] > 1e-3


def test_predictions_are_compared_to_those_of_the_trained_step_also_where_it_is_not_asked_for():
    model = made(SHARED)
    whole, part = refine(model, TOKENS, factors=(1, 2, 4)), refine(model, TOKENS, factors=(2, 4))
    assert part.factor.values.tolist() == [2, 4]
    for name in part:
        np.testing.assert_array_equal(part[name], whole[name][1:])


def test_past_its_depth_the_layer_goes_on_with_whole_steps():
    model = made(SHARED, seed=1)
    found = extend(model, TOKENS)
    assert found.factor.values.tolist() == [1, 2, 4]
    assert found.depth.values.tolist() == [2, 4, 8] and found.h.values.tolist() == [1, 1, 1]
    _, divergence, loss = compared(model, [(2, 1.0), (4, 1.0), (8, 1.0)])
    assert set(found.data_vars) == {"divergence", "loss"}
    np.testing.assert_allclose(found.divergence, divergence, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.loss, loss, rtol=1e-8)


def test_layers_that_are_no_flow_are_refused():
    for shape in (Shape(**SMALL), Shape(**SMALL, rung="bigram")):
        for way in (refine, extend):
            with pytest.raises(UserError, match="weights of their own"):
                way(made(shape), TOKENS)
    with pytest.raises(UserError, match="no small step of a flow"):
        refine(made(Shape(**SMALL, shared=True, norm="post")), TOKENS)
    for factors in ((), (0, 1), (-2,)):
        with pytest.raises(UserError, match="factors must be 1 or more"):
            refine(made(SHARED), TOKENS, factors=factors)


def cosines(x):
    """The mean over pairs of different tokens, of (..., token, width)."""
    u = x / np.linalg.norm(x, axis=-1, keepdims=True)
    n = u.shape[-2]
    return (np.linalg.norm(u.sum(axis=-2), axis=-1) ** 2 - n) / (n * (n - 1))


def test_tokens_are_followed_layer_by_layer_to_any_depth():
    model = made(SHARED)
    found = followed(model, TOKENS, depth=3, observe=[MeanCosine()])
    x = stream(model, TOKENS, 3)[0].transpose(1, 0, 2, 3)
    assert found.x.dims == ("prompt", "layer", "token", "coord")
    np.testing.assert_allclose(found.x, x, rtol=1e-8, atol=1e-10)
    assert found.layer.values.tolist() == [0, 1, 2, 3]
    assert list(found.data_vars) == ["x", "mean_cosine"]
    np.testing.assert_allclose(found.mean_cosine, cosines(x), rtol=1e-8)


def test_only_a_gpt_is_passed_again():
    with pytest.raises(UserError, match="only the rung gpt"):
        followed(made(Shape(**SMALL, rung="head")), TOKENS, depth=2)


def test_a_table_of_pairs_moves_no_token():
    model = made(Shape(**SMALL, rung="bigram"))
    np.testing.assert_allclose(model.states(TOKENS), model.table[TOKENS][None], rtol=1e-12)


def test_what_is_watched_grows_by_steps_and_forgets_those_that_are_done_again(tmp_path):
    """As after a training that was killed: what the file says of later steps goes."""
    models = {step: made(Shape(**SMALL, rung="bigram"), seed=step) for step in (0, 3, 4, 9)}
    watcher = Watcher(tmp_path / "new" / "run", TOKENS, frozenset({0, 3}))
    for step in (0, 4, 9, 3, 4):
        watcher.look(models[step], step)
    watched = flock.load(tmp_path / "new" / "run" / "watch.nc")
    assert watched.step.values.tolist() == [0, 3, 4]
    assert set(watched.data_vars) == {"mean_cosine", "cluster_count", "effective_rank", "energies"}
    assert watched.mean_cosine.dims == ("step", "prompt", "layer")
    assert watched.energies.dims == ("step", "prompt", "layer", "beta")
    for step in (0, 3, 4):
        x = models[step].table[TOKENS]
        found = watched.sel(step=step)
        np.testing.assert_allclose(found.mean_cosine[:, 0], cosines(x), rtol=1e-6)
        u = x / np.linalg.norm(x, axis=-1, keepdims=True)
        energy = np.exp(4 * (u @ u.transpose(0, 2, 1) - 1)).mean(axis=(1, 2))
        np.testing.assert_allclose(found.energies.sel(beta=4.0)[:, 0], energy, rtol=1e-6)
