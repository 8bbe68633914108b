"""The equation of measures at rest: its modes, its derivatives, its rates, and its paths."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Attention, Noisy, SelfAttention, Unnormalised
from tokenflock.meanfield import VonMises, branch, grid, resting, stationary
from tokenflock.meanfield.equilibria import changed, equilibrium, number
from tokenflock.theory import growth_rate

LAW = Noisy(Unnormalised(1.5), kappa=2.0)


@pytest.fixture(scope="module")
def double():
    from tokenflock.precision import precision

    with precision("float64"):
        yield


@pytest.fixture(scope="module")
def circle(double):
    return equilibrium(LAW, "beta", 2, 24, 4.0)


@pytest.fixture(scope="module")
def sphere(double):
    return equilibrium(LAW, "kappa", 4, 9)


def test_even_modes_are_cosines_and_all_modes_of_latitudes(circle, sphere):
    np.testing.assert_array_equal(circle.even, np.arange(1, 9))
    np.testing.assert_array_equal(circle.odd, np.arange(9, 17))
    np.testing.assert_array_equal(sphere.even, np.arange(1, 6))
    assert len(sphere.odd) == 0
    assert [circle.mode(k) for k in (1, 3, 8)] == [0, 2, 7] and sphere.mode(2) == 1
    np.testing.assert_array_equal(circle.full(np.arange(2.0, 10)), [1, *range(2, 10), *[0] * 8])
    assert circle.order_parameter([-0.5, 2.0]) == pytest.approx(0.5 / np.sqrt(2))
    assert sphere.order_parameter([0.5, 2.0]) == pytest.approx(0.25)


def test_a_number_lives_in_the_law_or_in_the_one_it_is_built_around(circle, sphere):
    assert number(LAW, "kappa") == ("kappa",) and number(LAW, "beta") == ("base", "beta")
    assert circle.value == 1.5 and sphere.value == 2.0
    assert circle.at(3.0) == Noisy(Unnormalised(3.0), kappa=2.0)
    assert sphere.at(3.0).kappa == 3.0 and changed(LAW, (), 9.0) is LAW
    with pytest.raises(flock.UserError, match="number of the law"):
        number(LAW, "clock")
    for wrong in (SelfAttention(), "law"):
        with pytest.raises(flock.UserError, match="a law with noise"):
            equilibrium(wrong, None, 2, 24)


def test_the_tables_serve_the_largest_parameter(double):
    rings = [equilibrium(LAW, "beta", 3, 9, p).table.ring.shape[1] for p in (None, 1.5, 30.0)]
    assert rings[0] == rings[1] < rings[2]
    assert equilibrium(LAW, None, 3, 9).value == 0


@pytest.mark.parametrize("which", ["circle", "sphere"])
def test_the_derivative_is_that_of_the_residual(which, request):
    """With respect to every mode and to the parameter; no mode is zero at a generic point."""
    problem = request.getfixturevalue(which)
    a = 0.3 * np.random.default_rng(0).normal(size=len(problem.even))
    z, h = np.append(a, problem.value), 1e-6
    F, D = problem.residual(a, problem.value)
    slopes = []
    for shift in h * np.eye(len(z)):
        ends = [problem.residual((z + s * shift)[:-1], (z + s * shift)[-1])[0] for s in (1, -1)]
        slopes.append((ends[0] - ends[1]) / (2 * h))
    np.testing.assert_allclose(D, np.transpose(slopes), atol=1e-7)
    assert np.abs(F).min() > 1e-3


@pytest.mark.parametrize("which", ["circle", "sphere"])
def test_the_uniform_measure_has_the_rates_of_the_theory(which, request):
    problem = request.getfixturevalue(which)
    d, beta = problem.space.d, 2.2 if which == "circle" else 1.5
    kappa = 2.0 if which == "circle" else 0.7
    rates = problem.rates(np.zeros(len(problem.even)), beta if which == "circle" else kappa)
    k = np.arange(1, len(problem.even) + 1)
    expected = np.sort(np.repeat(growth_rate(k, beta, d, "USA", kappa), 2 if d == 2 else 1))
    np.testing.assert_allclose(rates, expected[::-1], rtol=1e-5, atol=1e-6)


def test_the_rotation_of_a_measure_is_not_counted(circle):
    a = newton_state(circle)
    rates = circle.rates(a, 1.5)
    assert len(rates) == 15 and (rates[:-1] >= rates[1:]).all() and rates[0] < -0.1
    flat = circle.rates(np.zeros(8), 1.5)
    tiny = circle.rates(np.full(8, -1e-6), 1.5)
    assert len(flat) == 16 and len(tiny) == 15
    aside = equilibrium(Noisy(Attention(V=[[1.0, 0.0], [0.0, 2.0]])), None, 2, 24)
    assert len(aside.rates(a, 0.0)) == 16


def newton_state(problem):
    from tokenflock.meanfield.equilibria import newton

    return newton(problem, problem.guess(VonMises(2.0)), 1.5)


def test_a_guess_is_a_density_or_the_last_frame_of_a_measure(circle):
    f = VonMises(2.0).on(circle.space)
    expected = circle.space.coefficients(f)[circle.even]
    np.testing.assert_allclose(circle.guess(VonMises(2.0)), expected)
    told = xr.Dataset({"density": (("time", "theta"), [0 * f, f, f / np.pi / 2])})
    np.testing.assert_allclose(circle.guess(told), expected, rtol=1e-9)
    np.testing.assert_allclose(circle.guess(told.isel(time=2)), expected, rtol=1e-9)
    mirrored = {"mean": 1e-6, "kappa": 0.5}
    circle.guess(VonMises(**mirrored))
    for wrong, words in (
        (VonMises(2.0, mean=1e-4), "symmetric about"),
        (VonMises(2.0, mean=-1e-4), "symmetric about"),
        (told.isel(theta=slice(5)), "at 24 points"),
        (xr.Dataset(), "with `density`"),
        (3, "a density such as"),
    ):
        with pytest.raises(flock.UserError, match=words):
            circle.guess(wrong)


def test_a_stationary_measure_tells_what_it_is():
    law = Noisy(Unnormalised(1.5), kappa=1.7)
    state = stationary(law, VonMises(1.0), points=48)
    f = state.density.values * 2 * np.pi
    assert float(state.density @ state.weight) == pytest.approx(1, rel=1e-12)
    mean = float((state.density * np.cos(state.theta)) @ state.weight)
    assert float(state.order_parameter) == pytest.approx(mean, rel=1e-9)
    assert state.rate.size == 8 and int(state.stable) == int(state.rate[0] < 0)
    theta = state.theta.values
    K = np.exp(1.5 * np.cos(theta - theta[:, None]))
    expected = f @ K @ f / 48**2 / 3.0 - np.mean(f * np.log(f)) / 1.7
    assert float(state.free_energy) == pytest.approx(expected, rel=1e-9)
    assert "warning" not in state.attrs and "theta" not in state.data_vars
    assert {"density", "weight", "rate", "stable", "free_energy"} <= set(state.data_vars)
    again = stationary(law, state, points=48)
    np.testing.assert_allclose(again.density, state.density, atol=1e-10)
    sharp = stationary(Noisy(Unnormalised(1.5), kappa=40.0), VonMises(40.0), points=48)
    space = grid(2, 48)
    a = space.coefficients(sharp.density.values * 2 * np.pi)
    smear = np.sqrt(np.sum(a[space.degree > 14.4] ** 2) / np.sum(a**2))
    assert f"hardly resolved (blur {smear:.1g})" in sharp.attrs["warning"]


def test_a_rate_that_is_rounding_does_not_make_a_state_unstable(circle):
    for top, stable in ((1.1e-9, 0), (9e-10, 1), (-0.1, 1)):

        class Known:
            space, table = circle.space, circle.table

            def rates(self, a, p, top=top):
                return np.append(top, np.arange(-1.0, -11, -1))

            def at(self, p):
                return Noisy(SelfAttention(1.0))

            full, order_parameter = circle.full, circle.order_parameter

        told = resting._variables(Known(), np.zeros(8))
        assert int(told["stable"][1]) == stable and len(told["rate"][1]) == 8
        assert "free_energy" not in told  # SA has none


def test_from_an_even_ripple_on_a_sphere_a_branch_goes_up_and_down():
    """Prolate and oblate states of degree 2 on S^2: one line through the uniform measure."""
    shares = []
    law = Noisy(Unnormalised(3.0))
    found = branch(
        law, within=(0.5, 3.0), start=2, d=3, points=30, step=0.1, most=10, progress=shares.append
    )
    rate = growth_rate(2, 3.0, 3, "USA", float(found.leaves))
    assert abs(float(rate)) < 1e-9 and found.sizes["point"] == 9
    middle = found.isel(point=4)
    np.testing.assert_allclose(middle.density, 1 / (4 * np.pi), rtol=1e-12)
    assert float(middle.kappa) == pytest.approx(float(found.leaves), rel=1e-12)
    pole = found.density.values[:, 0] - 1 / (4 * np.pi)
    assert (pole[:4] < 0).all() and (pole[5:] > 0).all()
    assert "5 points; raise most" in found.attrs["stopped"] and found.attrs["parameter"] == "kappa"
    np.testing.assert_allclose(shares, np.concatenate([np.arange(2, 6), np.arange(7, 11)]) / 10)
    assert {"density", "order_parameter", "stable"} <= set(found.data_vars)
    assert set(found.coords) >= {"kappa", "latitude"} and "kappa" not in found.data_vars
    assert found.rate.shape == (9, 8) and found.gain[4] == 0
    np.testing.assert_allclose(found.level, np.linspace(0.5, 3.0, 41))


def test_a_branch_refuses_a_range_or_a_step_that_is_none():
    for options, words in (
        ({"within": (2.0, 1.0)}, "low, high"),
        ({"within": (1.0, 1.0)}, "low, high"),
        ({"within": (0.5, 3.0), "step": 0.0}, "positive"),
        ({"within": (0.5, 3.0), "step": -0.1}, "positive"),
        ({"within": (0.5, 3.0), "start": 8}, "that the grid has"),
    ):
        with pytest.raises(flock.UserError, match=words):
            branch(LAW, points=24, **options)
