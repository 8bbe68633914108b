"""What each token does by itself."""

from __future__ import annotations

from abc import abstractmethod

from tokenflock.parts.part import Part
from tokenflock.shapes import Points, Time


class TokenMap(Part):
    """The feed-forward part: what each token does by itself."""

    @property
    def there(self) -> bool:
        """Whether there is any."""
        return True

    @abstractmethod
    def think(self, t: Time, x: Points) -> Points:
        """What it adds to each token."""

    @property
    def isotropic(self) -> bool:
        return False

    @property
    def keeps_cones(self) -> bool:
        return False
