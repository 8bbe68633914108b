"""Where tokens live: `Sphere`, `Euclidean`."""

from tokenflock.spaces.euclidean import Euclidean
from tokenflock.spaces.space import Space
from tokenflock.spaces.sphere import Sphere

__all__ = ["Euclidean", "Space", "Sphere"]
