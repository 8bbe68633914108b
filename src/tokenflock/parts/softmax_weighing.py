"""Softmax."""

from __future__ import annotations

from tokenflock.dynamics._kernels import softmax
from tokenflock.parts.weighing import Logits, Weighing
from tokenflock.shapes import Rows, Weights


class SoftmaxWeighing(Weighing):
    """Softmax: A_ij = w_j e^{S_ij} / sum_k w_k e^{S_ik}. A token that sees nobody hears nothing.

    >>> SoftmaxWeighing().smooth
    True
    """

    def weigh(self, logits: Logits, w: Weights) -> Rows:
        return softmax(logits.sum, w)
