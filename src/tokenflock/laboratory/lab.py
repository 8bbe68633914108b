"""`lab`: a law, a run, a probe or a phase diagram as a live page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import xarray as xr

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import UserError, require
from tokenflock.laboratory import diagrams
from tokenflock.laboratory.collection import collected
from tokenflock.laboratory.opening import alone, check, exact, opening
from tokenflock.laboratory.page import PANELS, RATE, Content, page
from tokenflock.laboratory.ready import ready_made, shipped_diagrams, shipped_model
from tokenflock.laboratory.sheet import Lab
from tokenflock.solvers.solver import FixedStep
from tokenflock.starts.start import Start
from tokenflock.starts.uniform import Uniform


def lab(
    subject: Dynamics | xr.Dataset | Sequence[xr.Dataset] | None = None,
    start: Start | None = None,
    *,
    solver: FixedStep | None = None,
    seed: int = 0,
    embed: bool = False,
    panels: Sequence[str] = (),
    play: bool = True,
    rate: float = RATE,
    t: float | None = None,
    prompt: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Lab:
    """A live page: drag beta and watch tokens cluster, with nothing to install and no server.

    Args:
      subject: a law of motion (of yours, too), a run, a probed model, two of them to see side by
        side, or a phase diagram; self-attention unless given.
      start: where tokens begin; `Uniform(n=64, d=3)` unless given.
      solver: a solver of fixed step, whose step is kept: the page says where it is too long. Unless
        given, the layer map, or the flow for a law whose force grows with beta (`bounded` is
        False), in steps that the page divides until they are accurate.
      seed: of the start and the noise: the page begins with the tokens of `simulate`.
      embed: a small live figure of this law or run alone, with sliders for its numbers, instead of
        the whole lab.
      panels: instruments of a figure: histogram, energy, clusters, order, attention.
      play: run as soon as it is seen, unless the reader asked for less motion.
      rate: steps a second.
      t: a time to stop at; it runs on unless given.
      prompt: which prompt of a probed model.
      progress: called with the share of the work that is done.

    >>> from tokenflock.dynamics import SelfAttention
    >>> page = lab(SelfAttention(beta=4.0), Uniform(n=16, d=2), embed=True)
    >>> "tokenflock" in page.html
    True
    """
    for name in panels:
        require(embed and name in PANELS, "panels", f"of {', '.join(PANELS)}, in a figure", name)
    require(rate > 0, "rate", "a positive number of steps a second", rate)
    require(t is None or t > 0, "t", "a positive time to stop at", t)
    timed = {"rate": float(rate)} | ({} if t is None else {"until": float(t)})
    shape = {"play": play, "figure": embed, "panels": panels}
    if isinstance(subject, (xr.Dataset, list, tuple)):
        content = _shown(subject, prompt, embed, progress)
    else:
        begin = start or Uniform(n=64, d=3)
        content = _of_law(subject, begin, solver, seed, panels if embed else None, progress)
    content = replace(content, state={**timed, **content.state}, **shape)
    return Lab(page(content), figure=embed)


def _of_law(
    law: Any,
    start: Start,
    solver: FixedStep | None,
    seed: int,
    panels: Sequence[str] | None,
    progress: Callable[[float], None] | None,
) -> Content:
    """A law, run in the page: in the whole lab, or in a figure with these panels."""
    if law is not None and not isinstance(law, Dynamics):
        raise UserError(
            "subject must be a law such as SelfAttention(beta=4.0), a run, a probe or a phase"
            f" diagram, got {law!r:.80}"
        )
    check(start, solver, seed)
    asked = (law, start, solver, seed)
    if panels is None and asked == (None, Uniform(n=64, d=3), None, 0) and (ready := ready_made()):
        return ready
    if panels is None:
        collection, state = opening(collected(progress), *asked)
    else:
        collection, state = alone(*asked, panels)
    given = exact(law, start, seed, state)
    if panels is not None:
        return Content(collection, state, given=given)
    return Content(collection, state, shipped_diagrams(), model=shipped_model(), given=given)


def _shown(
    subject: xr.Dataset | Sequence[Any],
    prompt: int,
    embed: bool,
    progress: Callable[[float], None] | None,
) -> Content:
    """Results on the stage: runs and probes as recordings, diagrams on the map."""
    from tokenflock.laboratory import recordings

    results = [subject] if isinstance(subject, xr.Dataset) else list(subject)
    maps, shown = [], []
    for result in results:
        if not isinstance(result, xr.Dataset):
            raise UserError(f"subject must hold results (Datasets), got {result!r:.80}")
        if diagrams.is_diagram(result):
            maps.append(diagrams.chart(result))
        else:
            shown.append(recordings.recording(result, prompt))
    require(len(shown) <= 2, "subject", "at most two runs or probes, side by side", len(shown))
    require(not (embed and maps), "embed", "a figure of a law or a run: a map needs the lab", True)
    if embed:
        collection, state = alone(None, Uniform(n=8, d=3), None, 0)
        return Content(collection, state, recordings=shown)
    state = {**maps[0]["state"]} if maps else {}
    charts = [*maps, *shipped_diagrams()]
    return Content(collected(progress), state, charts, shown, model=shipped_model())
