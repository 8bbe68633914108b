"""What is seldom asked of an ensemble: random matrices, quantiles, and how to run it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from tokenflock.errors import require_known
from tokenflock.matrices._random import RandomMatrices


class Options(TypedDict, total=False):
    """Options of `ensemble` and `phase_diagram`.

    matrices: random Q, K, V, for every law that has matrices.
    keep: keep every repeat instead of statistics.
    quantiles: shares whose quantiles over repeats are wanted, e.g. [0.1, 0.5, 0.9].
    dtype: 'float32' or 'float64'; unless given, float32 where it resolves all thresholds that are
      asked for (a cosine of 1 - delta from delta = 7.7e-6 on), else float64.
    engine: 'auto', 'batch' (XLA), 'resident' (GPU kernel) or 'lanes' (compiled CPU loop).
    rotate: turn tokens of isotropic laws into n dimensions where d > n. Exact.
    settle: stop a system once theory says that its observables are final. Exact.
    tolerance: of the error of time stepping, as a share of the largest value of each observable;
      None (for a solver of your own): not checked.
    memory: bytes that the work may take at once; a quarter of what is free unless given.
    out: a folder (zarr) that is filled block by block while it runs: the same call goes on from
      what is there, and the result may be larger than the memory.
    progress: called with the steps of systems that are done, and that there are.
    part: where this is part of a larger ensemble, the places of its cells and repeats there and how
      many there are, e.g. {"beta": ([2], 9), "repeat": ([17], 256)}: the same systems as there.
    """

    matrices: RandomMatrices | None
    keep: bool
    quantiles: Sequence[float]
    dtype: str | None
    engine: str
    rotate: bool
    settle: bool
    tolerance: float | None
    memory: float | None
    out: str | os.PathLike[str] | None
    progress: Callable[[int, int], None] | None
    part: Mapping[str, tuple[Sequence[int], int]]


@dataclass(frozen=True)
class Choices:
    """All options, those that were not given by their defaults."""

    matrices: RandomMatrices | None = None
    keep: bool = False
    quantiles: Sequence[float] = ()
    dtype: str | None = None
    engine: str = "auto"
    rotate: bool = True
    settle: bool = True
    tolerance: float | None = 1e-3
    memory: float | None = None
    out: str | os.PathLike[str] | None = None
    progress: Callable[[int, int], None] | None = None
    part: Mapping[str, tuple[Sequence[int], int]] = field(default_factory=dict)


def settled(options: Options) -> Choices:
    """The options with their defaults; an unknown one is an error."""
    require_known("ensemble", options, Options.__annotations__)
    return Choices(**options)
