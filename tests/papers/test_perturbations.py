"""Claims can fail: a law, an energy, a solver or a curve that is wrong turns the right ones red.

Each perturbation is a bug of published code: an energy that forgets beta, a flow without its
tangent projection, a Runge-Kutta step whose stages share one frozen field, a curve for another
number of tokens.
"""

from __future__ import annotations

import equinox as eqx
import jax
import pytest
import xarray as xr

from tokenflock.observables import Energy
from tokenflock.papers.perspective import fig3, gradient_flow, orthogonal
from tokenflock.solvers import RK4
from tokenflock.spaces import Sphere


@pytest.fixture
def perturb(monkeypatch):
    """Put something wrong in place; what was compiled before is forgotten, then and afterwards."""

    def put(home, name, wrong):
        monkeypatch.setattr(home, name, wrong)
        jax.clear_caches()

    yield put
    monkeypatch.undo()
    jax.clear_caches()


def red(claims) -> set[str]:
    return {claim.id for claim in claims if claim.verdict == "fails"}


def test_an_energy_with_the_wrong_beta(perturb):
    right = Energy.measure
    perturb(
        Energy,
        "measure",
        lambda self, x, w: right(eqx.tree_at(lambda one: one.beta, self, 1.1 * self.beta), x, w),
    )
    assert red(gradient_flow._variation_claims(gradient_flow._variations(3))) == {
        "first-variation",
        "log-partition",
    }


def test_a_flow_without_its_tangent_projection(perturb):
    perturb(Sphere, "tangent", lambda self, x, v: v)
    assert {"sa-1", "sa-4", "usa-1", "usa-4"} <= red(orthogonal._flow_claims(orthogonal._flow()))


def test_runge_kutta_with_a_frozen_field(perturb):
    def frozen(self, dynamics, t, x, w, key):
        k1 = dynamics.velocity(t, x, w)
        return dynamics.space.retract(x, self.h * k1)

    perturb(RK4, "step", frozen)
    data = xr.DataTree.from_dict({"order": orthogonal._order(), "layers": orthogonal._layers()})
    assert red(orthogonal._solver_claims(data)) == {"order"}


def test_a_curve_for_another_number_of_tokens(monkeypatch):
    """The published notebook draws the curve for n = 128 over systems of n = 32."""
    data = xr.DataTree.from_dict(
        {"curve": xr.Dataset({"beta": ("time", [fig3._curve(30.0)])}, coords={"time": [30.0]})}
    )
    assert fig3._curve_claim(data, 30.0).verdict == "holds"
    right = fig3.transition_curve
    monkeypatch.setattr(fig3, "transition_curve", lambda t, n, delta: right(t, n=128, delta=delta))
    assert fig3._curve_claim(data, 30.0).verdict == "fails"
