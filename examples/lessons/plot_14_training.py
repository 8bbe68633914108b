# %% [markdown]
# # Training a small GPT and watching its tokens
#
# A GPT of 90,000 weights learns to continue Python's manual in seconds, and we watch its tokens
# while it learns. Learning begins with the collapse that the theory predicts, and then undoes it.
#
# A GPT reads letters $1,\dots,k$ and gives each possible letter $k+1$ a probability. Every letter
# is a token in $\mathbb R^{48}$; three layers of attention (causal: token $k$ hears $j\le k$) and
# feed-forward parts move the tokens; each place is read off by comparing its token with those of
# all letters. Training changes the weights to lower the loss $-\log p(\text{next letter})$, a
# natural logarithm and so in *nats*. The model is `tokenflock.gpt`, six files to be read in one
# sitting.

# %%
import tempfile

import numpy as np
import xarray as xr

import tokenflock as flock
from tokenflock.gpt import Schedule, Shape, load, sample, train
from tokenflock.gpt.text import read

folder = tempfile.mkdtemp() + "/gpt"
losses = {}
checkpoint = train(
    folder,
    shape=Shape(context=32, width=48, heads=4, depth=3),
    schedule=Schedule(steps=400, rate=3e-3, warmup=40, every=400, chunk=20),
    watch=(0, 4, 10, 20, 40, 100, 200, 400),
    tell=lambda progress: losses.update({progress.step: progress.loss}),
)
letters = len(set(read()))
first, last = losses[min(losses)], losses[400]
print(f"{letters} letters: a blind guess costs {np.log(letters):.2f} nats")
print(f"loss in the first steps {first:.2f}, in the last {last:.2f}")
assert abs(first - np.log(letters)) < 0.2 and last < 3

# %% Mean cosine, clusters and effective rank of each layer while the model learns.
from tokenflock.plots import training

watch = xr.load_dataset(folder + "/watch.nc")
training(watch)

# %% [markdown]
# ## First a collapse
#
# At step 0 the tokens are in random directions. Within 20 steps the last layer is *one cluster*:
# mean cosine 1.00. The first thing to learn is how often each letter occurs, and for that all
# tokens may as well be the same. Then they part, and at step 400 there are about 16 clusters of
# the 32 tokens. Consensus is where training starts from, not where it ends.

# %%
cosine = watch.mean_cosine.mean("prompt").isel(layer=-1)
clusters = watch.cluster_count.mean("prompt").isel(layer=-1)
for step in (0, 20, 400):
    here, groups = float(cosine.sel(step=step)), float(clusters.sel(step=step))
    print(f"step {step}: mean cosine {here:.2f}, {groups:.1f} clusters")
assert float(cosine.sel(step=20)) > 0.97 and float(clusters.sel(step=20)) < 2
assert float(cosine.sel(step=400)) < 0.7 and float(clusters.sel(step=400)) > 8

# %% [markdown]
# ## What comes together is the same letter
#
# Which tokens are near (cosine above 0.9) in the last layer? Compare with chance: the share of
# all pairs that are the same letter.

# %%
probe = flock.gpt.probe(folder)
near, same = [], []
for prompt in range(probe.sizes["prompt"]):
    x = probe.x.values[prompt, -1]
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    ids = probe.id.values[prompt]
    pairs = np.triu_indices(len(ids), 1)
    near.append((x @ x.T)[pairs] > 0.9)
    same.append((ids[:, None] == ids)[pairs])
near, same = np.concatenate(near), np.concatenate(same)
print(
    f"{same.mean():.3f} of all pairs are the same letter, {same[near].mean():.3f} of the near ones"
)
assert same[near].mean() > 0.8 > 0.3 > same.mean()

# %% The letters of one passage in the plane of their principal axes, before and after the layers.
from tokenflock.plots import panels, plane

spaces = (probe.word == " ").sum("token").values
passage = probe.isel(prompt=int(spaces.argmin()))  # the one with the most letters
figure, axes = panels(1, 2, size=(3.6, 3.2))
for ax, layer in zip(axes, (0, 3), strict=True):
    plane(passage, ax=ax, at=layer)
figure

# %% Live: the same passage, layer by layer, on the sphere of its three principal directions.
flock.lab(passage, embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. While all tokens are one cluster, what is the best loss? Compute it from the text, and find
#    when the training passed it.

# %% [markdown] tags=["answer"]
# If the last layer is the same vector everywhere, every letter gets the same prediction, and the
# best one is the frequency of letters. The loss is then their entropy $H=-\sum_ap_a\log p_a$, and
# no collapsed model goes below it.

# %% tags=["answer"]
text = read()
_, counts = np.unique(list(text), return_counts=True)
p = counts / counts.sum()
entropy = -(p * np.log(p)).sum()
below = min(step for step, loss in losses.items() if loss < entropy)
print(f"entropy {entropy:.3f} nats; the loss is below it from step {below} on")
assert losses[20] > entropy > losses[400]

# %% [markdown]
# 2. And what could a model do that sees only the letter before?

# %% [markdown] tags=["answer"]
# The conditional entropy $H(\text{next}\mid\text{this})$, which a table of pairs attains (the
# bigram, the first rung of `tokenflock gpt ladder`). To go below it a model must look further
# back, and for that it needs attention. 400 steps come near it; the preset `cpu` (2,000 steps of
# a model 9 times as large) goes to 1.32 ([small GPTs](../../docs/small-gpts.md)).

# %% tags=["answer"]
letter = np.unique(list(text), return_inverse=True)[1]
table = np.zeros((letters, letters))
np.add.at(table, (letter[:-1], letter[1:]), 1)
joint = table / table.sum()
seen = joint[joint > 0]
bigram = -(seen * np.log(seen)).sum() - entropy
print(f"H(next | this) = {bigram:.3f} nats; our loss {losses[400]:.3f}")
print(repr(sample(folder, "The ", 60)))
assert bigram < entropy

# %% [markdown]
# 3. Change the last letter of a passage. Which tokens of which layers change?

# %% [markdown] tags=["answer"]
# Only the last one, in every layer: the mask lets token $k$ hear $j\le k$.

# %% tags=["answer"]
model, ids = load(folder).model, np.array(passage.id.values)
other = ids.copy()
other[-1] = (other[-1] + 1) % letters
changed = np.abs(np.asarray(model(ids[None])) - np.asarray(model(other[None])))[0].max(axis=-1)
before, at = changed[:-1].max(), changed[-1]
print(f"predictions changed by {before:.0e} before the last place, by {at:.1e} there")
assert before < 1e-5 < at

# %% [markdown]
# ## Where next
#
# [Steering: what attention can express](plot_15_steering.py). All of this at full size, with a
# verdict for each sentence: `tokenflock reproduce small-gpt`.
