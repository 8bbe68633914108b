"""Plant bugs, one at a time, and count those that a quick test turns red on.

    python tools/mutate --learn                                  once: which tests run which lines
    python tools/mutate --folders dynamics,solvers --sample 40 --seed 0

The source is never touched. The same seed gives the same sample while the source stays the same.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import bugs
import planting
import sight
from bugs import Mutant


class Tally:
    """What became of the bugs: told as it comes, counted by folder."""

    def __init__(self, whole: int, verbose: bool):
        self.counts: dict[str, Counter] = defaultdict(Counter)
        self.whole, self.verbose, self.since = whole, verbose, time.monotonic()

    def tell(self, mutant: Mutant, result: str, seconds: float) -> None:
        self.counts[mutant.file.partition("/")[0]][result] += 1
        if self.verbose or result not in ("caught", "equivalent"):
            print(f"{result:10} {seconds:4.0f} s  {mutant}", flush=True)
        done = sum(counts.total() for counts in self.counts.values())
        if sys.stderr.isatty():
            left = (time.monotonic() - self.since) / done * (self.whole - done)
            end = "\n" if done == self.whole else "\r"
            print(f"{done}/{self.whole}, {left:.0f} s left ", end=end, file=sys.stderr, flush=True)

    def table(self) -> str:
        """The score of each folder, and of all."""
        rows = [f"{folder}: {score(counts)}" for folder, counts in self.counts.items()]
        return "\n".join([*rows, f"all: {score(sum(self.counts.values(), Counter()))}"])


def score(counts: Counter) -> str:
    """Caught (or never ending, which is red too), of all that are no equivalents."""
    caught = counts["caught"] + counts["never ends"]
    whole = counts.total() - counts["equivalent"]
    share = f"{100 * caught / whole:.1f} %" if whole else "-"
    rest = ", ".join(f"{value} {key}" for key, value in counts.items() if key != "caught")
    return f"{caught}/{whole} caught = {share}" + (f" ({rest})" if rest else "")


def planted(wanted: list[Mutant], asked: argparse.Namespace) -> Tally:
    """Plant the bugs, and tell."""
    import pytest

    known, tally = bugs.harmless(), Tally(len(wanted), asked.list == "all")
    alike = {mutant for mutant in wanted if mutant.among(known)}
    for mutant in alike:
        tally.tell(mutant, "equivalent", 0.0)
    limits = planting.Limits(asked.jobs, asked.limit, asked.budget)
    rest = [mutant for mutant in wanted if mutant not in alike]
    seen = sight.Everything() if asked.tests else sight.read()
    with tempfile.TemporaryDirectory() as place:
        plugin = planting.Planting(rest, seen, limits, tally.tell, Path(place))
        options = [*planting.OPTIONS, "-qq", "-s", f"--rootdir={bugs.ROOT}", *asked.tests]
        pytest.main([*options, "-c", str(bugs.ROOT / "pyproject.toml")], plugins=[plugin])
    return tally


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/mutate", description=__doc__.splitlines()[0])
    parser.add_argument("--learn", action="store_true", help="which tests run which lines")
    parser.add_argument("--folders", default=",".join(bugs.FOLDERS), help="below src/tokenflock")
    parser.add_argument("--sample", type=int, default=20, help="bugs for each folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--limit", type=float, default=180, help="seconds of the processor a bug")
    parser.add_argument("--budget", type=float, default=60, help="seconds of tests for a bug")
    parser.add_argument("--files", default="", help="only files whose path has this in it")
    parser.add_argument("--tests", nargs="*", default=[], help="these tests, whatever they run")
    parser.add_argument("--again", type=Path, help="plant what the output of another run names")
    parser.add_argument("--list", choices=["all", "survivors", "planted"], default="survivors")
    return parser.parse_args()


def main() -> int:
    asked = options()
    if asked.learn:
        return sight.learn(asked.jobs)
    folders = asked.folders.split(",")
    wanted = [
        mutant
        for folder in folders
        for mutant in (
            bugs.told_before(folder, asked.again)
            if asked.again
            else bugs.chosen(folder, asked.sample, asked.seed, asked.files)
        )
    ]
    if asked.list == "planted":
        print("\n".join(str(mutant) for mutant in wanted))
        return 0
    print(planted(wanted, asked).table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
