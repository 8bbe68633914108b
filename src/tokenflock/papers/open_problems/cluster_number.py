"""The number of metastable clusters grows like $β^((d−1)/2)$: $d = 2$ to 5, with and without a
mask.

Question: tokens closer than about $β^(−1/2)$ join at once, and what is left waits; so many caps
cover the sphere when there are about $β^((d−1)/2)$ of them. Is that the number of clusters that
random tokens form, for full and for causal attention (conjectured for causal attention, where
leaders keep a distance of order $β^(−1/2)$, arXiv 2411.04990)? Method: uniform tokens, many more
than clusters, layers of $h = 0.25$ up to $t = 25$, when the fast phase is over and merges are rare;
clusters are chains of cosines above 0.999. The exponent is the slope of log count over $log β$ in
each repeat, its error that of their mean. Clusters are few at the smallest $β$, and one more or
less there moves the slope by $log(1 + 1/count)/log(range)$: this is allowed for. Verdict: supported
where the interval holds neither $(d−2)/2$ nor $d/2$ (full attention in $d = 2$ to 4, causal
attention in $d = 2$ and 3), undecided where it is too wide to tell.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import Causal, SelfAttention
from tokenflock.observables import ClusterCount
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, Interval, monte_carlo
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

SOURCE = "Question 6: how many clusters wait"
CAPTION = (
    "See straight lines of slope $(d − 1)/2$ (dashed): the number of clusters at $t = 25$ against"
    " $β$, for full (dots) and causal attention (rings)."
)
CONJECTURES = {
    "full": "question after the conjecture for causal attention of arXiv 2411.04990",
    "causal": "conjectured in arXiv 2411.04990 (from a secondary source)",
}
LAWS = {"full": SelfAttention, "causal": Causal}
SIZES = {  # d: (values of beta, tokens)
    2: ((16.0, 64.0, 256.0), 256),
    3: ((8.0, 16.0, 32.0, 64.0), 512),
    4: ((8.0, 16.0, 32.0), 768),
    5: ((8.0, 16.0), 768),
}
END, TIGHT = 25.0, 1e-3


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    repeats, more = scale.pick(quick=(8, 1), paper=(64, 2))
    parts = {
        f"{name}/{d}": _counts(LAWS[name](), d, betas, more * n, repeats)
        for name in LAWS
        for d, (betas, n) in SIZES.items()
    }
    sizes = ", ".join(f"{more * n} ($d = {d}$)" for d, (_, n) in SIZES.items())
    setting = (
        f"SA and causal SA, {sizes} tokens; layers of $h = 0.25$, $t = {END:g}$, {repeats} repeats"
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"setting": setting})} | parts)


def _counts(law: SelfAttention | Causal, d: int, betas: tuple, n: int, repeats: int) -> xr.Dataset:
    """The number of clusters of each system, (beta, repeat)."""
    run = flock.ensemble(
        law,
        Uniform(n=n, d=d),
        over={"beta": list(betas)},
        repeats=repeats,
        t=END,
        frames=2,
        solver=Layer(h=0.25),
        observe=[ClusterCount(delta=TIGHT)],
        keep=True,
    )
    return xr.Dataset({"count": (("beta", "repeat"), run.cluster_count.values[..., -1])}).assign(
        beta=("beta", list(betas))
    )


def exponent(d: int) -> float:
    """(d - 1)/2: how many caps of radius beta^(-1/2) cover the sphere."""
    return (d - 1) / 2


def slope(part: xr.Dataset) -> tuple[float, float, float]:
    """(slope of log count over log beta, its error, what one cluster more or less would change)."""
    across = np.log(part.beta.values)
    slopes = np.polyfit(across, np.log(part["count"].values), 1)[0]
    least = float(part["count"].isel(beta=0).mean())
    one = float(np.log(1 + 1 / least) / (across[-1] - across[0])) if least > 0 else np.nan
    return float(slopes.mean()), float(slopes.std(ddof=1) / np.sqrt(slopes.size)), one


def verdict(d: int, interval: Interval) -> str:
    """Supported where the exponents of neighbouring dimensions lie outside of the interval."""
    low, high = interval
    if low > exponent(d - 1) and high < exponent(d + 1):
        return "verdict: supported"
    return "verdict: undecided, so wide an interval holds a neighbouring exponent"


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, (ax,) = panels(1, 1, size=(4.4, 3.4))
    with look(ax) as theme:
        for colour, d in zip(theme.palette, SIZES):
            for name, fill in (("full", colour), ("causal", "none")):
                part = data[f"{name}/{d}"].to_dataset()
                count = part["count"].mean("repeat")
                marks = {"color": colour, "markerfacecolor": fill, "markersize": 5}
                label = f"$d={d}$" if name == "full" else None
                ax.plot(part.beta, count, "o", label=label, **marks)
            beta = np.array(SIZES[d][0])
            full = data[f"full/{d}"].to_dataset()["count"].mean("repeat").values
            middle = np.exp(np.mean(np.log(full) - exponent(d) * np.log(beta)))
            ax.plot(beta, middle * beta ** exponent(d), "--", color=colour, lw=1)
        ax.set(xscale="log", yscale="log", xlabel=r"$\beta$", ylabel="clusters at $t=25$")
        ax.set(xticks=(8, 16, 32, 64, 128, 256), yticks=(5, 10, 20, 40))
        ax.set_xticklabels(["8", "16", "32", "64", "128", "256"])
        ax.set_yticklabels(["5", "10", "20", "40"])
        ax.minorticks_off()
        ax.legend(loc="upper right")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    statements = []
    for name in LAWS:
        for d, (betas, _) in SIZES.items():
            part = data[f"{name}/{d}"].to_dataset()
            measured, error, one = slope(part)
            interval = monte_carlo(exponent(d), error, slack=one)
            counts = ", ".join(f"{count:.1f}" for count in part["count"].mean("repeat").values)
            statements.append(
                Claim(
                    f"{name}-{d}",
                    f"{name} attention, $d = {d}$, $β$ from {betas[0]:g} to {betas[-1]:g}: the"
                    " number of clusters that wait grows like $β^{(d − 1)/2}$, an exponent of"
                    f" {exponent(d):g} (fitted)",
                    f"{CONJECTURES[name]}; {verdict(d, interval)}",
                    measured,
                    interval,
                    error=error,
                    note=f"mean numbers {counts}; one cluster more or less is {one:.2f}",
                )
            )
    return statements
