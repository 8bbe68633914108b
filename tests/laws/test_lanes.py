"""The compiled loop of the engine `lanes` obeys the one equation: it agrees with `batch`, and says
what it cannot do.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from llvmlite import ir

from tokenflock.dynamics import (
    Attention,
    Clock,
    Noisy,
    SelfAttention,
    Sinkhorn,
    Unnormalised,
)
from tokenflock.engines import batch, lanes
from tokenflock.engines.job import Job
from tokenflock.engines.native import densities, machine
from tokenflock.engines.native.writer import PLACE, WHOLE, Writer
from tokenflock.events import Consensus
from tokenflock.observables import MeanCosine, PairDensity
from tokenflock.precision import cast, precision
from tokenflock.solvers import Euler, Layer

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


# --------------------------------------------------------------------------------------------------
# what surrounds the loop


@pytest.mark.parametrize(
    ("n", "d", "faster"),
    [
        (2, 3, True),
        (256, 8, True),
        (257, 8, False),
        (256, 9, False),
        (64, 16, True),
        (65, 16, False),
        (64, 17, False),
    ],
)
def test_the_loop_made_of_equations_is_taken_where_it_is_the_faster(n, d, faster):
    work = job(SelfAttention(), 4, solver=Layer(h=0.1), observe=(MeanCosine(),))
    assert (lanes.slower(work, n, d) is None) == faster


def test_which_jobs_the_loop_written_by_hand_serves():
    assert lanes._by_hand(job(LAWS["SA"], 4)) and lanes._by_hand(job(LAWS["peak"], 4, (BETA, H)))
    assert lanes._by_hand(job(LAWS["SA"], 4, (DELTA,)))
    for other in (
        job(LAWS["SA"], 4, (BETA, (0, "repulsive"))),
        job(LAWS["SA"], 4, ((1, "delta"),)),
        job(Sinkhorn(), 4),
        job(LAWS["SA"], 4, solver=Euler(h=0.1)),
        job(LAWS["SA"], 4, observe=(PairDensity(), MeanCosine())),
        job(LAWS["SA"], 4, observe=(MeanCosine(),)),
    ):
        assert not lanes._by_hand(other)


def test_two_tokens_are_enough_and_a_law_with_matrices_is_served():
    """Where llvmlite is; numbers that are swept may be matrices, or none yet."""
    assert lanes.refusal(job(LAWS["SA"], 2), 2, 3) is None
    law = Attention(beta=2.0)
    swept = job(law, 4, ((0, "beta"), (0, "V")), observe=(MeanCosine(),))
    assert lanes.refusal(swept, 4, 3) is None
    refused = lanes.refusal(job(Sinkhorn(), 8), 8, 3)
    assert "the page" not in str(refused)


def test_without_llvmlite_there_is_no_loop(monkeypatch):
    monkeypatch.setattr(lanes, "find_spec", lambda name: None)
    assert "pip install llvmlite" in str(lanes.refusal(job(LAWS["SA"], 4), 4, 3))


def test_the_numbers_of_a_system_are_those_of_its_exponent():
    """w e^(beta c) = w 2^(slope c + offset): softmax may shift it so that no c overflows."""
    ln2 = np.log(2)
    swept = job(LAWS["repulsive"], 4, (H, BETA))
    h, beta = np.array([0.1, 0.2, 0.3]), np.array([-1.0, 0.0, 3.0])
    slope, offset, step, least = lanes._numbers(swept, [h, beta], 3)
    np.testing.assert_allclose(slope, beta / ln2, rtol=1e-6)
    np.testing.assert_allclose(offset, [0, 0, -3 / ln2], rtol=1e-6)
    np.testing.assert_allclose(step, -h, rtol=1e-6)
    np.testing.assert_allclose(least, [0.7, 0.7, 0.7], rtol=1e-6)
    for name, offset in (("USA", 0.0), ("peak", -3 / ln2)):
        numbers = lanes._numbers(job(LAWS[name], 4, (DELTA,)), [np.array([0.4, 0.1])], 2)
        assert all(one.dtype == np.float32 and one.shape == (2,) for one in numbers)
        beta = 3.0 if name == "peak" else 1.0
        wanted = np.array([[beta / ln2] * 2, [offset] * 2, [0.1] * 2, [0.6, 0.9]])
        np.testing.assert_allclose(np.array(numbers), wanted, rtol=1e-6)


def test_vectors_begin_where_a_line_of_the_cache_does():
    for count, wide in ((1, 4), (7, 8), (30, 16)):
        made = lanes._vectors(count, wide)
        assert made.shape == (count, wide) and made.dtype == np.float32
        assert made.ctypes.data % (4 * wide) == 0 and made.flags.c_contiguous


def floats(place, *shape):
    """The numbers that lie at a place."""
    size = int(np.prod(shape))
    return np.ctypeslib.as_array((ctypes.c_float * size).from_address(place)).reshape(shape)


def test_the_loop_is_given_room_tokens_weights_and_numbers(monkeypatch):
    """Six systems in groups of four: rows are filled up to whole tiles with zeros, the last group
    with its last system.
    """
    n, d, frames, made, seen = 5, 3, 3, [], []
    rng = np.random.default_rng(0)
    x, beta, w = rng.normal(size=(6, n, d)), np.arange(6.0), np.arange(1.0, 6.0)
    plain = lanes._vectors

    def vectors(count, wide):
        made.append(count)
        array = plain(count, wide)
        array[:] = np.nan
        return array

    def loop(*told):
        X, _, _, _, weights, numbers, _, out, _, *sizes = told
        assert sizes == [frames, n, d, 1, 1]
        seen.append((floats(X, 24, 4).copy(), floats(numbers, 4, 4).copy()))
        np.testing.assert_allclose(floats(weights, n), w / 15, rtol=1e-6)
        floats(out, frames, 4)[:] = floats(X, 24, 4)[0] + 10 * np.arange(frames)[:, None]

    def compiled(text, name, types):
        assert (name, types) == ("densities", "pppppppppiiiii") and text == densities.text(4)
        return loop

    monkeypatch.setattr(machine, "lanes", lambda: 4)
    monkeypatch.setattr(machine, "compiled", compiled)
    monkeypatch.setattr(lanes, "_vectors", vectors)
    monkeypatch.setattr(lanes, "cores", lambda: 1)
    said = []
    tell = lambda done, values: said.append((done.tolist(), list(values)))  # noqa: E731
    asked = job(LAWS["SA"], n, (BETA,), w=w, steps=np.array([0, 2, 7]))
    found = lanes.run(asked, x.astype(np.float32), [beta], tell)["pair_density"]
    assert made == [8 * d, n * (d + 1), 64, densities.ROWS * (d + 1), 4, frames, 2] * 2
    np.testing.assert_allclose(found, x[:, 0, :1] + 10 * np.arange(3), rtol=1e-5)
    assert said == [([0, 1, 2, 3], ["pair_density"]), ([4, 5], ["pair_density"])]
    for (X, numbers), who in zip(seen, ([0, 1, 2, 3], [4, 5, 5, 5])):
        np.testing.assert_allclose(X[: n * d], x[who].reshape(4, n * d).T, rtol=1e-6)
        assert (X[n * d :] == 0).all()
        np.testing.assert_allclose(numbers[0], beta[who] / np.log(2), rtol=1e-6)
    lanes.run(asked, x.astype(np.float32), [beta])


def test_groups_run_in_order_and_stop_at_the_first_that_fails(monkeypatch):
    """What waits behind a failure need not run."""
    monkeypatch.setattr(lanes, "cores", lambda: 1)
    told = []
    lanes.in_groups(lambda first: None, 7, 3, lambda done: told.append(done.tolist()))
    assert told == [[0, 1, 2], [3, 4, 5], [6]]
    ran = []

    def group(first):
        ran.append(first)
        time.sleep(0.02)

    def stop(done):
        raise KeyError

    with pytest.raises(KeyError):
        lanes.in_groups(group, 100, 1, stop)
    assert len(ran) < 50


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 4, 9} - {process})
    assert lanes.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    for known, many in ((7, 7), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda known=known: known)
        assert lanes.cores() == many


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
