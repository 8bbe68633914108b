from tokenflock.events.consensus import Consensus as Consensus
from tokenflock.events.event import Event as Event
from tokenflock.events.stationary import Stationary as Stationary

__all__ = [
    "Consensus",
    "Event",
    "Stationary",
]
