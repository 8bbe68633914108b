"""Where the formulas of the theory are defined, to the last value that is, and what a call without
arguments means.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from tokenflock import theory
from tokenflock.errors import UserError
from tokenflock.theory import _check, layers, polygon, sharp

FUNCTIONS = {
    name: getattr(theory, name)
    for name in dir(theory)
    if not name.startswith("_") and inspect.isfunction(getattr(theory, name))
}

USUAL = {  # what a symbol is unless given, everywhere but in the functions below
    **{"beta": 1.0, "d": 2, "n": 32, "delta": 1e-3, "t": 1.0, "k": 1, "p": 0.5, "m": 0.5, "h": 0.1},
    **{"gamma0": 0.0, "unnormalised": False, "model": "SA", "kappa": np.inf, "rho": 0.3, "q": 1.0},
    **{"gamma": 0.0, "gamma1": 0.5, "angle": 1.0, "tau": 0.0, "x": 0.0, "s": 0.3, "c": 1.0},
    **{"eigenvalue": 1.0, "lambda1": 1.0, "lambda2": 0.5, "d1": 1.0, "d2": 2.0, "scheme": "post"},
    **{"r0": 1.0, "r": 0.3, "rho0": 0.0, "alpha": 1.0, "switch": 0.0, "theta": 0.0, "u": 0.5},
    **{
        "decay": 1.0,
        "M": 8.0,
        "variance": 1.0,
        "v": 1.0,
        "a": 1.0,
        "mean": (1.0,),
        "scaled": False,
    },
    **{"covariance": ((1.0,),), "A": ((1.0,),), "V": ((1.0,),), "masses": (0.5, 0.5)},
    **{"cosine": 0.0, "steps": 10, "most": 20_000},
}
OTHERWISE = {
    "attention_cosine": {"n": 100, "gamma": 1.5},
    "attention_cosine_limit": {"gamma": 1.5},
    "cap_fraction": {"delta": 0.5},
    "cross_polytope_energy": {"d": 3},
    "curvature_minimum": {"beta": 2.0},
    "equiangular_time": {"gamma": 0.9},
    "gaussian_flow": {"t": 0.1},
    "gaussian_mean": {"t": 0.1, "mean": 1.0},
    "gaussian_variance": {"t": 0.1},
    "gradient_limit": {"gamma": 1.5, "d": 512},
    "hemisphere_probability": {"d": 16},
    "initial_speed": {"n": 256},
    "layer_terminal_rate": {"beta": 0.0},
    "layer_transition_curve": {"t": 30.0},
    "merging_growth": {"beta": 10.0},
    "normalised_flow": {"n": 256},
    "normalised_speed": {"rho": 0.0, "n": 256, "r": 1.0, "t": 0.0},
    "pairing_angle": {"angle": 1.2},
    "plateau_energy": {"beta": np.inf},
    "poisson_order": {"r0": 0.3},
    "polygon_eigenvalue": {"p": 1, "n": 3},
    "polygon_energy": {"n": 5},
    "polygon_growth": {"n": 3},
    "polygon_lifetime": {"n": 3},
    "position_influence": {"s": 0.5},
    "renyi_centres": {"delta": 0.5},
    "saddle_threshold": {"angle": np.pi / 2},
    "simplex_energy": {"n": 4},
    "strong_centres": {"delta": 0.5, "n": np.inf},
    "transition_curve": {"t": 30.0},
    "triangle_eigenvalue": {"beta": -1.0},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_symbol_means_the_same_in_every_function_unless_it_is_said_here(name):
    for symbol, parameter in inspect.signature(FUNCTIONS[name]).parameters.items():
        if parameter.default is not parameter.empty:
            assert parameter.default == OTHERWISE.get(name, {}).get(symbol, USUAL[symbol]), symbol


WHOLE = {  # the least number for which each is defined
    "n": {
        1: "sampled_energy hemisphere_probability polygon_energy polygon_eigenvalue",
        2: """initial_correlation_speed initial_pair_density_speed equiangular_speed
        equiangular_time equiangular_cosine equiangular_gap layer_transition_curve layer_cosines
        layer_crossing
        initial_speed normalised_flow normalised_speed polygon_growth attention_cosine
        simplex_energy saddle_threshold crossing_time transition_curve""",
    },
    "d": {
        1: "hemisphere_probability gradient_limit cross_polytope_energy",
        2: """minimiser_tilt kernel_eigenvalue log_kernel_eigenvalue uniform_energy cap_fraction
        growth_rate fastest_mode mode_switch critical_noise tricritical_beta attraction_range
        interaction_curvature curvature_minimum saddle_threshold""",
    },
    "k": {0: "kernel_eigenvalue log_kernel_eigenvalue growth_rate", 1: "mode_switch"},
    "p": {0: "polygon_eigenvalue"},
    "steps": {0: "layer_cosines"},
}
LEAST = [
    (name, symbol, least)
    for symbol, table in WHOLE.items()
    for least, names in table.items()
    for name in names.split()
]


@pytest.mark.parametrize(("name", "symbol", "least"), LEAST)
def test_a_whole_number_may_be_its_least_and_nothing_below(name, symbol, least):
    value = FUNCTIONS[name](**{symbol: least})
    assert np.isfinite(np.asarray(value, float)).any()
    for wrong in (least - 1, least + 0.5):
        with pytest.raises(UserError, match=symbol):
            FUNCTIONS[name](**{symbol: wrong})


@pytest.mark.parametrize(("name", "symbol", "least"), LEAST)
def test_a_whole_number_may_not_be_so_large_that_it_is_no_longer_one(name, symbol, least):
    with pytest.raises(UserError, match=rf"^{symbol} must be "):
        FUNCTIONS[name](**{symbol: 1e15 + 1 if symbol in "dk" else 1e16})


POSITIVE = {
    "beta": "minimiser_tilt middle_critical_time position_influence curvature_minimum",
    "eigenvalue": "trap_window",
    "d1": "four_particle_share",
    "d2": "four_particle_share",
    "variance": "gaussian_variance gaussian_blow_up",
    "t": "layer_transition_curve transition_curve",
    "h": "layer_transition_curve layer_cosines layer_terminal_rate",
    "decay": "middle_critical_time position_influence",
    "r0": "initial_speed normalised_flow",
    "alpha": "initial_speed normalised_flow",
    "kappa": "growth_rate fastest_mode",
    "q": "gradient_limit",
    "angle": "saddle_threshold merging_time merging_growth pairing_angle",
    "m": "weighted_pair_speed merging_time pairing_angle",
    "p": "two_cluster_growth",
    "rho": "gradient_limit attention_cosine_limit",
    "delta": """merging_time crossing_time layer_crossing transition_curve renyi_centres
    strong_centres""",
}


@pytest.mark.parametrize(
    ("symbol", "name"), [(symbol, name) for symbol in POSITIVE for name in POSITIVE[symbol].split()]
)
def test_a_positive_number_may_be_small_but_not_zero(symbol, name):
    FUNCTIONS[name](**{symbol: 0.25})
    for wrong in (0.0, -0.25):
        with pytest.raises(UserError, match=symbol):
            FUNCTIONS[name](**{symbol: wrong})


BELOW_ONE = {
    "m": "weighted_pair_speed merging_time pairing_angle",
    "p": "two_cluster_growth",
    "rho": "gradient_limit attention_cosine_limit attention_cosine critical_scaling",
    "delta": "merging_time crossing_time transition_curve layer_transition_curve layer_crossing",
    "u": "poisson_quantile",
}


@pytest.mark.parametrize(
    ("symbol", "name"),
    [(symbol, name) for symbol in BELOW_ONE for name in BELOW_ONE[symbol].split()],
)
def test_a_share_is_below_one(symbol, name):
    FUNCTIONS[name](**{symbol: 0.875})
    for wrong in (1.0, 1.25):
        with pytest.raises(UserError, match=symbol):
            FUNCTIONS[name](**{symbol: wrong})


def test_one_dimension_has_no_gradient():
    """1 - 1/d = 0 at d = 1."""
    assert theory.gradient_limit(2.0, 0.3, d=1) == 0


def test_the_last_allowed_layer_counts():
    """Orthogonal tokens at beta = 4 need 75 layers: 75 are enough and 74 are not."""
    assert theory.layer_crossing(4.0, 32, most=75) == 75
    assert theory.layer_crossing(4.0, 32, most=74) == np.inf
    assert theory.layer_crossing(4.0, 32, delta=0.5, gamma0=0.5, most=0) == 0


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.where(np.arange(1000) == 700, -3.0, 1.0), "got -3.0 (at [700])"),
        (np.where(np.arange(400) == 250, np.nan, 1.0).reshape(20, 20), "got nan (at [12, 10])"),
        (["a word"] * 500, "got ['a word', 'a word'"),
        ([2.0, -1.0], "got [2.0, -1.0]."),
    ],
)
def test_of_a_long_array_the_first_wrong_number_is_told_in_one_line(value, told):
    with pytest.raises(UserError) as error:
        theory.layer_transition_curve(value)
    assert told in str(error.value) and len(str(error.value)) < 200
    assert "\n" not in str(error.value)


CHECKS = {  # what each check takes, of numbers about 0, 1 and 2
    "at_least": (lambda x: _check.at_least("x", x, 1, "1"), [1.0, 1.5, np.inf], [0.99, -np.inf]),
    "above": (lambda x: _check.above("x", x, 1, "2"), [1.01, np.inf], [1.0, 0.5]),
    "between": (lambda x: _check.between("x", x, 1, 2, "1.5"), [1.01, 1.99], [1, 2, 0, 3]),
    "within": (lambda x: _check.within("x", x, 1, 2, "1.5"), [1.0, 1.5, 2.0], [0.99, 2.01]),
    "whole": (lambda x: _check.whole("x", x, 1, "2", 9), [1, 2.0, 9], [0, 1.5, 10, np.inf, -3]),
    "cosine": (
        lambda x: _check.cosine("x", x, 3),
        [-0.5, 0.2, 1.0],
        [-0.5 - 2e-9, 1 + 2e-9, np.inf],
    ),
    "nonzero": (lambda x: _check.nonzero("x", x), [-1, 1e-300], [0, np.inf]),
    "finite": (lambda x: _check.finite("x", x), [-1, 0, 1e300], [np.inf, -np.inf]),
    "real": (lambda x: _check.real("x", x), [-1, 0, np.inf], []),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_takes_what_it_says_to_the_last_number_and_nothing_else(name):
    check, right, wrong = CHECKS[name]
    np.testing.assert_array_equal(check(right), right)
    for value in (*wrong, np.nan, "one", None if name == "real" else "two"):
        for given in (value, [right[0], value, right[0]]):
            with pytest.raises(UserError, match=r"^x must be "):
                check(given)


def test_what_came_is_told_whole_up_to_eighty_characters():
    """A longer text is cut to eighty, of which the last three are dots."""
    for length, told in [(80, "'" + "y" * 78 + "'"), (81, "'" + "y" * 76 + "...")]:
        with pytest.raises(UserError) as error:
            theory.growth_rate(model="y" * (length - 2))
        assert f"got {told}. Write" in str(error.value)


def test_up_to_eight_numbers_are_told_whole_and_of_more_the_first_wrong_one():
    for size, told in [(8, "got [1, 1, 0, 1, 0, 1, 1, 1]. Write"), (9, "got 0 (at [2]). Write")]:
        with pytest.raises(UserError) as error:
            theory.dirac_energy([1, 1, 0, 1, 0, 1, 1, 1, 1][:size])
        assert told in str(error.value)


def test_as_many_numbers_are_held_at_once_as_is_said_and_not_one_more(monkeypatch):
    for form, most in [("polygon_eigenvalue", 12), ("polygon_energy", 12)]:
        monkeypatch.setattr(polygon if form == "polygon_eigenvalue" else sharp, "MOST", most)
        assert np.shape(FUNCTIONS[form](n=[4, 3, 4])) == (3,)
        for wrong in ([4, 5, 4], [3, 3, 3, 3, 3], 13):
            with pytest.raises(UserError, match=r"^n must be .* at most 12,"):
                FUNCTIONS[form](n=wrong)
    monkeypatch.setattr(polygon, "MOST", 64)
    assert np.shape(theory.polygon_growth([8, 4])) == (2,)
    for wrong in ([9, 4], [8, 2, 2]):
        with pytest.raises(UserError, match=r"n\^2 / 2 is at most 64,"):
            theory.polygon_growth(wrong)


@pytest.mark.parametrize("name", ["polygon_eigenvalue", "polygon_growth", "polygon_energy"])
def test_no_polygon_at_all_is_no_error(name):
    """Of no numbers there are no answers."""
    assert np.shape(FUNCTIONS[name](n=[])) == (0,)


def test_as_many_layers_are_applied_as_is_said_and_not_one_more(monkeypatch):
    with pytest.raises(UserError, match=r"^steps must be at most 1,000,000 layers"):
        theory.layer_cosines(1_000_001)
    monkeypatch.setattr(layers, "MOST", 500)
    assert theory.layer_cosines(500) > theory.layer_cosines(100)
    assert theory.layer_crossing(0.0, most=500) == 55
    assert theory.layer_transition_curve(1.0, 2, delta=0.7) > 0  # ten layers
    for form, options in [
        ("layer_cosines", {"steps": 501}),
        ("layer_crossing", {"most": 501}),
        ("layer_transition_curve", {"t": 1.1}),
    ]:
        with pytest.raises(UserError, match=rf"^{min(options)} must be at most \d+ layers"):
            FUNCTIONS[form](**options)


def test_the_fastest_mode_is_sought_up_to_a_beta_that_is_said():
    assert theory.fastest_mode(1e10) == pytest.approx(np.sqrt(2e10), rel=0.01)
    with pytest.raises(UserError, match=r"^beta must be at most 1e10"):
        theory.fastest_mode([1.0, 1.2e10])


def test_cosines_that_no_equiangular_family_has_are_refused_also_among_others():
    """-1/(n-1) < gamma < 1; only where a time is asked for, the ends belong to it."""
    assert theory.equiangular_time([0.5, 1.0], 4)[1] == np.inf
    assert theory.equiangular_time([0.5, -1 / 3], 4)[1] == -np.inf
    for symbol, wrong in [("gamma", 1.01), ("gamma", -0.34), ("gamma0", 1.0), ("gamma0", -1 / 3)]:
        with pytest.raises(UserError, match=rf"^{symbol} must be between"):
            theory.equiangular_time(**{"n": 4, symbol: [0.5, wrong]})
