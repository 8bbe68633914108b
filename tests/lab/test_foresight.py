"""What the page foresees: growth rates, and when clusters meet, against the library."""

from __future__ import annotations

import numpy as np
import pytest

import tokenflock as flock
from tests.page.node import NODE, said
from tokenflock.dynamics import SelfAttention
from tokenflock.engines.page import program
from tokenflock.laboratory import tables
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Polygon
from tokenflock.theory import equiangular_cosine, layer_cosines, merging_time, polygon_growth

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed: no page can be run")
LAW = """
const law = (0, eval)(given.source), params = given.params.map((p) => Float64Array.from(p));
const n = given.w.length, d = given.x.length / n;
const state = { n, t: 0, h: given.h, index: 0, key: Uint32Array.of(0, 0) };
state.x = Float64Array.from(given.x); state.w = Float64Array.from(given.w);
"""


def node(script: str, given: dict, folder) -> list:
    """What a script of the page's own functions says of what is given."""
    return said(("eigenvalues", "foresight"), script, given, folder)


def system(law, solver, x, w) -> dict:
    """A law and its tokens as the page has them."""
    made = program(law, solver, d=x.shape[1])
    params = [parameter["default"] for parameter in made.manifest["parameters"]]
    numbers = {"x": np.ravel(x).tolist(), "w": np.ravel(w).tolist(), "h": float(solver.h)}
    return {"source": made.source, "params": params, **numbers}


def test_eigenvalues_are_those_of_numpy(tmp_path):
    random = np.random.default_rng(0)
    matrices = [random.normal(size=(n, n)) for n in (1, 2, 3, 9, 40)]
    matrices += [np.zeros((4, 4)), np.diag(np.arange(5.0)), np.eye(6)[::-1], np.triu(matrices[3])]
    script = "console.log(JSON.stringify(given.map((rows) => Array.from(eigenvalues(rows)))));"
    told = node(script, [matrix.tolist() for matrix in matrices], tmp_path)
    for matrix, values in zip(matrices, told, strict=True):
        got = np.array(values).reshape(-1, 2) @ [1, 1j]
        distance = np.abs(got[:, None] - np.linalg.eigvals(matrix))
        assert max(distance.min(0).max(), distance.min(1).max()) < 1e-10


@pytest.mark.parametrize("d", [2, 3])
def test_growth_rates_are_the_spectrum_of_the_library(d, tmp_path):
    """At a state of three clusters in one plane, which is at rest for the layer map."""
    law, solver, x = SelfAttention(beta=2.0), Layer(h=0.1), np.zeros((6, d))
    x[:, :2] = np.repeat(np.asarray(Polygon(n=3).draw(None)), 2, axis=0)
    script = "const { numbers } = given, sphere = true;"
    script += "const told = Foresight.spectrum(law, state, params, { d, sphere, numbers });"
    script = f"{LAW}{script}console.log(JSON.stringify(Array.from(told)));"
    given = system(law, solver, x, np.full(6, 1 / 6))
    got = np.array(node(script, given | {"numbers": 96}, tmp_path)).reshape(-1, 2)
    wanted = flock.spectrum(law, x, t=0.1, solver=solver)
    np.testing.assert_allclose(got[:, 0], wanted.rate.values, atol=1e-6)
    assert node(script, given | {"numbers": 5}, tmp_path) == []
    if d == 2:
        flow = system(law, RK4(h=0.01), x, np.full(6, 1 / 6)) | {"numbers": 96}
        fastest = node(script, flow, tmp_path)[0]
        assert fastest == pytest.approx(polygon_growth(3, 2.0), rel=1e-4)


def test_the_foreseen_meeting_of_two_clusters_is_that_of_theory(tmp_path):
    """Six tokens in clusters of two and four, an angle of 2 apart, by the flow."""
    angles = np.repeat([0.0, 2.0], [2, 4])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    script = """
    const clusters = Foresight.gathered(state, given.labels, d);
    const found = Foresight.forecast(law, params, clusters, d, 1e-3).run(1e6);
    console.log(JSON.stringify([found.t, found.count, found.done]));
    """
    given = system(SelfAttention(beta=3.0), RK4(h=0.02), x, np.full(6, 1 / 6))
    t, count, done = node(LAW + script, given | {"labels": [0, 0, 2, 2, 2, 2]}, tmp_path)
    assert (count, done) == (2, 1)
    assert t == pytest.approx(float(merging_time(2.0, 3.0, 1e-3, m=1 / 3)), abs=0.03)


def test_no_forecast_is_made_of_tokens_that_are_alone_or_all_together(tmp_path):
    x = np.eye(3)
    script = "console.log(JSON.stringify(given.many.map((l) => Foresight.gathered(state, l, d))));"
    given = system(SelfAttention(), Layer(), x, np.full(3, 1 / 3))
    assert node(LAW + script, given | {"many": [[0, 1, 2], [0, 0, 0]]}, tmp_path) == [None, None]


def test_tables_hold_the_growth_about_polygons():
    table = tables.polygons()["3"]
    k = table["beta"].index(4.0)
    assert np.exp(table["log"][k]) == pytest.approx(float(polygon_growth(3, 4.0)), rel=1e-6)


@pytest.mark.parametrize(("n", "beta"), [(5, 1.0), (100, 4.0)])
def test_the_curve_of_orthogonal_tokens_is_that_of_the_library_for_every_n(n, beta, tmp_path):
    script = """
    const follow = (source, h, steps) => {
      const step = (0, eval)(source), told = [0];
      for (let k = 0; k < steps; k++) told.push(step(told[k], given.n, given.beta, h));
      return told;
    };
    console.log(JSON.stringify([follow(given.flow, 0.05, 200), follow(given.layer, 0.1, 100)]));
    """
    flow, layers = node(script, tables.cosines() | {"n": n, "beta": beta}, tmp_path)
    np.testing.assert_allclose(flow, equiangular_cosine(0.05 * np.arange(201), n, beta), atol=1e-6)
    np.testing.assert_allclose(layers, layer_cosines(np.arange(101), n, beta, 0.1), atol=1e-12)
