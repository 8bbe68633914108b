# %% [markdown]
# # Opposite clusters with fresh weights: more than two tokens
#
# Draw the value matrix anew in every layer. Two tokens then either meet or lock opposite each
# other. What do three and four do?
#
# **Known**: two tokens (arXiv 2601.21942, abstract; formulas derived here). The opposite state
# attracts iff $\cosh^2\beta>(d-1)/2$: always in $d=3$. **Attack**: clusters of unequal mass are
# pushed out of opposite places, so only even splits should last. Three tokens have no even split.

# %% Share of systems with opposite tokens, $d=3$, $\beta=1$: three lose theirs, two do not.
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import Block
from tokenflock.observables import MinimumCosine
from tokenflock.parts import ValueNoise
from tokenflock.plots import look, panels
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform

figure, axes = panels(1, 1, size=(6.4, 2.8))
share = {}
with look(figure) as theme:
    for colour, n in zip(theme.palette, (2, 3, 4), strict=False):
        run = flock.ensemble(
            Block(beta=1.0, noise=ValueNoise(alone=True)),
            Uniform(n=n, d=3),
            repeats=256,
            t=60.0,
            frames=13,
            solver=Layer(h=0.1),
            observe=[MinimumCosine()],
            keep=True,
        )
        share[n] = (run.minimum_cosine.values < -0.5).mean(0)
        axes[0].plot(run.time, share[n], "o-", color=colour, markersize=4, label=f"$n={n}$")
    axes[0].set(xlabel="time $t$", ylabel="share with opposite tokens", ylim=(0, None))
    axes[0].legend()
print({n: round(float(values[-1]), 3) for n, values in share.items()})
error = np.sqrt(0.25 / 256)
assert share[2][-1] > 0.1 and share[3][-1] < share[2][-1] - 4 * error and share[4][-1] > 0
figure

# %% [markdown]
# **Verdict**: supported that four tokens can lock two against two, and that for three opposite
# clusters are transient: masses 1 : 2 leave in a mean time of 12.9 (`stochastic-depth/clusters`).
# **Open**: the share for large even $n$. A split into equal halves has probability of order
# $n^{-1/2}$ at best; does the share fall faster? **Next**: $n=6,8,16$ with 10,000 systems, and
# the continuum. `tokenflock reproduce open-problems/antipodal-many`.
