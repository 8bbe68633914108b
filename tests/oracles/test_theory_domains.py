"""Where the formulas of the theory are defined, to the last value that is, and what a call without
arguments means.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from tokenflock import theory
from tokenflock.errors import UserError

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
        ([2.0, -1.0], "got array([ 2., -1.])."),
    ],
)
def test_of_a_long_array_the_first_wrong_number_is_told_in_one_line(value, told):
    with pytest.raises(UserError) as error:
        theory.layer_transition_curve(value)
    assert told in str(error.value) and len(str(error.value)) < 200
    assert "\n" not in str(error.value)
