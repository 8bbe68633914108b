"""Solved flows: Ott-Antonsen, BBGKY, normalisation schemes, critical scaling, Gaussians, lost in
the middle.
"""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.special import iv

from tokenflock.theory.bbgky import initial_correlation_speed, initial_pair_density_speed
from tokenflock.theory.gaussian import (
    gaussian_blow_up,
    gaussian_flow,
    gaussian_mean,
    gaussian_speed,
    gaussian_variance,
)
from tokenflock.theory.middle import middle_critical_time, position_influence
from tokenflock.theory.normalisation import initial_speed, normalised_flow, normalised_speed
from tokenflock.theory.ott_antonsen import poisson_density, poisson_order, poisson_quantile
from tokenflock.theory.scaling import (
    attention_cosine,
    attention_cosine_limit,
    critical_scaling,
    gradient_limit,
)

SCHEMES = ["post", "pre", "mix", "peri", "ngpt", "sqrt"]


def test_order_parameter_table_and_its_ode():
    assert poisson_order(3.0, 0.3) == pytest.approx(0.8155720884, abs=6e-11)
    path = solve_ivp(lambda t, r: r * (1 - r**2) / 2, (0, 3), [0.3], rtol=1e-11, atol=1e-13)
    assert poisson_order(3.0, 0.3) == pytest.approx(path.y[0, -1], abs=1e-9)
    np.testing.assert_array_equal(poisson_order(1e4, [0.0, 0.3, 1.0]), [0, 1, 1])


def test_poisson_quantiles_follow_the_kuramoto_flow():
    n = 4000
    theta = poisson_quantile((np.arange(n) + 0.5) / n, 0.3)
    assert np.cos(theta).mean() == pytest.approx(0.3, abs=1e-9)

    def speed(t, theta):
        mean = np.exp(1j * theta).mean()
        return np.imag(mean * np.exp(-1j * theta))

    path = solve_ivp(speed, (0, 3), theta, rtol=1e-9, atol=1e-11)
    assert np.abs(np.exp(1j * path.y[:, -1]).mean()) == pytest.approx(
        poisson_order(3.0, 0.3), abs=1e-6
    )


def test_poisson_density_moments_and_quantiles():
    for k in range(3):
        moment = quad(lambda a, k=k: np.cos(k * a) * poisson_density(a, 0.6), -np.pi, np.pi)[0]
        assert moment == pytest.approx(0.6**k, abs=1e-10)
    assert quad(lambda a: poisson_density(a, 0.6), -np.pi, poisson_quantile(0.2, 0.6))[
        0
    ] == pytest.approx(0.2)


def test_bbgky_table():
    assert initial_correlation_speed(4, 1.5) == pytest.approx(0.3272221429, abs=6e-11)
    assert initial_correlation_speed(10, 0.0) == pytest.approx(0.1)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_initial_correlation_is_the_mean_pull_of_the_pair(d):
    beta, n = 2.0, 8

    def weight(a):
        return np.sin(a) ** (d - 2)

    pull = quad(lambda a: np.exp(beta * np.cos(a)) * np.sin(a) ** 2 * weight(a), 0, np.pi)[0]
    expected = 2 / n * pull / quad(weight, 0, np.pi)[0]
    assert initial_correlation_speed(n, beta, d) == pytest.approx(expected, rel=1e-9)


def test_initial_pair_density_keeps_mass_and_moves_the_mean_cosine():
    mass = quad(lambda x: initial_pair_density_speed(x, 5, 2.0), -np.pi, np.pi)[0]
    cosine = quad(lambda x: np.cos(x) * initial_pair_density_speed(x, 5, 2.0), -np.pi, np.pi)[0]
    assert mass == pytest.approx(0, abs=1e-10)
    assert cosine == pytest.approx(initial_correlation_speed(5, 2.0), rel=1e-9)


def test_normalisation_table():
    post = normalised_flow([1, 5, 10, 20], 256, 5.0, "post")
    np.testing.assert_allclose(post.rho, [0.0100193231, 0.9117764300, 0.9999955999, 1], atol=6e-11)
    pre = normalised_flow([1, 5, 10, 20], 256, 5.0, "pre")
    np.testing.assert_allclose(
        pre.rho, [0.0076229833, 0.1537910093, 0.6886033688, 0.9571294732], atol=6e-11
    )
    assert pre.r[-1] == pytest.approx(13.94064787, abs=6e-9)


@pytest.mark.parametrize(("scheme", "slope"), [("pre", -2.0337), ("peri", -2.0042)])
def test_algebraic_approach_to_consensus(scheme, slope):
    t = 400 * np.exp([-1e-3, 1e-3])
    gaps = 1 - normalised_flow(t, 256, 5.0, scheme).rho
    assert np.diff(np.log(gaps))[0] / 2e-3 == pytest.approx(slope, abs=6e-5)


def token_speed(y, beta, scheme, t, alpha, switch):
    """The schemes written for tokens in R^d: y = r theta."""
    r = np.linalg.norm(y, axis=1, keepdims=True)
    theta = y / r
    weights = np.exp(beta * theta @ theta.T)
    output = weights / weights.sum(1, keepdims=True) @ theta
    along = (theta * output).sum(1, keepdims=True)
    tangent, length = output - along * theta, np.linalg.norm(output, axis=1, keepdims=True)
    if scheme == "pre" or (scheme == "mix" and t > switch):
        return output
    if scheme == "peri":
        return output / length
    return (
        r
        * tangent
        * {"post": 1.0, "mix": 1.0, "ngpt": alpha / length, "sqrt": 1 / np.sqrt(t + 1)}[scheme]
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_normalised_flow_is_that_of_tokens(scheme):
    n, beta, r0, alpha, switch, end = 4, 1.5, 1.3, 0.4, 0.7, 2.0
    y = r0 * np.eye(n)
    for start, stop in [(0, switch), (switch, end)]:
        path = solve_ivp(
            lambda t, s, a=start: token_speed(
                s.reshape(n, n), beta, scheme, max(t, a + 1e-12), alpha, switch
            ).ravel(),
            (start, stop),
            y.ravel(),
            rtol=1e-10,
            atol=1e-12,
        )
        y = path.y[:, -1].reshape(n, n)
    r = np.linalg.norm(y, axis=1)
    flow = normalised_flow(end, n, beta, scheme, r0, alpha=alpha, switch=switch)
    assert flow.r == pytest.approx(r[0], rel=1e-8)
    assert flow.rho == pytest.approx(y[0] @ y[1] / (r[0] * r[1]), abs=1e-8)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_initial_speed_is_the_first_step_of_the_flow(scheme):
    step = 1e-6
    first = normalised_flow(step, 64, 2.0, scheme, r0=1.7, alpha=0.3, switch=1.0).rho / step
    assert initial_speed(64, 2.0, scheme, r0=1.7, alpha=0.3) == pytest.approx(first, rel=1e-4)
    speed = normalised_speed(0.0, 64, 2.0, scheme, r=1.7, alpha=0.3, switch=1.0)
    assert speed.rho == pytest.approx(first, rel=1e-4)


def test_normalised_flow_broadcasts():
    flow = normalised_flow([0.0, 1.0, 2.0], [[8], [16]], 2.0, "peri", r0=1.5)
    assert flow.rho.shape == flow.r.shape == (2, 3)
    np.testing.assert_allclose(flow.rho[:, 0], 0, atol=1e-15)
    assert flow.rho[1, 2] == pytest.approx(
        normalised_flow(2.0, 16, 2.0, "peri", r0=1.5).rho, abs=1e-11
    )


def test_critical_scaling_table():
    cosines = attention_cosine([100, 10**4, 10**6], 1 / 0.7, 0.3)
    np.testing.assert_allclose(cosines, [0.6379501414, 0.6316429335, 0.6315795873], atol=6e-11)
    assert attention_cosine_limit(critical_scaling(0.3), 0.3) == pytest.approx(
        0.6315789474, abs=6e-11
    )


def test_attention_cosine_is_that_of_vectors():
    n, gamma, rho = 9, 1.2, 0.3
    x = np.linalg.cholesky((1 - rho) * np.eye(n) + rho)
    weights = np.exp(gamma * np.log(n) * x @ x.T)
    y = weights / weights.sum(1, keepdims=True) @ x
    expected = y[0] @ y[1] / np.linalg.norm(y[0]) / np.linalg.norm(y[1])
    assert attention_cosine(n, gamma, rho) == pytest.approx(expected, rel=1e-13)


def test_three_phases():
    np.testing.assert_allclose(
        attention_cosine(1e15, [0.5, 3.0], 0.3), attention_cosine_limit([0.5, 3.0], 0.3), atol=1e-4
    )
    np.testing.assert_allclose(
        gradient_limit([0.5, 2.0, 3.0], 0.5, 4, 2.0), [0, 0.75 / 8, 0.75 / 2]
    )


def test_gaussian_line():
    np.testing.assert_allclose(
        gaussian_variance([0.1, -1.0], 2.0, 0.5, 3.0), [2 / (1 - 0.6), 2 / (1 + 6)]
    )
    assert gaussian_blow_up(2.0, 0.5, 3.0) == pytest.approx(1 / 6)
    assert np.isnan(gaussian_variance(0.17, 2.0, 0.5, 3.0))
    path = solve_ivp(
        lambda t, s: [0.5 * (1 + 3 * s[1]) * s[0], 3 * s[1] ** 2],
        (0, 0.1),
        [0.8, 2.0],
        rtol=1e-11,
        atol=1e-13,
    )
    assert gaussian_mean(0.1, 0.8, 2.0, 0.5, 3.0) == pytest.approx(path.y[0, -1], rel=1e-9)


def test_gaussian_matrices_in_closed_form():
    rng = np.random.default_rng(3)
    A, root = rng.normal(size=(3, 3)) / 4, rng.normal(size=(3, 3))
    S = root @ root.T / 3 + np.eye(3) / 2
    flow = gaussian_flow([0.0, 0.05], rng.normal(size=3), S, A, np.eye(3))
    np.testing.assert_allclose(flow.covariance[0], S)
    np.testing.assert_allclose(
        flow.covariance[1], np.linalg.inv(np.linalg.inv(S) - 0.05 * (A + A.T)), rtol=1e-8
    )
    np.testing.assert_allclose(
        gaussian_flow(0.25, [0.7], [[1.0]], [[1.0]], [[1.0]]).mean, gaussian_mean(0.25, 0.7)
    )


def test_gaussian_speed_is_that_of_attention_between_samples():
    rng = np.random.default_rng(4)
    m, A, V = (
        np.array([0.3, -0.2]),
        np.array([[0.3, 0.1], [-0.2, 0.2]]),
        np.array([[1.0, 0.4], [0.0, 0.7]]),
    )
    S = np.array([[0.5, 0.2], [0.2, 0.4]])
    x = rng.multivariate_normal(m, S, size=2000)
    weights = np.exp(x @ A @ x.T)
    v = weights / weights.sum(1, keepdims=True) @ x @ V.T
    covariance = (x - m).T @ v / len(x)
    speed = gaussian_speed(m, S, A, V)
    np.testing.assert_allclose(v.mean(0), speed.mean, atol=0.05)
    np.testing.assert_allclose(covariance + covariance.T, speed.covariance, atol=0.06)


def test_gaussian_flow_after_the_blow_up_is_nan():
    flow = gaussian_flow([0.4, 0.6], [1.0], [[1.0]], [[1.0]], [[1.0]])
    assert flow.covariance[0, 0, 0] == pytest.approx(5.0)
    assert np.isnan(flow.covariance[1]).all()


def test_lost_in_the_middle_table():
    assert middle_critical_time(1.0, 1.0, 8.0) == pytest.approx(2.4574889803, abs=6e-11)


@pytest.mark.parametrize(("beta", "decay"), [(1.0, 1.0), (2.0, 3.0)])
def test_the_end_of_the_context_rises_only_before_the_critical_time(beta, decay):
    critical = middle_critical_time(beta, decay)
    ends = np.array([1 - 1e-5, 1.0])
    for t, rising in [(0.99 * critical, True), (1.01 * critical, False)]:
        assert (np.diff(position_influence(ends, t, beta, decay))[0] > 0) == rising
        assert np.diff(position_influence([0.001, 0.002], t, beta, decay))[0] < 0


def test_position_influence_is_its_power_series():
    s, t, beta, decay, M = 0.4, 0.8, 1.3, 0.9, 6.0
    y, total = np.log(np.expm1(decay) / np.expm1(decay * s)), 0.0
    for k in range(1, 21):
        bessel = quad(lambda a, k=k: np.exp(beta * np.cos(a)) * np.cos(k * a) / np.pi, 0, np.pi)[0]
        c, term, series = k**2 * bessel * t, k**2 * bessel * t, 0.0
        for j in range(80):
            series += term
            term *= c * y / ((j + 1) * (j + 2))
        total += np.exp(-((np.pi * k) ** 2) / (2 * M**2)) * series
    expected = decay * np.exp(decay * s) / np.expm1(decay) * total
    assert position_influence(s, t, beta, decay, M) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: poisson_order(1.0, 1.5), "r0"),
        (lambda: poisson_density(0.3, 1.0), "r"),
        (lambda: poisson_quantile(0.0, 0.5), "u"),
        (lambda: initial_correlation_speed(1, 1.0), "n"),
        (lambda: normalised_flow(1.0, 8, 1.0, "layer"), "scheme"),
        (lambda: normalised_flow(-1.0, 8, 1.0), "t"),
        (lambda: initial_speed(8, 1.0, "pre", r0=0.0), "r0"),
        (lambda: attention_cosine(1, 1.0, 0.3), "n"),
        (lambda: gaussian_variance(0.1, variance=0.0), "variance"),
        (
            lambda: gaussian_flow(0.1, [1.0, 2.0], [[1.0]], [[1.0]], [[1.0]]),
            "covariance",
        ),
        (lambda: position_influence(1.2), "s"),
        (lambda: middle_critical_time(0.0), "beta"),
    ],
)
def test_errors_name_the_argument(call, argument):
    with pytest.raises(ValueError, match=rf"^{argument} must be .*Write for example {argument}="):
        call()


def test_gaussian_speed_is_the_product_of_its_matrices_also_of_many():
    """dm/dt = V (I + S A^T) m,   dS/dt = V S A^T S + S A S V^T"""
    rng = np.random.default_rng(7)
    m, root, A, V = (rng.normal(size=(4, 3, k)) for k in (1, 3, 3, 3))
    S = root @ root.swapaxes(1, 2)
    speed = gaussian_speed(m[..., 0], S, A, V)
    for at in range(4):
        field = V[at] @ S[at] @ A[at].T
        np.testing.assert_allclose(speed.mean[at], (V[at] + field) @ m[at, :, 0], rtol=1e-12)
        half = field @ S[at]
        np.testing.assert_allclose(speed.covariance[at], half + half.T, rtol=1e-12)


def test_gaussian_flow_moves_at_its_speed():
    m, S = np.array([0.4, -0.3]), np.array([[0.8, 0.1], [0.1, 0.3]])
    A, V = np.array([[0.5, -0.4], [0.2, 0.3]]), np.array([[0.9, 0.3], [-0.6, 1.2]])
    t, step = 0.3, 1e-3
    flow = gaussian_flow([[t + step, 0.0], [t - step, t]], m, S, A, V)
    np.testing.assert_allclose(flow.mean[0, 1], m)
    np.testing.assert_allclose(flow.covariance[0, 1], S)
    speed = gaussian_speed(flow.mean[1, 1], flow.covariance[1, 1], A, V)
    for path, slope in zip(flow, speed):
        np.testing.assert_allclose((path[0, 0] - path[1, 0]) / (2 * step), slope, rtol=1e-5)


@pytest.mark.parametrize("form", [gaussian_speed, gaussian_flow])
def test_gaussian_matrices_of_other_sizes_are_refused(form):
    eye, two = np.eye(2), np.ones(2)
    fine = {"mean": two, "covariance": eye, "A": eye, "V": eye}
    form(**fine)
    wrong = [("mean", 1.0, "mean"), ("mean", [], "mean"), ("mean", np.ones(3), "covariance")]
    wrong += [(name, np.eye(3), name) for name in ("covariance", "A", "V")]
    wrong += [(name, np.ones((2, 3)), name) for name in ("covariance", "A", "V")]
    wrong += [(name, np.ones((3, 2)), name) for name in ("covariance", "A", "V")]
    for name, value, blamed in wrong:
        with pytest.raises(ValueError, match=rf"^{blamed} must be "):
            form(**(fine | {name: value}))


def test_of_several_gaussians_at_a_time_only_the_speed_is_known():
    eye, several = np.eye(2), np.stack([np.eye(2), 2 * np.eye(2)])
    assert gaussian_speed(np.ones((2, 2)), several, eye, eye).covariance.shape == (2, 2, 2)
    with pytest.raises(ValueError, match=r"^mean must be a vector"):
        gaussian_flow(0.1, np.ones((2, 2)), eye, eye, eye)
    with pytest.raises(ValueError, match=r"^covariance must be of shape"):
        gaussian_flow(0.1, np.ones(2), several, eye, eye)


def test_at_the_blow_up_itself_there_is_no_variance():
    """S0 = v = a = 1 blow up at t = 1/2."""
    assert np.isnan(gaussian_variance(0.5)) and np.isnan(gaussian_mean(0.5))
    assert gaussian_variance(0.5 - 1e-9) == pytest.approx(5e8, rel=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_cosine_and_radius_have_one_shape_and_may_be_written_to(scheme):
    r, rho = np.array([[0.6], [1.7]]), np.array([0.1, 0.4, 0.8])
    speed = normalised_speed(rho, 5, 1.4, scheme, r, t=0.3, alpha=0.7, switch=0.2)
    flow = normalised_flow(0.4, 5, 1.4, scheme, r, rho, alpha=0.7, switch=0.2)
    for at, (a, b) in enumerate(np.broadcast(r, rho)):
        alone = normalised_speed(b, 5, 1.4, scheme, a, t=0.3, alpha=0.7, switch=0.2)
        later = normalised_flow(0.4, 5, 1.4, scheme, a, b, alpha=0.7, switch=0.2)
        for part, one in zip((*speed, *flow), (*alone, *later)):
            assert part.shape == (2, 3) and part.flags.writeable
            assert part.flat[at] == pytest.approx(one, rel=1e-9)


def test_the_order_of_all_tokens_at_one_point_stays():
    """r0 = 1 is consensus and r0 = 0 is chaos, also long before."""
    np.testing.assert_array_equal(poisson_order(-1e4, [0.0, 1.0]), [0, 1])


def test_mix_is_post_up_to_the_switch_and_pre_from_there():
    t = np.array([0.0, 0.3, 0.5, 0.9, 2.0])
    mix = normalised_flow(t, 6, 2.0, "mix", 1.4, 0.1, switch=0.5)
    post = normalised_flow(t[:3], 6, 2.0, "post", 1.4, 0.1)
    pre = normalised_flow(t[2:] - 0.5, 6, 2.0, "pre", 1.4, post.rho[-1])
    np.testing.assert_allclose(mix.rho, [*post.rho, *pre.rho[1:]], rtol=1e-10)
    np.testing.assert_allclose(mix.r, [*post.r, *pre.r[1:]], rtol=1e-10)
    for time, scheme in [(0.5, "post"), (0.51, "pre")]:
        speeds = [normalised_speed(0.3, 6, 2.0, s, 1.4, time, switch=0.5) for s in ("mix", scheme)]
        assert speeds[0] == speeds[1]


def test_the_critical_time_is_the_ratio_of_its_twenty_modes():
    """t_crit = 2 (1 - e^(-decay)) sum_k w_k a_k / sum_k w_k a_k^2, which at large M ends at 20."""
    k, beta, decay, M = np.arange(1, 21), 30.0, 0.6, 60.0
    a, w = k**2 * iv(k, beta), np.exp(-((np.pi * k) ** 2) / (2 * M**2))
    expected = -2 * np.expm1(-decay) * (w * a).sum() / (w * a**2).sum()
    assert middle_critical_time(beta, decay, M) == pytest.approx(expected, rel=1e-12)
