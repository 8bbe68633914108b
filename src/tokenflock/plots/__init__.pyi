from tokenflock.plots.matrices import attention as attention
from tokenflock.plots.bifurcations import bifurcation as bifurcation
from tokenflock.plots.circles import circle as circle
from tokenflock.plots.clouds import cloud as cloud
from tokenflock.plots.bands import curves as curves
from tokenflock.plots.density_maps import density_over_time as density_over_time
from tokenflock.plots.surfaces import density_surface as density_surface
from tokenflock.plots.growths import exponents as exponents
from tokenflock.plots.films import film as film
from tokenflock.plots.histograms import histogram as histogram
from tokenflock.plots.histograms import histogram_over_time as histogram_over_time
from tokenflock.plots.styles import look as look
from tokenflock.plots.dashboard import overview as overview
from tokenflock.plots.pacing import paced as paced
from tokenflock.plots.styles import panels as panels
from tokenflock.plots.phases import phase_diagram as phase_diagram
from tokenflock.plots.phases import phase_grid as phase_grid
from tokenflock.plots.planes import plane as plane
from tokenflock.plots.radials import radial as radial
from tokenflock.plots.saving import save_figure as save_figure
from tokenflock.plots.growths import spectrum as spectrum
from tokenflock.plots.spheres import sphere as sphere
from tokenflock.plots.steerings import steering as steering
from tokenflock.plots.styles import style as style
from tokenflock.plots.survivals import survival as survival
from tokenflock.plots.timelines import timeline as timeline
from tokenflock.plots.trainings import training as training
from tokenflock.plots.paths import trajectories as trajectories

__all__ = [
    "attention",
    "bifurcation",
    "circle",
    "cloud",
    "curves",
    "density_over_time",
    "density_surface",
    "exponents",
    "film",
    "histogram",
    "histogram_over_time",
    "look",
    "overview",
    "paced",
    "panels",
    "phase_diagram",
    "phase_grid",
    "plane",
    "radial",
    "save_figure",
    "spectrum",
    "sphere",
    "steering",
    "style",
    "survival",
    "timeline",
    "training",
    "trajectories",
]
