"""`tokenflock steer`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, progress, saved, say
from tokenflock.cli.options import drawable
from tokenflock.cli.values import array, wholes
from tokenflock.errors import UserError
from tokenflock.files import NETCDF, replaceable


@Parameter(name="*")
@dataclass(frozen=True)
class CloudOptions:
    """Clouds and their targets: drawn, or read from files."""

    clouds: Annotated[int, Parameter(help="how many clouds are drawn")] = 8
    n: Annotated[int, Parameter(help="tokens of each cloud")] = 8
    d: Annotated[int, Parameter(help="dimension: 2 for the circle, 3 for the sphere")] = 2
    spread: Annotated[float, Parameter(help="width of the clouds")] = 0.2
    aims: Annotated[int, Parameter(help="points of each target")] = 1
    target_spread: Annotated[float, Parameter(help="width of the targets")] = 0.0
    inputs: Annotated[
        Path | None, Parameter(help="a .npy file of clouds (N, n, d) [default: they are drawn]")
    ] = None
    targets: Annotated[
        Path | None, Parameter(help="a .npy file of targets (N, d) or (N, m, d)")
    ] = None

    def pairs(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """(clouds, targets); what is drawn is drawn with the seed."""
        from tokenflock.steering import clouds as drawn

        if self.aims < 1:
            raise UserError(f"--aims must be 1 or more, got {self.aims}; write e.g. --aims 1")
        if not 0 <= self.target_spread < np.inf:
            raise UserError(
                f"--target-spread must be 0 or more, got {self.target_spread:g}; write e.g."
                " --target-spread 0.1"
            )
        if self.inputs is None:
            begin = drawn(self.clouds, self.n, self.d, self.spread, seed=seed)
        else:
            begin = _file(self.inputs, "--inputs")
        if self.targets is not None:
            return begin, _file(self.targets, "--targets")
        count, d = begin.shape[0], begin.shape[-1]
        return begin, drawn(count, self.aims, d, self.target_spread, seed=seed + 1)


@Parameter(name="*")
@dataclass(frozen=True)
class SearchOptions:
    """Which Transformers are tried, and how they are looked for."""

    pieces: Annotated[str, Parameter(help="pieces of time; several, e.g. 1,2,4,8: all")] = "8"
    heads: Annotated[str, Parameter(help="heads of attention; several, e.g. 1,2: all")] = "2"
    width: Annotated[int, Parameter(help="neurons of the feed-forward part, 0 for none")] = 16
    t: Annotated[float, Parameter(help="final time")] = 4.0
    steps: Annotated[int, Parameter(help="steps of the search")] = 1500
    rate: Annotated[float, Parameter(help="rate of the search")] = 0.03
    seed: Annotated[int, Parameter(help="seed of clouds, targets and the first guess")] = 0

    def asked(self) -> dict[str, Any]:
        """The same for `steering.compare`.

        >>> SearchOptions(pieces="1,2").asked()["pieces"]
        [1, 2]
        """
        depths, counts = wholes(self.pieces, "--pieces"), wholes(self.heads, "--heads")
        return asdict(self) | {"pieces": depths, "heads": counts}


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command; it names no members, so that its options are always the same."""
    return steer


def steer(
    *,
    given: CloudOptions = CloudOptions(),
    search: SearchOptions = SearchOptions(),
    out: Annotated[Path, Parameter(help="the file to write")] = Path("steer.nc"),
    plot: Annotated[Path | None, Parameter(help="a .png, .pdf or .svg file to draw it to")] = None,
) -> None:
    """Look for a Transformer, constant on pieces of time, that carries clouds of tokens to targets.

    Clouds and targets are drawn, or read from files. With several numbers of pieces or heads all of
    them are tried, and the plot compares how near they come.

    Example: `tokenflock steer --clouds 8 --d 2 --pieces 8 --heads 2 --out steer.nc --plot
    steer.png`

    Example: `tokenflock steer --d 3 --pieces 1,2,4,8 --heads 1,2 --steps 500 --plot depth.png`
    """
    replaced = replaceable(out, NETCDF), drawable(plot)
    asked = search.asked()
    keep_compiled()
    import tokenflock as flock

    result = _steered(*given.pairs(search.seed), asked)
    flock.save(result, out)
    _tell(result)
    saved(out, replaced[0])
    if plot is not None:
        from tokenflock import plots

        plots.save_figure(plots.steering(result), plot)
        saved(plot, replaced[1])


def _steered(begin: np.ndarray, aim: np.ndarray, asked: dict[str, Any]) -> Any:
    """The result of the only number of pieces and heads, or the comparison of several."""
    from tokenflock.steering import compare
    from tokenflock.steering import steer as search

    depths, counts = asked["pieces"], asked["heads"]
    with progress("steering") as report:
        if len(depths) * len(counts) > 1:
            return compare(begin, aim, progress=report, **asked)
        only = asked | {"pieces": depths[0], "heads": counts[0]}
        return search(begin, aim, progress=report, **only)


def _file(path: Path, name: str) -> np.ndarray:
    """An array of a .npy file."""
    if path.suffix != ".npy":
        raise UserError(f"{name} reads .npy files, got {path.name!r}")
    return np.asarray(array(str(path), name))


def _tell(result) -> None:
    """How near the clouds came."""
    say("", title=result.attrs["title"].removeprefix("tokenflock: "))
    for cloud, distance in enumerate(result.W2.values):
        say(f"  cloud {cloud:<3} W2 to its target {distance:.5f}")
    if "reached" in result:
        say("  root mean square of W2, by pieces of time (rows) and heads")
        say(" " * 8 + "".join(f"{heads:>10}" for heads in result.heads.values))
        for depth, row in zip(result.pieces.values, result.reached.values):
            say(f"    {depth:<4}" + "".join(f"{value:>10.5f}" for value in row))
