"""The first second: from pressing Enter on `tokenflock phase` to the first numbers on the screen.

Three cases, each the best of several, in turn: the first run of all (empty caches), a new size (the
caches know another one), and the same size again. Every run is a process of its own with a
terminal. Beside them what nobody can do without: starting Python and importing JAX and equinox.

python benchmarks/first_second.py --out benchmarks/results/DATE-cpu-first-second.json
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from timing import keep

NUMBERS = b"system-steps/s"  # what the bar shows once something is done
COMMAND = ("phase", "--d", "3", "--beta", "0.1:9:45", "--repeats", "1024", "--t", "30")


def first_numbers(n: int, cache: Path, folder: Path) -> tuple[float, float]:
    """(seconds to the first numbers, seconds of all cores up to them) of one run, which is then
    stopped.
    """
    out = folder / f"{time.monotonic_ns()}.nc"
    asked = [sys.executable, "-m", "tokenflock", *COMMAND, "--n", str(n), "--out", str(out)]
    # other folders in which JAX was told to keep things do not count
    own = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    own |= {"TOKENFLOCK_CACHE": str(cache), "TERM": "xterm-256color", "COLUMNS": "160"}
    screen, terminal = pty.openpty()
    began = time.perf_counter()
    process = subprocess.Popen(asked, env=own, stdout=terminal, stderr=terminal)
    os.close(terminal)
    try:
        seen = b""
        while NUMBERS not in seen:
            if not select.select([screen], [], [], 60)[0]:
                raise TimeoutError(seen.decode(errors="replace"))
            seen += os.read(screen, 65536)
        taken = time.perf_counter() - began
        return taken, _cores(process.pid)
    finally:
        process.kill()
        process.wait()
        os.close(screen)


def imports() -> tuple[float, float]:
    """(seconds, seconds of all cores) of a process that imports JAX and equinox, and ends."""
    began, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-c", "import jax, equinox"], check=True)
    taken, after = time.perf_counter() - began, os.times()
    used = after.children_user + after.children_system
    return taken, used - before.children_user - before.children_system


def _cores(pid: int) -> float:
    """Seconds that all threads of a process have computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--n", type=int, default=40, help="the first of the new sizes")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        cache = folder / "cache"
        runs = {
            "first of all": [(args.n, folder / f"empty{k}") for k in range(args.times)],
            "new size": [(args.n + k, cache) for k in range(args.times + 1)][1:],
            "same size again": [(args.n + 1, cache) for k in range(args.times)],
        }
        first_numbers(args.n, cache, folder)
        told: dict = {"date": str(date.today()), "cores": os.cpu_count()}
        told["load"] = os.getloadavg()[0]
        pairs = {word: [] for word in [*runs, "imports alone"]}
        for k in range(args.times):
            for word, each in runs.items():
                pairs[word].append(first_numbers(each[k][0], each[k][1], folder))
            pairs["imports alone"].append(imports())
        for word, each in pairs.items():
            wall, cores = (min(values) for values in zip(*each))
            told[word] = {"seconds": wall, "seconds of all cores": cores}
    keep(told, args.out)


if __name__ == "__main__":
    main()
