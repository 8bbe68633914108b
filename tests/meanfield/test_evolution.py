"""The continuity equation: growth rates, the Ott-Antonsen solution, conservation, dissipation, the
tokens behind it.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import recipe
from tokenflock.dynamics import Burger, Causal, Fast, Noisy, SelfAttention, Sinkhorn, Unnormalised
from tokenflock.meanfield import (
    Empirical,
    Mixture,
    PoissonKernel,
    Ripple,
    VonMises,
    drift,
    evolve,
    grid,
)
from tokenflock.precision import precision
from tokenflock.theory import critical_noise, growth_rate, poisson_order, uniform_energy

pytestmark = pytest.mark.slow

SMALL = 1e-5


def growth(law, k: int, d: int, t: float, points: int = 48) -> float:
    """Growth factor of mode k of the uniform measure.

    Runs with both signs cancel what is quadratic in the amplitude.
    """
    space = grid(d, points)
    mode = Ripple(k=k, amplitude=1.0).relative(space) - 1
    sizes = []
    for sign in (1, -1):
        run = evolve(law, Ripple(k=k, amplitude=sign * SMALL), t=t, frames=2, d=d, points=points)
        sizes.append(run.density.values @ (run.weight.values * mode))
    return float(np.divide(*(sizes[0] - sizes[1])[::-1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "model", "kappa"),
    [
        (SelfAttention(beta=4.0), "SA", np.inf),
        (Unnormalised(beta=4.0), "USA", np.inf),
        (Sinkhorn(beta=4.0), "Sinkhorn", np.inf),
        (Noisy(Unnormalised(beta=4.0), kappa=3.0), "USA", 3.0),
        (Noisy(SelfAttention(beta=4.0), kappa=20.0), "SA", 20.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize(("k", "d"), [(1, 2), (3, 2), (2, 3), (2, 8)])
def test_modes_of_the_uniform_measure_grow_as_the_theory_says(law, model, kappa, k, d):
    t = 0.2
    assert growth(law, k, d, t) == pytest.approx(
        np.exp(t * growth_rate(k, 4.0, d, model, kappa)), rel=1e-7
    )


@pytest.mark.parametrize(
    "law", [SelfAttention(4.0, repulsive=True), Unnormalised(4.0, repulsive=True)], ids=repr
)
def test_repulsion_turns_growth_into_decay(law):
    model = "SA" if isinstance(law, SelfAttention) else "USA"
    assert growth(law, 2, 3, 0.2) == pytest.approx(
        np.exp(-0.2 * growth_rate(2, 4.0, 3, model)), rel=1e-7
    )


@pytest.mark.slow
def test_poisson_kernels_stay_poisson_kernels_at_beta_zero():
    """Ott-Antonsen."""
    run = evolve(SelfAttention(beta=0.0), PoissonKernel(r=0.3), t=3.0, frames=7)
    expected = poisson_order(run.time.values, 0.3)
    np.testing.assert_allclose(run.order_parameter, expected, atol=1e-8)
    # later modes beyond the grid have size 1e-8
    middle = PoissonKernel(r=float(expected[4])).on(grid(2, 256)) / (2 * np.pi)
    np.testing.assert_allclose(run.density[4], middle, atol=1e-8)


ATTRACTIVE = [SelfAttention(4.0), Unnormalised(4.0), Sinkhorn(4.0)]
LAWS = [*ATTRACTIVE, SelfAttention(4.0, repulsive=True), Unnormalised(4.0, repulsive=True)]


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("d", [2, 3, 5])
def test_mass_is_kept_density_stays_positive_and_energy_is_monotone(law, d):
    start = Mixture([VonMises(2.0), VonMises(1.0, mean=np.pi)], masses=[2, 1])
    run = evolve(law, start, t=0.1, frames=6, d=d, points=48)
    assert abs(run.mass - 1).max() < 1e-13
    assert (run.smallest > 0).all() and "warning" not in run.attrs
    assert ((run.energy.diff("time") > 0) == law.ascends).all()


@pytest.mark.parametrize("law", [*LAWS, Burger(D=np.diag([1.0, -0.5]))], ids=repr)
def test_energy_changes_by_the_dissipation(law):
    """dE/dt = +- int metric |X|^2 dmu (Lemma 3.7), at the level of measures."""
    times = np.linspace(0, 0.004, 5)
    run = evolve(law, VonMises(1.5, mean=0.4), times=times, t=times[-1], points=48)
    E, h = run.energy.values, times[1]
    slope = (E[0] - 8 * E[1] + 8 * E[3] - E[4]) / (12 * h)
    assert slope == pytest.approx(float(run.dissipation[2]), rel=1e-6)


@pytest.mark.slow
def test_the_velocity_of_a_measure_is_the_velocity_of_its_tokens():
    """On S^2 the rings of a symmetric measure as tokens, every longitude of them, feel what the
    latitudes alone say.
    """
    space = grid(3, 24)
    f = Mixture([VonMises(2.0), VonMises(1.0, mean=np.pi)]).on(space)
    angles = 2 * np.pi * np.arange(24) / 24
    u, c = np.cos(space.coordinate), np.sin(space.coordinate)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    x = np.concatenate(
        [c[:, None, None] * ring, np.broadcast_to(u[:, None, None], (24, 24, 1))], axis=2
    ).reshape(-1, 3)
    w = np.repeat(space.weights * f / 24, 24)
    for law in (SelfAttention(2.0), Unnormalised(2.0, repulsive=True), Sinkhorn(1.0)):
        with precision("float64"):
            v = np.asarray(law.velocity(0.0, jnp.asarray(x), jnp.asarray(w)))[::24, 2]
        np.testing.assert_allclose(drift(law, f, space), v, atol=1e-12)


@pytest.mark.slow
def test_the_velocity_on_the_circle_is_the_bessel_series():
    """(7.1) of arXiv 2312.10794: h' * nu / (beta h * nu), for a density of three modes, whose
    moments are known.
    """
    from scipy.special import iv

    space, beta = grid(2, 48), 4.0
    theta = space.coordinate
    f = 1 + 0.6 * np.cos(theta) - 0.3 * np.sin(2 * theta)
    dh = (
        -2 / beta * (iv(1, beta) * 0.3 * np.sin(theta) + 2 * iv(2, beta) * 0.15 * np.cos(2 * theta))
    )
    h = iv(0, beta) + 2 * (
        iv(1, beta) * 0.3 * np.cos(theta) - iv(2, beta) * 0.15 * np.sin(2 * theta)
    )
    np.testing.assert_allclose(drift(Unnormalised(beta), f, space), dh, atol=1e-10)
    np.testing.assert_allclose(drift(SelfAttention(beta), f, space), dh / h, atol=1e-10)
    np.testing.assert_allclose(drift(Fast(SelfAttention(beta)), f, space), dh / h, atol=1e-10)


@pytest.mark.slow
def test_many_tokens_follow_the_measure():
    """The empirical measure of quantiles stays near the solution: W_1 below the spacing of the
    tokens.
    """
    pytest.importorskip("ot")
    start, n = VonMises(1.0), 200
    space = grid(2, 2048)
    share = np.cumsum(start.on(space)) / 2048
    angles = np.interp((np.arange(n) + 0.5) / n, share, space.coordinate + np.pi / 2048)
    run = flock.simulate(
        SelfAttention(4.0), np.stack([np.cos(angles), np.sin(angles)], axis=1), t=0.5, frames=2
    )
    density = evolve(SelfAttention(4.0), start, t=0.5, frames=2, points=48)
    assert flock.meanfield.wasserstein(run, density, p=1) < 2 * np.pi / n


@pytest.mark.slow
def test_noise_below_the_critical_one_ends_in_a_fixed_point_of_the_free_energy():
    """It is rho ~ exp((2 kappa / beta) sum_k I_k m_k cos k theta); the free energy grows to it."""
    from scipy.special import iv

    beta, kappa = 1.0, 1.5 * critical_noise(1.0)
    run = evolve(
        Noisy(Unnormalised(beta), kappa=kappa), VonMises(0.5), t=60.0, frames=13, points=48
    )
    theta, rho = run.theta.values, run.density.values[-1]
    k = np.arange(1, 20)
    m = np.cos(np.outer(k, theta)) @ (rho * run.weight.values)
    expected = np.exp(2 * kappa / beta * (iv(k, beta) * m) @ np.cos(np.outer(k, theta)))
    np.testing.assert_allclose(rho, expected / (expected @ run.weight.values), rtol=1e-6)
    assert run.free_energy.diff("time").min() > -1e-10
    assert float(run.order_parameter[-1]) > 0.5


def test_uniform_rests_and_has_the_least_energy():
    for d in (2, 3, 8):
        run = evolve(SelfAttention(4.0), VonMises(0.0), t=1.0, frames=3, d=d, points=48)
        np.testing.assert_allclose(run.energy, uniform_energy(4.0, d), rtol=1e-12)
        assert abs(run.velocity).max() < 1e-12


@pytest.mark.filterwarnings("ignore:the grid does not resolve")
def test_a_density_narrower_than_the_grid_stops_the_run_and_says_so():
    run = evolve(SelfAttention(4.0), VonMises(2.0), t=20.0, points=48)
    assert "raise points" in run.attrs["stopped"]
    assert run.time[-1] < 20
    with pytest.raises(flock.UserError, match="points"):
        evolve(SelfAttention(4.0), VonMises(1e4), t=1.0, points=48)


def test_an_empirical_measure_has_the_modes_of_its_tokens():
    x = np.random.default_rng(0).normal(size=(50, 2))
    angles = np.arctan2(x[:, 1], x[:, 0])
    run = evolve(SelfAttention(4.0), Empirical(x, bandwidth=0.4), t=0.1, frames=2, points=48)
    third = (run.density.values[0] * run.weight.values) @ np.exp(3j * run.theta.values)
    assert abs(third - np.exp(3j * angles).mean() * np.exp(-9 * 0.08)) < 1e-12
    assert run.smallest[0] > 0
    height = x[:, 1] / np.linalg.norm(x, axis=1)
    tall = np.stack([np.sqrt(1 - height**2), 0 * height, height], axis=1)
    on_sphere = evolve(
        SelfAttention(4.0), Empirical(tall, bandwidth=0.4), t=0.1, frames=2, d=3, points=48
    )
    assert float(on_sphere.order_parameter[0]) == pytest.approx(
        abs(height.mean()) * np.exp(-2 * 0.08), rel=1e-10
    )


def test_the_recipe_builds_the_run_again_and_the_result_can_be_saved(tmp_path):
    run = evolve(
        Noisy(SelfAttention(2.0)),
        Mixture([VonMises(1.0), Ripple(2, 0.1)]),
        t=0.1,
        frames=2,
        points=48,
    )
    made = recipe.loads(run.attrs["recipe"])
    again = evolve(
        made["dynamics"], made["start"], t=made["t"], frames=made["frames"], points=made["points"]
    )
    np.testing.assert_array_equal(again.density, run.density)
    assert flock.load(flock.save(run, tmp_path / "run.nc")).density.dims == ("time", "theta")


@pytest.mark.parametrize(
    ("law", "d", "words"),
    [
        (Causal(), 2, "measure"),
        (Burger(D=np.eye(3)), 2, "d must be 3"),
        (Burger(D=np.eye(3)), 3, "SelfAttention"),
    ],
    ids=["causal", "dimension", "anisotropic"],
)
def test_laws_that_do_not_fit_are_refused(law, d, words):
    with pytest.raises(flock.UserError, match=words):
        evolve(law, Ripple(), d=d)


@pytest.mark.parametrize("concentration", [1.0, 3.0])
def test_without_temperature_the_energy_is_half_the_squared_mean(concentration):
    """On S^2 a von Mises measure has the mean coth k - 1/k along its axis."""
    run = evolve(SelfAttention(0.0), VonMises(concentration), t=0.01, frames=2, d=3, points=48)
    mean = 1 / np.tanh(concentration) - 1 / concentration
    assert float(run.energy[0]) == pytest.approx(mean**2 / 2, rel=1e-12)
