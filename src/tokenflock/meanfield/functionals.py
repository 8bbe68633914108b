"""Energies of densities: what a law climbs, at the level of measures."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics.dynamics import Dynamics, GradientFlow
from tokenflock.dynamics.noisy import Noisy
from tokenflock.dynamics.self_attention import SelfAttention
from tokenflock.dynamics.sinkhorn import Sinkhorn
from tokenflock.dynamics.unnormalised import Unnormalised
from tokenflock.meanfield.continuity import (
    Modes,
    Tables,
    Values,
    circle_tokens,
    core,
    ring_potential,
)
from tokenflock.meanfield.grids import Circle, Grid
from tokenflock.shapes import Scalar
from tokenflock.theory.kernel import kernel_eigenvalue


def functionals(
    law: Dynamics, plain: Dynamics, space: Grid, table: Tables, modes: np.ndarray
) -> dict[str, np.ndarray]:
    """Energy, dissipation (on the circle) and free energy of every frame, where the law has them.

    law: the law as JAX values; plain: the same as the user wrote it.
    """
    flow = core(law)
    if not isinstance(flow, GradientFlow):
        return {}
    if isinstance(space, Circle):
        frames = [_on_circle(flow, table, jnp.asarray(a)) for a in modes]
        energy, rate = (np.asarray(values) for values in zip(*frames))
        energies = {"energy": energy, "dissipation": rate}
    else:
        energies = {"energy": _on_latitudes(flow, core(plain), space, table, modes)}
    if isinstance(plain, Noisy) and not isinstance(flow.core, SelfAttention):
        energies["free_energy"] = energies["energy"] - _entropy(space, modes) * _clock(
            flow
        ) / float(plain.kappa)
    return energies


@eqx.filter_jit
def _on_circle(flow: GradientFlow, table: Tables, a: Modes) -> tuple[Scalar, Scalar]:
    """(energy, dissipation) of one frame."""
    x = circle_tokens(table)
    w = table.weights * (table.basis @ a)
    v = flow.velocity(jnp.zeros(()), x, w)
    rate = jnp.sum(flow.metric(x, w) * jnp.sum(v * v, axis=-1))
    return flow.energy(x, w), rate if flow.ascends else -rate


@eqx.filter_jit
def _transport(flow: Sinkhorn, table: Tables, w: Values) -> Scalar:
    return -(w @ ring_potential(flow, table, w)) / flow.beta


def _on_latitudes(
    flow: GradientFlow, plain: Dynamics, space: Grid, table: Tables, modes: np.ndarray
) -> np.ndarray:
    """(1/2 beta) sum_k lambda_k a_k^2 by Funk-Hecke; for Sinkhorn -(1/beta) int log u."""
    if isinstance(flow, Sinkhorn):
        masses = space.weights * (modes @ space.tables[0].T)
        return np.array([_transport(flow, table, jnp.asarray(w)) for w in masses])
    beta = float(plain.inverse_temperature)
    if beta == 0:
        return 0.5 * modes[:, 1] ** 2 / space.d
    return (modes**2 @ kernel_eigenvalue(space.degree, beta, space.d)) / (2 * beta)


def _entropy(space: Grid, modes: np.ndarray) -> np.ndarray:
    """int rho log rho, rho relative to the uniform density."""
    f = np.maximum(modes @ space.tables[0].T, 1e-300)
    return (f * np.log(f)) @ space.weights


def _clock(flow: GradientFlow) -> float:
    """What the velocity is multiplied by to be the gradient of the energy: e^beta for USA in its
    peak clock.
    """
    law = flow.core
    return float(np.exp(law.beta * law.shift)) if isinstance(law, Unnormalised) else 1.0
