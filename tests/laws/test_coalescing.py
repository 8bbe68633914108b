"""Exponentially long times: heavy tokens and a clock that follows the tokens change nothing that
can be measured.
"""

from __future__ import annotations

import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Causal, SelfAttention
from tokenflock.errors import UserError
from tokenflock.events import Consensus
from tokenflock.solvers import RK4, Adaptive
from tokenflock.starts import Given, Uniform
from tokenflock.theory import merging_time

pytestmark = [pytest.mark.usefixtures("quick_compilation"), pytest.mark.slow]
ANGLE = 2.95


def pair(angle=ANGLE, w=None):
    return Given([[1.0, 0, 0], [np.cos(angle), np.sin(angle), 0]], w)


def clusters(spread=0.05, lopsided=0.0):
    """Two groups of four tokens, each a cross about its centre; tokens i and i + 2 are of one."""
    centres = np.asarray(pair().x)
    arms = [np.stack([[-p[1], p[0], 0], [0, 0, 1]]) for p in centres]
    moves = (np.array([1, 0]), np.array([0, 1]), np.array([-1 + lopsided, 0]), np.array([0, -1]))
    ends = [[p + spread * move @ arm for p, arm in zip(centres, arms)] for move in moves]
    return Given(np.concatenate(ends))


def met(start, beta, t=None, coalesce=1e-9, **options):
    """When all tokens of a run have met."""
    t = t or 2 * float(merging_time(ANGLE, beta))
    options = {"frames": 3, "until": Consensus(), "coalesce": coalesce} | options
    run = flock.simulate(SelfAttention(beta=beta), start, t=t, **options)
    assert "at t =" in run.attrs["stopped"]
    return float(run.time[-1])


def test_two_clusters_of_four_tokens_merge_when_the_closed_form_says():
    exact = float(merging_time(ANGLE, 9.0))
    assert exact > 2e7
    assert met(clusters(), 9.0) == pytest.approx(exact, rel=1e-6)
    assert met(pair(), 9.0) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("angle", [2.0, 2.9, 3.1])
def test_a_pair_at_beta_20_meets_when_the_closed_form_says(angle):
    exact = float(merging_time(angle, 20.0))
    assert met(pair(angle), 20.0, t=2 * exact) == pytest.approx(exact, rel=1e-7)


def test_unequal_clusters_meet_when_the_quadrature_says():
    exact = float(merging_time(2.0, 9.0, m=0.25))
    assert met(pair(2.0, [1, 3]), 9.0, t=2 * exact) == pytest.approx(exact, rel=1e-8)


def test_heavy_tokens_move_as_the_tokens_themselves():
    """Where a solver can still follow all tokens, it finds the same, at every frame."""
    law, start = SelfAttention(beta=4.0), Uniform(n=8, d=3)
    options = {"t": 60.0, "frames": 7, "seed": 4}
    plain = flock.simulate(law, start, solver=Adaptive(rtol=1e-11), **options)
    heavy = flock.simulate(law, start, coalesce=1e-9, **options)
    np.testing.assert_array_equal(heavy.time, plain.time)
    np.testing.assert_allclose(heavy.x, plain.x, atol=1e-7)
    np.testing.assert_array_equal(heavy.w, plain.w)
    left = heavy.heavy.values
    assert left[0] == 8 and 1 < left[-1] < 8
    together = np.unique(heavy.x.values[-1], axis=0)
    assert len(together) == left[-1], "tokens that have met stay together"


def test_the_error_of_coalescing_falls_with_the_square_of_its_radius():
    start = clusters(spread=0.3, lopsided=0.5)
    exact = met(start, 4.0, coalesce=1e-6)
    wide, narrow = (abs(met(start, 4.0, coalesce=r) / exact - 1) for r in (0.04, 0.01))
    assert wide / narrow == pytest.approx(16, rel=0.02)
    assert narrow < 1e-6


def test_a_meeting_may_be_the_event():
    """Tokens that coalesce from farther than the event's distance have met."""
    wide = met(clusters(), 4.0, coalesce=0.1)
    exact = float(merging_time(ANGLE, 4.0))
    assert 0 < exact - wide < 2


def test_tokens_that_move_apart_do_not_coalesce():
    close = Given([[1.0, 0, 0], [1.0, 1e-10, 0]])
    law = SelfAttention(beta=1.0, repulsive=True)
    run = flock.simulate(law, close, t=40.0, frames=2, coalesce=1e-9)
    assert run.heavy.values.tolist() == [2, 2]
    assert float(run.x.isel(time=-1, coord=1).std()) > 0.1


@pytest.mark.parametrize(
    ("law", "options", "words"),
    [
        (Causal(beta=1.0), {}, "Causal tells tokens apart"),
        (SelfAttention(), {"solver": RK4(h=0.1)}, "needs the solver Adaptive"),
        (SelfAttention(), {"dtype": "float32"}, "float64"),
        (SelfAttention(), {"coalesce": 1e-12}, "ten times the solver's atol"),
        (SelfAttention(), {"coalesce": 2.0}, "coalesce must be a distance"),
        (SelfAttention(), {"coalesce": "near"}, "coalesce must be a number"),
    ],
)
def test_heavy_tokens_are_refused_where_they_would_be_wrong(law, options, words):
    with pytest.raises(UserError, match=words):
        flock.simulate(law, pair(), t=1.0, **({"coalesce": 1e-9} | options))


def test_a_frame_may_fall_where_the_clock_is_steep():
    """Between a frame and the next one clusters move by 1e-7 of the way that they still go: its
    moment is located to the last digit, and the run goes on.
    """
    times = np.concatenate([[0.0], np.geomspace(10, 1e9, 25)])
    start, law = Uniform(n=12, d=3), SelfAttention(beta=9.0)
    options = {"until": Consensus(), "coalesce": 1e-9, "seed": 1}
    plain = flock.simulate(law, start, t=1e9, frames=2, **options)
    framed = flock.simulate(law, start, t=1e9, times=times, **options)
    assert float(framed.time[-1]) == pytest.approx(float(plain.time[-1]), rel=1e-6)
