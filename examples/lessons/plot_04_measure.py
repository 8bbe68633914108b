# %% [markdown]
# # The empirical measure and the continuity equation
#
# Attention sees the tokens only through where their mass is, so $n$ tokens are a measure, and the
# measure moves by a partial differential equation. At $\beta=0$ on the circle it is solved in
# closed form.
#
# Put the mass $w_j$ at each token and write $\mu=\sum_jw_j\delta_{x_j}$; the masses sum to one,
# $1/n$ each unless said otherwise. Then (SA) says $\dot x_i=\mathcal{X}[\mu](x_i)$ with one vector
# field for all, (3.1) to (3.4) of arXiv 2312.10794:
#
# $$\mathcal{X}[\mu](x)=P_x\,\frac{\int e^{\beta\langle x,y\rangle}\,y\,d\mu(y)}
#   {\int e^{\beta\langle x,y\rangle}\,d\mu(y)},
#   \qquad \partial_t\mu+\operatorname{div}\bigl(\mathcal{X}[\mu]\,\mu\bigr)=0 .$$
#
# The second is the continuity equation. It is meant in its *weak form*: for every smooth $\varphi$
# on the sphere,
# $\frac{d}{dt}\int\varphi\,d\mu=\int\langle\nabla\varphi,\mathcal{X}[\mu]\rangle\,d\mu$. For tokens
# this is the chain rule. For densities it is new: any number of tokens, even infinitely many, obeys
# one equation.

# %%
import numpy as np
from scipy.special import iv

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.meanfield import PoissonKernel, Ripple, evolve
from tokenflock.plots import density_over_time, look, panels, trajectories
from tokenflock.solvers import RK4
from tokenflock.starts import Given, Uniform
from tokenflock.theory import growth_rate, poisson_order, poisson_quantile


def field(q, x, w, beta):
    """X[mu] at points q, for mu = sum_j w_j delta_{x_j}."""
    E = w * np.exp(beta * q @ x.T)
    y = E @ x / E.sum(axis=1, keepdims=True)
    return y - np.sum(q * y, axis=1, keepdims=True) * q


def on_circle(angle):
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


rng = np.random.default_rng(0)
x, q = on_circle(rng.uniform(0, 7, 12)), on_circle(rng.uniform(0, 7, 5))
x[2], x[1] = x[0], x[0]  # three tokens in one place ...
heavy = np.array([3] + 9 * [1]) / 12  # ... are one of weight three
same = field(q, x[[0, *range(3, 12)]], heavy, 4.0)
assert np.allclose(field(q, x, np.full(12, 1 / 12), 4.0), same, atol=1e-14)

# %% [markdown]
# So a cluster of $m$ tokens is one token of weight $m/n$, and text of twice the length with every
# token doubled moves in the same way. `simulate` takes weights, `evolve` takes densities.
#
# ## A case that is solved
#
# At $\beta=0$ on the circle (SA) is Kuramoto's model of equal oscillators (lesson
# [9](plot_09_circle.py)). Densities of the form $(1-r^2)/(2\pi(1-2r\cos\theta+r^2))$, called
# Poisson kernels, keep that form. Only $r$ moves (Ott and Antonsen, 2008):
# $\dot r=\frac12r(1-r^2)$.
#
# Put $n$ tokens at the quantiles, and see how far they are from the density in the distance $W_1$,
# the least mean distance by which mass must be carried. Can it grow? The kernel $\sin$ has slope at
# most one: move a token by $\epsilon$ and the measure by $\eta$ in $W_1$, and its speed changes by
# at most $\epsilon+\eta$. Hence $W_1(t)\le e^{2t}W_1(0)$; in general $W_1(t)\le e^{Ct}W_1(0)$
# (Remark 3.3). Two things follow. Solutions are unique: with the same start $W_1$ stays zero. And
# tokens converge to the density as $n\to\infty$, since $W_1(0)\to0$.
#
# The bound is generous. Here tokens stay at the quantiles of the moving density, and $W_1$ stays at
# $\pi/2n$. On the circle $W_1=\min_c\int|F-G-c|$ for the distribution functions $F$ and $G$;
# `meanfield.wasserstein` computes $W_p$ on spheres too.


# %%
def carried(a, b):
    """W_1 of equal masses at angles a and at angles b: the mean of |F - G - c| with the best c."""
    both = np.sort(np.concatenate([a, b]) % (2 * np.pi))
    F, G = (np.searchsorted(np.sort(x % (2 * np.pi)), both, "right") / len(x) for x in (a, b))
    length = np.diff(both, append=both[0] + 2 * np.pi)  # F - G is constant on each
    order = np.argsort(F - G)
    half = np.searchsorted(np.cumsum(length[order]), np.pi)
    return np.sum(length * np.abs(F - G - (F - G)[order[half]]))  # c: the median


t, r0 = 3.0, 0.3
density = evolve(SelfAttention(beta=0.0), PoissonKernel(r=r0), t=t, frames=31)
assert np.abs(density.order_parameter - poisson_order(density.time.values, r0)).max() < 1e-8
assert abs(density.mass - 1).max() < 1e-12


def at_quantiles(n, r):
    return poisson_quantile((np.arange(n) + 0.5) / n, r)


limit = [at_quantiles(4096, r) for r in (r0, poisson_order(t, r0))]
distance = {}
for n in (32, 128):
    options = {"t": t, "frames": 2, "solver": RK4(h=0.05)}
    start = Given(on_circle(at_quantiles(n, r0)))
    ends = flock.simulate(SelfAttention(beta=0.0), start, **options).x.values
    distance[n] = [carried(np.arctan2(x[:, 1], x[:, 0]), b) for x, b in zip(ends, limit)]
    print(f"n = {n:3d}: W1 = {distance[n][0]:.4f} at t = 0, {distance[n][1]:.4f} at t = 3")
    assert distance[n][1] <= np.exp(2 * t) * distance[n][0]
    assert np.allclose(distance[n], np.pi / 2 / n, rtol=0.01)  # a quarter of the mean gap

# %% [markdown]
# ## How clusters begin
#
# The uniform density is at rest: by symmetry no direction is better. It is unstable. A ripple
# $1+\varepsilon\cos k\theta$ grows like $e^{g_kt}$ with $g_k=k^2I_k(\beta)/(\beta I_0(\beta))$,
# where $I_k$ are the modified Bessel functions (exercise 1). At $\beta=4$ the mode $k=3$ grows
# fastest: three clusters are to be expected.

# %% A ripple of 1 % grows into three clusters: as a density (left) and as 48 tokens (right).
ripple = evolve(SelfAttention(beta=4.0), Ripple(k=3, amplitude=0.01), t=8, frames=81)
wave = (ripple.density * ripple.weight * np.cos(3 * ripple.theta)).sum("theta").values  # mode 3
rate = np.log(wave[10] / wave[0])  # over one unit of time
print(f"measured rate {rate:.6f}, theory {growth_rate(3, beta=4.0):.6f}")
assert abs(rate / growth_rate(3, beta=4.0) - 1) < 1e-3  # linear theory: errors of order 0.01^2
place = level = 2 * np.pi * (np.arange(48) + 0.5) / 48
for _ in range(20):  # quantiles of the ripple, by Newton
    place = place - (place + 0.01 / 3 * np.sin(3 * place) - level) / (1 + 0.01 * np.cos(3 * place))
tokens = flock.simulate(
    SelfAttention(beta=4.0), Given(on_circle(place)), t=12, frames=121, solver=RK4(h=0.05)
)
angle = np.arctan2(tokens.x.values[..., 1], tokens.x.values[..., 0])
of_tokens = np.cos(3 * angle).mean(axis=1)
assert np.abs(of_tokens[:51] - wave[:51]).max() < 1e-3  # the same until t = 5
with look():
    figure, (left, right) = panels(1, 2, size=(3.7, 2.9))
    density_over_time(ripple, ax=left, title=False)
    trajectories(tokens, ax=right, title=False)
figure

# %% [markdown]
# The weak form is checked on the density itself, with $\varphi=\cos3\theta$:
# $\frac d{dt}\int\varphi\,d\mu$ by differences in time, $\int\varphi'\mathcal{X}\,d\mu$ by the
# quadrature of the grid.

# %%
slope = -3 * np.sin(3 * ripple.theta) * ripple.velocity * ripple.density * ripple.weight
transported, changed = slope.sum("theta").values[1:-1], (wave[2:] - wave[:-2]) / 0.2
early = slice(0, 40)
assert np.abs(transported - changed)[early].max() < 0.01 * np.abs(changed[early]).max()

# %% Live: five hundred tokens on the circle, almost a density. Drag $\beta$ and count the waves.
flock.lab(SelfAttention(beta=4.0), Uniform(n=500, d=2), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. Derive $g_k$. Use $e^{\beta\cos\theta}=\sum_kI_k(\beta)e^{ik\theta}$.

# %% [markdown] tags=["answer"]
# On the circle $\mathcal{X}=\beta^{-1}(h'*\mu)/(h*\mu)$ with $h=e^{\beta\cos}$ and $*$ the
# convolution (Section 7 of arXiv 2312.10794). For $\mu=(1+\varepsilon\cos k\theta)/2\pi$:
# $h*\mu=I_0+\varepsilon I_k\cos k\theta$, so to first order
# $\mathcal{X}=-\varepsilon\,\frac{kI_k}{\beta I_0}\sin k\theta$. The continuity equation gives
# $\dot\varepsilon\cos k\theta=-\partial_\theta\mathcal{X}$, so
# $\dot\varepsilon=\frac{k^2I_k}{\beta I_0}\,\varepsilon$.

# %% tags=["answer"]
k = np.arange(1, 7)
rates = k**2 * iv(k, 4.0) / (4.0 * iv(0, 4.0))
assert np.allclose(rates, growth_rate(k, beta=4.0), rtol=1e-12) and rates.argmax() == 2
print(np.round(rates, 4))

# %% [markdown]
# 2. Independent tokens instead of quantiles: how does $W_1$ to the uniform measure fall with $n$?

# %% [markdown] tags=["answer"]
# Like $n^{-1/2}$ on the circle, the central limit theorem. On $\mathbb{S}^{d-1}$ with $d\ge4$ it is
# $n^{-1/(d-1)}$ (Remark 3.3): in high dimension a sample says little about its measure.

# %% tags=["answer"]
sizes, even = np.array([16, 64, 256]), 2 * np.pi * np.arange(1024) / 1024
mean = [np.mean([carried(rng.uniform(0, 2 * np.pi, n), even) for _ in range(50)]) for n in sizes]
slope = np.polyfit(np.log(sizes), np.log(mean), 1)[0]
print(f"mean W1 {np.round(mean, 3)}, slope {slope:.3f}")
assert abs(slope + 0.5) < 0.1  # each mean has an error of about 5 %

# %% [markdown]
# 3. Does every measure with a mean direction end in one point?

# %% [markdown] tags=["answer"]
# No: $\frac23\delta_e+\frac13\delta_{-e}$ is at rest for every $\beta$, though unstable. Densities
# do, if $|\beta|$ is below a bound that depends on the density (arXiv 2504.14697, for USA of lesson
# [5](plot_05_energy.py)).

# %% tags=["answer"]
pair = np.array([[1.0, 0.0], [-1.0, 0.0]])
assert np.abs(field(pair, pair, np.array([2 / 3, 1 / 3]), 4.0)).max() < 1e-15

# %% [markdown]
# ## Where next
#
# What the measure climbs: lesson [5](plot_05_energy.py). Densities on spheres, a million tokens,
# optimal measures: [measures](../../docs/measures.md).
