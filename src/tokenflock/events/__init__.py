"""Reasons to stop a run early, one file each: `from tokenflock.events import Consensus`."""

from tokenflock.catalogue import lazy

__getattr__, __dir__ = lazy("events", {"Event": "tokenflock.events.event"})
