"""Orthogonal tokens stay equiangular, and one scalar equation tells their cosine.

Orthonormal tokens are followed under SA and USA, $n = 32$ and $β = 1$ and 4, by the adaptive solver
(tolerance $1e-12$), and every pair is compared with $γ_β(t)$ of (6.9) and (6.10). Equiangular
tokens with another common cosine obey the same equation. RK4 runs with steps 0.4, 0.2, 0.1, 0.05
give the order of convergence to $γ_β$. Through Transformer layers the cosine is compared with the
exact recursion of one number. The bound (D.8) is evaluated on simulated cosines.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tokenflock.dynamics import SelfAttention, Unnormalised
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.reproduction.claim import Claim, at_least, at_most, between, near
from tokenflock.reproduction.scale import Scale
from tokenflock.solvers import RK4, Adaptive, Layer
from tokenflock.starts import Equiangular, Orthogonal
from tokenflock.theory import equiangular_cosine, layer_cosines
from tokenflock.verbs.simulate import simulate

SOURCE = "Theorem 6.8"
CAPTION = (
    "See orthogonal tokens keep one common cosine $γ$, on the solution of one equation (lines),"
    " and the solver approach it at its order."
)
N = 32
BETAS = (1.0, 4.0)
LAWS = {"SA": SelfAttention, "USA": Unnormalised}
TIMES = np.linspace(0, 10, 101)
STARTS = (-0.02, 0.3)
STEPS = (0.4, 0.2, 0.1, 0.05)
TIGHT = Adaptive(rtol=1e-12)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    parts = {"flow": _flow(), "order": _order(), "layers": _layers(), "bound": _bound()}
    setting = (
        "$n = 32$ orthonormal tokens, $β = 1$ and 4, $t$ up to 10, adaptive with tolerance"
        " $1e-12$; $n = 2$, $β = 0$ for (D.8)"
    )
    return xr.DataTree(
        xr.Dataset(attrs={"setting": setting}),
        {name: xr.DataTree(part) for name, part in parts.items()},
    )


def _cosines(run: xr.Dataset) -> np.ndarray:
    """<x_i, x_j> of all pairs i < j, (time, pair)."""
    x = run.x.values
    i, j = np.triu_indices(x.shape[1], 1)
    return np.einsum("tpd,tpd->tp", x[:, i], x[:, j])


def _flow() -> xr.Dataset:
    """All cosines against (6.9) and (6.10), from orthogonal and other equiangular starts."""
    runs = {(law, beta, 0.0): Orthogonal(n=N, d=N) for law in LAWS for beta in BETAS}
    runs |= {(law, 1.0, rho): Equiangular(n=N, d=N, rho=rho) for law in LAWS for rho in STARTS}
    rows = []
    for (law, beta, rho), start in runs.items():
        cosines = _cosines(simulate(LAWS[law](beta=beta), start, times=TIMES, solver=TIGHT))
        exact = equiangular_cosine(TIMES, N, beta, rho, unnormalised=law == "USA")
        rows.append((cosines.mean(axis=1), exact, np.abs(cosines - exact[:, None]).max()))
    measured, exact, off = zip(*rows)
    return xr.Dataset(
        {
            "cosine": (("run", "time"), np.array(measured)),
            "exact": (("run", "time"), np.array(exact)),
            "off": ("run", list(off)),
        },
        coords={
            "time": TIMES,
            **{
                name: ("run", list(column))
                for name, column in zip(("law", "beta", "rho"), zip(*runs))
            },
        },
    )


def _order() -> xr.Dataset:
    """The error of RK4 at t = 2, for a few steps."""
    exact = equiangular_cosine(2.0, N, 1.0)
    off = [
        np.abs(
            _cosines(
                simulate(
                    SelfAttention(beta=1.0), Orthogonal(n=N, d=N), t=2.0, frames=2, solver=RK4(h=h)
                )
            )[-1]
            - exact
        ).max()
        for h in STEPS
    ]
    return xr.Dataset({"off": ("h", off)}, coords={"h": list(STEPS)})


def _layers() -> xr.Dataset:
    """All cosines after each of 100 layers of h = 0.1 against the recursion."""
    off = []
    for beta in BETAS:
        run = simulate(
            SelfAttention(beta=beta), Orthogonal(n=N, d=N), t=10.0, frames=101, solver=Layer(h=0.1)
        )
        off.append(np.abs(_cosines(run) - layer_cosines(run.layer.values, N, beta)[:, None]).max())
    return xr.Dataset({"off": ("beta", off)}, coords={"beta": list(BETAS)})


def _bound() -> xr.Dataset:
    """1 - gamma over the right side of (D.8) (SA) and of Remark D.1 (USA).

    S = 1 is the time from which they are claimed.
    """
    cases = (("SA", 2, 0.0), ("SA", 8, 1.0), ("USA", 2, 0.5))
    s = np.linspace(0, 2, 81)
    ratio, cosine = [], []
    for law, n, beta in cases:
        since, rate = (
            (n * np.exp(beta) / 2, n / (n + np.exp(beta / 2)))
            if law == "SA"
            else (n / 2, np.exp(beta / 2))
        )
        run = simulate(
            LAWS[law](beta=beta),
            Orthogonal(n=n, d=n),
            t=2 * since,
            frames=81,
            solver=RK4(h=since / 400),
        )
        gap = ((run.x.values[:, 0] - run.x.values[:, 1]) ** 2).sum(-1) / 2
        ratio.append(gap / (0.5 * np.exp(-rate * since * (s - 1))))
        cosine.append(1 - gap)
    coords = {
        "s": s,
        **{name: ("case", list(values)) for name, values in zip(("law", "n", "beta"), zip(*cases))},
    }
    return xr.Dataset(
        {"ratio": (("case", "s"), np.array(ratio)), "cosine": (("case", "s"), np.array(cosine))},
        coords=coords,
    )


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, (left, right) = panels(1, 2, size=(3.6, 2.7))
    flow = data["flow"].to_dataset()
    with look(left) as theme:
        for k in np.flatnonzero(flow.rho.values == 0):
            run = flow.isel(run=k)
            law, beta = str(run.law.values), float(run.beta)
            colour, dash = theme.palette[0 if law == "SA" else 2], "-" if beta == 1 else "--"
            name = rf"{law}, $\beta={beta:g}$"
            left.plot(flow.time, run.exact, dash, color=colour, linewidth=1, label=name)
            left.plot(flow.time[::6], run.cosine[::6], "o", color=colour, markersize=3)
        left.set(
            xlabel=r"time $t$", ylabel=r"common cosine $\gamma$", xlim=(0, 10), ylim=(-0.02, 1.03)
        )
        left.legend(loc="lower right")
        left.set_title("32 orthogonal tokens: theory (lines), flow (dots)")
    with look(right) as theme:
        order = data["order"].to_dataset()
        right.loglog(order.h, order.off, "o-", color=theme.palette[0], label="RK4")
        fourth = 0.4 * float(order.off[0]) * (order.h / order.h[0]) ** 4
        right.loglog(order.h, fourth, ":", color=theme.soft, label=r"$\propto h^4$")
        right.set(xlabel="step $h$", ylabel=r"$\max_{i,j}|\gamma_{ij}(2)-\gamma_\beta(2)|$")
        right.set_xticks(order.h.values, [f"{h:g}" for h in order.h.values])
        right.minorticks_off()
        right.legend(loc="upper left")
        right.set_title(r"Order of convergence, $n=32$, $\beta=1$")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    flow = data["flow"].to_dataset()
    return [
        *_flow_claims(flow),
        _speed_claim(flow),
        *_solver_claims(data),
        *_bound_claims(data["bound"].to_dataset()),
    ]


def _flow_claims(flow: xr.Dataset) -> list[Claim]:
    statements = []
    for k in range(flow.sizes["run"]):
        run = flow.isel(run=k)
        law, beta, rho = str(run.law.values), float(run.beta), float(run.rho)
        start = "orthonormal tokens" if rho == 0 else f"equiangular tokens of cosine ${rho:g}$"
        statements.append(
            Claim(
                f"{law.lower()}-{beta:g}" + (f"-rho{rho:g}" if rho else ""),
                f"$n = 32$ {start}, {law} at $β = {beta:g}$: all cosines equal $γ_β(t)$ up"
                " to $t = 10$ (greatest difference)",
                "Theorem 6.8, " + ("(6.9)" if law == "SA" else "(6.10)"),
                float(run.off),
                between(0, 1e-9),
                note=(
                    ""
                    if rho == 0
                    else (
                        "the paper states it for orthogonal tokens; any common cosine in"
                        " $(−1/(n−1), 1)$ obeys the same equation"
                    )
                ),
            )
        )
    return statements


def _solver_claims(data: xr.DataTree) -> list[Claim]:
    order = data["order"].to_dataset()
    slope = np.polyfit(np.log(order.h), np.log(order.off), 1)[0]
    return [
        Claim(
            "order",
            "RK4 approaches $γ_β(2)$ with order 4 in the step (slope over $h = 0.4 … 0.05$;"
            " $n = 32$, $β = 1$)",
            "Theorem 6.8, numerical method",
            float(slope),
            near(4, 0.2),
            note=(
                f"error ${float(order.off[-1]):.2g}$ at $h = 0.05$; a field frozen inside"
                " the step would give order 1"
            ),
        ),
        Claim(
            "layers",
            "through layers $x ← normalize(x + h A x)$, $h = 0.1$, all cosines follow the"
            " recursion of one number for 100 layers (greatest difference; $n = 32$, $β ="
            " 1$ and 4)",
            "Theorem 6.8, layer map",
            float(data["layers"].off.max()),
            between(0, 1e-13),
        ),
    ]


def _speed_claim(flow: xr.Dataset) -> Claim:
    """From the increments of the cosine between frames, which are means of its speed."""
    runs = [
        flow.isel(run=k)
        for k in range(flow.sizes["run"])
        if flow.law[k] == "SA" and flow.rho[k] == 0
    ]
    speeds = []
    for run in runs:
        low = run.cosine.values[1:] <= 0.5
        speeds.append(
            (np.diff(run.cosine) / np.diff(flow.time))[low].min() * N * np.exp(float(run.beta))
        )
    return Claim(
        "speed",
        "while $γ_β ≤ ½$, $dγ_β/dt ≥ 1/(n e^β)$ (SA, $n = 32$, $β = 1$ and 4: least $n e^β"
        " dγ_β/dt$, by increments over 0.1)",
        "Theorem 6.9, proof",
        float(min(speeds)),
        at_least(1),
    )


def _bound_claims(bound: xr.Dataset) -> list[Claim]:
    pair, eight, usa = (bound.isel(case=k) for k in range(3))
    late = bound.s >= 1
    early = float(pair.ratio.max())
    return [
        Claim(
            "bound",
            "(D.8) bounds $1 − γ_β(t)$ from $t = n e^β/2$ on (greatest ratio of the two"
            " sides; $n = 2$, $β = 0$ and $n = 8$, $β = 1$)",
            "(D.8)",
            float(np.maximum(pair.ratio, eight.ratio).where(late, drop=True).max()),
            at_most(1.0),
            erratum=(
                "(D.8) is printed for all $t ≥ 0$; for $n = 2$, $β = 0$ it is false at $t ="
                f" 0$, where the ratio is ${early:.4f}$ (it would say $1 ≤ ½e^{{2/3}} ="
                " 0.974$)"
            ),
        ),
        Claim(
            "bound-early",
            "(D.8) as printed, for all $t ≥ 0$, is false: for $n = 2$, $β = 0$, $t = 0$ the"
            " ratio of its sides is $2e^{−2/3}$",
            "(D.8)",
            float(pair.ratio[0]),
            near(2 * np.exp(-2 / 3), 1e-9),
            note="the proof gives it from $t = n e^β/2$ on",
        ),
        Claim(
            "half",
            "$γ_β(n e^β/2) ≥ ½$ (SA, $n = 2$, $β = 0$, where it is $tanh 1$)",
            "Theorem 6.9, proof",
            float(pair.cosine[bound.sizes["s"] // 2]),
            near(np.tanh(1.0), 1e-9),
        ),
        Claim(
            "bound-usa",
            "USA: $1 − γ ≤ ½ exp(−e^{β/2}(t − n/2))$ from $t = n/2$ on (greatest ratio; $n"
            " = 2$, $β = 0.5$)",
            "Remark D.1",
            float(usa.ratio.where(late, drop=True).max()),
            at_most(1.0),
        ),
    ]
