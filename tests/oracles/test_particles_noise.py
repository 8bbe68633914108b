"""Brownian tokens on the sphere, by Monte Carlo with four standard errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import tokenflock as flock
from tokenflock.dynamics import Noisy
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.precision import cast
from tokenflock.solvers import RK4, EulerMaruyama
from tokenflock.starts import Cap

pytestmark = pytest.mark.usefixtures("float64")

N = 30_000


class Wind(MeanField):
    """A constant drift along the last axis: tokens that do not see each other, so that many are
    cheap.
    """

    strength: float = 0.0

    def field(self, t, q, x, w):
        return jnp.zeros_like(q).at[:, -1].set(self.strength)


def ends(law, x, h, steps, seed=0):
    """Tokens after a number of Euler-Maruyama steps."""
    law, solver, w = cast(law, "float64"), EulerMaruyama(h=h), jnp.full(len(x), 1 / len(x))

    @jax.jit
    def run(x):
        def advance(k, y):
            return solver.step(law, k * h, y, w, jax.random.fold_in(jax.random.key(seed), k))

        return jax.lax.fori_loop(0, steps, advance, x)

    return np.asarray(run(jnp.asarray(x)))


def poles(d):
    return np.tile(np.eye(d)[-1], (N, 1))


def mean_and_error(values):
    return values.mean(), values.std() / np.sqrt(len(values))


@pytest.mark.slow
@pytest.mark.parametrize(("d", "kappa"), [(2, 1.5), (3, 2.0), (6, 8.0)])
def test_brownian_motion_forgets_at_rate_d_minus_one_over_kappa(d, kappa):
    """E <x(t), x(0)> = e^{-(d-1) t / kappa}: on the sphere, not in R^d, where it would not decay at
    all.
    """
    t = 0.5
    mean, error = mean_and_error(ends(Noisy(Wind(), kappa), poles(d), 0.005, 100)[:, -1])
    assert abs(mean - np.exp(-(d - 1) * t / kappa)) < 4 * error
    assert error < 0.01


def one_step_cosine(h, d, kappa):
    """E <x_1, x_0> of one projected step: the mean of (1 + s^2 h chi^2)^{-1/2}, chi^2 with d - 1
    degrees of freedom.
    """
    s2, k = 2 / kappa, d - 1

    def chi(r):
        return r ** (k - 1) * np.exp(-(r**2) / 2)

    weighted = quad(lambda r: chi(r) / np.sqrt(1 + s2 * h * r**2), 0, 40)[0]
    return weighted / quad(chi, 0, 40)[0]


def test_euler_maruyama_has_weak_order_one():
    """Its mean cosine after k steps is c(h)^k exactly, and c(h)^{t/h} tends to e^{-(d-1) t/kappa}
    at order one.

    The steps are long enough for the bias to be seen over the Monte Carlo error, so both halves of
    the claim can fail.
    """
    d, kappa, t = 3, 1.0, 1.0
    exact = np.exp(-(d - 1) * t / kappa)
    biases = []
    for steps in (2, 4, 8):
        mean, error = mean_and_error(
            ends(Noisy(Wind(), kappa), poles(d), t / steps, steps, seed=steps)[:, -1]
        )
        predicted = one_step_cosine(t / steps, d, kappa) ** steps
        assert abs(mean - predicted) < 4 * error
        biases.append(predicted - exact)
        assert abs(biases[-1]) > 4 * error  # the bias is there to be seen
    fine = [one_step_cosine(t / k, d, kappa) ** k - exact for k in (64, 128, 256)]
    slope = np.polyfit(np.log([1 / 64, 1 / 128, 1 / 256]), np.log(np.abs(fine)), 1)[0]
    assert abs(slope - EulerMaruyama.order) < 0.1
    assert np.all(np.diff(np.abs(biases)) < 0)


def test_wind_and_noise_settle_in_the_von_mises_fisher_law():
    """dX = P_X w dt + sqrt(2/kappa) dW has the stationary density e^{kappa <w, x>}.

    E x_3 = coth a - 1/a, a = kappa |w|.
    """
    strength, kappa = 1.2, 2.0
    a = strength * kappa
    z = ends(Noisy(Wind(strength), kappa), poles(3), 0.02, 200)[:, -1]
    mean, error = mean_and_error(z)
    assert abs(mean - (1 / np.tanh(a) - 1 / a)) < 4 * error
    square, error = mean_and_error(z**2)
    assert abs(square - (1 - 2 / a * (1 / np.tanh(a) - 1 / a))) < 4 * error


def test_wind_alone_turns_tokens_at_a_known_rate():
    """Under dx/dt = P_x w, <x, w/|w|> = tanh(|w| t + artanh <x_0, w/|w|>)."""
    x = np.array([[0.6, 0.8], [np.sqrt(0.19), -0.9], [1.0, 0.0]])
    run = flock.simulate(Wind(1.5), x, t=2.0, frames=5, solver=RK4(h=0.01))
    expected = np.tanh(1.5 * run.time.values[:, None] + np.arctanh(x[:, 1]))
    np.testing.assert_allclose(run.x[..., 1], expected, atol=1e-8)


def test_noise_is_drawn_anew_for_each_token_and_each_step():
    """Tokens that share one draw would stay together.

    A key that serves for all steps would give 100 times the variance.
    """
    start = Cap(n=400, d=2, angle=1e-3)
    run = flock.simulate(Noisy(Wind(), 50.0), start, t=1.0, frames=2, solver=EulerMaruyama(h=0.01))
    angle = np.arctan2(*run.x.values[-1].T)
    variance, expected = angle.var(), 2 / 50.0
    assert abs(variance - expected) < 4 * expected * np.sqrt(2 / 400)
