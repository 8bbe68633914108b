# %% [markdown]
# # Normalisation, masks, heads and feed-forward parts
#
# A real Transformer is more than attention on a sphere. Where the norm stands, who may listen to
# whom, how many heads speak, what each token does alone: each changes how tokens cluster.
#
# `Block` is one law made of named parts. What you do not name is that of plain self-attention.

# %%
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import Block, SelfAttention
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Equiangular, Given, Orthogonal, Uniform

start = Uniform(n=16, d=3)
plain = flock.simulate(SelfAttention(beta=2.0), start, t=5, solver=Layer(h=0.1))
block = flock.simulate(Block(beta=2.0), start, t=5, solver=Layer(h=0.1))
print(
    f"Block(beta=2) and SelfAttention(beta=2) differ by {float(abs(plain.x - block.x).max()):.0e}"
)
assert float(abs(plain.x - block.x).max()) < 1e-13
print(Block(heads=4, mask="causal", positions="rotary", feed_forward="gelu", norm="pre"))

# %% [markdown]
# ## Where the norm stands
#
# For readers of gradient flows: a *layer norm* divides each token by its length (up to a mean and
# learned gains), and so keeps it on a sphere. *Post-LN* norms the sum, $x\leftarrow N(x+f(x))$:
# this is the sphere of the theory. *Pre-LN* norms what is read, $y\leftarrow y+f(N(y))$: tokens
# live in $\mathbb R^d$, their length $r$ grows, and the direction turns by $1/r$ of the force.
# *Peri-LN* norms what is read and what is added. *nGPT* norms the sum and what is added, and
# multiplies the latter by a gain $\alpha$.
#
# Orthogonal tokens keep one common cosine $\rho(t)$ under all of these, so the whole system is one
# or two equations, for $\rho$ and $r$ (arXiv 2510.22026). At the end $1-\rho$ falls like $e^{-2t}$
# with Post-LN and nGPT ($\alpha=1$), and only like $t^{-2}$ with Pre-LN and Peri-LN: at equal depth
# their tokens are farther from one point.

# %% Distance to consensus of 16 orthogonal tokens, $\beta=2$: tokens (marks) and theory (lines).
from tokenflock.plots import look, panels
from tokenflock.theory import normalised_flow

figure, axes = panels(1, 1, size=(6.4, 3))
tokens, last = Orthogonal(n=16, d=16), {}
with look(figure) as theme:
    for colour, norm in zip(theme.palette, ("post", "ngpt", "pre", "peri"), strict=False):
        run = flock.simulate(
            Block(norm=norm, beta=2.0), tokens, t=12, frames=25, solver=RK4(h=0.05)
        )
        y = run.x.values / np.linalg.norm(run.x.values, axis=-1, keepdims=True)
        gap = 0.5 * ((y[:, 0] - y[:, 1]) ** 2).sum(-1)  # 1 - cosine, without cancellation
        exact = 1 - np.asarray(normalised_flow(run.time.values, 16, 2.0, norm).rho)
        axes[0].semilogy(run.time, exact, color=colour)
        axes[0].semilogy(run.time, gap, "o", color=colour, markersize=4, label=norm)
        last[norm] = gap[-1]
        assert np.abs(gap - exact).max() < 1e-6
    axes[0].set(xlabel="depth $t$", ylabel=r"$1-\rho$")
    axes[0].legend(loc="lower left")
print({norm: f"{gap:.1e}" for norm, gap in last.items()})
assert last["post"] < 1e-7 < 1e-3 < last["pre"]
figure

# %% [markdown]
# ## A mask: who may listen
#
# A language model predicts the next word, so token $k$ listens to $j\le k$ only. The first token
# hears itself alone and cannot move. With $V=I$, from almost every start, all others end at it
# (Theorem 4.1 of arXiv 2411.04990), whatever $Q$, $K$ and $\beta\ge0$ are.

# %% Distance of 15 tokens to the first under a causal mask: the darker, the later in the text.
causal = flock.simulate(Block(mask="causal", beta=1.0), start, t=40, frames=81, solver=RK4(h=0.1))
away = np.linalg.norm(causal.x.values - causal.x.values[:, :1], axis=-1)
print(f"first token moved {np.abs(causal.x.values[:, 0] - causal.x.values[0, 0]).max():.0e},")
print(f"last token is {away[-1, -1]:.1e} from it at t = 40")
assert np.abs(causal.x.values[:, 0] - causal.x.values[0, 0]).max() < 1e-12 and away[-1].max() < 1e-4
figure, axes = panels(1, 1, size=(6.4, 2.8))
with look(figure) as theme:
    colours = theme.sequential(np.linspace(0.25, 0.95, 15))
    for k, colour in enumerate(colours, start=1):
        axes[0].semilogy(causal.time, away[:, k], color=colour, lw=1)
    axes[0].semilogy(causal.time, 5 * np.exp(-causal.time / 2), "--", color=theme.ink)
    axes[0].set(xlabel="time $t$", ylabel="distance to token 1", ylim=(1e-8, 5))
    axes[0].set_title(r"dashed: $e^{-t/2}$, the rate of the second token")
figure

# %% [markdown]
# ## Heads and a feed-forward part
#
# $H$ heads add up: $\sum_h\sum_jA^h_{ij}V_hx_j$, (2.7) of arXiv 2312.10794. The feed-forward part
# $W\sigma(Ax+b)$ acts on each token alone, (2.8). It can hold tokens apart that attention alone
# would bring together: here $2\tanh(x_1)e_1$ pulls each token towards the pole on its side.

# %% Live: this block. Drag $\beta$; the feed-forward part keeps two groups apart.
from tokenflock.parts import TwoLayers

pull = np.zeros((3, 3))
pull[0, 0] = 2.0
apart = Block(feed_forward=TwoLayers(W=pull, A=np.eye(3), activation="tanh"), beta=1.0)
flock.lab(apart, Uniform(n=64, d=3), embed=True, play=True)

# %%
from tokenflock.observables import ClusterCount

counts = {}
for name, law in (("attention alone", Block(beta=1.0)), ("with feed-forward part", apart)):
    end = flock.simulate(law, Uniform(n=64, d=3), t=60, solver=RK4(h=0.2), observe=[ClusterCount()])
    counts[name] = int(end.cluster_count[-1])
print(counts)
assert list(counts.values()) == [1, 2]

# %% [markdown]
# ## Exercises
#
# 1. Why must the second token of a causal model approach the first like $e^{-t/2}$?

# %% [markdown] tags=["answer"]
# Near consensus all logits are equal, so token $k$ hears $\frac1k$ of each token up to itself:
# $\dot x_k=\frac1k\sum_{j<k}(x_j-x_k)$. The matrix is triangular with $-(k-1)/k$ on the diagonal:
# $-\frac12,-\frac23,-\frac34,\dots$ The slowest is that of token 2. The spectrum says the same:

# %% tags=["answer"]
same = Given(np.tile([0.0, 0.0, 1.0], (4, 1)))
rates = np.unique(np.round(flock.spectrum(Block(mask="causal", beta=1.0), same).rate.values, 10))
print(rates)
assert np.allclose(rates, [-3 / 4, -2 / 3, -1 / 2, 0])

# %% [markdown]
# 2. Under Pre-LN, show $1-\rho\sim t^{-2}$ and check the exponent.

# %% [markdown] tags=["answer"]
# At consensus the force is the token's own direction, so $\dot r=1$ and $r\approx t$. The cosine
# obeys the equation of the sphere with its speed divided by $r$:
# $\frac{d}{dt}(1-\rho)=-\frac2t(1-\rho)$, hence $t^{-2}$. Between $t=200$ and $400$ the exponent
# differs from 2 by a few over 300.

# %% tags=["answer"]
gap = 1 - np.asarray(normalised_flow(np.array([200.0, 400.0]), 16, 2.0, "pre").rho)
exponent = np.log(gap[0] / gap[1]) / np.log(2)
print(f"exponent {exponent:.3f}")
assert abs(exponent - 2) < 0.05

# %% [markdown]
# 3. Two heads with $V_1=I$ and $V_2=-I$ and equal $Q,K$: what happens? And with
#    $\beta_1\ne\beta_2$?

# %% [markdown] tags=["answer"]
# With equal $Q,K$ the heads cancel and nothing moves. With $Q_1^\top K_1=4I$ and $Q_2^\top K_2=0$
# the force is "my neighbourhood minus the mean". Equiangular tokens then part: the first head
# gives each other token less than $\frac1n$, because it hears itself more, and the second takes
# $\frac1n$.

# %% tags=["answer"]
from tokenflock.parts import GivenHeads

V = np.stack([np.eye(8), -np.eye(8)])
Q = np.stack([4 * np.eye(8), 0 * np.eye(8)])
for name, heads in (("equal", GivenHeads(V=V)), ("beta 4 and 0", GivenHeads(V=V, Q=Q))):
    run = flock.simulate(Block(heads=heads), Equiangular(n=8, d=8, rho=0.5), t=1, solver=RK4(h=0.1))
    ends = [float(run.x[k, 0] @ run.x[k, 1]) for k in (0, -1)]
    print(f"{name}: cosine {ends[0]:.4f} -> {ends[1]:.4f}")
    assert abs(ends[1] - 0.5) < 1e-12 if name == "equal" else ends[1] < 0.5

# %% [markdown]
# ## Where next
#
# [Noise](plot_12_noise.py). All parts: [A Transformer block, part by part](../../docs/block.md).
# Checked claims: `tokenflock reproduce normalization causal`.
