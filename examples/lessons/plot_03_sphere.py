# %% [markdown]
# # Tokens as particles on a sphere
#
# Layer norm keeps tokens on a sphere, attention pulls each towards a mean of the others, and depth
# is time. Two tokens can be solved by hand, and the solver agrees with the formula to eight digits.
#
# Strip a Transformer layer of its learned parts: one head, $Q=K=V=I$, and a norm that divides by
# the length. What is left is a step of length $h$ and a projection,
#
# $$x_i\leftarrow\frac{x_i+h\,a_i}{|x_i+h\,a_i|},\qquad
#   a_i=\frac1{Z_i}\sum_je^{\beta\langle x_i,x_j\rangle}x_j,\qquad
#   Z_i=\sum_ke^{\beta\langle x_i,x_k\rangle}.$$
#
# With $P_xy=y-\langle x,y\rangle x$, the part of $y$ tangent to the sphere, this is
# $x_i+hP_{x_i}a_i+O(h^2)$. As $h\to0$ the layers become a flow, (SA) or (2.6) of arXiv 2312.10794:
#
# $$\dot x_i=P_{x_i}\Bigl(\frac1{Z_i}\sum_je^{\beta\langle x_i,x_j\rangle}x_j\Bigr),\qquad
#   x_i\in\mathbb{S}^{d-1}.$$
#
# In the library a *law* says how tokens move, a *start* where they begin, a *solver* how time is
# cut: `Layer(h)` makes layers, `RK4(h)` follows the flow (Runge-Kutta, error $O(h^4)$).

# %%
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.observables import ClusterCount
from tokenflock.plots import look, panels, sphere
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Given, Uniform
from tokenflock.theory import layer_terminal_rate, pair_cosine


def tangent(x, y):
    return y - np.sum(x * y, axis=1, keepdims=True) * x


def attention(x, beta):
    A = np.exp(beta * x @ x.T)
    return A / A.sum(axis=1, keepdims=True) @ x


def layer(x, beta, h):
    y = x + h * attention(x, beta)
    return y / np.linalg.norm(y, axis=1, keepdims=True)


law = SelfAttention(beta=4.0)
run = flock.simulate(law, Uniform(n=32, d=3), t=30, frames=121, solver=RK4(h=0.05), seed=1)
x = run.x.values[0]
steps = [
    np.abs(layer(x, 4.0, h) - x - h * tangent(x, attention(x, 4.0))).max() for h in (0.02, 0.01)
]
print(f"one layer less one Euler step: {steps[0]:.1e} at h = 0.02, {steps[1]:.1e} at h = 0.01")
assert 3.8 < steps[0] / steps[1] < 4.2  # second order: half the step, a quarter
deep = flock.simulate(law, Given(x), t=1.0, frames=2, solver=Layer(h=0.1)).x.values[-1]
for _ in range(10):
    x = layer(x, 4.0, 0.1)
assert np.allclose(deep, x, atol=1e-12)  # ten layers by hand and by the library

# %% Tokens at $\beta=4$: three groups at $t=6$, two at $t=30$. Faint ones are on the far side.
count = flock.measure(run, ClusterCount(delta=0.05)).cluster_count
assert [int(count.sel(time=at)) for at in (6, 30)] == [3, 2]
with look():
    figure, axes = panels(1, 4, size=(2.0, 2.3))
    for ax, at in zip(axes, (0, 2, 6, 30)):
        sphere(run, ax=ax, at=at, clusters_at=6)
        ax.set_title(f"t = {at}")
figure

# %% [markdown]
# Tokens attract each other, near ones more. $\beta$, the *inverse temperature*, says how much more:
# at $\beta=0$ everyone listens to everyone alike, at large $\beta$ only to neighbours. For a reader
# of Transformers: $\beta$ is $1/\sqrt m$ times the size of $Q^\top K$. For a reader of gradient
# flows: on the sphere $e^{\beta\langle x,y\rangle}=e^{\beta}e^{-\beta|x-y|^2/2}$, a Gaussian kernel
# of width $\beta^{-1/2}$.
#
# ## What holds exactly
#
# Rotating all tokens rotates the solution, permuting them permutes it (Remark 2.2). Tokens stay in
# the span of where they began. Equal tokens stay equal. Tokens at two opposite points are at rest.


# %%
def moved(x, beta=4.0):
    options = {"t": 2.0, "frames": 2, "solver": RK4(h=0.1)}
    return flock.simulate(SelfAttention(beta=beta), Given(x), **options).x.values[-1]


rng, x = np.random.default_rng(0), run.x.values[0]
R, order = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.permutation(32)
assert np.allclose(moved(x @ R), moved(x) @ R, atol=1e-12)
assert np.allclose(moved(x[order]), moved(x)[order], atol=1e-12)
flat = x * [1, 1, 0]
assert np.abs(moved(flat)[:, 2]).max() == 0
twins = x.copy()
twins[1] = twins[0]
assert np.allclose(moved(twins)[0], moved(twins)[1], atol=1e-14)
poles = np.repeat([[0, 0, 1.0], [0, 0, -1.0]], 16, axis=0)
assert np.allclose(moved(poles), poles, atol=1e-12)
assert np.allclose(np.linalg.norm(run.x.values, axis=2), 1, atol=1e-12)  # on the sphere for ever

# %% [markdown]
# ## Two tokens, solved
#
# For two tokens only the cosine $\gamma=\langle x_1,x_2\rangle$ matters. From (SA), or (6.9) with
# $n=2$,
#
# $$\dot\gamma=\frac{2e^{\beta\gamma}(1-\gamma^2)}{e^\beta+e^{\beta\gamma}} .$$
#
# Near *consensus*, all tokens in one point, $1-\gamma$ shrinks like $e^{-2t}$ at every $\beta$.
# Away from it $\beta$ slows things down: from a right angle the first speed is $2/(1+e^\beta)$. The
# layer map has a rate of its own, $2\ln(1+h)/h$: one layer divides a small difference by $1+h$, so
# $1-\gamma$, which is quadratic in it, by $(1+h)^2$.

# %% The cosine of two tokens from a right angle: the formula (lines) and the solver (dots).
with look() as theme:
    figure, (left, right) = panels(1, 2, size=(3.5, 2.6))
    for colour, beta in zip(theme.palette, (0.0, 1.0, 4.0)):
        solver = RK4(h=0.02)
        pair = flock.simulate(SelfAttention(beta=beta), np.eye(2), t=12, frames=61, solver=solver)
        gamma = np.einsum("td,td->t", pair.x.values[:, 0], pair.x.values[:, 1])
        exact = pair_cosine(pair.time.values, 0.0, beta)
        assert np.abs(gamma - exact).max() < 1e-8  # of the order h^4 = 1.6e-7, times little
        left.plot(pair.time, exact, color=colour, label=rf"$\beta$ = {beta:g}")
        left.plot(pair.time[::3], gamma[::3], ".", color=colour, ms=4)
        right.semilogy(pair.time, 1 - exact, color=colour)
    deep = flock.simulate(SelfAttention(beta=1.0), np.eye(2), t=12, frames=61, solver=Layer(h=0.1))
    gap = 1 - np.einsum("td,td->t", deep.x.values[:, 0], deep.x.values[:, 1])
    right.semilogy(deep.time, gap, ":", color=theme.ink, label="layers, h = 0.1")
    left.set(xlabel="time", ylabel=r"$\gamma$", title="cosine")
    right.set(xlabel="time", title=r"$1-\gamma$", ylim=(1e-10, 1.5))
    left.legend()
    right.legend()
rate = -np.log(gap[50] / gap[40]) / (deep.time[50] - deep.time[40]).item()
print(f"rate of the layers {rate:.4f}, 2 ln(1.1)/0.1 = {layer_terminal_rate(0.1):.4f}, flow 2")
assert abs(rate - 2 * np.log(1.1) / 0.1) < 1e-3
figure

# %% Live: drag $\beta$. Small: one swarm. Large: several groups, and patience.
flock.lab(SelfAttention(beta=4.0), Uniform(n=64, d=3), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. At $\beta=0$, when do two orthogonal tokens reach the cosine $0.999$?

# %% [markdown] tags=["answer"]
# $\dot\gamma=1-\gamma^2$, so $\gamma=\tanh t$ and $t=\operatorname{artanh}0.999=3.8002$.

# %% tags=["answer"]
assert abs(pair_cosine(np.arctanh(0.999), 0.0, 0.0) - 0.999) < 1e-12
print(f"{np.arctanh(0.999):.4f}")

# %% [markdown]
# 2. Leave out $P$. How does the length of a token change, and what does that say about pre-norm?

# %% [markdown] tags=["answer"]
# $\frac{d}{dt}|x_i|^2=2\langle x_i,a_i\rangle$. In consensus $a_i=x_i$ and the length grows like
# $e^t$. With a norm before attention $a_i$ has length at most one, and the length of $x_i$ grows
# like $t$. A force across a token of length $|x_i|$ turns it by $1/|x_i|$ as much: lesson
# [11](plot_11_block.py) is about that.

# %% tags=["answer"]
one = np.tile([[1.0, 0.0]], (5, 1))
assert np.allclose(attention(one, 4.0), one)  # all of it is along x, which P would take off
assert np.abs(tangent(one, attention(one, 4.0))).max() < 1e-15

# %% [markdown]
# 3. Turn the sign of $V$. Where do four tokens on $\mathbb{S}^2$ go?

# %% [markdown] tags=["answer"]
# Apart, as far as they can: to a regular tetrahedron, whose cosines are all $-1/3$.

# %% tags=["answer"]
away = SelfAttention(beta=1.0, repulsive=True)
last = flock.simulate(away, Uniform(n=4, d=3), t=60, frames=2, solver=RK4(h=0.1)).x.values[-1]
print(np.round(last @ last.T, 6))
assert np.abs(last @ last.T - (4 * np.eye(4) - 1) / 3).max() < 1e-6

# %% [markdown]
# ## Where next
#
# Any number of tokens as one measure: lesson [4](plot_04_measure.py). Every law there is:
# `tokenflock list dynamics`.
