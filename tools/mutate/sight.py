"""Which tests run which lines: learnt once from all quick tests, then asked for every bug."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bugs import ROOT

KEPT = ROOT / "build" / "mutate"
COVERAGE, SECONDS = KEPT / "coverage.db", KEPT / "seconds.json"
SETTINGS = f"[run]\nsource = tokenflock\ndata_file = {COVERAGE}\n"
DEFAULTS = "tests/test_defaults.py"  # reads the source, whose lines it does not run
IMPORT = ""  # the test that coverage names for lines that run before any


def learn(jobs: int) -> int:
    """Run all quick tests, and keep which lines each ran and how long it took."""
    KEPT.mkdir(parents=True, exist_ok=True)
    settings = KEPT / "settings"
    settings.write_text(SETTINGS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-n", str(jobs), "-p", "seconds"]
    command += ["--cov=tokenflock", f"--cov-config={settings}", "--cov-context=test"]
    return subprocess.call([*command, "--cov-report="], cwd=ROOT, env=with_plugins())


def with_plugins() -> dict[str, str]:
    """The environment in which pytest finds the plugins beside this file."""
    here = str(Path(__file__).parent)
    return os.environ | {"PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}


@dataclass(frozen=True)
class Sight:
    """The lines of each file that each test runs, as bits, and the seconds of each test."""

    rows: dict[str, list[tuple[str, bytes]]]
    whole: Counter  # lines that each file of tests runs, over all of its tests
    seconds: dict[str, float]

    def tests(self, file: str, lines: Iterable[int], budget: float) -> list[str]:
        """The tests of some lines, as many as a budget of seconds holds: first those that tell most
        for their time, for they are quick and their file of tests cares for this file.

        A program that was compiled for one test is there for the next, which then runs none of its
        lines. So the other tests of these files that know the source come behind.
        """
        rows, wanted = self.rows.get(file, []), list(lines)
        seen = {test for test, bits in rows if any(_holds(bits, at) for at in wanted)}
        homes, care = {_home(test) for test in seen - {IMPORT}}, self._care(file)
        early = seen == {IMPORT}  # a default, or a constant
        if early:
            homes = set(care)

        def price(test: str) -> tuple[bool, float]:
            return test not in seen, (0.05 + self.seconds.get(test, 0.0)) / care[_home(test)]

        known = (test for test, _ in rows if test in self.seconds and _home(test) in homes)
        first = [test for test in self.seconds if early and _home(test) == DEFAULTS]
        return [*first, *_together(_within(sorted(known, key=price), self.seconds, budget))]

    def imported(self, file: str, lines: Iterable[int]) -> bool:
        """Whether lines run already while tests are imported, as for the numbers that they ask."""
        early = [bits for test, bits in self.rows.get(file, []) if test == IMPORT]
        return any(_holds(bits, at) for bits in early for at in lines)

    def _care(self, file: str) -> dict[str, float]:
        """How much of what each file of tests runs lies in a file."""
        here = Counter()
        for test, bits in self.rows[file]:
            here[_home(test)] += _count(bits)
        return {home: lines / self.whole[home] for home, lines in here.items()}


class Everything(Sight):
    """Nothing is known: every bug meets all the tests that were collected."""

    def __init__(self) -> None:
        super().__init__({}, Counter(), {})

    def tests(self, file: str, lines: Iterable[int], budget: float) -> list[str]:
        return list(self.seconds)

    def imported(self, file: str, lines: Iterable[int]) -> bool:
        return True


def read() -> Sight:
    """What was learnt."""
    if not (COVERAGE.exists() and SECONDS.exists()):
        sys.exit("which tests run which lines is not known yet: run python tools/mutate --learn")
    rows, whole = defaultdict(list), Counter()
    question = (
        "select path, context, numbits from line_bits"
        " join file on file.id = file_id join context on context.id = context_id"
    )
    merged: dict[tuple[str, str], bytes] = {}
    with sqlite3.connect(COVERAGE) as data:
        for path, context, bits in data.execute(question):
            key = Path(path).as_posix().split("/tokenflock/", 1)[-1], context.rpartition("|")[0]
            merged[key] = _either(merged.get(key, b""), bits)
    for (file, test), bits in merged.items():
        rows[file].append((test, bits))
        whole[_home(test)] += _count(bits)
    return Sight(dict(rows), whole, json.loads(SECONDS.read_text(encoding="utf-8")))


def _together(tests: Iterable[str]) -> list[str]:
    """The tests of one file side by side, the file of the first one first."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(_home(test), []).append(test)
    return [test for file in files.values() for test in file]


def _within(tests: list[str], seconds: dict[str, float], budget: float) -> Iterable[str]:
    """The first few tests, and then as many as the budget holds."""
    spent = 0.0
    for at, test in enumerate(tests):
        spent += seconds.get(test, 0.0)
        if spent > budget and at >= 3:
            return
        yield test


def _home(test: str) -> str:
    return test.partition("::")[0]


def _holds(bits: bytes, line: int) -> bool:
    at, bit = divmod(line, 8)
    return at < len(bits) and bool(bits[at] >> bit & 1)


def _count(bits: bytes) -> int:
    return int.from_bytes(bits, "little").bit_count()


def _either(a: bytes, b: bytes) -> bytes:
    both = int.from_bytes(a, "little") | int.from_bytes(b, "little")
    return both.to_bytes(max(len(a), len(b)), "little")
