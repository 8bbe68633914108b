"""The measures of least and most energy: the uniform one, and points.

Measures with a density are weighted tokens on exact quadrature grids: 64 angles on the circle, 24 ×
48 points (Gauss-Legendre in height) on $S^2$. The eigenvalue $λ_k$ of the kernel comes from the
energy of the densities $1 ± cos(k θ)/2$, or $1 ± P_k(height)/2$, which is quadratic in the ripple.
The energy of weights on 16 angles is minimised by SciPy from random weights ($w = softmax(u)$,
trust region, then Newton's method on the gradient, with derivatives of the library's energy).
Random measures are 8 tokens, uniform or clustered, with random weights. SA with $V = −I$ runs from
16 uniform tokens on the circle, with $V = I$ from 16 tokens on a half circle (adaptive solver, $t =
400$).
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.optimize import minimize, root
from scipy.special import eval_legendre, softmax

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.observables import Energy
from tokenflock.papers.perspective._pointwise import (
    circle,
    energies,
    energy,
    energy_by_weight,
    unit,
)
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, between, monte_carlo, near
from tokenflock.reproduction.scale import Scale
from tokenflock.starts import Hemisphere, Uniform
from tokenflock.theory import (
    dirac_energy,
    kernel_eigenvalue,
    polygon_energy,
    sampled_energy,
    uniform_energy,
)

SOURCE = "Proposition 3.4"
CAPTION = (
    "See that all eigenvalues $λ_k$ of the kernel are positive, so that the energy is least at"
    " the uniform measure, where the flow of $V = −I$ goes, and greatest at one point."
)
BETA, N = 4.0, 16
DEGREES = np.arange(9)
# beta, d of the empirical measures
CELLS = ((0.5, 2), (1.0, 2), (4.0, 2), (9.0, 2), (1.0, 3), (4.0, 3), (4.0, 16))


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    parts = {
        "kernel": _kernel(),
        "density": _density(scale.pick(quick=3, paper=20)),
        "flows": _flows(),
        "samples": _samples(scale.pick(quick=200, paper=10000)),
    }
    setting = (
        f"$β = {BETA:g}$; 16 weights on the circle, 16 tokens; samples: $β = 0.5$ to 9, $d = 2$,"
        " 3, 16"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _circle_grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, weights, and the ripples cos(k theta), whose squares have mean 1/2 (1 for k = 0)."""
    theta = 2 * np.pi * np.arange(64) / 64
    return np.asarray(circle(theta)), np.full(64, 1 / 64), np.cos(DEGREES[:, None] * theta)


def _sphere_grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, weights, and the ripples P_k(height), whose squares have mean 1/(2k+1)."""
    height, weight = np.polynomial.legendre.leggauss(24)
    ring = circle(2 * np.pi * np.arange(48) / 48)
    x = np.concatenate([np.c_[np.sqrt(1 - h**2) * ring, np.full(48, h)] for h in height])
    return x, np.repeat(weight / 96, 48), eval_legendre(DEGREES[:, None], x[:, 2])


def _kernel() -> xr.Dataset:
    """lambda_k: 2 beta times the part of the energy that is quadratic in a ripple of degree k, over
    its mean square.
    """
    rows = []
    for x, w, ripples in (_circle_grid(), _sphere_grid()):
        flat = energy(x, BETA, w)
        bent = [
            (energy(x, BETA, w * (1 + r / 2)) + energy(x, BETA, w * (1 - r / 2)) - 2 * flat) / 2
            for r in ripples
        ]
        rows.append([2 * BETA * 4 * b / (w @ r**2) for b, r in zip(bent, ripples)])
        rows[-1][0] = 2 * BETA * flat  # a ripple of degree zero is the uniform measure itself
    return xr.Dataset({"eigenvalue": (("d", "k"), rows)}, coords={"d": [2, 3], "k": DEGREES})


def _density(starts: int) -> xr.Dataset:
    """Weights on 16 angles that minimise the energy, from random ones."""
    rng = np.random.default_rng(0)
    x = np.asarray(circle(2 * np.pi * np.arange(N) / N))
    first = np.array([softmax(2 * rng.normal(size=N)) for _ in range(starts)])
    last = np.array([_minimise(x, np.log(w)) for w in first])
    energies = [energy(x, BETA, w) for w in last]
    return xr.Dataset(
        {
            "first": (("start", "cell"), first),
            "last": (("start", "cell"), last),
            "energy": ("start", energies),
        }
    )


def _minimise(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    # linear in the weights: its matrix
    kernel = np.array([energy_by_weight(x, BETA, e) for e in np.eye(len(x)) + 1e-300])

    def slope(u: np.ndarray) -> np.ndarray:
        w = softmax(u)
        g = energy_by_weight(x, BETA, w)
        return w * (g - w @ g)

    def curvature(u: np.ndarray) -> np.ndarray:
        w = softmax(u)
        J = np.diag(w) - np.outer(w, w)
        g = energy_by_weight(x, BETA, w)
        centred = g - w @ g
        return (
            J @ kernel @ J
            + np.diag(w * centred)
            - np.outer(w, w * centred)
            - np.outer(w * centred, w)
        )

    options = {"gtol": 1e-15, "maxiter": 500}
    end = minimize(
        lambda u: energy(x, BETA, softmax(u)),
        u,
        jac=slope,
        hess=curvature,
        method="trust-exact",
        options=options,
    )
    return softmax(root(slope, end.x, jac=curvature, method="lm", tol=1e-15).x)


def _flows() -> xr.Dataset:
    """The energy of 16 tokens on the circle, driven apart and driven together by SA."""
    times = np.concatenate([[0], np.geomspace(0.05, 400, 80)])
    cases = {
        "V = -I": (SelfAttention(beta=BETA, repulsive=True), Uniform(n=N, d=2)),
        "V = I": (SelfAttention(beta=BETA), Hemisphere(n=N, d=2)),
    }
    runs = [
        flock.simulate(law, start, t=400.0, times=times, observe=[Energy()], seed=5).energy
        for law, start in cases.values()
    ]
    return xr.Dataset(
        {"energy": (("law", "time"), np.stack(runs))}, coords={"law": list(cases), "time": times}
    )


def _samples(count: int) -> xr.Dataset:
    """Least and greatest energy of random empirical measures, and the mean energy of 8 independent
    uniform tokens.
    """
    rng = np.random.default_rng(1)
    rows = []
    for beta, d in CELLS:
        iid = energies(_uniform(rng, count, 8, d), beta)
        other = energies(_clustered(rng, count, d), beta, rng.dirichlet(np.ones(8), count))
        both = np.concatenate([iid, other])
        rows.append((both.min(), both.max(), np.mean(iid), np.std(iid, ddof=1) / np.sqrt(count)))
    names = ("least", "greatest", "mean", "error")
    return xr.Dataset(
        {name: ("cell", [row[k] for row in rows]) for k, name in enumerate(names)},
        coords={"beta": ("cell", [b for b, _ in CELLS]), "d": ("cell", [d for _, d in CELLS])},
        attrs={"count": count},
    )


def _uniform(rng: np.random.Generator, count: int, n: int, d: int) -> np.ndarray:
    return unit(rng.normal(size=(count, n, d)))


def _clustered(rng: np.random.Generator, count: int, d: int) -> np.ndarray:
    """Eight tokens about one direction, from tight to loose."""
    spread = 10 ** rng.uniform(-3, 1, size=(count, 1, 1))
    return unit(_uniform(rng, count, 1, d) + spread * rng.normal(size=(count, 8, d)))


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(1, 3, size=(3.2, 2.8))
    _draw_kernel(axes[0], data["kernel"].to_dataset())
    _draw_density(axes[1], data["density"].to_dataset())
    _draw_flows(axes[2], data["flows"].to_dataset())
    return figure


def _draw_kernel(ax: Axes, kernel: xr.Dataset) -> None:
    with look(ax) as theme:
        for colour, mark, dash, d in zip(theme.palette, "oD", ("-", "--"), kernel.d.values):
            ax.plot(
                kernel.k,
                kernel_eigenvalue(kernel.k.values, BETA, int(d)),
                dash,
                color=colour,
                linewidth=0.9,
            )
            ax.plot(
                kernel.k,
                kernel.eigenvalue.sel(d=d),
                mark,
                color=colour,
                markersize=4,
                label=f"$d={d}$",
            )
        ax.set(yscale="log", xlabel="degree $k$", ylabel=r"$\lambda_k$")
        ax.set_title(rf"All $\lambda_k>0$ ($\beta={BETA:g}$)")
        ax.legend(title="measured (lines: Bessel)", alignment="left")


def _draw_density(ax: Axes, density: xr.Dataset) -> None:
    cells = np.arange(N + 1) * 360 / N
    with look(ax) as theme:
        ax.stairs(
            density["first"][0] * N, cells, color=theme.neutral, linestyle="--", label="start"
        )
        ax.stairs(
            density["last"][0] * N, cells, color=theme.palette[0], linewidth=1.8, label="minimiser"
        )
        ax.set(
            xlim=(0, 360),
            xticks=[0, 90, 180, 270, 360],
            xlabel="angle (degrees)",
            ylabel="density / uniform density",
        )
        ax.set_title("Weights of least energy")
        ax.legend()


def _draw_flows(ax: Axes, flows: xr.Dataset) -> None:
    with look(ax) as theme:
        for colour, law in zip((theme.palette[0], theme.palette[2]), flows.law.values):
            ax.plot(flows.time, flows.energy.sel(law=law), color=colour, label="$" + str(law) + "$")
        for level, name in (
            (uniform_energy(BETA, 2), "uniform"),
            (dirac_energy(BETA), "one point"),
        ):
            ax.axhline(level, color=theme.soft, linestyle=":", linewidth=1)
            ax.text(0.02, level - 0.08, name, va="top", color=theme.soft)
        ax.set_xscale("symlog", linthresh=0.1)
        ax.set(xlim=(0, 400), ylim=(0, 7.8), xlabel="$t$", ylabel=r"$E_\beta$")
        ax.set_title(rf"SA on the circle, $n={N}$, $\beta={BETA:g}$")
        ax.legend(loc="center right")


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    kernel, density = data["kernel"].to_dataset(), data["density"].to_dataset()
    flows, samples = data["flows"].to_dataset(), data["samples"].to_dataset()
    return [
        *_kernel_claims(kernel),
        *_density_claims(density),
        *_flow_claims(flows),
        *_sample_claims(samples),
    ]


def _kernel_claims(kernel: xr.Dataset) -> list[Claim]:
    exact = np.array([kernel_eigenvalue(DEGREES, BETA, int(d)) for d in kernel.d.values])
    ratio = kernel.eigenvalue / exact
    return [
        Claim(
            "positive",
            f"the kernel $e^{{β⟨x, y⟩}}$ has positive eigenvalues $λ_k$ ($β = {BETA:g}$, $d"
            " = 2$, 3, $k ≤ 8$), so $E_β$ is strictly convex: the least measured",
            "Proposition 3.4",
            float(kernel.eigenvalue.min()),
            between(0.99 * exact.min(), 1.01 * exact.min()),
        ),
        Claim(
            "eigenvalues",
            f"$λ_k = Γ(d/2) (2/β)^{{d/2−1}} I_{{k+d/2−1}}(β)$: largest relative error ($β ="
            f" {BETA:g}$, $d = 2$, 3, $k ≤ 8$)",
            "Proposition 3.4 (Funk-Hecke)",
            float(np.abs(ratio - 1).max()),
            at_most(1e-8),
        ),
    ]


def _density_claims(density: xr.Dataset) -> list[Claim]:
    off = float(np.abs(density["last"] * N - 1).max())
    return [
        Claim(
            "uniform",
            f"minimising $E_β$ over weights on {N} angles of the circle ($β = {BETA:g}$)"
            " gives the uniform ones: largest relative error",
            "Proposition 3.4",
            off,
            at_most(1e-8),
            note=(
                f"{density.sizes['start']} random starts, which were off by up to"
                f" ${float(np.abs(density['first'] * N - 1).max()):.2g}$"
            ),
        ),
        Claim(
            "uniform-energy",
            f"the least energy on {N} angles is $λ_0/(2β)$ up to the aliasing of the grid,"
            f" $I_{N}(β)/β = {kernel_eigenvalue(N, BETA, 2) / BETA:.1e}$",
            "Proposition 3.4",
            float(density.energy.min() - uniform_energy(BETA, 2)),
            near(kernel_eigenvalue(N, BETA, 2) / BETA, 1e-12),
        ),
    ]


def _flow_claims(flows: xr.Dataset) -> list[Claim]:
    down, up = flows.energy.sel(law="V = -I"), flows.energy.sel(law="V = I")
    floor = polygon_energy(N, BETA)
    return [
        Claim(
            "repulsion",
            f"{N} tokens repelled by SA with $V = −I$ ($d = 2$, $β = {BETA:g}$) come to the"
            " energy of the uniform measure from above, as close as a regular polygon: $E −"
            " E$(polygon) at $t = 400$, relative",
            "Proposition 3.4, section 9.1",
            float(down[-1] / floor - 1),
            between(-1e-12, 1e-9),
            note=(
                f"$E$(polygon) $− λ_0/(2β) = {floor - uniform_energy(BETA, 2):.1e}$; on the"
                " way $E − λ_0/(2β)$ is never below"
                f" ${float(down.min()) - uniform_energy(BETA, 2):.1e}$"
            ),
        ),
        Claim(
            "dirac",
            f"with $V = I$ the energy of {N} tokens from a half circle ($β = {BETA:g}$)"
            " grows to that of a point mass, $e^β/(2β)$, the maximum: ratio at $t = 400$",
            "Proposition 3.4",
            float(up[-1] / dirac_energy(BETA)),
            near(1, 1e-12),
        ),
    ]


def _sample_claims(samples: xr.Dataset) -> list[Claim]:
    floor = np.array([uniform_energy(b, d) for b, d in zip(samples.beta.values, samples.d.values)])
    roof = dirac_energy(samples.beta.values)
    expected = np.array(
        [sampled_energy(8, b, d) for b, d in zip(samples.beta.values, samples.d.values)]
    )
    score = (samples["mean"].values - expected) / samples["error"].values
    count = int(samples.attrs["count"])
    where = (
        f"{2 * count} random weighted measures for each of {len(floor)} pairs ($β$, $d$), $β"
        " = 0.5$ to 9, $d = 2$, 3, 16"
    )
    return [
        Claim(
            "above",
            "no measure has less energy than the uniform one: least $E/E$(uniform) $− 1$"
            f" over {where}",
            "Proposition 3.4",
            float((samples.least.values / floor).min() - 1),
            at_least(0),
        ),
        Claim(
            "below",
            f"no measure has more energy than a point: greatest $E/E$(point) over {where}",
            "Proposition 3.4",
            float((samples.greatest.values / roof).max()),
            between(0.99, 1),
        ),
        Claim(
            "independent",
            "8 independent uniform tokens have mean energy $(e^β/8 + (7/8) λ_0)/(2β)$: the"
            " worst of the pairs ($β$, $d$), in standard errors",
            "Proposition 3.4",
            float(score[np.abs(score).argmax()]),
            monte_carlo(0, 1),
            error=1.0,
        ),
    ]
