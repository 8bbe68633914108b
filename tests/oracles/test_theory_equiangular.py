"""The equiangular ODE in closed form, the curve of the phase diagram, two tokens, and the layer
recursion.
"""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from tokenflock.theory.equiangular import (
    equiangular_cosine,
    equiangular_gap,
    equiangular_speed,
    equiangular_time,
)
from tokenflock.theory.layers import (
    _layer_gaps,
    layer_cosines,
    layer_crossing,
    layer_transition_curve,
)
from tokenflock.theory.transition import crossing_time, transition_curve

BETAS = [0, 0.1, 1, 2, 3, 4, 5, 6, 6.5, 7, 8, 9]


def particle_speed(x, beta, unnormalised):
    weights = np.exp(beta * x @ x.T)
    weights /= len(x) if unnormalised else weights.sum(1, keepdims=True)
    drift = weights @ x
    return drift - (drift * x).sum(1, keepdims=True) * x


@pytest.mark.parametrize("unnormalised", [False, True])
def test_speed_is_that_of_orthogonal_and_equiangular_particles(unnormalised):
    for n, gamma in [(2, -0.6), (5, 0.0), (7, 0.4)]:
        gram = (1 - gamma) * np.eye(n) + gamma
        x = np.linalg.cholesky(gram)
        v = particle_speed(x, 1.7, unnormalised)
        expected = (v @ x.T + x @ v.T)[~np.eye(n, dtype=bool)]
        np.testing.assert_allclose(
            equiangular_speed(gamma, n, 1.7, unnormalised), expected, rtol=1e-12
        )


def test_crossing_table_n_32():
    table = [
        5.18626098,
        5.19206312,
        5.27028391,
        5.45839368,
        5.89760935,
        6.95350185,
        9.54432920,
        15.99531355,
        22.26529753,
        32.23310473,
        73.44567591,
        178.73092952,
    ]
    np.testing.assert_allclose(crossing_time(BETAS, n=32, delta=1e-3), table, atol=6e-9)


def test_crossing_tables_other_n_and_unnormalised():
    np.testing.assert_allclose(
        crossing_time([0, 4, 9], 2), [3.80020117, 10.83120701, 466.71065291], atol=6e-9
    )
    table = [5.87939643, 6.56954989, 17.35042401, 82.5933575]
    np.testing.assert_allclose(crossing_time([0, 4, 7, 9], 128), table, atol=6e-8)
    table = [5.18626098, 2.89704862, 1.88041710, 1.13077034, 0.68598767]
    np.testing.assert_allclose(
        crossing_time([0, 1, 2, 4, 9], 32, unnormalised=True), table, atol=6e-9
    )


def test_cosine_table():
    expected = [0.151849335544, 0.589772822900, 0.998284248622]
    np.testing.assert_allclose(equiangular_cosine([1, 2, 5], 32, 1.0), expected, atol=6e-13)
    assert equiangular_cosine(1.0, 32, 1.0, unnormalised=True) == pytest.approx(
        0.189942113749, abs=6e-13
    )


def test_transition_curve_table():
    np.testing.assert_allclose(
        transition_curve([10, 20, 30], 32), [5.109904, 6.344740, 6.906459], atol=6e-7
    )
    np.testing.assert_allclose(transition_curve(30, [2, 128]), [5.635848, 7.784877], atol=6e-7)


def test_the_printed_black_curve_is_not_the_curve_of_the_equation():
    assert abs(transition_curve(30.0, 32, 1e-3) - 6.45) > 0.4


@pytest.mark.parametrize("unnormalised", [False, True])
@pytest.mark.parametrize("beta", [-3.0, -1e-9, 0.0, 1e-9, 0.5, 4.0, 25.0])
@pytest.mark.parametrize(("n", "gamma0"), [(2, -0.9), (3, 0.0), (32, 0.0), (1000, 0.3)])
def test_time_is_the_integral_of_one_over_the_speed(beta, n, gamma0, unnormalised):
    expected = quad(
        lambda g: 1 / equiangular_speed(g, n, beta, unnormalised),
        gamma0,
        0.9,
        epsrel=1e-11,
        limit=400,
    )[0]
    assert equiangular_time(0.9, n, beta, gamma0, unnormalised) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("unnormalised", [False, True])
def test_cosine_solves_the_ode(unnormalised):
    times = [0.0, 0.2, 1.0, 3.0]
    for n, beta, gamma0 in [(2, 3.0, -0.7), (32, 2.0, 0.0), (9, -1.5, 0.1)]:
        path = solve_ivp(
            lambda t, g, n=n, b=beta: equiangular_speed(g, n, b, unnormalised),
            (0, 3),
            [gamma0],
            "DOP853",
            times,
            rtol=1e-12,
            atol=1e-14,
        )
        np.testing.assert_allclose(
            equiangular_cosine(times, n, beta, gamma0, unnormalised), path.y[0], atol=2e-11
        )


def test_cosine_at_beta_zero():
    t, n = np.array([0.0, 0.1, 1.0, 7.0]), 32
    expected = np.expm1(2 * t) / (np.exp(2 * t) + n - 1)
    np.testing.assert_allclose(equiangular_cosine(t, n, 0.0), expected, rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(equiangular_cosine(t, n, 1e-12), expected, rtol=1e-10, atol=1e-14)


def test_time_and_cosine_are_inverse_also_backwards():
    t = np.linspace(-2, 12, 29)
    for beta in (0.0, 1.0, 8.0):
        gamma = equiangular_cosine(t, 32, beta, 0.2)
        np.testing.assert_allclose(equiangular_time(gamma, 32, beta, 0.2), t, rtol=1e-6, atol=1e-9)


def test_gap_decays_at_the_terminal_rates():
    slope = np.log(equiangular_gap(40.0, 32, 3.0) / equiangular_gap(50.0, 32, 3.0)) / 10
    assert slope == pytest.approx(2.0, abs=1e-9)
    slope = np.log(
        equiangular_gap(6.0, 32, 1.0, unnormalised=True)
        / equiangular_gap(8.0, 32, 1.0, unnormalised=True)
    )
    assert slope / 2 == pytest.approx(2 * np.e, abs=1e-6)


def test_large_beta_gives_infinity_never_nan():
    assert crossing_time(1e4, 32) == np.inf
    assert crossing_time(600.0, 32) == pytest.approx(np.exp(600.0) / (2 * 600) * 32 / 32, rel=0.1)
    assert equiangular_cosine(100.0, 32, 1e4) == pytest.approx(0.0, abs=1e-14)
    # unnormalised: half the integral of e^(-beta gamma) dy, whose leading term is n / (2 beta)
    assert crossing_time(1e4, 32, unnormalised=True) == pytest.approx(32 / 2e4, rel=1e-2)
    assert equiangular_cosine(1.0, 32, 1e4, unnormalised=True) == 1.0
    assert equiangular_time(1.0, 32, 1.0) == np.inf


@pytest.mark.parametrize("unnormalised", [False, True])
def test_curve_and_crossing_are_inverse(unnormalised):
    beta = np.array([0.01, 1.0, 7.0, 40.0])
    t = crossing_time(beta, [[8], [300]], 0.05, unnormalised=unnormalised)
    curve = transition_curve(t, [[8], [300]], 0.05, unnormalised=unnormalised)
    np.testing.assert_allclose(curve, np.broadcast_to(beta, t.shape), rtol=1e-9)


def test_curve_is_nan_before_the_beta_zero_crossing():
    start = 0.5 * np.log((31 * 0.999 + 1) / 1e-3)
    curve = transition_curve([start * (1 - 1e-9), start * (1 + 1e-9)], 32, 1e-3)
    assert np.isnan(curve[0]) and 0 < curve[1] < 1e-3


def published_layer(x, beta, h):
    weights = np.exp(beta * x @ x.T)
    x = x + h * (weights / weights.sum(1, keepdims=True)) @ x
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_layer_recursion_is_the_layer_map_on_orthogonal_tokens():
    x, beta, h = np.eye(12), 2.5, 0.3
    for step in range(1, 16):
        x = published_layer(x, beta, h)
        cosines = (x @ x.T)[~np.eye(12, dtype=bool)]
        np.testing.assert_allclose(cosines, layer_cosines(step, 12, beta, h), atol=2e-15)


def test_layer_tables():
    assert layer_cosines(10, 32, 1.0) == pytest.approx(0.137887159767, abs=6e-13)
    np.testing.assert_allclose(
        layer_cosines([50, 80], 32, 4.0), [0.906724703802, 0.999658064773], atol=6e-13
    )
    layers = layer_crossing([0, 1, 2, 3, 4, 5, 6, 6.5, 7], 32)
    np.testing.assert_array_equal(layers, [55, 56, 58, 63, 75, 104, 175, 244, 354])


def test_layer_curve_is_the_front_of_the_published_heat_map():
    assert layer_transition_curve(30.0, 32) == pytest.approx(6.78, abs=5e-3)
    assert np.isnan(layer_transition_curve(5.4, 32)) and layer_transition_curve(5.5, 32) > 0
    beta = layer_transition_curve([8.0, 20.0], 32)
    np.testing.assert_allclose(1 - layer_cosines([80, 200], 32, beta), 1e-3, rtol=1e-9)


def test_thin_layers_become_the_flow():
    errors = [
        layer_cosines(round(2 / h), 32, 1.0, h) - equiangular_cosine(2.0, 32, 1.0)
        for h in (0.02, 0.01)
    ]
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.05)
    assert abs(errors[1]) < 6e-3


def test_no_crossing_within_the_allowed_layers_is_infinite():
    assert layer_crossing(30.0, 32, most=50) == np.inf


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: equiangular_speed(0.0, 1, 1.0), "n"),
        (lambda: equiangular_time(0.5, 4, np.inf), "beta"),
        (lambda: equiangular_time(1.5, 4, 1.0), "gamma"),
        (lambda: equiangular_cosine(1.0, 4, 1.0, gamma0=-0.4), "gamma0"),
        (lambda: crossing_time(1.0, 32, delta=0.0), "delta"),
        (lambda: transition_curve(-1.0, 32), "t"),
        (lambda: layer_cosines(2.5, 32), "steps"),
        (lambda: layer_cosines(2, 32, h=0.0), "h"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(call, argument):
    with pytest.raises(
        ValueError, match=rf"^{argument} must be .*, got .*Write for example {argument}="
    ):
        call()


def test_layers_that_just_suffice_at_beta_zero_cross_there():
    """n = 2, h = 1, beta = 0: x + mean(x) and its twin, (3, 1) and (1, 3), have cosine 3/5."""
    delta = _layer_gaps(np.asarray(1.0), 2, 0.0, 1.0, 0.0)
    assert delta == pytest.approx(0.4, rel=1e-12)
    assert layer_transition_curve(1.0, n=2, delta=delta, h=1.0) == 0
    assert np.isnan(layer_transition_curve(1.0, n=2, delta=delta * (1 - 1e-9), h=1.0))


@pytest.mark.parametrize("n", [2, 5, 400])
def test_free_tokens_keep_all_digits_at_both_ends(n):
    """beta = 0: v/u = e^(2t) v0/u0 with u = 1 - gamma, v = gamma + 1/(n-1)."""
    t, gamma0 = np.array([-30.0, -3.0, 0.0, 0.4, 18.0, 200.0]), 0.25
    odds = np.exp(2 * t) * (gamma0 + 1 / (n - 1)) / (1 - gamma0)
    gap, whole = n / (n - 1) / (1 + odds), n / (n - 1)
    for unnormalised in (False, True):
        options = {"n": n, "beta": 0.0, "gamma0": gamma0, "unnormalised": unnormalised}
        np.testing.assert_allclose(equiangular_gap(t, **options), gap, rtol=2e-13)
        cosine = equiangular_cosine(t, **options)
        np.testing.assert_allclose(cosine, whole * odds / (1 + odds) - 1 / (n - 1), atol=4e-16)
        assert cosine[-1] == 1 and cosine[0] >= -1 / (n - 1)


def test_a_layer_ends_where_its_time_is_a_whole_multiple_of_the_step():
    """0.3 / 0.1 is a little less than 3 in floating point, and means three layers."""
    delta = 1 - layer_cosines(3, 7, 1.3, 0.1, 0.2)
    assert layer_transition_curve(0.3, 7, delta, 0.1, 0.2) == pytest.approx(1.3, rel=1e-9)
    assert layer_transition_curve(0.39, 7, delta, 0.1, 0.2) == pytest.approx(1.3, rel=1e-9)


def test_the_curve_of_layers_inverts_their_cosine():
    """gamma_K(beta) = 1 - delta, for several numbers of tokens, steps and cosines at once."""
    n, h, gamma0 = np.array([2, 9]), np.array([[0.3], [0.8]]), np.array([[0.1], [0.3]])
    beta = np.array([[0.4, 2.2], [5.0, 13.0]])
    t = np.array([[2.0, 1.6], [4.0, 8.1]])
    delta = 1 - layer_cosines(np.floor(t / h + 1e-9), n, beta, h, gamma0)
    np.testing.assert_allclose(layer_transition_curve(t, n, delta, h, gamma0), beta, rtol=1e-8)
    late = layer_transition_curve(t, n, delta * [[1, 1e-9], [1, 1]], h, gamma0)
    np.testing.assert_array_equal(np.isnan(late), [[False, True], [False, False]])


def test_layers_are_counted_for_each_of_many():
    beta, delta, gamma0 = np.array([0.0, 2.5, 9.0]), np.array([[1e-3], [0.2], [0.8]]), 0.2
    count = layer_crossing(beta, 6, delta, 0.4, gamma0, most=40)
    for at, k in np.ndenumerate(count):
        steps = np.arange(41)
        near = 1 - layer_cosines(steps, 6, beta[at[1]], 0.4, gamma0) <= delta[at[0], 0]
        assert k == (steps[near][0] if near.any() else np.inf)
    assert np.isinf(count).any() and (count == 0).sum() == 3
