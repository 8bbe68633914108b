from tokenflock.dynamics.neural_ode import Activation as Activation
from tokenflock.dynamics.attention import Attention as Attention
from tokenflock.dynamics.dynamics import AttentionLaw as AttentionLaw
from tokenflock.dynamics.block import Block as Block
from tokenflock.dynamics.burger import Burger as Burger
from tokenflock.dynamics.causal import Causal as Causal
from tokenflock.dynamics.causal_bias import CausalBias as CausalBias
from tokenflock.dynamics.causal_heads import CausalHeads as CausalHeads
from tokenflock.dynamics.unnormalised import Clock as Clock
from tokenflock.dynamics.dynamics import Dynamics as Dynamics
from tokenflock.dynamics.fast import Fast as Fast
from tokenflock.dynamics.feed_forward import FeedForward as FeedForward
from tokenflock.dynamics.dynamics import GradientFlow as GradientFlow
from tokenflock.dynamics.hardmax import Hardmax as Hardmax
from tokenflock.dynamics.kuramoto import Kuramoto as Kuramoto
from tokenflock.dynamics.dynamics import MeanField as MeanField
from tokenflock.dynamics.mix_norm import MixNorm as MixNorm
from tokenflock.dynamics.multi_head import MultiHead as MultiHead
from tokenflock.dynamics.ngpt import NGPT as NGPT
from tokenflock.dynamics.neural_ode import NeuralODE as NeuralODE
from tokenflock.dynamics.noisy import Noisy as Noisy
from tokenflock.dynamics.peri_norm import PeriNorm as PeriNorm
from tokenflock.dynamics.post_norm import PostNorm as PostNorm
from tokenflock.dynamics.pre_norm import PreNorm as PreNorm
from tokenflock.dynamics.pure_attention import PureAttention as PureAttention
from tokenflock.dynamics.rescaled_attention import RescaledAttention as RescaledAttention
from tokenflock.dynamics.self_attention import SelfAttention as SelfAttention
from tokenflock.dynamics.sinkhorn import Sinkhorn as Sinkhorn
from tokenflock.dynamics.sqrt_norm import SqrtNorm as SqrtNorm
from tokenflock.dynamics.streamed import Streamed as Streamed
from tokenflock.dynamics._matrices import Switching as Switching
from tokenflock.dynamics.unnormalised import Unnormalised as Unnormalised

__all__ = [
    "Activation",
    "Attention",
    "AttentionLaw",
    "Block",
    "Burger",
    "Causal",
    "CausalBias",
    "CausalHeads",
    "Clock",
    "Dynamics",
    "Fast",
    "FeedForward",
    "GradientFlow",
    "Hardmax",
    "Kuramoto",
    "MeanField",
    "MixNorm",
    "MultiHead",
    "NGPT",
    "NeuralODE",
    "Noisy",
    "PeriNorm",
    "PostNorm",
    "PreNorm",
    "PureAttention",
    "RescaledAttention",
    "SelfAttention",
    "Sinkhorn",
    "SqrtNorm",
    "Streamed",
    "Switching",
    "Unnormalised",
]
