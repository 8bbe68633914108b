"""`reproduce`: items of papers in, numbers, figures and verdicts out. What is done stays done."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
Delivery = tuple[Numbers, float, str]  # the numbers of an item, seconds, device
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
    each = _each if dask is None else partial(_elsewhere, dask)
    folder = None if out is None else Folder(made_folder(out))
    work = _Work(scale, model, figures, again, folder, watcher or Audience())
    if folder is None:
        each(items, work)
        return Report(tuple(_ordered(items, work.done)), None)
    folder.refuse_foreign()
    with folder.alone():
        try:
            each(items, work)
        finally:
            folder.write(work.done)
    return Report(tuple(_ordered(items, work.done)), folder.path)


@dataclass(frozen=True)
class _Work:
    """How items are run, for whom, and what has come of them so far."""

    scale: str
    model: str | None
    figures: bool
    again: bool
    folder: Folder | None
    watcher: Audience
    done: list[Outcome] = field(default_factory=list)

    def recalled(self, item: Item) -> bool:
        """Whether an item is done already; what came of it is taken over then."""
        if self.folder is None or self.again:
            return False
        known = self.folder.recall(item, self.scale, self.model, self.figures)
        if known is not None:
            self._end(known, True)
        return known is not None

    def run(self, item: Item, elsewhere: Callable[[], Delivery] | None = None) -> None:
        """Run an item here, or judge and draw numbers from elsewhere."""
        self.watcher.begins(item)
        scale = Scale(self.scale, self.watcher.goes, self.model)
        self._end(_run(item, scale, self.folder, self.figures, elsewhere), False)

    def _end(self, outcome: Outcome, remembered: bool) -> None:
        self.done.append(outcome)
        self.watcher.ends(outcome, remembered)


def _each(items: Sequence[Item], work: _Work) -> None:
    """Run every item that is not done, one by one."""
    for item in items:
        if not work.recalled(item):
            work.run(item)


def _elsewhere(address: str, items: Sequence[Item], work: _Work) -> None:
    """The same by the workers of a Dask cluster, as they come."""
    left = [item for item in items if not work.recalled(item)]
    each = [(item.name, work.scale, work.model) for item in left]
    for number, numbers in side_by_side(address, compute_item, each) if each else ():
        work.run(left[number], numbers)


def compute_item(name: str, scale: str, model: str | None) -> Delivery:
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
    elsewhere: Callable[[], Delivery] | None = None,
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
