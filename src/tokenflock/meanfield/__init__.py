"""Measures: `flock.meanfield.evolve(SelfAttention(beta=4.0), Ripple(k=3), t=5)`, distances between
them, optimal ones.
"""

from tokenflock.catalogue import lazy

__getattr__, __dir__ = lazy(
    "meanfield",
    {
        "evolve": "tokenflock.meanfield.evolution",
        "stationary": "tokenflock.meanfield.resting",
        "branch": "tokenflock.meanfield.continuing",
        "grid": "tokenflock.meanfield.grids",
        "drift": "tokenflock.meanfield.continuity",
        "wasserstein": "tokenflock.meanfield.distances",
        "weighted_bounds": "tokenflock.meanfield.distances",
        "Ground": "tokenflock.meanfield.distances",
        "optimal_tokens": "tokenflock.meanfield.optimal",
        "optimal_density": "tokenflock.meanfield.optimal",
        "optimality_gap": "tokenflock.meanfield.certificate",
        "Goal": "tokenflock.meanfield.potential",
    },
)
