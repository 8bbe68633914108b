"""What an observable is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Bool

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import UserError, require
from tokenflock.frozen import Frozen
from tokenflock.shapes import Array, Rows, Tokens, Weights
from tokenflock.spaces.sphere import normalise

STRIP = 64  # rows of the matrix of all pairs that are held at once by `by_strips`


class Observable(Frozen):
    """Something measured on tokens x with weights w, whose axes are named by `dims`.

    `particle` and `other` stand for tokens, so the same observable works on a simulation and on a
    model. Tokens of weight zero never count.
    """

    dims: ClassVar[tuple[str, ...]] = ()
    isotropic: ClassVar[bool] = True  # blind to rotations of all tokens at once
    on_chip: ClassVar[bool] = True  # made of what the GPU kernel of the resident engine can do
    strips: ClassVar[bool] = False  # `by_strips` needs no matrix of all pairs
    unit: ClassVar[str] = ""
    labels: ClassVar[bool] = False  # values name groups of tokens: only which are equal counts
    jump: ClassVar[float] = 0.0  # of one system, at the moment when two clusters meet

    @abstractmethod
    def measure(self, x: Tokens, w: Weights) -> Array:
        """The value, with axes `dims`."""

    @property
    def name(self) -> str:
        """The variable that a Dataset holds it under."""
        from tokenflock.catalogue import slug

        return slug(type(self).__name__).replace("-", "_")

    @property
    def label(self) -> str:
        """What a plot writes on its axis."""
        return self.name.replace("_", " ")

    def on_host(self, x: Array, w: Array) -> Array | None:
        """The values of frames (frame, particle, coord), where a CPU knows a quicker way than
        `measure`; else None.
        """
        return None

    def by_strips(self, x: Tokens, w: Weights) -> Array:
        """The value without a matrix of all pairs, where the member knows a way; else `measure`."""
        return self.measure(x, w)

    def bind(self, dynamics: Dynamics) -> Observable:
        """This observable with what it lacks taken from the dynamics that ran."""
        return self

    @property
    def needs_law(self) -> bool:
        """Whether it lacks something that only the dynamics that ran can tell."""
        return False

    def resolution(self, epsilon: float) -> dict[str, float]:
        """Return the least value of each threshold that numbers of machine epsilon `epsilon`
        resolve: 64 epsilon for 1 - cosine, which then is off by 3 % at most.
        """
        return {}

    @property
    def rests_within(self) -> float | None:
        """The delta such that its value is final once all cosines are at least 1 - delta for ever.

        None if there is none.
        """
        return None

    def at_rest(self, value: Array) -> Array | None:
        """Whether a value alone shows that all cosines are within `rests_within` of one.

        None if it cannot show that.
        """
        return None

    def coords(self) -> dict[str, Any]:
        """Coordinates of its own axes."""
        return {}


class CosineObservable(Observable):
    """An observable of the cosines between tokens alone.

    On the sphere an engine has them already: they are x x^T.
    """

    @property
    def by_cosines(self) -> bool:
        """Whether cosines are all it needs, with the options it has."""
        return True

    @abstractmethod
    def of_cosines(self, G: Rows, w: Weights) -> Array:
        """The value for a matrix of cosines."""

    def measure(self, x: Tokens, w: Weights) -> Array:
        return self.of_cosines(cosines(x), w)


class PairObservable(CosineObservable):
    """An observable of cosines that is a sum over pairs, or the like: one value for each token
    against all others, and what these values make together. So it needs no matrix of all pairs.
    """

    strips: ClassVar[bool] = True

    @abstractmethod
    def by_row(self, G: Rows, apart: Bool[Array, "m n"], w: Weights) -> Array:
        """The values of tokens whose cosines with all are the rows of G; `apart` is i != j."""

    @abstractmethod
    def of_rows(self, rows: Array, w: Weights) -> Array:
        """The observable from the values of all tokens."""

    def of_cosines(self, G: Rows, w: Weights) -> Array:
        order = jnp.arange(w.shape[0])
        return self.of_rows(self.by_row(G, order[:, None] != order, w), w)

    def by_strips(self, x: Tokens, w: Weights) -> Array:
        u = normalise(x)

        def strip(rows: Tokens, first: Array) -> Array:
            i, j = first + jnp.arange(rows.shape[0]), jnp.arange(x.shape[0])
            return self.by_row(jnp.clip(rows @ u.T, -1, 1), i[:, None] != j, w)

        return self.of_rows(in_strips(strip, u), w)


def in_strips(values: Callable[[Tokens, Array], Array], x: Tokens) -> Array:
    """values(rows, number of the first row) for strips of tokens, one strip after the other."""
    n = x.shape[0]
    count = -(-n // STRIP)
    strips = jnp.pad(x, ((0, count * STRIP - n), (0, 0))).reshape(count, STRIP, -1)
    rows = jax.lax.map(lambda pair: values(*pair), (strips, STRIP * jnp.arange(count)))
    return rows.reshape(count * STRIP, *rows.shape[2:])[:n]


def reads_cosines(observable: Observable) -> bool:
    """Whether an observable can be told from the cosines alone, so that several may share them."""
    return isinstance(observable, CosineObservable) and observable.by_cosines


def by_strips(observable: Observable, x: Tokens, w: Weights) -> Array:
    """The value without a matrix of all pairs, where there is such a way."""
    return observable.by_strips(x, w)


def on_sphere(observable: Observable, x: Tokens, w: Weights) -> Array:
    """The value for tokens that are unit vectors already."""
    if isinstance(observable, CosineObservable) and observable.by_cosines:
        return observable.of_cosines(x @ x.T, w)
    return observable.measure(x, w)


def cosines(x: Tokens) -> Rows:
    """<x_i, x_j> / |x_i| |x_j|, within [-1, 1]."""
    u = normalise(x)
    return jnp.clip(u @ u.T, -1, 1)


def pairs(w: Weights) -> Rows:
    """w_i w_j for all i and j."""
    return jnp.outer(w, jnp.asarray(w))


def real_pairs(w: Weights) -> Bool[Array, "n n"]:
    """Pairs i != j of tokens that count."""
    return pairs(w > 0) & ~jnp.eye(w.shape[0], dtype=bool)


def needed(value: Any, observable: Observable, field: str) -> Any:
    """The value, or an error that says how to give it."""
    if value is None:
        name = type(observable).__name__
        raise UserError(
            f"{name} needs {field}; write {name}({field}=...), or pass it to"
            " simulate(observe=[...])"
        )
    return value


def require_distinct(observables: Sequence[Observable]) -> None:
    """Raise if two observables have one name: the second would replace the first."""
    names = [observable.name for observable in observables]
    require(
        len(set(names)) == len(names),
        "observe",
        "observables of different names",
        names,
        "measure them one after the other, e.g. flock.measure(run, ...).rename(cluster_count="
        "'coarse'), or sweep the parameter: ensemble(..., over={'delta': [0.5, 0.001]})",
    )
