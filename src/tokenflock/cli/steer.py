"""`tokenflock steer`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, progress, saved, say
from tokenflock.cli.values import array, wholes
from tokenflock.errors import UserError
from tokenflock.files import NETCDF, replaceable


def command(tokens: Sequence[str]) -> Callable[..., None]:
    return steer


def steer(
    *,
    clouds: Annotated[int, Parameter(help="how many clouds are drawn")] = 8,
    n: Annotated[int, Parameter(help="tokens of each cloud")] = 8,
    d: Annotated[int, Parameter(help="dimension: 2 for the circle, 3 for the sphere")] = 2,
    spread: Annotated[float, Parameter(help="width of the clouds")] = 0.2,
    aims: Annotated[int, Parameter(help="points of each target")] = 1,
    target_spread: Annotated[float, Parameter(help="width of the targets")] = 0.0,
    inputs: Annotated[
        Path | None, Parameter(help="a .npy file of clouds (N, n, d) [default: they are drawn]")
    ] = None,
    targets: Annotated[
        Path | None, Parameter(help="a .npy file of targets (N, d) or (N, m, d)")
    ] = None,
    pieces: Annotated[str, Parameter(help="pieces of time; several, e.g. 1,2,4,8: all")] = "8",
    heads: Annotated[str, Parameter(help="heads of attention; several, e.g. 1,2: all")] = "2",
    width: Annotated[int, Parameter(help="neurons of the feed-forward part, 0 for none")] = 16,
    t: Annotated[float, Parameter(help="final time")] = 4.0,
    steps: Annotated[int, Parameter(help="steps of the search")] = 1500,
    rate: Annotated[float, Parameter(help="rate of the search")] = 0.03,
    seed: Annotated[int, Parameter(help="seed of clouds, targets and the first guess")] = 0,
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
    replaced = replaceable(out, NETCDF), plot is not None and replaceable(plot)
    if plot is not None and plot.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise UserError(f"--plot writes .png, .pdf or .svg, got {plot.name!r}")
    depths, counts = wholes(pieces, "--pieces"), wholes(heads, "--heads")
    keep_compiled()
    import tokenflock as flock
    from tokenflock.steering import clouds as drawn
    from tokenflock.steering import compare

    begin = drawn(clouds, n, d, spread, seed=seed) if inputs is None else _file(inputs, "--inputs")
    if targets is None:
        count, dimension = begin.shape[0], begin.shape[-1]
        aim = drawn(count, aims, dimension, target_spread, seed=seed + 1)
    else:
        aim = _file(targets, "--targets")
    options: dict[str, Any] = {"width": width, "t": t, "steps": steps, "rate": rate, "seed": seed}
    with progress("steering") as report:
        if len(depths) * len(counts) == 1:
            result = flock.steer(
                begin, aim, pieces=depths[0], heads=counts[0], progress=report, **options
            )
        else:
            result = compare(begin, aim, pieces=depths, heads=counts, progress=report, **options)
    flock.save(result, out)
    _tell(result)
    saved(out, replaced[0])
    if plot is not None:
        from tokenflock import plots

        plots.save_figure(plots.steering(result), plot)
        saved(plot, replaced[1])


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
        say("    " + "".join(f"{heads:>10}" for heads in result.heads.values))
        for depth, row in zip(result.pieces.values, result.reached.values):
            say(
                f"    {depth:<4}" + "".join(f"{value:>10.5f}" for value in row).removeprefix("    ")
            )
