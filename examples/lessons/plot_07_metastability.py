# %% [markdown]
# # Metastability and the two time scales
#
# Clusters form within a few units of time and then wait for times like $e^{c\beta}$ before they
# merge. From masses and angle of the last two clusters the last merge is predicted within a
# percent.
#
# Theory promises one point in the end (lesson [6](plot_06_clustering.py)). On the way tokens stop
# in states that look final and are not: a state that lasts far longer than it took to reach is
# called *metastable*. Follow 32 tokens on the circle at $\beta=4$ until all cosines are at least
# $1-10^{-4}$. The seed is chosen so that three clusters are seen on the way; most starts go to two
# at once.

# %%
import numpy as np
from scipy.optimize import brentq

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.events import Consensus
from tokenflock.observables import ClusterCount, ClusterLabels, Convention, Energy
from tokenflock.plots import curves, look, panels, timeline
from tokenflock.solvers import RK4
from tokenflock.starts import Uniform
from tokenflock.theory import fastest_mode, merging_time, polygon_lifetime


def logarithmic(first, last, count):
    return np.unique(np.round(np.geomspace(first, last, count), 1))  # whole steps of 0.1


beta = 4.0
watch = [ClusterCount(), ClusterLabels(), Energy(convention=Convention.STAIRCASE)]
run = flock.simulate(
    SelfAttention(beta=beta), Uniform(n=32, d=2), times=logarithmic(0.1, 1000, 201),
    solver=RK4(h=0.1), until=Consensus(delta=1e-4), observe=watch, seed=55,
)  # fmt: skip
story = flock.merges(run)
for merge in range(story.sizes["merge"]):
    at, before, after = (story[name].values[merge] for name in ("time", "before", "after"))
    if after <= 4:
        print(f"t = {at:8.1f}: {before} -> {after} clusters")
end = float(run.time[-1])
formed = float(run.time[np.argmax(run.cluster_count.values <= 3)])
print(f"three clusters at t = {formed:.1f}, one at t = {end:.0f}: {end / formed:.0f} times later")
assert run.cluster_count.values[-1] == 1 and end > 40 * formed

# %% Energy and clusters of 32 tokens, $\beta=4$: three clusters at $t=5$, two at 42, one at 301.
timeline(run, log_time=True)

# %% [markdown]
# The energy here is $n^{-2}\sum_{ij}e^{\beta(\gamma_{ij}-1)}$, which is one at consensus
# (convention `staircase`, arXiv 2410.06833). On a plateau, with clusters of masses $m_a$ far apart,
# it is nearly $\sum_am_a^2$.
#
# ## Fast: how many clusters form
#
# Random tokens are a ripple of the uniform measure, and one mode of it grows fastest (lesson
# [4](plot_04_measure.py)): $k\approx\sqrt{2\beta}$. Count clusters at different $\beta$:

# %% Mean number of clusters of 64 systems each, with two standard errors: plateaus near 1, 2 and 3.
counts = flock.ensemble(
    SelfAttention(), Uniform(n=32, d=2), over={"beta": [1.0, 4.0, 9.0]}, repeats=64,
    times=logarithmic(1, 40, 31), observe=[ClusterCount()],
)  # fmt: skip
at_30 = counts.cluster_count.sel(time=30, method="nearest").values
print(f"fastest modes {fastest_mode([1.0, 4.0, 9.0])}, clusters at t = 30: {np.round(at_30, 2)}")
assert at_30[0] < 1.5 < at_30[1] < 2.7 < at_30[2] < 4
curves(counts, log_time=True)

# %% [markdown]
# The fastest mode has more peaks than there are clusters at $t=30$: at $\beta=4$ three begin, and
# most often two are left.
#
# ## Slow: why they wait
#
# A cluster is one heavy token (lesson 4). Two of them, of masses $m$ and $1-m$ at the angle
# $\varphi$, obey
#
# $$\dot\varphi=-\Bigl[\frac{(1-m)w}{m+(1-m)w}+\frac{mw}{1-m+mw}\Bigr]\sin\varphi,\qquad
#   w=e^{-\beta(1-\cos\varphi)} .$$
#
# $w$ is how much one hears of the other beside itself. At $\beta=4$ and a right angle it is
# $e^{-4}=0.018$. The time to merge grows like $e^{\beta(1-\cos\varphi)}/(2\beta\sin^2\varphi)$,
# towards $e^{2\beta}$ for opposite clusters. Equal clusters at the corners of a polygon are at
# rest; they last $1/\lambda$, where $\lambda$ is the largest eigenvalue of the linearised flow: a
# small deviation grows like $e^{\lambda t}$.

# %%
print("lifetime    beta = 2       4         6         9")
for k in (2, 3, 4):
    lives = [polygon_lifetime(k, b) for b in (2.0, 4.0, 6.0, 9.0)]
    print(f"{k} clusters " + "".join(f"{life:10.4g}" for life in lives))
assert polygon_lifetime(2, 4.0) > 1000 > 100 > polygon_lifetime(3, 4.0)

# %% [markdown]
# (Lesson [9](plot_09_circle.py) checks the formula against the Jacobian of the law.) At $\beta=4$
# three clusters last 39 and two last 1491: at $t=30$ one sees two or three. At
# $\beta=9$ three last $3\cdot10^4$ and four last 225. That is Figure 4 of arXiv 2312.10794, where
# $\beta=4$ shows two and $\beta=9$ three. Clusters that are well separated at the start are proved
# to wait (arXiv 2410.06833); for random tokens it is open, Problem 1 of arXiv 2312.10794.
#
# ## A prediction
#
# In the run above, take the moment when two clusters have long been points. Their masses and angle
# give the time of the last merge by the equation for $\varphi$.

# %%
two = np.flatnonzero(run.cluster_count.values == 2)
k = two[np.searchsorted(run.time.values[two], min(run.time.values[two[0]] + 15, 0.8 * end))]
labels = run.cluster_labels.values[k]
sides = [run.x.values[k][labels == label] for label in np.unique(labels)]
mass = len(sides[0]) / 32
angle = np.arccos(np.clip(sides[0].mean(axis=0) @ sides[1].mean(axis=0), -1, 1))
predicted = run.time.values[k] + merging_time(angle, beta, delta=1e-4, m=mass)
print(
    f"masses {mass:.3f} and {1 - mass:.3f}, angle {angle:.3f}:"
    f" last merge predicted at {predicted:.1f}, seen at {end:.1f}"
)
assert abs(predicted / end - 1) < 0.01

# %% Merging time of two equal clusters grows like $e^{\beta(1-\cos\varphi)}$ (dashed).
betas = np.linspace(1, 20, 39)
with look() as theme:
    figure, (ax,) = panels(1, 1, size=(5.0, 3.0))
    for colour, phi in zip(theme.palette, (np.pi / 3, np.pi / 2, 2.5)):
        T = merging_time(phi, betas, 1e-3)
        lead = np.exp(betas * (1 - np.cos(phi))) / (2 * betas * np.sin(phi) ** 2)
        ax.semilogy(betas, T, color=colour, label=rf"$\varphi$ = {phi:.2f}")
        ax.semilogy(betas, lead, "--", color=colour, lw=0.8)
        slope = np.polyfit(betas[-10:], np.log(betas * T)[-10:], 1)[0]
        assert abs(slope / (1 - np.cos(phi)) - 1) < 0.06  # corrections of order 1/beta
    ax.set(xlabel=r"$\beta$", ylabel="time to merge", ylim=(1, 1e16))
    ax.legend()
figure

# %% Live: $\beta=9$. A few clusters, and nothing happens. Drag $\beta$ down to 2 and they merge.
flock.lab(SelfAttention(beta=9.0), Uniform(n=64, d=2), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. Two equal opposite clusters: linearise about $\varphi=\pi$ and find how long they last.

# %% [markdown] tags=["answer"]
# With $m=\frac12$: $\dot\varphi=-\frac{2w}{1+w}\sin\varphi$. At $\varphi=\pi-\varepsilon$:
# $w=e^{-2\beta}$ and $\dot\varepsilon=\frac2{1+e^{2\beta}}\varepsilon$. They last
# $(1+e^{2\beta})/2$: 1491 at $\beta=4$.

# %% tags=["answer"]
assert np.allclose(polygon_lifetime(2, [1.0, 4.0]), (1 + np.exp([2.0, 8.0])) / 2, rtol=1e-12)

# %% [markdown]
# 2. From which $\beta$ on do two equal clusters at the angle 2.5 outlast a million units of time?
#    How many layers with $h=0.1$ is that?

# %% [markdown] tags=["answer"]
# Solve $T(\beta)=10^6$: $\beta$ is about nine. That is ten million layers: for a real model
# metastable is for ever.

# %% tags=["answer"]
critical = brentq(lambda b: np.log(merging_time(2.5, b) / 1e6), 2, 20)
print(f"beta = {critical:.3f}")
assert 8 < critical < 10

# %% [markdown]
# 3. Read the masses of the last two clusters off the energy of the plateau.

# %% [markdown] tags=["answer"]
# $E=m^2+(1-m)^2+2m(1-m)w$, a quadratic equation for $m$.

# %% tags=["answer"]
E, w = run.energy.values[k], np.exp(beta * (np.cos(angle) - 1))
m = (1 + np.sqrt(1 - 2 * (1 - E) / (1 - w))) / 2
print(f"E = {E:.4f}: the larger mass is {m:.4f}, counted {max(mass, 1 - mass):.4f}")
assert abs(m - max(mass, 1 - mass)) < 1e-3

# %% [markdown]
# ## Where next
#
# All $\beta$ and $t$ at once: lesson [8](plot_08_phases.py). Times of first passage and runs as
# long as $e^{2\beta}$: [times](../../docs/times.md).
