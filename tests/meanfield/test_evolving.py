"""Runs of a measure: solutions that are known, and what is told of every frame."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import iv

import tokenflock as flock
from tokenflock import recipe
from tokenflock.dynamics import Noisy, SelfAttention, Unnormalised
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.errors import SimulationError
from tokenflock.meanfield import PoissonKernel, Ripple, VonMises, evolution, evolve, grid
from tokenflock.meanfield.density import Density
from tokenflock.theory import growth_rate, poisson_order


class Louder(MeanField):
    """The mean of all tokens, (1 + 3 t) times."""

    def field(self, t, q, x, w):
        return (1 + 3 * t) * jnp.broadcast_to(w @ x, q.shape)


class Still(MeanField):
    """No motion at all."""

    def field(self, t, q, x, w):
        return jnp.zeros_like(q)


@pytest.fixture(scope="module")
def louder():
    """Kuramoto oscillators whose coupling grows, from a Poisson kernel about the angle 0.6."""
    start = PoissonKernel(r=0.2, mean=0.6)
    return evolve(Louder(), start, times=[0.3, 0.1, 0.2, 0.3], points=48)


def test_poisson_kernels_stay_poisson_kernels_and_time_counts(louder):
    """Ott-Antonsen, in the time t + 3 t^2 / 2 in which the coupling is one."""
    t = np.array([0.0, 0.1, 0.2, 0.3])
    np.testing.assert_array_equal(louder.time, t)  # each once, in order, with the start
    r = poisson_order(t + 1.5 * t**2, 0.2)
    np.testing.assert_allclose(louder.order_parameter, r, rtol=1e-7)
    theta = louder.theta.values
    for frame in range(4):
        rho = (1 - r[frame] ** 2) / (1 + r[frame] ** 2 - 2 * r[frame] * np.cos(theta - 0.6))
        np.testing.assert_allclose(louder.density[frame], rho / (2 * np.pi), atol=1e-7)
        pull = -(1 + 3 * t[frame]) * r[frame] * np.sin(theta - 0.6)
        np.testing.assert_allclose(louder.velocity[frame], pull, atol=1e-8)


def test_what_a_run_tells_of_itself(louder):
    np.testing.assert_allclose(louder.mass, 1, rtol=1e-13)
    np.testing.assert_allclose(louder.mass, louder.density @ louder.weight, rtol=1e-12)
    np.testing.assert_allclose(louder.smallest, louder.density.min("theta"))
    np.testing.assert_allclose(louder.weight, 2 * np.pi / 48)
    np.testing.assert_allclose(louder.theta, 2 * np.pi * np.arange(48) / 48)
    assert not {"stopped", "warning"} & set(louder.attrs)
    assert louder.velocity.attrs["long_name"] == "d theta/dt"
    made = recipe.loads(louder.attrs["recipe"])
    assert made["times"] == [0.3, 0.1, 0.2, 0.3] and made["t"] == 0.3
    assert (made["d"], made["points"], made["frames"]) == (2, 48, 101)


def test_noise_alone_is_the_heat_equation():
    """Mode k decays as e^{-k^2 t / kappa}; frames are equally far apart."""
    run = evolve(Noisy(Still(), kappa=2.0), VonMises(1.2), t=0.8, frames=3, points=30)
    np.testing.assert_allclose(run.time, [0, 0.4, 0.8])
    k, theta = np.arange(1, 11), run.theta.values
    for frame, t in enumerate(run.time.values):
        modes = iv(k, 1.2) / iv(0, 1.2) * np.exp(-(k**2) * t / 2.0)
        expected = (1 + 2 * modes @ np.cos(np.outer(k, theta))) / (2 * np.pi)
        np.testing.assert_allclose(run.density[frame], expected, atol=1e-8)
    assert "energy" not in run and recipe.loads(run.attrs["recipe"])["times"] is None


def test_on_spheres_ripples_grow_and_heights_are_told():
    law = Noisy(Unnormalised(2.0), kappa=1.5)
    start = Ripple(k=1, amplitude=1e-5, mean=np.pi)
    run = evolve(law, start, times=[0.5], d=3, points=12, rtol=1e-8, atol=1e-14)
    rate = growth_rate(1, 2.0, 3, "USA", 1.5)
    assert float(run.order_parameter[0]) == pytest.approx(1e-5 / 3, rel=1e-9)
    growth = float(run.order_parameter[1] / run.order_parameter[0])
    assert growth == pytest.approx(np.exp(0.5 * rate), rel=1e-6)
    assert run.density.dims == ("time", "latitude")
    np.testing.assert_allclose(run.density @ run.weight, 1, rtol=1e-12)
    assert run.velocity.attrs["long_name"] == "d cos(latitude)/dt"
    assert {"energy", "free_energy"} <= set(run) and float(run.weight.sum()) > 12.5


@pytest.mark.filterwarnings("ignore:the grid does not resolve")
def test_a_run_stops_where_the_density_is_no_longer_resolved():
    """And keeps the frames until then, in which less than a thousandth of the modes is blurred."""
    run = evolve(SelfAttention(2.0), VonMises(2.0), t=8.0, frames=161, points=24, rtol=1e-6)
    assert "raise points" in run.attrs["stopped"] and run.time[-1] < 8
    assert f"t = {float(run.time[-1]):.10g}" in run.attrs["stopped"]
    assert float(run.blur.max()) < 1e-3 < 1.25 * float(run.blur[-1])
    with pytest.raises(flock.UserError, match="write points=48"):
        evolve(SelfAttention(2.0), VonMises(60.0), t=1.0, points=24)


def test_the_default_grid_is_refined_until_it_resolves_the_density():
    """256 points are 5e-6 off at the crest of this one."""
    law, start, when = Unnormalised(2.0), Ripple(2, 0.4), {"t": 1.2, "frames": 2}
    fine = evolve(law, start, points=768, **when)
    run = evolve(law, start, **when)
    assert run.attrs["resolution"].startswith("512 points") and "warning" not in run.attrs
    np.testing.assert_allclose(run.energy, fine.energy, rtol=1e-9)
    assert float(run.density.max()) == pytest.approx(float(fine.density.max()), rel=1e-9)
    again = flock.rerun(run)
    assert (again.density == run.density).all()
    assert evolve(law, Ripple(2, 0.01), t=0.1, frames=2).sizes["theta"] == 256


def test_a_grid_that_is_too_coarse_for_the_tolerance_is_warned_of():
    law, start, when = Unnormalised(2.0), Ripple(2, 0.4), {"t": 1.2, "frames": 2}
    with pytest.warns(RuntimeWarning, match=r"does not resolve .*256 points.*raise points"):
        run = evolve(law, start, points=256, **when)
    assert "256 points" in run.attrs["warning"]
    assert f"{float(run.blur.max()):.1e}" in run.attrs["resolution"]
    assert "warning" not in evolve(law, start, points=256, rtol=1e-6, **when).attrs


@pytest.mark.parametrize("k", [48, 96, 300, 512])
def test_a_start_between_the_nodes_is_refused(k):
    """On 48 points its crests look like those of a lower degree, or like none."""
    with pytest.raises(flock.UserError, match=rf"k must be at most 16, .* got {k}; write points="):
        evolve(SelfAttention(1.0), Ripple(k=k, amplitude=0.1), t=0.1, points=48)


class Table(Density):
    """Values on one grid only."""

    def relative(self, grid):
        return np.ones(48)


def test_a_density_that_knows_one_grid_only_is_refused():
    with pytest.raises(flock.UserError, match="start must be a density with a value at each node"):
        evolve(SelfAttention(1.0), Table(), t=0.1, points=48)


def test_blur_is_the_share_of_the_highest_tenth_of_the_degrees():
    degree = np.array([0, 1, 5, 9, 10, 5, 9, 10])
    modes = np.array([[1.0, 2, 3, 4, 0.5, 6, 7, -0.25], [3.0, 0, 0, 0, 0, 0, 0, 4.0]])
    first = np.sqrt((0.5**2 + 0.25**2) / np.sum(modes[0] ** 2))
    np.testing.assert_allclose(evolution.blur(modes, degree), [first, 0.8])


def described(space, f, times=(0.0, 1.0), end=1.0):
    modes = np.array([space.coefficients(row) for row in f])
    made = {"dynamics": SelfAttention()}
    fields = (np.asarray(f), 2 * np.asarray(f))
    return evolution._dataset(space, (np.array(times), modes, fields, {}), made, end)


def test_a_density_that_is_negative_somewhere_is_warned_of():
    """By more than 1e-8 of its largest value, in any frame."""
    circle = grid(2, 12)
    wave = np.cos(circle.coordinate)
    for low, warned in ((-3e-8, True), (-1.5e-8, False), (1e-9, False)):
        for frames in ([1 + 0 * wave, 1 + (1 - low) * wave], [1 + (1 - low) * wave, 1 + 0 * wave]):
            assert ("warning" in described(circle, frames).attrs) == warned
    thin = 1e9 * np.array([1 + wave, 1 + (1 + 1.5e-8) * wave])
    assert "warning" not in described(circle, thin).attrs


def test_frames_are_told_by_length_or_area():
    for d, surface in ((2, 2 * np.pi), (4, 2 * np.pi**2)):
        space = grid(d, 12)
        f = [VonMises(1.0).on(space), VonMises(2.0).on(space)]
        told = described(space, f)
        np.testing.assert_allclose(told.density, np.array(f) / surface, rtol=1e-12)
        np.testing.assert_allclose(told.velocity, 2 * np.array(f), rtol=1e-12)
        np.testing.assert_allclose(told.weight, space.weights * surface, rtol=1e-12)
        np.testing.assert_allclose(told.smallest, np.array(f).min(axis=1) / surface, rtol=1e-12)
        mean = [abs(space.weights @ (row * space.height(0.0))) for row in f]
        np.testing.assert_allclose(told.order_parameter, mean, rtol=1e-12)
        np.testing.assert_allclose(told[space.name], space.coordinate)
        assert "stopped" not in told.attrs
    late = described(space, f, times=(0.0, 0.5), end=0.75).attrs["stopped"]
    assert "at t = 0.5, the last time kept" in late


def test_what_cannot_be_run_is_refused():
    for options, words in (
        ({"t": 0.0}, "positive final time"),
        ({"t": -1.0}, "positive final time"),
        ({"t": np.inf}, "positive final time"),
        ({"t": np.nan}, "positive final time"),
        ({"frames": 1}, "frames"),
        ({"times": [-0.1, 1.0]}, "times from 0 on"),
        ({"times": [0.0]}, "times from 0 on"),
        ({"times": []}, "times"),
        ({"start": 3}, "start must be a Density"),
    ):
        with pytest.raises(flock.UserError, match=words):
            evolve(**{"dynamics": SelfAttention(), "start": Ripple(), "points": 12} | options)
    evolution._check_finite(np.ones((2, 2)), SelfAttention())
    with pytest.raises(SimulationError, match="left the numbers"):
        evolution._check_finite(np.array([1.0, np.nan]), SelfAttention())


def test_a_solver_that_gives_up_is_told(monkeypatch):
    given_up = type("Solution", (), {"status": -1, "message": "step size too small"})
    monkeypatch.setattr(evolution, "solve_ivp", lambda *_, **__: given_up)
    with pytest.raises(SimulationError, match="gave up: step size too small"):
        evolve(SelfAttention(), Ripple(), t=1.0, points=12)


def test_room_is_asked_for_all_frames_and_nodes(monkeypatch):
    """Three numbers of eight bytes for each: the density, the velocity, and the modes."""
    asked = []
    monkeypatch.setattr(evolution, "require_memory", lambda size, *_: asked.append(size))
    evolution._require_room(grid(2, 20), 70)
    assert asked == [3 * 8 * 20 * 70]
