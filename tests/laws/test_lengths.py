"""Tokens given as an array are those that run: none is brought to the sphere without a word."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tests.laws.specimens import LAWS, NAMES, tokens
from tokenflock.dynamics import SelfAttention
from tokenflock.dynamics.dynamics import Dynamics, MeanField
from tokenflock.spaces import Euclidean, Sphere
from tokenflock.starts import Given


class OwnMean(MeanField):
    """A law of the user's, with the space that laws have unless they say otherwise."""

    def field(self, t, q, x, w):
        return (w * (1 + q @ x.T)) @ x


class OwnForce(Dynamics):
    def force(self, t, x, w):
        return jnp.broadcast_to(w @ x, x.shape)


class OwnFree(OwnMean):
    @property
    def space(self):
        return Euclidean()


OWN = [OwnMean(), OwnForce(), OwnFree()]
ALL = list(zip([*NAMES, "own-mean", "own-force", "own-free"], [*LAWS, *OWN]))


def first(verb, law, x):
    """The tokens with which a run of this verb begins."""
    solver = flock.solvers.EulerMaruyama(h=0.01) if law.noisy else flock.solvers.Layer(h=0.01)
    options = {"t": 0.01, "frames": 2, "solver": solver}
    if verb == "simulate":
        return flock.simulate(law, x, **options).x.values[0]
    run = flock.ensemble(law, x, repeats=1, observe=[flock.observables.Radius()], **options)
    return run.radius.values[..., 0]


@pytest.mark.parametrize("verb", ["simulate", "ensemble"])
@pytest.mark.parametrize(("name", "law"), ALL, ids=[name for name, _ in ALL])
def test_arrays_are_unit_vectors_on_the_sphere(verb, name, law):
    x = np.asarray(tokens(law)[0], dtype=np.float64)
    if isinstance(law.space, Sphere):
        wrong = x.copy()
        wrong[1] *= 1.01
        with pytest.raises(flock.UserError, match=r"start must be rows of length 1 .*Given\(x\)"):
            first(verb, law, wrong)
        first(verb, law, x.astype(np.float16))  # whose rounding is no mistake
    else:
        seen = first(verb, law, 3 * x)
        assert verb == "ensemble" or np.allclose(seen, 3 * x, rtol=1e-6)


@pytest.mark.parametrize("law", [SelfAttention(), OwnMean(), OwnForce()])
def test_given_divides_by_lengths_as_it_says(law):
    x = np.array([[3.0, 4.0], [0.0, 0.5]])
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(
        first("simulate", law, Given(x)), first("simulate", law, unit), atol=1e-7
    )
