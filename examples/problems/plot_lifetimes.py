# %% [markdown]
# # How long do random clusters wait?
#
# For large $\beta$ tokens form a few clusters quickly and then wait. For clusters at given places
# the waiting time is known; for random tokens it is open (Problem 1 of arXiv 2312.10794).
#
# **Known**: well separated starts (arXiv 2410.06833). Two equal clusters at the angle $\varphi$
# meet after a time that grows like $e^{\beta(1-\cos\varphi)}$, and like $e^{2\beta}$ only if they
# are opposite. **Attack**: the median time to consensus $T(\beta)$ of 16 random tokens on $S^2$.
# The slope of $\log T$ in $\beta$ is a number between 1 and 2 if the last pair decides: it names
# the angle $\varphi$ at which that pair typically waits. Is it 2?

# %% Share not yet in consensus; median time beside $e^{2\beta}$ (dashed) and $e^\beta$ (dotted).
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.events import Consensus
from tokenflock.plots import look, panels
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform

betas, ends, repeats = np.array([1.0, 2.0, 3.0, 4.0]), (60.0, 200.0, 600.0, 1000.0), 96
figure, axes = panels(1, 2, size=(3.4, 2.8))
quartiles = []
with look(figure) as theme:
    for colour, beta, end in zip(theme.palette, betas, ends, strict=False):
        law, steps = SelfAttention(beta=float(beta)), RK4(h=0.5)
        options = {"repeats": repeats, "t": end, "frames": 2, "solver": steps, "observe": []}
        run = flock.ensemble(law, Uniform(n=16, d=3), until=Consensus(), **options)
        times = np.sort(np.nan_to_num(run.first_passage.values.ravel(), nan=np.inf))
        quartiles.append(np.quantile(times, [0.45, 0.5, 0.55], method="nearest"))
        left = 1 - np.arange(1, repeats + 1) / repeats
        axes[0].step(times, left, where="post", color=colour, label=rf"$\beta={beta:g}$")
    axes[0].set(xlabel="time $t$", ylabel="share not in consensus", xscale="log")
    axes[0].legend(loc="upper right", fontsize="small")
    low, median, high = np.array(quartiles).T
    axes[1].semilogy(betas, median, "o", color=theme.palette[0], label="median")
    axes[1].semilogy(betas, median[0] * np.exp(2 * (betas - 1)), "--", color=theme.soft)
    axes[1].semilogy(betas, median[0] * np.exp(betas - 1), ":", color=theme.soft)
    axes[1].set(xlabel=r"$\beta$", ylabel="time")
    axes[1].legend(loc="upper left")
slope = np.log(median[3] / median[1]) / 2
error = np.log(high[3] / low[3]) / 2 + np.log(high[1] / low[1]) / 2  # one error of a median, each
print("medians", median.round(1), f"slope {slope:.2f} +- {error:.2f} between beta = 2 and 4")
print("from one beta to the next:", np.diff(np.log(median)).round(2))
print(f"as an angle: {np.degrees(np.arccos(np.clip(1 - slope, -1, 1))):.0f} degrees")
assert slope + error < 2
figure

# %% [markdown]
# **Verdict**: up to $\beta=4$ the typical run waits less than opposite clusters do; the slope is
# below 2, but it still rises with $\beta$. Whether it tends to 2 is undecided. **Open**: the law
# of the last pair, its angle and its masses, as $n$ and $\beta$ grow. **Next**: record the last
# two clusters (`flock.merges`), follow larger $\beta$ with `coalesce=1e-9`
# ([times](../../docs/times.md)), and compare with `theory.merging_time(angle, beta, m=mass)`.
