"""How many tokens lead: strong Rényi centres and Rényi centres.

A strong centre is farther than $δ$ from all earlier tokens; a centre is farther than $δ$ from all
earlier centres, which is Rényi's parking problem with cars of length $δ$. Uniform tokens are drawn
many times and counted: strong centres of $n = 20$ and $n = 200$ tokens on the circle, on $S^2$ and
on $S^3$, and centres of 4000 tokens on the circle. After $n$ tokens the car park lacks $e^(−2 γ)/t$
cars per car length of its limit, $t = n δ/(2 π)$, $γ$ Euler's constant.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.papers.causal._centres import parked, strong
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.theory import renyi_centres, strong_centres

SOURCE = "Rényi centres"
CAPTION = (
    "See the mean number of strong centres, tokens farther than $δ$ from all earlier ones (dots),"
    " grow with $n$ along the closed form (lines)."
)
CASES = ((2, 20), (2, 200), (3, 20), (3, 200), (4, 200))  # d, n
DELTA, PARKING_DELTA, PARKING_N = 0.5, 0.4, 4000


def compute(scale: Scale) -> xr.Dataset:
    """The numbers."""
    repeats, parks = scale.pick(quick=(400, 60), paper=(20000, 2000))
    random = np.random.default_rng(0)
    counts = [[len(strong(_drawn(random, n, d), DELTA)) for _ in range(repeats)] for d, n in CASES]
    cars = [parked(random.uniform(0, 2 * np.pi, PARKING_N), PARKING_DELTA) for _ in range(parks)]
    return xr.Dataset(
        {"strong": (("case", "repeat"), np.array(counts)), "parked": ("park", np.array(cars))},
        coords={"d": ("case", [d for d, _ in CASES]), "n": ("case", [n for _, n in CASES])},
        attrs={
            "setting": (
                f"strong centres: $δ = {DELTA:g}$, {repeats} draws each; centres: circle, $δ ="
                f" {PARKING_DELTA:g}$, $n = {PARKING_N}$, {parks} draws"
            )
        },
    )


def _drawn(random: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = random.normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cars_after(delta: float, n: int) -> float:
    """Renyi's limit less what is still missing after n tokens."""
    missing = np.exp(-2 * np.euler_gamma) / (n * delta / (2 * np.pi))
    return float(renyi_centres(delta)) - missing * 2 * np.pi / delta


def draw(data: xr.Dataset) -> Figure:
    """The picture."""
    figure, (ax,) = panels(1, 1, size=(4.6, 3.1))
    n = np.unique(np.geomspace(1, 1000, 60).round())
    with look(ax) as theme:
        for colour, d in zip(theme.palette, (2, 3, 4)):
            ax.plot(n, strong_centres(DELTA, d, n), color=colour, label=f"$d={d}$")
            here = data.isel(case=data.d.values == d)
            mean = here.strong.mean("repeat")
            error = here.strong.std("repeat") / np.sqrt(data.sizes["repeat"])
            ax.errorbar(here.n, mean, 4 * error, fmt="o", color=colour, markersize=4.5, capsize=2)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="tokens $n$",
            ylabel="strong centres, mean (4 errors)",
        )
        ax.legend(title=rf"$\delta={DELTA:g}$")
    return figure


def claims(data: xr.Dataset) -> list[Claim]:
    """What the numbers say."""
    names = {2: "the circle", 3: "$S²$", 4: "$S³$"}
    result = []
    for case in range(data.sizes["case"]):
        count = data.strong[case].values
        d, n = int(data.d[case]), int(data.n[case])
        error = float(count.std(ddof=1) / np.sqrt(len(count)))
        expected = float(strong_centres(DELTA, d, n))
        result.append(
            Claim(
                f"strong-{d}-{n}",
                f"{n} uniform tokens on {names[d]} have ${expected:.4f}$ strong centres on"
                f" average ($δ = {DELTA:g}$)",
                "arXiv 2411.04990; for finite $n$ derived here: $(1 − (1−σ)ⁿ)/σ$, $σ$ the"
                " share of a cap",
                float(count.mean()),
                monte_carlo(expected, error),
                error=error,
            )
        )
    cars = data.parked.values
    error = float(cars.std(ddof=1) / np.sqrt(len(cars)))
    limit = float(renyi_centres(PARKING_DELTA))
    result.append(
        Claim(
            "parking",
            f"{PARKING_N} uniform tokens on the circle have ${limit:.4f}$ centres on average"
            f" ($δ = {PARKING_DELTA:g}$), Rényi's $0.7475979 · 2π/δ$ less what is still"
            " missing",
            "arXiv 2411.04990; Rényi 1958",
            float(cars.mean()),
            monte_carlo(cars_after(PARKING_DELTA, PARKING_N), error),
            error=error,
            note=f"missing: ${limit - cars_after(PARKING_DELTA, PARKING_N):.2g}$",
        )
    )
    return result
