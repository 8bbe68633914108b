"""What is proved, in closed form: `from tokenflock.theory import transition_curve`."""

from tokenflock.catalogue import lazy

__getattr__, __dir__, __all__ = lazy("theory")
