"""Laws that carry clouds to targets: what was found does what it says."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock.meanfield import wasserstein
from tokenflock.solvers import RK4, Heun, Layer
from tokenflock.steering import Pieces, clouds, compare, laws
from tokenflock.steering.matching import cost, couplings
from tokenflock.steering.pieces import carry

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    """Two clouds on the sphere to two clouds, a short search."""
    inputs, targets = clouds(2, 4, 3), clouds(2, 3, 3, 0.1, seed=1)
    return flock.steer(inputs, targets, pieces=2, heads=2, width=4, t=2.0, steps=150, seed=3)


def test_a_search_comes_nearer_and_says_how_near(found):
    assert found.loss[-1] < 0.1 * found.loss[0]
    for k in range(2):
        end, aim = found.x[k, -1].values, found.target[k].values
        assert float(found.W2[k]) == pytest.approx(wasserstein(end, aim), abs=1e-12)
    assert np.allclose(np.linalg.norm(found.x, axis=-1), 1, atol=1e-12)
    near = np.sqrt(np.mean(found.W2.values**2))
    assert near == pytest.approx(np.sqrt(float(found.loss[-1])), rel=0.05)  # float32, one step on


def test_what_was_found_are_laws_of_the_catalogue(found, tmp_path):
    """Simulated piece by piece, each cloud alone, they give the tokens of the result."""
    again = flock.load(flock.save(found, tmp_path / "steer.nc"))
    x = again.x.values[1, 0]
    for k, law in enumerate(laws(again)):
        run = flock.simulate(law, x, t=again.attrs["period"], frames=11, solver=Heun(h=0.1))
        assert np.abs(run.x.values - again.x.values[1, 10 * k : 10 * k + 11]).max() < 1e-12
        x = run.x.values[-1]


def test_a_drift_moves_tokens_as_its_closed_form_says(double):
    """dx/dt = P_x w: <x, w/|w|> = tanh(|w| t + artanh <x_0, w/|w|>)."""
    w = np.array([0.3, -0.5, 0.8])
    none = np.zeros((2, 1, 3, 3))
    pieces = Pieces(
        Q=none, K=none, V=none, W=w.reshape(1, 3, 1) * np.ones((2, 1, 1)), A=np.zeros((2, 1, 3)),
        b=np.full((2, 1), 20.0),
    )  # fmt: skip
    x = clouds(2, 3, 3)
    end, frames = carry(pieces, jnp.asarray(x), RK4(h=0.05), 0.05, 10)
    size = np.linalg.norm(w)
    exact = np.tanh(size * 1.0 + np.arctanh(x @ w / size))
    assert np.allclose(end @ w / size, exact, atol=1e-7)
    assert frames.shape == (20, 2, 3, 3) and (frames[-1] == end).all()


def test_couplings_are_optimal(double):
    x, y = clouds(3, 5, 3, 1.0), clouds(3, 4, 3, 1.0, seed=7)
    plans = couplings(x, y)
    each = [wasserstein(a, b) ** 2 for a, b in zip(x, y)]
    assert float(cost(x, y, plans)) == pytest.approx(np.mean(each), rel=1e-12)
    assert float(cost(x, y, np.full_like(plans, 1 / 20))) > np.mean(each)
    assert np.allclose(plans.sum(axis=2), 1 / 5) and np.allclose(plans.sum(axis=1), 1 / 4)


def test_attention_alone_layers_and_comparisons():
    """Without neurons, by the layer map, and for every number of pieces and heads."""
    done = []
    found = compare(
        clouds(2, 3),
        clouds(2, 1, seed=1)[:, 0],
        pieces=[2, 1],
        heads=[1],
        width=0,
        t=0.4,
        steps=3,
        solver=Layer(h=0.1),
        progress=done.append,
    )
    assert found.reached.dims == ("pieces", "heads") and found.reached.shape == (2, 1)
    assert "W" not in found and found.attrs["convention"] == "layer map"
    last = float(np.sqrt(np.mean(found.W2.values**2)))
    assert float(found.reached.sel(pieces=2, heads=1)) == pytest.approx(last)
    assert [type(law).__name__ for law in laws(found)] == ["MultiHead"] * 2
    assert done[-1] == 1 and done == sorted(done)


def test_what_cannot_be_steered_is_refused():
    x = clouds(2, 3)
    with pytest.raises(flock.UserError, match="one for each of 2 clouds"):
        flock.steer(x, np.eye(2)[:1])
    with pytest.raises(flock.UserError, match="multiple of 8 pieces"):
        flock.steer(x, np.eye(2), t=1.0)
    with pytest.raises(flock.UserError, match=r"clouds \(N, n, d\)"):
        flock.steer(np.eye(2), np.eye(2))
    with pytest.raises(flock.UserError, match="result of `steer`"):
        laws(xr.Dataset())


def test_steering_is_drawn(found, tmp_path):
    from tokenflock.plots import save_figure, steering

    figure = steering(found)
    targets = figure.axes[0].collections[-1].get_offsets()
    assert len(figure.axes) == 2 and len(targets) == 3
    save_figure(figure, tmp_path / "s.png")
    table = found.assign(reached=(("pieces", "heads"), [[0.3], [0.1]]))
    with_table = steering(table.assign_coords(pieces=[1, 2], heads=[2]))
    assert with_table.axes[2].lines[0].get_ydata().tolist() == [0.3, 0.1]


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_eight_clouds_reach_eight_targets(d):
    """On the circle and on the sphere, W2 below 0.01 for each of them; seed 0, a minute each."""
    found = flock.steer(clouds(8, 8, d), clouds(8, 1, d, 0.0, seed=1)[:, 0])
    assert found.W2.max() < 0.01
