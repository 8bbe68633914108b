"""The error of a step as the page estimates it, against laws whose rates are known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.page.node import NODE, encoded, said
from tokenflock.dynamics import Noisy, SelfAttention, Unnormalised
from tokenflock.dynamics.unnormalised import Clock
from tokenflock.engines.page import program
from tokenflock.laboratory import specimens
from tokenflock.solvers import RK4, Euler, EulerMaruyama, Heun, Layer
from tokenflock.starts import Uniform
from tokenflock.verbs.prepare import prepare

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: no page can be run")
SCRIPT = """
const array = (text) => {
  const bytes = Buffer.from(text, "base64");
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
};
const law = (0, eval)(given.source), params = given.params.map((p) => Float64Array.from(p));
const x = array(given.x), n = x.length / given.d, w = new Float64Array(n).fill(1 / n);
const state = { n, t: 0, h: given.h, index: 0, key: Uint32Array.of(1, 2), x, w };
const probe = Accuracy.probe(law, { ...given, sphere: true });
const errors = [];
for (let k = 0; k < 30; k++) {
  const now = { ...state, index: k, x: state.x.slice() }, y = law.step(now, params).slice();
  errors.push(Math.min(probe(now, params, y), 1e300));
  if (given.moves) state.x.set(y);
}
console.log(JSON.stringify({ errors, tolerance: Accuracy.TOLERANCE }));
"""


def errors(folder, law, solver, x, moves=False):
    """The errors of 30 steps as the page estimates them, and its tolerance."""
    made = program(law, solver, d=x.shape[1])
    params = [parameter["default"] for parameter in made.manifest["parameters"]]
    told = {"source": made.source, "params": params, "x": encoded(x), "d": x.shape[1]}
    told |= {"h": solver.h, "order": solver.order, "smooth": not law.noisy, "moves": moves}
    answer = said(("accuracy",), SCRIPT, told, folder)
    return np.array(answer["errors"]), answer["tolerance"]


@pytest.mark.parametrize(("solver", "order"), [(Euler, 1), (Heun, 2), (RK4, 4)], ids=str)
@pytest.mark.parametrize("d", [2, 3])
def test_the_error_about_one_cluster_is_that_of_its_rate(solver, order, d, tmp_path):
    """All tokens at one point: differences between them shrink at the rate e^beta."""
    rate, h = np.exp(3.0), 0.01
    x = np.tile(np.eye(d)[:1], (8, 1))
    got, _ = errors(tmp_path, Unnormalised(beta=3.0), solver(h=h), x)
    z = 1 - sum((-h * rate) ** k / [1, 1, 2, 6, 24][k] for k in range(order + 1))
    factorial = [1, 1, 2, 6, 24, 120][order + 1]
    assert got[-1] == pytest.approx(z**order / factorial, rel=0.05)


@pytest.mark.parametrize("h", [0.1, 0.05])
def test_steps_that_agree_though_both_are_too_long_have_large_errors(h, tmp_path):
    """At beta = 12 tokens jump across each other and all 32 stay apart with h and with h/2."""
    law, start = Unnormalised(beta=12.0), Uniform(n=32, d=3)
    _, x, _, _ = prepare(law, start, 0, "float32")
    got, tolerance = errors(tmp_path, law, RK4(h=h), np.asarray(x, float), moves=True)
    assert got.min() > 10 * tolerance


def test_noise_that_the_steps_follow_is_not_taken_for_an_error(tmp_path):
    """Drift and noise of rates below 2: a step of 0.001 is short, though noise moves by 0.1."""
    law, start = Noisy(SelfAttention(beta=1.0), kappa=0.5), Uniform(n=24, d=3)
    _, x, _, _ = prepare(law, start, 0, "float32")
    x = np.asarray(x, float)
    small, tolerance = errors(tmp_path, law, EulerMaruyama(h=0.0005), x, moves=True)
    large, _ = errors(tmp_path, law, EulerMaruyama(h=0.1), x, moves=True)
    assert small.max() < tolerance < large.min()


def test_a_law_whose_force_grows_with_beta_runs_as_its_flow_by_default():
    assert isinstance(specimens.solvers(Unnormalised())[0], RK4)
    assert isinstance(specimens.solvers(Noisy(Unnormalised()))[0], EulerMaruyama)
    assert isinstance(specimens.solvers(SelfAttention())[0], Layer)
    assert isinstance(specimens.solvers(Unnormalised(clock=Clock.PEAK))[0], Layer)
