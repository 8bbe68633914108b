"""What laws are made of: sums of exponentials, matrices that are absent, numbers, arrays or paths
in time, and sides of powers of two.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tokenflock.dynamics import Switching
from tokenflock.dynamics._kernels import (
    exponentials,
    gentle,
    interaction_energy,
    log_sum_exp,
    softmax,
)
from tokenflock.dynamics._matrices import (
    act,
    at,
    check_attention,
    identities,
    multiple_of_identity,
    period_of,
    positive_multiple,
    shape_of,
    width,
)
from tokenflock.dynamics._padding import padded, widen
from tokenflock.errors import UserError

pytestmark = pytest.mark.usefixtures("double")
RANDOM = np.random.default_rng(2)
W = np.array([0.5, 0.2, 0.0, 0.3])  # one token counts nothing
S = RANDOM.normal(size=(3, 4))
S[:, 2] += 4  # and lies above all others
OFFSETS = np.array([0.0, 5000.0, -5000.0])[:, None]


def test_softmax_is_its_formula_for_logits_of_any_size():
    E = W * np.exp(S)
    wanted = E / E.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(softmax(jnp.asarray(S), jnp.asarray(W)), wanted, rtol=1e-13)
    far = softmax(jnp.asarray(S + OFFSETS), jnp.asarray(W))
    np.testing.assert_allclose(far, wanted, rtol=1e-11)
    logs = log_sum_exp(jnp.asarray(S + OFFSETS), jnp.asarray(W))
    np.testing.assert_allclose(logs, np.log(E.sum(axis=1)) + OFFSETS[:, 0], rtol=1e-13)


def test_a_token_of_no_weight_is_not_heard_however_large_its_logit():
    far = np.where(np.arange(4) == 2, 900.0, S)
    found = np.asarray(softmax(jnp.asarray(far), jnp.asarray(W)))
    assert (found[:, 2] == 0).all()
    np.testing.assert_allclose(found, softmax(jnp.asarray(S), jnp.asarray(W)), rtol=1e-13)
    logs = [log_sum_exp(jnp.asarray(logits), jnp.asarray(W)) for logits in (far, S)]
    np.testing.assert_allclose(*logs, rtol=1e-13)


def test_who_sees_nobody_hears_nothing():
    masked = S.copy()
    masked[1], masked[2, 0] = -np.inf, -np.inf
    E, Z = exponentials(jnp.asarray(masked), jnp.asarray(W))
    assert (np.asarray(E)[1] == 0).all() and float(Z[1, 0]) == 1 and float(E[2, 0]) == 0
    share = np.asarray(softmax(jnp.asarray(masked), jnp.asarray(W)))
    np.testing.assert_allclose(share.sum(axis=1), [1, 0, 1], rtol=1e-14)


def test_the_largest_logit_is_taken_off_unless_all_are_known_to_be_small():
    """E_ij = w_j e^{S_ij - max}, the maximum over tokens that count; Z is the sum."""
    top = S[:, W > 0].max(axis=1, keepdims=True)
    x = jnp.asarray(S), jnp.asarray(W)
    plain = W * np.exp(S)
    for known, wanted in ((False, plain * np.exp(-top)), (True, plain), (False, None)):
        with gentle(known):
            E, Z = exponentials(*x)
        wanted = plain * np.exp(-top) if wanted is None else wanted
        np.testing.assert_allclose(E, wanted, rtol=1e-13)
        np.testing.assert_allclose(Z, wanted.sum(axis=1, keepdims=True), rtol=1e-13)
    with gentle(True), pytest.raises(ZeroDivisionError):
        raise ZeroDivisionError  # nor is it known after an error
    np.testing.assert_allclose(exponentials(*x)[0], plain * np.exp(-top), rtol=1e-13)


def test_the_interaction_energy_is_its_double_sum_and_its_limit():
    G, w = S[:, :3], np.array([0.2, 0.5, 0.3])
    for beta in (1.7, -1.7):
        wanted = (np.outer(w, w) * np.exp(beta * G)).sum() / (2 * beta)
        assert float(interaction_energy(jnp.asarray(G), jnp.asarray(w), beta)) == pytest.approx(
            wanted, rel=1e-13
        )
    flat = interaction_energy(jnp.asarray(G), jnp.asarray(w), jnp.asarray(0.0))
    assert float(flat) == pytest.approx(w @ G @ w / 2, rel=1e-13)


@pytest.mark.parametrize(
    ("size", "side"), [(1, 16), (15, 16), (16, 16), (17, 32), (32, 32), (33, 64), (100, 128)]
)
def test_sides_are_the_powers_of_two_from_sixteen_on(size, side):
    assert padded(size) == side


def test_what_is_widened_acts_as_before_and_is_zero_on_what_was_added():
    d, wide = 3, 16
    M = np.ones((20, d))
    whole = np.asarray(widen(M, d, wide))
    assert whole.shape == (32, wide) and whole.sum() == M.sum()
    assert (whole[:20, :d] == 1).all()
    assert widen(np.ones((d, d)), d, 64).shape == (64, 64)
    assert widen(np.ones(d), d, wide).shape == (wide,)
    heads = np.asarray(widen(np.ones((2, 20, d)), d, wide, lead=1))
    assert heads.shape == (2, 32, wide) and heads.sum() == 2 * 20 * d
    periods = np.asarray(widen(np.ones((2, 3, 20, d)), d, wide, lead=2))
    assert periods.shape == (2, 3, 32, wide) and periods.sum() == 6 * 20 * d
    number, list_of_numbers = np.float64(2.0), np.ones(3)
    assert widen(number, d, wide) is number and widen(0.5, d, wide) == 0.5
    assert widen(list_of_numbers, d, wide, lead=1) is list_of_numbers


X, M = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(2, 3))
STEPS = Switching(np.stack([M, 2 * M, 3 * M]), 0.1)


def growing(t):
    """A path in time."""
    return (1 + t) * M


def test_a_matrix_acts_as_what_it_is():
    np.testing.assert_array_equal(act(None, X, 0.3), X)
    np.testing.assert_allclose(act(-2.0, X, 0.3), -2 * X)
    np.testing.assert_allclose(act(M, X, 0.3), X @ M.T, rtol=1e-14)
    np.testing.assert_allclose(act(growing, X, 0.3), 1.3 * X @ M.T, rtol=1e-14)
    np.testing.assert_allclose(act(growing, X), X @ M.T, rtol=1e-14)
    assert at(M, 0.3) is M and at(None, 0.3) is None
    np.testing.assert_allclose(at(growing, 0.5), 1.5 * M)


def test_matrices_say_their_shapes_whatever_they_are():
    shapes = [shape_of(one) for one in (None, 2.0, M, growing, STEPS, Switching([1.0, 2.0]))]
    assert shapes == [(), (), (2, 3), (2, 3), (2, 3), ()]
    assert width(None, 2.0) is None and width(None, 2.0, M) == 3
    assert width(np.ones((2, 5)), M) == 5 and width(np.ones((4, 2, 7))) == 7
    eyes = np.asarray(identities(np.ones((4, 2, 3))))
    assert eyes.shape == (4, 3, 3) and (eyes == np.eye(3)).all()
    assert identities(Switching(np.ones((5, 4, 2, 3)))).shape == (4, 3, 3)


def test_what_commutes_with_rotations_and_what_is_a_positive_multiple_is_known():
    for matrices, wanted in (
        ((None, 2.0), True),
        ((None, np.eye(3)), False),
        ((np.eye(3), 2.0), False),
        ((Switching([1.0, 2.0]), None), True),
        ((STEPS,), False),
        ((lambda t: 2.0, None), False),  # nothing is known of its other times
    ):
        assert multiple_of_identity(*matrices) == wanted
    told = [positive_multiple(one) for one in (None, 0.5, 0.0, -0.5, np.eye(3), STEPS)]
    assert told == [True, True, False, False, False, False]


def test_periods_are_counted_from_zero_and_rounding_does_not_hold_them_back():
    assert period_of(7.0, None) == 0
    for k in range(12):
        assert int(period_of(0.1 * k, 0.1)) == k  # 0.1 * 3 / 0.1 is above 3, 0.7 / 0.1 below 7
    assert int(period_of(0.7, 0.1)) == 7 and int(period_of(0.69, 0.1)) == 6
    assert int(period_of(0.6999, 0.1)) == 6 and int(period_of(5.0, 2.0)) == 2


def test_what_switches_keeps_its_first_value_before_and_its_last_one_after():
    for t, k in ((-1.0, 1), (0.0, 1), (0.05, 1), (0.1, 2), (0.3, 3), (9.0, 3)):
        np.testing.assert_array_equal(STEPS(t), k * M)
    assert float(Switching([1.0, 4.0])(1.5)) == 4.0  # a period of one
    for sides in ((2,), (2, 3), (2, 3, 3), (2, 4, 3, 3)):
        assert Switching(np.ones(sides), 0.5)(0.0).shape == sides[1:]
    for values, period in ((np.ones(()), 1.0), (np.ones((1,) * 5), 1.0), (np.ones(2), 0.0)):
        with pytest.raises(UserError, match="Switching"):
            Switching(values, period)
    with pytest.raises(UserError, match="period"):
        Switching(np.ones(2), -1.0)


def sized(*sides):
    return np.ones(sides)


FITS = [
    (None, None, None, False),
    (2.0, -1.0, 0.5, False),
    (sized(2, 3), sized(2, 3), sized(3, 3), False),
    (sized(2, 3), sized(2, 3), None, False),
    (sized(3, 3), None, None, False),
    (None, sized(3, 3), 2.0, False),
    (Switching(sized(4, 2, 3)), sized(2, 3), None, False),
    (growing, sized(4, 4), None, False),  # a function is believed
    (sized(5, 2, 3), sized(5, 2, 3), sized(5, 3, 3), True),
    (None, sized(5, 3, 3), sized(5, 3, 3), True),
    (Switching(sized(9, 5, 2, 3)), sized(5, 2, 3), None, True),
]
MISFITS = [
    (sized(3), None, None, False, "shape"),
    (sized(1, 3, 3), None, None, False, "shape"),
    (sized(3, 3), None, None, True, "shape"),
    (sized(5, 3, 3), sized(4, 3, 3), None, True, "one number of heads"),
    (None, None, sized(2, 3), False, "square"),
    (None, None, sized(5, 2, 3), True, "square"),
    (sized(3, 3), sized(3, 3), sized(4, 4), False, "on one R"),
    (sized(2, 3), sized(4, 3), None, False, "of one shape"),
    (sized(5, 2, 3), sized(5, 4, 3), None, True, "of one shape"),
    (Switching(sized(4, 2, 3)), sized(4, 3), None, False, "of one shape"),
    (sized(2, 3), None, None, False, "law.Q must be square"),
    (None, sized(2, 3), None, False, "law.K must be square"),
    (Switching(sized(4, 2, 3)), None, None, False, "law.Q must be square"),
    (sized(5, 2, 3), None, sized(5, 3, 3), True, "law.Q must be square"),
]


def test_matrices_that_fit_each_other_are_taken():
    for *matrices, heads in FITS:
        check_attention("law", *matrices, heads=heads)


@pytest.mark.parametrize("case", MISFITS, ids=lambda case: case[-1])
def test_matrices_that_do_not_fit_each_other_are_refused(case):
    *matrices, heads, words = case
    with pytest.raises(UserError, match=words):
        check_attention("law", *matrices, heads=heads)


@pytest.mark.usefixtures("double")
def test_a_weight_of_zero_has_its_derivative_up_to_logits_of_sixty_above():
    """dA_0/dw_1 = -e^S at w = (1, 0) and logits (0, S); beyond S = 60 that of S = 60."""

    def share(w1, S):
        return softmax(jnp.array([[0.0, S]]), jnp.stack([jnp.ones(()), w1]))[0, 0]

    for S, known in ((3.0, 3.0), (59.0, 59.0), (62.0, 60.0), (1e4, 60.0)):
        slope = jax.grad(share)(jnp.zeros(()), S)
        np.testing.assert_allclose(slope, -np.exp(known), rtol=1e-12)


@pytest.mark.usefixtures("double")
def test_a_time_near_the_end_of_a_late_period_is_still_in_it():
    assert int(period_of(450_000.5, 1.0)) == 450_000
    assert int(period_of(900_000.9, 1.0)) == 900_000
    assert int(period_of(900_001 * 0.1, 0.1)) == 900_001  # a whole number of periods, to rounding


def test_in_single_precision_a_layer_begins_its_period_to_rounding():
    h = np.float32(0.1)
    assert [int(period_of(k * h, 0.1)) for k in (1, 3, 6, 7, 299)] == [1, 3, 6, 7, 299]
