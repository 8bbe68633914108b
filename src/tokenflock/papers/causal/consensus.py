"""All tokens go to the first.

Causal attention with $V = I$: the first token hears itself only and stays. Sixteen uniform tokens
on $S^2$ with random $Q$ and $K$ (Gaussian entries of variance $1/d$, $β = 1$) are followed by RK4
($h = 0.1$) to $t = 400$. Two tokens: the second sees a token that does not move, so it closes the
angle at half the speed of a pair of SA, and the closed form is twice as long. At consensus all
logits are equal and token $k$ hears $1/k$ of each token up to itself, whatever $Q$, $K$ and $β$:
the flow is $x_k' = (1/k) Σ_(j<k) (x_j − x_k)$, with the eigenvalues $−(k−1)/k$. The slowest,
$−1/2$, is that of the second token, and in its eigenvector token $k$ is $k − 1$ times as far from
the first. With other values $V$ the first token follows $x' = P_x V x$ alone, in closed form; where
it ends, the others are conjectured to end too (up to sign where the largest eigenvalue is simple;
see open-problems/causal-limits).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock import simulate
from tokenflock.dynamics import Causal
from tokenflock.events import Consensus
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, at_least, at_most, near
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Tokens
from tokenflock.solvers import RK4
from tokenflock.starts import Given, Uniform
from tokenflock.theory import pair_time

SOURCE = "Theorem 4.1"
CAPTION = (
    "See the distance of tokens 2, 3, 6 and 16 to the first fall like $e^(−t/2)$ (dashed), that of"
    " later ones from farther."
)
N, D, END, DELTA = 16, 3, 400.0, 1e-3
TIMES = np.append(np.arange(41.0), END)
PAIRS = ((1.0, 2.5), (4.0, 2.0), (9.0, 1.2))  # beta, angle
VALUES = {"simple": np.diag([1.0, 0.4, -0.5]), "double": np.diag([1.0, 1.0, 0.2])}


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    seeds = scale.pick(quick=4, paper=64)
    runs = [_run(seed, None) for seed in range(seeds)]
    far = [np.linalg.norm(run.x.values - run.x.values[:, :1], axis=-1) for run in runs]
    still = [np.abs(run.x.values[:, 0] - run.x.values[0, 0]).max() for run in runs]
    flow = xr.Dataset(
        {"far": (("seed", "time", "token"), far), "still": ("seed", still)},
        coords={"time": runs[0].time.values, "token": np.arange(1, N + 1)},
    )
    met = [_pair(beta, angle) for beta, angle in PAIRS]
    pairs = xr.Dataset({"met": ("pair", met)}, coords={"beta": ("pair", [b for b, _ in PAIRS])})
    values = {f"values/{name}": _values(V, seeds) for name, V in VALUES.items()}
    setting = f"$n = {N}$, $d = {D}$, $β = 1$, random $Q$ and $K$, {seeds} seeds, $t$ up to {END:g}"
    parts = {"/": xr.Dataset(attrs={"setting": setting}), "flow": flow, "pairs": pairs}
    return xr.DataTree.from_dict(parts | {"rest": _rest()} | values)


def _law(seed: int, V: np.ndarray | None) -> Causal:
    Q, K = np.random.default_rng(seed).normal(size=(2, D, D)) / np.sqrt(D)
    return Causal(beta=1.0, Q=Q, K=K, V=np.eye(D) if V is None else V)


def _run(seed: int, V: np.ndarray | None) -> xr.Dataset:
    start, solver = Uniform(n=N, d=D), RK4(h=0.1)
    return simulate(_law(seed, V), start, t=END, times=TIMES, solver=solver, seed=seed)


def _pair(beta: float, angle: float) -> float:
    """When the second of two tokens is at cosine 0.999 from the first."""
    start = Given(np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]))
    end = 4 * float(pair_time(np.cos(angle), 1 - DELTA, beta))
    run = simulate(Causal(beta=beta), start, t=end, frames=2, until=Consensus(delta=DELTA))
    return float(run.time[-1])


def _rest() -> xr.Dataset:
    """Eigenvalues of the flow at consensus, and the eigenvector of the slowest."""
    law, first = _law(0, None), np.array([0.0, 0.0, 1.0])

    def plane(u: Tokens) -> Tokens:
        x = jnp.concatenate([u, jnp.zeros((N, 1))], axis=1) + first
        x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
        return law.velocity(0.0, x, jnp.full(N, 1 / N))[:, :2]

    with precision("float64"):
        slope = np.asarray(jax.jacfwd(plane)(jnp.zeros((N, 2)))).reshape(2 * N, 2 * N)
    speeds, modes = np.linalg.eig(slope[::2, ::2])  # of one direction
    slow = np.real(modes[:, np.argmin(np.abs(speeds + 0.5))])
    every = np.sort(np.real(np.linalg.eigvals(slope)))[::-1].reshape(N, 2)
    mixed = max(np.abs(slope[::2, 1::2]).max(), np.abs(slope[1::2, ::2]).max())
    return xr.Dataset(
        {
            "eigenvalue": (("token", "direction"), every),
            "mixed": mixed,
            "mode": ("token", slow / slow[1]),
        },
        coords={"token": np.arange(1, N + 1)},
    )


def _values(V: np.ndarray, seeds: int) -> xr.Dataset:
    """Ends of all tokens and of the first alone, with other values."""
    runs = [_run(seed, V) for seed in range(seeds)]
    starts = np.array([run.x.values[0, 0] for run in runs])
    top = np.diag(V) == np.diag(V).max()
    exact = starts * np.exp(np.diag(V) * 4.0)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    early = np.array([run.x.sel(time=4.0).values[0] for run in runs])
    end = starts * top
    end /= np.linalg.norm(end, axis=1, keepdims=True)
    ends = np.array([run.x.values[-1] for run in runs])
    return xr.Dataset(
        {
            "first": ("seed", np.abs(early - exact).max(axis=1)),
            "cosine": (("seed", "token"), np.einsum("skd,sd->sk", ends, end)),
        }
    )


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    flow = data["flow"].to_dataset()
    figure, (ax,) = panels(1, 1, size=(4.6, 3.2))
    with look(ax) as theme:
        for colour, token in zip(theme.palette, (2, 3, 6, 16)):
            ax.plot(flow.time, flow.far[0].sel(token=token), color=colour, label=f"token {token}")
        ax.plot(
            flow.time, 2 * np.exp(-flow.time / 2), "--", color=theme.ink, label=r"$2\,e^{-t/2}$"
        )
        ax.set(
            xlim=(0, 40),
            ylim=(1e-9, 5),
            yscale="log",
            xlabel="time",
            ylabel="distance to the first token",
        )
        ax.legend(fontsize="small")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    return [*_flow_claims(data), *_rest_claims(data), *_value_claims(data)]


def _flow_claims(data: xr.DataTree) -> list[Claim]:
    flow, pairs = data["flow"].to_dataset(), data["pairs"].to_dataset()
    exact = [2 * float(pair_time(np.cos(a), 1 - DELTA, b)) for b, a in PAIRS]
    late = flow.sel(time=slice(20, 40), token=2)
    slopes = [np.polyfit(late.time, np.log(row), 1)[0] for row in late.far.values]
    return [
        Claim(
            "still",
            "the first token never moves ($V = I$, any $Q$ and $K$; greatest move)",
            "Theorem 4.1, (CSA)",
            float(flow.still.max()),
            at_most(1e-13),
        ),
        Claim(
            "consensus",
            f"all {N} tokens go to the first ($d = 3$, $β = 1$, random $Q$ and $K$; greatest"
            f" distance at $t = {END:g}$)",
            SOURCE,
            float(flow.far.isel(time=-1).max()),
            at_most(1e-3),
            note=f"{flow.sizes['seed']} seeds; at $t = 40$ the farthest was"
            f" ${float(flow.far.sel(time=40.0).max()):.2g}$ away: a metastable state",
        ),
        Claim(
            "pair",
            "two tokens meet in twice the time of a pair of SA ($β = 1$, 4, 9; greatest"
            " relative error)",
            "derived here: the first token stays, the second closes the angle at half the speed",
            float(np.abs(pairs.met.values / exact - 1).max()),
            at_most(1e-7),
        ),
        Claim(
            "rate",
            "the distance of the second token falls like $e^(−t/2)$ (slope from $t = 20$ to"
            " 40, farthest from $−1/2$ over seeds)",
            "derived here: linearisation at consensus",
            float(max(slopes, key=lambda slope: abs(slope + 0.5))),
            near(-0.5, 1e-4),
            note="SA closes its gap like $e^(−t)$",
        ),
    ]


def _rest_claims(data: xr.DataTree) -> list[Claim]:
    rest = data["rest"].to_dataset()
    k = rest.token.values
    return [
        Claim(
            "eigenvalues",
            "at consensus the flow has the eigenvalues $−(k−1)/k$, $k = 1$ to 16, each in"
            " both directions, for these random $Q$ and $K$ (greatest error)",
            "derived here: token $k$ hears $1/k$ of each token up to itself",
            float(np.abs(rest.eigenvalue.values.T + (k - 1) / k).max() + float(rest.mixed)),
            at_most(1e-10),
        ),
        Claim(
            "mode",
            "in the slowest mode token $k$ is $k − 1$ times as far from the first as token"
            " 2 (greatest relative error, $k = 2$ to 16)",
            "derived here: $((k−2)/2) v_k = v_2 + ... + v_(k−1)$",
            float(np.abs(rest["mode"].values[1:] / (k[1:] - 1) - 1).max()),
            at_most(1e-8),
        ),
    ]


def _value_claims(data: xr.DataTree) -> list[Claim]:
    simple, double = (data[f"values/{name}"].to_dataset() for name in VALUES)
    return [
        Claim(
            "first-alone",
            "with other $V$ the first token is $e^(tV)x₁/|e^(tV)x₁|$ ($t = 4$; greatest error)",
            "arXiv 2411.04990: $ẋ = P_x V x$ for a single token",
            float(max(simple["first"].max(), double["first"].max())),
            at_most(1e-5),
            note="RK4 with $h = 0.1$",
        ),
        Claim(
            "simple",
            "$V = diag(1, 0.4, −0.5)$, random $Q$ and $K$: in most systems all tokens end at $±ξ$,"
            " the top eigenvector (share of systems)",
            "a conjecture of arXiv 2411.04990 (from a secondary source) says all: an observation",
            float((1 - np.abs(simple.cosine) < 1e-4).all("token").mean()),
            at_least(0.5),
            note=f"{simple.sizes['seed']} systems; some rest elsewhere for ever:"
            " open-problems/causal-limits has two tokens that do",
        ),
        Claim(
            "double",
            "$V = diag(1, 1, 0.2)$: all tokens end at the projection of $x₁(0)$ on the top"
            " eigenspace, normalised (greatest 1 − cosine)",
            "a conjecture of arXiv 2411.04990 (from a secondary source): an observation",
            float((1 - double.cosine).max()),
            at_most(1e-4),
        ),
    ]
