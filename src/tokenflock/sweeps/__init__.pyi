from tokenflock.sweeps.store import Store as Store

__all__ = [
    "Store",
]
