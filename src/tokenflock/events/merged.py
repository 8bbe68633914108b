"""Stop when few clusters are left."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Float

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import require
from tokenflock.events.event import Event
from tokenflock.frozen import concrete
from tokenflock.observables.observable import cosines
from tokenflock.shapes import Array, Rows, Scalar, Time, Tokens, Weights


class Merged(Event):
    """Stop when tokens form at most so many clusters: connected components of pairs with cosine at
    least 1 - delta, as `ClusterCount` counts them.

    The margin is the gap that still has to close: the k-th longest edge of the minimal spanning
    tree of 1 - cosine, less delta. With `since`, an ensemble keeps the first times at which the
    number of clusters was at most since, since - 1, ..., clusters, and the time spent at each.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> margins = Merged(since=2, delta=0.25).margins(None, 0.0, x, jnp.full(3, 1 / 3))
    >>> margins.tolist()  # two clusters there are, one there is not
    [-0.25, 0.75]
    """

    isotropic: ClassVar[bool] = True

    clusters: int = 1
    "how many clusters may be left"
    delta: float = 1e-3
    "a pair is joined if its cosine is at least 1 - delta"
    since: int | None = None
    "keep the times of this and all lower numbers, in an ensemble"

    def __check_init__(self) -> None:
        require(self.clusters >= 1, "clusters", "1 or more", self.clusters)
        if concrete(self.delta):
            require(0 < self.delta < 2, "delta", "between 0 and 2", self.delta)
        fine = self.since is None or self.clusters <= self.since <= 1_000_000
        wanted = f"clusters = {self.clusters} or more, at most 1,000,000"
        require(fine, "since", wanted, self.since)

    def resolution(self, epsilon: float) -> dict[str, float]:
        return {"delta": 64 * epsilon}

    def margin(self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights) -> Scalar:
        return self.margins(dynamics, t, x, w)[-1]

    def margins(
        self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights
    ) -> Float[Array, " levels"]:
        gaps = spanning_gaps(1 - cosines(x), w)
        wanted = jnp.asarray(self._counts) - 1
        inside = jnp.append(jnp.sort(gaps)[::-1], 0.0)  # as many clusters as tokens: no gap
        return inside[jnp.minimum(wanted, len(gaps))] - self.delta

    @property
    def _counts(self) -> list[int]:
        most = self.clusters if self.since is None else self.since
        return list(range(most, self.clusters - 1, -1))

    @property
    def levels(self) -> dict[str, Any]:
        return {} if self.since is None or len(self._counts) == 1 else {"clusters": self._counts}


def spanning_gaps(distances: Rows, w: Weights) -> Float[Array, " n"]:
    """The lengths of the edges of the minimal spanning tree of the tokens that count (Prim), and
    zeros.

    Those below a distance join the connected components of closer pairs.
    """
    n = distances.shape[0]
    counts = w > 0
    root = jnp.argmax(counts)

    def grow(k: Any, state: Any) -> Any:
        inside, apart, gaps = state
        outside = counts & ~inside
        nearest = jnp.argmin(jnp.where(outside, apart, jnp.inf))
        some = outside.any()
        gaps = gaps.at[k].set(jnp.where(some, apart[nearest], 0.0))
        inside = inside.at[nearest].set(inside[nearest] | some)
        return inside, jnp.where(some, jnp.minimum(apart, distances[nearest]), apart), gaps

    inside = jnp.zeros(n, bool).at[root].set(True)
    state = inside, distances[root], jnp.zeros(n, distances.dtype)
    return jax.lax.fori_loop(0, n - 1, grow, state)[2]
