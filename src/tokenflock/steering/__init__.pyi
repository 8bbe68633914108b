from tokenflock.steering.pieces import Pieces as Pieces
from tokenflock.steering.drawing import clouds as clouds
from tokenflock.steering.comparing import compare as compare
from tokenflock.steering.pieces import laws as laws
from tokenflock.steering.search import steer as steer

__all__ = [
    "Pieces",
    "clouds",
    "compare",
    "laws",
    "steer",
]
