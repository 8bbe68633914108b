"""The parts of a block as options."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.catalogue import entries


def test_a_block_is_written_by_the_names_of_its_parts(call, tmp_path):
    code, _, err = call(
        "simulate --dynamics block --heads 4 --mask causal --positions rotary --base 500"
        " --attention softmax --feed-forward gelu --hidden 2 --norm pre --noise common"
        " --kappa 50 --beta 2 --period 0.5 --heads-seed 3 --n 5 --d 8 --solver layer"
        " --step 0.5 --t 1 --out run.nc"
    )
    assert code == 0, err
    run = flock.load(tmp_path / "run.nc")
    law = json.loads(run.attrs["recipe"])["dynamics"]
    names = {key: value["type"] for key, value in law.items() if isinstance(value, dict)}
    assert names == {
        "heads": "parts/RandomHeads",
        "mask": "parts/CausalMask",
        "positions": "parts/Rotary",
        "attention": "parts/SoftmaxWeighing",
        "feed_forward": "parts/RandomFeedForward",
        "norm": "parts/Pre",
        "noise": "parts/CommonNoise",
    }
    assert law["heads"] | {"count": 4, "period": 0.5, "seed": 3} == law["heads"]
    assert law["positions"]["base"] == 500 and law["noise"]["kappa"] == 50
    assert law["feed_forward"]["activation"] == "gelu" and law["feed_forward"]["hidden"] == 2
    assert np.array_equal(flock.rerun(run).x, run.x)
    assert "su2021roformer" in call("cite run.nc")[1]


def test_parts_with_arrays_take_them_as_any_law_does(call, tmp_path):
    np.save(tmp_path / "V.npy", np.ones((2, 3, 3)))
    np.save(tmp_path / "who.npy", np.tril(np.ones((4, 4))))
    code, _, err = call(
        "simulate --dynamics block --heads given --V V.npy --mask given --who who.npy --attention"
        " none --clock peak --norm none --n 4 --d 3 --t 0.1 --out run.nc"
    )
    assert code == 0, err
    law = json.loads(flock.load(tmp_path / "run.nc").attrs["recipe"])["dynamics"]
    assert law["heads"]["V"]["shape"] == [2, 3, 3] and law["attention"]["clock"] == "peak"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            "--mask casual",
            "--mask must be one of causal, given, none, window, got 'casual'; did you mean",
        ),
        ("--mask given", "needs --who"),
        ("--heads 0", "1 or more"),
        ("--heads 1.5", "--heads must be a whole number or one of given, none, random"),
        ("--feed-forward cosine", "must be one of relu, tanh, gelu"),
        ("--attention sinkhorn --mask causal", "doubly stochastic"),
        ("--noise common --solver rk4", "takes noise"),
    ],
)
def test_what_cannot_be_is_one_line(call, options, words):
    code, _, err = call(f"simulate --dynamics block {options} --n 4 --d 4 --t 1")
    assert code != 0 and words in " ".join(err.split())


def test_parts_are_listed(call):
    code, out, _ = call("list parts")
    assert code == 0
    for entry in entries("parts"):
        assert entry.slug in out
    code, out, _ = call("list parts rotary")
    assert code == 0 and "2104.09864" in out and "--base" in out
