from tokenflock.solvers.adaptive import Adaptive as Adaptive
from tokenflock.solvers.euler import Euler as Euler
from tokenflock.solvers.euler_maruyama import EulerMaruyama as EulerMaruyama
from tokenflock.solvers.solver import FixedStep as FixedStep
from tokenflock.solvers.heun import Heun as Heun
from tokenflock.solvers.layer import Layer as Layer
from tokenflock.solvers.rk4 import RK4 as RK4
from tokenflock.solvers.solver import Solver as Solver

__all__ = [
    "Adaptive",
    "Euler",
    "EulerMaruyama",
    "FixedStep",
    "Heun",
    "Layer",
    "RK4",
    "Solver",
]
