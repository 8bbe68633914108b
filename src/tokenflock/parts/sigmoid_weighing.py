"""Sigmoid attention."""

from __future__ import annotations

from typing import ClassVar

import jax

from tokenflock.parts.weighing import Logits, Weighing
from tokenflock.shapes import Rows, Weights


class SigmoidWeighing(Weighing):
    """Sigmoid attention: A_ij = w_j / (1 + e^{-S_ij - offset}), each pair by itself.

    The weights w_j take the place of the 1/n that the source puts into the offset. Source: arXiv
    2409.04431.

    >>> SigmoidWeighing(offset=-1.0).offset
    -1.0
    """

    cites: ClassVar[tuple[str, ...]] = ("ramapuram2024sigmoid",)

    offset: float = 0.0
    "added to every logit"

    def weigh(self, logits: Logits, w: Weights) -> Rows:
        return logits.masked(w * jax.nn.sigmoid(logits.sum + self.offset))
