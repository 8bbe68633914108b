# %% [markdown]
# # Clustering: what is proved, and how we see it
#
# Almost every start ends with all tokens in one point. Four theorems say when and how fast, and
# each can be watched.
#
# All are of arXiv 2312.10794, for (SA) with $V=I$ (and for USA). In the last two the start is
# random: independent tokens, uniform on the sphere.
#
# | | for | says | why |
# |---|---|---|---|
# | 4.1 | $\beta=0$, $d,n\ge2$ | almost all starts: one point | other rest points are saddles |
# | 6.1 | $d\ge3$, any $\beta\ge0$ | the same | the same |
# | 6.3 | $d\ge n$, any $Q,K$ | the same, exponentially fast | a cone that closes (Lemma 6.4) |
# | 6.9 | $d\ge d^*(n,\beta)$ | cosines follow a curve $\gamma_\beta(t)$ | almost orthogonal start |
#
# *Almost all* means all but a set of measure zero. A *strict saddle* is a rest point with a
# direction in which the energy curves upwards. On the circle, $d=2$, the paper has small and large
# $\beta$ only (Theorems 4.3 and 5.1); by now every $\beta\ge-0.16$ is known (arXiv 2507.22857).
# None of the four says *soon*: see lesson [7](plot_07_metastability.py).

# %%
import numpy as np
from scipy.optimize import linprog

import tokenflock as flock
from tokenflock.dynamics import Attention, SelfAttention
from tokenflock.events import Consensus
from tokenflock.observables import ConeMargin, MinimumCosine
from tokenflock.plots import look, panels, survival
from tokenflock.solvers import RK4
from tokenflock.starts import Given, Hemisphere, Orthogonal, Uniform
from tokenflock.theory import equiangular_cosine, hemisphere_probability

# %% [markdown]
# ## Theorems 4.1 and 6.1: no other place to stay
#
# (SA) climbs an energy (lesson [5](plot_05_energy.py)), so it ends at a rest point. If each rest
# point other than consensus is a strict saddle, only a null set of starts ends there (Lemma A.1).
# At $\beta=0$ rest points have mean $\bar x=0$, or all tokens on one axis.

# %%
up = np.array([[0.0, 0.0, 1.0]])
tetrahedron = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1.0]]) / np.sqrt(3)
for beta in (0.0, 4.0):
    for name, x in (("three against five", np.vstack([*3 * [up], *5 * [-up]])),
                    ("a tetrahedron", tetrahedron)):  # fmt: skip
        modes = flock.spectrum(SelfAttention(beta=beta), x)
        fastest = float(modes.rate[0])
        print(f"beta = {beta:g}: {name} leaves at the rate {fastest:.4f}")
        assert float(modes.moves) < 1e-12 and fastest > 0  # at rest, and unstable
    if beta == 0:
        assert abs(fastest - 2 / 3) < 1e-12  # exercise 2

# %% [markdown]
# So every random start should arrive. Try 128 of them for each $\beta$, eight tokens on
# $\mathbb{S}^2$, until all cosines are at least $0.999$:

# %%
many = flock.ensemble(
    SelfAttention(), Uniform(n=8, d=3), over={"beta": [0.0, 1.0, 2.0]}, repeats=128, t=100,
    frames=201, until=Consensus(delta=1e-3), observe=[],
)  # fmt: skip
arrived = many.first_passage.max("repeat").values
assert np.isfinite(arrived).all()  # every one of 384
print(f"the last of 128 arrives at t = {np.round(arrived, 1)}")

# %% [markdown]
# ## Theorem 6.3: in a half sphere it is fast
#
# Let $\langle x_i,w\rangle>0$ for all $i$. Then $r(t)=\min_i\langle x_i(t),w\rangle$ never falls:
# the lowest token is pulled towards others that are higher. So the cone closes, and
# $|x_i-x^*|\le Ce^{-\lambda t}$, whatever $Q$ and $K$. When $d\ge n$ such a $w$ always exists. The
# rate can be computed: near consensus all weights are $1/n$, so a deviation $\delta_i$ obeys
# $\dot\delta_i=\bar\delta-\delta_i$, and $1-\gamma\sim e^{-2t}$.

# %%
rng = np.random.default_rng(0)
Q, K = rng.normal(size=(2, 3, 3))
cone = flock.simulate(
    Attention(beta=2.0, Q=Q, K=K), Hemisphere(n=32, d=3), t=16, frames=161, solver=RK4(h=0.05),
    observe=[ConeMargin(), MinimumCosine()],
)  # fmt: skip
assert (np.diff(cone.cone_margin.values) >= -1e-14).all()
gap = 1 - cone.minimum_cosine.values
tail = (gap < 1e-5) & (gap > 1e-10)
rate = -np.polyfit(cone.time.values[tail], np.log(gap[tail]), 1)[0]
print(f"lowest token: {cone.cone_margin.values[0]:.3f} to {cone.cone_margin.values[-1]:.3f},"
      f" rate {rate:.5f}")  # fmt: skip
assert abs(rate - 2) < 0.02

# %% [markdown]
# ## Theorems 6.8 and 6.9: one curve for all
#
# Orthogonal tokens stay equiangular. Their common cosine solves (6.9), with $\gamma(0)=0$,
#
# $$\dot\gamma=\frac{2e^{\beta\gamma}(1-\gamma)\bigl((n-1)\gamma+1\bigr)}
#   {e^\beta+(n-1)e^{\beta\gamma}} .$$
#
# Random tokens in high dimension are nearly orthogonal: their largest cosines are of the order
# $\sqrt{\log d/d}$, and so is their distance from $\gamma_\beta$. Only the cosines matter, so 32
# tokens in $\mathbb{R}^{1024}$ are first turned into $\mathbb{R}^{32}$ by a rotation (in the code:
# the factor $R$ of $x^\top=UR$, whose columns have the same cosines).


# %%
def cosines(start, t=10.0):
    options = {"t": t, "frames": 101, "solver": RK4(h=0.05)}
    x = flock.simulate(SelfAttention(beta=1.0), start, **options).x.values
    return (x @ x.transpose(0, 2, 1))[:, ~np.eye(32, dtype=bool)]


times = np.linspace(0, 10, 101)
curve = equiangular_cosine(times, n=32, beta=1.0)
assert np.abs(cosines(Orthogonal(n=32, d=32)) - curve[:, None]).max() < 1e-7  # Theorem 6.8
high = {}
for d in (32, 128, 1024):
    x = rng.normal(size=(32, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    high[d] = cosines(Given(np.linalg.qr(x.T)[1].T))
    apart, size = np.abs(high[d] - curve[:, None]).max(), np.sqrt(np.log(d) / d)
    print(f"d = {d:4d}: farthest from the curve {apart:.3f}, sqrt(log d / d) = {size:.3f}")
    assert apart < 2 * size

# %% Starts not yet in one point (grey: half); a cone closes at the rate 2; all cosines, three $d$.
with look() as theme:
    figure, axes = panels(1, 3, size=(2.9, 2.7))
    survival(many, ax=axes[0], log=True, title=False)
    axes[0].get_legend().set(loc="upper right", bbox_to_anchor=(1, 1))
    axes[0].set(title="Theorems 4.1, 6.1", xlim=(0, 60))
    axes[1].semilogy(cone.time, gap, color=theme.palette[0], label=r"$1-\min\gamma_{ij}$")
    axes[1].semilogy(cone.time, gap[60] * np.exp(-2 * (cone.time - cone.time[60])), "--",
                     color=theme.soft, label="$e^{-2t}$")  # fmt: skip
    axes[1].set(xlabel="time", title="Theorem 6.3", ylim=(1e-14, 4))
    axes[1].legend()
    for colour, (d, values) in zip(theme.palette, high.items()):
        axes[2].fill_between(times, values.min(axis=1), values.max(axis=1), color=colour,
                             alpha=0.35, lw=0, label=f"d = {d}")  # fmt: skip
    axes[2].plot(times, curve, color=theme.ink, label=r"$\gamma_\beta$")
    axes[2].set(xlabel="time", title="Theorem 6.9", xlim=(0, 7))
    axes[2].legend()
figure

# %% Live: thirty-two tokens in a half sphere. Whatever $\beta$, they end in one point.
flock.lab(SelfAttention(beta=4.0), Hemisphere(n=32, d=3), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. How likely do $n$ uniform tokens share a half sphere? Check $n=8$, $d=4$ by drawing.

# %% [markdown] tags=["answer"]
# Wendel (Theorem 6.7): $2^{-(n-1)}\sum_{k<d}\binom{n-1}k$; one for $n\le d$, one half for $n=2d$.
# There is such a $w$ if and only if the linear programme $\langle x_i,w\rangle\ge1$ has a solution.

# %% tags=["answer"]
starts = rng.normal(size=(200, 8, 4))
inside = np.mean([linprog(np.zeros(4), -x, -np.ones(8), bounds=(None, None)).status == 0
                  for x in starts])  # fmt: skip
print(f"drawn {inside:.3f}, Wendel {hemisphere_probability(8, 4):.3f}")
assert abs(inside - 0.5) < 4 * 0.5 / np.sqrt(200)  # four standard errors

# %% [markdown]
# 2. At $\beta=0$ let $\bar x=0$. Show that some small change grows at a rate of at least $(d-1)/d$.

# %% [markdown] tags=["answer"]
# Move token $i$ by $\varepsilon P_{x_i}v$. The mean becomes $\varepsilon(I-C)v$ with
# $C=\frac1n\sum x_ix_i^\top$, and $\dot x_i=P_{x_i}\bar x=\varepsilon P_{x_i}(I-C)v$: the same kind
# of change with $v$ replaced by $(I-C)v$. The trace of $I-C$ is $d-1$, so one of its $d$
# eigenvalues is at least $(d-1)/d$. For the tetrahedron $C=I/3$, and it is $2/3$, as was seen
# above. (For twice this rate print has $2(d-1)/dn$, (C.2), which is true and loose.)

# %% [markdown]
# 3. Theorem 6.9 holds with probability at least $1-2n^2d^{-1/64}$. For which $d$ does that say
#    anything, at $n=32$?

# %% [markdown] tags=["answer"]
# For $d>(2n^2)^{64}\approx10^{212}$. The constants are for the proof. At $d=1024$ the curve was
# followed within 0.10.

# %% tags=["answer"]
print(f"10^{64 * np.log10(2 * 32**2):.0f}")
assert round(64 * np.log10(2 * 32**2)) == 212

# %% [markdown]
# ## Where next
#
# How long it takes: lesson [7](plot_07_metastability.py). All theorems with a verdict each:
# `tokenflock verify perspective`.
