"""What to do about numbers that overflowed."""

from __future__ import annotations

from collections.abc import Sequence

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.dynamics.unnormalised import Clock, Unnormalised
from tokenflock.observables.energy import Energy
from tokenflock.observables.observable import Observable
from tokenflock.parts.sinkhorn_weighing import SinkhornWeighing


def remedies(dynamics: Dynamics, dtype: str, observe: Sequence[Observable] = ()) -> str:
    """What may help this law in this precision, with these observables, and nothing else.

    >>> from tokenflock.dynamics import SelfAttention
    >>> remedies(SelfAttention(), "float64")
    'take a smaller beta or step'
    >>> remedies(Unnormalised(), "float32", [Energy()])
    "take dtype='float64', a smaller beta or step, Energy(log=True), or clock='peak'"
    """
    laws = dynamics.layers_around
    ways = ["dtype='float64'"] if dtype == "float32" else []
    ways.append("a smaller beta or step")
    weighing = getattr(dynamics.core, "attention", None)
    if isinstance(weighing, SinkhornWeighing):
        ways.append(f"more rounds of Sinkhorn's weights (now {weighing.rounds:,} at most)")
    if any(isinstance(each, Energy) and not each.log for each in observe):
        ways.append("Energy(log=True)")
    if any(isinstance(law, Unnormalised) and law.clock is Clock.PAPER for law in laws):
        ways.append("clock='peak'")
    last = f", or {ways.pop()}" if len(ways) > 1 else ""
    return f"take {', '.join(ways)}{last}"
