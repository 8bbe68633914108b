"""Every default solver is accurate, or refuses: held to an integrator that is not ours."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import recipe
from tokenflock.catalogue import entries
from tokenflock.dynamics import (
    CausalBias,
    FeedForward,
    Hardmax,
    Noisy,
    SelfAttention,
    Unnormalised,
)
from tokenflock.errors import AccuracyWarning, SimulationError, UserError
from tokenflock.events import Consensus
from tokenflock.observables import ClusterCount, MeanCosine, MinimumCosine, PairDensity
from tokenflock.precision import precision
from tokenflock.solvers import RK4, Adaptive, EulerMaruyama, Layer
from tokenflock.starts import Uniform

from . import reference

N, REPEATS, TIMES = 10, 4, [0.0, 1.0, 3.0, 6.0]
TOGETHER = np.tile([1.0, 0.0], (3, 1))
SEEN = [MeanCosine(), MinimumCosine(), ClusterCount()]


def strengths(law):
    """A law at both ends of the range of its beta, or as it is."""
    named = {field.name for field in dataclasses.fields(law)}
    if "beta" not in named:
        return [law]
    return [dataclasses.replace(law, beta=beta) for beta in (0.1, 9.0)]


def catalogue():
    """(name, law, whether it is part of the default tests) for every law of motion."""
    for entry in entries("dynamics"):
        cls = entry.load()
        d = cls.example(N, 3).dimension or 3
        for number, law in enumerate(reversed(strengths(cls.example(N, d)))):
            yield pytest.param(
                law, id=f"{entry.slug}-{number}", marks=[pytest.mark.slow] if number else []
            )


def held(law, d: int = 3, n: int = N, times=TIMES, repeats: int = REPEATS, **options):
    """Hold an ensemble of a law to the reference; return it."""
    start = Uniform(n=n, d=law.dimension or d)
    many = flock.ensemble(
        law, start, repeats=repeats, times=times, observe=SEEN, keep=True, **options
    )
    x = reference.starts(law, start, 0, repeats)
    w = start.weights()
    G = reference.cosines(np.stack([reference.flow(law, each, w, np.array(times)) for each in x]))
    exact = {
        "mean_cosine": reference.mean_cosines(G),
        "minimum_cosine": G.min(axis=(-1, -2)),
        "cluster_count": reference.cluster_counts(G),
    }
    for name, values in exact.items():
        error = many[f"{name}_step_error"].values
        # a count at a threshold may flip by one
        slack = 1.0 if name == "cluster_count" else 2e-5
        reference.within(error, many[name].values, values, slack)
    return many


@pytest.mark.parametrize("law", catalogue())
def test_default_ensembles_are_accurate_or_refused(law):
    if law.noisy:
        pytest.skip("noise has a test of its own")
    if not law.smooth:
        pytest.skip("LSODA does not follow jumps")
    try:
        held(law)
    except SimulationError as error:
        if "take a shorter time" not in str(error):
            raise


STIFF = {
    "unnormalised-4": (Unnormalised(beta=4.0), 1.6),
    "unnormalised-10": (Unnormalised(beta=10.0), 1.6),
    "causal-bias-4": (CausalBias(beta=4.0, slope=4.0), 1.0),
}


@pytest.mark.parametrize("name", STIFF)
def test_stiff_laws_are_followed_by_controlled_steps(name):
    law, end = STIFF[name]
    many = held(law, times=[0.0, end / 2, end], n=8)
    assert int(many.scheme) > 0 and bool(many.accurate)
    assert "controlled steps" in many.attrs["accuracy"]


def test_cells_of_one_ensemble_take_the_steps_that_they_need():
    many = flock.ensemble(
        Unnormalised(),
        Uniform(n=32, d=3),
        over={"beta": [1.0, 8.0]},
        repeats=4,
        t=20,
        frames=21,
        observe=[ClusterCount()],
    )
    assert many.scheme.values[0] == 0 and many.scheme.values[1] > 0
    assert many.cluster_count.values[:, -1].tolist() == [1.0, 2.0]


def test_what_is_too_stiff_is_refused_and_the_cells_are_listed():
    law, start = CausalBias(slope=4.0), Uniform(n=8, d=3)
    options = {"repeats": 2, "t": 20, "frames": 5, "observe": [ClusterCount()]}
    with pytest.raises(SimulationError, match="at beta = 24; take a shorter time") as caught:
        flock.ensemble(law, start, over={"beta": [1.0, 24.0]}, **options)
    assert "beta = 1;" not in str(caught.value)


def test_a_store_keeps_the_cells_that_are_not_refused(tmp_path):
    law, start = CausalBias(slope=4.0), Uniform(n=8, d=3)
    options = {"repeats": 2, "t": 20, "frames": 5, "observe": [ClusterCount()]}
    with pytest.warns(AccuracyWarning, match="at beta = 24, and these cells hold NaN"):
        many = flock.ensemble(
            law, start, over={"beta": [1.0, 24.0]}, out=tmp_path / "many.zarr", **options
        )
    assert many.scheme.values.tolist() == [0, -1]
    assert np.isfinite(many.cluster_count.values[0]).all()
    assert np.isnan(many.cluster_count.values[1]).all()


def test_the_remedies_of_a_stiff_law_work():
    law, start = Unnormalised(beta=14.0), Uniform(n=16, d=3)
    with pytest.raises(SimulationError, match=r"take coalesce=1e-9, .*chebyshev") as told:
        flock.simulate(law, start, t=20, frames=3, solver=Adaptive(max_steps=20_000))
    assert "RK4" not in str(told.value)
    joined = flock.simulate(law, start, t=20, frames=3, coalesce=1e-9, observe=[ClusterCount()])
    steps = Adaptive(method="chebyshev", rtol=1e-7)
    many = flock.simulate(law, start, t=20, frames=3, solver=steps, observe=[ClusterCount()])
    assert int(joined.cluster_count[-1]) == int(many.cluster_count[-1]) <= 4


def test_a_given_step_is_used_and_warned_of_where_it_is_too_long():
    start, over = Uniform(n=16, d=3), {"beta": [1.0, 6.0]}
    with pytest.warns(AccuracyWarning, match=r"RK4\(h=0.1\) is too long at beta = 6: its error"):
        many = flock.ensemble(
            Unnormalised(), start, over=over, repeats=8, t=5, solver=RK4(h=0.1), frames=6
        )
    assert many.accurate.values.tolist() == [True, False]
    assert many.pair_density_step_error.values[1].max() > 0.1
    with pytest.warns(AccuracyWarning, match="is too long: its error"):
        flock.simulate(Unnormalised(beta=6.0), start, t=5, solver=RK4(h=0.1))


def test_a_layer_map_states_its_distance_from_the_flow_and_no_error():
    start = Uniform(n=16, d=3)
    many = flock.phase_diagram(SelfAttention(), start, beta=[4.0], repeats=8, t=10, frames=6)
    distance = float(many.pair_density_flow_distance.max())
    flow = flock.ensemble(
        SelfAttention(beta=4.0), start, repeats=8, t=10, frames=6, solver=RK4(h=0.05)
    )
    seen = np.abs(many.pair_density.values[0] - flow.pair_density.values).max()
    assert seen <= distance and "pair_density_step_error" not in many
    assert many.attrs["accuracy"].startswith("layer map: distance from the flow")


def test_numbers_of_cells_that_are_accurate_are_those_of_rk4():
    start, options = Uniform(n=16, d=3), {"repeats": 8, "t": 5, "frames": 6}
    plain = flock.ensemble(SelfAttention(beta=2.0), start, **options)
    named = flock.ensemble(SelfAttention(beta=2.0), start, solver=RK4(h=0.1), **options)
    assert int(plain.scheme) == 0
    assert (plain.pair_density.values == named.pair_density.values).all()


def test_adaptive_is_accepted_by_ensembles():
    start, options = Uniform(n=8, d=3), {"repeats": 4, "t": 5, "frames": 6, "observe": SEEN}
    many = flock.ensemble(SelfAttention(beta=4.0), start, keep=True, solver=Adaptive(), **options)
    x = reference.starts(SelfAttention(), start, 0, 4)
    frames = [
        reference.flow(SelfAttention(beta=4.0), each, np.full(8, 0.125), np.arange(6.0))
        for each in x
    ]
    exact = reference.mean_cosines(reference.cosines(np.stack(frames)))
    assert np.abs(many.mean_cosine.values - exact).max() < 1e-4
    assert "rtol 1e-05" in many.attrs["accuracy"]


def test_first_passages_state_their_error():
    law, start = Unnormalised(beta=5.0), Uniform(n=6, d=3)
    many = flock.ensemble(law, start, repeats=4, t=12, until=Consensus(), observe=[])
    assert int(many.scheme) > 0 and float(many.first_passage_step_error) < 1e-3
    x = reference.starts(law, start, 0, 4)
    times = np.linspace(0, 12, 12001)
    for mine, tokens in zip(many.first_passage.values, x):
        G = reference.cosines(reference.flow(law, tokens, np.full(6, 1 / 6), times))
        reached = G.min(axis=(-1, -2)) >= 1 - 1e-3
        exact = times[reached.argmax()] if reached.any() else np.nan
        assert np.isnan(mine) == np.isnan(exact)
        assert np.isnan(mine) or abs(mine - exact) < 2e-3


def brownian(law, x, key, steps: int, h: float, parts: int, seed: int) -> np.ndarray:
    """Tokens at the end of Euler-Maruyama with h / parts, on a refinement of the path of h."""
    random = np.random.default_rng(seed)
    with precision("float64"):
        n, d = x.shape
        w = jnp.full(n, 1 / n)
        strength = np.sqrt(2 / law.kappa)

        @jax.jit
        def step(x, noise):
            move = h / parts * law.velocity(0.0, x, w)
            kick = law.space.tangent(x, np.sqrt(h / parts) * strength * noise)
            return law.space.retract(x, move + kick)

        for k in range(steps):
            own = jax.random.fold_in(key, k)
            Z = np.asarray(jax.random.normal(own, (n, d), "float32"), float)
            G = random.normal(size=(parts, n, d))
            for part in Z / np.sqrt(parts) + G - G.mean(axis=0):
                x = step(x, part)
        return np.asarray(x)


@pytest.mark.parametrize("kappa", [2.0, 1e4])
def test_noise_is_accurate_on_its_own_path(kappa):
    law, start = Noisy(SelfAttention(beta=2.0), kappa=kappa), Uniform(n=6, d=3)
    options = {"repeats": 6, "times": [0.0, 0.5], "keep": True, "observe": SEEN[:2]}
    many = flock.ensemble(law, start, **options)
    assert int(many.scheme) == 0
    x = reference.starts(law, start, 0, 6)
    ends = [
        brownian(law, each, key, 50, 0.01, 16, seed)
        for seed, (each, key) in enumerate(zip(x, reference.keys(0, 1, 0, 6)))
    ]
    G = reference.cosines(np.stack(ends))
    exact = {"mean_cosine": reference.mean_cosines(G), "minimum_cosine": G.min(axis=(-1, -2))}
    for name, values in exact.items():
        error = many[f"{name}_step_error"].values[-1:]
        reference.within(error, many[name].values[:, -1:], values[:, None])


def test_noise_around_a_stiff_law_is_followed():
    law, start = Noisy(Unnormalised(beta=8.0), kappa=1e6), Uniform(n=12, d=3)
    one = flock.simulate(law, start, t=1, frames=2, observe=[ClusterCount()])
    assert int(one.cluster_count[-1]) <= 4  # Euler-Maruyama with h = 0.01 leaves 12
    assert "chebyshev" in one.attrs["recipe"].lower()


def test_a_step_of_noise_that_is_too_long_is_warned_of():
    law = Noisy(Unnormalised(beta=6.0), kappa=1e6)
    with pytest.warns(AccuracyWarning, match="EulerMaruyama"):
        flock.ensemble(
            law, Uniform(n=16, d=3), repeats=8, t=2, solver=EulerMaruyama(h=0.1), frames=3
        )


def test_jumps_are_located():
    law = Hardmax.example(6, 3)
    x = np.random.default_rng(0).normal(size=(6, 3))
    run = flock.simulate(law, x, t=4, frames=3)
    fine = flock.simulate(law, x, t=4, frames=3, solver=RK4(h=1e-4), tolerance=None)
    assert np.abs(run.x.values - fine.x.values).max() < 1e-3


def test_member_repeats_what_ran():
    law, start = Unnormalised(), Uniform(n=12, d=3)
    options = {"repeats": 3, "t": 2, "frames": 5, "observe": [MeanCosine()], "keep": True}
    many = flock.ensemble(law, start, over={"beta": [1.0, 7.0]}, **options)
    for beta in (1.0, 7.0):
        one = flock.measure(flock.member(many, beta=beta, repeat=2), [MeanCosine()])
        mine = many.mean_cosine.sel(beta=beta, repeat=2).values
        assert np.abs(one.mean_cosine.values - mine).max() < 1e-5


def test_member_has_the_frames_of_the_ensemble():
    """Seven frames up to t = 2 lie at multiples of 0.1 in the ensemble, and so in every member."""
    law, options = Unnormalised(), {"repeats": 2, "t": 2, "frames": 7, "observe": [MeanCosine()]}
    many = flock.ensemble(law, Uniform(n=6, d=3), over={"beta": [1.0, 7.0]}, keep=True, **options)
    assert many.scheme.values.tolist() == [0, 1]
    for beta in (1.0, 7.0):
        one = flock.member(many, beta=beta, repeat=1)
        np.testing.assert_allclose(one.time.values, many.time.values, rtol=1e-6)
        mine = many.mean_cosine.sel(beta=beta, repeat=1).values
        assert np.abs(one.mean_cosine.values - mine).max() < 1e-5
        np.testing.assert_array_equal(flock.rerun(one).x.values, one.x.values)


def test_rerun_takes_the_default_again():
    many = flock.ensemble(Unnormalised(beta=7.0), Uniform(n=8, d=3), repeats=4, t=2, frames=3)
    again = flock.rerun(many)
    assert int(again.scheme) == int(many.scheme) > 0
    assert (again.pair_density.values == many.pair_density.values).all()


def test_tolerance_says_what_is_accurate():
    law, start, options = Unnormalised(beta=4.0), Uniform(n=8, d=3), {"repeats": 8, "t": 5}
    seen = [MinimumCosine()]
    loose = flock.ensemble(law, start, frames=6, observe=seen, tolerance=0.9, **options)
    tight = flock.ensemble(law, start, frames=6, observe=seen, **options)
    assert int(loose.scheme) == 0 and int(tight.scheme) > 0


@pytest.mark.parametrize("tolerance", [0.0, -1.0, 1.0, 1e-9, float("nan"), "small"])
def test_tolerances_that_are_none_are_refused(tolerance):
    with pytest.raises(UserError, match="tolerance"):
        flock.ensemble(SelfAttention(), Uniform(n=4, d=3), repeats=2, t=1, tolerance=tolerance)


def test_only_a_given_solver_goes_unchecked():
    law, start = SelfAttention(), Uniform(n=4, d=3)
    with pytest.raises(UserError, match="without a solver"):
        flock.ensemble(law, start, repeats=2, t=1, tolerance=None)
    many = flock.ensemble(law, start, repeats=2, t=1, tolerance=None, solver=RK4(h=0.5))
    assert "not checked" in many.attrs["accuracy"] and "accurate" not in many


def test_a_layer_map_without_a_flow_runs():
    law = FeedForward.example(6, 3)
    many = flock.ensemble(law, Uniform(n=6, d=3), repeats=2, t=1, solver=Layer(h=0.5))
    assert np.isfinite(many.pair_density.values).all()


def test_lyapunov_shortens_its_step_for_fast_rates():
    slow = flock.lyapunov(SelfAttention(beta=1.0), TOGETHER, t=5)
    assert recipe.loads(slow.attrs["recipe"])["solver"] == RK4(h=0.01)
    fast = flock.lyapunov(Unnormalised(beta=6.0), TOGETHER, t=1)
    rate = np.exp(6.0)  # of every mode but the rotation, at consensus
    assert np.abs(fast.exponent.values[1:] / -rate - 1).max() < 1e-3


def test_lyapunov_and_flow_map_want_a_solver_where_there_is_noise():
    law = Noisy(SelfAttention())
    with pytest.raises(UserError, match="solver must be given"):
        flock.lyapunov(law, TOGETHER, t=1)
    with pytest.raises(UserError, match="of fixed step, for a law with noise"):
        flock.flow_map(law, 1.0)


def test_steering_reports_the_flow_of_what_it_found():
    from tokenflock.steering import clouds, laws, steer

    result = steer(clouds(2, 4), clouds(2, 1, seed=1)[:, 0], pieces=2, heads=1, steps=10)
    x = result.x.values[0, 0]
    for law in laws(result):
        x = flock.simulate(law, x, t=result.attrs["period"], frames=2).x.values[-1]
    assert np.abs(x - result.x.values[0, -1]).max() < 1e-6


def test_the_accuracy_of_a_run_stands_in_it():
    law, start = SelfAttention(beta=4.0), Uniform(n=6, d=3)
    assert "rtol 1e-09" in flock.simulate(law, start, t=1).attrs["accuracy"]
    run = flock.simulate(law, start, t=1, solver=RK4(h=0.1))
    assert run.attrs["accuracy"].startswith("time stepping: error")
    unseen = flock.simulate(law, start, t=1, solver=Layer(h=0.1))
    assert "layer map" in unseen.attrs["accuracy"]


def test_pair_densities_have_their_error_beside_the_monte_carlo_error():
    many = flock.ensemble(SelfAttention(beta=2.0), Uniform(n=8, d=3), repeats=4, t=5, frames=6)
    assert many.pair_density_step_error.dims == many.pair_density_error.dims
    assert PairDensity().name in many and "Monte Carlo" not in many.attrs["accuracy"][:5]
