"""Plant bugs one at a time, each in a process of its own, and see which tests turn red.

One process imports the library and collects all tests. For each bug it forks: the child gives the
changed functions their new code, in place, and runs the tests of that line. Nothing is imported or
collected again. What is no function (constants, defaults of fields) cannot be changed so: it is
planted in a copy, and a new interpreter reads it. So is what survives and ran while tests were
imported: numbers that it gave then are those without the bug.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import pickle
import resource
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from bugs import PACKAGE, ROOT, Mutant, broken, lines, parsed
from jax._src import xla_bridge
from sight import Sight, with_plugins

TOO_LONG = (-signal.SIGXCPU, -signal.SIGKILL)  # how a process ends that takes too long
PATIENCE = 4  # seconds on the clock for each of the processor
QUICK = 4  # what takes too long never ends, where without the bug a quarter of the time is enough
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-n0", "--no-header", "--tb=no"]


@dataclass(frozen=True)
class Limits:
    """Processes at a time, seconds of the processor for a bug, and of tests that it meets."""

    jobs: int
    seconds: float
    budget: float


@dataclass(frozen=True)
class Trial:
    """A bug in a process that runs its tests."""

    mutant: Mutant
    tests: list[str]
    slot: Path  # its copy of the source
    since: float


class Planting:
    """A plugin of pytest: in place of running the tests that it collected, plants bugs."""

    def __init__(
        self, bugs: list[Mutant], sight: Sight, limits: Limits, tell: Callable, place: Path
    ):
        self.bugs, self.sight, self.limits, self.tell = bugs, sight, limits, tell
        self.slots = [copied(place / str(at)) for at in range(limits.jobs)]

    def pytest_sessionstart(self) -> None:
        """Some examples are drawn by JAX while tests are collected."""
        from tokenflock.parts import RandomFeedForward, RandomHeads

        self.drawing = {cls: cls.draw for cls in (RandomHeads, RandomFeedForward)}
        for cls, draw in self.drawing.items():
            cls.draw = elsewhere(draw)

    def pytest_collection_finish(self) -> None:
        for cls, draw in self.drawing.items():
            cls.draw = draw

    def pytest_runtestloop(self, session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self.sight.seconds.update({name: 0.0 for name in items if name not in self.sight.seconds})
        queue, running, free = deque(self.bugs), {}, list(self.slots)
        if xla_bridge.backends_are_initialized():
            raise RuntimeError("collecting started JAX, whose threads a fork loses")
        gc.freeze()
        while queue or running:
            while queue and free:
                mutant = queue.popleft()
                tests = self.sight.tests(mutant.file, lines(mutant), self.limits.budget)
                if not tests:
                    self.tell(mutant, "no test", 0.0)
                    continue
                trial = Trial(mutant, tests, free.pop(), time.monotonic())
                running[self._started(trial, items, session)] = trial
            for process, code in list(ended(running, PATIENCE * self.limits.seconds)):
                trial = running.pop(process)
                self.tell(trial.mutant, self._outcome(trial, code), time.monotonic() - trial.since)
                restore(trial)
                free.append(trial.slot)
            time.sleep(0.02)
        return True

    def _outcome(self, trial: Trial, code: int) -> str:
        if code in TOO_LONG:
            usual = sum(self.sight.seconds.get(test, 0.0) for test in trial.tests)
            return "never ends" if usual < self.limits.seconds / QUICK else "too slow"
        if code in (1, 2) or code < 0:  # a crash is red too
            return "caught"
        return "survived" if code == 0 else f"not run ({code})"

    def _started(self, trial: Trial, items: dict, session) -> int:
        process = os.fork()
        if process:
            return process
        code = 70
        try:
            os.setsid()  # so that what the tests start can be ended with them
            seconds = int(self.limits.seconds)  # of the processor: a busy machine catches no bug
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            put(trial)
            if not swapped(trial.mutant):
                anew(trial)
            code = run([items[name] for name in trial.tests if name in items], session)
            if code == 0 and self.sight.imported(trial.mutant.file, lines(trial.mutant)):
                anew(trial)
        finally:
            os._exit(code)


def elsewhere(function: Callable) -> Callable:
    """A function whose values are computed in a child: what it starts there is not here."""

    def asked(*arguments: Any) -> Any:
        here, there = os.pipe()
        if os.fork() == 0:
            with os.fdopen(there, "wb") as end:
                pickle.dump(function(*arguments), end)
            os._exit(0)
        os.close(there)
        with os.fdopen(here, "rb") as end:
            value = pickle.load(end)
        os.wait()
        return value

    return asked


def copied(place: Path) -> Path:
    """A copy of the source, for the processes that tests start."""
    shutil.copytree(ROOT / "src", place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def put(trial: Trial) -> None:
    """The bug in the copy, which new interpreters read before the library itself."""
    path = trial.slot / "tokenflock" / trial.mutant.file
    path.write_text(ast.unparse(broken(trial.mutant)), encoding="utf-8")
    inherited = os.environ.get("PYTHONPATH", "")
    os.environ |= {
        "PYTHONPATH": os.pathsep.join([str(trial.slot), inherited]),
        "PYTHONDONTWRITEBYTECODE": "1",  # a stale one would hide the next bug
    }


def restore(trial: Trial) -> None:
    shutil.copyfile(PACKAGE / trial.mutant.file, trial.slot / "tokenflock" / trial.mutant.file)


def swapped(mutant: Mutant) -> bool:
    """Give the functions that hold a bug their new code; whether there are any."""
    path = str(PACKAGE / mutant.file)
    plain, changed = (
        codes(compile(tree, path, "exec")) for tree in (parsed(mutant.file), broken(mutant))
    )
    new = {key: changed[key] for key in plain if plain[key] != changed.get(key)}
    if None in new.values():
        return False
    gc.unfreeze()
    here = [
        known
        for known in gc.get_objects()
        if isinstance(known, FunctionType) and known.__code__.co_filename == path
    ]
    holders = [function for function in here if place_of(function.__code__) in new]
    try:
        for function in holders:
            function.__code__ = new[place_of(function.__code__)]
    except ValueError:  # a name of the function around it is not used any more
        return False
    return bool(holders)


def codes(code: CodeType) -> dict[tuple[str, int], CodeType | None]:
    """The codes of all functions of a file; None where two share name and line."""
    known: dict[tuple[str, int], CodeType | None] = {}
    for inner in _inside(code):
        known[place_of(inner)] = None if place_of(inner) in known else inner
    return known


def place_of(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _inside(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inside(constant)


def run(items: list, session) -> int:
    """Run tests until the first red one: 1 there, 0 where all are green."""
    session.items = items
    for item, following in zip(items, [*items[1:], None]):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


def anew(trial: Trial) -> None:
    """Become a new interpreter that reads the copy; doctests, which name the source, are left."""
    names = trial.slot / "tests.json"
    asked = [test for test in trial.tests if test.startswith("tests/")]
    names.write_text(json.dumps(asked), encoding="utf-8")
    files = list(dict.fromkeys(test.partition("::")[0] for test in asked))
    environment = with_plugins() | {"ONLY_TESTS": str(names)}
    command = [sys.executable, "-m", "pytest", *OPTIONS, "-p", "only", *files]
    os.chdir(ROOT)
    os.execve(sys.executable, command, environment)


def ended(running: dict[int, Trial], patience: float) -> Iterator[tuple[int, int]]:
    """The processes that have ended, or are ended because they take too long, with their codes."""
    for process, trial in running.items():
        done, status = os.waitpid(process, os.WNOHANG)
        if not done and time.monotonic() - trial.since > patience:
            os.killpg(process, signal.SIGKILL)
            done, status = os.waitpid(process, 0)
        if done:
            yield process, os.waitstatus_to_exitcode(status)
