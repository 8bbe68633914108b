# %% [markdown]
# # Optimal measures
#
# Attention climbs an energy, so ask which measures make it greatest, and which least. A certificate
# says how far a candidate is from optimal, without knowing the optimum.
#
# With a symmetric matrix $D=Q^\top K$ (which has $\beta$ inside) the energy of a measure is
#
# $$E(\mu)=\iint e^{\langle x,Dy\rangle}\,d\mu(x)\,d\mu(y).$$
#
# Self-attention with $V=D$ climbs it, with $V=-D$ it descends (arXiv 2501.03096). For $D=\beta I$
# it is $2\beta E_\beta$ of arXiv 2312.10794, and Proposition 3.4 there says: the uniform measure
# is the only minimiser, single points are the only maximisers.
#
# ## The certificate
#
# Move a little mass from where the potential $U_\mu(x)=\int e^{\langle x,Dy\rangle}d\mu(y)$ is
# high to where it is low: the energy falls at first order. So at a minimiser the potential, where
# there is mass, equals its least value on the sphere. Since $E(\mu)=\int U_\mu\,d\mu$, the number
# $\text{gap}=E(\mu)-\min_xU_\mu(x)$ is then zero. If $D\ge0$ (no negative eigenvalue) the energy is
# convex, with slope $2U_\mu$, and so no measure has an energy below $E(\mu)-2\,\text{gap}$.

# %%
import numpy as np

from tokenflock.meanfield import Goal, optimal_density, optimal_tokens, optimality_gap
from tokenflock.theory import kernel_eigenvalue

random = np.random.default_rng(0).normal(size=(150, 3))
random /= np.linalg.norm(random, axis=1, keepdims=True)
found = optimal_tokens(np.eye(3), n=150, steps=50)
best = float(kernel_eigenvalue(0, 1.0, 3))  # sinh(1), the energy of the uniform measure
for name, energy, gap in (
    ("random tokens", np.exp(random @ random.T).mean(), optimality_gap(random, np.eye(3))),
    ("after descent", float(found.energy), float(found.gap)),
):
    print(f"{name}: energy {energy:.7f}, gap {gap:.1e}; uniform {best:.7f}")
    assert best - 1e-12 <= energy <= best + 2 * gap + 1e-12

# %% [markdown]
# Random tokens miss the optimum by $(e-\sinh1)/150\approx0.010$ on average, the part of the sum
# with $i=j$; these, by luck, by 0.005. Tokens that descended miss it by less than $10^{-6}$.
#
# ## Four matrices, four minimisers
#
# Now weigh directions differently. By Jensen's inequality $E\ge e^{\langle m,Dm\rangle}\ge1$, with
# $m$ the mean of $\mu$. Where $D$ sends some directions to zero, tokens hide in these: they do not
# feel each other there, and $E=1$. Where an eigenvalue is small they crowd near its axis. This is
# Figure 3 of arXiv 2501.03096.

# %% Minimisers: even, near two poles, two poles, a great circle. 150 tokens each.
import tokenflock as flock
from tokenflock.plots import look, panels, sphere

cases = {
    "I": (1.0, 1.0, 1.0),
    "diag(1,¼,1)": (1.0, 0.25, 1.0),
    "diag(1,0,1)": (1.0, 0.0, 1.0),
    "diag(0,0,1)": (0.0, 0.0, 1.0),
}
figure, axes = panels(1, 4, size=(1.9, 2.1))
least = {}
for ax, (name, D) in zip(axes, cases.items(), strict=True):
    least[name] = found if name == "I" else optimal_tokens(np.diag(D), n=150, steps=50)
    run = least[name].assign(x=least[name].x.expand_dims(time=[0.0]))
    sphere(run, ax=ax, azimuth=25, elevation=20, delta=1e-6)
    with look(ax):
        ax.set_title(f"D = {name}\nE = {float(least[name].energy):.5f}")
print({name: f"E = {float(r.energy):.6f}, gap {float(r.gap):.0e}" for name, r in least.items()})
assert all(abs(float(least[k].energy) - 1) < 1e-6 for k in ("diag(1,0,1)", "diag(0,0,1)"))
assert abs(float(least["diag(1,¼,1)"].energy) - 1.02795) < 1e-4  # tokens for a density: 1/n^2
figure

# %% [markdown]
# ## Climbing: what is best, and what holds tokens back
#
# If the eigenvalue of largest size is positive, $\lambda$, the best is one cluster on its axis,
# $E=e^{\lambda}$. But two opposite clusters on that axis can be a trap. For $D=\text{diag}(d,1)$
# on the circle two equal ones are unstable, so that one cluster wins, only for
# $\tanh1=0.7616<d<1.1997$; the upper end solves $d\tanh d=1$ (derived here from the Hessian;
# Figure 2 of the paper). The law `Burger` is USA with $Q^\top K=V=D$.

# %% Share of 16 random starts that end as one cluster, and the window without traps (shaded).
from tokenflock.dynamics import Burger
from tokenflock.observables import ClusterCount
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Uniform
from tokenflock.theory import trap_window

values = np.array([0.0, 0.25, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.17, 1.25, 1.4])
ends = flock.ensemble(
    Burger(D=np.eye(2)),
    Uniform(n=32, d=2),
    over={"D": np.array([np.diag([d, 1.0]) for d in values])},
    repeats=16,
    t=150.0,
    times=[150.0],
    solver=Layer(h=0.1),
    observe=[ClusterCount(radius=0.1)],
    keep=True,
)
single = (ends.cluster_count.values[..., -1] == 1).mean(-1)
window = trap_window(1.0)
inside = (values > window.low) & (values < window.high)
print(f"window {window.low:.4f} to {window.high:.4f}; shares inside {single[inside]}")
assert (single[inside] == 1).all() and single[~inside].max() < 1
figure, axes = panels(1, 1, size=(6, 2.6))
with look(figure) as theme:
    axes[0].axvspan(window.low, window.high, color=theme.palette[1], alpha=0.25, lw=0)
    axes[0].plot(values, single, "o-", color=theme.palette[0])
    axes[0].set(xlabel="$d$ in $D=$ diag$(d,1)$", ylabel="share of single clusters")
figure

# %% Live: repelling tokens ($V=-I$) look for even places; twelve of them find an icosahedron.
from tokenflock.dynamics import Unnormalised

flock.lab(Unnormalised(beta=2.0, repulsive=True), Uniform(n=12, d=3), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. Twelve tokens on $S^2$: compare what descent finds with the icosahedron. How large is the
#    gap, and why is it not zero?

# %% tags=["answer"]
from tokenflock.theory import icosahedron_energy

twelve = optimal_tokens(2 * np.eye(3), n=12, steps=400)
print(f"E {float(twelve.energy):.12f}, gap {float(twelve.gap):.1e}")
print(f"icosahedron {4 * icosahedron_energy(2.0):.12f}")  # E = 2 beta E_beta with beta = 2
assert abs(float(twelve.energy) / (4 * icosahedron_energy(2.0)) - 1) < 1e-10
assert float(twelve.energy) > float(kernel_eigenvalue(0, 2.0, 3))

# %% [markdown] tags=["answer"]
# The icosahedron is a sharp configuration, hence best among 12 points at every $\beta$ (Cohn and
# Kumar; Theorem 9.2 of arXiv 2312.10794 states the converse, which is not what is proved). The
# certificate compares with all measures, and the uniform one is better: the gap must be positive.

# %% [markdown]
# 2. What is the maximiser for $D=-I$, and does the flow find it?

# %% [markdown] tags=["answer"]
# Two opposite points of equal mass, $E=\cosh1$: for $D=-I$ the exponent of $x$ and $-x$ is $+1$.
# With masses $p\ne q=1-p$ the energy $(p^2+q^2)e^{-1}+2pqe$ is less. But such a pair is stable for
# $1/(1+e^2)<p<e^2/(1+e^2)$, that is from 0.12 to 0.88. So the flow stops where it first can.

# %% tags=["answer"]
climbed = flock.simulate(
    Burger(D=-np.eye(3)), Uniform(n=64, d=3), t=200, frames=3, solver=RK4(h=0.1), seed=4
)
end = climbed.x.values[-1]
share = (end @ end[0] > 0).mean()
energy, best = np.exp(-end @ end.T).mean(), np.cosh(1)
print(f"masses {share:.3f} and {1 - share:.3f}; energy {energy:.6f}, best {best:.6f}")
print(f"gap {optimality_gap(end, -np.eye(3), Goal.MAXIMISE):.4f}")
pair = (share**2 + (1 - share) ** 2) / np.e + 2 * share * (1 - share) * np.e
assert abs(energy - pair) < 1e-8 and energy <= best + 1e-12

# %% [markdown]
# 3. Tilt the matrix a little, $D=\text{diag}(1,1.01)$. How does the minimising density on the
#    circle respond?

# %% [markdown] tags=["answer"]
# Mass leaves the direction in which tokens feel each other more. For $D=I+\varepsilon M$ the
# density, relative to the uniform one, is $1+\varepsilon\alpha(x^\top Mx-\text{tr}M/d)$ to first
# order, with $\alpha=-I_{d/2}(1)/I_{d/2+1}(1)$ (derived here): $-4.163$ for $d=2$. Here
# $M=\text{diag}(0,1)$ and $\varepsilon=0.01$, so the coefficient of $\cos2\theta$ is $0.0208$. The
# factor is large because $e^{\langle x,y\rangle}$ damps the second harmonic.

# %% tags=["answer"]
from tokenflock.theory import minimiser_tilt

tilted = optimal_density(np.diag([1.0, 1.01]), points=64)
mass = (tilted.density * tilted.weight).values
measured = 2 * float(mass @ np.cos(2 * tilted.theta.values))
print(f"measured {measured:.6f}, first order {-0.005 * minimiser_tilt(2):.6f}")
assert abs(measured + 0.005 * minimiser_tilt(2)) < 2e-4  # terms of order 0.01^2

# %% [markdown]
# ## Where next
#
# [Normalisation, masks, heads and feed-forward parts](plot_11_block.py). Numbers behind this
# page: [measures](../../docs/measures.md), `tokenflock reproduce meanfield-models/fig3`.
