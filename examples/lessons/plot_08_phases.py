# %% [markdown]
# # Phase diagrams
#
# How much has clustered by time $t$ at inverse temperature $\beta$? In high dimension the answer is
# a sharp front, and its place is known; on the circle it is a staircase of metastable states.
#
# Look at $p_\delta(t,\beta)$: the share of pairs $i\ne j$ with $\langle x_i,x_j\rangle\ge1-\delta$,
# averaged over random starts, $\delta=10^{-3}$. This is Figure 3 of arXiv 2312.10794 in small. As
# there, $n=32$ and a layer is a step of $h=0.1$, so 300 layers make $t=30$. The figure has 90
# values of $\beta$ and 1024 starts or more; here are 24 of each.

# %%
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.observables import ClusterCount, PairDensity
from tokenflock.plots import look, panels, phase_grid
from tokenflock.solvers import Layer
from tokenflock.starts import Uniform
from tokenflock.theory import (
    crossing_time,
    layer_crossing,
    layer_transition_curve,
    transition_curve,
)

beta = np.linspace(0.4, 9.6, 24)
options = {"beta": beta, "t": 30, "frames": 101, "repeats": 24, "seed": 0}
diagrams = {
    d: flock.phase_diagram(SelfAttention(), Uniform(n=32, d=d), **options) for d in (2, 128)
}
print(f"{len(diagrams) * beta.size * options['repeats']:,} systems of 32 tokens through 300 layers")

# %% Clustered pairs for $d=2$ (a staircase) and $d=128$ (a front). The curve holds for large $d$.
phase_grid(list(diagrams.values()))

# %% [markdown]
# ## The front
#
# In high dimension all cosines follow one curve $\gamma_\beta(t)$ (Theorem 6.9, lesson
# [6](plot_06_clustering.py)). So $p_\delta$ jumps from 0 to 1 where $\gamma_\beta(t)=1-\delta$.
# That curve in the $(t,\beta)$ plane is $\Gamma_{\infty,\delta}$, (6.12). For the flow it is an
# integral of (6.9). For layers the common cosine obeys a recursion: each layer gives the next
# cosine from the last one.

# %%
high = diagrams[128].pair_density
late = high.isel(time=-1).values
front = np.interp(0.5, late[::-1], beta[::-1])  # half of the pairs have met; steps of 0.4
print(f"front at t = 30: seen {front:.2f}, layers {layer_transition_curve(30.0, n=32):.2f},"
      f" flow {transition_curve(30.0, n=32):.2f}")  # fmt: skip
assert abs(front - layer_transition_curve(30.0, n=32)) < 0.4  # one step of the grid
assert abs(transition_curve(30.0, n=32) - 6.906459) < 1e-6
below = beta[beta < 6.5]  # orthogonal tokens are the limit of large d: they jump at one layer
x, jump = np.tile(np.eye(32), (below.size, 1, 1)), np.zeros(below.size, int)
for layer in range(1, 301):  # all betas side by side
    A = np.exp(below[:, None, None] * (x @ x.transpose(0, 2, 1)))
    x = x + 0.1 * (A / A.sum(axis=2, keepdims=True)) @ x
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    jump[(jump == 0) & (np.sum(x[:, 0] * x[:, 1], axis=1) >= 0.999)] = layer
print(f"layer of the jump: seen {jump}")
print(f"          by the recursion {layer_crossing(below, n=32).astype(int)}")
assert (jump == layer_crossing(below, n=32)).all()

# %% [markdown]
# > **Note** The black curve printed in Figure 3 passes near $(t,\beta)=(30,6.45)$. It was placed by
# > hand. For $n=32$ and $\delta=10^{-3}$ the equation gives $6.906$ (flow) and $6.78$ (layers of
# > $0.1$, which the figure used). A correct reproduction does not match the printed curve.
#
# ## The staircase
#
# On the circle there is no front. At small $\beta$ all pairs meet. At larger $\beta$ a few clusters
# are left that wait (lesson [7](plot_07_metastability.py)). With masses $m_a$ the share of pairs is
# then about $\sum_am_a^2$: near one half for two clusters, one third for three.

# %%
ends = flock.ensemble(
    SelfAttention(), Uniform(n=32, d=2), over={"beta": [1.0, 4.0, 9.0]}, repeats=128, t=30,
    frames=2, solver=Layer(h=0.1), observe=[ClusterCount(), PairDensity()], keep=True,
)  # fmt: skip
last = ends.isel(time=-1)
shares = {}
for b in last.beta.values:
    count, density = (last[name].sel(beta=b).values for name in ("cluster_count", "pair_density"))
    values, often = np.unique(np.round(count).astype(int), return_counts=True)
    shares[b] = dict(zip(values.tolist(), (often / count.size).round(2).tolist()))
    print(f"beta = {b:g}: p = {density.mean():.3f} +- {density.std() / np.sqrt(128):.3f},"
          f" clusters {shares[b]}")  # fmt: skip
assert shares[4.0][2] > 0.7 and shares[9.0][3] > 0.5  # with 512 starts above 0.8 and 0.6
for b, p in {1.0: 0.999, 4.0: 0.519, 9.0: 0.348}.items():  # what 1024 starts give
    found = last.pair_density.sel(beta=b).values
    assert abs(found.mean() - p) < 4 * found.std() / np.sqrt(128) + 0.01

# %% Number of clusters after 300 layers on the circle, 128 starts each.
with look() as theme:
    figure, (ax,) = panels(1, 1, size=(4.8, 2.6))
    for shift, (b, share) in zip((-0.25, 0, 0.25), shares.items()):
        ax.bar(np.array(list(share)) + shift, list(share.values()), 0.24, label=rf"$\beta$ = {b:g}")
    ax.set(xlabel="clusters", ylabel="share of starts", xticks=range(1, 6))
    ax.legend()
figure

# %% Live: one system of the diagram for $d=2$. Drag $\beta$ through the staircase.
flock.lab(SelfAttention(beta=2.0), Uniform(n=32, d=2), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. When do orthogonal tokens cross $1-\delta$ at $\beta=0$? How does it grow with $n$?

# %% [markdown] tags=["answer"]
# $\gamma=(e^{2t}-1)/(e^{2t}+n-1)$, so $t^*=\frac12\ln\frac{(n-1)(1-\delta)+1}\delta$: 5.186 for
# $n=32$. It grows like $\frac12\ln n$. Layers of $0.1$ need 55, that is $t=5.5$: they close gaps at
# the rate 1.906, not 2.

# %% tags=["answer"]
n = np.array([2, 32, 512])
assert np.allclose(crossing_time(0.0, n), np.log(((n - 1) * 0.999 + 1) / 1e-3) / 2, rtol=1e-12)
print(crossing_time(0.0, n).round(3), layer_crossing(0.0, n=32) * 0.1)

# %% [markdown]
# 2. Does the front of USA lean the same way?

# %% [markdown] tags=["answer"]
# The other way: without the denominator, large $\beta$ is *faster* (rate $2e^\beta$). At $\beta=0$
# the two agree.

# %% tags=["answer"]
some = np.array([0.0, 1.0, 2.0, 4.0, 9.0])
print("SA ", crossing_time(some, n=32).round(3))
print("USA", crossing_time(some, n=32, unnormalised=True).round(3))
assert (np.diff(crossing_time(some, n=32)) > 0).all()
assert (np.diff(crossing_time(some, n=32, unnormalised=True)) < 0).all()

# %% [markdown]
# 3. More tokens at the same $d$: does the front move up or down?

# %% [markdown] tags=["answer"]
# Up. For $e^\beta\gg n$ and small $\gamma$ (6.9) is $\dot\gamma\approx2e^{-\beta}((n-1)\gamma+1)$,
# so it takes a time of the order $e^\beta\ln n/2n$ to get away from zero: less with more tokens. At
# $t=30$ the front is at 5.64, 6.91 and 7.78 for $n=2$, 32 and 128.

# %% tags=["answer"]
fronts = transition_curve(30.0, n=np.array([2, 32, 128]))
print(fronts.round(3))
assert np.allclose(fronts, [5.635848, 6.906459, 7.784877], atol=1e-6)

# %% [markdown]
# ## Where next
#
# The circle and Kuramoto: lesson [9](plot_09_circle.py). The published size, 90 values of $\beta$
# and 1024 starts: `tokenflock reproduce perspective/fig3 --scale paper`.
