"""What shakes the stream."""

from __future__ import annotations

from abc import abstractmethod

from jaxtyping import Key

from tokenflock.parts.part import Part
from tokenflock.shapes import Array, Tokens


class Noise(Part):
    """What shakes the stream."""

    @property
    def there(self) -> bool:
        """Whether there is any."""
        return True

    @property
    def replaces_drift(self) -> bool:
        """Whether what attention says acts through the noise only."""
        return False

    @abstractmethod
    def shake(self, key: Key[Array, ""], x: Tokens, said: Tokens) -> Tokens:
        """The Gaussian increment of a unit of time, for tokens x to whom attention said `said`."""

    @property
    def keeps_cones(self) -> bool:
        return False
