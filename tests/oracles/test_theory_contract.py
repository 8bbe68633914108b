"""Every closed form, whatever it is given: a number, an infinity, or one clear line."""

from __future__ import annotations

import inspect
import re
import time
from functools import partial

import numpy as np
import pytest

from tokenflock import theory
from tokenflock.catalogue import entries
from tokenflock.errors import UserError
from tokenflock.theory._guard import explains_inf, explains_nan, guarded, numbers_in
from tokenflock.theory._letters import USUAL, meaning

HOSTILE = [0, -1, 1e-300, 1e4, 1e9, 1e300, np.nan, np.inf, -np.inf, "x", [], [[1.0, 2.0, 3.0]]]
FORMS = [(entry.name, option.name) for entry in entries("theory") for option in entry.options]


@pytest.mark.parametrize(("form", "argument"), FORMS, ids=[f"{f}-{a}" for f, a in FORMS])
def test_a_hostile_argument_gives_a_number_or_one_clear_line(form, argument):
    function = getattr(theory, form)
    began = time.monotonic()
    for value in HOSTILE:
        try:
            answer = function(**{argument: value})
        except UserError as error:
            answer, told = None, str(error)
            clear = not any(word in told for word in ("\n", "einstein", "operand"))
        if answer is None:
            assert clear, told
        elif not explains_nan(function):
            assert not any(np.isnan(part).any() for part in numbers_in(answer)), value
    assert time.monotonic() - began < 60


def default_of(form, argument):
    return inspect.signature(getattr(theory, form)).parameters[argument].default


def beside(value):
    """A value near a default: the next whole number, or a tenth more."""
    return value + 1 if isinstance(value, int) else 1.1 * value if value else 0.1


SINGLE = [
    (form, argument)
    for form, argument in FORMS
    if type(default_of(form, argument)) in (int, float) and np.isfinite(default_of(form, argument))
]


@pytest.mark.parametrize(("form", "argument"), SINGLE, ids=[f"{f}-{a}" for f, a in SINGLE])
def test_an_array_is_answered_element_by_element(form, argument):
    """Or refused in words, where an argument is one number for all."""
    function = getattr(theory, form)
    first = default_of(form, argument)
    try:
        each = [list(numbers_in(function(**{argument: v}))) for v in (first, beside(first))]
        together = list(numbers_in(function(**{argument: np.array([first, beside(first)])})))
    except UserError:
        return
    for whole, *parts in zip(together, *each):
        assert np.allclose(whole, np.stack(parts), rtol=1e-9, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("entry", entries("theory"), ids=lambda entry: entry.slug)
def test_every_form_names_its_source_shows_a_value_and_repeats_itself(entry):
    assert re.search(r"arXiv \d{4}\.\d{4,5}|Source:", entry.doc)
    assert ">>>" in entry.doc
    answers = [list(numbers_in(getattr(theory, entry.name)())) for _ in range(2)]
    assert answers[0] and all(map(partial(np.array_equal, equal_nan=True), *answers))


def test_the_docstring_of_every_form_that_gives_nan_says_when():
    assert explains_nan(theory.gaussian_variance) == "nan after the blow-up"
    assert explains_nan(theory.transition_curve).startswith("nan where")
    assert not explains_nan(theory.growth_rate)


def test_beyond_the_numbers_the_limit_comes_back():
    assert theory.strong_centres(0.5, 1000, n=50) == 50  # caps of measure 0: all are centres
    assert theory.strong_centres(0.5, 1000) == np.inf
    assert theory.two_cluster_growth(1e4, 1.0) == -np.inf
    assert theory.two_cluster_growth(1e4, 2e4) == np.inf
    assert theory.position_influence(0.5, beta=1e4) == np.inf
    assert theory.position_influence(0.5, decay=1e4) == pytest.approx(0.0)


def test_the_logarithms_change_nothing_where_the_plain_formula_works():
    """`position_influence` against its series, term by term."""
    from math import exp, expm1, factorial, log, pi

    from scipy.special import iv

    s, t, beta, decay, M = 0.3, 1.5, 0.7, 2.0, 8.0
    y = log(expm1(decay) / expm1(decay * s))
    total = 0.0
    for k in range(1, 60):
        c = k**2 * iv(k, beta) * t
        psi = sum(c ** (j + 1) * y**j / (factorial(j) * factorial(j + 1)) for j in range(60))
        total += exp(-((pi * k / M) ** 2) / 2) * psi
    plain = decay * exp(decay * s) / expm1(decay) * total
    assert theory.position_influence(s, t, beta, decay, M) == pytest.approx(plain, rel=1e-12)


def test_times_after_the_blow_up_are_nan_and_not_an_error():
    late = theory.gaussian_flow(1.0)
    assert np.isnan(late.covariance).all()
    assert np.isfinite(theory.gaussian_flow([0.25, 1.0]).mean[0]).all()


def nothing(x=1.0, y=0.0):
    """A form without a value."""
    return np.float64(np.nan), 1


def test_an_answer_that_is_none_is_told_with_what_was_given():
    form = guarded(nothing)
    for args, told in [
        ((), "its defaults"),
        ((2.0,), "x=2.0"),
        ((2, [1, 2, 3]), "x=2, y=[1, 2, 3]"),
        (([1, 2, 3, 4],), "x=an array of shape (4,)"),
        (([[1.0], [2.0, 3.0]],), "x=an array whose rows differ in length"),
        (("y" * 70,), "x=" + "y" * 60),
    ]:
        with pytest.raises(UserError) as error:
            form(*args)
        begin, end = "nothing has no value in double precision for ", "; take arguments nearer"
        assert str(error.value).startswith(begin + told + end)


def breaking(kind=0):
    """A form that breaks."""
    kinds = (ValueError, TypeError, IndexError, OverflowError, AttributeError, UserError, KeyError)
    raise kinds[kind]("as it is")


def test_what_numpy_says_of_shapes_is_told_in_words_and_other_errors_as_they_are():
    form = guarded(breaking)
    for kind in range(5):
        with pytest.raises(UserError, match=rf"^breaking takes numbers, or .* got kind={kind}$"):
            form(kind)
    for kind, error in [(5, UserError), (6, KeyError)]:
        with pytest.raises(error, match="as it is"):
            form(kind)
    with pytest.raises(UserError, match=r"^breaking: .*unexpected keyword argument 'mind'"):
        form(mind=1)


def test_all_floats_of_an_answer_are_looked_at():
    for answer in ((1.0, 2), {"a": 1.0, "b": 2}, 1.0, np.ones(3), [1.0, 2.0]):
        assert [part.dtype.kind for part in numbers_in(answer)] == ["f"]
    assert list(numbers_in((1, "text"))) == []


def test_what_a_docstring_says_of_nan_is_read_up_to_its_examples():
    def form():
        """A form, nan where it ends; a number elsewhere.

        >>> form()  # nan after all
        """

    def silent():
        """A form.

        >>> silent()  # nan where nothing is said
        """

    assert explains_nan(form) == "nan where it ends"
    assert explains_nan(silent) == ""
    assert explains_nan(lambda: 1) == ""


def test_what_a_docstring_says_ends_with_its_clause_and_in_no_bracket():
    assert explains_nan(theory.transition_curve).endswith("beta = 0; USA: later than it)")
    assert explains_inf(theory.polygon_lifetime).endswith("stable (n = 3: beta < -2/3)")
    assert explains_inf(theory.gaussian_blow_up) == "inf where it never does"
    assert explains_inf(theory.log_kernel_eigenvalue) == "-inf at beta = 0, k >= 1"
    assert explains_inf(theory.kernel_eigenvalue) == ""

    def form():
        """A form, nan where x is 0.5 (or so; see below). More."""

    assert explains_nan(form) == "nan where x is 0.5 (or so; see below)"


@pytest.mark.parametrize("entry", entries("theory"), ids=lambda entry: entry.slug)
def test_every_argument_has_words(entry):
    for option in entry.options:
        words = meaning(entry.doc, option.name)
        assert words and words[0] not in "=:,; " and words.count("(") == words.count(")")


def test_what_a_letter_means_is_read_from_the_docstring_first():
    assert meaning(theory.kernel_eigenvalue.__doc__, "k") == "degree"
    assert meaning(theory.growth_rate.__doc__, "k") == "degree of the ripple"
    assert meaning(theory.crossing_time.__doc__, "delta") == "threshold (1e-3 in the figures)"
    assert meaning(theory.equiangular_speed.__doc__, "gamma") == "<x_i, x_j> for all i != j"
    assert meaning("A form. Letters: beta as in `other`, d the depth.", "beta") == USUAL["beta"]
    assert meaning("A form. Letters: beta as in `other`, d the depth.", "d") == "depth"
    assert meaning("A form.", "unheard_of") == ""


def test_far_negative_arguments_have_their_limits_too():
    assert theory.two_cluster_growth(-800.0, 1.0) == -np.inf
    assert theory.two_cluster_growth(-800.0, 900.0) == np.inf
    assert theory.maximiser_crossing(-800.0) == pytest.approx(800 - np.log(2), rel=1e-14)
    assert theory.sampled_energy(1, 800.0) == np.inf  # one token is one point
    assert theory.sampled_energy(1, 2.0) == theory.dirac_energy(2.0)
