"""How much memory there is, and a refusal before more of it is taken."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NoReturn

from tokenflock.errors import UserError, require, require_number
from tokenflock.files import ALLOWED, TIMES

_CGROUPS = (  # (limit, in use) of a container
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
LITTLE = 2.0**20  # bytes that any machine has


def free() -> float:
    """Bytes that are free in the machine, or in the container that it runs in."""
    return min([_machine(), *_containers()])


def on_device() -> float:
    """Bytes that are free on the device: the GPU, or the machine where there is none."""
    import jax

    stats = jax.devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    return free()


def require_memory(needed: float, what: str, instead: str, there: float | None = None) -> None:
    """Refuse what is larger than the free memory, before anything is allocated.

    needed: bytes, by the least that the work takes. instead: what to write to need less.
    """
    if there is None:
        there = free() if needed > LITTLE else LITTLE  # asking takes longer than many a small job
    if needed > there:
        raise UserError(
            f"{what} needs {in_words(needed)} of memory, and {in_words(there)} are free; {instead}"
        )


def allowed(size: float, memory: float | None = None) -> float:
    """Bytes that what a file of this size holds may take; those that the caller allows, if any."""
    if memory is None:
        return max(ALLOWED, TIMES * size)
    require_number("memory", memory)
    require(0 < memory < math.inf, "memory", "a finite number of bytes", memory)
    return float(memory)


def refuse_size(path: str | os.PathLike[str], size: float, most: float) -> NoReturn:
    """Raise because a file of `size` bytes holds more than `most` bytes in memory."""
    raise UserError(
        f"{path} has {in_words(size)} on disk and takes more than {in_words(most)} of memory; if"
        f" you trust it, allow so many bytes in Python: flock.load({str(path)!r}, memory=8e9)"
    )


def in_words(size: float) -> str:
    """A number of bytes as people read it.

    >>> in_words(8e12), in_words(2000)
    ('8,000 GB', '2 kB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            count = size / unit
            return f"{count:,.0f} {name}" if count >= 100 else f"{count:.3g} {name}"
    return f"{size:.0f} bytes"


def _machine() -> float:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(
                float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")
            )
    except (OSError, StopIteration):
        return 4e9


def _containers() -> list[float]:
    rooms = []
    for limit, used in _CGROUPS:
        try:
            most, taken = (
                float((Path("/sys/fs/cgroup") / name).read_text()) for name in (limit, used)
            )
        except (OSError, ValueError):  # no container, or one without a limit ("max")
            continue
        rooms.append(most - taken)
    return rooms
