from tokenflock.events.consensus import Consensus as Consensus
from tokenflock.events.event import Event as Event
from tokenflock.events.merged import Merged as Merged
from tokenflock.events.stationary import Stationary as Stationary

__all__ = [
    "Consensus",
    "Event",
    "Merged",
    "Stationary",
]
