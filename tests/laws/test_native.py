"""The loop that is made of a law's equations gives the numbers of `batch`: for every law of the
catalogue, every fixed step, every scalar observable, and with numbers and matrices of each system.
"""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest

from tests.laws.specimens import LAWS, NAMES, N
from tests.laws.test_lanes import BETA, SYSTEMS, H, job
from tests.laws.test_lanes import tokens as gathered
from tokenflock.dynamics import Attention, Causal, MultiHead, SelfAttention, Unnormalised
from tokenflock.engines import batch, lanes
from tokenflock.engines.native.machine import lanes as width
from tokenflock.errors import SimulationError
from tokenflock.matrices._random import RandomMatrices
from tokenflock.observables import (
    ConsensusDistance,
    EffectiveRank,
    Energy,
    InnerProducts,
    MeanCosine,
    MinimumCosine,
    OrderParameter,
    PairDensity,
    Radius,
)
from tokenflock.precision import precision
from tokenflock.solvers import RK4, Euler, Heun, Layer
from tokenflock.starts import Uniform
from tokenflock.verbs.ensemble import ensemble

pytest.importorskip("llvmlite")

STEPS = np.array([0, 1, 4, 20])
FIVE = (MeanCosine(), Energy(), OrderParameter(), MinimumCosine(), ConsensusDistance())
REFUSED = {  # what a loop over tokens cannot say
    "fast": "no linear algebra",
    "sinkhorn": "no scans",
    "noisy": "no noise",
    "rescaled-attention": "no linear algebra",
    "streamed": "no equations",
}


def weights(n):
    return np.random.default_rng(1).uniform(0.2, 2, size=n)


def both(work, x, swept=()):
    swept = [np.asarray(one, np.float32) for one in swept]
    keys = jax.random.split(jax.random.key(0), len(x))
    with precision("float32"):
        theirs = batch.run(work, x, keys, swept)
    return lanes.run(work, x, swept), theirs


def check(ours, theirs, within=1e-5):
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert ours[name].shape == value.shape and ours[name].dtype == value.dtype
        scale = max(1, np.abs(value).max())
        assert np.abs(ours[name] - value).max() / scale < within, name


def specimens():
    """The catalogue; those that stand for others run by default."""
    quick = ("causal", "multi-head", "block", "pre-norm", "noisy", "sinkhorn-default", "kuramoto")
    for name, law in zip(NAMES, LAWS):
        yield pytest.param(law, id=name, marks=() if name in quick else pytest.mark.slow)


@pytest.mark.parametrize("law", [*specimens()])
def test_every_law_agrees_with_batch_or_says_why_not(law, request):
    name = request.node.callspec.id
    d = law.dimension or 3
    x = np.random.default_rng(0).normal(size=(width() + 3, N, d)).astype(np.float32)
    with precision("float32"):
        x = np.asarray(law.space.project(x))
    work = job(law, N, w=weights(N), solver=Heun(h=0.05), observe=FIVE[::2], steps=STEPS)
    refused = lanes.refusal(work, N, d)
    if refused is None:
        return check(*both(work, x))
    reason = next(words for begin, words in REFUSED.items() if name.startswith(begin))
    assert refused.startswith("the compiled loop ") and reason in refused


@pytest.mark.parametrize("solver", [Layer(h=0.1), Euler(h=0.1), Heun(h=0.1), RK4(h=0.1)])
def test_every_fixed_step_and_five_observables(solver):
    observe = (*FIVE, Radius(), PairDensity(delta=0.3))
    check(*both(job(Causal(beta=2.0), 7, solver=solver, observe=observe), gathered(7, 3)), 1e-3)


@pytest.mark.parametrize(("n", "d"), [(2, 2), (33, 5), (5, 33)])
def test_any_shape(n, d):
    work = job(
        Unnormalised(beta=1.0), n, w=weights(n), solver=RK4(h=0.1), observe=FIVE, steps=STEPS
    )
    check(*both(work, gathered(n, d)))


def test_tokens_of_weight_zero_do_not_count():
    w = weights(7)
    w[[1, 4]] = 0
    work = job(SelfAttention(beta=2.0), 7, w=w, solver=RK4(h=0.1), observe=FIVE, steps=STEPS)
    check(*both(work, gathered(7, 3)))


def test_every_lane_has_its_own_numbers_and_matrices():
    random, d = np.random.default_rng(2), 4
    law = Attention(beta=1.0, Q=np.eye(d), K=np.eye(d), V=np.eye(d))
    work = job(
        law,
        6,
        (BETA, H, (0, "Q"), (0, "V")),
        solver=RK4(h=0.1),
        observe=FIVE,
        steps=STEPS,
        settle=False,
    )
    numbers = random.uniform(0, 3, SYSTEMS), random.uniform(0.01, 0.2, SYSTEMS)
    matrices = (random.normal(size=(SYSTEMS, d, d)) / 2 for _ in range(2))
    check(*both(work, gathered(6, d), [*numbers, *matrices]), 1e-4)


def test_values_with_axes_and_whole_numbers():
    observe = (InnerProducts(), PairDensity(delta=0.3))
    check(*both(job(SelfAttention(), 5, observe=observe, steps=STEPS), gathered(5, 3)))


def test_neighbours_do_not_matter():
    work, x = job(SelfAttention(), 7, (BETA,), observe=FIVE, solver=RK4()), gathered(7, 3)
    beta = np.linspace(0, 9, SYSTEMS)
    whole = lanes.run(work, x, [beta])["energy"]
    for k in (0, width(), SYSTEMS - 1):
        alone = lanes.run(work, x[k : k + 1], [beta[k : k + 1]])["energy"][0]
        assert np.array_equal(alone, whole[k])


def test_settling_changes_nothing():
    steps = np.arange(0, 201, 10)
    observe = (PairDensity(delta=0.3),)
    early, late = (
        lanes.run(
            job(Causal(beta=1.0), 7, settle=on, steps=steps, observe=observe), gathered(7, 3), []
        )["pair_density"]
        for on in (True, False)
    )
    assert (early[:, -1] == 1).all() and early[:, 0].min() < 1
    assert np.array_equal(early, late)


def test_overflow_is_an_error():
    work = job(Unnormalised(beta=200.0), 8, observe=FIVE, solver=Layer(h=0.1))
    with pytest.raises(SimulationError, match="Unnormalised"):
        lanes.run(work, gathered(8, 3), [])


def test_exponentials_and_logarithms_are_right_to_rounding():
    """Through the energy of two tokens of cosine c: log (e^beta + e^(beta c)) / 2."""
    beta = np.linspace(0.01, 80, SYSTEMS)
    x = np.broadcast_to(np.array([[1, 0], [0.6, 0.8]], np.float32), (SYSTEMS, 2, 2))
    work = job(
        SelfAttention(),
        2,
        (BETA,),
        observe=(Energy(log=True, convention="burger"), Energy(convention="burger")),
        steps=np.array([0, 1]),
        settle=False,
    )
    single = beta.astype(np.float32).astype(float)
    true = single + np.log((1 + np.exp(-0.4 * single)) / 2)
    found = lanes.run(work, x, [beta])
    assert np.abs(found["log_energy"][:, 0] - true).max() < 2e-7 * 80
    assert np.abs(found["energy"][:, 0] / np.exp(true) - 1).max() < 2e-5  # of a rounded logarithm


def test_a_second_process_compiles_nothing(tmp_path, monkeypatch):
    from tokenflock.engines.native import machine

    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    try:
        text = "define void @run() {\nret void\n}\n"
        first = machine._object(text)
        monkeypatch.setattr(machine, "_made", lambda text: pytest.fail("compiled again"))
        assert machine._object(text) == first
    finally:
        jax.config.update("jax_compilation_cache_dir", None)


def test_auto_takes_it_and_says_so():
    options = {"repeats": 3, "t": 1.0, "frames": 3, "solver": RK4(h=0.1), "observe": [MeanCosine()]}
    small = ensemble(MultiHead.example(5, 3), Uniform(5, 3), **options)
    wide = ensemble(SelfAttention(), Uniform(20, 20), **options, rotate=False)
    assert small.attrs["engine"].startswith("lanes: ")
    assert wide.attrs["engine"].startswith("batch: ")
    assert json.loads(small.attrs["recipe"])["chosen"]["engine"] == "lanes"


def test_random_matrices_agree_with_batch():
    options = {"repeats": 5, "t": 1.0, "frames": 3, "solver": RK4(h=0.1), "observe": [MeanCosine()]}
    options |= {"over": {"beta": [0.5, 2.0]}, "keep": True}
    law = Attention.example(5, 4)
    ours, theirs = (
        ensemble(
            law, Uniform(5, 4), matrices=RandomMatrices(), engine=engine, **options
        ).mean_cosine
        for engine in ("lanes", "batch")
    )
    assert np.abs(ours - theirs).max() < 1e-5 and np.ptp(theirs.values) > 0.05


def test_what_needs_more_than_sums_is_refused():
    told = lanes.refusal(job(SelfAttention(), 8, observe=(EffectiveRank(),)), 8, 3)
    assert "no linear algebra" in told
