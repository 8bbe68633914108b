"""One layer of a trained Transformer as matrices, and the map that they make: attention,
feed-forward part, layer norms.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tokenflock.dynamics._kernels import softmax
from tokenflock.dynamics.block import Block
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.frozen import Frozen
from tokenflock.parts import CausalMask, GivenHeads, LayerNorm, NoMask, Post, Pre, TwoLayers
from tokenflock.shapes import Array, Tokens, Weights

KNOWN = {  # activations as configs call them
    "gelu": Activation.EXACT_GELU,
    "gelu_new": Activation.GELU,
    "gelu_pytorch_tanh": Activation.GELU,
    "gelu_fast": Activation.GELU,
    "relu": Activation.RELU,
    "silu": Activation.SILU,
    "tanh": Activation.TANH,
}


class TrainedLayer(Frozen):
    """A layer of a trained Transformer.

        attention(x)_i = sum_h O_h sum_j A^h_ij (V_h x_j + v_h) + o,
        A^h_ij ~ e^{scale <Q_h x_i + q_h, K_h x_j + k_h>}
        mlp(x) = W sigma(A x + a) + b
        post:  y = N1(x + attention(x)),  x' = N2(y + mlp(y))        (BERT, ALBERT)
        pre:   y = x + attention(N1 x),   x' = y + mlp(N2 y)         (GPT-2)

    Q, K, V are (heads, m, d), O is (heads, d, m).
    """

    Q: Array
    K: Array
    V: Array
    O: Array
    q: Array
    k: Array
    v: Array
    o: Array
    A: Array
    a: Array
    W: Array
    b: Array
    first: LayerNorm
    second: LayerNorm
    scale: float
    activation: str
    pre: bool
    causal: bool

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.Q.shape[0]

    def attention_by_head(self, x: Tokens, w: Weights) -> Array:
        """The attention matrix of each head, (heads, n, n).

        Tokens of weight zero are not listened to.
        """
        Q = jnp.einsum("hmd,nd->hnm", self.Q, x) + self.q[:, None]
        K = jnp.einsum("hmd,nd->hnm", self.K, x) + self.k[:, None]
        logits = self.scale * (Q @ jnp.swapaxes(K, 1, 2))
        return softmax(logits, jnp.tri(len(w)) * w if self.causal else w)

    def attend(self, x: Tokens, w: Weights) -> Tokens:
        """What attention adds to each token."""
        V = jnp.einsum("hmd,nd->hnm", self.V, x) + self.v[:, None]
        return jnp.einsum("hdm,hnm->nd", self.O, self.attention_by_head(x, w) @ V) + self.o

    def feed(self, x: Tokens) -> Tokens:
        """What the feed-forward part adds to each token."""
        return KNOWN[self.activation](x @ self.A.T + self.a) @ self.W.T + self.b

    def after_attention(self, x: Tokens, w: Weights) -> Tokens:
        """The tokens between attention and the feed-forward part."""
        return x + self.attend(self.first(x), w) if self.pre else self.first(x + self.attend(x, w))

    def __call__(self, x: Tokens, w: Weights) -> Tokens:
        """The tokens after the layer."""
        y = self.after_attention(x, w)
        return y + self.feed(self.second(y)) if self.pre else self.second(y + self.feed(y))

    def as_block(self) -> Block:
        """The layer as a `Block`: one step of `Layer(h=1)` is the layer."""
        return Block(
            heads=GivenHeads(self.Q, self.K, self.V, self.O, self.q, self.k, self.v, self.o),
            mask=CausalMask() if self.causal else NoMask(),
            feed_forward=TwoLayers(self.W, self.A, self.a, self.b, KNOWN[self.activation]),
            norm=Pre(self.first, self.second) if self.pre else Post(self.first, self.second),
            beta=self.scale,
        )

    def without_biases(self) -> TrainedLayer:
        """The same with no biases but those inside the feed-forward part and the norms: what the
        theory keeps.
        """
        import equinox as eqx

        def biases(block: TrainedLayer) -> tuple[Array, ...]:
            return block.q, block.k, block.v, block.o, block.b

        return eqx.tree_at(biases, self, [np.zeros_like(bias) for bias in biases(self)])
