"""`tokenflock tour`: a short guided run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tokenflock.cli.console import console, keep_compiled, progress, say
from tokenflock.files import made_folder

_STEP = 0.25  # of time, with which the method of Runge and Kutta errs by 1e-5 or so
_END = 8_000  # time after which the tour waits no longer for the last merge
_PICTURES = 200
_TAIL = 7  # pictures of a trail: each costs as much as a token
_DOTS = 160  # of an inch of the figure: for a screen, and quick

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
    import tokenflock as flock
    from tokenflock import plots
    from tokenflock.dynamics import SelfAttention
    from tokenflock.observables import ClusterCount, Convention, Energy
    from tokenflock.solvers import RK4
    from tokenflock.starts import Uniform

    law, start = SelfAttention(beta=beta), Uniform(n=n, d=2)
    console.print(_INTRO.format(n=n, beta=beta))
    times = _times()
    with progress("simulating") as report:
        # steps of one length compile in a fraction of the time that adaptive ones take
        run = flock.simulate(
            law, start, times[-1], times=times, solver=RK4(h=_STEP), seed=seed, progress=report
        )
    run = plots.paced(_cut(flock, run), _PICTURES)
    run = flock.measure(run, [Energy(convention=Convention.STAIRCASE), ClusterCount()])
    from tokenflock.cli.story import tell, tell_waiting

    tell(run)
    tell_waiting(run)
    paths = {name: out / name for name in ("run.nc", "overview.png", "film.html")}
    flock.save(run, paths["run.nc"])
    stage = _longest(flock, run)
    figure = plots.overview(run, log_time=True, clusters_at=stage)
    plots.save_figure(figure, paths["overview.png"], dpi=_DOTS)
    with progress("filming") as report:
        plots.film(
            run,
            paths["film.html"],
            fps=20,
            seconds=_PICTURES / 20,
            log_time=True,
            clusters_at=stage,
            tail=_TAIL,
            progress=report,
        )
    console.print("\nThe run, a figure and a film (open it in a browser) are in")
    for path in paths.values():
        say(f"  {path.resolve()}")
    console.print("\nNext: tokenflock simulate --help, tokenflock phase --help, tokenflock list")


def _times():
    """Many times, of which the film takes those at which something moves."""
    import numpy as np

    return np.concatenate([np.arange(0, 40, _STEP), np.arange(40, _END + 1, 4)])


def _cut(flock, run):
    """The run to somewhat beyond its last merge, so that what it led to is seen.

    All of it where that comes too late.
    """
    merged = flock.merges(run).time.values
    return run.sel(time=slice(0, 3 * float(merged[-1]) + 1)) if len(merged) else run


def _longest(flock, run) -> float:
    """The middle of the longest stage before the end: its clusters give the colours."""
    merges = flock.merges(run)
    times = merges.time.values
    if len(times) < 2:
        return float(run.time[-1])
    gaps = times[1:] - times[:-1]
    k = int(gaps.argmax())
    return float((times[k] * times[k + 1]) ** 0.5)
