"""`reproduce`: items of papers in, numbers, figures and verdicts out. What is done stays done."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType

from tokenflock.errors import require
from tokenflock.files import NoSpace, made_folder
from tokenflock.reproduction.claim import Claim, NotRun, at_most
from tokenflock.reproduction.folder import Folder, Numbers
from tokenflock.reproduction.item import Item, find
from tokenflock.reproduction.outcome import Outcome, Report
from tokenflock.reproduction.scale import Scale
from tokenflock.sweeps.crews import side_by_side

SCALES = ("quick", "paper")
Computed = tuple[Numbers, float, str]  # the numbers of an item, seconds, device
_ONE = threading.Lock()  # a worker computes one item at a time, whatever its threads


@dataclass(frozen=True)
class Audience:
    """Whom to tell: a beginning item, its (done, total), and what came of it."""

    begins: Callable[[Item], None] = lambda item: None
    goes: Callable[[int, int], None] = lambda done, total: None
    ends: Callable[[Outcome, bool], None] = lambda outcome, remembered: None


def reproduce(
    names: str | Sequence[str] = (),
    *,
    scale: str = "quick",
    out: str | os.PathLike[str] | None = None,
    figures: bool = True,
    model: str | None = None,
    again: bool = False,
    watcher: Audience | None = None,
    dask: str | None = None,
) -> Report:
    """Rerun papers, figures or statements, and judge every claim.

    Args:
      names: `"perspective"` for a whole paper, `"perspective/fig3"` for an item, or several; all
        papers unless given.
      scale: 'quick' (minutes on two cores) or 'paper' (the published sizes).
      out: a folder for index.html, claims.json, data (netCDF) and figures; nothing is written
        unless given. Items that are finished there are not run again.
      figures: draw. Without, claims only.
      model: a trained model for the items that need one.
      again: run finished items again.
      watcher: told of beginnings, progress and ends.
      dask: the address of a Dask scheduler, whose workers compute the items side by side; claims
        are judged and figures drawn here.

    >>> report = reproduce("perspective/fig6")
    >>> report.holds, report["perspective/fig6"].claims[0].verdict
    (True, 'holds')
    """
    require(scale in SCALES, "scale", " or ".join(map(repr, SCALES)), repr(scale))
    items = find([names] if isinstance(names, str) else list(names))
    watcher, how = watcher or Audience(), (scale, model, figures, again)
    each = _each if dask is None else partial(_elsewhere, dask)
    if out is None:
        return Report(tuple(_ordered(items, each(items, None, how, watcher, []))), None)
    folder = Folder(made_folder(out))
    folder.refuse_foreign()
    done: list[Outcome] = []
    with folder.alone():
        try:
            each(items, folder, how, watcher, done)
        finally:
            folder.write(done)
    return Report(tuple(_ordered(items, done)), folder.path)


def _each(
    items: Sequence[Item],
    folder: Folder | None,
    how: tuple[str, str | None, bool, bool],
    watcher: Audience,
    done: list[Outcome],
) -> list[Outcome]:
    """Add what comes of every item to `done`, one by one."""
    scale, model, figures, again = how
    for item in items:
        known = None if folder is None or again else folder.recall(item, scale, model, figures)
        if known is None:
            watcher.begins(item)
        done.append(known or _run(item, Scale(scale, watcher.goes, model), folder, figures))
        watcher.ends(done[-1], known is not None)
    return done


def _elsewhere(
    address: str,
    items: Sequence[Item],
    folder: Folder | None,
    how: tuple[str, str | None, bool, bool],
    watcher: Audience,
    done: list[Outcome],
) -> list[Outcome]:
    """The same by the workers of a Dask cluster, as they come."""
    scale, model, figures, again = how
    left = []
    for item in items:
        known = None if folder is None or again else folder.recall(item, scale, model, figures)
        if known is None:
            left.append(item)
        else:
            done.append(known)
            watcher.ends(known, True)
    each = [(item.name, scale, model) for item in left]
    for number, numbers in side_by_side(address, compute_item, each) if each else ():
        watcher.begins(left[number])
        done.append(_run(left[number], Scale(scale, watcher.goes, model), folder, figures, numbers))
        watcher.ends(done[-1], False)
    return done


def compute_item(name: str, scale: str, model: str | None) -> Computed:
    """What a worker does: the numbers of an item, how long they took, and on what device."""
    import jax

    began = time.perf_counter()
    with _ONE:
        data = find([name])[0].load().compute(Scale(scale, None, model))
    return data, time.perf_counter() - began, jax.devices()[0].device_kind


def _ordered(items: Sequence[Item], done: list[Outcome]) -> list[Outcome]:
    """Outcomes in the order of the items, whichever ended first."""
    return sorted(done, key=lambda outcome: items.index(outcome.item))


def _run(
    item: Item,
    scale: Scale,
    folder: Folder | None,
    figures: bool,
    elsewhere: Callable[[], Computed] | None = None,
) -> Outcome:
    """One item, whatever happens to it; its numbers may come from elsewhere."""
    import jax

    began, away = time.perf_counter(), 0.0
    outcome = Outcome(item, scale.name, (), 0.0, jax.devices()[0].device_kind)
    try:
        home = item.load()
        if elsewhere is None:
            data = home.compute(scale)
        else:
            data, away, device = elsewhere()
            outcome = replace(outcome, device=device)
        outcome = replace(outcome, claims=_judged(item, home, data), setting=data.attrs["setting"])
        if folder is not None:
            outcome = replace(outcome, **folder.keep(item, home, data, figures))
    except NotRun as reason:
        outcome = replace(
            outcome, claims=_unrun(item, item.load(), str(reason)), problem=f"not run: {reason}"
        )
    except NoSpace:
        raise  # no fault of the item: with more room the same command goes on
    except Exception as error:
        outcome = replace(outcome, claims=(_broken(item, error),), problem=traceback.format_exc())
        if folder is not None:
            folder.forget(item)
    outcome = replace(outcome, seconds=time.perf_counter() - began + away)
    if folder is not None and not outcome.problem:
        folder.remember(outcome, scale.model)
    return outcome


def _judged(item: Item, home: ModuleType, data: Numbers | None) -> tuple[Claim, ...]:
    return tuple(replace(claim, id=f"{item.name}/{claim.id}") for claim in home.claims(data))


def _unrun(item: Item, home: ModuleType, reason: str) -> tuple[Claim, ...]:
    """The claims of an item that has no numbers: `claims(None)` says what they would have been."""
    return tuple(
        replace(claim, measured=None, note=f"not run: {reason}")
        for claim in _judged(item, home, None)
    )


def _broken(item: Item, error: Exception) -> Claim:
    """An item that breaks is a claim that fails: it did not come to its end."""
    note = f"{type(error).__name__}: {error}"
    return Claim(
        f"{item.name}/finishes",
        f"the numbers of {item.source} can be computed",
        item.source,
        float("nan"),
        at_most(0),
        note=note,
    )
