# %% [markdown]
# # Steering: what attention can express
#
# Turn the question round. Instead of asking what a given law does, choose the law (Q, K, V and
# the feed-forward part, layer by layer) so that given clouds of tokens end where you want them.
#
# This is the approximation question of arXiv 2411.04551: which measures can *one* Transformer
# carry to which, all at once? The answer there: finitely many measures that can be told apart can
# be carried to as many targets, with weights that are constant on pieces of time.
#
# ## What no feed-forward part can do
#
# A residual network moves each token alone, so a token at one place goes to one place. Attention
# sees the company: the same token in two clouds moves in two ways. That is what context means.

# %%
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import NeuralODE, SelfAttention
from tokenflock.solvers import RK4
from tokenflock.starts import Given

shared = np.array([[0.0, 0.0, 1.0]])
rng = np.random.default_rng(0)
apart = (np.array([3, 0, 0]), np.array([-3, 0, 0]))
companies = [np.concatenate([shared, rng.normal(size=(5, 3)) + side]) for side in apart]
gap = {}
for name, law in (
    ("attention", SelfAttention(beta=1.0)),
    ("feed-forward", NeuralODE(W=np.eye(3), A=rng.normal(size=(3, 3)), activation="tanh")),
):
    runs = [flock.simulate(law, Given(x), t=2, solver=RK4(h=0.1)) for x in companies]
    ends = [run.x.values[-1, 0] for run in runs]
    gap[name] = np.linalg.norm(ends[0] - ends[1])
    print(f"{name}: the shared token ends {gap[name]:.2f} apart")
assert gap["attention"] > 0.5 and gap["feed-forward"] == 0

# %% [markdown]
# ## Looking for a law
#
# `steer` looks for $Q,K,V$ of several heads and a feed-forward part $W\tanh(Ax+b)$, constant on
# pieces of time. It minimises the mean of $W_2^2$ (squared Wasserstein distance, lesson
# [5](plot_05_energy.py)) between where the clouds end and their targets, by Adam, a form of
# gradient descent, with gradients through the flow. Each cloud is a system of its own; the law is
# the same for all.

# %% Three clouds, their ways and their targets (crosses) on the sphere; the loss of the search.
from tokenflock.plots import steering
from tokenflock.steering import clouds, laws

inputs = clouds(3, 6, d=3)
targets = clouds(3, 1, d=3, seed=1)[:, 0]
found = flock.steer(inputs, targets, pieces=3, heads=2, width=8, t=3.0, steps=200)
distance = found.W2.values
print("W2 of each cloud to its target:", distance.round(3))
assert distance.max() < 0.1
steering(found)

# %% [markdown]
# What was found is a list of laws of the catalogue, one for each piece of time. They can be
# saved, simulated and looked at like any other.

# %% Live: the first piece that was found, on 64 random tokens.
from tokenflock.starts import Uniform

pieces = laws(found)
print(
    len(pieces), "laws of type", type(pieces[0]).__name__, "each for a time", found.attrs["period"]
)
flock.lab(pieces[0], Uniform(n=64, d=3), embed=True, play=True)

# %% [markdown]
# ## A piece by hand
#
# Proofs build such laws from simple pieces. The simplest is a constant drift: $\dot x=P_xw$
# carries (almost) everything to $\hat w=w/|w|$, with
# $\langle x,\hat w\rangle=\tanh(|w|t+\operatorname{artanh}\langle x_0,\hat w\rangle)$.

# %%
from tokenflock.dynamics import Block
from tokenflock.parts import TwoLayers

w = np.array([0.0, 3.0, 4.0])
drift = Block(heads="none", feed_forward=TwoLayers(W=np.zeros((3, 1)), A=np.zeros((1, 3)), b=w))
run = flock.simulate(drift, Uniform(n=50, d=3), t=1, frames=11, solver=RK4(h=0.005))
height = run.x.values @ w / 5
exact = np.tanh(5 * run.time.values[:, None] + np.arctanh(height[0]))
print(f"farthest from the formula: {np.abs(height - exact).max():.1e}")
assert np.abs(height - exact).max() < 1e-7  # RK4 with |w| h = 0.025

# %% [markdown]
# ## What cannot be done
#
# Tokens that coincide stay together, and the order of tokens does not matter (Remark 2.2 of arXiv
# 2312.10794: permuting the input permutes the output). So a target must not split equal tokens,
# and positions must be written into the tokens. On the circle there is one limit more, the third
# exercise.
#
# ## Exercises
#
# 1. Derive the formula of the drift.

# %% [markdown] tags=["answer"]
# With $c=\langle x,\hat w\rangle$: $\dot c=\langle P_xw,\hat w\rangle=|w|(1-c^2)$, and
# $\frac{d}{dt}\operatorname{artanh}c=\dot c/(1-c^2)=|w|$. Only $x=-\hat w$ stays behind.

# %% [markdown]
# 2. Check permutation equivariance for the laws that were found.

# %% tags=["answer"]
shuffle = np.array([3, 0, 5, 1, 4, 2])
straight = flock.simulate(pieces[0], inputs[0], t=1, solver=RK4(h=0.1)).x.values[-1]
shuffled = flock.simulate(pieces[0], inputs[0][shuffle], t=1, solver=RK4(h=0.1)).x.values[-1]
print(f"difference {np.abs(straight[shuffle] - shuffled).max():.0e}")
assert np.abs(straight[shuffle] - shuffled).max() < 1e-12

# %% [markdown]
# 3. Three clouds of one token each, at angles 0, 120, 240 degrees. Can they be carried to 0, 240,
#    120 degrees on the circle? On the sphere?

# %% [markdown] tags=["answer"]
# A cloud of one token hears itself only, so all three move in one vector field. On the circle a
# flow keeps the cyclic order, so the swap is impossible whatever the law. On the sphere there is
# room to pass.

# %% tags=["answer"]
angle = 2 * np.pi * np.arange(3) / 3
flat = np.stack([np.cos(angle), np.sin(angle)], axis=1)
solid = np.concatenate([flat, np.zeros((3, 1))], axis=1)
reached = {}
for name, points, steps in (("circle", flat, 50), ("sphere", solid, 150)):  # no search helps there
    swap = points[[0, 2, 1]]
    options = {"pieces": 3, "heads": 1, "width": 8, "t": 3.0, "steps": steps}
    result = flock.steer(points[:, None], swap, **options)
    reached[name] = float(result.W2.max())
    print(f"{name}: worst W2 {reached[name]:.3f}")
assert reached["circle"] > np.pi / 3 - 1e-6 and reached["sphere"] < 0.2

# %% [markdown] tags=["answer"]
# On the circle at least one token must stay $\frac\pi3=1.047$ away. Proof: let every token be
# closer than $\frac\pi3$ to its target. The three open arcs of that half width about the targets
# do not overlap, so the tokens would have the cyclic order of the targets, which is the wrong
# one.

# %% [markdown]
# ## Where next
#
# [Open problems](plot_16_open_problems.py). More:
# [gradients, spectra, steering](../../docs/gradients.md).
