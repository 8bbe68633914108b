"""Command lines with hostile numbers, from the catalogue: each option of each member, one value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tokenflock.catalogue import PARTS, Entry, Option, entries, family

NUMBERS = ("nan", "inf", "-inf", "-1", "0", "1e308", "1e-308", "9" * 40, "1e18", "", "abc")
ROLES = {"dynamics": "dynamics", "starts": "start", "solvers": "solver", "events": "until"}
UNTYPED = ("NeuralODE", "LayerNorm | None")  # no option of the command line
NAMES = ("Dynamics", "Dynamics | None", "MeanField", "AttentionLaw", "Start", *PARTS)
ARRAYS = {  # what members need that have no defaults; n = d = 3 throughout
    "D": np.diag([1.0, 0.5, -1.0]),
    "V": np.stack([np.eye(3), np.eye(3)]),
    "W": np.eye(3),
    "A": np.eye(3),
    "G": np.eye(3),
    "x": np.eye(3) + 0.1,
    "who": np.tril(np.ones((3, 3))),
    "table": np.arange(5.0),
}


def write_arrays(folder: Path) -> None:
    """The arrays that members need, as files beside the command."""
    for name, value in ARRAYS.items():
        np.save(folder / f"{name}.npy", value)


def lines() -> Iterator[list[str]]:
    """Every command line: `simulate` with a member, one of its options and one value."""
    for kind, role in ROLES.items():
        for entry in entries(kind):
            for option in numeric(entry):
                yield from _typed([f"--{role}={entry.slug}"], entry, option)
    for field, kind in FIELDS.items():
        for short, entry in family(kind).items():
            for option in numeric(entry):
                yield from _typed(["--dynamics=block", f"--{field}={short}"], entry, option, field)
    for entry in entries("observables"):
        for option in numeric(entry):
            for value in NUMBERS:
                yield [*COMMON, "--n=3", "--d=3", f"--observe={entry.slug}:{option.name}={value}"]


COMMON = ["simulate", "--t=0.1", "--frames=3", "--out=run.nc"]
FIELDS = {
    option.name.replace("_", "-"): option.annotation
    for entry in entries("dynamics")
    if entry.slug == "block"
    for option in entry.options
    if option.annotation in PARTS
}
TAKEN = ("seed",)  # an option of the command itself: that of a part carries the name of its field


def numeric(entry: Entry) -> list[Option]:
    """The options of a member that take a number or an array."""
    return [
        option
        for option in entry.options
        if option.annotation not in (*UNTYPED, *NAMES, "bool", "str")
    ]


def _typed(words: list[str], entry: Entry, option: Option, field: str = "") -> Iterator[list[str]]:
    """One member, with what it needs, and each value in turn."""
    needed = [
        f"--{other.name}={other.name}.npy"
        for other in entry.options
        if other.default is None and other is not option and other.annotation not in UNTYPED
    ]
    if entry.slug == "euler-maruyama":
        needed = ["--dynamics=noisy"]
    plane = entry.slug in ("fast", "kuramoto")
    sizes = [
        f"--{size}={count}"
        for size, count in (("n", 3), ("d", 2 if plane else 3))
        if size != option.name and not _fixed(entry, size)
    ]
    if "Array" in option.annotation and entry.kind in ("dynamics", "parts"):
        needed.append("--solver=layer")  # quickly compiled; numbers go through the default solver
    name = option.name.replace("_", "-")
    name = f"{field}-{name}" if field and option.name in TAKEN else name
    for value in NUMBERS:
        yield [*COMMON, *words, *needed, *sizes, f"--{name}={value}"]


def _fixed(entry: Entry, size: str) -> bool:
    """Whether a start has no such option."""
    return entry.kind == "starts" and size not in {option.name for option in entry.options}
