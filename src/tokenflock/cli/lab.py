"""`tokenflock lab`."""

from __future__ import annotations

import json
import time
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from tokenflock.cli import members
from tokenflock.cli.console import progress, saved, say
from tokenflock.errors import UserError
from tokenflock.files import replaceable, whole

PAGE = Path("tokenflock-lab.html")
ROLES = {
    "dynamics": ("dynamics", "self-attention"),
    "start": ("starts", "uniform"),
    "solver": ("solvers", None),
}
USUAL = {"dynamics": {"beta": 4.0}, "start": {"n": 64, "d": 3}}  # where no member is named
_Open = Annotated[bool, Parameter(help="show the page in the browser", negative="--no-open")]
_Out = Annotated[Path, Parameter(help="the .html file to write, or a folder for a static host")]


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The command: for saved results where files are named first, else for a law."""
    if tokens and not tokens[0].startswith("-"):
        return _results
    return members.command(_law, ROLES, tokens)


def _law(
    *,
    chosen: dict[str, members.Member],
    values: dict[str, Any],
    dynamics: Annotated[
        str | None, Parameter(help="law to begin with [default: self-attention, beta 4]")
    ] = None,
    start: Annotated[
        str | None, Parameter(help="where tokens begin [default: 64 on the sphere]")
    ] = None,
    solver: Annotated[
        str | None, Parameter(help="how time advances, by fixed steps [default: layer]")
    ] = None,
    seed: Annotated[int, Parameter(help="seed of the start and the noise")] = 0,
    embed: Annotated[
        bool, Parameter(help="a small live figure of this law alone", negative=())
    ] = False,
    out: _Out = PAGE,
    open: _Open = True,
) -> None:
    """Write the lab, one HTML page in which the library's laws run live, and open it.

    The page holds the whole catalogue and needs no server, no network and no installation. Name
    saved results instead (`tokenflock lab run.nc`) to see them on the same stage: a run, a probed
    model, two of them side by side, a phase diagram.

    Example: `tokenflock lab`

    Example: `tokenflock lab --dynamics causal --beta 4 --n 64 --d 2 --out lab.html`

    Example: `tokenflock lab --out site/ --no-open`
    """
    replaced = _checked(out)
    began = time.monotonic()
    plain = (dynamics, start, solver, seed, embed) == (None, None, None, 0, False)
    if plain and not any(value is not None for value in values.values()):
        from tokenflock.laboratory.ready import ready_page

        if (page := ready_page()) is not None:  # nothing needs to be traced, or JAX
            _written(page, out, replaced, open, began)
            return
    built = _built(chosen, values, {"dynamics": dynamics, "start": start})
    from tokenflock.laboratory.lab import lab

    with progress("tracing the catalogue") as report:
        page = lab(
            built["dynamics"],
            built["start"],
            solver=built.get("solver"),
            seed=seed,
            embed=embed,
            progress=report,
        )
    _written(page, out, replaced, open, began)


def _built(
    chosen: dict[str, members.Member], values: dict[str, Any], named: dict[str, str | None]
) -> dict[str, Any]:
    """The members themselves; the usual numbers of the lab where none was named."""
    for role, usual in USUAL.items():
        for name, value in usual.items() if named[role] is None else ():
            key = f"{role}__{name}"
            values[key] = value if values.get(key) is None else values[key]
    return {role: members.build(part, values) for role, part in chosen.items()}


def _results(
    *files: Annotated[Path, Parameter(help="saved runs, probes or phase diagrams (.nc)")],
    prompt: Annotated[int, Parameter(help="which prompt of a probed model, from 0")] = 0,
    out: _Out = PAGE,
    open: _Open = True,
) -> None:
    """Write the lab with saved results on its stage, and open it.

    With --out NAME.json a run or a probe becomes a small file that can be dropped on any page of
    the lab.

    Example: `tokenflock lab run.nc --out run.html`

    Example: `tokenflock lab probe.nc --prompt 2 --out probe.json`
    """
    from tokenflock.cli.opening import opened

    replaced = _checked(out)
    began = time.monotonic()
    results = [opened(path) for path in files]
    if out.suffix.lower() == ".json":
        _recorded(results, prompt, out, replaced)
        return
    from tokenflock.laboratory.lab import lab

    with progress("tracing the catalogue") as report:
        page = lab(results, prompt=prompt, progress=report)
    _written(page, out, replaced, open, began)


def _recorded(results: list[Any], prompt: int, out: Path, replaced: bool) -> None:
    if len(results) != 1:
        raise UserError(f"--out {out} takes one result, got {len(results)}")
    from tokenflock.laboratory.recordings import recording

    with whole(out) as part:
        part.write_text(json.dumps(recording(results[0], prompt)), encoding="utf-8")
    saved(out, replaced, "; drop it on a page of the lab")


def _checked(out: Path) -> bool:
    """Refuse an output that cannot be written, before any work."""
    if out.suffix.lower() in (".html", ".htm", ".json"):
        return replaceable(out)
    if out.suffix:
        raise UserError(f"--out must be an .html or .json file or a folder, got {out}")
    return (out / "index.html").exists()


def _written(page: Any, out: Path, replaced: bool, show: bool, began: float) -> None:
    path = page.save(out)
    seconds = time.monotonic() - began
    saved(path, replaced, f" ({len(page.html.encode()) / 1e6:.2f} MB, {seconds:.1f} s)")
    if show and not webbrowser.open(path.resolve().as_uri()):
        say(f"no browser was found here; open {path} in one")
