"""Moments to wait for: two tokens have met, or a token has left its cap."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import xarray as xr

from tokenflock import simulate
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.events.event import Event
from tokenflock.shapes import Array, Scalar, Time, Tokens, Weights
from tokenflock.starts import Given
from tokenflock.theory import pair_time

RADIUS = 1e-9  # tokens so close are one


class Met(Event):
    """Two tokens have cosine 1 - delta."""

    exchangeable: ClassVar[bool] = False
    isotropic: ClassVar[bool] = True

    difference: Array  # (n,): 1 for one of the two tokens, -1 for the other, 0 for the rest
    delta: float = 1e-3

    def margin(self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights) -> Scalar:
        return jnp.sum((self.difference @ x) ** 2) / 2 - self.delta


class Left(Event):
    """Some token has left the cap <x, centre> >= 1 - size about its centre."""

    exchangeable: ClassVar[bool] = False

    centres: Array  # (n, d): the centre of each token's cap
    size: float = 0.02

    def margin(self, dynamics: Dynamics, t: Time, x: Tokens, w: Weights) -> Scalar:
        apart = jnp.sum((x - self.centres) ** 2, axis=-1) / 2  # 1 - <x, centre>, to all digits
        return self.size - jnp.max(apart)


def on_circle(angles: np.ndarray) -> np.ndarray:
    """Tokens (n, 2) at these angles."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def angles_of(x: np.ndarray) -> np.ndarray:
    """The angles of tokens on the circle."""
    return np.arctan2(x[..., 1], x[..., 0])


def until_met(
    law: Dynamics, x: np.ndarray, pair: tuple[int, int], times: np.ndarray, delta: float = 1e-3
) -> xr.Dataset:
    """The run up to the moment at which a pair has met, with tokens that have met as one."""
    difference = np.zeros(len(x))
    difference[list(pair)] = 1, -1
    event = Met(difference, delta)
    return simulate(law, Given(x), t=times[-1], times=times, until=event, coalesce=RADIUS)


def meeting_time(
    law: Dynamics, x: np.ndarray, pair: tuple[int, int], end: float, delta: float = 1e-3
) -> float:
    """When a pair meets; NaN where it does not by `end`."""
    time = float(until_met(law, x, pair, np.array([0.0, end]), delta).time[-1])
    return time if time < end else np.nan


def peak_time(angle: float, beta: float, delta: float) -> float:
    """When two tokens of USA, masses 1/2 or others that sum to one, have closed an angle to the
    cosine 1 - delta, with weights e^(beta (<x, y> - 1)).

    e^beta t_USA = 2 t_SA - (artanh(1 - delta) - artanh(cos(angle))): no number overflows.
    """
    turned = np.arctanh(1 - delta) - np.arctanh(np.cos(angle))
    return float(2 * pair_time(np.cos(angle), 1 - delta, beta) - turned)
