"""Properties with drawn n, d, beta and matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from tokenflock.dynamics import Attention, Burger, Causal, SelfAttention, Sinkhorn, Unnormalised
from tokenflock.observables import ClusterCount, ConeMargin, PairDensity
from tokenflock.precision import precision
from tokenflock.solvers import RK4
from tokenflock.spaces.sphere import normalise

settings.register_profile("tokenflock", max_examples=25, deadline=None, derandomize=True)
settings.load_profile("tokenflock")

seeds = st.integers(0, 2**31 - 1)
betas = st.floats(0, 50)
SIZES = [(1, 2), (2, 2), (5, 2), (4, 3), (3, 6)]  # a few shapes only: JAX compiles each once


def system(seed: int, shape: tuple[int, int]):
    random = np.random.default_rng(seed)
    w = random.uniform(0.1, 1, size=shape[0])
    return random, normalise(jnp.asarray(random.normal(size=shape))), jnp.asarray(w / w.sum())


@given(seeds, st.sampled_from(SIZES), betas, st.booleans())
def test_self_attention_commutes_with_permutations_and_rotations(seed, shape, beta, repulsive):
    with precision("float64"):
        random, x, w = system(seed, shape)
        law = SelfAttention(beta=beta, repulsive=repulsive)
        order, U = random.permutation(shape[0]), ortho_group.rvs(shape[1], random_state=seed)
        v = law.velocity(0.0, x, w)
        assert np.allclose(
            law.velocity(0.0, x[order] @ U.T, w[order]), (v @ U.T)[order], atol=1e-11 * (1 + beta)
        )


@pytest.mark.slow
@given(seeds, st.sampled_from(SIZES), st.floats(0, 8))
def test_dissipation_is_the_metric_norm_of_the_velocity(seed, shape, beta):
    with precision("float64"):
        random, x, w = system(seed, shape)
        D = random.normal(size=(shape[1], shape[1]))
        for law in (
            SelfAttention(beta=beta),
            Unnormalised(beta=beta, repulsive=True),
            Burger(D=D + D.T),
            Sinkhorn(beta=beta + 0.1),
        ):
            v = law.velocity(0.0, x, w)
            _, rate = jax.jvp(lambda x, law=law: law.energy(x, w), (x,), (v,))
            expected = (1 if law.ascends else -1) * jnp.sum(
                law.metric(x, w) * jnp.sum(v * v, axis=-1)
            )
            scale = 1 + abs(float(law.energy(x, w)))
            assert abs(float(rate - expected)) <= 1e-8 * max(abs(float(expected)), scale * 1e-4)


@pytest.mark.slow
@given(seeds, st.sampled_from(SIZES), st.floats(0, 10), st.booleans())
def test_tokens_in_a_cone_never_leave_it(seed, shape, beta, causal):
    """Lemma 6.4: with V = I and any Q, K, min_i <x_i, w> does not decrease once it is positive."""
    with precision("float64"):
        random, x, w = system(seed, shape)
        x = x.at[:, -1].set(jnp.abs(x[:, -1]) + 1e-3)
        x = normalise(x)
        Q, K = random.normal(size=(2, shape[1], shape[1]))
        law = (Causal if causal else Attention)(beta=beta, Q=Q, K=K)
        solver, margins = RK4(h=0.02), []
        for k in range(6):
            margins.append(float(ConeMargin().measure(x, w)))
            x = solver.step(law, 0.02 * k, x, w, jax.random.key(0))
        assert np.diff(margins).min() > -1e-9


@pytest.mark.slow
@given(seeds, st.integers(2, 12), st.floats(1e-3, 0.5))
def test_clusters_do_not_depend_on_the_order_of_tokens(seed, k, delta):
    with precision("float64"):
        random = np.random.default_rng(seed)
        angles = random.uniform(0, 2 * np.pi, size=16)
        angles[8:] = angles[:8] + random.normal(size=8) * 0.1 / k
        x = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)
        w, order = jnp.full(16, 1 / 16), random.permutation(16)
        assert int(ClusterCount(delta).measure(x, w)) == int(
            ClusterCount(delta).measure(x[order], w)
        )
        # on the circle, components are arcs: the gaps wider than the threshold count them
        gaps = np.diff(
            np.sort(
                np.concatenate([angles % (2 * np.pi), [np.min(angles % (2 * np.pi)) + 2 * np.pi]])
            )
        )
        wide = int(np.sum(np.cos(np.minimum(gaps, np.pi)) < 1 - delta))
        assert int(ClusterCount(delta).measure(x, w)) == max(wide, 1)


@given(seeds, st.floats(1e-3, 1.0))
def test_pair_density_is_the_share_of_close_pairs(seed, delta):
    with precision("float64"):
        _, x, _ = system(seed, (7, 2))
        w = jnp.full(7, 1 / 7)
        G = np.asarray(x @ x.T)
        close = sum(G[i, j] >= 1 - delta for i in range(7) for j in range(7) if i != j)
        assert np.isclose(float(PairDensity(delta).measure(x, w)), close / 42)
