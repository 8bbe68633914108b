"""What a law of motion is."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Key

from tokenflock.dynamics._kernels import exponentials, softmax
from tokenflock.errors import UserError
from tokenflock.frozen import Frozen
from tokenflock.parts.no_norm import NoNorm
from tokenflock.parts.placement import Placement
from tokenflock.parts.post import Post
from tokenflock.shapes import Array, Points, Rows, Scalar, Time, Tokens, Weights
from tokenflock.spaces import Space, Sphere

if TYPE_CHECKING:
    from tokenflock.dynamics.block import Block


class Interaction(NamedTuple):
    """What tokens do to each other in pairs: e^{beta <x, D y>}, D = I where it is None."""

    beta: Any
    D: Any = None


class Products(NamedTuple):
    """Logits that are inner products: scale <queries_i, keys_j> - shift."""

    queries: Points
    keys: Tokens
    scale: Scalar | float
    shift: Scalar | float = 0.0


class Dynamics(Frozen):
    """A law of motion for n tokens x (n, d) with weights w (n,) that sum to one.

    A member writes `force`. Everything else follows from it: the flow dx/dt = `velocity` (its
    tangent part), the Transformer layer x <- normalize(x + h force), Jacobians, ensembles, kernels.
    """

    on_chip: ClassVar[bool] = True  # made of what the GPU kernel of the resident engine can do

    @property
    def space(self) -> Space:
        """Where its tokens live; the unit sphere unless the member says otherwise."""
        return Sphere()

    @abstractmethod
    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        """The update that each token receives, before any projection."""

    def velocity(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        """dx/dt: the tangent part of the force, at the point of the space nearest to x.

        Off the sphere the field is that of x/|x|, so a solver's stages may leave the sphere without
        harm.
        """
        p = self.space.project(x)
        return self.tangent(t, p, self.force(t, p, w))

    def tangent(self, t: Time, x: Tokens, v: Tokens) -> Tokens:
        """The part of an update v of tokens x that the flow keeps."""
        return self.space.tangent(x, v)

    def attention_matrix(self, t: Time, x: Tokens, w: Weights) -> Rows:
        """A_ij: how much token i listens to token j, where the law has such a matrix."""
        raise UserError(
            f"{type(self).__name__} has no attention matrix; ask it of an attention dynamics"
        )

    def diffusion(self, t: Time, x: Tokens, w: Weights) -> Scalar:
        """Strength s of the noise s dW on each token; zero for a deterministic law."""
        return jnp.zeros((), x.dtype)

    def shake(self, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]) -> Tokens:
        """The Gaussian increment of a unit of time: `diffusion` times independent normal numbers
        unless the member says otherwise.
        """
        return self.diffusion(t, x, w) * jax.random.normal(key, x.shape, x.dtype)

    @property
    def noisy(self) -> bool:
        """Whether there is noise at all."""
        return False

    @property
    def smooth(self) -> bool:
        """Whether the force is continuous, as an adaptive solver needs it."""
        return True

    @property
    def exchangeable(self) -> bool:
        """Whether the law is blind to the order of tokens, so that a token may be split into two of
        half its weight.
        """
        return False

    @property
    def isotropic(self) -> bool:
        """Whether it commutes with every rotation and reflection of R^d.

        Then tokens stay in their span.
        """
        return False

    @property
    def interacts(self) -> bool:
        """Whether tokens act on each other at all."""
        return True

    @property
    def bounded(self) -> bool:
        """Whether its velocities stay of one size however large beta is, as means of tokens do."""
        return True

    @property
    def keeps_cones(self) -> bool:
        """Whether each token moves towards a positive combination of tokens. Then tokens never
        leave their convex cone, their largest distance never grows once it is below a right angle,
        and consensus is for ever (Lemma 6.4 of arXiv 2312.10794).
        """
        return False

    @property
    def core(self) -> Dynamics:
        """The law at the heart of this one; itself unless it is built around another."""
        return self

    @property
    def layers_around(self) -> tuple[Dynamics, ...]:
        """This law, the one that it is built around, and so on to the core."""
        return (self,)

    @property
    def inverse_temperature(self) -> Any:
        """The beta of the core, or None where it has none."""
        core = self.core
        names = [field.name for field in dataclasses.fields(core)]
        return getattr(core, "beta") if "beta" in names else None  # noqa: B009

    @property
    def interaction(self) -> Interaction | None:
        """The pair interaction whose energy its tokens climb or descend, where there is one."""
        return None

    @property
    def sublayers(self) -> tuple[Dynamics, ...]:
        """The blocks that one Transformer layer applies in turn (attention, then feed-forward)."""
        return (self,)

    def layer(
        self, t: Time, x: Tokens, w: Weights, h: Scalar | float, noise: Tokens | None = None
    ) -> Tokens:
        """One sublayer of the layer map: x <- settle(x + h force + noise)."""
        y = x + h * self.force(t, x, w)
        return self.settle(t, x, y if noise is None else y + noise)

    def layers(self, t: Time, x: Tokens, w: Weights, h: Scalar | float, count: int) -> Tokens:
        """So many of them, one after the other, from time t on."""

        def once(number: Array, x: Tokens) -> Tokens:
            return self.layer(t + number * h, x, w, h)

        return jax.lax.fori_loop(0, count, once, x)

    def settle(self, t: Time, x: Tokens, y: Tokens) -> Tokens:
        """The tokens y, to which a layer at time t has moved x, brought back to where they live."""
        return self.space.project(y)

    @property
    def place(self) -> Placement:
        """The place of its norm: what a feed-forward part beside it reads, and how it writes."""
        return Post() if isinstance(self.space, Sphere) else NoNorm()

    def as_block(self) -> Block:
        """The same law as a `Block` of named parts, or an error that says why it is none."""
        raise UserError(
            f"{type(self).__name__} is no Block: it does not say of which parts it is made"
        )

    @property
    def matrices_at(self) -> tuple[str, ...] | None:
        """The way to its matrices Q and V, field by field; None where it has none."""
        return None

    @property
    def stack(self) -> int | None:
        """The number of heads, where its matrices are stacks of them."""
        return None

    def with_matrices(self, Q: Any, V: Any) -> Dynamics:
        """The same law with other matrices: Q, K = I and V, the identity where it is None."""
        raise UserError(
            "dynamics must be a law with matrices Q, K, V, to take random ones, got"
            f" {type(self).__name__}; use e.g. Attention"
        )

    @property
    def dimension(self) -> int | None:
        """The d that its matrices ask for, or None where any d will do."""
        return None

    @property
    def particles(self) -> int | None:
        """The n that its parameters ask for, or None where any n will do."""
        return None

    @classmethod
    def example(cls, n: int = 6, d: int = 3, seed: int = 0) -> Dynamics:
        """A generic instance for n tokens in R^d: what the contract tests run on."""
        return cls()


class MeanField(Dynamics):
    """A law by which tokens act on each other only through their measure mu = sum_j w_j
    delta_{x_j}.

    A member writes `field`: the vector field X[mu] at any points q, tokens or not.
    """

    @abstractmethod
    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        """X[mu](q), before any projection."""

    def force(self, t: Time, x: Tokens, w: Weights) -> Tokens:
        return self.field(t, x, x, w)

    def attention(self, t: Time, q: Points, x: Tokens, w: Weights) -> Rows:
        """The weights with which points q listen to the tokens x."""
        raise UserError(
            f"{type(self).__name__} has no attention matrix; ask it of an attention dynamics"
        )

    def attention_matrix(self, t: Time, x: Tokens, w: Weights) -> Rows:
        return self.attention(t, x, x, w)

    @property
    def exchangeable(self) -> bool:
        return True


class AttentionLaw(MeanField):
    """A mean-field law made of logits and values:

        X[mu](q) = sum_j A_j(q) values_j,   A_j(q) = w_j e^{logits_j(q)} / Z(q)
        (without Z where not `normalised`)

    A member writes `logits` and `values`. Engines that never form the matrix A use the same two.
    """

    @abstractmethod
    def logits(self, t: Time, q: Points, x: Tokens) -> Rows:
        """log of the unnormalised attention of points q to tokens x."""

    @abstractmethod
    def values(self, t: Time, x: Tokens) -> Tokens:
        """What a token says to those who listen."""

    def products(self, t: Time, q: Points, x: Tokens) -> Products | None:
        """Its logits as inner products, where they are: kernels on tensor cores want them so."""
        return None

    @property
    def divides(self) -> bool:
        """Whether attention is divided by its partition function."""
        return True

    @property
    def bounded(self) -> bool:
        return self.divides

    def attention(self, t: Time, q: Points, x: Tokens, w: Weights) -> Rows:
        S = self.logits(t, q, x)
        return softmax(S, w) if self.divides else w * jnp.exp(S)

    def field(self, t: Time, q: Points, x: Tokens, w: Weights) -> Points:
        S = self.logits(t, q, x)
        if not self.divides:
            return (w * jnp.exp(S)) @ self.values(t, x)
        E, Z = exponentials(S, w)
        return (E @ self.values(t, x)) * (1 / Z)


class GradientFlow(Dynamics):
    """A law that climbs (or descends) an energy: velocity_i = +- grad_i energy / metric_i.

    Then d energy/dt = +- sum_i metric_i |velocity_i|^2, an identity that the tests check for every
    member.
    """

    @abstractmethod
    def energy(self, x: Tokens, w: Weights) -> Scalar:
        """The energy, in the convention of the paper that the member cites."""

    @abstractmethod
    def metric(self, x: Tokens, w: Weights) -> Weights:
        """The positive factors of the metric sum_i metric_i <a_i, b_i> in which the law is a
        gradient flow.
        """

    @property
    def ascends(self) -> bool:
        """True if the energy grows along the flow, False if it falls."""
        return True


class Around(Dynamics):
    """A law built around another one, its `base`, whose space, shape and symmetries it keeps."""

    if TYPE_CHECKING:  # no field here: each member chooses its place among its own
        base: ClassVar[Dynamics]

    @property
    def space(self) -> Space:
        return self.base.space

    @property
    def core(self) -> Dynamics:
        return self.base.core

    @property
    def layers_around(self) -> tuple[Dynamics, ...]:
        return (self, *self.base.layers_around)

    @property
    def interaction(self) -> Interaction | None:
        return self.base.interaction

    def tangent(self, t: Time, x: Tokens, v: Tokens) -> Tokens:
        return self.base.tangent(t, x, v)

    def settle(self, t: Time, x: Tokens, y: Tokens) -> Tokens:
        return self.base.settle(t, x, y)

    def attention_matrix(self, t: Time, x: Tokens, w: Weights) -> Rows:
        return self.base.attention_matrix(t, x, w)

    def diffusion(self, t: Time, x: Tokens, w: Weights) -> Scalar:
        return self.base.diffusion(t, x, w)

    def shake(self, t: Time, x: Tokens, w: Weights, key: Key[Array, ""]) -> Tokens:
        return self.base.shake(t, x, w, key)

    @property
    def noisy(self) -> bool:
        return self.base.noisy

    @property
    def place(self) -> Placement:
        return self.base.place

    @property
    def smooth(self) -> bool:
        return self.base.smooth

    @property
    def interacts(self) -> bool:
        return self.base.interacts

    @property
    def bounded(self) -> bool:
        return self.base.bounded

    @property
    def matrices_at(self) -> tuple[str, ...] | None:
        return None if self.base.matrices_at is None else ("base", *self.base.matrices_at)

    @property
    def stack(self) -> int | None:
        return self.base.stack

    def with_matrices(self, Q: Any, V: Any) -> Dynamics:
        return eqx.tree_at(lambda law: law.base, self, self.base.with_matrices(Q, V))

    @property
    def exchangeable(self) -> bool:
        return self.base.exchangeable

    @property
    def isotropic(self) -> bool:
        return self.base.isotropic

    @property
    def dimension(self) -> int | None:
        return self.base.dimension

    @property
    def particles(self) -> int | None:
        return self.base.particles
