"""The idealised models beside the real one, computed once more in plain NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.probing.made import ACTIVATIONS, D, Made, after, fed, layer, tokens, weighted
from tokenflock.probing import follow
from tokenflock.probing.following import SYSTEMS, _idealised, _run

KINDS = {
    "post": [layer(1, activation="tanh"), layer(2, activation="tanh")],
    "pre": [
        layer(3, pre=True, causal=True, activation="silu"),
        layer(4, pre=True, causal=True, activation="silu"),
    ],
}


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def on_sphere(one, u, w, R, feeds):
    """The layer on directions u of tokens of length R.

    post: attention reads R u, what it adds is in units of R; the feed-forward part reads tokens of
    the length that the first norm gives. pre: each part reads sqrt(d) gain u, and adds 1/R of what
    it says.
    """
    if one.pre:
        first, second = np.sqrt(D) * one.first.gain, np.sqrt(D) * one.second.gain
        read, say, inner, out = u * first, 1 / R, second, R
    else:
        inner = out = np.sqrt((one.first.gain**2).sum() + (one.first.shift**2).sum())
        read, say = R * u, 1 / R
    logits = [one.scale * (read @ Q.T) @ (read @ K.T).T for Q, K in zip(one.Q, one.K)]
    heads = zip(logits, one.V, one.O)
    u = unit(u + say * sum(weighted(S, w, one.causal) @ read @ V.T @ O.T for S, V, O in heads))
    if not feeds:
        return u
    return unit(u + ACTIVATIONS[one.activation]((u * inner) @ one.A.T + one.a) @ one.W.T / out)


def expected(name, layers, x, w):
    """The tokens of a system, layer by layer, from the embeddings of the model."""
    sphere = name in ("attention", "feed-forward")
    states = [unit(x[0]) if sphere else x[0]]
    for k, one in enumerate(layers):
        R = w @ np.linalg.norm(x[k], axis=-1)
        if sphere:
            states.append(on_sphere(one, states[-1], w, R, name == "feed-forward"))
        else:
            kept = one if name == "everything" else one.without_biases()
            states.append(after(kept, states[-1], w))
    return np.stack(states)


@pytest.mark.parametrize("kind", KINDS)
def test_every_system_is_its_formula(kind):
    layers, n = KINDS[kind], 5
    w = np.array([0.25, 0.25, 0.25, 0.25, 0.0], np.float32)
    x = np.stack([(k + 2) * tokens(n, seed=k) for k in range(3)]).astype(np.float32)
    for name in SYSTEMS[1:]:
        found = _run(name, layers, x, w)
        np.testing.assert_allclose(
            found, expected(name, layers, x.astype(float), w), rtol=2e-4, atol=2e-4, err_msg=name
        )
        assert found.dtype == np.float32


def test_the_idealised_feed_forward_part_has_the_activation_of_the_layer():
    for name, function in ACTIVATIONS.items():
        one = layer(5, activation=name)
        _, mlp = _idealised(one, 3.0)
        u, inner = unit(tokens(4)), one.first.radius
        said = (fed(one, inner * u) - one.b) / inner
        np.testing.assert_allclose(mlp.perceptron(u), said, atol=1e-4, err_msg=name)
        assert function(0.0) == 0


def test_a_model_beside_its_idealisations():
    """Prompts of two lengths, one cut to six tokens; only tokens that are there are measured."""
    model, words, told = Made(KINDS["pre"], depth=3), ["abcd", "dcabfe"], []
    found = follow(model, ["abcd", "dcabfeaa"], length=6, progress=told.append)
    assert told == [0.5, 1.0] and found.system.values.tolist() == list(SYSTEMS)
    assert found.layer.values.tolist() == [0, 1, 2, 3] and found.prompt.values.tolist() == [0, 1]
    assert found.sizes["bin"] == 100
    assert found.attrs["model"] == "made" and "made" in found.attrs["title"]
    recipe = json.loads(found.attrs["recipe"])
    assert recipe["verb"] == "follow" and recipe["depth"] == 3 and recipe["model"] == "made"
    layers = [*KINDS["pre"], KINDS["pre"][0]]
    width = 2 / 100
    for p, word in enumerate(words):
        n = len(word)
        real = run_of(model, word)
        for name in SYSTEMS:
            there = found.sel(system=name).isel(prompt=p)
            x = real if name == "model" else expected(name, layers, real, np.full(n, 1 / n))
            np.testing.assert_allclose(there.mean_cosine, mean_cosine(x), atol=2e-3, err_msg=name)
            alike = (unit(x) * unit(real)).sum(-1).mean(-1)
            np.testing.assert_allclose(there.alignment, alike, atol=2e-3, err_msg=name)
            far = [wasserstein(pairs(a), pairs(b)) for a, b in zip(x, real)]
            np.testing.assert_allclose(there.histogram_distance, far, atol=2 * width, err_msg=name)
    assert float(found.histogram_distance.max()) > 10 * width
    assert float(abs(found.histogram_distance.sel(system="model")).max()) == 0
    assert "x" not in found and "w" not in found


def run_of(model, word):
    from tokenflock.probing import Recording, Text

    prompt = model.encode(Text(word), 9)
    return model.record([prompt], len(word), Recording()).x[0]


def pairs(x):
    u = unit(x)
    return (u @ u.T)[~np.eye(len(u), dtype=bool)]


def mean_cosine(x):
    return [pairs(one).mean() for one in x]


def wasserstein(a, b):
    return np.abs(np.sort(a) - np.sort(b)).mean()
