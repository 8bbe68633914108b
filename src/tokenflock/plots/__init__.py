"""Pictures and films of any result: `from tokenflock.plots import overview`.

Every plot is `name(result, *, ax=None, ...)`. matplotlib is imported when the first of them is used. Files are named otherwise
than the functions in them, since an imported file would hide its function.
"""

from importlib import import_module as _import

_HOMES = {
    "style": "styles", "look": "styles", "panels": "styles", "save_figure": "saving",
    "circle": "circles", "sphere": "spheres", "trajectories": "paths", "attention": "matrices",
    "histogram": "histograms", "histogram_over_time": "histograms", "timeline": "timelines",
    "overview": "dashboard", "film": "films",
    "phase_diagram": "phases", "phase_grid": "phases", "curves": "bands",
    "density_over_time": "density_maps", "radial": "radials", "cloud": "clouds", "density_surface": "surfaces",
}  # fmt: skip

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(_import(f"tokenflock.plots.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tokenflock.plots' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return list(__all__)
