"""Ways to advance in time, one file each: `from tokenflock.solvers import Layer`."""

from tokenflock.catalogue import lazy

__getattr__, __dir__ = lazy(
    "solvers", {"Solver": "tokenflock.solvers.solver", "FixedStep": "tokenflock.solvers.solver"}
)
