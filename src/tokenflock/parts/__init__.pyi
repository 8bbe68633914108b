from tokenflock.parts.alibi import Alibi as Alibi
from tokenflock.parts.causal_mask import CausalMask as CausalMask
from tokenflock.parts.common_noise import CommonNoise as CommonNoise
from tokenflock.parts.gated import Gated as Gated
from tokenflock.parts.given_heads import GivenHeads as GivenHeads
from tokenflock.parts.given_mask import GivenMask as GivenMask
from tokenflock.parts.hardmax_weighing import HardmaxWeighing as HardmaxWeighing
from tokenflock.parts.heads import Heads as Heads
from tokenflock.parts.independent_noise import IndependentNoise as IndependentNoise
from tokenflock.parts._layer_norm import LayerNorm as LayerNorm
from tokenflock.parts.linear_weighing import LinearWeighing as LinearWeighing
from tokenflock.parts.mask import Mask as Mask
from tokenflock.parts.mix import Mix as Mix
from tokenflock.parts.ngpt import Ngpt as Ngpt
from tokenflock.parts.no_feed_forward import NoFeedForward as NoFeedForward
from tokenflock.parts.no_heads import NoHeads as NoHeads
from tokenflock.parts.no_mask import NoMask as NoMask
from tokenflock.parts.no_noise import NoNoise as NoNoise
from tokenflock.parts.no_norm import NoNorm as NoNorm
from tokenflock.parts.no_positions import NoPositions as NoPositions
from tokenflock.parts.no_weighing import NoWeighing as NoWeighing
from tokenflock.parts.noise import Noise as Noise
from tokenflock.parts.part import Part as Part
from tokenflock.parts.peri import Peri as Peri
from tokenflock.parts.placement import Placement as Placement
from tokenflock.parts.positions import Positions as Positions
from tokenflock.parts.post import Post as Post
from tokenflock.parts.pre import Pre as Pre
from tokenflock.parts.random_feed_forward import RandomFeedForward as RandomFeedForward
from tokenflock.parts.random_heads import RandomHeads as RandomHeads
from tokenflock.parts.relative_bias import RelativeBias as RelativeBias
from tokenflock.parts.rotary import Rotary as Rotary
from tokenflock.parts.sigmoid_weighing import SigmoidWeighing as SigmoidWeighing
from tokenflock.parts.sinkhorn_weighing import SinkhornWeighing as SinkhornWeighing
from tokenflock.parts.softmax_weighing import SoftmaxWeighing as SoftmaxWeighing
from tokenflock.parts.square_root import SquareRoot as SquareRoot
from tokenflock.parts.token_map import TokenMap as TokenMap
from tokenflock.parts.two_layers import TwoLayers as TwoLayers
from tokenflock.parts.value_noise import ValueNoise as ValueNoise
from tokenflock.parts.weighing import Weighing as Weighing
from tokenflock.parts.window_mask import WindowMask as WindowMask

__all__ = [
    "Alibi",
    "CausalMask",
    "CommonNoise",
    "Gated",
    "GivenHeads",
    "GivenMask",
    "HardmaxWeighing",
    "Heads",
    "IndependentNoise",
    "LayerNorm",
    "LinearWeighing",
    "Mask",
    "Mix",
    "Ngpt",
    "NoFeedForward",
    "NoHeads",
    "NoMask",
    "NoNoise",
    "NoNorm",
    "NoPositions",
    "NoWeighing",
    "Noise",
    "Part",
    "Peri",
    "Placement",
    "Positions",
    "Post",
    "Pre",
    "RandomFeedForward",
    "RandomHeads",
    "RelativeBias",
    "Rotary",
    "SigmoidWeighing",
    "SinkhornWeighing",
    "SoftmaxWeighing",
    "SquareRoot",
    "TokenMap",
    "TwoLayers",
    "ValueNoise",
    "Weighing",
    "WindowMask",
]
