"""Real Transformers, in the shape of a simulation: `from tokenflock.probing import probe, texts`.

torch and transformers (`pip install 'tokenflock[models]'`) are imported when a model is loaded.
"""

from importlib import import_module as _import

_HOMES = {
    "probe": "layers", "halves": "layers", "Text": "texts", "load": "loading", "cached": "loading", "Variant": "loading",
    "choose": "prompts", "survey": "surveying", "Energies": "surveying", "extract": "extraction", "Block": "blocks",
    "particle_system": "particles", "rerun_layer": "particles", "reconstruction": "particles", "effective_beta": "particles",
    "follow": "following",
}  # fmt: skip
_FILES = ("texts",)

__all__ = sorted([*_HOMES, *_FILES])


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(_import(f"tokenflock.probing.{_HOMES[name]}"), name)
    if name in _FILES:
        return _import(f"tokenflock.probing.{name}")
    raise AttributeError(f"module 'tokenflock.probing' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return list(__all__)
