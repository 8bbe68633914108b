"""`lab`: a law, a run, a probe or a phase diagram as a live page."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import xarray as xr

from tokenflock.dynamics.dynamics import Dynamics
from tokenflock.errors import UserError, require
from tokenflock.files import made_folder, replaceable, whole
from tokenflock.laboratory import diagrams, recordings
from tokenflock.laboratory.collection import collected
from tokenflock.laboratory.opening import alone, exact, opening
from tokenflock.laboratory.page import Content, page
from tokenflock.solvers.solver import FixedStep
from tokenflock.starts.start import Start
from tokenflock.starts.uniform import Uniform

HEIGHT = {False: 860, True: 480}  # of a page in a notebook, in pixels


@dataclass(frozen=True)
class Lab:
    """A page of the lab. A notebook shows it; `save` writes it, `open` shows it in a browser."""

    html: str
    figure: bool = False

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to an .html file, or into a folder, as index.html, for a static host."""
        path = Path(path)
        if path.suffix.lower() not in (".html", ".htm"):
            path = made_folder(path) / "index.html"
        replaceable(path, ".html")
        with whole(path) as part:
            part.write_text(self.html, encoding="utf-8")
        return path

    def open(self, path: str | os.PathLike[str] = "lab.html") -> Path:
        """Write the page and show it in the browser."""
        written = self.save(path)
        webbrowser.open(written.resolve().as_uri())
        return written

    def _repr_html_(self) -> str:
        """The page in a frame of its own, as a notebook shows it."""
        source = escape(self.html, quote=True)
        return (
            f'<iframe title="tokenflock lab" style="width:100%;height:{HEIGHT[self.figure]}px;'
            f'border:0" sandbox="allow-scripts allow-downloads" srcdoc="{source}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Lab({len(self.html) / 1000:.0f} kB)"


def lab(
    subject: Dynamics | xr.Dataset | Sequence[xr.Dataset] | None = None,
    start: Start | None = None,
    *,
    solver: FixedStep | None = None,
    seed: int = 0,
    embed: bool = False,
    play: bool = False,
    prompt: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Lab:
    """A live page: drag beta and watch tokens cluster, with nothing to install and no server.

    Args:
      subject: a law of motion (of yours, too), a run, a probed model, two of them to see side by
        side, or a phase diagram; self-attention unless given.
      start: where tokens begin; `Uniform(n=64, d=3)` unless given.
      solver: a solver of fixed step; the layer map unless given.
      seed: of the start and the noise: the page begins with the tokens of `simulate`.
      embed: a small live figure of this law alone, without controls, instead of the whole lab.
      play: run as soon as it is open.
      prompt: which prompt of a probed model.
      progress: called with the share of the work that is done.

    The first page traces every law of the catalogue, which takes a while and is kept in the cache.

    >>> from tokenflock.dynamics import SelfAttention
    >>> page = lab(SelfAttention(beta=4.0), Uniform(n=16, d=2), embed=True)
    >>> "tokenflock" in page.html
    True
    """
    if isinstance(subject, (xr.Dataset, list, tuple)):
        return _shown(subject, prompt, progress)
    if subject is not None and not isinstance(subject, Dynamics):
        raise UserError(
            "subject must be a law such as SelfAttention(beta=4.0), a run, a probe or a phase"
            f" diagram, got {subject!r:.80}"
        )
    start = start or Uniform(n=64, d=3)
    asked = (subject, start, solver, seed)
    collection, state = alone(*asked) if embed else opening(collected(progress), *asked)
    maps = [] if embed else diagrams.shipped()
    given = exact(subject, start, seed, state)
    content = Content(collection, state, maps, play=play, figure=embed, given=given)
    return Lab(page(content), figure=embed)


def _shown(
    subject: xr.Dataset | Sequence[Any], prompt: int, progress: Callable[[float], None] | None
) -> Lab:
    """Results on the stage: runs and probes as recordings, diagrams on the map."""
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
    state = {**maps[0]["state"]} if maps else {}
    content = Content(collected(progress), state, [*maps, *diagrams.shipped()], shown)
    return Lab(page(content))
