"""What is meant where nothing is said: a default is a promise, and changes only on purpose.

After a change that is meant: `python -m tests.test_defaults` writes the table anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import tokenflock as flock
from tokenflock.catalogue import KINDS, entries
from tokenflock.dynamics import Hardmax, Noisy, SelfAttention
from tokenflock.meanfield import evolution
from tokenflock.solvers import RK4, Heun, Layer
from tokenflock.verbs import accuracy, lyapunov, schedule, simulate

TABLE = Path(__file__).parent / "data" / "defaults.txt"


def defaults() -> Iterator[str]:
    """Every default of the catalogue, as its file says it, and of the public functions."""
    for kind in KINDS:
        for entry in entries(kind):
            for option in entry.options:
                if option.default is not None:
                    yield f"{kind}/{entry.name} {option.name} = {option.default}"
    for home in (flock, flock.meanfield, flock.probing, flock.gpt):
        for name in sorted(home.__all__):
            yield from _signature(home.__name__, name, getattr(home, name))
    laws = SelfAttention(), Hardmax(), Noisy()
    for law in laws:
        name = type(law).__name__
        for number, solver in enumerate(accuracy.schemes(law, None)):
            yield f"solver of an ensemble of {name}, {number}: {solver!r}"
        if not law.noisy:
            yield f"solver of simulate for {name}: {simulate.default_solver(law)!r}"
    yield f"solver of phase_diagram: {Layer()!r}, of steer: {Heun()!r}"
    yield f"solver of lyapunov: {RK4(h=lyapunov.FIRST)!r} or a shorter step"
    for home in (schedule, evolution):  # of t and frames, which times take the place of
        yield f"{home.__name__} t = {home.LAST}, frames = {home.FRAMES}"


def _signature(home: str, name: str, value: object) -> Iterator[str]:
    if not callable(value) or (isinstance(value, type) and issubclass(value, Exception)):
        return
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:
        return
    for parameter in parameters:
        if isinstance(parameter.default, (bool, int, float, str, tuple)):
            yield f"{home}.{name} {parameter.name} = {parameter.default!r}"


def test_defaults_are_what_they_were():
    assert list(defaults()) == TABLE.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    TABLE.write_text("\n".join(defaults()) + "\n", encoding="utf-8")
