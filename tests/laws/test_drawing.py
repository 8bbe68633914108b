"""Which numbers a system of an ensemble gets: by seed, purpose, cell and repeat, on every machine,
turned or not.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tokenflock.dynamics import Attention, SelfAttention
from tokenflock.engines import keys, peaks, systems
from tokenflock.engines.job import Job
from tokenflock.engines.rotation import _by_cholesky, _by_qr
from tokenflock.engines.systems import Systems
from tokenflock.matrices import Per, RandomMatrices, Value
from tokenflock.observables import MeanCosine
from tokenflock.solvers import RK4
from tokenflock.spaces.sphere import normalise
from tokenflock.starts import Given, Uniform
from tokenflock.starts.start import Start

IDS = np.array([[0, 0], [0, 3], [2, 1]])
SEED = 7


def made(start, matrices=None, dtype="float32", law=None, t=1.0):
    return Systems(law or SelfAttention(), start, matrices, SEED, dtype, t, True)


def key_of(purpose, cell, repeat):
    """The definition: each number is folded into the key in turn."""
    key = jax.random.key(SEED)
    for word in (purpose, cell, repeat):
        key = jax.random.fold_in(key, word)
    return key


def gram(x):
    x = np.asarray(x, float)
    return x @ np.swapaxes(x, -1, -2)


def test_tokens_come_from_purpose_zero_and_noise_from_one():
    start = Uniform(4, 3)
    x, noise = made(start).draw(IDS, False)
    wanted = [start.draw(key_of(0, *pair)) for pair in IDS]
    np.testing.assert_allclose(x, wanted, atol=1e-6)
    assert x.dtype == np.float32
    data = [jax.random.key_data(key_of(1, *pair)) for pair in IDS]
    np.testing.assert_array_equal(jax.random.key_data(noise), data)


class Spanning(Start):
    """Three tokens in a space of the first coordinates, whose others follow from these."""

    d: int = 7

    @property
    def shape(self):
        return 3, self.d

    @property
    def spans(self):
        return self.d >= 6

    def in_span(self, key):
        return normalise(jax.random.normal(key, (3, 3)))

    def draw(self, key):
        return self.in_span(key) @ np.linalg.qr(np.vander(np.arange(1.0, self.d + 1), 3))[0].T


def test_a_gpu_draws_the_same(monkeypatch):
    here = [made(Spanning()).drawn(IDS, in_span) for in_span in (False, True)]
    monkeypatch.setattr(systems, "threefry", lambda: False)
    there = [made(Spanning()).drawn(IDS, in_span) for in_span in (False, True)]
    for (x, noise), (y, other) in zip(here, there):
        np.testing.assert_allclose(x, y, atol=1e-6)
        np.testing.assert_array_equal(jax.random.key_data(noise), jax.random.key_data(other))
    assert [x.shape for x, _ in here] == [(3, 3, 7), (3, 3, 3)]


def test_keys_of_another_kind_are_left_to_jax():
    assert keys.threefry()
    with jax.default_prng_impl("rbg"):
        assert not keys.threefry()
        x, noise = made(Uniform(3, 2)).draw(IDS, False)
        assert jax.random.key_data(noise).shape == (3, 4) and np.isfinite(x).all()


@pytest.mark.parametrize("d", [4, 7], ids=["turned after", "drawn in its span"])
def test_turned_tokens_have_the_cosines_of_those_that_are_not(d):
    """Three tokens in few dimensions are turned; in many they are drawn where they end."""
    plain, _ = made(Spanning(d)).draw(IDS, False)
    turned, _ = made(Spanning(d)).draw(IDS, True)
    assert plain.shape == (3, 3, d) and turned.shape == (3, 3, 3)
    np.testing.assert_allclose(gram(turned), gram(plain), atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(plain, axis=-1), 1, atol=1e-6)


def test_either_way_of_turning_keeps_all_inner_products():
    x = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.float32)
    for turned in (_by_cholesky(x), _by_qr(x)):
        assert turned.shape == (2, 3, 3)
        np.testing.assert_allclose(gram(turned), gram(x), rtol=1e-5, atol=1e-5)
        assert np.abs(np.triu(np.asarray(turned), 1)).max() < 1e-6, "the first token has one number"


def test_given_tokens_keep_all_their_digits():
    """And are brought to the sphere, whatever their length."""
    x = np.array([[3.0, 4.0], [1.0, 1e-9]])
    drawn, _ = made(Given(x), dtype="float32").drawn(IDS)
    assert drawn.shape == (3, 2, 2) and drawn.dtype == np.float64
    ratio = np.asarray(drawn)[:, 1, 1] / np.asarray(drawn)[:, 1, 0]
    np.testing.assert_allclose(ratio, 1e-9, rtol=1e-12)
    unit, _ = made(Given(x)).draw(IDS, False)
    np.testing.assert_allclose(unit[:, 0], [[0.6, 0.8]] * 3, rtol=1e-6)


@pytest.mark.parametrize("per", Per, ids=lambda one: one.value)
def test_matrices_come_from_purpose_two_of_those_that_share_them(per):
    law = RandomMatrices(value=Value.GINIBRE, per=per, period=0.4)
    B, V = made(Uniform(2, 3), law, law=Attention()).matrices_of(IDS)
    assert B.shape == V.shape == (3, 3, 3, 3)
    for k, (cell, repeat) in enumerate(IDS):
        who = {Per.SYSTEM: (cell, repeat), Per.CELL: (cell, 0), Per.RUN: (0, 0)}[per]
        wanted = law.draw(key_of(2, *who), 3, 3)
        np.testing.assert_allclose(B[k], wanted[0], atol=1e-5)
        np.testing.assert_allclose(V[k], wanted[1], atol=1e-5)


def test_systems_without_matrices_say_so():
    with pytest.raises(ValueError, match="no random matrices"):
        made(Uniform(2, 3)).matrices_of(IDS)


def test_the_betas_of_a_job_are_those_of_its_law():
    paths = ((1, "h"), (0, "base", "beta"), (2, 0, "beta"), (0, "beta"), (0, "beta", "kappa"))
    swept = [1.0, 2.0, 3.0, 4.0, 5.0]
    law, w, steps = SelfAttention(beta=6.0), np.full(3, 1 / 3), np.arange(2)

    def job(paths):
        return Job(law, RK4(h=0.1), (MeanCosine(),), w, steps, paths, "float32", True)

    assert peaks.betas(job(paths), swept) == [2.0, 4.0]
    assert peaks.betas(job(paths[:1]), swept[:1]) == [6.0]
    assert peaks.peaked(job(paths), swept) and not peaks.peaked(job(paths), [1.0, 2.0, 3.0, -4.0])
    assert peaks.peaked(job(()), [])
    assert not peaks.is_peaked(law, [2.0, -1.0], w) and not peaks.is_peaked(law, [-1.0], w)
    assert peaks.is_peaked(law, [0.0], w) and peaks.is_peaked(law, [0.5], w)
