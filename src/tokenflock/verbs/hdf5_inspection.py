"""HDF5 files that someone else may have sent: inspected before they are opened.

HDF5 can keep numbers in other files, link to them, and compose datasets of them; it would read
whatever its reader may read. None of this is needed for a result, so all of it is refused.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

from tokenflock.engines.memory import ALLOWED, allowed, refuse_size
from tokenflock.errors import UserError
from tokenflock.verbs import _look_hdf5

SECONDS = 20  # of a processor to look through a file, for each GiB that it may take in memory
SLOWEST = 30  # times as long on a machine that is busy
PROGRAM = _look_hdf5.__file__
_INSPECTED: dict[tuple[str, int, int, int], float] = {}  # file -> memory that it was allowed


def require_contained(path: Path, memory: float | None = None) -> None:
    """Raise if a file leads to other files, takes too much memory, or cannot be read.

    Each file is inspected once, as long as it stays as it is, in a process of its own: a damaged
    one may make HDF5 crash or never end.
    """
    most = allowed(path.stat().st_size, memory)
    if _INSPECTED.get(_mark(path), 0.0) >= most:
        return
    answer = _answer(path, most)
    if "refused" in answer:
        raise UserError(
            f"{path} is refused: {answer['refused']}; a result of tokenflock holds all of its"
            " numbers itself: ask for one that does"
        )
    if "memory" in answer:
        refuse_size(path, path.stat().st_size, most)
    if "damaged" in answer:
        reason = answer["damaged"]
        reason = "it does not begin as one" if "signature not found" in reason else reason
        raise UserError(f"{path} is no netCDF file that tokenflock can read ({reason})")
    _INSPECTED[_mark(path)] = most


def trust(path: Path) -> None:
    """Remember that a file, as it is now, was written here."""
    _INSPECTED[_mark(path)] = float("inf")


def _answer(path: Path, most: float) -> dict[str, str]:
    """What the inspection says."""
    if not sys.executable:  # Python is part of another program
        return _look_hdf5.look_through(str(path), most)
    # -P: else a file h5py.py in the working folder, which may come with the result, would run
    seconds = math.ceil(SECONDS * max(1.0, most / ALLOWED))
    words = [sys.executable, "-P", PROGRAM, str(path), str(seconds), str(most)]
    try:
        done = subprocess.run(words, capture_output=True, timeout=SLOWEST * seconds, check=False)
    except subprocess.TimeoutExpired:
        done = None
    if done is None or done.returncode < 0:
        raise UserError(
            f"{path} is damaged: it cannot be opened; ask for it again, or make it anew"
        )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        last = done.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1]
        raise UserError(f"{path} cannot be inspected before it is opened ({last:.200})")
    return answer


def _mark(path: Path) -> tuple[str, int, int, int]:
    """What tells one state of a file from another."""
    state = path.stat()
    return str(path.resolve()), state.st_ino, state.st_size, state.st_mtime_ns
