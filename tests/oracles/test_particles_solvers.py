"""Solvers: the order that each declares, measured.

The layer map; and no device that is named in the code.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import tokenflock as flock
from tokenflock.catalogue import entries
from tokenflock.dynamics import (
    FeedForward,
    NeuralODE,
    PureAttention,
    SelfAttention,
    SqrtNorm,
    Unnormalised,
)
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.precision import cast, precision
from tokenflock.solvers import RK4, Adaptive, Euler, FixedStep, Layer
from tokenflock.starts import Given, Orthogonal, Uniform
from tokenflock.theory import equiangular_cosine, gaussian_flow

pytestmark = pytest.mark.usefixtures("float64")

TOKENS = Uniform(n=6, d=3)


def end(law, solver, t=1.0, start=TOKENS):
    return flock.simulate(law, start, t=t, frames=2, solver=solver, seed=7).x.values[-1]


def measured_order(law, member, steps, exact, t=1.0):
    """Slope of log error against log h."""
    errors = [np.abs(end(law, member(h=h), t) - exact).max() for h in steps]
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


LAWS = {
    "SA": SelfAttention(3.0),
    # stages at t, t + h/2 and t + h must see their own times
    "a law that moves in time": SqrtNorm(3.0),
}
MEMBERS = [entry.load() for entry in entries("solvers") if issubclass(entry.load(), FixedStep)]
STEPS = {member: 1 / (40 // member.order * np.array([1, 2, 4])) for member in MEMBERS}


@pytest.fixture(scope="module")
def exact():
    """Each law at t = 1, by none of our solvers: Dormand and Prince's method of SciPy."""
    x0 = flock.simulate(LAWS["SA"], TOKENS, t=1.0, frames=2, solver=Euler(h=1.0), seed=7).x.values
    w = np.full(6, 1 / 6)

    def solved(law):
        field = jax.jit(lambda t, y: law.velocity(t, y.reshape(6, 3), w).ravel())
        found = solve_ivp(
            lambda t, y: np.asarray(field(t, y)),
            (0.0, 1.0),
            x0[0].ravel(),
            method="DOP853",
            rtol=1e-13,
            atol=1e-14,
        )
        return found.y[:, -1].reshape(6, 3)

    with precision("float64"):
        return {name: solved(law) for name, law in LAWS.items()}


@pytest.mark.slow
def test_the_reference_is_that_of_the_adaptive_solver(exact):
    """Two methods that share no line of code."""
    for name, law in LAWS.items():
        np.testing.assert_allclose(end(law, Adaptive(rtol=1e-11)), exact[name], atol=1e-9)


CASES = [
    *((member, "SA") for member in STEPS),
    *((member, "a law that moves in time") for member in STEPS if member.order > 1),
]


@pytest.mark.parametrize(("member", "name"), CASES)
def test_every_fixed_step_solver_has_its_order(member, name, exact):
    """An RK4 whose stages share one frozen field, or a layer that is not consistent with the flow,
    has another slope.

    For RK4 the attention must be computed anew at each stage: with attention frozen over a step the
    slope is 1.
    """
    order = measured_order(LAWS[name], member, STEPS[member], exact[name])
    assert abs(order - member.order) < 0.15


def test_an_rk4_with_frozen_attention_is_caught(exact):
    """The bug itself, written out: the same four stages with the attention matrix of the beginning
    of the step.
    """
    law, w = LAWS["SA"], np.full(6, 1 / 6)
    x0 = flock.simulate(law, TOKENS, t=1.0, frames=2, solver=Euler(h=1.0), seed=7).x.values[0]

    def frozen(h):
        x = x0
        for _ in range(round(1 / h)):
            A = np.exp(3.0 * x @ x.T) * w
            A /= A.sum(1, keepdims=True)

            def field(y, A=A):
                y = y / np.linalg.norm(y, axis=1, keepdims=True)
                force = A @ y
                return force - (force * y).sum(1, keepdims=True) * y

            k1 = field(x)
            k2 = field(x + h / 2 * k1)
            k3 = field(x + h / 2 * k2)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + field(x + h * k3))
            x /= np.linalg.norm(x, axis=1, keepdims=True)
        return np.abs(x - exact["SA"]).max()

    errors = [frozen(h) for h in STEPS[RK4]]
    slope = np.polyfit(np.log(STEPS[RK4]), np.log(errors), 1)[0]
    assert abs(slope - 1) < 0.3
    assert abs(slope - RK4.order) > 0.15  # so the test above would have failed


@pytest.mark.parametrize(
    "rtol",
    [pytest.param(1e-4, marks=pytest.mark.slow), pytest.param(1e-7, marks=pytest.mark.slow), 1e-10],
)
def test_adaptive_error_is_of_the_size_of_its_tolerance(rtol):
    """Against the closed form of equiangular tokens, over a time in which they come together."""
    run = flock.simulate(
        SelfAttention(1.0),
        Orthogonal(n=4, d=4),
        times=[1.0, 3.0],
        solver=Adaptive(rtol=rtol, atol=rtol),
    )
    expected = equiangular_cosine(np.array([1.0, 3.0]), 4, 1.0)
    found = np.einsum("td,td->t", run.x.values[1:, 0], run.x.values[1:, 1])
    assert np.abs(found - expected).max() < 10 * rtol


@pytest.mark.slow
def test_dense_output_is_the_trajectory():
    """`flow` gives the tokens at any time, to the accuracy of the tolerance."""
    path = flock.flow(SelfAttention(1.0), Orthogonal(n=4, d=4), t=3.0)
    times = np.array([0.0, 0.123, 1.0, 2.71])
    found = np.einsum("td,td->t", path(times)[:, 0], path(times)[:, 1])
    np.testing.assert_allclose(found, equiangular_cosine(times, 4, 1.0), atol=1e-7)


def test_runge_kutta_leaves_the_sphere_without_harm():
    """Repulsion pushes stages off the sphere; the field there is that of x/|x|."""
    law, x = Unnormalised(2.0, repulsive=True), jnp.asarray(end(SelfAttention(1.0), Euler(h=1.0)))
    w = jnp.full(6, 1 / 6)
    np.testing.assert_allclose(law.velocity(0.0, 1.3 * x, w), law.velocity(0.0, x, w), rtol=1e-12)


def block(activation=Activation.TANH):
    random = np.random.default_rng(9)
    mlp = NeuralODE(
        W=random.normal(size=(3, 5)),
        A=random.normal(size=(5, 3)),
        b=random.normal(size=5),
        activation=activation,
    )
    return FeedForward(mlp, SelfAttention(2.0))


def test_a_transformer_layer_is_attention_then_perceptron():
    """(2.8): the two sublayers in turn, each with its own residual and normalisation."""
    law, h, x = block(), 0.3, end(SelfAttention(1.0), Euler(h=1.0))
    A = np.exp(2.0 * x @ x.T)
    x1 = x + h * (A / A.sum(1, keepdims=True)) @ x
    x1 /= np.linalg.norm(x1, axis=1, keepdims=True)
    x2 = x1 + h * np.tanh(x1 @ law.mlp.A.T + law.mlp.b) @ law.mlp.W.T
    x2 /= np.linalg.norm(x2, axis=1, keepdims=True)
    found = Layer(h=h).step(law, jnp.zeros(()), jnp.asarray(x), jnp.full(6, 1 / 6), None)
    np.testing.assert_allclose(found, x2, rtol=1e-12, atol=1e-14)


def test_splitting_converges_to_the_flow_at_order_one():
    law = block()
    order = measured_order(law, Layer, (1 / 40, 1 / 80, 1 / 160), end(law, RK4(h=1 / 256)))
    assert abs(order - 1) < 0.15


def test_residual_network():
    """(2.1): Layer(h=1) of a neural ODE is x + W sigma(A x + b), on R^d without normalisation."""
    mlp = block(Activation.RELU).mlp
    x = np.random.default_rng(10).normal(size=(6, 3))
    expected = x + np.maximum(x @ mlp.A.T + mlp.b, 0) @ mlp.W.T
    np.testing.assert_allclose(end(mlp, Layer(h=1.0), start=Given(x)), expected, rtol=1e-12)


# --------------------------------------------------------------------------------------------------
# Gaussian data


def hermite(d, m):
    """Nodes and weights that integrate against N(0, I_d)."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(m)
    grid = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), -1).reshape(-1, d)
    weight = np.stack(np.meshgrid(*[mass] * d, indexing="ij"), -1).reshape(-1, d).prod(1)
    return grid, weight / weight.sum()


MEAN = np.array([0.4, -0.3])
ROOT = np.array([[0.7, 0.0], [0.2, 0.5]])
FORMS = {
    "Q": [[1.0, 0.2], [0.0, 0.8]],
    "K": [[0.9, -0.1], [0.3, 1.0]],
    "V": [[0.5, 0.3], [-0.2, 0.4]],
}


def test_field_of_gaussian_tokens_is_affine():
    """Under N(m, S) the field is V (m + S A^T x), A = beta Q^T K.

    Tokens at the nodes of a quadrature are that law.
    """
    beta, (grid, w) = 0.8, hermite(2, 24)
    x, q = MEAN + grid @ ROOT.T, np.random.default_rng(0).normal(size=(5, 2))
    Q, K, V = (np.array(FORMS[letter]) for letter in "QKV")
    found = PureAttention(beta, **FORMS).field(
        jnp.zeros(()), jnp.asarray(q), jnp.asarray(x), jnp.asarray(w)
    )
    expected = (MEAN + q @ (beta * Q.T @ K) @ (ROOT @ ROOT.T)) @ V.T
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_gaussian_tokens_stay_gaussian():
    """Their mean and covariance follow dS/dt = V S A^T S + S A S V^T.

    An affine flow keeps the quadrature exact.
    """
    beta, (grid, w) = 0.8, hermite(2, 16)
    Q, K, V = (np.array(FORMS[letter]) for letter in "QKV")
    run = flock.simulate(
        PureAttention(beta, **FORMS),
        Given(MEAN + grid @ ROOT.T, w),
        t=0.8,
        frames=5,
        solver=RK4(h=0.02),
    )
    expected = gaussian_flow(run.time.values, MEAN, ROOT @ ROOT.T, beta * Q.T @ K, V)
    for x, mean, covariance in zip(run.x.values, *expected):
        np.testing.assert_allclose(w @ x, mean, atol=1e-7)
        np.testing.assert_allclose((w[:, None] * (x - w @ x)).T @ x, covariance, atol=1e-7)


def test_variance_on_the_line_blows_up():
    """d = 1: S = S_0 / (1 - 2 v a S_0 t)."""
    grid, w = hermite(1, 40)
    v, a, S0 = 0.7, 1.1, 0.3
    run = flock.simulate(
        PureAttention(a, V=v), Given(np.sqrt(S0) * grid, w), t=1.2, frames=4, solver=RK4(h=0.01)
    )
    S = (run.x.values[..., 0] ** 2) @ w
    np.testing.assert_allclose(S, S0 / (1 - 2 * v * a * S0 * run.time), rtol=1e-7)


# --------------------------------------------------------------------------------------------------
# devices


def devices_named(jaxpr):
    """Devices that a traced function places its values on."""
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "device_put":
            found += [device for device in equation.params.get("devices", ()) if device is not None]
        for value in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda v: hasattr(v, "jaxpr")
        ):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                found += devices_named(inner)
    return found


@pytest.mark.parametrize("name", [entry.name for entry in entries("dynamics")])
def test_no_law_names_a_device(name):
    """A hard-coded device shows in the traced program: every law and the layer map run where their
    arguments are.
    """
    law = cast(
        next(entry for entry in entries("dynamics") if entry.name == name).load().example(),
        "float64",
    )
    x, w = jnp.ones((6, law.dimension or 3)), jnp.full(6, 1 / 6)

    def program(y):
        stepped = Layer(h=0.1).step(law, jnp.zeros(()), y, w, jax.random.key(0))
        return law.velocity(jnp.zeros(()), stepped, w)

    traced = jax.make_jaxpr(program)(x).jaxpr
    assert len(traced.eqns) > 2
    assert devices_named(traced) == []


def test_no_numeric_module_names_a_device():
    """The rest of the numeric code: no call that places arrays or asks for a backend, and no string
    that is one's name.
    """
    root = Path(flock.__file__).parent
    folders = ("dynamics", "solvers", "starts", "observables", "events", "spaces")
    files = [path for folder in folders for path in (root / folder).glob("*.py")]
    files += [
        root / name
        for name in (
            "verbs/simulate.py",
            "verbs/measure.py",
            "precision.py",
            "engines/single.py",
            "engines/adaptive.py",
        )
    ]
    assert len(files) > 60
    calls, names = (
        {"device_put", "devices", "local_devices", "default_backend"},
        {"cpu", "gpu", "cuda", "cuda:0", "tpu", "mps"},
    )
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr not in calls, f"{path}:{node.lineno}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert node.value not in names, f"{path}:{node.lineno}"


SECOND_DEVICE = """
import jax
from tokenflock.dynamics import SelfAttention
from tokenflock.engines import single as engine
from tokenflock.observables import ClusterCount, Energy
from tokenflock.precision import cast, precision
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform
from tokenflock.verbs.simulate import prepare

second = jax.devices()[1]
with jax.default_device(second), precision("float64"):
    law, x, w, key = prepare(SelfAttention(2.0), Uniform(n=4, d=3), 0, "float64")
    step = RK4(h=0.1).step(law, 0.0, x, w, key)
    measured = Energy(2.0).measure(step, w), ClusterCount().measure(step, w)
    for value in (law.beta, x, w, step, *measured):
        assert value.devices() == {second}, value.devices()
print("ok")
"""


@pytest.mark.slow
def test_a_run_goes_where_the_default_device_is():
    """On a machine with two devices, everything happens on the one that the user chose."""
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", SECOND_DEVICE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "ok", done.stderr[-2000:]
