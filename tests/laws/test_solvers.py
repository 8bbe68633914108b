"""Contracts of every solver, what each says of itself, and what it refuses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import recipe
from tokenflock.catalogue import entries
from tokenflock.dynamics import Attention, FeedForward, NeuralODE, Noisy, SelfAttention
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.errors import SimulationError, UserError
from tokenflock.precision import precision
from tokenflock.shapes import Points, Time, Tokens, Weights
from tokenflock.solvers import RK4, Adaptive, Euler, EulerMaruyama, FixedStep, Heun, Layer
from tokenflock.solvers.adaptive import Method
from tokenflock.starts import Given, Uniform

LAW = SelfAttention(beta=2.0)
SOLVERS = [entry.load()() for entry in entries("solvers")]
FIXED = [solver for solver in SOLVERS if isinstance(solver, FixedStep)]
every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)
every_step = pytest.mark.parametrize("solver", FIXED, ids=repr)


def tokens(n=5, d=3, seed=0):
    """Generic tokens and unequal weights."""
    random = np.random.default_rng(seed)
    x, w = random.normal(size=(n, d)), random.uniform(0.5, 1.5, size=n)
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True)), jnp.asarray(w / w.sum())


def step(solver, x, w, law=LAW, seed=0):
    return np.asarray(solver.step(law, jnp.zeros((), x.dtype), x, w, jax.random.key(seed)))


@every_step
@pytest.mark.usefixtures("double")
def test_a_step_moves_tokens_on_their_space_and_leaves_the_input_alone(solver):
    x, w = tokens()
    before, moved = np.array(x), step(solver, x, w)
    assert np.abs(moved - before).max() > 0.1 * solver.h * np.abs(LAW.velocity(0.0, x, w)).max()
    assert np.abs(np.linalg.norm(moved, axis=1) - 1).max() < 1e-15
    assert np.array_equal(before, x)


@every_solver
def test_what_rests_stays(solver):
    """Consensus, and an antipodal pair beside it."""
    rest = Given([[0.6, 0.8], [0.6, 0.8], [-0.6, -0.8]])
    run = flock.simulate(LAW, rest, t=1.0, frames=3, solver=solver)
    assert np.abs(run.x.values - run.x.values[0]).max() < 1e-12


@every_step
@pytest.mark.usefixtures("double")
def test_a_batch_of_systems_steps_as_each_system_alone(solver):
    pairs = [tokens(seed=seed) for seed in range(3)]
    x, w = (jnp.stack(parts) for parts in zip(*pairs))
    key = jax.random.key(0)
    together = jax.vmap(lambda x, w: solver.step(LAW, jnp.zeros(()), x, w, key))(x, w)
    alone = np.stack([step(solver, *pair) for pair in pairs])
    assert np.allclose(together, alone, rtol=0, atol=1e-14)


@every_step
@pytest.mark.usefixtures("double")
def test_tokens_of_weight_zero_do_not_act(solver):
    x, w = tokens()
    strangers, _ = tokens(3, seed=9)
    padded = step(solver, jnp.concatenate([x, strangers]), jnp.concatenate([w, jnp.zeros(3)]))
    assert np.allclose(padded[:5], step(solver, x, w), rtol=0, atol=1e-14)


@every_step
@pytest.mark.usefixtures("double")
def test_the_key_matters_exactly_where_noise_is_taken(solver):
    x, w = tokens()
    noisy = [step(solver, x, w, Noisy(LAW, kappa=5.0), seed) for seed in (0, 1)]
    assert np.allclose(*noisy, atol=1e-12) != solver.takes_noise
    assert np.array_equal(step(solver, x, w, seed=0), step(solver, x, w, seed=1))


@every_step
def test_a_step_keeps_its_precision(solver):
    with precision("float32"):
        x, w = (jnp.asarray(part, jnp.float32) for part in tokens())
        assert step(solver, x, w).dtype == np.float32


@every_solver
def test_a_solver_says_what_it_is(solver):
    assert solver.order >= 1 and solver.convention in ("flow", "layer map")
    assert recipe.rebuild(recipe.describe(solver)) == solver


def test_tolerances_follow_the_precision_unless_given():
    assert Adaptive().tolerances("float64") == pytest.approx((1e-9, 1e-11), rel=1e-12)
    assert Adaptive().tolerances("float32") == pytest.approx((1e-5, 1e-7), rel=1e-12)
    assert Adaptive(rtol=1e-3).tolerances("float32") == pytest.approx((1e-3, 1e-5), rel=1e-12)
    assert Adaptive(atol=1e-4).tolerances("float64") == pytest.approx((1e-9, 1e-4), rel=1e-12)
    assert Adaptive(rtol=1e-3, atol=1e-6).tolerances("float64") == (1e-3, 1e-6)


def test_the_layer_map_is_the_only_one_and_pairs_have_their_orders():
    """That every solver of fixed step has the order it declares is measured, with the oracles."""
    assert [type(solver) for solver in SOLVERS if solver.convention != "flow"] == [Layer]
    assert [method.order for method in Method] == [8, 5, 3, 2]
    assert Adaptive().order == Method.DOPRI8.order


def test_steps_are_those_of_the_papers_unless_given():
    known = {Euler: 0.1, EulerMaruyama: 0.01, Heun: 0.1, Layer: 0.1, RK4: 0.1}
    assert {member: member().h for member in known} == known


@every_step
def test_a_step_is_positive_however_small(solver):
    member = type(solver)
    assert member(h=1e-6).h == 1e-6
    for h in (0.0, -0.1):
        with pytest.raises(UserError, match="h must be a positive step"):
            member(h=h)


def test_tolerances_and_numbers_of_steps_are_positive():
    assert Adaptive(rtol=1e-15, atol=1e-15, max_steps=1).max_steps == 1
    assert Adaptive(max_steps=2**31 - 1).max_steps == 2**31 - 1
    with pytest.raises(UserError, match="max_steps"):
        Adaptive(max_steps=2**31)
    for wrong in ({"rtol": 0.0}, {"atol": 0.0}, {"rtol": -1e-3}, {"atol": -1e-3}, {"max_steps": 0}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            Adaptive(**wrong)


def test_a_long_run_that_begins_with_short_steps_is_not_given_up():
    """A first step of a thousandth of the whole says nothing of those that follow."""
    run = flock.simulate(SelfAttention(beta=1.0), Uniform(n=3, d=3), t=1e5, frames=2)
    assert float(run.time[-1]) == 1e5
    np.testing.assert_allclose(run.x[-1], run.x[-1, :1].values.repeat(3, axis=0), atol=1e-6)


def test_who_gives_up_says_why():
    def told(law, **options):
        with pytest.raises(SimulationError) as caught:
            flock.simulate(law, Uniform(n=4, d=3), t=30.0, frames=2, **options)
        return str(caught.value)

    assert "raise max_steps" in told(SelfAttention(), solver=Adaptive(max_steps=3))
    assert "velocity of Overflowing is not a number" in told(Overflowing())


class Overflowing(MeanField):
    """A law whose force is no number."""

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        return jnp.exp(1e3 * (2 + q @ x.T)) @ x


def test_a_step_of_euler_maruyama_is_its_formula():
    """Of one key too: an earlier result is to be computed again."""
    law, h, key = Noisy(SelfAttention(beta=2.0), kappa=5.0), 0.04, jax.random.key(3)
    with precision("float64"):
        x = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])
        w, t = jnp.full(2, 0.5), jnp.asarray(0.3)
        kick = 0.2 * law.shake(t, x, w, key)
        kick -= jnp.sum(kick * x, axis=1, keepdims=True) * x
        y = x + h * law.velocity(t, x, w) + kick
        y /= jnp.linalg.norm(y, axis=1, keepdims=True)
        np.testing.assert_allclose(EulerMaruyama(h=h).step(law, t, x, w, key), y, rtol=1e-12)


V = np.array([[0.4, -1.0, 0.3], [0.8, 0.1, -0.5], [-0.2, 0.6, 0.9]])


def moving(t):
    """Values that change in time, and not as a polynomial that a method would integrate exactly."""
    return jnp.exp(2.0 * t) * V


def unit(y):
    return y / np.linalg.norm(y, axis=1, keepdims=True)


def field(t, y, w, beta=1.7):
    """P_x sum_j A_ij e^{2t} V x_j at x = y / |y|, by NumPy."""
    x = unit(y)
    A = w * np.exp(beta * x @ x.T)
    u = A / A.sum(axis=1, keepdims=True) @ x @ (np.exp(2.0 * t) * V).T
    return u, u - (u * x).sum(axis=1, keepdims=True) * x


def euler(t, x, w, h):
    return unit(x + h * field(t, x, w)[1])


def layer(t, x, w, h):
    return unit(x + h * field(t, x, w)[0])


def heun(t, x, w, h):
    k1 = field(t, x, w)[1]
    return unit(x + h / 2 * (k1 + field(t + h, x + h * k1, w)[1]))


def rk4(t, x, w, h):
    k1 = field(t, x, w)[1]
    k2 = field(t + h / 2, x + h / 2 * k1, w)[1]
    k3 = field(t + h / 2, x + h / 2 * k2, w)[1]
    k4 = field(t + h, x + h * k3, w)[1]
    return unit(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))


FORMULAS = {Euler: euler, EulerMaruyama: euler, Heun: heun, Layer: layer, RK4: rk4}


@pytest.mark.parametrize("member", FORMULAS)
@pytest.mark.usefixtures("double")
def test_steps_are_their_formulas_for_a_law_that_moves_in_time(member):
    """One step, and three of them, each at its own time."""
    x, w = tokens()
    law, t, h = Attention(beta=1.7, V=moving), jnp.asarray(0.2), 0.15
    y = FORMULAS[member](0.2, np.asarray(x), np.asarray(w), h)
    found = member(h=h).step(law, t, x, w, jax.random.key(0))
    np.testing.assert_allclose(found, y, rtol=0, atol=1e-13)
    for number in (1, 2):
        y = FORMULAS[member](0.2 + number * h, y, np.asarray(w), h)
    if member is not EulerMaruyama:  # which is Euler's without noise
        found = member(h=h).steps(law, t, x, w, 3)
        np.testing.assert_allclose(found, y, rtol=0, atol=1e-13)


@pytest.mark.usefixtures("double")
def test_layers_of_two_sublayers_go_on_in_time_too():
    x, w = tokens()
    A, out = np.array([[1.0, -0.5, 0.2], [0.3, 0.7, -1.0]]), np.array([[0.5, 1], [-1, 0.2], [0, 1]])
    law = FeedForward(NeuralODE(W=out, A=A, activation="tanh"), Attention(beta=1.7, V=moving))
    y, h = np.asarray(x), 0.15
    for number in range(2):
        y = layer(0.2 + number * h, y, np.asarray(w), h)
        y = unit(y + h * np.tanh(y @ A.T) @ out.T)
    found = Layer(h=h).steps(law, jnp.asarray(0.2), x, w, 2)
    np.testing.assert_allclose(found, y, rtol=0, atol=1e-13)


def test_solvers_say_whether_they_take_noise_and_what_order_they_have():
    known = {Euler: 1, EulerMaruyama: 1, Heun: 2, Layer: 1, RK4: 4, Adaptive: 8}
    assert {type(solver): solver.order for solver in SOLVERS} == known
    assert {type(s) for s in SOLVERS if s.takes_noise} == {Adaptive, EulerMaruyama, Layer}
    assert Adaptive().max_steps == 1_000_000 and Adaptive().method is Method.DOPRI8


@pytest.mark.parametrize("solver", [EulerMaruyama(h=0.04), Layer(h=0.04)], ids=repr)
@pytest.mark.usefixtures("double")
def test_a_step_adds_the_root_of_h_times_the_noise_of_a_unit_of_time(solver):
    law, h = Noisy(SelfAttention(beta=2.0), kappa=3.0), 0.04
    x, w = tokens()
    key, t = jax.random.key(5), jnp.zeros(())
    shaken = np.sqrt(h) * np.asarray(law.shake(t, x, w, key))
    pushed = h * np.asarray(law.force(t, x, w))
    if isinstance(solver, EulerMaruyama):  # the flow: both within the tangent space
        pushed, shaken = (v - (v * x).sum(1, keepdims=True) * x for v in (pushed, shaken))
    y = np.asarray(x) + pushed + shaken
    expected = y / np.linalg.norm(y, axis=1, keepdims=True)
    found = solver.step(law, t, x, w, key)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
