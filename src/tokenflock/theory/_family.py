"""The equiangular family in one number: its flow and its layer, as plain formulas.

They take the exponential that they need, so that the same lines serve NumPy and what is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def speed(gamma: Any, n: Any, beta: Any, exp: Callable[[Any], Any] = np.exp) -> Any:
    """dgamma/dt of the common cosine of n tokens under self-attention."""
    return 2 * (1 - gamma) * ((n - 1) * gamma + 1) / (exp(beta * (1 - gamma)) + n - 1)


def layer(u: Any, n: Any, beta: Any, h: Any, exp: Callable[[Any], Any] = np.exp) -> Any:
    """The distance to consensus 1 - gamma after one layer of step h."""
    others = 1 / (
        n - 1 + exp(beta * u)
    )  # attention on each other token; on itself 1 - (n-1) others
    a, c, gamma = 1 + h * (1 - (n - 1) * others), h * others, 1 - u
    squared_norm = a * a + 2 * a * c * (n - 1) * gamma + c * c * (n - 1) * (1 + (n - 2) * gamma)
    return u * (a - c) ** 2 / squared_norm
