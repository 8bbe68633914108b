"""Systems of hundreds to thousands of tokens: every layer by tiles of queries and keys, all systems
and heads at once, and no matrix of all pairs anywhere.

The law is turned into its `Block`, whose sum over tokens alone is done by another program
(`dynamics/_tiles`); time, solver, noise, norm and feed-forward part stay those of the engine
`batch`. Observables that are sums over pairs go through strips of rows (`Observable.by_strips`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tokenflock.dynamics._matrices import at
from tokenflock.dynamics._tiles import FEW, WIDEST, Listening, layers, listen, listen_by_rows
from tokenflock.dynamics.block import Block
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.fast import Fast
from tokenflock.dynamics.streamed import Streamed
from tokenflock.dynamics.unnormalised import Clock
from tokenflock.engines.job import Job
from tokenflock.engines.native.attending import attend
from tokenflock.engines.peaks import is_peaked
from tokenflock.errors import UserError
from tokenflock.parts.no_mask import NoMask
from tokenflock.parts.no_weighing import NoWeighing
from tokenflock.parts.positions import Positions
from tokenflock.parts.softmax_weighing import SoftmaxWeighing
from tokenflock.shapes import Array, Scalar, Time, Tokens, Weights

FEWEST = 64  # tokens below which a matrix of all pairs is no burden to many systems
MANY = 2048  # tokens from which it is one to a single system


class TiledBlock(Block):
    """A block that listens by tiles."""

    peaked: bool = False
    "whether each token is its own largest logit"
    interpret: bool = False
    "run the kernel where there is no GPU"

    @property
    def sublayers(self) -> tuple[Dynamics, ...]:
        first, *rest = super().sublayers
        return (_TiledAttention(self) if self.unit else first, *rest)

    @property
    def unit(self) -> bool:
        """Whether tokens ask, answer and speak as they are, unit vectors."""
        return self.peaked and self.heads.plain

    def listening(self) -> Listening:
        """How its tokens listen."""
        mask = self.mask
        return Listening(
            divides=isinstance(self.attention, SoftmaxWeighing),
            sees=None if isinstance(mask, NoMask) else lambda i, j: jnp.asarray(mask.sees(i, j)),
            causal=mask.causal,
            peaked=self.peaked,
            unit=self.unit,
        )

    def shift(self, beta: Scalar) -> Scalar | float:
        """What is taken off every logit."""
        return beta if getattr(self.attention, "clock", None) is Clock.PEAK else 0.0

    def listen(
        self,
        t: Time,
        Q: Float[Array, "h n m"],
        K: Float[Array, "h n m"],
        V: Float[Array, "h n e"],
        w: Weights,
    ) -> tuple[Float[Array, "h n e"], Float[Array, "h n 1"]]:
        beta, how = at(self.beta, t), self.listening()

        def by_tiles(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
            return listen(q, k, v, w, beta, self.shift(beta), how, self.interpret)

        def by_rows(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
            return listen_by_rows(q, k, v, w, beta, self.shift(beta), how)

        def in_cache(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
            return attend(q, k, v, w, beta, self.shift(beta), how.divides, how.unit)

        near = in_cache if nearby(self) is None else None
        heard, total = jax.vmap(self._where(by_tiles, by_rows, Q, near))(Q, K, V)
        return heard, total[..., None]

    def _where(
        self, on_chip: Callable, elsewhere: Callable, x: Array, near: Callable | None = None
    ) -> Callable:
        """The kernel on a GPU in single precision, or where it is asked for; the one of a CPU,
        where there is no GPU; else by rows.
        """
        if self.interpret:
            return on_chip
        if x.dtype != jnp.float32:
            return elsewhere
        ways = {"cuda": on_chip} | ({} if near is None else {"cpu": near})
        return partial(jax.lax.platform_dependent, **ways, default=elsewhere)


class _TiledAttention(Dynamics):
    """Attention of unit vectors by tiles, whose layers end on chip: what a token hears and what
    becomes of it never pass through memory.
    """

    block: TiledBlock

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.block.attend(t, x, w)

    def layer(
        self, t: Time, x: Tokens, w: Weights, h: Scalar | float, noise: Tokens | None = None
    ) -> Tokens:
        if noise is not None:
            return super().layer(t, x, w, h, noise)
        return self.layers(t, x, w, h, 1)

    def layers(self, t: Time, x: Tokens, w: Weights, h: Scalar | float, count: int) -> Tokens:
        def once(number: Array, x: Tokens) -> Tokens:
            return Dynamics.layer(self, t + number * h, x, w, h)

        def plainly(x: Tokens) -> Tokens:
            return jax.lax.fori_loop(0, count, once, x)

        if x.shape[-1] <= FEW:
            return plainly(x)
        block = self.block

        def beta(number: Array) -> Scalar:
            return at(block.beta, t + number * h)

        def fused(x: Tokens) -> Tokens:
            return layers(
                x,
                w,
                beta,
                lambda number: block.shift(beta(number)),
                h,
                count,
                lambda y, u, h: self.settle(t, y, y + h * u),
                block.listening(),
                block.interpret,
            )

        return block._where(fused, plainly, x)(x)


def tiled(law: Dynamics, peaked: bool, interpret: bool) -> TiledBlock:
    """The law as a block that listens by tiles."""
    block = law.as_block()
    fields = {field.name: getattr(block, field.name) for field in dataclasses.fields(Block)}
    return TiledBlock(**fields, peaked=peaked, interpret=interpret)


def refusal(job: Job, d: int) -> str | None:
    """Why this engine cannot do a job, or None if it can."""
    if job.dtype != "float32":
        return "the tiled engine works in float32"
    return law_refusal(job.law, job.w, d)


def law_refusal(law: Dynamics, w: np.ndarray, d: int) -> str | None:
    """Why a law cannot listen by tiles, or None if it can."""
    try:
        block = law.as_block()
    except UserError as error:
        return f"the tiled engine takes laws that are a Block, and {error}"
    if block.heads.number == 0:
        return "the tiled engine is for laws with attention"
    plain = isinstance(block.attention, NoWeighing) and not block.attention.shares
    if not (plain or isinstance(block.attention, SoftmaxWeighing)):
        return "the tiled engine weighs by exponentials: softmax or none"
    if type(block.positions).bias is not Positions.bias:
        return "the tiled engine has no bias of positions on chip"
    zero = jnp.zeros((), jnp.int32)
    if not isinstance(block.mask, NoMask) and block.mask.sees(zero, zero) is None:
        return "the tiled engine takes masks that places tell: none, causal or window"
    if not isinstance(block.mask, NoMask) and not (np.asarray(w) > 0).all():
        return "the tiled engine takes masks where every token has a weight"
    M = jax.eval_shape(lambda: block.heads.matrices(jnp.float32(0), d))
    width = max(d if np.ndim(side) < 2 else side.shape[1] for side in (M.Q, M.K, M.V))
    if width > WIDEST:
        return f"queries and values of {width} coordinates do not fit on chip (at most {WIDEST})"
    return None


def nearby(law: Dynamics) -> str | None:
    """Why a law that listens by tiles has no kernel for the CPU here, or None if it has."""
    if jax.default_backend() != "cpu":
        return "there is another device"
    if find_spec("llvmlite") is None:
        return "the tiles of a CPU need llvmlite (pip install llvmlite)"
    if not isinstance(law.as_block().mask, NoMask):
        return "the tiles of a CPU have no mask"
    return None


def for_many(law: Dynamics, x: Tokens, w: Any) -> Dynamics:
    """The law of one system as it runs: by tiles where tokens are many and it can be."""
    n, d = x.shape
    if n < MANY or isinstance(law, (Fast, Streamed)) or law_refusal(law, w, d) is not None:
        return law
    return tiled(law, is_peaked(law, [law.inverse_temperature], w), interpret=False)
