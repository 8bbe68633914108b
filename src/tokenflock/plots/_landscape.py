"""The potential that the tokens make: beta^-1 log sum_j w_j e^{beta <q, x_j>} at points q of the
sphere.
"""

from __future__ import annotations

import numpy as np

from tokenflock.dynamics.dynamics import MeanField
from tokenflock.errors import UserError
from tokenflock.plots._story import Story

LABEL = r"potential $\beta^{-1}\log\,\sum_j w_j\,e^{\beta\langle q,\,x_j\rangle}$"


def steepness(run: Story) -> float:
    """The beta of the landscape, or an error where the dynamics has no such potential."""
    law = None if run.law is None else run.law.core
    pair = None if law is None else law.interaction
    if not isinstance(law, MeanField) or pair is None or pair.D is not None:
        name = "this result" if law is None else type(law).__name__
        raise UserError(
            f"landscape needs a mean-field dynamics with beta and no matrices, got {name}; write"
            " landscape=False"
        )
    return float(pair.beta)


def lowest(run: Story, beta: float, axes: np.ndarray) -> float:
    """The least potential of a run within the space of some axes (rows): the floor of pictures."""
    q = np.random.default_rng(0).normal(size=(400, len(axes)))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    frames = np.unique(np.linspace(0, run.frames - 1, 16).round().astype(int))
    return min(float(potential(q, run.x[frame] @ axes.T, run.w, beta).min()) for frame in frames)


def potential(q: np.ndarray, x: np.ndarray, w: np.ndarray, beta: float) -> np.ndarray:
    """The potential of tokens x (n, d) at points q (..., d): between -1 and 1, and 1 at the place
    of a consensus.
    """
    # a colour needs no more digits
    points, tokens = (q.reshape(-1, q.shape[-1]).astype(np.float32), x.astype(np.float32))
    logits = points @ tokens.T
    if beta == 0:
        return (logits @ w).reshape(q.shape[:-1])
    logits *= beta
    top = logits.max(axis=-1, keepdims=True)
    total = np.exp(logits - top) @ w.astype(np.float32)
    return ((top[:, 0] + np.log(total)) / beta).reshape(q.shape[:-1])
