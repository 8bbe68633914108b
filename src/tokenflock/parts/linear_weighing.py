"""Linear attention."""

from __future__ import annotations

from typing import ClassVar

from tokenflock.parts.weighing import Logits, Weighing
from tokenflock.shapes import Rows, Weights


class LinearWeighing(Weighing):
    """Linear attention: A_ij = w_j (offset + S_ij), without a softmax.

    With offset = 1 it is the first order of e^{S_ij}. Source: arXiv 2006.16236.

    >>> LinearWeighing(offset=1.0).keeps_cones
    False
    """

    cites: ClassVar[tuple[str, ...]] = ("katharopoulos2020linear",)

    offset: float = 0.0
    "added to every logit"

    def weigh(self, logits: Logits, w: Weights) -> Rows:
        S = logits.S if logits.bias is None else logits.S + logits.bias
        return logits.masked(w * (self.offset + S))

    @property
    def keeps_cones(self) -> bool:
        return False
