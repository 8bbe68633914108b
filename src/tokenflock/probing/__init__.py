"""Real Transformers, in the shape of a simulation: `from tokenflock.probing import probe, texts`.

torch and transformers (`pip install 'tokenflock[models]'`) are imported when a model is loaded.
"""

from tokenflock.catalogue import homes as _homes

_HOMES = {
    "probe": "layers",
    "half_layers": "layers",
    "halves": "_former",  # an older name of half_layers
    "Variant": "options",
    "Recording": "options",
    "Selection": "options",
    "Text": "texts",
    "load": "loading",
    "extract": "loading",
    "Model": "model",
    "Facts": "model",
    "cached": "fetching",
    "choose": "prompts",
    "survey": "surveying",
    "Energies": "surveying",
    "TrainedLayer": "blocks",
    "Block": "_former",  # an older name of TrainedLayer
    "block_of": "laws",
    "particle_system": "particles",
    "rerun_layer": "particles",
    "reconstruction": "particles",
    "effective_beta": "particles",
    "follow": "following",
    "texts": "",
}

__getattr__, __dir__, __all__ = _homes(__name__, _HOMES)
