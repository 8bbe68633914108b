"""Two tokens and two clusters: the times at which they meet, their orbits, and the last approach to
consensus.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import SelfAttention, Unnormalised
from tokenflock.dynamics.unnormalised import Clock
from tokenflock.events import Consensus
from tokenflock.observables import ConsensusDistance, InnerProducts
from tokenflock.solvers import RK4, Adaptive, Layer
from tokenflock.starts import Given, Uniform
from tokenflock.theory import merging_time, pair_time, weighted_pair_speed

pytestmark = pytest.mark.usefixtures("float64")

TIGHT = Adaptive(rtol=1e-12, atol=1e-14)


def at_angle(phi, w=(1, 1)):
    return Given([[1.0, 0.0], [np.cos(phi), np.sin(phi)]], w=w)


def meeting(law, start, delta, t):
    """The time at which the cosine reaches 1 - delta."""
    run = flock.simulate(law, start, t=t, frames=2, solver=TIGHT, until=Consensus(delta))
    return float(run.time[-1])


# (beta, time from pi/3, pi/2, 2 pi/3, 3.0 to cosine 0.999) for two equal clusters under SA.
MEETINGS = [
    (1.0, [3.41569266, 4.27106768, 5.52605223, 13.40225459]),
    (2.0, [3.63446762, 5.16326482, 9.00983733, 55.20047870]),
    (4.0, [4.33921889, 10.83120701, 61.32165130, 2108.50717496]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "times"), MEETINGS)
def test_meeting_times_of_two_equal_clusters(beta, times):
    angles = [np.pi / 3, np.pi / 2, 2 * np.pi / 3, 3.0]
    found = [
        meeting(SelfAttention(beta), at_angle(phi), 1e-3, 2 * t) for phi, t in zip(angles, times)
    ]
    np.testing.assert_allclose(found, times, rtol=1e-8)
    np.testing.assert_allclose(found, merging_time(angles, beta, 1e-3), rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "half", "end"),
    [
        (SelfAttention(1.0), 0.855375023305, 3.115256494686),
        (Unnormalised(1.0), 0.427271333721, 1.318428626307),
    ],
)
def test_two_token_times_from_a_right_angle(law, half, end):
    """At beta = 1 the cosine passes 0.5 and 0.99 at the times of the exponential integrals."""
    start = at_angle(np.pi / 2)
    np.testing.assert_allclose(meeting(law, start, 0.5, 9.0), half, rtol=1e-8)
    np.testing.assert_allclose(meeting(law, start, 0.01, 9.0), end, rtol=1e-8)


def test_two_tokens_at_beta_zero():
    """gamma = tanh(t + artanh gamma_0), on the circle and not only there."""
    x = np.array([[0.6, 0.0, 0.8], [-0.8, 0.36, 0.48]])
    run = flock.simulate(
        SelfAttention(0.0), x, t=3.0, frames=31, solver=RK4(h=0.01), observe=[InnerProducts()]
    )
    expected = np.tanh(run.time + np.arctanh(x[0] @ x[1]))
    np.testing.assert_allclose(run.inner_products[:, 0, 1], expected, atol=1e-8)


@pytest.mark.parametrize("m", [0.25, 0.9])
def test_two_clusters_of_unequal_mass(m):
    """Masses, as weights and as copies of a token."""
    beta, phi = 3.0, 2.0
    expected = merging_time(phi, beta, 1e-3, m)
    assert abs(expected - merging_time(phi, beta, 1e-3)) > 0.5
    np.testing.assert_allclose(
        meeting(SelfAttention(beta), at_angle(phi, (m, 1 - m)), 1e-3, 99.0), expected, rtol=1e-8
    )


def test_speed_of_a_weighted_pair_and_of_copies():
    beta, phi = 3.0, 1.1
    x = np.array([[1.0, 0.0], [np.cos(phi), np.sin(phi)]])
    turned = np.array([[0.0, 1.0], [-np.sin(phi), np.cos(phi)]])
    pair = np.asarray(
        SelfAttention(beta).velocity(jnp.zeros(()), jnp.asarray(x), jnp.array([0.25, 0.75]))
    )
    speed = (pair[1] * turned[1]).sum() - (pair[0] * turned[0]).sum()
    np.testing.assert_allclose(speed, weighted_pair_speed(phi, beta, 0.25), rtol=1e-12)
    copies = SelfAttention(beta).velocity(
        jnp.zeros(()), jnp.asarray(x[[0, 1, 1, 1]]), jnp.full(4, 0.25)
    )
    np.testing.assert_allclose(copies, pair[[0, 1, 1, 1]], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("m", [0.5, 0.25])
def test_pairing_clock(m):
    """In the clock ds = e^{-beta (1 - cos phi)} dt, dphi/ds tends to -(m'/m + m/m') sin(phi) at
    large beta.
    """
    beta = 20.0
    for phi in (1.2, 2.0):
        x = np.array([[1.0, 0.0], [np.cos(phi), np.sin(phi)]])
        v = np.asarray(
            SelfAttention(beta).velocity(jnp.zeros(()), jnp.asarray(x), jnp.array([m, 1 - m]))
        )
        speed = -(v[0] @ x[1] + x[0] @ v[1]) / np.sin(phi) * np.exp(beta * (1 - np.cos(phi)))
        np.testing.assert_allclose(speed, -((1 - m) / m + m / (1 - m)) * np.sin(phi), rtol=1e-4)


def test_peak_clock_is_a_change_of_time():
    """x_PEAK(e^beta t) = x_PAPER(t)."""
    beta, start = 2.5, Uniform(n=6, d=3)
    paper = flock.simulate(Unnormalised(beta), start, t=1.0, frames=3, solver=RK4(h=0.005))
    peak = flock.simulate(
        Unnormalised(beta, Clock.PEAK),
        start,
        t=np.exp(beta),
        frames=3,
        solver=RK4(h=np.exp(beta) / 300),
    )
    assert np.abs(np.diff(paper.x, axis=0)).max() > 0.1
    np.testing.assert_allclose(peak.x, paper.x, atol=1e-9)


def direction_gap(n):
    """How far the velocities of SA and USA are from parallel, as points of the n-fold product of
    spheres.
    """
    x = np.random.default_rng(n).normal(size=(n, 4))
    x = jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))
    pair = np.stack(
        [
            law(2.0).velocity(jnp.zeros(()), x, jnp.full(n, 1 / n)).ravel()
            for law in (SelfAttention, Unnormalised)
        ]
    )
    singular = np.linalg.svd(pair / np.linalg.norm(pair, axis=1, keepdims=True), compute_uv=False)
    return singular[1]


def test_sa_and_usa_have_the_same_orbits_for_two_tokens_only():
    """Section 3.4: for n = 2 the two metrics are conformal, so velocities are parallel.

    For n = 3 they are not.
    """
    assert direction_gap(2) < 1e-13
    assert direction_gap(3) > 1e-2


def test_pair_time_against_the_particles_in_both_laws():
    """The same pair, the cosine from -0.8 to 0.7, at a beta that no table prints."""
    start = at_angle(np.arccos(-0.8))
    for law, unnormalised in ((SelfAttention(2.7), False), (Unnormalised(2.7), True)):
        expected = pair_time(-0.8, 0.7, 2.7, unnormalised)
        np.testing.assert_allclose(meeting(law, start, 0.3, 2 * expected), expected, rtol=1e-8)


def terminal_slope(law, solver, t):
    """Rate of decay of 1 - min cosine where it lies between 1e-10 and 1e-5."""
    run = flock.simulate(
        law, Uniform(n=10, d=3), t=t, frames=401, solver=solver, observe=[ConsensusDistance()]
    )
    gap = run.consensus_distance.values**2 / 2
    window = (gap < 1e-5) & (gap > 1e-10)
    assert window.sum() >= 10
    return -np.polyfit(run.time[window], np.log(gap[window]), 1)[0]


@pytest.mark.slow
def test_terminal_rates_of_the_flow():
    """2 under SA and 2 e^beta under USA, for any n and d."""
    np.testing.assert_allclose(terminal_slope(SelfAttention(1.0), RK4(h=0.05), 20.0), 2, rtol=0.01)
    np.testing.assert_allclose(
        terminal_slope(Unnormalised(1.0), RK4(h=0.02), 8.0), 2 * np.e, rtol=0.01
    )


@pytest.mark.parametrize("h", [0.1, 0.5])
def test_terminal_rate_of_the_layer_map(h):
    """A layer divides differences by 1 + h: the rate is 2 log(1+h)/h, which is not the 2 of the
    flow.
    """
    expected = 2 * np.log1p(h) / h
    assert abs(expected / 2 - 1) > 0.04
    np.testing.assert_allclose(
        terminal_slope(SelfAttention(1.0), Layer(h=h), 200 * h), expected, rtol=0.01
    )
