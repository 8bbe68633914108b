"""The right-hand side of the continuity equation and its energies, against sums in plain arrays."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import roots_jacobi

import tokenflock as flock
from tokenflock.dynamics import (
    Burger,
    Causal,
    Clock,
    Fast,
    MultiHead,
    Noisy,
    SelfAttention,
    Sinkhorn,
    Unnormalised,
)
from tokenflock.dynamics.dynamics import MeanField
from tokenflock.meanfield import Mixture, Ripple, VonMises, drift, grid
from tokenflock.meanfield.continuity import Tables, check, slope, tables
from tokenflock.meanfield.functionals import functionals
from tokenflock.precision import cast, precision

TWO = Mixture([VonMises(2.0), VonMises(1.0, mean=np.pi)], masses=[2, 1])
LEANING = Mixture([VonMises(1.0, mean=0.7), Ripple(2, 0.4, mean=0.2)], masses=[1, 2])


class Louder(MeanField):
    """The mean of all tokens, (1 + 3 t) times."""

    def field(self, t, q, x, w):
        return (1 + 3 * t) * jnp.broadcast_to(w @ x, q.shape)


def seen(space, beta):
    """(e^{beta <x_i, y>}, how much higher than x_i moving to y leads, weight) of the points y of
    all rings.
    """
    p, share = roots_jacobi(60, (space.d - 4) / 2, (space.d - 4) / 2)
    u, c = space.nodes, np.sqrt(1 - space.nodes**2)
    inner = np.multiply.outer(np.outer(u, u), np.ones(60)) + np.multiply.outer(np.outer(c, c), p)
    rise = u[:, None] - inner * u[:, None, None]
    return np.exp(beta * inner), rise, share / share.sum()


def scaling(K, w, rounds):
    """u of Sinkhorn's attention after some rounds."""
    f = -0.5 * np.log(K @ w)
    for _ in range(rounds):
        f = 0.5 * (f - np.log(K @ (w * np.exp(f))))
    return np.exp(f)


def test_on_the_circle_a_measure_moves_as_its_tokens_do():
    space, beta = grid(2, 24), 2.5
    f, theta = LEANING.on(space), space.coordinate
    far = theta - theta[:, None]
    K = np.exp(beta * np.cos(far)) * f / 24
    expected = np.sum(K * np.sin(far), axis=1)
    law = Unnormalised(beta, repulsive=True)
    np.testing.assert_allclose(drift(law, f, space), -expected, atol=1e-12)
    whole = expected / K.sum(axis=1)
    np.testing.assert_allclose(drift(Noisy(SelfAttention(beta)), f, space), whole, atol=1e-12)


def test_a_drift_is_that_of_time_zero():
    space = grid(2, 24)
    expected = -0.25 * np.sin(space.coordinate)
    found = drift(Louder(), Ripple(1, 0.5).on(space), space)
    np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.parametrize("d", [3, 6])
def test_on_spheres_a_measure_moves_as_its_rings_do(d):
    space, beta = grid(d, 16), 3.0
    f = TWO.on(space)
    w = space.weights * f
    E, rise, share = seen(space, beta)
    plain = np.einsum("ijr,ijr,r,j->i", E, rise, share, w)
    K = E @ share
    np.testing.assert_allclose(drift(Unnormalised(beta), f, space), plain, atol=1e-10)
    repelled = drift(Noisy(SelfAttention(beta, repulsive=True)), f, space)
    np.testing.assert_allclose(repelled, -plain / (K @ w), atol=1e-11)
    u = scaling(K, w, 2)
    both = np.einsum("ijr,ijr,r,j->i", E, rise, share, w * u) / (K @ (w * u))
    away = drift(Sinkhorn(beta, rounds=2, repulsive=True), f, space)
    np.testing.assert_allclose(away, -both, atol=1e-11)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("d", [2, 5])
def test_modes_change_by_the_weak_form(d):
    """da_k/dt = int f X phi_k' - k (k + d - 2) a_k / kappa."""
    space, kappa = grid(d, 24 if d == 2 else 16), 1.7
    law = Unnormalised(1.5)
    density = (LEANING if d == 2 else TWO).on(space)
    a = space.coefficients(density)
    f = space.tables[0] @ a
    moved = space.tables[1].T @ (space.weights * f * drift(law, f, space))
    table = tables(law, space)
    found = slope(law, jnp.zeros(()), table, jnp.asarray(a))
    np.testing.assert_allclose(found, moved, atol=1e-12)
    shaken = slope(Noisy(law, kappa=kappa), jnp.zeros(()), table, jnp.asarray(a))
    k = space.degree
    np.testing.assert_allclose(shaken, moved - k * (k + d - 2) / kappa * a, atol=1e-11)
    assert shaken[0] == 0


@pytest.mark.usefixtures("double")
def test_a_ring_has_as_many_nodes_as_its_kernel_needs():
    sizes = [
        tables(law, grid(5, 12)).ring.shape
        for law in (Noisy(SelfAttention(0.5)), Unnormalised(4.0), Fast(SelfAttention(30.0)))
    ]
    assert sizes == [(2, 8), (2, 13), (2, 28)]
    unknown = tables(SelfAttention(jnp.asarray(4.0)), grid(5, 12)).ring  # as for beta = 1
    assert unknown.shape == tables(SelfAttention(1.0), grid(5, 12)).ring.shape == (2, 9)
    flat = tables(SelfAttention(), grid(2, 12))
    assert flat.rings is None and isinstance(flat, Tables)
    with pytest.raises(ValueError, match="no rings"):
        _ = flat.ring


@pytest.mark.parametrize(
    ("law", "d", "words"),
    [
        (Causal(), 2, "acts through the measure"),
        (Noisy(Causal()), 2, "acts through the measure"),
        (Burger(D=np.eye(3)), 2, "d must be 3"),
        (Burger(D=np.diag([1.0, 2.0, 3.0])), 3, "SelfAttention"),
        (Louder(), 3, "SelfAttention"),
        (MultiHead.example(6, 3), 3, "SelfAttention"),
    ],
    ids=["causal", "noisy", "dimension", "anisotropic", "field", "heads"],
)
def test_laws_that_do_not_act_through_a_measure_here_are_refused(law, d, words):
    with pytest.raises(flock.UserError, match=words):
        check(law, grid(d, 12))


def test_laws_that_do_act_through_a_measure_are_not_refused():
    for law in (Louder(), Burger(D=np.eye(2)), Noisy(SelfAttention())):
        check(law, grid(2, 12))
    for law in (SelfAttention(), Noisy(Unnormalised()), Sinkhorn(), Fast(SelfAttention())):
        check(law, grid(3, 12))


def told(law, space, modes):
    with precision("float64"):
        return functionals(cast(law, "float64"), law, space, tables(law, space), modes)


@pytest.mark.parametrize(
    "law",
    [SelfAttention(2.0, repulsive=True), Unnormalised(1.5, Clock.PEAK)],
    ids=repr,
)
def test_on_the_circle_the_energy_changes_by_the_dissipation(law):
    """E = (1/2 beta) sum_ij w_i w_j e^{beta <x_i, x_j>}, and dE/dt along the flow."""
    space, h = grid(2, 24), 1e-5
    a = space.coefficients(LEANING.on(space))
    with precision("float64"):
        moved = np.asarray(slope(law, jnp.zeros(()), tables(law, space), jnp.asarray(a)))
    values = told(law, space, np.stack([a - h * moved, a, a + h * moved]))
    assert set(values) == {"energy", "dissipation"}
    w = space.weights * (space.tables[0] @ a)
    K = np.exp(law.beta * np.cos(space.coordinate - space.coordinate[:, None]))
    assert values["energy"][1] == pytest.approx(w @ K @ w / (2 * law.beta), rel=1e-12)
    rate = (values["energy"][2] - values["energy"][0]) / (2 * h)
    assert values["dissipation"][1] == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("d", [3, 5])
def test_on_spheres_energies_are_sums_over_rings(d):
    """(1/2 beta) int int e^{beta <x, y>}; without temperature half the squared mean; Sinkhorn's
    -(1/beta) int log u.
    """
    space, beta = grid(d, 16), 1.8
    modes = np.stack([space.coefficients(start.on(space)) for start in (TWO, VonMises(1.5))])
    masses = space.weights * (modes @ space.tables[0].T)
    E, _, share = seen(space, beta)
    K = E @ share
    expected = [w @ K @ w / (2 * beta) for w in masses]
    found = told(SelfAttention(beta), space, modes)
    assert set(found) == {"energy"}
    np.testing.assert_allclose(found["energy"], expected, rtol=1e-9)
    found = told(SelfAttention(0.0), space, modes)["energy"]
    np.testing.assert_allclose(found, (masses @ space.nodes) ** 2 / 2, rtol=1e-9)
    transport = [-w @ np.log(scaling(K, w, 3)) / beta for w in masses]
    found = told(Sinkhorn(beta, rounds=3), space, modes)["energy"]
    np.testing.assert_allclose(found, transport, rtol=1e-9)


def test_the_free_energy_is_the_energy_less_the_entropy():
    """E - (1/kappa) int rho log rho, in the clock of the peak with e^beta times the entropy; SA has
    none, and a law that is no gradient flow nothing at all.
    """
    kappa, peak = 2.5, (Unnormalised(1.5, Clock.PEAK), np.exp(1.5))
    laws = {2: [peak], 4: [peak, (Unnormalised(1.5), 1.0), (Sinkhorn(1.5), 1.0)]}
    for d, points in ((2, 24), (4, 16)):
        space = grid(d, points)
        modes = space.coefficients((LEANING if d == 2 else TWO).on(space))[None]
        f = space.tables[0] @ modes[0]
        entropy = space.weights @ (f * np.log(f))
        for law, clock in laws[d]:
            found = told(Noisy(law, kappa=kappa), space, modes)
            expected = found["energy"] - clock * entropy / kappa
            np.testing.assert_allclose(found["free_energy"], expected, rtol=1e-12)
        assert "free_energy" not in told(peak[0], space, modes)
    assert set(told(Noisy(SelfAttention(1.5)), space, modes)) == {"energy"}
    assert told(Louder(), grid(2, 12), np.eye(1, 9)) == {}


def test_where_a_density_is_cut_off_below_zero_its_entropy_is_a_number():
    space = grid(2, 24)
    modes = space.coefficients(1 + 1.5 * np.cos(space.coordinate))[None]
    f = np.maximum(space.tables[0] @ modes[0], 0)
    entropy = np.sum(space.weights * f * np.log(f, where=f > 0, out=np.zeros_like(f)))
    found = told(Noisy(Unnormalised(1.5, Clock.PEAK), kappa=2.0), space, modes)
    expected = found["energy"] - np.exp(1.5) * entropy / 2
    np.testing.assert_allclose(found["free_energy"], expected, rtol=1e-12)
