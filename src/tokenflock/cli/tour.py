"""`tokenflock tour`: a short guided run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tokenflock.cli.console import console, keep_compiled, progress, say
from tokenflock.files import made_folder

_INTRO = """[bold]Tokens as particles.[/] n = {n} tokens start at random on the circle \
and attract each other by self-attention,

    dx_i/dt = P_x_i ( sum_j softmax_j(beta <x_i, x_j>) x_j ),   beta = {beta:g}.

They first gather in a few clusters, fast; these then wait, seemingly at rest, \
until they merge into one.
"""


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command, whatever follows it."""
    return tour


def tour(
    *,
    out: Annotated[Path, Parameter(help="the folder to write to")] = Path("tokenflock-tour"),
    beta: Annotated[float, Parameter(help="inverse temperature")] = 4.0,
    n: Annotated[int, Parameter(help="number of tokens")] = 32,
    seed: Annotated[int, Parameter(help="of the random start")] = 0,
) -> None:
    """Simulate, tell what happened, and write a figure and a film.

    Example: `tokenflock tour --out my-tour --seed 3`
    """
    made_folder(out)
    keep_compiled()
    import numpy as np

    import tokenflock as flock
    from tokenflock import plots
    from tokenflock.dynamics import SelfAttention
    from tokenflock.events import Consensus
    from tokenflock.observables import ClusterCount, Energy
    from tokenflock.starts import Uniform

    law, start = SelfAttention(beta=beta), Uniform(n=n, d=2)
    console.print(_INTRO.format(n=n, beta=beta))
    options = {"until": Consensus(delta=1e-5), "seed": seed, "observe": [Energy(), ClusterCount()]}
    coarse = np.concatenate([[0.0], np.geomspace(0.05, 1e5, 199)])
    with progress("simulating") as report:
        run = flock.simulate(law, start, coarse[-1], times=coarse, progress=report, **options)
        run = flock.simulate(
            law, start, coarse[-1], times=_times(np, run), progress=report, **options
        )
    from tokenflock.cli.story import tell, tell_waiting

    tell(run)
    tell_waiting(run)
    paths = {name: out / name for name in ("run.nc", "overview.png", "film.mp4")}
    flock.save(run, paths["run.nc"])
    stage = _longest(flock, run)
    plots.save_figure(plots.overview(run, log_time=True, clusters_at=stage), paths["overview.png"])
    with progress("filming") as report:
        plots.film(
            run, paths["film.mp4"], seconds=14, log_time=True, clusters_at=stage, progress=report
        )
    console.print("\nThe run, a figure and a film are in")
    for path in paths.values():
        say(f"  {path.resolve()}")
    console.print("\nNext: tokenflock simulate --help, tokenflock phase --help, tokenflock list")


def _times(np, run):
    """Frames for a film: slower and slower from the start, and again slowly into the last merge."""
    end = float(run.time[-1])
    first, last = np.geomspace(0.05, end / 2, 280), end - np.geomspace(0.01, end / 2, 140)[::-1]
    return np.concatenate([[0.0], np.unique(np.concatenate([first, last])), [1.01 * end + 1]])


def _longest(flock, run) -> float:
    """The middle of the longest stage before the end: its clusters give the colours."""
    merges = flock.merges(run)
    times = merges.time.values
    if len(times) < 2:
        return float(run.time[-1])
    gaps = times[1:] - times[:-1]
    k = int(gaps.argmax())
    return float((times[k] * times[k + 1]) ** 0.5)
