"""Stationary measures and their branches against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import iv

import tokenflock as flock
from tokenflock.dynamics import Attention, Noisy, SelfAttention, Unnormalised
from tokenflock.meanfield import Ripple, VonMises, branch, evolve, stationary
from tokenflock.meanfield.continuing import _stable
from tokenflock.theory import critical_noise, growth_rate, tricritical_beta


@pytest.fixture(scope="module")
def folded():
    """USA on the circle at beta = 4, beyond the tricritical one."""
    return branch(Noisy(Unnormalised(beta=4.0)), within=(0.35, 0.45), points=128, step=0.1)


def formula(beta, kappa, density, theta):
    """rho ~ exp((2 kappa / beta) sum_k I_k m_k cos k theta) with the moments m of a density."""
    k = np.arange(1, 25)
    waves = np.cos(np.outer(k, theta))
    m = waves @ density * (2 * np.pi / len(theta))
    rho = np.exp(2 * kappa / beta * (iv(k, beta) * m) @ waves)
    return rho / (rho.sum() * 2 * np.pi / len(theta))


def test_a_branch_leaves_the_uniform_measure_where_theory_says(folded):
    assert abs(float(folded.leaves) / critical_noise(4.0, 2) - 1) < 1e-12
    assert folded.order_parameter[0] == 0
    low, high = folded.level < folded.leaves, folded.level > folded.leaves
    assert (folded.uniform_rate[low] < 0).all() and (folded.uniform_rate[high] > 0).all()


def test_every_state_of_a_branch_is_stationary(folded):
    """Fixed points of the self-consistent formula, which no line of the search knows."""
    theta = folded.theta.values
    for point in range(1, folded.sizes["point"], 5):
        rho = folded.density.values[point]
        again = formula(4.0, float(folded.kappa[point]), rho, theta)
        assert np.abs(rho - again).max() < 1e-9
    mass = folded.density @ folded.weight
    assert np.allclose(mass, 1, atol=1e-13)


def test_the_fold_is_where_kappa_is_least_and_a_rate_vanishes(folded):
    """Once by brute force: kappa of the state with given m_1, from the formula alone."""
    k = np.arange(1, 25)
    theta = 2 * np.pi * np.arange(256) / 256
    waves = np.cos(np.outer(k, theta))

    def moments(kappa, m):
        rho = np.exp(2 * kappa / 4.0 * (iv(k, 4.0) * m) @ waves)
        return waves @ rho / rho.sum()

    def kappa_of(m1):
        m, kappa = m1 ** (k**2 / 1.0), 0.4
        for _ in range(400):
            kappa = brentq(lambda kappa, m=m: moments(kappa, m)[0] - m1, 0.05, 3)
            m = np.append(m1, moments(kappa, m)[1:])
        return kappa

    at = float(folded.fold_order_parameter[0])
    near = [kappa_of(at + shift) for shift in (-0.02, 0.0, 0.02)]
    assert folded.fold.size == 1
    assert abs(near[1] - float(folded.fold[0])) < 1e-9
    assert near[1] < near[0] and near[1] < near[2]
    assert abs(near[2] - near[0]) < 1e-4  # even about the fold up to third order


def test_stability_changes_at_the_fold_only(folded):
    before = folded.order_parameter < folded.fold_order_parameter[0]
    assert (folded.stable[before] == 0).all()
    assert (folded.stable[~before] == 1).all()
    assert folded.stable.values.any() and not folded.stable.values.all()


def test_order_takes_over_where_free_energies_are_equal(folded):
    """The jump of the order parameter at beta = 4, measured independently: 0.669 at 0.9551."""
    assert folded.transition.size == 1
    assert abs(float(folded.transition[0] / folded.leaves) - 0.9551) < 1e-4
    assert abs(float(folded.transition_order_parameter[0]) - 0.669) < 1e-3
    ends = [float(folded.fold[0]), float(folded.leaves)]
    assert ends[0] < float(folded.transition[0]) < ends[1]


def test_a_small_beta_is_the_noisy_kuramoto_model():
    """rho ~ e^{kappa m cos}, m = I_1 / I_0 (kappa m): a branch without folds from kappa = 2."""
    found = branch(Noisy(SelfAttention(beta=0.0)), within=(1.5, 5.0), points=64, step=0.2)
    m, kappa = found.order_parameter.values, found.kappa.values
    assert abs(float(found.leaves) - 2) < 1e-12
    assert np.allclose(m, iv(1, kappa * m) / iv(0, kappa * m), atol=1e-10)
    assert found.fold.size == 0 and (found.stable == 1).all()
    assert (found.rate[kappa > 3, 0] < -0.1).all()  # the rotation, whose rate is 0, does not count
    assert abs(kappa[-1] - 5.0) < 1e-12  # to the end of the range


@pytest.mark.parametrize(("d", "points"), [(3, 24), (8, 24)])
def test_on_spheres_the_branch_bends_as_the_expansion_says(d, points):
    """kappa_c/kappa = 1 + (d/(d+2)) ((d-1) r/(1-r) - 1) m_1^2 + ..., r = lambda_2/lambda_1; the
    sign changes at the tricritical beta.
    """
    for beta in (0.7 * tricritical_beta(d), 1.3 * tricritical_beta(d)):
        critical = float(critical_noise(beta, d))
        law = Noisy(Unnormalised(beta=float(beta)))
        span = (0.99 * critical, 1.01 * critical)
        found = branch(law, within=span, d=d, points=points, step=0.04, most=8)
        m, kappa = found.order_parameter.values[2:5], found.kappa.values[2:5]
        bends = (critical / kappa - 1) / m**2
        r = iv(d / 2 + 1, beta) / iv(d / 2, beta)
        expected = d / (d + 2) * ((d - 1) * r / (1 - r) - 1)
        slope = np.polyfit(m**2, bends, 1)[1]
        assert abs(slope / expected - 1) < 5e-3
        assert int(found.stable[3]) == (beta < tricritical_beta(d))


def test_rates_of_the_uniform_measure_are_growth_rates():
    law = Noisy(Unnormalised(beta=3.0), kappa=0.5)
    flat = stationary(law, Ripple(k=1, amplitude=1e-4), points=64)
    k = np.arange(1, 5)
    expected = np.repeat(np.sort(growth_rate(k, 3.0, 2, "USA", 0.5))[::-1], 2)
    assert np.allclose(flat.rate[:4], expected[:4], atol=1e-9)
    assert float(flat.order_parameter) < 1e-10


def test_long_runs_end_in_the_stable_state_and_newton_finds_the_unstable_one_too():
    law = Noisy(SelfAttention(beta=2.0), kappa=6.0)
    run = evolve(law, VonMises(2.0), t=60, frames=3, points=64, rtol=1e-7, atol=1e-10)
    state = stationary(law, run, points=64)
    assert np.abs(state.density - run.density[-1]).max() < 1e-7
    assert int(state.stable) == 1
    turned = stationary(law, VonMises(2.0, mean=np.pi), points=64)  # about the other pole
    assert float(turned.order_parameter) == pytest.approx(float(state.order_parameter))
    flat = stationary(law, Ripple(k=1, amplitude=1e-3), points=64)
    assert int(flat.stable) == 0 and float(flat.order_parameter) < 1e-10


def test_a_branch_from_a_state_in_both_directions_and_along_beta():
    law = Noisy(Unnormalised(beta=1.0), kappa=3.0)
    found = branch(law, "beta", within=(0.5, 1.3), start=VonMises(2.0), points=96, step=0.2)
    beta = found.beta.values
    assert beta.min() == pytest.approx(0.5) and beta.max() == pytest.approx(1.3)
    assert (np.diff(beta) > 0).all() or (np.diff(beta) < 0).all()
    for point in (0, -1):
        rho = found.density.values[point]
        again = formula(float(beta[point]), 3.0, rho, found.theta.values)
        assert np.abs(rho - again).max() < 1e-9


def test_a_branch_survives_a_file_and_is_drawn(folded, tmp_path):
    from tokenflock.plots import bifurcation, save_figure

    again = flock.load(flock.save(folded, tmp_path / "b.nc"))
    assert (again.density == folded.density).all()
    ax = bifurcation(again)
    styles = {line.get_label(): line for line in ax.lines}
    assert styles["fold"].get_xdata()[0] == float(folded.fold[0])
    stable = styles["ordered, stable"].get_ydata()
    assert stable.min() >= folded.order_parameter.values[folded.stable.values == 1].min()
    assert styles["ordered, unstable"].is_dashed() and not styles["ordered, stable"].is_dashed()
    save_figure(ax, tmp_path / "b.png")


def test_what_cannot_be_followed_is_refused():
    with pytest.raises(flock.UserError, match="with noise"):
        stationary(SelfAttention(), VonMises(1.0))
    with pytest.raises(flock.UserError, match="begins to grow"):
        branch(Noisy(Unnormalised(beta=4.0)), within=(1.0, 2.0), points=32)
    with pytest.raises(flock.UserError, match="number of the law"):
        branch(Noisy(Unnormalised(beta=4.0)), "gamma", within=(1.0, 2.0), points=32)
    with pytest.raises(flock.UserError, match="not isotropic"):
        branch(Noisy(Attention(V=[[1.0, 0.0], [0.0, 2.0]])), within=(1.0, 2.0), points=32)
    with pytest.raises(flock.UserError, match="symmetric about the angle 0"):
        stationary(Noisy(), VonMises(2.0, mean=1.0), points=64)


@pytest.mark.parametrize(
    ("beta", "within", "step"),
    [(4.0, (0.35, 0.45), 1e-4), (4.0, (0.35, 0.45), 2e-4), (1.0, (1.5, 3.0), 2e-4)],
)
def test_near_the_uniform_measure_rounding_is_no_transition(beta, within, step):
    """Free energies differ by the fourth power of the amplitude: at first not at all."""
    near = branch(Noisy(Unnormalised(beta=beta)), within=within, points=64, step=step, most=10)
    assert near.transition.size == 0 and near.fold.size == 0


def test_a_state_whose_rate_vanishes_is_as_stable_as_the_next_and_the_last_one_is():
    rates = np.array([0.5, -0.5, 0.0, 0.0, 0.5, 0.0, 0.0, -0.5, 0.0])
    assert _stable(rates).tolist() == [0, 1, 0, 0, 0, 1, 1, 1, 1]
