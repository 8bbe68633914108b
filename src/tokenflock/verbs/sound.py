"""Files that someone else may have sent: some damaged ones make the library below crash or never
end, so each is first looked through in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tokenflock.errors import UserError

SECONDS = 20  # of a processor to look through a file, which takes a fraction of one
SLOWEST = 30  # times as long on a machine that is busy
_LIMIT = """
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), int(sys.argv[2])))
except (ImportError, OSError, ValueError):
    pass
"""
_LOOK = """
import contextlib, sys, h5py
def look(name, item):
    for key in item.attrs:
        with contextlib.suppress(Exception):
            item.attrs[key]
    if isinstance(item, h5py.Dataset):
        if item.chunks:
            item.id.get_num_chunks()
        if item.dtype.kind == "O":
            item[()]
with h5py.File(sys.argv[1], "r") as file:
    look("/", file)
    file.visititems(look)
"""
_SOUND: set[tuple[str, int, int, int]] = set()  # files that were looked through, or written here


def require_sound(path: Path) -> None:
    """Refuse a file at which a process that looks through it crashes or hangs.

    Each file is looked through once, as long as it stays as it is. What is merely wrong with it is
    told by whoever reads it then.
    """
    if not sys.executable or _mark(path) in _SOUND:
        return
    try:
        words = [sys.executable, "-c", _LIMIT + _LOOK, str(path), str(SECONDS)]
        longest = SLOWEST * SECONDS
        code = subprocess.run(words, capture_output=True, timeout=longest, check=False).returncode
    except subprocess.TimeoutExpired:
        code = -1
    if code < 0:
        raise UserError(
            f"{path} is damaged: it cannot be opened; ask for it again, or make it anew"
        )
    trusted(path)


def trusted(path: Path) -> None:
    """Remember that a file, as it is now, can be read."""
    _SOUND.add(_mark(path))


def _mark(path: Path) -> tuple[str, int, int, int]:
    """What tells one state of a file from another."""
    state = path.stat()
    return str(path.resolve()), state.st_ino, state.st_size, state.st_mtime_ns
