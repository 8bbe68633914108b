"""The compiled loop of the engine `lanes` obeys the one equation: it agrees with `batch`, and says
what it cannot do.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import jax
import numpy as np
import pytest
from llvmlite import ir

from tokenflock.dynamics import Clock, Noisy, SelfAttention, Sinkhorn, Unnormalised
from tokenflock.engines import batch, lanes
from tokenflock.engines.job import Job
from tokenflock.engines.native import machine
from tokenflock.engines.native.writer import PLACE, WHOLE, Writer
from tokenflock.events import Consensus
from tokenflock.observables import PairDensity
from tokenflock.precision import cast, precision
from tokenflock.solvers import Layer

BETA, H, DELTA = (0, "beta"), (1, "h"), (2, 0, "delta")
STEPS = np.array([0, 1, 5, 20, 60, 100])
SYSTEMS = 37  # not a multiple of anything
LAWS = {
    "SA": SelfAttention(beta=2.0),
    "repulsive": SelfAttention(beta=2.0, repulsive=True),
    "USA": Unnormalised(beta=1.0),
    "repulsive USA": Unnormalised(beta=1.0, repulsive=True),
    "peak": Unnormalised(beta=3.0, clock=Clock.PEAK),
}


def job(
    law,
    n,
    paths=(),
    w=None,
    settle=True,
    delta=0.3,
    solver=None,
    observe=None,
    dtype="float32",
    steps=STEPS,
):
    w = np.full(n, 1.0) if w is None else w
    parts = law, solver or Layer(h=0.1), observe or (PairDensity(delta=delta),)
    with precision(dtype):
        return Job(*cast(parts, dtype), w / w.sum(), steps, paths, dtype, settle)


@pytest.mark.parametrize("path", [BETA, H, DELTA])
def test_a_phase_diagram_over_anything_is_served_by_the_loop_written_by_hand(path):
    assert lanes.slower(job(LAWS["SA"], 32, [path]), 32, 64) is None
    assert "faster" in str(lanes.slower(job(LAWS["SA"], 32, [(0, "Q")]), 32, 64))


def tokens(n, d, seed=0):
    """Each system gathered about a direction of its own, some more than others: pairs meet at all
    times.
    """
    random = np.random.default_rng(seed)
    x = random.normal(size=(SYSTEMS, 1, d)) + random.uniform(
        0.3, 3, size=(SYSTEMS, 1, 1)
    ) * random.normal(size=(SYSTEMS, n, d))
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


def both(work, x, swept=()):
    swept = [np.asarray(one, np.float32) for one in swept]
    with precision("float32"):
        theirs = batch.run(work, x, jax.random.split(jax.random.key(0), len(x)), swept)[
            "pair_density"
        ]
    return lanes.run(work, x, swept)["pair_density"], theirs


def check(ours, theirs):
    assert ours.shape == theirs.shape and np.isfinite(ours).all()
    assert np.ptp(theirs) > 0.1, "nothing to compare"
    assert np.abs(ours[:, 0] - theirs[:, 0]).max() < 1e-6
    assert (
        np.abs(ours - theirs).mean() < 2e-3
    )  # a pair on the verge may be counted a frame early or late
    assert np.mean(np.abs(ours - theirs) < 1e-5) > 0.95


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize(("n", "d"), [(7, 2), (32, 3), (7, 32), (32, 5)])
def test_it_agrees_with_batch(law, n, d):
    check(*both(job(law, n), tokens(n, d)))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_it_agrees_with_unequal_weights(law):
    w = np.random.default_rng(1).uniform(0.2, 2, size=7)
    w[4] = 0
    check(*both(job(law, 7, w=w), tokens(7, 2)))


@pytest.mark.parametrize("law", [LAWS["SA"], LAWS["peak"]], ids=["SA", "peak"])
def test_every_lane_has_its_own_numbers(law):
    random = np.random.default_rng(2)
    delta, beta, h = (
        random.uniform(0.01, 0.3, SYSTEMS),
        random.uniform(0, 3, SYSTEMS),
        random.uniform(0.01, 1, SYSTEMS),
    )
    check(*both(job(law, 7, (DELTA, BETA, H), settle=False), tokens(7, 3), [delta, beta, h]))


def test_neighbours_do_not_matter():
    work, x, beta = job(SelfAttention(), 7, (BETA,)), tokens(7, 3), np.linspace(0, 9, SYSTEMS)
    whole = lanes.run(work, x, [beta])["pair_density"]
    for k in (0, 16, 36):
        assert np.array_equal(
            lanes.run(work, x[k : k + 1], [beta[k : k + 1]])["pair_density"][0], whole[k]
        )


def test_one_token_that_counts_is_one_cluster():
    ours, theirs = both(job(SelfAttention(), 4, w=np.array([0, 1.0, 0, 0])), tokens(4, 3))
    assert (ours == 1).all() and (theirs == 1).all()


@pytest.mark.parametrize("beta", [-60.0, -5.0, 0.0, 30.0, 100.0, 1e4])
def test_no_beta_overflows_the_softmax(beta):
    check(*both(job(SelfAttention(beta=beta), 7), tokens(7, 2)))


def test_the_exponential_is_right_to_rounding():
    wide = machine.lanes()
    writer = Writer(ir.Module(), "powers", [PLACE, WHOLE], wide)
    writer.function.linkage = "external"
    with writer.loop(writer.args[1], wide) as k:
        writer.store(writer.power(writer.load(writer.args[0], k)), writer.args[0], k)
    writer.end()
    powers = machine.compiled(str(writer.module), "powers", "pi")
    y = np.linspace(-126, 127.4, 16_000, dtype=np.float32)
    true = 2.0 ** y.astype(np.float64)
    powers(y.ctypes.data, len(y))
    assert np.abs(y / true - 1).max() < 3e-7
    edge = np.array([-1e6, -127, 0, 128, 1e6, *[np.nan] * 11], np.float32)
    powers(edge.ctypes.data, len(edge))
    assert np.array_equal(edge[:5], np.array([2.0**-126, 2.0**-126, 1, np.inf, np.inf], np.float32))
    assert np.isnan(edge[5:]).all()


@pytest.mark.parametrize("wide", [8, 16])
def test_vectors_of_either_width_give_the_numbers_of_batch(monkeypatch, wide):
    monkeypatch.setattr(machine, "lanes", lambda: wide)
    check(*both(job(SelfAttention(beta=2.0), 7), tokens(7, 3)))


def test_settling_changes_nothing():
    x, law = tokens(7, 3), SelfAttention(beta=1.0)
    steps = np.arange(0, 201, 10)
    early, late = (
        lanes.run(job(law, 7, settle=settle, steps=steps), x, [])["pair_density"]
        for settle in (True, False)
    )
    assert (early[:, -1] == 1).all() and early[:, 0].min() < 1
    assert np.array_equal(early, late)


def test_overflow_is_seen():
    """The caller makes an error of what is not finite."""
    for beta in (60.0, 200.0):
        assert not np.isfinite(
            lanes.run(job(Unnormalised(beta=beta), 8), tokens(8, 3), [])["pair_density"]
        ).all()


def test_refusals_are_sentences():
    good = job(SelfAttention(), 8, (BETA, H, DELTA))
    assert lanes.refusal(good, 8, 3) is None
    refused = [
        lanes.refusal(good, 1, 3),
        lanes.refusal(job(Noisy.example(8, 3), 8), 8, 3),
        lanes.refusal(job(Sinkhorn(), 8), 8, 3),
        lanes.refusal(job(SelfAttention(), 8, dtype="float64"), 8, 3),
        lanes.refusal(dataclasses.replace(good, until=Consensus()), 8, 3),
        lanes.refusal(dataclasses.replace(good, observables=()), 8, 3),
    ]
    assert len(set(refused)) == len(refused)
    assert all(sentence.startswith("the compiled loop ") for sentence in refused)


def test_a_second_process_compiles_nothing(tmp_path):
    """The machine code is kept where JAX keeps its own."""
    code = (
        f"import jax; jax.config.update('jax_compilation_cache_dir', {str(tmp_path)!r});"
        "from tests.laws.test_lanes import *; made = machine._made;"
        "machine._made = lambda text: print('compiled') or made(text);"
        "lanes.run(job(SelfAttention(), 7), tokens(7, 3), [])"
    )
    outs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [out.stdout.strip() for out in outs] == ["compiled", ""]
