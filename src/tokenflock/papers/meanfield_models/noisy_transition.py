"""Noise: where the uniform measure gives way, and whether order comes slowly or with a jump.

USA with noise of strength $2/κ$. (1) The growth rate of a ripple of degree 1 (circle, $S^2$) at two
$κ$ about $κ_c = β / λ_1$ gives $κ_c$ as the zero of a line in $1/κ$. (2) The branch of ordered
states that leaves the uniform one at $κ_c$ is followed by Newton's method on the right-hand side of
the continuity equation, with the order parameter $m_1$ given and $κ$ unknown. Its bend at $m_1 → 0$
(two small $m_1$, extrapolated) changes sign at $β_*$: up to it the transition is continuous, beyond
it the branch bends back and the order jumps. (3) Long runs of the continuity equation on the circle
at $β = 1$ and 4 end in states that are compared with the fixed point of $ρ ∝ exp((2κ/β) Σ_k I_k m_k
cos kθ)$, found by iteration from a Dirac.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import brentq
from scipy.special import iv

from tokenflock.dynamics import Noisy, Unnormalised
from tokenflock.meanfield import Ripple, VonMises, evolve, grid
from tokenflock.meanfield.continuity import Tables, slope, tables
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, at_most, near, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.theory import critical_noise, growth_rate, tricritical_beta

SOURCE = "arXiv 2412.14813, 2510.20094: noise"
CAPTION = (
    "See the order parameter $m_1$, the length of the mean token, rise steadily from the uniform"
    " state for small $β$, and jump, with a fold behind it, for large $β$."
)
POINTS = {2: 96, 3: 48}  # nodes, by d
BETAS = (1.0, 4.0)  # below and above the tricritical one, on the circle and on S^2
SMALL = (0.02, 0.04)  # order parameters at which the branch is seen to bend
# beta, kappa / kappa_c, concentration of the start (0: a ripple of size 1e-3)
RUNS = (
    (1.0, 0.95, 2.0),
    (1.0, 1.05, 0.0),
    (1.0, 1.3, 2.0),
    (4.0, 0.95, 0.0),
    (4.0, 0.95, 5.0),
    (4.0, 1.02, 0.0),
)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    steps = scale.pick(quick=24, paper=96)
    parts = {
        "threshold": _threshold(),
        "bend": _bend(),
        "branches": _branches(steps),
        "runs": _runs(),
    }
    setting = "USA with noise, circle and $S^2$; $β = 1$ and 4, $κ/κ_c$ from 0.95 to 1.3"
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _threshold() -> xr.Dataset:
    """Rates of degree 1 a little below and above kappa_c, (d, beta, side)."""
    sides = np.array([0.98, 1.02])
    rates = [
        [[_rate(d, beta, side * critical_noise(beta, d)) for side in sides] for beta in BETAS]
        for d in (2, 3)
    ]
    return xr.Dataset(
        {
            "rate": (("d", "beta", "side"), rates),
            "kappa": (
                ("d", "beta", "side"),
                [[sides * critical_noise(beta, d) for beta in BETAS] for d in (2, 3)],
            ),
        },
        coords={"d": [2, 3], "beta": list(BETAS), "side": sides},
    )


def _rate(d: int, beta: float, kappa: float) -> float:
    law, mode = (
        Noisy(Unnormalised(beta), kappa=kappa),
        Ripple(k=1, amplitude=1.0).relative(grid(d, POINTS[d])) - 1,
    )
    t = 1 / growth_rate(1, beta, d, "USA")
    runs = [
        evolve(law, Ripple(k=1, amplitude=size), t=t, frames=2, d=d, points=POINTS[d])
        for size in (1e-5, -1e-5)
    ]
    up, down = (run.density.values @ (run.weight.values * mode) for run in runs)
    return float(np.log((up[-1] - down[-1]) / (up[0] - down[0])) / t)


@eqx.filter_jit
def _newton(
    table: Tables, index: np.ndarray, beta: Any, a: jax.Array, kappa: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """One step for the state with the first mode as given.

    Index: the modes that are even about the axis.
    """

    def change(z: Any) -> Array:
        law = Noisy(Unnormalised(beta), kappa=z[0])
        return slope(law, jnp.zeros(()), table, a.at[index[2:]].set(z[1:]))[index[1:]]

    z = jnp.concatenate([kappa[None], a[index[2:]]])
    z = z - jnp.linalg.solve(jax.jacfwd(change)(z), change(z))
    return a.at[index[2:]].set(z[1:]), z[0]


class Branch:
    """Stationary states of given order parameter, by Newton's method on the solver's right-hand
    side.
    """

    def __init__(self, d: int) -> None:
        self.space = grid(d, POINTS[d])
        self.index = np.arange(POINTS[2] // 3 + 1) if d == 2 else np.arange(len(self.space.degree))
        with precision("float64"):
            self.table = tables(Noisy(Unnormalised(4.0)), self.space)

    def kappa(
        self, beta: float, m1: float, a: np.ndarray | None = None, kappa: float | None = None
    ) -> tuple[float, np.ndarray]:
        """(kappa, modes) of the state with order parameter m1, from a guess: next to the uniform
        measure unless given.
        """
        d = self.space.d
        guess = np.eye(len(self.space.degree))[0] if a is None else a.copy()
        guess[1] = m1 * np.sqrt(d)  # the first orthonormal function is sqrt(d) cos(angle)
        with precision("float64"):
            modes = jnp.asarray(guess)
            noise = jnp.asarray(float(critical_noise(beta, d)) if kappa is None else kappa)
            for _ in range(30):
                modes, new = _newton(self.table, self.index, jnp.asarray(beta), modes, noise)
                done, noise = abs(float(new - noise)) < 1e-14 * float(new), new
                if done:
                    break
            return float(noise), np.asarray(modes)


def _curvature(branch: Branch, beta: float) -> float:
    """(kappa_c / kappa - 1) / m_1^2 as m_1 -> 0."""
    critical = float(critical_noise(beta, branch.space.d))
    first, second = (((critical / branch.kappa(beta, m1)[0]) - 1) / m1**2 for m1 in SMALL)
    return first - (second - first) / ((SMALL[1] / SMALL[0]) ** 2 - 1)


def _bend(near_by: float = 0.3) -> xr.Dataset:
    """The beta at which the bend of the branch vanishes, and the bend at both betas."""
    rows = []
    for d in (2, 3):
        branch, middle = Branch(d), float(tricritical_beta(d))
        bend = partial(_curvature, branch)
        low, high = middle - near_by, middle + near_by
        zero = brentq(bend, low, high, xtol=1e-9) if bend(low) * bend(high) < 0 else np.nan
        rows.append((zero, *map(bend, BETAS)))
    table = np.array(rows)
    return xr.Dataset(
        {"zero": ("d", table[:, 0]), "bend": (("d", "beta"), table[:, 1:])},
        coords={"d": [2, 3], "beta": list(BETAS)},
    )


def _branches(steps: int) -> xr.Dataset:
    """kappa / kappa_c of the ordered states on the circle, for each order parameter."""
    branch, m1 = Branch(2), np.linspace(0.02, 0.9, steps)
    rows = []
    for beta in BETAS:
        a, kappa, row = None, None, []
        for m in m1:
            kappa, a = branch.kappa(beta, m, a, kappa)
            row.append(kappa / critical_noise(beta, 2))
        rows.append(row)
    return xr.Dataset({"kappa": (("beta", "m1"), rows)}, coords={"beta": list(BETAS), "m1": m1})


def _runs() -> xr.Dataset:
    """Ends of long runs, the same by the fixed point, and how far the end is from the formula."""
    rows = []
    for beta, share, start in RUNS:
        kappa = float(share * critical_noise(beta, 2))
        first = VonMises(start) if start else Ripple(k=1, amplitude=1e-3)
        t = 60 / growth_rate(1, beta, 2, "USA") / (0.1 if abs(share - 1) < 0.1 else 1)
        run = evolve(
            Noisy(Unnormalised(beta), kappa=kappa),
            first,
            t=t,
            frames=41,
            points=POINTS[2],
            rtol=1e-8,
            atol=1e-11,
        )
        rho, weight = run.density.values[-1], run.weight.values
        again = _state(beta, kappa, _moments(rho, run.theta.values), run.theta.values)
        fixed = _fixed_point(beta, kappa, run.theta.values)
        falls = float(-run.free_energy.diff("time").min())
        rows.append(
            (
                float(run.order_parameter[-1]),
                abs(rho - again).max(),
                fixed,
                falls,
                abs(float(rho @ weight) - 1),
            )
        )
    names = ("order", "off", "fixed", "falls", "mass")
    coords = {
        name: ("run", list(column)) for name, column in zip(("beta", "share", "start"), zip(*RUNS))
    }
    return xr.Dataset(
        {name: ("run", list(column)) for name, column in zip(names, zip(*rows))}, coords
    )


def _moments(rho: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """m_k = int cos(k theta) rho for k = 1 to 20."""
    return np.cos(np.outer(np.arange(1, 21), theta)) @ rho * (2 * np.pi / len(theta))


def _state(beta: float, kappa: float, m: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """rho ~ exp((2 kappa / beta) sum_k I_k m_k cos k theta)."""
    k = np.arange(1, 21)
    rho = np.exp(2 * kappa / beta * (iv(k, beta) * m) @ np.cos(np.outer(k, theta)))
    return rho / (rho.sum() * 2 * np.pi / len(theta))


def _fixed_point(beta: float, kappa: float, theta: np.ndarray) -> float:
    """The order parameter of the state that the iteration m -> moments(state(m)) finds from a
    Dirac.
    """
    m = np.ones(20)
    for _ in range(20_000):
        new = _moments(_state(beta, kappa, m, theta), theta)
        if abs(new - m).max() < 1e-14:
            break
        m = new
    return float(new[0])


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    branches, runs = data["branches"].to_dataset(), data["runs"].to_dataset()
    figure, axes = panels(1, 2, size=(3.6, 2.8))
    words = {
        1.0: r"$\beta=1<\beta_*$: order grows from zero",
        4.0: r"$\beta=4>\beta_*$: order jumps",
    }
    for ax, beta, right in zip(axes, branches.beta.values, (1.45, 1.15)):
        kappa, m1 = branches.kappa.sel(beta=beta).values, branches.m1.values
        fold = int(kappa.argmin())
        with look(ax) as theme:
            ax.plot(kappa[fold:], m1[fold:], color=theme.palette[0], label="ordered, stable")
            if fold:
                ax.plot(
                    kappa[: fold + 1],
                    m1[: fold + 1],
                    "--",
                    color=theme.palette[0],
                    label="ordered, unstable",
                )
            ax.plot([0.9, 1], [0, 0], color=theme.palette[2], label="uniform, stable")
            ax.plot([1, right], [0, 0], "--", color=theme.palette[2], label="uniform, unstable")
            these = runs.isel(run=np.flatnonzero(runs.beta.values == beta))
            ax.plot(
                these.share,
                these.order,
                "o",
                color=theme.palette[1],
                mec=theme.ink,
                mew=0.6,
                zorder=4,
                clip_on=False,
                label="long runs",
            )
            ax.set(
                xlim=(0.9, right),
                ylim=(-0.02, 0.92),
                xlabel=r"$\kappa/\kappa_c$",
                ylabel=r"order parameter $m_1$",
            )
            ax.set_title(words[float(beta)])
            ax.legend(loc="center right", fontsize="small")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [
        *_threshold_claims(data["threshold"].to_dataset()),
        *_bend_claims(data["bend"].to_dataset()),
        *_run_claims(data),
    ]


def _threshold_claims(rates: xr.Dataset) -> list[Claim]:
    return [
        Claim(
            f"threshold-{d}-{beta:g}",
            f"unnormalised self-attention (USA) with noise, {'circle' if d == 2 else '$S²$'},"
            f" $β = {beta:g}$: the uniform measure is linearly unstable exactly for $κ > κ_c"
            f" = β/λ_1 = {float(critical_noise(beta, d)):.10f}$ (zero of the growth rate of"
            " degree 1)",
            SOURCE,
            _zero(rates.sel(d=d, beta=beta)),
            near_relative(critical_noise(beta, d), 1e-7),
            note="rates ${}$ at $0.98 κ_c$ and ${}$ at $1.02 κ_c$".format(
                *map(_signed, rates.rate.sel(d=d, beta=beta).values)
            ),
        )
        for d in (2, 3)
        for beta in BETAS
    ]


def _signed(rate: float) -> str:
    return f"{rate:.6f}".replace("-", "−")


def _zero(rates: xr.Dataset) -> float:
    """The kappa at which the rate, linear in 1/kappa, vanishes."""
    noise, rate = 1 / rates.kappa.values, rates.rate.values
    return float(1 / (noise[0] - rate[0] * (noise[1] - noise[0]) / (rate[1] - rate[0])))


def _bend_claims(bend: xr.Dataset) -> list[Claim]:
    statements = []
    for d in (2, 3):
        place = "circle" if d == 2 else "$S²$"
        statements.append(
            Claim(
                f"tricritical-{d}",
                f"{place}: the branch of ordered states leaves the uniform one forwards for"
                f" $β < β_*$, backwards for $β > β_*$, $I_{{d/2+1}}(β_*)/I_{{d/2}}(β_*) ="
                f" 1/d$, $β_* = {float(tricritical_beta(d)):.6f}$ (zero of its bend)",
                SOURCE,
                float(bend.zero.sel(d=d)),
                near(tricritical_beta(d), 2e-6),
            )
        )
        statements += [
            Claim(
                f"bend-{d}-{beta:g}",
                f"{place}, $β = {beta:g}$: $(κ_c/κ − 1)/m_1² → (d/(d+2)) ((d−1) r/(1−r) −"
                " 1)$, $r = λ_2/λ_1$, as $m_1 → 0$",
                "derived; cf. arXiv 2412.14813, 2510.20094",
                float(bend.bend.sel(d=d, beta=beta)),
                near_relative(_expected_bend(beta, d), 2e-5),
            )
            for beta in BETAS
        ]
    return statements


def _expected_bend(beta: float, d: int) -> float:
    r = iv(d / 2 + 1, beta) / iv(d / 2, beta)
    return float(d / (d + 2) * ((d - 1) * r / (1 - r) - 1))


def _run_claims(data: xr.DataTree) -> list[Claim]:
    runs, branches = data["runs"].to_dataset(), data["branches"].to_dataset()
    order = {(beta, share, start): runs.isel(run=k) for k, (beta, share, start) in enumerate(RUNS)}
    ordered = [(1.0, 1.05, 0.0), (1.0, 1.3, 2.0), (4.0, 0.95, 5.0), (4.0, 1.02, 0.0)]
    return [
        Claim(
            "stationary",
            "long runs end in $ρ ∝ exp((2κ/β) Σ_k I_k m_k cos kθ)$, $m_k = ∫cos kθ dρ$"
            " (circle, $β = 1$ and 4; greatest difference)",
            SOURCE,
            float(runs.off.max()),
            at_most(1e-8),
        ),
        Claim(
            "fixed-point",
            "where runs end ordered, their order parameter is that of the fixed point found from a"
            " Dirac (greatest difference)",
            SOURCE,
            float(max(abs(order[key].order - order[key].fixed) for key in ordered)),
            at_most(1e-8),
        ),
        Claim(
            "disordered",
            "below $κ_c$ at $β = 1$ ($0.95 κ_c$) even a concentrated start becomes uniform,"
            " as does a small ripple at $β = 4$: order parameter at the end",
            SOURCE,
            float(max(order[1.0, 0.95, 2.0].order, order[4.0, 0.95, 0.0].order)),
            at_most(1e-9),
        ),
        *_branch_claims(order, branches),
        Claim(
            "free-energy",
            "the free energy $E − (1/κ)∫ρ log ρ$ never falls along these runs (greatest"
            " fall between frames)",
            SOURCE,
            float(runs.falls.max()),
            at_most(1e-10),
        ),
    ]


def _branch_claims(
    order: dict[tuple[float, float, float], xr.Dataset], branches: xr.Dataset
) -> list[Claim]:
    """On which branch runs (beta, share of kappa_c, start) end."""
    grown, jumped = order[1.0, 1.05, 0.0], order[4.0, 1.02, 0.0]
    fold = float(branches.kappa.sel(beta=4.0).min())
    return [
        Claim(
            "two-states",
            "$β = 4$ at $0.95 κ_c$, where a small ripple dies out: from a concentrated"
            " start the order parameter ends on the far branch",
            SOURCE,
            float(order[4.0, 0.95, 5.0].order),
            near(np.interp(0.95, *_far(branches)), 2e-3),
            note=f"the ordered branch reaches back to ${fold:.4f} κ_c$",
        ),
        Claim(
            "continuous",
            "$β = 1$ at $1.05 κ_c$: the order parameter is $√((κ_c/κ − 1)/bend)$ up to the"
            " next order",
            SOURCE,
            float(grown.order),
            near_relative(np.sqrt((1 / 1.05 - 1) / _expected_bend(1.0, 2)), 0.05),
        ),
        Claim(
            "jump",
            "$β = 4$ at $1.02 κ_c$: from a ripple of size $10⁻³$ the order parameter jumps"
            " to the far branch",
            SOURCE,
            float(jumped.order),
            near(np.interp(1.02, *_far(branches)), 2e-3),
        ),
    ]


def _far(branches: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """(kappa / kappa_c, m_1) of the stable branch at beta = 4."""
    kappa = branches.kappa.sel(beta=4.0).values
    return kappa[kappa.argmin() :], branches.m1.values[kappa.argmin() :]
