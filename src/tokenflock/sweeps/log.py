"""The log of a store: which blocks are done, with a checksum of each line and of each block.

A line is added by one write, so that it is there or not; one that was cut short is none.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tokenflock.errors import UserError
from tokenflock.files import put, told
from tokenflock.sweeps.own import own_file

LONGEST = 4096  # bytes of a line
ERROR = 300  # characters of an error, each of up to 12 bytes in a line
MOST, EACH = 2**26, 2**16  # bytes of a log, and more for each block: beyond it, it is none of ours
AGES = 1e11  # seconds: no block took so long
NEW = "new"  # the file by way of which others are written
_DONE = b'["done",'


@dataclass
class Standing:
    """What the log says of each block."""

    done: np.ndarray  # (blocks,), True where one is written
    sums: np.ndarray  # (blocks,), checksums of what was written
    seconds: float = 0.0  # of computing, all blocks together
    failed: dict[int, str] = field(default_factory=dict)  # block -> its last error
    runs: list[str] = field(default_factory=list)  # who worked on it, with what, in JSON

    @classmethod
    def nothing(cls, blocks: int) -> Standing:
        """Of a store in which nothing is done."""
        return cls(np.zeros(blocks, bool), np.zeros(blocks, np.uint64))

    def take(self, entry: Any) -> None:
        """One line more."""
        if type(entry) is list and len(entry) == 4 and entry[0] == "done":
            _, block, total, seconds = entry
            if type(total) is not int or not isinstance(seconds, (int, float)):
                raise ValueError("no numbers")
            if not (0 <= total < 2**64 and 0 <= seconds < AGES):  # nor NaN
                raise ValueError("numbers that make no sense")
            self.done[_known(block, self.done)] = True
            self.sums[block] = total
            self.seconds += seconds
            self.failed.pop(block, None)
            return
        match entry:
            case ["failed", int(block), str(error)]:
                self.failed[_known(block, self.done)] = error
            case ["redo", int(block)]:
                self.done[_known(block, self.done)] = False
            case ["run", dict(facts)]:
                self.runs.append(json.dumps(facts))  # as a dict it takes 20 times as much
            case _:
                raise ValueError("a line that is none of ours")


def _known(block: int, done: np.ndarray) -> int:
    if type(block) is not int or not 0 <= block < len(done):
        raise ValueError("a block that is not there")
    return block


class Log:
    """The file of the log. Only the process that holds the store may write to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.handle: int | None = None

    def read(self, blocks: int, mend: bool = False) -> Standing:
        """What is done. A line that is damaged is an error, or, to mend, left out; the last one may
        be cut short.
        """
        progress = Standing.nothing(blocks)
        for number, end, entry in self._lines(MOST + EACH * blocks):
            try:
                if entry is None:
                    raise ValueError("a checksum that differs")
                progress.take(entry)
            except (ValueError, OverflowError):
                if not mend and not (entry is None and end):
                    raise UserError(
                        f"{self.path} is damaged in line {number}; find out what is left with:"
                        f" tokenflock sweep --repair {self.path.parents[1]}"
                    ) from None
        return progress

    def _lines(self, most: int) -> Iterator[tuple[int, bool, Any]]:
        """(number, whether it is the last, entry or None where it is damaged) of every line."""
        try:
            handle = own_file(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return
        with open(handle, "rb") as file:
            size = os.fstat(handle).st_size
            if size > most:
                raise UserError(
                    f"{self.path} holds {size:,} bytes, and the log of such a store at most"
                    f" {most:,}; get the store anew"
                )
            number, at = 0, 0
            while line := file.readline(LONGEST):
                number, at = number + 1, at + len(line)
                yield number, at == size and not line.endswith(b"\n"), _parsed(line)

    def open(self) -> None:
        """Get ready to write: what was cut short goes."""
        with told(self.path):
            self.handle = own_file(self.path, os.O_RDWR | os.O_CREAT)
            size, good = os.fstat(self.handle).st_size, 0
            if size:
                tail = os.pread(self.handle, min(size, LONGEST), max(0, size - LONGEST))
                good = size - len(tail) + tail.rfind(b"\n") + 1
            os.ftruncate(self.handle, good)

    def close(self) -> None:
        """No more lines."""
        if self.handle is not None:
            os.close(self.handle)
        self.handle = None

    def add(self, *entry: Any) -> None:
        """One line more, on the disk when this returns; none where there is no room for it."""
        if self.handle is None:
            raise ValueError("the log is not open")
        line, size = _line(entry), os.fstat(self.handle).st_size
        with told(self.path):
            try:
                if os.pwrite(self.handle, line, size) < len(line):
                    raise OSError(28, "no space left")
                os.fsync(self.handle)
            except OSError:
                os.ftruncate(self.handle, size)
                raise

    def rewrite(self, progress: Standing) -> None:
        """Write the whole log anew, from what is known."""
        lines = [_line(("run", json.loads(facts))) for facts in progress.runs]
        lines += [
            _line(("done", int(block), int(progress.sums[block]), 0.0 if k else progress.seconds))
            for k, block in enumerate(np.flatnonzero(progress.done))
        ]
        new = self.path.with_name(NEW)
        new.unlink(missing_ok=True)  # it may be a link
        put(self.path, b"".join(line for line in lines if len(line) <= LONGEST), new)


def _line(entry: Any) -> bytes:
    text = json.dumps(entry).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parsed(line: bytes) -> Any:
    """The entry of a line, or None where it is damaged."""
    mark, _, text = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or mark != b"%08x" % zlib.crc32(text):
        return None
    try:
        if text.startswith(_DONE):  # nearly all lines, and there may be millions
            block, total, seconds = text[len(_DONE) : -1].split(b",")
            return ["done", int(block), int(total), float(seconds)]
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
