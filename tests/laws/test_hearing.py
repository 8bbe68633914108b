"""Attention on a CPU by tiles in the cache of a core gives the sums of its formula; keys made on
the host are those of JAX; logits are called small only where they are.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Attention, Causal, SelfAttention
from tokenflock.engines.job import Job
from tokenflock.engines.keys import keys_of
from tokenflock.engines.native import machine
from tokenflock.engines.native.attending import attend
from tokenflock.engines.native.running import small
from tokenflock.engines.systems import _keys
from tokenflock.observables import MeanCosine
from tokenflock.precision import cast, precision
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Uniform

SIZES = [(1, 1, 1), (7, 3, 9), (64, 16, 16), (70, 5, 33), (210, 8, 8), (257, 24, 17)]  # n, m, e


def given(n, m, e, alike, seed=0):
    """Queries, keys, values and weights of two systems; some weigh nothing where that may be."""
    random = np.random.default_rng(seed)
    q, k, v = (random.normal(size=(2, n, side)) for side in (m, m, e))
    w = random.uniform(0.5, 1.5, size=(2, n))
    if alike:
        q = k = v = q / np.linalg.norm(q, axis=-1, keepdims=True)
    elif n > 3:
        w[:, 3] = 0
    return q, k, v, w / w.sum(axis=1, keepdims=True)


def exact(q, k, v, w, c, shift, divides):
    S = c * np.einsum("sim,sjm->sij", q, k) - shift
    S = np.where(w[:, None] > 0, S, -np.inf)
    A = w[:, None] * np.exp(S - S.max(axis=-1, keepdims=True) if divides else S)
    A = A / A.sum(axis=-1, keepdims=True) if divides else A
    return A @ v, A.sum(axis=-1)


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize(("c", "shift", "divides"), [(4.0, 0.0, True), (3.0, 2.0, False)])
def test_tiles_give_the_sums_of_the_formula(monkeypatch, c, shift, divides, alike, lanes):
    monkeypatch.setattr(machine, "lanes", lambda: lanes)
    for n, m, e in SIZES:
        arrays = given(n, m, e, alike)
        with precision("float32"):
            singles = [jnp.asarray(a, jnp.float32) for a in arrays]
            ours = jax.vmap(lambda *a: attend(*a, c, shift, divides, alike))(*singles)
        for one, true in zip(ours, exact(*arrays, c, shift, divides)):
            np.testing.assert_allclose(one, true, rtol=0, atol=2e-5 * np.abs(true).max())


def test_logits_of_any_size_do_not_overflow():
    """The largest is carried along, also where it lies far below zero."""
    q, k, v, w = given(130, 4, 4, alike=False)
    far = np.concatenate([q, np.ones((2, 130, 1))], axis=-1)
    for offset in (0.0, 900.0, -900.0):
        keys = np.concatenate([20 * k, np.full((2, 130, 1), offset)], axis=-1)
        with precision("float32"):
            singles = [jnp.asarray(a, jnp.float32) for a in (far, keys, v, w)]
            heard, total = jax.vmap(lambda *a: attend(*a, 1.0, 0.0, True, False))(*singles)
        wanted, _ = exact(far, keys, v, w, 1.0, 0.0, True)
        np.testing.assert_allclose(heard, wanted, rtol=0, atol=2e-3 if offset else 1e-4)
        assert (total == 1).all()


def test_many_tokens_on_a_cpu_go_by_tiles():
    options = {"repeats": 3, "t": 0.5, "frames": 2, "observe": [MeanCosine()]}
    options |= {"solver": Layer(h=0.1), "keep": True}
    start = Uniform(n=80, d=12)
    ours, theirs = (
        flock.ensemble(SelfAttention(beta=3.0), start, engine=engine, **options)
        for engine in ("auto", "batch")
    )
    assert ours.attrs["engine"].startswith("tiled")
    np.testing.assert_allclose(ours.mean_cosine, theirs.mean_cosine, rtol=0, atol=2e-7)


@pytest.mark.parametrize("seed", [0, 7, 2**31 + 5, 2**32 - 1])
def test_keys_on_the_host_are_those_of_jax(seed):
    ids = np.array([[0, 0], [1, 5], [44, 1023], [7, 2**31]])
    with precision("float32"):
        for purpose in (0, 1):
            wanted = jax.random.key_data(_keys(seed, jnp.asarray(ids, jnp.uint32), purpose))
            assert np.array_equal(keys_of(seed, ids, purpose), wanted)


def test_logits_are_small_only_where_that_is_known():
    def ask(law, swept=None, w=None):
        paths = () if swept is None else ((0, "beta"),)
        with precision("float32"):
            law = cast(law, "float32")
            weights = np.full(4, 0.25) if w is None else w
            job = Job(law, RK4(h=0.1), (MeanCosine(),), weights, np.arange(2), paths, "float32", 0)
        return small(job, None if swept is None else [np.asarray(swept)])

    assert ask(SelfAttention(beta=4.0)) and ask(SelfAttention(beta=-4.0)) and ask(Causal(beta=4.0))
    assert ask(SelfAttention(), [1.0, 9.0]) and not ask(SelfAttention(), [1.0, 90.0])
    assert not ask(SelfAttention(beta=90.0)) and not ask(SelfAttention(beta=-90.0))
    assert not ask(Attention(beta=1.0, Q=[[50.0, 0.0], [0.0, 50.0]]))
    assert not ask(SelfAttention(beta=4.0), w=np.array([0.5, 0.5, 0.0, 0.0]))
