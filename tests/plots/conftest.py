"""A few small runs on which every plot is drawn."""

import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock import recipe
from tokenflock.dynamics import SelfAttention
from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.solvers import RK4, Layer
from tokenflock.starts import Uniform


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the figures of a test where something has imported pyplot, which keeps them."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def still(x: np.ndarray, dynamics: Dynamics | None = None) -> xr.Dataset:
    """A run whose tokens stand still for two frames, in the shape of `simulate`."""
    x = np.asarray(x, dtype=float)
    variables = {
        "x": (("time", "particle", "coord"), np.stack([x, x])),
        "w": ("particle", np.full(len(x), 1 / len(x))),
    }
    text = recipe.dumps({"dynamics": dynamics or SelfAttention()})
    return xr.Dataset(variables, {"time": [0.0, 1.0]}, {"convention": "flow", "recipe": text})


@pytest.fixture(scope="session")
def standing() -> Callable[..., xr.Dataset]:
    return still


@pytest.fixture(scope="session")
def circle_run() -> xr.Dataset:
    """Coarsens from many clusters to two."""
    return flock.simulate(
        SelfAttention(beta=4.0), Uniform(n=16, d=2), t=15, frames=41, solver=RK4(h=0.125), seed=0
    )


@pytest.fixture(scope="session")
def sphere_run() -> xr.Dataset:
    return flock.simulate(
        SelfAttention(beta=4.0), Uniform(n=16, d=3), t=15, frames=41, solver=RK4(h=0.125), seed=0
    )


@pytest.fixture(scope="session")
def high_run() -> xr.Dataset:
    return flock.simulate(
        SelfAttention(beta=1.0), Uniform(n=16, d=8), t=15, frames=41, solver=RK4(h=0.125), seed=0
    )


@pytest.fixture(scope="session")
def layer_run() -> xr.Dataset:
    return flock.simulate(
        SelfAttention(beta=4.0), Uniform(n=16, d=2), t=4, solver=Layer(h=0.1), seed=0
    )


@pytest.fixture(scope="session")
def model(sphere_run: xr.Dataset) -> xr.Dataset:
    """What a probed model looks like: layers and tokens, no weights, no dynamics."""
    result = (
        sphere_run.drop_vars("w")
        .rename(time="layer", particle="token")
        .assign_coords(layer=np.arange(41))
    )
    result.attrs = {"title": "albert-xlarge-v2"}
    return result


@pytest.fixture(scope="session")
def phases() -> xr.Dataset:
    """An ensemble over beta with a predicted transition."""
    beta = [0.5, 1.0, 2.0, 3.5, 5.0]
    return flock.phase_diagram(
        SelfAttention(), Uniform(n=8, d=8), beta=beta, t=12, frames=25, repeats=6
    )


@pytest.fixture(scope="session")
def table() -> Callable[..., xr.Dataset]:
    """Makes a Dataset in the shape of `ensemble` without running anything."""

    def make(
        values, times, *, name: str = "beta", observable: str = "pair_density", d: int = 3
    ) -> xr.Dataset:
        mean = np.linspace(0.1, 0.6, len(values) * len(times)).reshape(len(values), -1)
        start = Uniform(n=8, d=d)
        text = recipe.dumps(
            {
                "dynamics": SelfAttention(),
                "start": start,
                "over": {name: list(values)},
                "repeats": 16,
            }
        )
        variables = {
            observable: ((name, "time"), mean),
            f"{observable}_error": ((name, "time"), np.full_like(mean, 0.05)),
        }
        coords = {
            name: list(values),
            "time": ("time", np.asarray(times, float), {"long_name": "time"}),
        }
        return xr.Dataset(variables, coords, {"convention": "flow", "recipe": text})

    return make
