"""The circle: angles against vectors, Kuramoto, polygons and their eigenvalues, ripples of the
uniform measure.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import iv

from tokenflock.dynamics import Causal, CausalBias, Kuramoto, SelfAttention, Sinkhorn, Unnormalised
from tokenflock.dynamics.unnormalised import Clock
from tokenflock.precision import cast
from tokenflock.theory import polygon_eigenvalue

pytestmark = pytest.mark.usefixtures("float64")

RANDOM = np.random.default_rng(11)
THETA = RANDOM.uniform(0, 2 * np.pi, 9)
W = RANDOM.uniform(0.1, 1, 9)
W /= W.sum()
BETA = 5.0


def angular_velocity(law, theta, w):
    """dtheta/dt of a law on the circle, from its vectors in R^2."""
    x = jnp.stack([jnp.cos(theta), jnp.sin(theta)], -1)
    turned = jnp.stack([-jnp.sin(theta), jnp.cos(theta)], -1)
    return jnp.sum(law.velocity(jnp.zeros(()), x, w) * turned, -1)


@eqx.filter_jit
def speeds(law, theta, w):
    return angular_velocity(law, theta, w)


@eqx.filter_jit
def jacobian(law, theta, w):
    return jax.jacfwd(lambda angle: angular_velocity(law, angle, w))(theta)


def turning(law, w=W):
    return np.asarray(speeds(cast(law, "float64"), jnp.asarray(THETA), jnp.asarray(w)))


GAP = THETA[:, None] - THETA


def test_circle_form_of_sa_and_usa():
    """(7.1), with weights."""
    K = np.exp(BETA * np.cos(GAP))
    pull = -(K * np.sin(GAP)) @ W
    np.testing.assert_allclose(turning(Unnormalised(BETA)), pull, rtol=1e-12)
    np.testing.assert_allclose(turning(SelfAttention(BETA)), pull / (K @ W), rtol=1e-12)
    np.testing.assert_allclose(
        turning(SelfAttention(BETA, repulsive=True)), -pull / (K @ W), rtol=1e-12
    )
    np.testing.assert_allclose(
        turning(Unnormalised(BETA, Clock.PEAK)), pull * np.exp(-BETA), rtol=1e-12
    )


def test_bessel_form_of_sa_and_usa():
    """h_beta = sum_k I_k e^{ik theta}, so forty Fourier modes give the exact velocity without
    any pair sum.
    """
    k = np.arange(1, 41)
    mode = np.exp(1j * k[:, None] * THETA) @ W
    wave = np.exp(1j * k * THETA[:, None]) * mode.conj()
    pull = -(2 * k / BETA * iv(k, BETA) * wave.imag).sum(1)
    Z = iv(0, BETA) + 2 * (iv(k, BETA) * wave.real).sum(1)
    np.testing.assert_allclose(turning(Unnormalised(BETA)), pull, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(turning(SelfAttention(BETA)), pull / Z, rtol=1e-11, atol=1e-13)


def test_kuramoto_and_attention_at_beta_zero():
    """Identical oscillators are self-attention at beta = 0 (4.1), and the energy (K/2) r^2 grows at
    (1/n) sum speed^2.
    """
    sines = -np.sin(GAP) @ W
    np.testing.assert_allclose(turning(SelfAttention(0.0)), sines, rtol=1e-12)
    np.testing.assert_allclose(turning(Unnormalised(0.0)), sines, rtol=1e-12)
    np.testing.assert_allclose(turning(Kuramoto()), sines, rtol=1e-12)
    omega = np.linspace(-1, 1, 9)
    found = turning(Kuramoto(coupling=2.5, omega=omega))
    np.testing.assert_allclose(found, omega + 2.5 * sines, rtol=1e-12)


def test_order_parameter_of_kuramoto_grows_at_its_rate():
    """With F = (K/2) r^2, dF/dt = sum_i w_i (dtheta_i/dt)^2."""
    law, w = cast(Kuramoto(coupling=2.0), "float64"), jnp.asarray(W)

    def F(theta):
        return jnp.abs(jnp.exp(1j * theta) @ w) ** 2

    v = speeds(law, jnp.asarray(THETA), w)
    rate = jax.jvp(F, (jnp.asarray(THETA),), (v,))[1]
    np.testing.assert_allclose(rate, W @ np.asarray(v) ** 2, rtol=1e-12)


def test_causal_circle_form():
    """With equal weights: sums over earlier tokens, Z over earlier ones and oneself."""
    n = len(THETA)
    earlier, h = np.tril(np.ones((n, n)), -1), np.exp(BETA * (np.cos(GAP) - 1))
    expected = -(earlier * h * np.sin(GAP)).sum(1) / (np.tril(np.ones((n, n))) * h).sum(1)
    found = turning(Causal(BETA), np.full(n, 1 / n))
    assert abs(found[0]) < 1e-15
    np.testing.assert_allclose(found[1:], expected[1:], rtol=1e-11)


def test_causal_bias_circle_form():
    """ALiBi with its own factor beta and weights e^{-(slope/N)(j-k)} normalised over the past."""
    n, slope = len(THETA), 3.0
    expected = np.zeros(n)
    for j in range(1, n):
        bias = np.array([np.exp(-slope / n * (j - k)) for k in range(j)])
        delta = THETA[j] - THETA[:j]
        expected[j] = -(bias / bias.sum()) @ (1.5 * np.sin(delta) * np.exp(1.5 * np.cos(delta)))
    found = turning(CausalBias(beta=1.5, slope=slope), np.full(n, 1 / n))
    assert abs(found[0]) < 1e-15
    np.testing.assert_allclose(found[1:], expected[1:], rtol=1e-11)


def polygon_modes(law, n):
    """Eigenvalues of the Jacobian at the regular n-gon for the modes p = 0 ..

    N/2, each checked to be an eigenvector.
    """
    theta = 2 * np.pi * np.arange(n) / n
    J = np.asarray(jacobian(cast(law, "float64"), jnp.asarray(theta + 0.3), jnp.full(n, 1 / n)))
    values = []
    for p in range(n // 2 + 1):
        mode = np.cos(p * theta)
        value = mode @ J @ mode / (mode @ mode)
        np.testing.assert_allclose(J @ mode, value * mode, atol=1e-9 * max(1, abs(J).max()))
        values.append(value)
    return np.array(values)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_polygon_eigenvalues(n):
    """The Bessel form, which knows nothing of g or of derivatives, for either sign of beta."""
    p, j = np.arange(n // 2 + 1), np.arange(-30, 31)[:, None] * n
    for beta in (-1.0, 0.4, 3.0):

        def series(k, beta=beta):
            return (k**2 * iv(k, beta)).sum(0) / beta  # I_{-k} = I_k for whole k

        expected = series(p + j) - series(j)
        Z = np.exp(beta * np.cos(2 * np.pi * np.arange(n) / n)).sum()
        np.testing.assert_allclose(
            polygon_modes(Unnormalised(beta), n), expected, rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(
            polygon_modes(SelfAttention(beta), n), n / Z * expected, rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(
            polygon_eigenvalue(p, n, beta, unnormalised=True), expected, rtol=1e-9, atol=1e-12
        )


def test_polygon_eigenvalues_that_have_names():
    """Two, three and four clusters; three are stable under USA iff beta < -2/3."""
    for beta in (-1.0, -0.5, 0.4, 3.0):
        np.testing.assert_allclose(
            polygon_modes(Unnormalised(beta), 2)[1], np.exp(-beta), rtol=1e-9
        )
        np.testing.assert_allclose(
            polygon_modes(SelfAttention(beta), 2)[1], 2 / (1 + np.exp(2 * beta)), rtol=1e-9
        )
        three = polygon_modes(Unnormalised(beta), 3)[1]
        np.testing.assert_allclose(three, (0.5 + 0.75 * beta) * np.exp(-beta / 2), rtol=1e-9)
        assert (three < 0) == (beta < -2 / 3)
        np.testing.assert_allclose(polygon_modes(Unnormalised(beta), 4)[2], beta, rtol=1e-9)
        np.testing.assert_allclose(
            polygon_modes(SelfAttention(beta), 4)[2], beta / np.cosh(beta / 2) ** 2, rtol=1e-9
        )


# Growth of the degree-k ripple about the uniform measure on the circle.
GROWTH = [
    (Unnormalised, 1.0, [0.5651591040, 0.5429906791, 0.1995158243]),
    (SelfAttention, 1.0, [0.4463899659, 0.4288802728, 0.1575872376]),
    (Unnormalised, 4.0, [2.4398662884, 6.4221893753, 7.5088705014, 5.6651028306]),
    (SelfAttention, 4.0, [0.2158806528, 0.5682386945, 0.6643888122, 0.5012512787]),
    (Unnormalised, 5.0, [None, 14.0044919733, 18.5960703045, 16.3463512437]),
    (SelfAttention, 5.0, [None, 0.5141173961, 0.6826783336, 0.6000891395]),
    (Sinkhorn, 4.0, [0.1158454700, None, 0.5129290990]),
    (Sinkhorn, 9.0, [None, None, None, 0.5045529849]),
]


@eqx.filter_jit
def ripple_rates(law, theta, w, modes):
    """Rayleigh quotients of the linearised law for tokens displaced along each mode, and what is
    left over.
    """

    def rate(mode):
        moved = jax.jvp(lambda angle: angular_velocity(law, angle, w), (theta,), (mode,))[1]
        value = mode @ moved / (mode @ mode)
        return value, jnp.max(jnp.abs(moved - value * mode))

    return jax.vmap(rate)(modes)


@pytest.mark.slow
@pytest.mark.parametrize(("member", "beta", "table"), GROWTH)
def test_growth_of_ripples_about_uniform_tokens(member, beta, table):
    n = 64
    theta = 2 * np.pi * np.arange(n) / n
    modes = np.sin(np.arange(1, 5)[:, None] * theta)
    law = cast(member(beta), "float64")
    rates, left = ripple_rates(law, jnp.asarray(theta), jnp.full(n, 1 / n), jnp.asarray(modes))
    assert left.max() < 1e-9 * max(1, rates.max())
    for k, expected in enumerate(table):
        if expected is not None:
            np.testing.assert_allclose(rates[k], expected, rtol=1e-6)


# The same on S^2 (d = 3, beta = 4).
SPHERE_GROWTH = [
    (Unnormalised, [2.56071919, 4.47210077, 4.18406324]),
    (SelfAttention, [0.37533558, 0.65549496, 0.61327606]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("member", "table"), SPHERE_GROWTH)
def test_growth_of_ripples_on_the_two_sphere(member, table):
    """Tokens at the nodes of a product quadrature with its weights are the uniform measure to
    rounding.
    """
    height, mass = np.polynomial.legendre.leggauss(16)
    phi = 2 * np.pi * np.arange(32) / 32
    radius = np.sqrt(1 - height**2)[:, None]
    x = np.stack(
        np.broadcast_arrays(radius * np.cos(phi), radius * np.sin(phi), height[:, None]), -1
    ).reshape(-1, 3)
    w = np.repeat(mass / 2 / 32, 32)
    law = cast(member(4.0), "float64")
    z = x[:, 2]
    # of the Legendre polynomials of degree 1, 2, 3
    slopes = np.stack([1 + 0 * z, 3 * z, (15 * z**2 - 3) / 2])
    displacements = slopes[..., None] * (np.array([0, 0, 1.0]) - z[:, None] * x)

    @jax.jit
    def pushed(u):
        return jax.jvp(
            lambda y: law.velocity(jnp.zeros(()), y, jnp.asarray(w)), (jnp.asarray(x),), (u,)
        )[1]

    for u, expected in zip(displacements, table):
        moved = np.asarray(pushed(jnp.asarray(u)))
        np.testing.assert_allclose(moved, expected * u, atol=2e-8 * max(1, expected) * abs(u).max())
