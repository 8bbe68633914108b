"""The whole Transformer block as one law."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Key

from tokenflock.catalogue import PARTS, part
from tokenflock.dynamics._matrices import Path, Switching, at
from tokenflock.dynamics.dynamics import Dynamics, Interaction
from tokenflock.dynamics.neural_ode import Activation
from tokenflock.errors import UserError, require
from tokenflock.frozen import choice, concrete
from tokenflock.parts.given_heads import GivenHeads
from tokenflock.parts.heads import HeadMatrices, Heads, by_head
from tokenflock.parts.mask import Mask
from tokenflock.parts.no_feed_forward import NoFeedForward
from tokenflock.parts.no_mask import NoMask
from tokenflock.parts.no_noise import NoNoise
from tokenflock.parts.no_positions import NoPositions
from tokenflock.parts.no_weighing import NoWeighing
from tokenflock.parts.noise import Noise
from tokenflock.parts.part import Part
from tokenflock.parts.placement import FIRST, SECOND, Placement
from tokenflock.parts.positions import Positions
from tokenflock.parts.post import Post
from tokenflock.parts.random_feed_forward import RandomFeedForward
from tokenflock.parts.random_heads import RandomHeads
from tokenflock.parts.softmax_weighing import SoftmaxWeighing
from tokenflock.parts.token_map import TokenMap
from tokenflock.parts.weighing import Logits, Weighing
from tokenflock.shapes import Array, Rows, Time, Tokens, Weights
from tokenflock.spaces import Space


class Block(Dynamics):
    """The Transformer block: one law made of named parts.

        dy_i/dt = attention_i(y) + feed_forward_i(y), on the sphere its tangent part,
        attention(y)_i = write( sum_h O_h sum_j A^h_ij V_h r_j ),   r_j = read(y_j),
        A^h = weigh( beta <Q_h r_i, K_h r_j> + bias_ij ) where i sees j

    `heads` say Q, K, V, O; `mask` who sees whom; `positions` turn queries and keys or add the bias;
    `attention` says how logits are weighed; `norm` what is read and written; `noise` shakes the
    stream. The flow adds attention and feed-forward part, the solver `Layer` applies them in turn.
    Parts may be named: `Block(heads=4, mask="causal", norm="pre")`. Every law of the catalogue that
    is made of such parts says so by `as_block()`. Source: (2.3) to (2.8) of arXiv 2312.10794, and
    what the parts cite.

    >>> Block(mask="causal", norm="pre", beta=2)
    Block(mask=CausalMask(strict=False), norm=Pre(first=None, second=None), beta=2.0)
    """

    cites: ClassVar[tuple[str, ...]] = ("geshkovski2025perspective",)
    on_chip: ClassVar[bool] = False  # no stacks of matrices there

    heads: Heads = GivenHeads()
    "how tokens ask, answer and speak: a number of random heads, given or none"
    mask: Mask = NoMask()
    "who listens to whom: none, causal, window or given"
    positions: Positions = NoPositions()
    "how attention knows places: none, rotary, alibi or relative-bias"
    attention: Weighing = SoftmaxWeighing()
    "how logits are weighed: softmax, none, sinkhorn, hardmax, sigmoid or linear"
    feed_forward: TokenMap = NoFeedForward()
    "what each token does by itself: none, two-layers, gated, or an activation with random weights"
    norm: Placement = Post()
    "the place of the norm: post, pre, peri, mix, ngpt, square-root or none"
    noise: Noise = NoNoise()
    "what shakes the stream: none, independent, common or value"
    beta: float | Path = 1.0
    "inverse temperature, a number or a function of time"

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type in PARTS and not isinstance(value, (Part, type)):
                object.__setattr__(self, field.name, _named(field.name, str(field.type), value))
        super().__post_init__()

    def __repr__(self) -> str:
        """What differs from one head of plain self-attention."""
        told = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain = {field.name: field.default for field in dataclasses.fields(self)}
        shown = {name: repr(value) for name, value in told.items()}
        return f"Block({', '.join(f'{k}={v}' for k, v in shown.items() if v != repr(plain[k]))})"

    def __check_init__(self) -> None:
        widths = {name: part.dimension for name, part in self.parts.items()}
        known = {name: d for name, d in widths.items() if d is not None}
        require(len(set(known.values())) <= 1, "Block", "parts on one R^d", f"widths {known}")
        count, wanted = self.heads.number, self.positions.heads
        require(
            wanted in (None, count), "Block.positions", f"for {count} heads", f"one for {wanted}"
        )
        refusal = self.attention.refusal(self.mask.causal, self.mask.symmetric)
        require(refusal is None, "Block.mask", refusal or "", type(self.mask).__name__)
        require(
            self.norm.takes_noise or not self.noise.there,
            "Block.noise",
            f"none with the norm {type(self.norm).__name__}, which holds the radius for a while",
            type(self.noise).__name__,
        )
        still = count > 0 or not self.noise.replaces_drift
        require(still, "Block.noise", "one that needs no attention, for there are no heads", "it")
        if isinstance(self.beta, Switching) and concrete(self.beta.values):
            single = np.ndim(self.beta.values) == 1
            require(single, "Block.beta", "numbers in time", f"shape {self.beta.values.shape}")

    @property
    def parts(self) -> dict[str, Part]:
        """The parts by name."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Part)}

    @property
    def space(self) -> Space:
        return self.norm.space

    @property
    def place(self) -> Placement:
        return self.norm

    def attention_by_head(self, t: Time, r: Tokens, w: Weights) -> Float[Array, "h n n"]:
        """The attention matrix of each head, for what it reads."""
        return self._weights(t, *self._asked(self.heads.matrices(t, r.shape[-1]), r, w), w)

    def _asked(
        self, M: HeadMatrices, r: Tokens, w: Weights
    ) -> tuple[Float[Array, "h n m"], Float[Array, "h n m"]]:
        """Queries and keys of each head, turned to their places."""
        count = self.heads.number
        Q = _biased(by_head(M.Q, r, count), M.q)
        K = _biased(by_head(M.K, r, count), M.k)
        return self.positions.turn(Q, w), self.positions.turn(K, w)

    def _weights(
        self, t: Time, Q: Float[Array, "h n m"], K: Float[Array, "h n m"], w: Weights
    ) -> Float[Array, "h n n"]:
        """The attention matrices of heads with these queries and keys."""
        beta = at(self.beta, t)
        S = beta * (Q @ jnp.swapaxes(K, 1, 2))
        bias, seen = self.positions.bias(w), self.mask.seen(w)

        def head(S: Rows, bias: Rows | None) -> Rows:
            return self.attention.weigh(Logits(S, bias, seen, beta), w)

        each = 0 if bias is not None and bias.ndim == 3 else None
        return jax.vmap(head, (0, each))(S, bias)

    def listen(
        self,
        t: Time,
        Q: Float[Array, "h n m"],
        K: Float[Array, "h n m"],
        V: Float[Array, "h n e"],
        w: Weights,
    ) -> tuple[Float[Array, "h n e"], Float[Array, "h n 1"]]:
        """(sum_j A_ij V_j, sum_j A_ij) of each head. An engine may know a way without A."""
        A = self._weights(t, Q, K, w)
        return A @ V, jnp.sum(A, axis=-1, keepdims=True)

    def attend(self, t: Time, r: Tokens, w: Weights) -> Tokens:
        """What attention says to each token, having read r."""
        M = self.heads.matrices(t, r.shape[-1])
        V = _biased(by_head(M.V, r, self.heads.number), M.v)
        heard, total = self.listen(t, *self._asked(M, r, w), V, w)
        if self.heads.says_differences:
            heard = heard - total * V
        said = by_head(M.O, heard, self.heads.number)
        u = self.heads.share * jnp.sum(said, axis=0)
        return u if M.o is None else u + M.o

    def attention_matrix(self, t: Time, x: Tokens, w: Weights) -> Rows:
        """The mean over heads of their attention matrices."""
        if self.heads.number == 0:
            return super().attention_matrix(t, x, w)
        return jnp.mean(self.attention_by_head(t, self.norm.read(x, FIRST), w), axis=0)

    @property
    def sublayers(self) -> tuple[Dynamics, ...]:
        attention, feeding = _Attention(self), _FeedForward(self)
        parts = ((self.heads.number > 0, attention), (self.feed_forward.there, feeding))
        return tuple(sublayer for there, sublayer in parts if there) or (attention,)

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return sum((part.force(t, x, w) for part in self.sublayers), jnp.zeros_like(x))

    def velocity(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        if not self.norm.flows:
            raise UserError(
                f"a block with the norm {type(self.norm).__name__} and learned gains is no flow:"
                " its gains act at h = 0 too; use the solver Layer(h=1)"
            )
        return super().velocity(t, x, w)

    def tangent(self, t: Time, x: Tokens, v: Tokens) -> Tokens:
        return self.norm.tangent(t, x, v)

    def shake(self, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]) -> Tokens:
        said = jnp.zeros_like(x)
        if self.heads.number > 0:
            said = self.attend(t, self.norm.read(x, FIRST), w)
        return self.noise.shake(key, x, said)

    @property
    def noisy(self) -> bool:
        return self.noise.there

    @property
    def smooth(self) -> bool:
        return self.attention.smooth

    @property
    def exchangeable(self) -> bool:
        return all(part.exchangeable for part in self.parts.values())

    @property
    def isotropic(self) -> bool:
        return all(part.isotropic for part in self.parts.values())

    @property
    def keeps_cones(self) -> bool:
        return all(part.keeps_cones for part in self.parts.values())

    @property
    def dimension(self) -> int | None:
        widths = [part.dimension for part in self.parts.values()]
        return next((d for d in widths if d is not None), None)

    @property
    def particles(self) -> int | None:
        counts = [part.particles for part in self.parts.values()]
        return next((n for n in counts if n is not None), None)

    @property
    def matrices_at(self) -> tuple[str, ...]:
        return ("heads",)

    @property
    def stack(self) -> int | None:
        return self.heads.number

    def with_matrices(self, Q: Any, V: Any) -> Block:
        require(self.heads.number > 0, "dynamics", "a block with heads", "one without")
        fresh = GivenHeads(Q=Q, V=V, average=self.heads.share != 1.0)
        return eqx.tree_at(lambda block: block.heads, self, fresh)

    @property
    def inverse_temperature(self) -> Any:
        return None if callable(self.beta) else self.beta

    @property
    def interaction(self) -> Interaction | None:
        plain = (NoMask, NoPositions, NoFeedForward, Post, NoNoise)
        parts = (self.mask, self.positions, self.feed_forward, self.norm, self.noise)
        alike = all(type(part) is kind for part, kind in zip(parts, plain))
        known = isinstance(self.attention, (SoftmaxWeighing, NoWeighing))
        fits = alike and known and self.norm.flows and self.heads.plain and not callable(self.beta)
        return Interaction(self.beta) if fits else None

    def as_block(self) -> Block:
        return self

    @classmethod
    def random(
        cls,
        heads: int,
        d: int,
        *,
        hidden: int = 4,
        activation: str | Activation = "gelu",
        scale: float = 1.0,
        seed: int = 0,
        **parts: Any,
    ) -> Block:
        """A block of a fresh model on R^d, its weights as arrays; pre-LN and causal unless `parts`
        say otherwise.

        Scales are those of `RandomHeads` and `RandomFeedForward`; scale = 0.02 sqrt(d) is GPT-2's.

        >>> Block.random(2, 8, norm="post").heads.Q.shape
        (2, 4, 8)
        """
        drawn = {
            "heads": RandomHeads(heads, scale=scale, seed=seed).draw(d),
            "feed_forward": RandomFeedForward(
                choice(Activation, activation, "activation"), hidden, scale, seed=seed
            ).draw(d),
            "mask": "causal",
            "norm": "pre",
        }
        return cls(**(drawn | parts))

    @classmethod
    def from_model(cls, model: Any, layer: int = 0) -> Block:
        """One layer of a real model, counted from 0: a step of `Layer(h=1)` is the layer.

        The model is what `tokenflock.probe` takes: a folder, a name on the hub, a model of
        transformers, or one that was trained here. What is no Block is refused by name.
        """
        return import_module("tokenflock.probing.laws").block_of(model, layer)

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Block:
        return cls.random(2, d, seed=seed, mask="none", norm="post", beta=1.5)


class _Sublayer(Dynamics):
    """One sublayer of a block: what it does to the stream."""

    block: Block

    @property
    def space(self) -> Space:
        return self.block.space


class _Attention(_Sublayer):
    """Attention."""

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        block = self.block
        if block.heads.number == 0 or block.noise.replaces_drift:
            return jnp.zeros_like(x)
        return block.norm.write(t, x, block.attend(t, block.norm.read(x, FIRST), w), FIRST)

    def settle(self, t: Time, x: Tokens, y: Tokens) -> Tokens:
        return self.block.norm.settle(t, x, y, FIRST)


class _FeedForward(_Sublayer):
    """The feed-forward part."""

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        norm = self.block.norm
        return norm.write(t, x, self.block.feed_forward.think(t, norm.read(x, SECOND)), SECOND)

    def settle(self, t: Time, x: Tokens, y: Tokens) -> Tokens:
        return self.block.norm.settle(t, x, y, SECOND)


def _biased(x: Float[Array, "h n m"], bias: Any) -> Float[Array, "h n m"]:
    return x if bias is None else x + bias[:, None]


def _named(name: str, family: str, value: Any) -> Part:
    """The part that a text or a number names."""
    try:
        entry, bare = part(family, str(value))
        first = entry.options[0].name if bare is not None else ""
        return entry.load()(**({first: int(bare) if bare.isdigit() else bare} if bare else {}))
    except UserError as error:
        raise UserError(f"Block.{name} must be {error}") from None
    except TypeError:
        raise UserError(
            f"Block.{name} must be a part with its numbers, got the name {value!r} alone"
        ) from None
