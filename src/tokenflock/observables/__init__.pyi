from tokenflock.observables.attention_entropy import AttentionEntropy as AttentionEntropy
from tokenflock.observables.attention_matrix import AttentionMatrix as AttentionMatrix
from tokenflock.observables.cluster_count import ClusterCount as ClusterCount
from tokenflock.observables.cluster_labels import ClusterLabels as ClusterLabels
from tokenflock.observables.cone_margin import ConeMargin as ConeMargin
from tokenflock.observables.consensus_distance import ConsensusDistance as ConsensusDistance
from tokenflock.observables.energy import Convention as Convention
from tokenflock.observables.dissipation import Dissipation as Dissipation
from tokenflock.observables.effective_rank import EffectiveRank as EffectiveRank
from tokenflock.observables.energy import Energy as Energy
from tokenflock.observables.flow_energy import FlowEnergy as FlowEnergy
from tokenflock.observables.histogram import Histogram as Histogram
from tokenflock.observables.inner_products import InnerProducts as InnerProducts
from tokenflock.observables.mean_cosine import MeanCosine as MeanCosine
from tokenflock.observables.minimum_cosine import MinimumCosine as MinimumCosine
from tokenflock.observables.observable import Observable as Observable
from tokenflock.observables.order_parameter import OrderParameter as OrderParameter
from tokenflock.observables.pair_density import PairDensity as PairDensity
from tokenflock.observables.radius import Radius as Radius
from tokenflock.observables.span_dimension import SpanDimension as SpanDimension

__all__ = [
    "AttentionEntropy",
    "AttentionMatrix",
    "ClusterCount",
    "ClusterLabels",
    "ConeMargin",
    "ConsensusDistance",
    "Convention",
    "Dissipation",
    "EffectiveRank",
    "Energy",
    "FlowEnergy",
    "Histogram",
    "InnerProducts",
    "MeanCosine",
    "MinimumCosine",
    "Observable",
    "OrderParameter",
    "PairDensity",
    "Radius",
    "SpanDimension",
]
