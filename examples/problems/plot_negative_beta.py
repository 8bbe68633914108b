# %% [markdown]
# # Stable states at slightly negative temperature
#
# On the circle, attention without softmax brings almost every start to consensus for
# $\beta\ge-0.16$ and not for $\beta<-\frac23$. What happens in between is open.
#
# **Known** (arXiv 2507.22857, abstract): both ends. The witness below $-\frac23$ is three equal
# clusters at 120 degrees, whose largest eigenvalue is $(\frac12+\frac34\beta)e^{-\beta/2}$.
#
# **Attack**: (1) find where regular polygons become stable; (2) start at random inside the gap
# and look for anything that is not consensus.

# %%
import numpy as np
from scipy.optimize import brentq

import tokenflock as flock
from tokenflock.dynamics import Unnormalised
from tokenflock.observables import ConsensusDistance
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform
from tokenflock.theory import polygon_eigenvalue


def top(beta, n):
    """The largest eigenvalue of the regular n-gon."""
    return max(float(polygon_eigenvalue(p, n, beta, unnormalised=True)) for p in range(1, n))


triangle = brentq(lambda beta: top(beta, 3), -2.0, -0.1, xtol=1e-13)
inside = {n: min(top(beta, n) for beta in np.linspace(-2 / 3, -0.16, 40)) for n in (3, 5, 7, 9)}
print(f"the triangle is stable below {triangle:.10f}")
print("least top eigenvalue inside the gap:", {n: round(value, 3) for n, value in inside.items()})
assert abs(triangle + 2 / 3) < 1e-10 and min(inside.values()) > -1e-12

# %% [markdown]
# So no regular polygon decides the gap. (Even ones contain opposite pairs, which are unstable.)
# Now random starts: three and five tokens, 96 starts for each $\beta$. The control is $n=3$ at
# $\beta=-1$, where the method must find the triangle.

# %% Share of random starts in consensus at $t=100$; the gap between the two theorems is shaded.
from tokenflock.plots import look, panels

beta = [-1.0, -0.8, -0.6, -0.4, -0.2]
figure, axes = panels(1, 1, size=(6.4, 2.8))
share = {}
with look(figure) as theme:
    axes[0].axvspan(-2 / 3, -0.16, color=theme.palette[1], alpha=0.25, lw=0)
    for n, colour in ((3, theme.palette[0]), (5, theme.palette[2])):
        run = flock.ensemble(
            Unnormalised(),
            Uniform(n=n, d=2),
            over={"beta": beta},
            repeats=96,
            t=100.0,
            frames=2,
            solver=RK4(h=0.25),
            observe=[ConsensusDistance()],
            keep=True,
            dtype="float64",
        )
        share[n] = (run.consensus_distance.values[..., -1] < 1e-3).mean(-1)
        axes[0].plot(beta, share[n], "o-", color=colour, label=f"$n={n}$")
    axes[0].set(xlabel=r"$\beta$", ylabel="share in consensus", ylim=(0.9, 1.01))
    axes[0].legend(loc="lower right")
print({n: values.round(2) for n, values in share.items()})
assert (share[3][2:] == 1).all() and share[3][0] < 1
figure

# %% [markdown]
# **Verdict**: undecided. Nothing else was found for $\beta>-\frac23$; a state that attracts more
# than $3/96=3\,\%$ of the starts would have shown (95 %). **Next**: search the critical points
# themselves (Newton's method on $\nabla E_\beta=0$ from random angles, `flock.spectrum` at each)
# for larger $n$ and unequal weights. At full size:
# `tokenflock reproduce open-problems/negative-beta`.
