"""Pictures and films of any result: `from tokenflock.plots import overview`.

Every plot is `name(result, *, ax=None, ...)`. matplotlib is imported when the first of them is
used. Files are named otherwise than the functions in them, since an imported file would hide its
function.
"""

from tokenflock.catalogue import homes as _homes

_HOMES = {
    "style": "styles",
    "look": "styles",
    "panels": "styles",
    "save_figure": "saving",
    "circle": "circles",
    "sphere": "spheres",
    "plane": "planes",
    "trajectories": "paths",
    "attention": "matrices",
    "histogram": "histograms",
    "histogram_over_time": "histograms",
    "timeline": "timelines",
    "overview": "dashboard",
    "film": "films",
    "paced": "pacing",
    "training": "trainings",
    "steering": "steerings",
    "bifurcation": "bifurcations",
    "spectrum": "growths",
    "exponents": "growths",
    "phase_diagram": "phases",
    "phase_grid": "phases",
    "curves": "bands",
    "survival": "survivals",
    "density_over_time": "density_maps",
    "radial": "radials",
    "cloud": "clouds",
    "density_surface": "surfaces",
}

__getattr__, __dir__, __all__ = _homes(__name__, _HOMES)
