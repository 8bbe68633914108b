"""With a relu perceptron the minimiser is a few atoms, with a linear one it is a density.

USA with a gradient perceptron, $dx_i/dt = P(n^(−1) Σ_j e^(β ⟨x_i,x_j⟩) x_j + Σ_j w_j σ(⟨a_j, x_i⟩)
a_j)$, ascends $E = (1/(2β)) ∫∫ e^(β ⟨x,y⟩) + (1/2) ∫ v$ with $v = 2 Σ_j w_j S(⟨a_j, x⟩)$, $S' = σ$
(derived here). (1) Eight tokens on the circle, $β = 2$, relu: the energy's slope against the mean
square speed, and where runs end. (2) The minimiser on a grid of the circle: $E$ is convex, so any
start must find the same (exponentiated gradient, or an active set of atoms), and the gap of the
potential $e^(β cos) ∗ ρ/β + v/2$ certifies it. For $σ(z) = z$ and one neuron $e_1$ of weight $w$
the minimiser is $(1 + c cos 2 θ)/(2 π)$ with $c = −β w/(4 I_2(β))$ (derived here). For relu, $v$
has Fourier coefficients that fall more slowly than $I_k(β)$, so no density can balance it, and the
support must be small: the atomic critical points of arXiv 2601.21366 (abstract). An atom between
two nodes shows as two neighbours, so atoms are counted as groups of neighbours, on grids of 60, 120
and 240 nodes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.special import iv

import tokenflock as flock
from tokenflock.dynamics import FeedForward, NeuralODE, Unnormalised
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, at_least, at_most, between
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform

SOURCE = "arXiv 2601.21366: the landscape"
CAPTION = (
    "See the energy of four runs with a relu perceptron climb, not all to the maximum (left), and "
    "the measure of least energy be a few atoms for relu and a smooth density for a linear part "
    "(right)."
)
DERIVED = "derived here; cf. abstract of arXiv 2601.21366"
BETA, WEIGHT, LINEAR = 2.0, 0.6, 0.5  # weights of the relu and of the linear neuron
NODES, GRIDS = 120, (60, 120, 240)
THETA = 2 * np.pi * np.arange(NODES) / NODES


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    steps = scale.pick(quick=40_000, paper=400_000)
    parts = {"flow": _flow()}
    starts = np.ones(NODES), np.exp(np.cos(THETA - 1))
    linear = [_minimise(linear_potential(THETA), start, steps) for start in starts]
    relu = [_atoms(NODES, first) for first in (0, NODES // 3)]
    for name, runs in (("linear", linear), ("relu", relu)):
        parts[name] = xr.Dataset(
            {
                "rho": (("start", "theta"), [run[0] for run in runs]),
                "energy": ("start", [run[1] for run in runs]),
                "gap": ("start", [run[2] for run in runs]),
            },
            {"theta": THETA},
        )
    finer = [_atoms(nodes, 0)[0] > 0 for nodes in GRIDS]
    parts["grids"] = xr.Dataset(
        {
            "carrying": ("nodes", [int(on.sum()) for on in finer]),
            "atoms": ("nodes", [int((on & ~np.roll(on, 1)).sum()) for on in finer]),
        },
        {"nodes": list(GRIDS)},
    )
    parts["top"] = xr.Dataset({"eigenvalue": ("mode", _top())})
    setting = (
        f"circle, $β = {BETA:g}$; relu neuron of weight {WEIGHT:g} and linear one of {LINEAR:g};"
        f" 8 tokens to $t = 6$; {NODES} nodes, {steps} steps"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def relu_potential(theta: Array) -> Array:
    """v = 2 w S(cos theta), S(z) = max(z, 0)^2 / 2."""
    return WEIGHT * np.maximum(np.cos(theta), 0) ** 2


def linear_potential(theta: Array) -> Array:
    """v = 2 w S(cos theta), S(z) = z^2 / 2."""
    return LINEAR * np.cos(theta) ** 2


def _law() -> FeedForward:
    """USA with one relu neuron."""
    a = np.array([[1.0, 0.0]])
    return FeedForward(
        NeuralODE(W=WEIGHT * a.T, A=a, activation=Activation.RELU), base=Unnormalised(beta=BETA)
    )


def _top(n: int = 8) -> Array:
    """The eigenvalues of the law at all tokens in the maximum of v."""

    def speeds(angles: jax.Array) -> jax.Array:
        x = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
        along = jnp.stack([-x[:, 1], x[:, 0]], axis=1)
        return jnp.sum(_law().velocity(0.0, x, jnp.full(n, 1 / n)) * along, axis=1)

    with precision("float64"):
        slopes = np.asarray(jax.jacfwd(speeds)(jnp.zeros(n)))
    return np.sort(np.real(np.linalg.eigvals(slopes)))


def _flow() -> xr.Dataset:
    """Energies and dissipation of eight tokens, and where they end."""
    law = _law()
    runs = [
        flock.simulate(law, Uniform(n=8, d=2), t=6.0, frames=601, solver=RK4(h=0.01), seed=seed)
        for seed in range(4)
    ]
    x = np.stack([run.x.values for run in runs])
    theta = np.arctan2(x[..., 1], x[..., 0])
    E = np.array([[_energy(at) for at in path] for path in theta])
    speed = np.gradient(np.unwrap(theta, axis=1), 0.01, axis=1, edge_order=2)
    told = (speed**2).mean(-1)
    return xr.Dataset(
        {
            "energy": (("seed", "time"), E),
            "dissipation": (("seed", "time"), told),
            "end": (("seed", "particle"), theta[:, -1]),
        },
        {"time": runs[0].time.values},
    )


def _energy(theta: Array) -> float:
    pairs = np.exp(BETA * np.cos(theta[:, None] - theta)).mean() / (2 * BETA)
    return float(pairs + relu_potential(theta).mean() / 2)


def _minimise(v: Array, start: Array, steps: int) -> tuple[Array, float, float]:
    """(masses, energy, gap of the potential) by exponentiated gradient with momentum."""
    K = np.exp(BETA * np.cos(THETA[:, None] - THETA)) / BETA
    rho = start / start.sum()
    for _ in range(steps):
        V = K @ rho + v / 2
        rho = rho * np.exp(-0.5 * (V - rho @ V))
        rho /= rho.sum()
    V = K @ rho + v / 2
    return rho, float(rho @ (K @ rho) / 2 + rho @ v / 2), float(rho @ V - V.min())


def _atoms(nodes: int, first: int, most: int = 200) -> tuple[Array, float, float]:
    """(masses, energy, gap) by an active set: add the node of least potential, solve, drop."""
    theta = 2 * np.pi * np.arange(nodes) / nodes
    v, K = relu_potential(theta), np.exp(BETA * np.cos(theta[:, None] - theta)) / BETA
    support, rho = [first], np.eye(nodes)[first]
    for _ in range(most):
        V = K @ rho + v / 2
        lowest = int(V.argmin())
        if rho @ V - V[lowest] < 1e-12 or lowest in support:
            break
        support.append(lowest)
        rho = _on(K, v, support, rho)
        support = [k for k in support if rho[k] > 0]
    V = K @ rho + v / 2
    return rho, float(rho @ (K @ rho) / 2 + rho @ v / 2), float(rho @ V - V.min())


def _on(K: Array, v: Array, support: list[int], rho: Array) -> Array:
    """The best masses on a support: steps towards the solution without bounds, cut at zero."""
    active = list(support)
    while True:
        size = len(active)
        border = np.zeros((size + 1, size + 1))
        border[:size, :size], border[size, :size], border[:size, size] = (
            K[np.ix_(active, active)],
            1,
            1,
        )
        goal = np.linalg.lstsq(border, np.append(-v[active] / 2, 1.0), rcond=1e-15)[0][:size]
        here = rho[active]
        if (goal > 0).all():
            new = np.zeros(len(v))
            new[active] = goal
            return new
        share = min(h / (h - g) for h, g in zip(here, goal) if g <= 0)
        here = here + share * (goal - here)
        rho = np.zeros(len(v))
        rho[active] = np.maximum(here, 0)
        active = [k for k, mass, g in zip(active, here, goal) if mass > 1e-14 or g > 0]


def linear_minimiser(theta: Array) -> Array:
    """The density of the minimiser for the linear neuron, relative to the uniform one."""
    return 1 - BETA * LINEAR / (4 * iv(2, BETA)) * np.cos(2 * theta)


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    flow = data["flow"].to_dataset()
    figure, axes = panels(1, 2, size=(3.5, 2.8))
    with look(figure) as theme:
        for k in range(flow.sizes["seed"]):
            axes[0].plot(flow.time, flow.energy[k], color=theme.palette[k])
        axes[0].axhline(_most(), color=theme.ink, linestyle=":", linewidth=1)
        axes[0].text(5.9, _most() + 0.03, "maximum", va="bottom", ha="right", color=theme.soft)
        axes[0].set(xlabel="$t$", ylabel="energy", ylim=(None, _most() + 0.2))
        axes[0].set_title(r"Four runs climb ($n=8$, $\beta=2$, relu)")
        for colour, name in zip((theme.palette[2], theme.palette[0]), ("relu", "linear")):
            rho = data[name].to_dataset().rho.isel(start=0)
            angle = np.degrees((rho.theta.values + np.pi) % (2 * np.pi) - np.pi)
            order = np.argsort(angle)
            axes[1].semilogy(
                angle[order], np.maximum(NODES * rho.values[order], 1e-9), color=colour, label=name
            )
        axes[1].set(
            xlabel=r"$\theta$ (degrees)",
            ylabel="minimiser, relative to uniform",
            xticks=[-180, -90, 0, 90, 180],
        )
        axes[1].set_title("Atoms for relu, a density for linear")
        axes[1].set_ylim(top=1e3)
        axes[1].legend(loc="upper center", ncols=2)
    return figure


def _most() -> float:
    """e^beta/(2 beta) + max v / 2."""
    return float(np.exp(BETA) / (2 * BETA) + WEIGHT / 2)


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    flow, top = data["flow"].to_dataset(), data["top"].eigenvalue.values
    return [*_flow_claims(flow, top), *_least_claims(data), *_atom_claims(data)]


def _flow_claims(flow: xr.Dataset, top: Array) -> list[Claim]:
    said = -np.append(np.full(len(top) - 1, np.exp(BETA) + WEIGHT), WEIGHT)
    slope = np.gradient(flow.energy.values, 0.01, axis=1, edge_order=2)
    off = abs(slope - flow.dissipation.values)[:, 1:-1].max() / max(slope.max(), 1e-12)
    return [
        Claim(
            "dissipation",
            "USA with a gradient relu perceptron, circle, $β = 2$: $dE/dt$ is the mean"
            " square speed for $E = E_β + ½ ∫v dμ$ (greatest difference over the greatest"
            " slope)",
            DERIVED,
            float(off),
            at_most(5e-3),
            note="differences in time of step $h = 0.01$: $(h λ)²/6$ at the fastest, $λ = 2e^β$",
        ),
        Claim(
            "climbs",
            "and $E$ never falls (least step of four runs)",
            DERIVED,
            float(flow.energy.diff("time").min()),
            at_least(-1e-9),
        ),
        Claim(
            "reached",
            "a run reaches the maximum $e^β/(2β) + ½ max v$, all tokens at $argmax v$ (largest"
            " energy over the maximum)",
            "arXiv 2601.21366 in the form of a secondary source",
            float(flow.energy.max()) / _most(),
            between(1 - 1e-3, 1 + 1e-9),
            note=f"the maximum is ${_most():.6f}$; what is missing falls like $e^(−2wt)$",
        ),
        Claim(
            "attracts",
            "and all tokens at $argmax v$ attract: the flow there has the eigenvalues $−w$ and,"
            " $n − 1$ times, $−(e^β + w)$ (greatest error)",
            "derived here",
            float(np.abs(np.sort(top) - np.sort(said)).max()),
            at_most(1e-10),
        ),
    ]


def _least_claims(data: xr.DataTree) -> list[Claim]:
    relu, linear = data["relu"].to_dataset(), data["linear"].to_dataset()
    rho = NODES * linear.rho.isel(start=0).values
    return [
        Claim(
            "density",
            "linear perceptron: the minimiser is $(1 + c cos 2θ)/2π$, $c = −βw/(4 I₂(β))$"
            " (greatest difference of relative densities)",
            DERIVED,
            float(abs(rho - linear_minimiser(THETA)).max()),
            at_most(1e-3),
        ),
        Claim(
            "unique",
            "two starts end in the same energy, relu and linear (greatest difference)",
            DERIVED + " ($E$ is convex)",
            float(max(abs(part.energy.diff("start").item()) for part in (relu, linear))),
            at_most(1e-5),
        ),
        Claim(
            "certificate",
            "the potential is least on the support: gap, which bounds what is missing in energy",
            DERIVED,
            float(max(relu.gap.max(), linear.gap.max())),
            at_most(1e-4),
        ),
        Claim(
            "symmetric",
            "the minimiser has the symmetry $θ → −θ$ of $v$ (greatest difference in masses"
            " times nodes, from a start without it)",
            DERIVED + " (uniqueness)",
            float(NODES * abs(_odd(linear.rho.isel(start=1).values)).max()),
            at_most(1e-3),
        ),
    ]


def _atom_claims(data: xr.DataTree) -> list[Claim]:
    grids = data["grids"].to_dataset()
    atoms, carrying = grids.atoms.values, grids.carrying.values
    counted = bool((carrying < grids.nodes.values).all())  # not all nodes carry mass
    words = ", ".join(f"{nodes}" for nodes in grids.nodes.values)
    stated = "abstract of arXiv 2601.21366 (atomic critical points); counted here"
    return [
        Claim(
            "atoms",
            "relu perceptron: the minimiser has as many atoms (groups of neighbouring nodes that"
            f" carry mass) on every grid, of {words} nodes (greatest number minus least)",
            stated,
            float(np.ptp(atoms)) if counted else np.nan,
            between(0, 0),
            note=f"atoms: {', '.join(f'{count:g}' for count in atoms)}",
        ),
        Claim(
            "nodes",
            "and no atom has more than two nodes, however fine the grid: greatest number of nodes"
            " that carry mass over that of atoms",
            stated,
            float((carrying / atoms).max()) if counted else np.nan,
            between(1, 2),
            note="a density would have twice as many nodes on a grid twice as fine",
        ),
    ]


def _odd(rho: Array) -> Array:
    return rho - np.roll(rho[::-1], 1)
