"""Contracts that every law of motion keeps, because it exists."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ortho_group

from tests.laws.specimens import LAWS, NAMES, N, tokens
from tokenflock import recipe
from tokenflock.dynamics import Attention, GradientFlow, MeanField, SelfAttention
from tokenflock.engines.coalescing import slow_velocity
from tokenflock.precision import cast, precision
from tokenflock.solvers import RK4, Euler, Heun, Layer
from tokenflock.verbs.cite import bibliography

every_law = pytest.mark.parametrize("law", LAWS, ids=NAMES)
flows = pytest.mark.parametrize(
    "law",
    [law for law in LAWS if isinstance(law, GradientFlow)],
    ids=[n for n, law in zip(NAMES, LAWS) if isinstance(law, GradientFlow)],
)
T = 0.3
pytestmark = pytest.mark.usefixtures("double")


def close(a, b, tolerance=1e-12):
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance))


@every_law
def test_permuting_tokens_permutes_velocities_exactly_where_declared(law):
    x, w = tokens(law)
    order = np.array([3, 0, 5, 1, 4, 2])
    permuted = law.velocity(T, x[order], w[order])
    assert close(permuted, law.velocity(T, x, w)[order]) == law.exchangeable


@every_law
def test_rotating_and_reflecting_tokens_turns_velocities_exactly_where_declared(law):
    x, w = tokens(law)
    U = ortho_group.rvs(x.shape[1], random_state=1)
    # a reflection: the circle's rotations alone would not see a sense of turning
    U[0] *= -np.sign(np.linalg.det(U))
    assert close(law.velocity(T, x @ U.T, w), law.velocity(T, x, w) @ U.T) == law.isotropic


@every_law
def test_splitting_every_token_in_two_changes_nothing_exactly_where_exchangeable(law):
    if law.particles is not None:
        pytest.skip("its parameters fix the number of tokens")
    x, w = tokens(law)
    split = law.velocity(T, jnp.concatenate([x, x]), jnp.concatenate([w, w]) / 2)
    assert close(split[:N], law.velocity(T, x, w)) is True or not law.exchangeable
    assert close(split[N:], law.velocity(T, x, w)) == law.exchangeable


@every_law
def test_tokens_of_weight_zero_are_not_felt(law):
    if law.particles is not None:
        pytest.skip("its parameters fix the number of tokens")
    x, w = tokens(law)
    strangers, _ = tokens(law, seed=9, n=3)
    padded = law.velocity(T, jnp.concatenate([x, strangers]), jnp.concatenate([w, jnp.zeros(3)]))
    assert close(padded[:N], law.velocity(T, x, w))
    assert bool(jnp.isfinite(padded).all())


@every_law
def test_a_batch_of_systems_moves_as_each_system_alone(law):
    pairs = [tokens(law, seed) for seed in range(3)]
    x, w = (jnp.stack(parts) for parts in zip(*pairs))
    batched = jax.vmap(law.velocity, (None, 0, 0))(T, x, w)
    looped = jnp.stack([law.velocity(T, *pair) for pair in pairs])
    assert close(batched, looped)


@every_law
def test_velocity_is_tangent_and_the_input_untouched(law):
    x, w = tokens(law)
    before = np.array(x)
    v = law.velocity(T, x, w)
    assert close(law.space.tangent(x, v), v)
    assert np.array_equal(before, x)


@every_law
def test_coincident_tokens_stay_together_where_exchangeable(law):
    x, w = tokens(law)
    x = x.at[4].set(x[1])
    v = law.velocity(T, x, w)
    assert close(v[4], v[1]) or not law.exchangeable


@every_law
def test_the_field_at_the_tokens_is_the_force(law):
    if not isinstance(law, MeanField):
        pytest.skip("not a mean-field law")
    x, w = tokens(law)
    away = law.field(T, jnp.concatenate([x[2:3], x[:1]]), x, w)
    assert close(away, law.force(T, x, w)[jnp.array([2, 0])])


@every_law
def test_single_precision_agrees_with_double(law):
    x, w = tokens(law)
    v = np.asarray(law.velocity(T, x, w))
    with precision("float32"):
        single = cast(law, "float32").velocity(
            jnp.float32(T), jnp.asarray(x, jnp.float32), jnp.asarray(w, jnp.float32)
        )
    assert single.dtype == jnp.float32
    assert np.allclose(single, v, rtol=2e-4, atol=2e-5)


@every_law
def test_a_recipe_builds_the_same_law(law):
    again = recipe.rebuild(recipe.describe(law))
    x, w = tokens(law)
    assert type(again) is type(law)
    assert np.array_equal(again.velocity(T, x, w), law.velocity(T, x, w))


@every_law
def test_the_papers_it_cites_are_in_the_bibliography(law):
    assert law.cites
    assert set(law.cites) <= set(bibliography())


@every_law
def test_one_token_alone_gives_numbers(law):
    if law.particles is not None:
        pytest.skip("its parameters fix the number of tokens")
    x, _ = tokens(law, n=1)
    assert bool(jnp.isfinite(law.velocity(T, x, jnp.ones(1))).all())


@every_law
def test_tokens_act_on_the_last_one_exactly_where_declared(law):
    x, w = tokens(law)
    others = tokens(law, seed=5)[0].at[-1].set(x[-1])
    assert close(law.velocity(T, others, w)[-1], law.velocity(T, x, w)[-1]) != law.interacts


@every_law
def test_weights_have_derivatives_even_at_zero(law):
    if not (isinstance(law, MeanField) and law.smooth and law.interacts):
        pytest.skip("weights do not act smoothly on it")
    x, w = tokens(law)
    w = w.at[2].set(0.0)
    slope = jax.jacfwd(lambda w: law.velocity(T, x, w))(w)[0, :, 2]
    step = 1e-6
    difference = (law.velocity(T, x, w.at[2].add(step)) - law.velocity(T, x, w))[0] / step
    assert np.allclose(slope, difference, rtol=1e-3, atol=1e-4)
    assert np.abs(slope).max() > 1e-3


@flows
def test_velocity_is_the_gradient_of_the_energy_in_its_metric(law):
    x, w = tokens(law)
    gradient = law.space.tangent(x, jax.grad(law.energy)(x, w))
    sign = 1 if law.ascends else -1
    assert close(law.metric(x, w)[:, None] * law.velocity(T, x, w), sign * gradient, 1e-10)


@flows
def test_energy_is_monotone_along_the_flow(law):
    x, w = tokens(law)
    solver = RK4(h=0.05)
    step = jax.jit(lambda x: solver.step(law, 0.0, x, w, jax.random.key(0)))
    energies = [float(law.energy(x, w))]
    for _ in range(40):
        x = step(x)
        energies.append(float(law.energy(x, w)))
    gains = np.diff(energies) * (1 if law.ascends else -1)
    assert gains.min() > -1e-12 * abs(energies[-1])
    assert gains.max() > 1e-6


@pytest.mark.parametrize("solver", [Layer(), Euler(), Heun(), RK4()], ids=repr)
def test_tokens_keep_norm_one_for_ten_thousand_steps(solver):
    law = Attention.example(N, 3)
    x, w = tokens(law)
    advance = jax.jit(
        lambda x: jax.lax.fori_loop(
            0, 10_000, lambda i, x: solver.step(law, 0.1 * i, x, w, jax.random.key(0)), x
        )
    )
    assert np.abs(np.linalg.norm(advance(x), axis=1) - 1).max() < 1e-12


class Kicked(SelfAttention):
    """A law that is not the sum over tokens that its kind says."""

    def force(self, t, x, w):
        return super().force(t, x, w) + jnp.roll(x, 1, axis=1)


@pytest.mark.parametrize("law", [*LAWS, Kicked()], ids=[*NAMES, "Kicked"])
def test_the_velocity_that_is_right_to_the_last_digits_is_the_law_s_own(law):
    x, w = tokens(law)
    assert close(slow_velocity(law, *x.shape)(jnp.asarray(T), x, w), law.velocity(T, x, w))
