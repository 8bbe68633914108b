from tokenflock.meanfield.grids import Circle as Circle
from tokenflock.meanfield.density import Density as Density
from tokenflock.meanfield.empirical import Empirical as Empirical
from tokenflock.meanfield.potential import Goal as Goal
from tokenflock.meanfield.grids import Grid as Grid
from tokenflock.meanfield.distances import Ground as Ground
from tokenflock.meanfield.grids import Latitudes as Latitudes
from tokenflock.meanfield.mixture import Mixture as Mixture
from tokenflock.meanfield.poisson_kernel import PoissonKernel as PoissonKernel
from tokenflock.meanfield.ripple import Ripple as Ripple
from tokenflock.meanfield.von_mises import VonMises as VonMises
from tokenflock.meanfield.continuing import branch as branch
from tokenflock.meanfield.continuity import drift as drift
from tokenflock.meanfield.evolution import evolve as evolve
from tokenflock.meanfield.grids import grid as grid
from tokenflock.meanfield.optimal import optimal_density as optimal_density
from tokenflock.meanfield.optimal import optimal_tokens as optimal_tokens
from tokenflock.meanfield.certificate import optimality_gap as optimality_gap
from tokenflock.meanfield.resting import stationary as stationary
from tokenflock.meanfield.distances import wasserstein as wasserstein
from tokenflock.meanfield.distances import weighted_bounds as weighted_bounds

__all__ = [
    "Circle",
    "Density",
    "Empirical",
    "Goal",
    "Grid",
    "Ground",
    "Latitudes",
    "Mixture",
    "PoissonKernel",
    "Ripple",
    "VonMises",
    "branch",
    "drift",
    "evolve",
    "grid",
    "optimal_density",
    "optimal_tokens",
    "optimality_gap",
    "stationary",
    "wasserstein",
    "weighted_bounds",
]
