from tokenflock.probing.blocks import TrainedLayer as Block
from tokenflock.probing.surveying import Energies as Energies
from tokenflock.probing.model import Facts as Facts
from tokenflock.probing.model import Model as Model
from tokenflock.probing.options import Recording as Recording
from tokenflock.probing.options import Selection as Selection
from tokenflock.probing.texts import Text as Text
from tokenflock.probing.blocks import TrainedLayer as TrainedLayer
from tokenflock.probing.options import Variant as Variant
from tokenflock.probing.laws import block_of as block_of
from tokenflock.probing.fetching import cached as cached
from tokenflock.probing.prompts import choose as choose
from tokenflock.probing.particles import effective_beta as effective_beta
from tokenflock.probing.loading import extract as extract
from tokenflock.probing.following import follow as follow
from tokenflock.probing.layers import half_layers as half_layers
from tokenflock.probing._former import halves as halves
from tokenflock.probing.loading import load as load
from tokenflock.probing.particles import particle_system as particle_system
from tokenflock.probing.layers import probe as probe
from tokenflock.probing.particles import reconstruction as reconstruction
from tokenflock.probing.particles import rerun_layer as rerun_layer
from tokenflock.probing.surveying import survey as survey
from tokenflock.probing import texts as texts

__all__ = [
    "Block",
    "Energies",
    "Facts",
    "Model",
    "Recording",
    "Selection",
    "Text",
    "TrainedLayer",
    "Variant",
    "block_of",
    "cached",
    "choose",
    "effective_beta",
    "extract",
    "follow",
    "half_layers",
    "halves",
    "load",
    "particle_system",
    "probe",
    "reconstruction",
    "rerun_layer",
    "survey",
    "texts",
]
