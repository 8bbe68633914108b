"""What an ensemble promises: exact shortcuts, statistics, sweeps, the same numbers for every cut of
the work, clear errors.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import tokenflock as flock
from tests.laws.specimens import SPECIMENS, N
from tests.laws.test_engines import compile_quickly  # noqa: F401 (a fixture)
from tokenflock.dynamics import (
    Attention,
    Kuramoto,
    Noisy,
    PureAttention,
    SelfAttention,
    Sinkhorn,
    Unnormalised,
)
from tokenflock.engines import rotation
from tokenflock.errors import SimulationError, UserError
from tokenflock.observables import (
    ClusterCount,
    ConeMargin,
    Energy,
    InnerProducts,
    MeanCosine,
    MinimumCosine,
    OrderParameter,
    PairDensity,
)
from tokenflock.solvers import RK4, Adaptive, EulerMaruyama, Layer
from tokenflock.starts import Given, Uniform
from tokenflock.sweeps import Store
from tokenflock.verbs.ensemble import ensemble

SHORT = {"t": 1.0, "frames": 3, "solver": Layer(h=0.1)}


def given(n=5, d=3, seed=0, w=None):
    return Given(np.random.default_rng(seed).normal(size=(n, d)), w)


def chosen(result):
    return json.loads(result.attrs["recipe"])["chosen"]


def gap(a, b):
    return np.abs(a.values - b.values).max()


# --------------------------------------------------------------------------------------------------
# the one equation


def catalogue():
    return [pytest.param(law, id=name) for name, law in SPECIMENS if not name.endswith("-default")]


@pytest.mark.parametrize("law", catalogue())
def test_batch_is_simulate(law):
    """Every law of the catalogue: one system, the same solver and tokens, unequal weights, both
    precisions.
    """
    solver = EulerMaruyama(h=0.05) if law.noisy else Layer(h=0.05)
    start = given(N, law.dimension or 3, w=np.arange(1, N + 1))
    options = {"t": 0.2, "frames": 3, "solver": solver, "observe": [InnerProducts(normalise=False)]}
    if law.noisy:  # the noise is drawn from other keys: compare without it
        law = Noisy(law.base, kappa=1e30)
    one = flock.simulate(law, start, **options).inner_products
    many = ensemble(
        law, start, engine="batch", repeats=1, dtype="float64", **options
    ).inner_products
    assert many.dims == ("time", "particle", "other")
    assert gap(one, many) < 1e-9
    assert np.abs(one.values[-1] - one.values[0]).max() > 1e-3  # something moved


def test_noise_is_there_and_independent():
    law = Noisy(Unnormalised(beta=1.0), kappa=2.0)
    result = ensemble(
        law,
        given(),
        repeats=64,
        t=0.4,
        frames=2,
        solver=EulerMaruyama(h=0.1),
        observe=[MeanCosine()],
        keep=True,
    )
    assert len(np.unique(result.mean_cosine.values[:, -1])) == 64
    again = ensemble(
        law,
        given(),
        repeats=64,
        t=0.4,
        frames=2,
        solver=EulerMaruyama(h=0.1),
        observe=[MeanCosine()],
        keep=True,
    )
    assert np.array_equal(result.mean_cosine, again.mean_cosine)


# --------------------------------------------------------------------------------------------------
# shortcuts


def both(switch, law, start, observe, **options):
    return [
        ensemble(
            law, start, observe=observe, keep=True, **({"repeats": 4} | options | {switch: on})
        )
        for on in (True, False)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["batch", "lanes", "resident"])
def test_turning_tokens_into_n_dimensions_changes_nothing(engine):
    if engine == "lanes":
        pytest.importorskip("llvmlite")
    observe = [PairDensity(delta=0.3)] if engine == "lanes" else [MeanCosine(), MinimumCosine()]
    on, off = both(
        "rotate",
        SelfAttention(beta=2.0),
        Uniform(n=4, d=9),
        observe,
        t=3.0,
        frames=4,
        solver=Layer(h=0.1),
        engine=engine,
    )
    assert chosen(on)["rotated"] is True and chosen(off)["rotated"] is False
    for name in on.data_vars:
        assert gap(on[name], off[name]) < 1e-5
        assert np.ptp(off[name].values) > 0.1


def test_turning_keeps_the_gram_matrix_of_coincident_tokens():
    """A Gram matrix without an inverse has no Cholesky factor: the other way is taken, and is as
    exact.
    """
    random = np.random.default_rng(0)
    x = random.normal(size=(3, 4, 7))
    x[:, 2] = x[:, 0]
    x[1, 3] = -x[1, 1]
    x = (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)
    for tokens in (x, x[:, [0, 1, 3]]):
        turned = np.asarray(rotation.rotate(tokens))
        assert turned.shape == (3, tokens.shape[1], tokens.shape[1])
        assert (
            np.abs(turned @ np.swapaxes(turned, 1, 2) - tokens @ np.swapaxes(tokens, 1, 2)).max()
            < 1e-6
        )
    on, off = both(
        "rotate", SelfAttention(beta=2.0), Given(x[1]), [InnerProducts()], repeats=1, **SHORT
    )
    assert chosen(on)["rotated"] and gap(on.inner_products, off.inner_products) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "observe", "over"),
    [
        (Attention(V=np.diag([2.0, 1, 1, 1, 1, 1])), MeanCosine(), {}),
        (Attention(), MeanCosine(), {"V": [np.eye(6), np.diag([2.0, 1, 1, 1, 1, 1])]}),
        (SelfAttention(), ConeMargin(), {}),
        (SelfAttention(), Energy(beta=1.0, D=np.diag(np.arange(6.0))), {}),
        (Noisy(SelfAttention(), kappa=10.0), MeanCosine(), {}),
    ],
    ids=["law", "swept law", "cone", "energy", "noise"],
)
def test_tokens_are_not_turned_where_directions_matter(law, observe, over):
    solver = EulerMaruyama(h=0.1) if law.noisy else Layer(h=0.1)
    on, off = both(
        "rotate", law, given(4, 6), [observe], over=over, repeats=1, t=1.0, frames=2, solver=solver
    )
    assert chosen(on)["rotated"] is False
    assert np.array_equal(on[observe.name], off[observe.name])


@pytest.mark.parametrize(
    "observe", [[PairDensity()], [ClusterCount(), PairDensity(delta=0.1)]], ids=["one", "two"]
)
def test_stopping_at_consensus_changes_nothing(observe):
    options = {
        "over": {"beta": [0.5, 4.0]},
        "t": 20,
        "frames": 41,
        "solver": Layer(h=0.1),
        "engine": "batch",
        "repeats": 8,
    }
    on, off = both("settle", SelfAttention(), Uniform(n=6, d=2), observe, **options)
    assert chosen(on)["settling"] is True and chosen(off)["settling"] is False
    for name in on.data_vars:
        assert np.array_equal(on[name], off[name])
    done = off[observe[0].name].values[0, :, -1]
    assert np.abs(done - 1).max() < 1e-5  # at beta = 0.5 there was something to stop


@pytest.mark.parametrize(
    ("law", "observe", "over"),
    [
        (SelfAttention(repulsive=True), [PairDensity()], {}),
        (Attention(V=-1.0), [PairDensity()], {}),
        (Attention(), [PairDensity()], {"V": [1.0, -1.0]}),
        (SelfAttention(), [PairDensity()], {"repulsive": [False, True]}),
        (SelfAttention(), [PairDensity(), OrderParameter()], {}),
        (SelfAttention(), [PairDensity()], {"delta": [1e-4, 1e-2]}),
    ],
    ids=[
        "repulsive",
        "V = -I",
        "swept V",
        "swept sign",
        "an observable that never rests",
        "a swept threshold",
    ],
)
def test_nothing_settles_where_consensus_is_not_for_ever(law, observe, over):
    """Tokens that start within the threshold and leave it, or that are not done when they are
    within it.
    """
    start = Given([[1.0, 0.0], [1.0, 0.02], [1.0, -0.02]])
    on, off = both(
        "settle",
        law,
        start,
        observe,
        over=over,
        repeats=1,
        t=8,
        frames=9,
        solver=Layer(h=0.1),
        engine="batch",
    )
    assert chosen(on)["settling"] is False
    for name in on.data_vars:
        assert np.array_equal(on[name], off[name])
    away = off.pair_density.values.reshape(-1, 9)[-1]
    assert away[0] > 0.5 and ((away[-1] < 0.1) or len(observe) > 1 or "delta" in over)


# ------------------------------------------------------------------------------------------------
# cuts, seeds and engines


def test_the_cut_of_the_work_changes_nothing():
    options = {
        "over": {"beta": [1.0, 2.0, 3.0]},
        "repeats": 20,
        "observe": [MeanCosine()],
        "keep": True,
        "engine": "batch",
    } | SHORT
    steps = []
    small = ensemble(
        SelfAttention(),
        Uniform(5, 3),
        memory=1.0,
        progress=lambda done, total: steps.append((done, total)),
        **options,
    )
    whole = ensemble(SelfAttention(), Uniform(5, 3), **options)
    assert gap(small.mean_cosine, whole.mean_cosine) < 1e-6
    total = 3 * 20 * 10
    done = [one for one, _ in steps]
    assert (
        done == list(range(0, total + 1, 10))[-len(done) :]
    )  # so little memory holds one system of ten steps at a time
    assert {one for _, one in steps} == {total}


def test_one_seed_gives_the_same_systems_to_every_engine():
    pytest.importorskip("llvmlite")
    observe, options = (
        [PairDensity(delta=0.5)],
        {"over": {"beta": [1.0, 6.0]}, "repeats": 3, "keep": True} | SHORT,
    )
    first, *others = (
        ensemble(
            SelfAttention(), Uniform(5, 3), observe=observe, engine=engine, **options
        ).pair_density
        for engine in ("batch", "resident", "lanes")
    )
    assert np.ptp(first.values) > 0.2
    for one in others:
        assert gap(one, first) < 1e-5
    other = ensemble(
        SelfAttention(), Uniform(5, 3), observe=observe, seed=1, engine="lanes", **options
    ).pair_density
    assert gap(other, first) > 0.05


def test_keys_belong_to_seed_cell_and_repeat():
    """Cells are numbered along the last axis first. Repeats, and cells at the end of the first
    axis, can be added and leave the others as they were; a cell put before others moves their
    numbers, and so their systems."""
    options = {"observe": [MeanCosine()], "keep": True, "engine": "batch"} | SHORT

    def run(repeats=4, **over):
        return ensemble(
            SelfAttention(), Uniform(5, 3), over=over, repeats=repeats, **options
        ).mean_cosine.values

    base = run(beta=[1.0, 2.0])
    assert np.allclose(run(beta=[1.0, 2.0, 3.0])[:2], base, atol=1e-6)
    assert np.allclose(run(beta=[1.0, 2.0], repeats=6)[:, :4], base, atol=1e-6)
    assert np.abs(run(beta=[3.0, 1.0])[1] - base[0]).min(axis=-1).max() > 1e-4
    everyone = base[:, :, 0].ravel()  # at time zero: no two systems are the same
    assert len(np.unique(everyone.round(6))) == everyone.size


def test_repeats_are_independent():
    """E <x_i, x_j> = 0 and E <x_i, x_j>^2 = 1/d at time zero, and the mean over repeats shrinks as
    it should.
    """
    options = {
        "t": 0.1,
        "frames": 2,
        "solver": Layer(h=0.1),
        "observe": [MeanCosine()],
        "keep": True,
    }
    result = ensemble(SelfAttention(), Uniform(2, 3), repeats=4000, **options).mean_cosine.values[
        :, 0
    ]
    assert abs(result.mean()) < 4 * (1 / 3 / 4000) ** 0.5
    assert abs((result**2).mean() - 1 / 3) < 0.02
    assert abs(np.corrcoef(result[:-1], result[1:])[0, 1]) < 4 / 4000**0.5


# --------------------------------------------------------------------------------------------------
# statistics


def test_statistics_are_those_of_the_repeats():
    options = {
        "over": {"beta": [0.5, 2.0]},
        "repeats": 9,
        "observe": [MeanCosine(), InnerProducts()],
        "engine": "batch",
    } | SHORT
    kept = ensemble(SelfAttention(), Uniform(4, 3), keep=True, **options)
    summed = ensemble(SelfAttention(), Uniform(4, 3), quantiles=[0.25, 0.5, 1.0], **options)
    assert kept.mean_cosine.dims == ("beta", "repeat", "time") and "mean_cosine_error" not in kept
    assert summed.mean_cosine_quantile.dims == ("beta", "quantile", "time")
    assert summed.inner_products_error.dims == ("beta", "time", "particle", "other")
    assert summed["quantile"].values.tolist() == [0.25, 0.5, 1.0]
    for name in ("mean_cosine", "inner_products"):
        values = kept[name].astype(float)
        assert gap(values.mean("repeat"), summed[name]) < 1e-6
        assert gap(values.std("repeat", ddof=1) / 3, summed[name + "_error"]) < 1e-6
    # of nine values these are the third, the fifth and the last
    sorted_ = np.sort(kept.mean_cosine.values, axis=1)
    assert np.abs(sorted_[:, [2, 4, 8]] - summed.mean_cosine_quantile.values).max() < 1e-6


def test_one_repeat_has_no_error_bar():
    result = ensemble(SelfAttention(), given(), repeats=1, observe=[MeanCosine()], **SHORT)
    assert np.isfinite(result.mean_cosine).all() and np.isnan(result.mean_cosine_error).all()


# --------------------------------------------------------------------------------------------------
# sweeps


@pytest.mark.slow
def test_sweeps_over_shapes():
    """<x_i, x_j>^2 has mean 1/d, and the mean cosine of n tokens spreads like 1/n: the axes are not
    mixed up.
    """
    over = {"n": [3, 12], "beta": [1.0, 2.0, 3.0], "d": [2, 8]}
    result = ensemble(
        SelfAttention(),
        Uniform(),
        over=over,
        repeats=200,
        t=0.1,
        frames=2,
        solver=Layer(h=0.1),
        observe=[MeanCosine()],
        engine="batch",
    )
    assert result.mean_cosine.dims == ("n", "beta", "d", "time")
    assert result.n.values.tolist() == [3, 12] and result.d.values.tolist() == [2, 8]
    spread = result.mean_cosine_error.isel(time=0).mean("beta") * 200**0.5
    expected = [[(2 / n / (n - 1) / d) ** 0.5 for d in (2, 8)] for n in (3, 12)]
    assert np.abs(spread.values / expected - 1).max() < 0.15


@pytest.mark.parametrize("name", ["step", "h", "solver.h"])
def test_a_sweep_over_the_step_is_runs_with_other_steps(name):
    options = {"repeats": 1, "t": 2.0, "frames": 3, "observe": [MeanCosine()]}
    result = ensemble(
        SelfAttention(4.0), given(), over={name: [0.1, 0.5]}, solver=Layer(), **options
    ).mean_cosine
    assert result.dims == (name, "time") and result.time.values.tolist() == [0, 1, 2]
    for k, h in enumerate((0.1, 0.5)):
        single = ensemble(SelfAttention(4.0), given(), solver=Layer(h=h), **options).mean_cosine
        assert np.abs(result.values[k] - single.values).max() < 1e-6
    assert np.abs(result.values[0] - result.values[1]).max() > 1e-3


def test_a_sweep_over_a_threshold_counts_the_same_tokens():
    deltas = [0.01, 0.5, 1.99]
    result = ensemble(
        SelfAttention(),
        given(),
        over={"observe.1.delta": deltas},
        repeats=1,
        keep=True,
        observe=[InnerProducts(), PairDensity()],
        **SHORT,
    )
    for k, delta in enumerate(deltas):
        G = result.inner_products.values[k, 0]
        pairs = (G[:, *np.triu_indices(5, 1)] >= 1 - delta).mean(axis=-1)
        assert np.abs(result.pair_density.values[k, 0] - pairs).max() < 1e-6
    assert np.ptp(result.pair_density.values) > 0.5


def test_a_sweep_over_matrices_is_runs_with_other_matrices():
    V = np.stack([np.eye(3), np.diag([1.0, -1.0, 0.5]), np.ones((3, 3))])
    options = {"repeats": 1, "observe": [MeanCosine()]} | SHORT
    result = ensemble(Attention(beta=2.0), given(), over={"V": V}, **options).mean_cosine
    assert result.dims == ("V", "time") and result.V.values.tolist() == [0, 1, 2]
    for k in range(3):
        single = ensemble(Attention(beta=2.0, V=V[k]), given(), **options).mean_cosine
        assert np.abs(result.values[k] - single.values).max() < 1e-6


@pytest.mark.slow
def test_a_sweep_reaches_nested_parameters_whole_numbers_and_switches():
    noisy = Noisy(SelfAttention(), kappa=1e30)
    options = {"repeats": 1, "t": 1.0, "frames": 2, "observe": [MeanCosine()]}
    nested = ensemble(
        noisy,
        given(),
        over={"dynamics.base.beta": [0.0, 5.0]},
        solver=EulerMaruyama(h=0.1),
        **options,
    ).mean_cosine
    bare = ensemble(
        noisy, given(), over={"beta": [0.0, 5.0]}, solver=EulerMaruyama(h=0.1), **options
    ).mean_cosine
    assert np.array_equal(nested.values, bare.values) and nested.dims[0] == "dynamics.base.beta"
    single = ensemble(
        Noisy(SelfAttention(5.0), kappa=1e30), given(), solver=EulerMaruyama(h=0.1), **options
    ).mean_cosine
    assert np.abs(nested.values[1] - single.values).max() < 1e-6 < np.ptp(nested.values[:, -1])
    signs = ensemble(
        SelfAttention(), given(), over={"repulsive": [True, False]}, solver=Layer(h=0.1), **options
    ).mean_cosine
    assert signs.values[0, -1] < signs.values[0, 0] < signs.values[1, -1]
    rounds = ensemble(
        Sinkhorn(2.0), given(), over={"rounds": [1, 60]}, solver=Layer(h=0.1), **options
    ).mean_cosine
    assert np.ptp(rounds.values[:, -1]) > 1e-4


def test_the_energy_of_a_sweep_takes_the_beta_of_each_cell():
    result = ensemble(
        SelfAttention(),
        Given(np.eye(2)),
        over={"beta": [1.0, 3.0]},
        repeats=1,
        observe=[Energy()],
        **SHORT,
    )
    expected = [(np.exp(beta) + 1) / (4 * beta) for beta in (1.0, 3.0)]  # two orthogonal tokens
    assert np.abs(result.energy.values[:, 0] - expected).max() < 1e-5


# --------------------------------------------------------------------------------------------------
# interrupt and resume


def test_an_interrupted_run_goes_on_from_its_file(tmp_path):
    store, calls = tmp_path / "run.zarr", []
    options = {
        "over": {"beta": [1.0, 2.0, 3.0, 4.0]},
        "repeats": 5,
        "observe": [MeanCosine()],
        "memory": 1.0,
        "engine": "batch",
    } | SHORT

    def stop(done, total):
        calls.append(done)
        if done == 13 * 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensemble(SelfAttention(), Uniform(5, 3), out=str(store), progress=stop, **options)
    assert Store(store).look().progress.done.tolist() == [True, True, False, False]
    with np.load(store / ".tokenflock" / "unfinished.npz") as kept:
        assert kept["block"] == 2
        assert kept["rows"].tolist() == [0, 1, 2]  # and three systems of the third
    with pytest.raises(UserError, match="another run"):
        ensemble(SelfAttention(), Uniform(5, 3), out=str(store), seed=1, **options)
    assert store.exists()
    again = []
    resumed = ensemble(
        SelfAttention(),
        Uniform(5, 3),
        out=str(store),
        progress=lambda done, total: again.append(done),
        **options,
    )
    assert (
        again[:2] == [100, 130] and again == sorted(again) and again[-1] == 200
    )  # two cells and three systems at once, from the file
    assert list(tmp_path.iterdir()) == [store]
    whole = ensemble(SelfAttention(), Uniform(5, 3), **options)
    for name in whole.data_vars:
        assert np.array_equal(resumed[name], whole[name])


# --------------------------------------------------------------------------------------------------
# errors

REFUSED = {
    "engine must be 'auto'": {"solver": Adaptive(), "engine": "batch"},
    "solver must be one that takes noise": {
        "dynamics": Noisy(SelfAttention(), kappa=1.0),
        "solver": RK4(h=0.1),
    },
    "engine must be one of auto, batch, resident, tiled, lanes": {"engine": "gpu"},
    "serves dynamics on the sphere, not PureAttention; use engine='batch'": {
        "dynamics": PureAttention(),
        "engine": "resident",
    },
    "observables of different names": {"observe": [PairDensity(), PairDensity(delta=0.1)]},
    "at least one observable": {"observe": []},
    "could be more than one parameter; write 'observe.0.delta' or 'observe.1.delta'": {
        "over": {"delta": [0.1]},
        "observe": [PairDensity(), ClusterCount()],
    },
    "no parameter 'gamma'; there are .*beta, .*repulsive": {"over": {"gamma": [1.0]}},
    "no parameter 'dynamics.gamma'; begin with": {"over": {"dynamics.gamma": [1.0]}},
    "must be a list of values": {"over": {"beta": 1.0}},
    "must be numbers": {"over": {"beta": ["large"]}},
    "beta must be positive, got -1.0": {"dynamics": Sinkhorn(), "over": {"beta": [1.0, -1.0]}},
    "delta must be between 0 and 2": {"over": {"observe.0.delta": [0.1, 3.0]}},
    "h must be a positive step": {"over": {"step": [0.1, 0.0]}},
    "d must be 2, as Kuramoto has it, got 3": {"dynamics": Kuramoto()},
    "d must be 2, as Attention has it": {"dynamics": Attention(), "over": {"V": [np.eye(2)]}},
    "t must be a multiple of the step": {"t": 0.25},
    "t must be a positive": {"t": -1.0},
    "frames must be 2 or more": {"frames": 1},
    "frames must be at most one for each step": {"over": {"step": [0.1, 0.5]}, "frames": 9},
    "times must be increasing": {"times": [1.0, 0.5], "t": None, "frames": None},
    "repeats must be 1 or more": {"repeats": 0},
    "quantiles must be between 0 and 1": {"quantiles": [2.0]},
    "dtype must be": {"dtype": "float16"},
}


@pytest.mark.parametrize("message", REFUSED)
def test_mistakes_are_told_in_one_line(message):
    options = {"dynamics": SelfAttention(), "start": given()} | SHORT | REFUSED[message]
    with pytest.raises(UserError, match=message) as caught:
        ensemble(options.pop("dynamics"), options.pop("start"), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "observe",
    [PairDensity(), ClusterCount(), MeanCosine(), Energy(beta=200.0)],
    ids=lambda one: one.name,
)
def test_lost_numbers_are_an_error_and_not_a_zero(observe):
    """e^200 is not finite in single precision.

    A count of NaNs would look like one of tokens that never met.
    """
    with pytest.raises(SimulationError, match="not finite in float32"):
        ensemble(
            Unnormalised(beta=200.0), given(), repeats=1, observe=[observe], engine="batch", **SHORT
        )


def test_the_recipe_says_what_ran():
    result = ensemble(
        SelfAttention(), given(), over={"beta": [1.0]}, repeats=2, seed=5, engine="batch", **SHORT
    )
    recipe = json.loads(result.attrs["recipe"])
    assert recipe["verb"] == "ensemble" and recipe["seed"] == 5 and recipe["repeats"] == 2
    assert (
        result.attrs["engine"] == "batch: asked for" and result.attrs["convention"] == "layer map"
    )
    automatic = ensemble(SelfAttention(), given(), repeats=2, dtype="float64", **SHORT)
    assert automatic.attrs["engine"] == "batch: no GPU, and the compiled loop works in float32"


def test_tokens_that_can_be_turned_are_as_wide_as_they_are_many():
    """What is turned into n dimensions suits the loops of a CPU however wide it was."""
    asked = {"t": 0.2, "frames": 2, "repeats": 2, "solver": Layer(h=0.1), "observe": [MeanCosine()]}
    wide, other = (
        flock.ensemble(law, Uniform(n=3, d=200), **asked)
        for law in (SelfAttention(), Attention(V=np.diag(np.linspace(0.5, 1, 200))))
    )
    assert wide.attrs["engine"].startswith("lanes") and chosen(wide)["rotated"]
    assert other.attrs["engine"].startswith("batch") and not chosen(other)["rotated"]


@pytest.mark.parametrize("frames", [27, 40])
def test_frames_that_fill_no_block_are_those_of_one_run(frames):
    law, start = SelfAttention(beta=4.0), Uniform(n=6, d=3)
    options = {"t": (frames - 1) / 10, "frames": frames, "solver": Layer(h=0.1)}
    options |= {"observe": [MeanCosine()]}
    many = ensemble(law, start, repeats=3, engine="batch", keep=True, **options)
    one = flock.simulate(law, Given(flock.member(many, repeat=2).x.values[0]), **options)
    np.testing.assert_allclose(many.mean_cosine[2], one.mean_cosine, rtol=0, atol=2e-5)
