"""Sums over all pairs of tokens in $O(n K)$: the series of the kernel against the direct sum.

On the circle $e^(β cos θ) = Σ_k I_k(β) e^(ik θ)$, (7.1) of arXiv 2312.10794, so velocity and energy
of $n$ tokens need the first $K$ moments only; on $S^2$ spherical harmonics do the same. Weighted
tokens, all over the sphere and gathered about one point, are moved once by both: SA and USA, $β =
1$ and 100. The order of the series is the library's own choice from $β$ and the tolerance; how the
error falls with it is measured at $β = 10$. Of a large system the direct sum is taken at 16 tokens.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock.dynamics import Fast, SelfAttention, Unnormalised
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.plots import look, panels
from tokenflock.plots.styles import Figure
from tokenflock.precision import cast, precision
from tokenflock.reproduction.claim import Claim, at_most
from tokenflock.reproduction.scale import Scale

SOURCE = "arXiv 2312.10794, Section 7: Bessel series"
CAPTION = (
    "See the error of the series fall with its order $K$ about as the tolerance asks (left), and"
    " the order that is needed grow like $√β$ (right)."
)
SOURCES = {2: SOURCE, 3: "derived; the same series in spherical harmonics"}
BETAS = (1.0, 100.0)
LAWS = {"SA": SelfAttention, "USA": Unnormalised}
STARTS = {"everywhere": 0.0, "gathered": 5.0}
TOLERANCES = (1e-2, 1e-6, 1e-10, 1e-14)


def compute(scale: Scale) -> xr.DataTree:
    """The numbers."""
    n, many = scale.pick(quick=1000, paper=4000), scale.pick(quick=100_000, paper=1_000_000)
    parts = {
        "agreement": _agreement(n),
        "order": _order(n),
        "large": _large(many),
        "chosen": _chosen(),
    }
    setting = (
        f"{n} weighted tokens on the circle and $S^2$, $β = 1$ and 100; {many} tokens at $β = 10$"
    )
    return xr.DataTree.from_dict(
        {"/": xr.Dataset(attrs={"setting": setting, "n": n, "many": many})} | parts
    )


def _tokens(n: int, d: int, pull: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian tokens about `pull` times the first axis, on the sphere, with random weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) + pull * np.eye(d)[0]
    w = rng.uniform(size=n)
    return x / np.linalg.norm(x, axis=1, keepdims=True), w / w.sum()


_field = eqx.filter_jit(lambda law, q, x, w: law.field(0.0, q, x, w))
_motion = eqx.filter_jit(lambda law, x, w: (law.velocity(0.0, x, w), law.energy(x, w)))


def _moved(law: Dynamics, x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, float]:
    with precision("float64"):
        v, E = _motion(cast(law, "float64"), jnp.asarray(x), jnp.asarray(w))
        return np.asarray(v), float(E)


def _agreement(n: int) -> xr.Dataset:
    """Greatest difference of velocities, against the greatest velocity, and relative difference of
    energies.
    """
    off = np.zeros((2, 2, len(STARTS), len(LAWS), len(BETAS)))
    order = np.zeros(len(BETAS), int)
    for i, d in enumerate((2, 3)):
        for j, pull in enumerate(STARTS.values()):
            x, w = _tokens(n, d, pull)
            for k, law in enumerate(LAWS.values()):
                for m, beta in enumerate(BETAS):
                    (v, E), (fast, fast_E) = (
                        _moved(law(beta=beta), x, w),
                        _moved(Fast(law(beta=beta)), x, w),
                    )
                    off[:, i, j, k, m] = (
                        np.abs(fast - v).max() / np.abs(v).max(),
                        abs(fast_E / E - 1),
                    )
                    order[m] = Fast(law(beta=beta)).order
    dims = ("d", "start", "law", "beta")
    return xr.Dataset(
        {"velocity": (dims, off[0]), "energy": (dims, off[1]), "order": ("beta", order)},
        coords={"d": [2, 3], "start": list(STARTS), "law": list(LAWS), "beta": list(BETAS)},
    )


def _order(n: int) -> xr.Dataset:
    """The error on the circle at beta = 10 for several tolerances of the series."""
    x, w = _tokens(n, 2, 0.0)
    v = _moved(SelfAttention(beta=10.0), x, w)[0]
    laws = [Fast(SelfAttention(beta=10.0), tolerance=tolerance) for tolerance in TOLERANCES]
    off = [np.abs(_moved(law, x, w)[0] - v).max() / np.abs(v).max() for law in laws]
    coords = {"tolerance": list(TOLERANCES)}
    return xr.Dataset(
        {"off": ("tolerance", off), "order": ("tolerance", [law.order for law in laws])},
        coords=coords,
    )


def _chosen() -> xr.Dataset:
    """The order that the library chooses for each beta."""
    betas = np.geomspace(0.1, 1000, 41)
    return xr.Dataset(
        {"order": ("beta", [Fast(SelfAttention(beta=beta)).order for beta in betas])},
        coords={"beta": betas},
    )


def _large(n: int) -> xr.Dataset:
    """Many tokens at once against the direct sum at 16 of them."""
    off = []
    for d in (2, 3):
        x, w = _tokens(n, d, 0.0, seed=1)
        few = x[:: n // 16][:16]
        with precision("float64"):
            law, arrays = (
                SelfAttention(beta=10.0),
                (jnp.asarray(few), jnp.asarray(x), jnp.asarray(w)),
            )
            direct, fast = (
                np.asarray(_field(cast(sums, "float64"), *arrays)) for sums in (law, Fast(law))
            )
        off.append(np.abs(fast - direct).max() / np.abs(direct).max())
    return xr.Dataset({"off": ("d", off)}, coords={"d": [2, 3]})


def draw(data: xr.DataTree) -> Figure:
    """The picture."""
    figure, (left, right) = panels(1, 2, size=(3.6, 2.7))
    order = data["order"].to_dataset()
    with look(left) as theme:
        left.semilogy(order.order, order.off, "o-", color=theme.palette[0], label="error")
        left.semilogy(
            order.order, order.tolerance, ":", color=theme.soft, label="tolerance asked for"
        )
        left.set(xlabel="order $K$ of the series", ylabel="relative error of the velocity")
        left.legend(loc="upper right")
        left.set_title(r"Circle, SA, $\beta=10$")
    chosen = data["chosen"].to_dataset()
    with look(right) as theme:
        right.loglog(
            chosen.beta,
            chosen.order,
            "o",
            color=theme.palette[0],
            markersize=3,
            label="chosen by the library",
        )
        root = np.sqrt(2 * chosen.beta * np.log(1e16))
        right.loglog(
            chosen.beta, root, ":", color=theme.soft, label=r"$\sqrt{2\beta\,\log 10^{16}}$"
        )
        right.set(xlabel=r"$\beta$", ylabel="order $K$ of the series")
        right.legend(loc="upper left")
        right.set_title("Terms needed at tolerance $10^{-16}$")
    return figure


def claims(data: xr.DataTree) -> list[Claim]:
    """What the numbers say."""
    agreement, order = data["agreement"].to_dataset(), data["order"].to_dataset()
    n, many = int(data.attrs["n"]), int(data.attrs["many"])
    chosen = ", ".join(
        f"{int(K)} at $β = {beta:g}$"
        for K, beta in zip(agreement.order.values, agreement.beta.values)
    )
    statements = [
        Claim(
            f"{what}-{d}",
            f"{'circle' if d == 2 else '$S²$'}: the {what} of {n} weighted tokens by the"
            " series is that of the direct sum (self-attention, SA, and unnormalised, USA;"
            " $β = 1$ and 100; spread and gathered; greatest relative difference)",
            SOURCES[d],
            float(agreement[what].sel(d=d).max()),
            at_most(1e-10),
            note=f"order of the series: {chosen}",
        )
        for d in (2, 3)
        for what in ("velocity", "energy")
    ]
    ratio = (order.off / order.tolerance).values
    statements.append(
        Claim(
            "tolerance",
            "the order that a tolerance chooses is enough: greatest error over tolerance,"
            " $10⁻²$ to $10⁻¹⁰$ (circle, SA, $β = 10$)",
            SOURCE,
            float(ratio[:-1].max()),
            at_most(1),
            note=(
                f"orders {int(order.order.min())} to {int(order.order.max())}; at $10⁻¹⁴$"
                f" the ratio is ${ratio[-1]:.1f}$, by rounding"
            ),
        )
    )
    statements += [
        Claim(
            f"large-{int(d)}",
            f"{many} tokens on {'the circle' if d == 2 else '$S²$'}, SA, $β = 10$: field by"
            " the series against the direct sum at 16 of them (greatest relative"
            " difference)",
            SOURCES[int(d)],
            float(off),
            at_most(1e-10),
        )
        for d, off in zip(data["large"].d.values, data["large"].off.values)
    ]
    return statements
