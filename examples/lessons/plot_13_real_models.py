# %% [markdown]
# # Real models
#
# Do the tokens of a real Transformer cluster? `probe` runs a model and gives its tokens layer by
# layer in the shape of a simulation, so that every observable and plot of this library takes it.
#
# Nothing is fetched here: we build an ALBERT in place, with random weights, and train a GPT for a
# few seconds. With a folder of a trained model the same lines give its tokens
# (`flock.probe("./albert-base-v2", texts)`); what two trained ALBERTs did is told below. Needs
# `pip install 'tokenflock[models]'`, which brings torch and transformers.
#
# ## An ALBERT with random weights
#
# ALBERT passes every token through one and the same layer again and again: of all models it is
# nearest to a flow that does not change in time. A layer has attention, a feed-forward part, and
# a layer norm after each (Post-LN). Weights have the size of a real ALBERT's: entries of standard
# deviation $0.55/\sqrt d$, which for $d=768$ is the usual 0.02.

# %%
import logging
import warnings

import numpy as np
import torch
import transformers

import tokenflock as flock
from tokenflock.observables import ClusterCount, MeanCosine
from tokenflock.probing import Text

warnings.filterwarnings("ignore")
logging.getLogger("transformers").setLevel(logging.ERROR)
torch.manual_seed(0)
config = transformers.AlbertConfig(
    vocab_size=100,
    embedding_size=32,
    hidden_size=64,
    num_attention_heads=4,
    intermediate_size=256,
    num_hidden_layers=12,
    max_position_embeddings=64,
    initializer_range=0.55 / 8,
)
model = transformers.AlbertModel(config).eval()
ids = tuple(int(k) for k in np.random.default_rng(0).integers(5, 100, 40))
text = [Text("forty random ids", ids)]
measures = [MeanCosine(), ClusterCount(delta=0.1)]
layers = flock.probe(model, text, depth=24, observe=measures).isel(prompt=0)
for k in (0, 4, 12, 24):
    here = layers.sel(layer=k)
    print(
        f"pass {k}: mean cosine {float(here.mean_cosine):.2f}, {int(here.cluster_count)} clusters"
    )
assert float(layers.mean_cosine[-1]) > 0.9 > float(layers.mean_cosine[0])

# %% Tokens of the untrained model draw together with every pass: the collapse of the theory.
from tokenflock.plots import histogram_over_time

histogram_over_time(layers)

# %% Live: the tokens of this model, pass by pass, in their three principal directions.
flock.lab(layers, embed=True, play=True)

# %% [markdown]
# ## The model in the letters of the theory
#
# A head of width $m$ has $Q,K,V$ and an output matrix $O$. The layer norm gives tokens the length
# $R=\sqrt d$, so a head acts on the unit sphere about like $\beta=R^2\|Q^\top K\|/\sqrt{md}$, with
# the Frobenius norm: $\beta I$ has the norm $\beta\sqrt d$. `particle_system` computes it. Are
# these matrices all there is? Run a layer again from them alone and compare.

# %%
from tokenflock.probing import extract, load, particle_system, reconstruction

system = particle_system(model)
whole = flock.probe(model, text)
off = float(np.max(reconstruction(extract(load(model)), whole)))
print("beta of the four heads:", system.beta.values[0].round(2))
drawn = float((system.values_of_all[..., 0] > 0).mean())
print(f"share of eigenvalues of the values with positive real part: {drawn:.2f}")
print(f"a layer run again from its matrices is off by {off:.0e} (float32)")
assert off < 1e-4

# %% [markdown]
# ## What trained ALBERTs did
#
# Two real ones, passed up to eight times their depth ([all numbers](../../docs/real-models.md)).
# Mean cosine, and in brackets clusters of tokens with cosine above 0.9:
#
# | passes | 0 | 12 | 48 | 96 |
# |---|---|---|---|---|
# | plbert (phonemes), trained | 0.06 (384) | 0.51 (300) | 0.50 (77) | 0.55 (71) |
# | rxnmapper (chemistry), trained | 0.11 (51) | 0.20 (52) | 0.26 (40) | 0.26 (30) |
# | rxnmapper, untrained | 0.41 (58) | 0.62 (56) | 0.98 (1) | 1.00 (1) |
#
# So the collapse is real for random weights, and trained models avoid it. What keeps tokens apart
# is in the norms: gain and shift, which the theory's sphere does not have. With both taken out,
# rxnmapper's mean cosine after 24 passes is 1.00 instead of 0.22. And what does come together
# means something: 96 % of plbert's near pairs are the same phoneme, where 5 % of all pairs are.
#
# ## Following a trained model with the theory
#
# `follow` runs the idealised dynamics beside a model, from the model's own embeddings and with
# its matrices: attention alone on the sphere, then with the feed-forward part, then with the true
# layer norms, then everything. Here for a small GPT (two layers, trained for 150 steps on
# Python's own manual).

# %% How near each idealisation comes to the model: 1 means the same tokens.
import tempfile

from tokenflock.gpt import Schedule, Shape, train
from tokenflock.plots import look, panels
from tokenflock.probing import follow

folder = tempfile.mkdtemp() + "/gpt"
shape = Shape(context=32, width=32, heads=2, depth=2)
train(folder, shape=shape, schedule=Schedule(steps=150, rate=3e-3, warmup=20, every=150))
told = follow(folder, "The list of all names that").isel(prompt=0)
last = told.alignment.isel(layer=-1)
print({str(name): round(float(last.sel(system=name)), 3) for name in told.system.values})
assert float(last.sel(system="everything")) > 0.999
assert float(last.sel(system="feed-forward")) > float(last.sel(system="attention"))
figure, axes = panels(1, 1, size=(6.4, 2.6))
with look(figure) as theme:
    axes[0].barh([str(name) for name in told.system.values], last.values, color=theme.palette[0])
    axes[0].set(xlabel="cosine between a token and the model's", xlim=(0, 1))
    axes[0].invert_yaxis()
figure

# %% [markdown]
# ## Exercises
#
# 1. The first pass of plbert raises the mean cosine from 0.06 to 0.33. Is a mean cosine of 0.33 a
#    sign of clusters?

# %% [markdown] tags=["answer"]
# No. Add one common vector $c$ to tokens of length 1 that are otherwise orthogonal: all cosines
# become $|c|^2/(1+|c|^2)$, which is 0.33 at $|c|=0.7$, and there is no cluster at all. A layer's
# bias does this. Look at the share of near pairs and at clusters, not at the mean alone.

# %% tags=["answer"]
tokens = np.eye(40, 64)
tokens[:, -1] = 0.7
unit = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
mean = (unit @ unit.T).sum() / (40 * 39) - 1 / 39
near = (unit @ unit.T > 0.9).sum() - 40
print(f"mean cosine {mean:.4f} = {0.49 / 1.49:.4f}; pairs above 0.9: {near}")
assert abs(mean - 0.49 / 1.49) < 1e-12

# %% [markdown]
# 2. Does the collapse of the untrained model need attention? Set the values to zero and see.

# %% tags=["answer"]
with torch.no_grad():
    for name, weight in model.named_parameters():
        if "attention.value" in name:
            weight.zero_()
alone = flock.probe(model, text, depth=24, observe=[MeanCosine()]).isel(prompt=0)
with_, without = float(layers.mean_cosine[-1]), float(alone.mean_cosine[-1])
print(f"mean cosine after 24 passes: with attention {with_:.2f}, without {without:.2f}")
assert without < 0.7 < 0.9 < with_

# %% [markdown] tags=["answer"]
# It does. Without attention each token moves alone, and the mean cosine stays where it began, near
# 0.45.

# %% [markdown]
# ## Where next
#
# [Train a small GPT and watch its tokens](plot_14_training.py).
