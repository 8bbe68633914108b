# %% [markdown]
# # Residual networks, recurrent networks, neural ODEs, and tokens that interact
#
# Four ways to move vectors through many layers. In the first three a vector travels alone, or reads
# one input after another; in a Transformer $n$ vectors move at once and each depends on all others.
#
# | | state | what a layer does | time is |
# |---|---|---|---|
# | residual network, (2.1) | one $x\in\mathbb{R}^d$ | $x_{k+1}=x_k+W\sigma(Ax_k+b)$ | depth |
# | neural ODE, (2.2) | one $x\in\mathbb{R}^d$ | $\dot x=W\sigma(Ax+b)$ | depth |
# | recurrent network | one $h\in\mathbb{R}^d$ | $h_{t+1}=\tanh(Rh_t+Bu_{t+1})$ | place in text |
# | Transformer, (2.6) | $n$ tokens $x_i$ | $\dot x_i=P_{x_i}\sum_jA_{ij}(x)\,x_j$ | depth |
#
# Numbers in brackets are equations of arXiv 2312.10794. The matrices $W$, $A$, $R$, $B$ and the
# vector $b$ are learned, $u_t$ is the input at place $t$, $\sigma$ is a scalar function such as
# $\tanh$. $A_{ij}(x)$ with two indices is attention, the weights of lesson
# [1](plot_01_transformer.py); $P_x$ keeps tokens on a sphere (lesson [3](plot_03_sphere.py)).

# %%
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import FeedForward, NeuralODE, SelfAttention
from tokenflock.plots import look, panels
from tokenflock.solvers import RK4, Layer
from tokenflock.spaces import Sphere
from tokenflock.starts import Given, Uniform

law = NeuralODE.example(d=2, seed=3)  # random W, A, b, and tanh
W, A, b = (np.asarray(part) for part in (law.W, law.A, law.b))
angle = 2 * np.pi * np.arange(12) / 12
ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)  # twelve inputs
t = 4.0

# %% [markdown]
# ## A residual network is Euler's method
#
# A residual layer of step $h$ is $x\leftarrow x+hW\sigma(Ax+b)$: Euler's method for the neural ODE.
# Its error after a fixed time is $O(h)$, so it halves when the number of layers doubles. The exact
# flow is that of `RK4`, the Runge-Kutta method of order four, whose error is $O(h^4)$.


# %%
def residual_network(x, layers):
    for _ in range(layers):
        x = x + t / layers * np.tanh(x @ A.T + b) @ W.T
    return x


flow = flock.simulate(law, ring, t=t, frames=41, solver=RK4(h=0.05))
exact = flow.x.values[-1]
layers = np.array([8, 16, 32, 64, 128])
error = [np.abs(residual_network(ring, K) - exact).max() for K in layers]
slope = np.polyfit(np.log(layers), np.log(error), 1)[0]
print(f"errors {np.round(error, 5)}, slope {slope:.3f}")
assert abs(slope + 1) < 0.1  # first order, with O(h^2) beside it
by_library = flock.simulate(law, ring, t=t, frames=2, solver=Layer(h=t / 32)).x.values[-1]
assert np.allclose(by_library, residual_network(ring, 32), atol=1e-12)

# %% [markdown]
# ## A recurrent network forgets
#
# A recurrent network reads one input at each step into one vector. The first input acts on the last
# state through a product of $n-1$ Jacobians $\operatorname{diag}(1-h_t^2)R$, of norm at most
# $|R|^{n-1}$. With $|R|=0.9$ and $n=64$ that is below $0.0014$. Attention reads every token
# directly. For unit tokens, $Q=K=V=I$, logits $\beta\langle x_i,x_j\rangle$, and $s<n$:
#
# $$\frac{\partial y_n}{\partial x_s}=A_{ns}\bigl(I+\beta(x_s-y_n)x_n^\top\bigr),\qquad
#   \Bigl|\frac{\partial y_n}{\partial x_s}\Bigr|\ge A_{ns}\ge\frac{e^{-2\beta}}n .$$
#
# (The bracket leaves every vector orthogonal to $x_n$ as it is; logits lie between $-\beta$ and
# $\beta$.)

# %%
rng, n, d, beta = np.random.default_rng(0), 64, 16, 1.0
u = rng.normal(size=(n, d))
u /= np.linalg.norm(u, axis=1, keepdims=True)
R = np.linalg.qr(rng.normal(size=(d, d)))[0] * 0.9  # |R| = 0.9; inputs enter by B = I
states = [np.tanh(u[0])]
for s in range(1, n):
    states.append(np.tanh(R @ states[-1] + u[s]))
J, recurrent = np.eye(d), np.zeros(n)
for s in reversed(range(n)):  # J = d h_n / d h_s
    recurrent[s] = np.linalg.norm(J * (1 - states[s] ** 2), 2)
    J = J @ ((1 - states[s] ** 2)[:, None] * R)
weight = np.exp(beta * u @ u[-1])
weight /= weight.sum()
mean = weight @ u
direct = np.array([a * np.linalg.norm(np.eye(d) + beta * np.outer(v - mean, u[-1]), 2)
                   for a, v in zip(weight[:-1], u)])  # fmt: skip
assert (recurrent <= 0.9 ** np.arange(n)[::-1] + 1e-15).all()
assert (direct >= np.exp(-2 * beta) / n).all()
print(f"first input on last state: recurrent {recurrent[0]:.1e}, attention {direct[0]:.1e}")

# %% [markdown]
# ## In a neural ODE nobody listens
#
# Now perturb input $j$ and look at output $i$: the blocks $|\partial x_i(t)/\partial x_j(0)|$. For
# a neural ODE only the diagonal is left: one map is applied to each input, whatever the others are.
# For attention the map itself depends on all tokens. So a neural ODE moves points of
# $\mathbb{R}^d$, and attention moves a *measure*: lesson [4](plot_04_measure.py) takes this up.


# %%
def influence(law, x, t, solver):
    m = 1 if isinstance(law.space, Sphere) else 2  # directions in which one token can move
    blocks = flock.jacobian(law, Given(x), t=t, solver=solver).reshape(len(x), m, len(x), m)
    return np.linalg.norm(blocks, axis=(1, 3))


spread = ring + 0.1 * np.random.default_rng(1).normal(size=ring.shape)  # put back on the circle
alone = influence(law, ring, t, RK4(h=0.1))
together = influence(SelfAttention(beta=4.0), spread, t, RK4(h=0.1))
off = ~np.eye(12, dtype=bool)
print(f"largest influence of another: {alone[off].max():.1e} and {together[off].max():.2f}")
assert alone[off].max() == 0 and together[off].max() > 0.1
half = flock.simulate(law, ring[:6], t=t, frames=41, solver=RK4(h=0.05)).x.values
assert np.allclose(half, flow.x.values[:, :6], atol=1e-12)  # the other six were not missed

# %% A neural ODE moves a ring; what the last state hears of each input; who acts on whom, twice.
with look() as theme:
    figure, axes = panels(1, 4, size=(2.3, 2.5))
    axes[0].plot(*flow.x.values.transpose(2, 0, 1), color=theme.palette[0], lw=0.8)
    axes[0].scatter(*ring.T, s=12, color=theme.palette[1], zorder=3)
    axes[0].set(title="neural ODE", aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    axes[1].semilogy(np.arange(n)[::-1], recurrent, color=theme.palette[2], label="recurrent")
    axes[1].semilogy(np.arange(1, n)[::-1], direct, color=theme.palette[0], label="attention")
    axes[1].set(title="memory", xlabel="tokens ago", ylabel="influence")
    axes[1].legend()
    for ax, matrix, title in zip(axes[2:], (alone, together), ("neural ODE", "attention")):
        ax.imshow(matrix, cmap="Blues", vmin=0)
        ax.set(title=title, xlabel="input $j$", ylabel="output $i$", xticks=[], yticks=[])
figure

# %% [markdown]
# A Transformer layer has both parts: attention, in which tokens interact, and a perceptron, the
# residual network of each token alone (2.8).

# %% Live: attention and a random perceptron. Drag $\beta$.
mlp = NeuralODE.example(d=3, seed=3)
flock.lab(FeedForward(mlp, SelfAttention(beta=4.0)), Uniform(n=48, d=3), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. Can two inputs of a neural ODE meet?

# %% [markdown] tags=["answer"]
# Never. The field is Lipschitz with $L=|W||A|$, since $|\tanh'|\le1$. By Grönwall
# $|x(t)-y(t)|\ge e^{-Lt}|x(0)-y(0)|$. Tokens never meet in finite time either. They are one point
# of an ODE in $(\mathbb{S}^{d-1})^n$, equal tokens stay equal, and solutions are unique. So
# clusters are limits, approached exponentially (lesson [6](plot_06_clustering.py)).

# %% tags=["answer"]
L = np.linalg.norm(W, 2) * np.linalg.norm(A, 2)
x = flow.x.values
gap = np.linalg.norm(x[:, :, None] - x[:, None], axis=3)[:, off]  # all pairs
assert (gap >= np.exp(-L * flow.time.values)[:, None] * gap[0] - 1e-12).all()
print(f"smallest ratio of gaps {(gap / gap[0]).min():.3f}, bound {np.exp(-L * t):.1e}")

# %% [markdown]
# 2. Shuffle the first $n-1$ inputs. What happens to the last output of each of the two readers?

# %% [markdown] tags=["answer"]
# Attention does not notice: a mean has no order. The recurrent network does.

# %% tags=["answer"]
order = np.append(rng.permutation(n - 1), n - 1)
again = np.tanh(u[order[0]])
for s in order[1:]:
    again = np.tanh(R @ again + u[s])
weight = np.exp(beta * u[order] @ u[-1])
shuffled = weight / weight.sum() @ u[order]
changes = np.abs(shuffled - mean).max(), np.abs(again - states[-1]).max()
print(f"attention changes by {changes[0]:.0e}, the recurrent network by {changes[1]:.2f}")
assert changes[0] < 1e-14 and changes[1] > 0.01

# %% [markdown]
# ## Where next
#
# Tokens on their sphere: lesson [3](plot_03_sphere.py). The whole layer as one law of named parts:
# [the block](../../docs/block.md).
