"""Fast sums: one velocity of n tokens by the series of the kernel, beside the direct sum, time
against n.

python benchmarks/fast_sums.py --out benchmarks/results/fast-sums.json --plot fast-sums.png
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from timing import best

from tokenflock.dynamics import Fast, SelfAttention, Streamed
from tokenflock.precision import cast, precision

BETA = 4.0
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
# the direct sum is timed up to here (in blocks of rows from 1,000 on); beyond, its time grows like
# n^2
DIRECT = 10_000


@eqx.filter_jit
def velocity(law, x, w):
    return law.velocity(jnp.zeros((), x.dtype), x, w)


def tokens(n: int, d: int):
    x = np.random.default_rng(0).normal(size=(n, d))
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True)), jnp.full(n, 1 / n)


def timed(law, n: int, d: int) -> float:
    x, w = tokens(n, d)
    return best(lambda: jax.block_until_ready(velocity(law, x, w)), 30 if n <= 1000 else 4)


def error(n: int, d: int, rows: int = 200) -> float:
    """Largest difference to the direct sum at some tokens, against the largest velocity."""
    x, w = tokens(n, d)
    fast = velocity(cast(Fast(SelfAttention(BETA)), "float64"), x, w)[:rows]
    law = SelfAttention(BETA)
    q = x[:rows]
    direct = law.space.tangent(q, Streamed(law, block=8).field(0.0, q, x, w))
    return float(abs(fast - direct).max() / abs(direct).max())


def crossing(rows: list[dict]) -> float:
    """The n at which both cost the same, between the two sizes where the order changes."""
    n, fast, direct = (
        np.log([row[key] for row in rows]) for key in ("n", "fast_seconds", "direct_seconds")
    )
    lead = direct - fast
    behind = np.flatnonzero(lead <= 0)
    k = behind[-1] + 1 if len(behind) else 0
    return float(np.exp(n[0] if k == 0 else np.interp(0, lead[k - 1 : k + 1], n[k - 1 : k + 1])))


def measure(d: int) -> dict:
    base = SelfAttention(BETA)
    fast, direct, blocks = (
        cast(law, "float64") for law in (Fast(base), base, Streamed(base, block=32))
    )
    sizes = (50, 100, 200, 400, *SIZES)
    rows = []
    for n in sizes:
        seconds = timed(fast, n, d)
        measured = n <= DIRECT
        other = (
            timed(direct if n < 1000 else blocks, n, d)
            if measured
            else rows[-1]["direct_seconds"] * (n / rows[-1]["n"]) ** 2
        )
        rows.append(
            {"n": n, "fast_seconds": seconds, "direct_seconds": other, "direct_measured": measured}
        )
        note = "" if measured else " (by n^2)"
        print(
            f"d = {d}  n = {n:<8} fast {1e3 * seconds:10.3f} ms   direct {1e3 * other:14.3f}"
            f" ms{note}",
            flush=True,
        )
    found = {
        "d": d,
        "order": fast.order,
        "rows": rows,
        "crossing_n": crossing(rows),
        "error": error(100_000, d),
    }
    print(
        f"d = {d}  crossing at n = {found['crossing_n']:.0f}, error {found['error']:.1e}",
        flush=True,
    )
    return found


def draw(found: list[dict]):
    """Time against n of both sums, and where they cross."""
    from tokenflock.plots import look, panels

    figure, axes = panels(1, 2, size=(3.5, 2.8), sharey=True)
    for ax, one in zip(axes, found):
        n, fast, direct = (
            np.array([row[key] for row in one["rows"]])
            for key in ("n", "fast_seconds", "direct_seconds")
        )
        timed = np.array([row["direct_measured"] for row in one["rows"]])
        with look(ax) as theme:
            ax.loglog(
                n,
                fast,
                "o-",
                color=theme.palette[0],
                markersize=3.5,
                label=f"series, order {one['order']}",
            )
            ax.loglog(
                n[timed],
                direct[timed],
                "s-",
                color=theme.palette[1],
                markersize=3.5,
                label="direct sum",
            )
            ax.loglog(
                n[n >= DIRECT],
                direct[n >= DIRECT],
                ":",
                color=theme.palette[1],
                label=r"$\propto n^2$",
            )
            ax.axvline(one["crossing_n"], color=theme.faint, linewidth=0.8, zorder=0)
            ax.set_title(
                f"{'circle' if one['d'] == 2 else 'sphere $S^2$'}: equal at $n ="
                f" {one['crossing_n']:.0f}$"
            )
            ax.set_xlabel("number of tokens $n$")
            ax.legend(loc="upper left")
    axes[0].set_ylabel("one velocity (s)")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="a .json file for the numbers")
    parser.add_argument("--plot", type=Path, help="a .png, .pdf or .svg file")
    options = parser.parse_args()
    with precision("float64"):
        found = [measure(d) for d in (2, 3)]
    if options.plot:
        from tokenflock.plots import save_figure, style

        with style("light"):
            save_figure(draw(found), options.plot)
    if options.out:
        device = platform.processor() or platform.machine()
        facts = {
            "device": f"{jax.default_backend()}, {device}",
            "date": time.strftime("%Y-%m-%d"),
            "jax": jax.__version__,
        }
        options.out.write_text(
            json.dumps(
                facts | {"beta": BETA, "dtype": "float64", "circle_and_sphere": found}, indent=1
            )
            + "\n"
        )


if __name__ == "__main__":
    main()
