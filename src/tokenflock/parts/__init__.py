"""The parts that a `Block` is made of, one file each: `from tokenflock.parts import CausalMask`."""

from tokenflock.catalogue import lazy

__getattr__, __dir__ = lazy(
    "parts",
    {
        "Part": "tokenflock.parts.part",
        "Heads": "tokenflock.parts.heads",
        "Mask": "tokenflock.parts.mask",
        "Positions": "tokenflock.parts.positions",
        "Weighing": "tokenflock.parts.weighing",
        "TokenMap": "tokenflock.parts.token_map",
        "Placement": "tokenflock.parts.placement",
        "Noise": "tokenflock.parts.noise",
        "LayerNorm": "tokenflock.parts._layer_norm",
    },
)
