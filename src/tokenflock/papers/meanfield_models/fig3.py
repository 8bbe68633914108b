"""Minimisers on the sphere for four matrices: uniform, near two poles, two poles, a great circle.

$N = 400$ tokens descend $E$ for $D = I$, $diag(1, 1/4, 1)$, $diag(1, 0, 1)$, $diag(0, 0, 1)$. First
by the published explicit steps $x ← normalize(x − h A x)$ with $h = 0.1$, 0.5, 0.75, 0.75 from
uniform tokens (20,000 steps at paper scale, 3000 at quick scale); the films show their first 1000
(100 tokens at quick scale). Then by the quasi-Newton optimiser of tokens, with its certificate:
where $D ≥ 0$, $E$ is convex in the measure, and no measure has an energy below $E − 2 gap$. For
$diag(1, 1/4, 1)$ the least energy is also found by mirror descent on densities on a grid of $S^2$.
Where $D$ has a kernel and all tokens are near it, they approach it like $1/t$: with $u$ the part
outside the kernel and $M$ the mean of $u u^T$, the flow is $dM/dt = −2 M^2$. This is measured on
400 tokens that start near the kernel (Gaussian $u$ of scale 0.1, 1200 steps of $h = 0.75$). Uniform
tokens are slower, for those that start near the opposite great circle or pole are late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tokenflock.dynamics import Burger
from tokenflock.meanfield import optimal_density, optimal_tokens
from tokenflock.observables import FlowEnergy
from tokenflock.papers.meanfield_models._balls import ball
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Axes, Figure
from tokenflock.reproduction.claim import Claim, at_most, between, near, near_relative
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Given, Uniform
from tokenflock.theory import kernel_eigenvalue
from tokenflock.verbs.simulate import simulate

SOURCE = "Figure 3"
CAPTION = (
    "See 400 repelling tokens spread over the sphere, near two poles, at two poles or along a"
    " great circle, as the matrix $D$ asks, and their energy approach the optimum."
)
N, SEED, CHECK = 400, 42, 3000
CASES = {
    "uniform": ((1.0, 1.0, 1.0), 0.1),
    "near poles": ((1.0, 0.25, 1.0), 0.5),
    "poles": ((1.0, 0.0, 1.0), 0.75),
    "great circle": ((0.0, 0.0, 1.0), 0.75),
}
NAMES = {
    "uniform": "$D=I$",
    "near poles": r"$D=\mathrm{diag}(1,\frac{1}{4},1)$",
    "poles": r"$D=\mathrm{diag}(1,0,1)$",
    "great circle": r"$D=\mathrm{diag}(0,0,1)$",
}


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    steps = scale.pick(quick=CHECK, paper=20_000)
    parts = {f"steps/{name}": _steps(np.diag(D), h, steps) for name, (D, h) in CASES.items()}
    parts |= {
        f"films/{name}": _steps(np.diag(D), h, 1000, scale.pick(quick=100, paper=N))
        for name, (D, h) in CASES.items()
    }
    rounds = scale.pick(quick=250, paper=2000)
    parts |= {
        f"optimum/{name}": optimal_tokens(np.diag(D), n=N, seed=SEED, steps=rounds)
        for name, (D, _) in CASES.items()
    }
    parts["density"] = _density(scale.pick(quick=14, paper=24))
    parts |= {f"late/{name}": _late(name) for name in ("poles", "great circle")}
    setting = (
        f"$N = 400$, $d = 3$, {steps} explicit steps of $h = 0.1$, 0.5, 0.75, 0.75, seed {SEED}"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _steps(D: np.ndarray, h: float, count: int, n: int = N) -> xr.Dataset:
    """Frames that lie close together at first, when tokens are fast.

    And one after 1500 and 3000 steps of a longer run.
    """
    kept = np.unique(
        np.round(np.append(np.geomspace(1, count, 60), np.minimum([0, CHECK / 2, CHECK], count)))
    )
    return simulate(
        Burger(D=D, ascend=False),
        Uniform(n=n, d=3),
        t=count * h,
        times=kept * h,
        solver=Layer(h=h),
        observe=[FlowEnergy()],
        seed=SEED,
    )


def _late(name: str, scale: float = 0.1, steps: int = 1200) -> xr.Dataset:
    """Explicit steps from tokens near the kernel of D: what lies outside it, and the energy."""
    D, h = CASES[name]
    free, random = np.array(D) > 0, np.random.default_rng(SEED)
    x = random.normal(size=(N, 3))
    x[:, free] *= scale
    x[:, ~free] *= np.sqrt((1 - (x[:, free] ** 2).sum(1)) / (x[:, ~free] ** 2).sum(1))[:, None]
    run = simulate(
        Burger(D=np.diag(D), ascend=False),
        Given(x),
        times=h * np.array([0, steps / 2, steps]),
        t=h * steps,
        solver=Layer(h=h),
        observe=[FlowEnergy()],
    )
    return run[["flow_energy"]].assign(outside=("time", _outside(run, name))).drop_attrs()


def _outside(run: xr.Dataset, name: str) -> np.ndarray:
    """The mean square of what lies outside the kernel of D, at each time."""
    return (run.x.values[..., np.array(CASES[name][0]) > 0] ** 2).sum(-1).mean(-1)


def _density(points: int) -> xr.Dataset:
    optimum = optimal_density(np.diag(CASES["near poles"][0]), points=points)
    mass = (optimum.density * optimum.weight).values
    second = (mass[..., None] * optimum.nodes.values**2).sum(axis=(0, 1))
    return xr.Dataset({"energy": optimum.energy, "gap": optimum.gap, "second": ("coord", second)})


def films(data: xr.DataTree) -> dict[str, tuple[xr.Dataset, dict[str, Any]]]:
    """The four descents, in logarithmic time: tokens are fast at first."""
    return {
        name.replace(" ", "-"): (data[f"films/{name}"].to_dataset(), {"log_time": True})
        for name in CASES
    }


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, axes = panels(2, len(CASES), size=(2.35, 2.6), height_ratios=(1.25, 1))
    for k, name in enumerate(CASES):
        ball(axes[k], data[f"steps/{name}"].x.values[-1], f"{NAMES[name]}\n{name}")
        _decay(axes[len(CASES) + k], data, name)
    axes[len(CASES)].set_ylabel(r"energy above $\min E$")
    axes[len(CASES)].legend(loc="lower left", fontsize=7.5)
    return figure


def _decay(ax: Axes, data: xr.DataTree, name: str) -> None:
    run, best = data[f"steps/{name}"].to_dataset(), data[f"optimum/{name}"].to_dataset()
    least = _least(data, name)
    with look(ax) as theme:
        shown = run.layer.values > 0
        ax.loglog(
            run.layer[shown],
            run.flow_energy[shown] - least,
            color=theme.palette[0],
            label="explicit steps",
        )
        ax.loglog(
            1 + np.arange(best.sizes["evaluation"]),
            best.energies - least,
            "--",
            color=theme.palette[1],
            label="quasi-Newton",
        )
        ax.set(xlabel="steps or evaluations", ylim=(1e-13, 2), xlim=(1, None))


def _least(data: xr.DataTree, name: str) -> float:
    """min E, as far as it is known: in closed form, or by mirror descent."""
    if name == "near poles":
        return float(data["density"].energy)
    return float(kernel_eigenvalue(0, 1.0, 3)) if name == "uniform" else 1.0


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [*_optimum_claims(data), *_density_claims(data), *_step_claims(data)]


def _second(x: xr.DataArray) -> np.ndarray:
    """Mean squares of the coordinates."""
    return (x.values**2).mean(axis=-2)


def _optimum_claims(data: xr.DataTree) -> list[Claim]:
    best = {name: data[f"optimum/{name}"].to_dataset() for name in CASES}
    least, flat = _least(data, "uniform"), best["uniform"].x.values
    kernel = max(float(best[name].energy) for name in ("poles", "great circle")) - 1
    outside = max(1 - _second(best["poles"].x)[1], _second(best["great circle"].x)[2])
    where = "Figure 3; minimisers"
    return [
        Claim(
            "uniform",
            "$D = I$, $d = 3$: $N = 400$ tokens come within $10⁻⁷$ of the energy of the"
            f" uniform measure, $sinh 1 = {least:.10f}$, and not below (excess)",
            where,
            float(best["uniform"].energy) - least,
            between(-1e-13, 1e-7),
        ),
        Claim(
            "isotropic",
            "there the second moments are those of the uniform measure, $I/3$ (greatest"
            " difference)",
            where,
            float(np.abs(flat.T @ flat / N - np.eye(3) / 3).max()),
            at_most(1e-5),
        ),
        Claim(
            "kernel",
            "$D ≽ 0$ with a kernel, $diag(1, 0, 1)$ and $diag(0, 0, 1)$: $min E = 1$"
            " (greatest excess of $N = 400$ tokens)",
            where,
            float(kernel),
            between(-1e-13, 1e-11),
        ),
        Claim(
            "carried",
            "there the tokens lie in $ker D$: at $±e_2$, and on the great circle $x_3 = 0$"
            " (greatest mean square of what lies outside)",
            where,
            float(outside),
            between(0, 1e-5),
        ),
        Claim(
            "certificate",
            "for all four $D$ no measure has an energy below that of the tokens by more"
            " than $10⁻⁵$ (greatest 2 gap)",
            where,
            2 * max(float(optimum.gap) for optimum in best.values()),
            between(0, 1e-5),
            note=(
                "$E$ is convex for $D ≽ 0$: $2 (E − min V)$ bounds what is missing, $V(x) ="
                " ∫e^{x·Dy}dμ(y)$"
            ),
        ),
    ]


def _density_claims(data: xr.DataTree) -> list[Claim]:
    best, density = data["optimum/near poles"].to_dataset(), data["density"].to_dataset()
    second, expected = _second(best.x)[1], float(density.second[1])
    where = "Figure 3; minimisers"
    return [
        Claim(
            "near-poles",
            "$D = diag(1, ¼, 1)$: $N = 400$ tokens of least energy gather near $±e_2$, with"
            " mean $x_2² = 0.890$",
            where,
            float(second),
            near(0.890, 5e-4),
            note=f"mirror descent on densities: ${expected:.6f}$",
        ),
        Claim(
            "near-poles-energy",
            "$D = diag(1, ¼, 1)$: the least energy of $N = 400$ tokens is 1.02795",
            where,
            float(best.energy),
            near(1.02795, 5e-6),
            note=f"mirror descent on densities: ${float(density.energy):.9f}$",
        ),
        Claim(
            "two-methods",
            "$D = diag(1, ¼, 1)$: tokens (quasi-Newton) and densities (mirror descent on a"
            " grid of $S²$) find the same least energy (difference)",
            where,
            float(best.energy - density.energy),
            between(-1e-8, 1e-7),
        ),
    ]


def _step_claims(data: xr.DataTree) -> list[Claim]:
    runs = {name: data[f"steps/{name}"].to_dataset() for name in CASES}
    excess = max(float(run.flow_energy[-1]) - _least(data, name) for name, run in runs.items())
    count = int(runs["poles"].layer[-1])
    where = "Figure 3, published explicit steps"
    statements = [
        Claim(
            "steps",
            f"after {count} explicit steps all four runs are close to the least energy"
            " (greatest excess; $N = 400$)",
            where,
            excess,
            between(0, 1e-5),
        ),
    ]
    return statements + [
        claim
        for name, pace in (("poles", 1), ("great circle", 2))
        for claim in _late_claims(data, name, pace)
    ]


def _late_claims(data: xr.DataTree, name: str, pace: int) -> list[Claim]:
    late, uniform = data[f"late/{name}"].to_dataset(), data[f"steps/{name}"].to_dataset()
    m, t = late.outside.values, late.time.values
    run = uniform.swap_dims(time="layer").sel(layer=[CHECK // 2, CHECK])
    slow = float(np.diff(1 / _outside(run, name))[0] / np.diff(run.time)[0])
    where, size = "derived; Figure 3, explicit steps", f"$N = {N}$, from near $ker D$"
    return [
        Claim(
            f"pace-{name.split()[-1]}",
            f"$D = diag{_text(name)}$: the mean square $m$ of what lies outside $ker D$"
            f" decays like $1/{'t' if pace == 1 else '(2t)'}$: $d(1/m)/dt$ from $t ="
            f" {t[1]:g}$ to ${t[2]:g}$ ({size})",
            where,
            float(np.diff(1 / m)[1] / np.diff(t)[1]),
            near_relative(pace, 0.02),
            note=(
                f"$m$ falls from ${m[0]:.3f}$ to ${m[2]:.1e}$, and corrections are of its"
                f" order. From uniform tokens, steps {CHECK // 2} to {CHECK}, it is"
                f" ${slow:.3f}$: some are late"
            ),
        ),
        Claim(
            f"quartic-{name.split()[-1]}",
            f"$D = diag{_text(name)}$: there $E − 1 = m²{'/4' if pace == 1 else '/2'}$"
            f" (ratio of the two at $t = {t[2]:g}$; {size})",
            where,
            float((late.flow_energy[2] - 1) / m[2] ** 2 * (4 / pace)),
            near(1, 0.02),
        ),
    ]


def _text(name: str) -> str:
    return "(" + ", ".join(f"{entry:g}" for entry in CASES[name][0]) + ")"
