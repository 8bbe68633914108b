# %% [markdown]
# # What a Transformer computes
#
# Self-attention, positions, the causal mask and layer norm, each in a few lines of NumPy. Put
# together they are a GPT: the logits agree with those of `tokenflock.gpt` to rounding.
#
# A text is cut into *tokens*; here a token is a character. Each becomes a vector in $\mathbb{R}^d$,
# a row of a table. A Transformer moves all $n$ vectors at once, layer by layer, and reads a guess
# of the next token off each: one number for each possible token, its *logit*, which is the
# logarithm of a probability up to a constant. That is all: $n$ points in $\mathbb{R}^d$ that move.
# Sources: arXiv 1706.03762 for the architecture, Section 2 of arXiv 2312.10794 for the view taken
# here.

# %%
import jax
import numpy as np

import tokenflock as flock
from tokenflock.dynamics import Causal
from tokenflock.gpt import GPT, Shape
from tokenflock.plots import look, panels
from tokenflock.starts import Uniform

text = "to be or not to be"
letters = sorted(set(text))
ids = np.array([letters.index(letter) for letter in text])
n, d = len(ids), 16
rng = np.random.default_rng(0)
x = rng.normal(size=(len(letters), d))[ids]  # (n, d): equal letters, equal rows
print(f"{n} tokens, {len(letters)} letters, ids {ids}")

# %% [markdown]
# ## Self-attention
#
# Three matrices give each token a query, a key and a value. Token $i$ compares its query with all
# keys, turns the $n$ numbers into weights that sum to one, and takes the mean of the values:
#
# $$y_i=\sum_{j=1}^n A_{ij}\,Vx_j,\qquad
#   A_{ij}=\frac{e^{\langle Qx_i,Kx_j\rangle/\sqrt m}}
#   {\sum_k e^{\langle Qx_i,Kx_k\rangle/\sqrt m}}.$$
#
# $Q$, $K$ and $V$ have $m$ rows. The exponents are called logits too, and turning logits into
# weights by exponentials is called *softmax*. In the code tokens are rows and matrices are
# transposed: $Qx_i$ is a row of `x @ Q`.
#
# This is the only place in a Transformer where tokens see each other. It is blind to their order:
# permute the input, and the output is permuted (Remark 2.2 of arXiv 2312.10794).


# %%
def softmax(S):
    E = np.exp(S - S.max(axis=-1, keepdims=True))  # the shift cancels, and nothing overflows
    return E / E.sum(axis=-1, keepdims=True)


def attention(x, Q, K, V, causal=False):
    S = (x @ Q) @ (x @ K).T / np.sqrt(Q.shape[1])  # (n, n): row i asks, column j answers
    if causal:
        S = np.where(np.tri(len(x), dtype=bool), S, -np.inf)  # token i sees j only if j <= i
    A = softmax(S)
    return A @ (x @ V), A


Q, K, V = rng.normal(size=(3, d, d)) / np.sqrt(d)
y, A = attention(x, Q, K, V)
order = rng.permutation(n)
assert np.allclose(A.sum(axis=1), 1, atol=1e-14)
assert np.allclose(attention(x[order], Q, K, V)[0], y[order], atol=1e-12)

# %% [markdown]
# ## Positions
#
# "dog bites man" is not "man bites dog", so the place of a token must enter. The oldest way adds a
# vector of sines and cosines, $p_t=(\sin\omega_kt,\cos\omega_kt)_k$ with $\omega_k=10000^{-2k/d}$.
# Its point: $\langle p_s,p_t\rangle=\sum_k\cos\omega_k(s-t)$ depends on the distance $s-t$ alone.

# %%
angle = np.arange(n)[:, None] * 10_000.0 ** (-np.arange(d // 2) / (d // 2))
p = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
assert np.allclose(np.diag(p @ p.T, 3), (p @ p.T)[0, 3], atol=1e-12)  # one value for each distance
placed, A_placed = attention(x + p, Q, K, V)
first, last = 0, text.rindex("t")  # two letters t
print(f"same letter, without places: |y - y'| = {np.abs(y[first] - y[last]).max():.1e}")
print(f"same letter, with places:    |y - y'| = {np.abs(placed[first] - placed[last]).max():.2f}")
assert np.allclose(y[first], y[last], atol=1e-12) and not np.allclose(placed[first], placed[last])

# %% [markdown]
# ## Sequence modelling
#
# The model guesses token $t+1$ from tokens $1,\dots,t$:
# $p(\text{text})=\prod_tp(x_{t+1}\mid x_{\le t})$. One pass trains all $n$ guesses, provided that
# no token sees the future. So entries above the diagonal of $A$ are zero: their logits are set to
# $-\infty$ before the softmax. The first row is then $(1,0,\dots)$: the first token hears only
# itself.

# %% Attention of the 18 letters: blind to order (left), with places, with places and a causal mask.
causal, A_causal = attention(x + p, Q, K, V, causal=True)
changed = (x + p).copy()
changed[-1] = 0  # another last token changes nothing before it
assert np.array_equal(attention(changed, Q, K, V, causal=True)[0][:-1], causal[:-1])
assert np.allclose(causal[0], (x + p)[0] @ V, atol=1e-14)  # the first hears itself
with look():
    figure, axes = panels(1, 3, size=(2.5, 2.6))
    for ax, matrix, title in zip(axes, (A, A_placed, A_causal), ("plain", "places", "causal")):
        ax.imshow(np.sqrt(matrix), cmap="Blues", vmin=0, vmax=1)  # the root shows small entries
        ax.set(title=title, xticks=range(n), yticks=range(n), xlabel="is heard")
        ax.set_xticklabels(text.replace(" ", "_"), fontsize=7)
        ax.set_yticklabels(text.replace(" ", "_"), fontsize=7)
    axes[0].set_ylabel("listens")
figure

# %% [markdown]
# ## Layer norm
#
# $\operatorname{norm}(x)=(x-\bar x)/\sqrt{\operatorname{var}x+\varepsilon}$, with mean and variance
# over the $d$ coordinates of one token; $\varepsilon=10^{-5}$ only keeps the root from zero. It
# takes off the mean and fixes the length: up to $\varepsilon$ the image is the sphere of radius
# $\sqrt d$ in the hyperplane $\sum_kx_k=0$. A reader of gradient flows should see a projection to
# $\mathbb{S}^{d-2}$. Trained models then stretch and shift each coordinate; that is left out here.
# Lesson [3](plot_03_sphere.py) starts from the sphere.
#
# ## All of it: a GPT
#
# A layer adds attention to the token, then a *perceptron* that acts on each token alone: a matrix,
# a scalar function (gelu, a smooth $\max(x,0)$), a matrix. Each part reads the normed token
# (*pre-norm*). *Heads* are $H$ attentions of width $m=d/H$, each with its own $Q$, $K$ and $V$;
# their outputs are put side by side and mixed by one more matrix. After the last layer the logits
# at a place are the products of its normed token with every row of the table that the tokens came
# from. What training makes small is the *loss*, the mean of $-\log p$ of the token that did come
# next.


# %%
def norm(x):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def by_hand(model, ids):
    """The logits of `model`, and the tokens before and after each layer."""
    x = np.asarray(model.token)[ids] + np.asarray(model.place)[: len(ids)]
    path = [x]
    for block in model.blocks:
        parts = np.split(np.asarray(block.attention.qkv), 3, axis=1)
        heads = zip(*(np.split(part, block.attention.heads, axis=1) for part in parts))
        u = norm(x)
        y = np.concatenate([attention(u, *head, causal=True)[0] for head in heads], axis=1)
        x = x + y @ np.asarray(block.attention.mix)
        x = x + gelu(norm(x) @ np.asarray(block.perceptron.up)) @ np.asarray(block.perceptron.down)
        path.append(x)
    return norm(x) @ np.asarray(model.token).T, np.stack(path)


shape = Shape(vocab=len(letters), context=32, width=32, heads=4, depth=3)
model = GPT(shape, jax.random.key(0))
logits, path = by_hand(model, ids)
apart = np.abs(np.asarray(model(ids[None]))[0] - logits).max()
loss = np.mean(np.log(np.exp(logits[:-1]).sum(axis=1)) - logits[np.arange(n - 1), ids[1:]])
print(f"by hand and by the library, logits differ by {apart:.1e}")
print(f"loss of fresh weights {loss:.3f}, of guessing blindly log {len(letters)} ="
      f" {np.log(len(letters)):.3f}")  # fmt: skip
assert apart < 1e-5  # single precision
assert abs(loss - np.log(len(letters))) < 0.45  # the size of a fresh logit, see below
assert np.allclose(np.linalg.norm(norm(path[-1]), axis=1), np.sqrt(32), rtol=0.02)

# %% [markdown]
# The loss is a little above blind guessing, because a fresh model expects each letter again. One
# table embeds and reads off. Its entries, and those of the places, have standard deviation 0.02, so
# the norm divides their sum by $0.02\sqrt2$, and the letter's own logit is about
# $32\cdot0.02^2/(0.02\sqrt2)=0.45$. Training changes the numbers in the matrices, not this
# computation; lesson [14](plot_14_training.py) does it.
#
# Take out everything that is learned ($Q=K=V=I$, one head, no perceptron, tokens kept on a sphere)
# and this is left. Token 1 never moves, since it hears only itself. From almost every start all
# others follow it in the end (Theorem 4.1 of arXiv 2411.04990).

# %% Live: causal attention on a sphere. $\beta$ stands for $1/\sqrt m$ and the size of $Q$ and $K$.
flock.lab(Causal(beta=4.0), Uniform(n=32, d=3), embed=True, play=True)

# %% [markdown]
# ## Exercises
#
# 1. Multiply the logits by $\beta$. What is $A$ at $\beta=0$ with the causal mask? As
#    $\beta\to\infty$?

# %% [markdown] tags=["answer"]
# At $\beta=0$ row $i$ is $(1/i,\dots,1/i,0,\dots)$: the mean of the past. As $\beta\to\infty$ the
# whole weight goes to the key with the largest logit: *hardmax*.

# %% tags=["answer"]
flat, hard = (attention(x + p, b * Q, K, V, causal=True)[1] for b in (0, 1e4))
assert np.allclose(flat, np.tri(n) / np.arange(1, n + 1)[:, None], atol=1e-15)
assert np.allclose(hard.max(axis=1), 1, atol=1e-12)

# %% [markdown]
# 2. Why divide by $\sqrt m$?

# %% [markdown] tags=["answer"]
# For independent entries of variance one, $\langle q,k\rangle$ is a sum of $m$ products of variance
# one: its variance is $m$. Undivided logits grow like $\sqrt m$, and softmax becomes hardmax.

# %% tags=["answer"]
q, k = rng.normal(size=(2, 20_000, 64))
variance = np.var(np.sum(q * k, axis=1))
print(f"variance of <q, k> for m = 64: {variance:.1f}")
assert abs(variance / 64 - 1) < 5 * np.sqrt(2.1 / 20_000)  # five standard errors

# %% [markdown]
# ## Where next
#
# How this differs from networks that came before: lesson [2](plot_02_depth.py). How the small GPT
# is built, one idea at a time, and what its tokens do: [small GPTs](../../docs/small-gpts.md).
