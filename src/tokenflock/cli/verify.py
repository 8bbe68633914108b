"""`tokenflock verify`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tokenflock.cli.console import keep_compiled, saved
from tokenflock.cli.reproduce import Model, Name, ScaleName, known
from tokenflock.files import replaceable, whole
from tokenflock.reproduction.item import find


def command(tokens: Sequence[str]) -> Callable[..., int]:
    """The command, whatever follows it."""
    return verify


def verify(
    *names: Name,
    scale: ScaleName = "quick",
    out: Annotated[Path | None, Parameter(help="a .json file for the claims")] = None,
    model: Model = None,
) -> int:
    """Judge the claims of papers, without figures. A claim that fails makes the exit code 1.

    Example: `tokenflock verify perspective`

    Example: `tokenflock verify perspective/orthogonal --out claims.json`
    """
    if out is not None:
        replaced = replaceable(out, ".json")
    items = find(names)
    known(model)
    keep_compiled()
    import tokenflock as flock
    from tokenflock.cli.verdicts import tell, watching

    with watching(items) as watcher:
        report = flock.reproduce(names, scale=scale, figures=False, model=model, watcher=watcher)
    tell(report, every=True)
    if out is not None:
        text = json.dumps(
            [claim.as_json() for claim in report.claims], indent=1, ensure_ascii=False
        )
        with whole(out) as part:
            part.write_text(text + "\n", encoding="utf-8")
        saved(out, replaced)
    return 0 if report.holds else 1
