"""On the circle, attention is a Kuramoto model.

Velocities of SA and USA at random angles ($n = 24$, $β = 5$) are compared with the sums over
$sin(θ_i − θ_j)$ of (7.1), with the gradient of $E_β$ in the angles (automatic differentiation of
the energy), and with the Fourier series whose coefficients are Bessel functions. At $β = 0$ the
same law is Kuramoto's with $K = 1$: tokens at the quantiles of a Poisson kernel follow the solution
of Ott and Antonsen, and the growth of $|mean x|^2$ is the sum of squared velocities. Regular
polygons are at rest; the eigenvalues of the Jacobian there (automatic differentiation of the
velocity) are compared with the closed form.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.special import ive

from tokenflock.dynamics import Kuramoto, SelfAttention, Unnormalised
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.observables import Energy, OrderParameter
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import precision
from tokenflock.reproduction.claim import Claim, between
from tokenflock.reproduction.scale import Scale
from tokenflock.shapes import Array
from tokenflock.solvers import RK4
from tokenflock.starts import Given
from tokenflock.theory import poisson_order, poisson_quantile, polygon_eigenvalue
from tokenflock.verbs.simulate import simulate

SOURCE = "Section 7"
CAPTION = (
    "See 512 tokens at $β = 0$ on the curve of Ott and Antonsen, and the greatest eigenvalue at"
    " regular polygons, measured (marks) and in closed form (lines)."
)
N, BETA, R0 = 24, 5.0, 0.3
POLYGONS = np.array([2, 3, 4, 6])
BETAS = (1.0, 4.0)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    with precision("float64"):
        parts = {"identities": _identities(scale), "polygons": _polygons()}
    parts["ott-antonsen"] = _ott_antonsen(scale)
    setting = (
        "$n = 24$, $β = 5$, random angles; $β = 0$ with $n = 512$, $r(0) = 0.3$; polygons $n ="
        " 2$, 3, 4, 6 at $β = 1$ and 4"
    )
    return xr.DataTree(
        xr.Dataset(attrs={"setting": setting}),
        {name: xr.DataTree(part) for name, part in parts.items()},
    )


def _on_circle(theta: Array) -> Array:
    return jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)


def _speed(law: Dynamics, theta: Array) -> Array:
    """d theta/dt: the library's velocity along the circle."""
    n = theta.shape[0]
    v = law.velocity(0.0, _on_circle(theta), jnp.full(n, 1 / n))
    return v[:, 1] * jnp.cos(theta) - v[:, 0] * jnp.sin(theta)


def _identities(scale: Scale) -> xr.Dataset:
    """Greatest relative differences between velocities and what section 7 says they are."""
    theta = np.random.default_rng(7).uniform(-np.pi, np.pi, (scale.pick(quick=16, paper=256), N))
    laws = {
        "usa": Unnormalised(beta=BETA),
        "sa": SelfAttention(beta=BETA),
        "flat": SelfAttention(beta=0.0),
        "kuramoto": Kuramoto(),
    }
    speed = {
        name: np.asarray(jax.jit(jax.vmap(partial(_speed, law)))(theta))
        for name, law in laws.items()
    }
    slope = jax.jit(
        jax.vmap(
            jax.grad(
                lambda angles: Energy(beta=BETA).measure(_on_circle(angles), jnp.full(N, 1 / N))
            )
        )
    )(theta)
    apart = theta[:, :, None] - theta[:, None]
    kernel = np.exp(BETA * np.cos(apart))
    sums, sines = -(kernel * np.sin(apart)).mean(-1), -np.sin(apart).mean(-1)
    differences = {
        "gradient": _off(speed["usa"], N * np.asarray(slope)),
        "usa_sum": _off(speed["usa"], sums),
        "sa_sum": _off(speed["sa"], sums / kernel.mean(-1)),
        "bessel": _off(speed["usa"], _bessel_sum(theta, 40)),
        "kuramoto": max(_off(speed["flat"], sines), _off(speed["kuramoto"], sines)),
    }
    return xr.Dataset({name: float(value) for name, value in differences.items()})


def _off(measured: np.ndarray, expected: np.ndarray) -> float:
    return np.abs(measured - expected).max() / np.abs(expected).max()


def _bessel_sum(theta: np.ndarray, modes: int) -> np.ndarray:
    """The USA velocity by e^(beta cos) = sum_k I_k(beta) e^(ik theta) and the moments C_k + i S_k =
    mean e^(ik theta).
    """
    k = np.arange(1, modes + 1)
    phase = np.exp(1j * k * theta[..., None])
    moments = phase.mean(axis=1, keepdims=True)
    return -(2 * k / BETA * ive(k, BETA) * np.exp(BETA) * (phase * moments.conj()).imag).sum(-1)


def _polygons() -> xr.Dataset:
    """Eigenvalues of the Jacobian at the n-gon: greatest relative difference from the closed form,
    and the greatest of them.
    """
    off, top = np.zeros((2, 2, len(POLYGONS))), np.zeros((2, 2, len(POLYGONS)))
    for a, law in enumerate((SelfAttention, Unnormalised)):
        jacobians = jax.jit(
            jax.vmap(
                jax.jacfwd(lambda angles, beta, law=law: _speed(law(beta=beta), angles)), (None, 0)
            )
        )
        for c, n in enumerate(POLYGONS):
            matrices = np.asarray(jacobians(2 * np.pi * np.arange(n) / n, np.array(BETAS)))
            for b, beta in enumerate(BETAS):
                values = np.sort(np.linalg.eigvals(matrices[b]).real)
                exact = np.sort(polygon_eigenvalue(np.arange(n), n, beta, unnormalised=a == 1))
                off[a, b, c], top[a, b, c] = (
                    np.abs(values - exact).max() / np.abs(exact).max(),
                    values.max(),
                )
    dims = ("law", "beta", "n")
    return xr.Dataset(
        {"off": (dims, off), "growth": (dims, top)},
        {"law": ["SA", "USA"], "beta": list(BETAS), "n": POLYGONS},
    )


def _ott_antonsen(scale: Scale) -> xr.Dataset:
    """r(t) of attention at beta = 0 from quantiles of a Poisson kernel.

    And d|mean x|^2/dt by differences and by velocities.
    """
    n = 512
    theta = poisson_quantile((np.arange(n) + 0.5) / n, R0)
    start = Given(np.stack([np.cos(theta), np.sin(theta)], axis=-1))
    run = simulate(
        SelfAttention(beta=0.0),
        start,
        t=4.0,
        frames=401,
        solver=RK4(h=0.01),
        observe=[OrderParameter()],
    )
    r, x, mean = run.order_parameter.values, run.x.values, run.x.mean("particle").values
    tangent = mean[:, None] - np.einsum("tnd,td->tn", x, mean)[..., None] * x
    grown = np.trapezoid(2 * (tangent**2).sum(-1).mean(-1), dx=0.01)
    names = {
        "r": ("time", r),
        "exact": ("time", poisson_order(run.time.values, R0)),
        "climb": r[-1] ** 2 - r[0] ** 2,
        "grown": grown,
    }
    return xr.Dataset(names, coords={"time": run.time.values})


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, (left, right) = panels(1, 2, size=(3.5, 2.7))
    flow, polygons = data["ott-antonsen"].to_dataset(), data["polygons"].to_dataset()
    with look(left) as theme:
        left.plot(flow.time, flow.exact, color=theme.soft, linewidth=1, label="Ott and Antonsen")
        left.plot(
            flow.time[::20],
            flow.r[::20],
            "o",
            color=theme.palette[0],
            markersize=3.5,
            label="512 tokens",
        )
        left.set(xlabel=r"time $t$", ylabel=r"order parameter $r$", xlim=(0, 4), ylim=(0, 1.03))
        left.legend(loc="lower right")
        left.set_title(r"$\beta=0$: Kuramoto with $K=1$")
    with look(right) as theme:
        styles = {
            ("SA", 1.0): ("o", "-"),
            ("SA", 4.0): ("s", "--"),
            ("USA", 1.0): ("^", "-"),
            ("USA", 4.0): ("D", "--"),
        }
        for (law, beta), (mark, dash) in styles.items():
            colour = theme.palette[0 if law == "SA" else 2]
            exact = [
                max(polygon_eigenvalue(np.arange(n), n, beta, unnormalised=law == "USA"))
                for n in polygons.n.values
            ]
            right.plot(polygons.n, exact, dash, color=colour, linewidth=0.9)
            right.plot(
                polygons.n,
                polygons.growth.sel(law=law, beta=beta),
                mark,
                color=colour,
                markersize=4,
                label=rf"{law}, $\beta={beta:g}$",
            )
        right.set(yscale="log", xlabel="corners $n$", ylabel="greatest eigenvalue")
        right.legend(loc="lower right")
        right.set_title("Regular polygons (lines: theory)")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    same = data["identities"].to_dataset()
    facts = {
        "gradient": ("USA on the circle is $dθ/dt = n ∇E_β(θ)$", "Section 7, (7.4)"),
        "usa_sum": (
            "USA on the circle is $dθ_i/dt = −(1/n) Σ_j e^{β cos(θ_i−θ_j)} sin(θ_i−θ_j)$",
            "Section 7, (7.1)",
        ),
        "sa_sum": (
            "SA on the circle is the same sum over the mean of $e^{β cos(θ_i−θ_j)}$",
            "Section 7, (7.1)",
        ),
        "bessel": (
            "USA on the circle is the series with coefficients $(2k/β) I_k(β)$, cut after 40 modes",
            "Section 7",
        ),
        "kuramoto": (
            "at $β = 0$ SA is Kuramoto's model with $K = 1$ and equal frequencies",
            "Section 7, (7.2)",
        ),
    }
    statements = [
        Claim(
            name.replace("_", "-"),
            f"{statement} (greatest relative difference; $n = 24$"
            + (", $β = 5$)" if name != "kuramoto" else ")"),
            source,
            float(same[name]),
            between(0, 1e-12),
        )
        for name, (statement, source) in facts.items()
    ]
    return [
        *statements,
        *_flow_claims(data["ott-antonsen"].to_dataset()),
        _polygon_claim(data["polygons"].to_dataset()),
    ]


def _flow_claims(flow: xr.Dataset) -> list[Claim]:
    return [
        Claim(
            "ott-antonsen",
            "$β = 0$, $n = 512$ tokens at the quantiles of a Poisson kernel with $r(0) ="
            " 0.3$: $r(t) = r₀ / √(r₀² + (1−r₀²)e^{−t})$ up to $t = 4$ (greatest"
            " difference)",
            "Section 7 (Ott and Antonsen)",
            float(np.abs(flow.r - flow.exact).max()),
            between(0, 1e-8),
        ),
        Claim(
            "growth",
            "$β = 0$: $d|x̄|²/dt = (2/n) Σ |P_{x_i} x̄|²$ (relative difference of both"
            " sides integrated to $t = 4$)",
            "Section 7, (7.3)",
            float(abs(flow.grown / flow.climb - 1)),
            between(0, 1e-5),
            note="by the trapezoidal rule with step 0.01",
        ),
    ]


def _polygon_claim(polygons: xr.Dataset) -> Claim:
    return Claim(
        "polygons",
        "at the regular n-gon, $n = 2$, 3, 4, 6, SA and USA at $β = 1$ and 4 have Jacobian"
        " eigenvalues $(1/n) Σ_m g(2πm/n)(cos(2πpm/n) − 1)$, times $n/Z₀$ for SA (greatest"
        " relative difference)",
        "Section 7, (7.4); Problem 3",
        float(polygons.off.max()),
        between(0, 1e-10),
        note=(
            "all are saddles for $n ≥ 2$: the greatest eigenvalues lie between"
            f" ${float(polygons.growth.min()):.3g}$ and ${float(polygons.growth.max()):.3g}$"
        ),
    )
