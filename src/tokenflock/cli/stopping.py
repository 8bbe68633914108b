"""Ctrl-C and its kin: a command ends within seconds, cleans up, and says how to go on.

A signal raises KeyboardInterrupt. That alone is not enough: compiled code runs for minutes without
looking at it, and callbacks of libraries swallow it. So a thread waits for the signal too, and ends
the process if the command has not done so by itself.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from tokenflock import files

GRACE = 1.5  # seconds in which a command may end by itself
WRITING = 10.0  # seconds for one that is just writing a file
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class _State:
    """What was asked of this process, and how the same command would go on."""

    def __init__(self) -> None:
        self.asked: int | None = None
        self.hint = ""


_STATE = _State()


def goes_on(hint: str) -> None:
    """Say how a command that is stopped goes on, e.g. `the same command goes on from there`."""
    _STATE.hint = hint


def asked() -> bool:
    """Whether a signal has asked this command to stop."""
    return _STATE.asked is not None


def check() -> None:
    """Stop here if a signal has asked for it and something swallowed it."""
    if asked():
        raise KeyboardInterrupt


def words() -> str:
    """What to say of a command that was stopped."""
    return f"stopped; {_STATE.hint}" if _STATE.hint else "stopped"


def code() -> int:
    """The exit code of a command that was stopped: 130 after Ctrl-C."""
    return 128 + (_STATE.asked or signal.SIGINT)


@contextmanager
def obeying() -> Iterator[None]:
    """While this lasts, SIGINT, SIGTERM and SIGHUP end the command: at once the second time.

    A signal that the caller ignores (nohup) stays ignored.
    """
    _STATE.asked, _STATE.hint = None, ""
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    before = {number: signal.signal(number, _obey) for number in heard}
    fd = signal.set_wakeup_fd(ends[1], warn_on_full_buffer=False)
    hook, sys.unraisablehook = sys.unraisablehook, _overheard
    watch = threading.Thread(target=_watch, args=(ends[0], heard), daemon=True)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(fd)
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(ends[1])
        watch.join()
        os.close(ends[0])


def leave(status: int) -> None:
    """End the process now: what it was writing goes, what it said is shown."""
    files.discard()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def _obey(number: int, frame: FrameType | None) -> Any:
    if asked():
        leave(code())
    _STATE.asked = number
    if _importing(frame):
        _say(f"error: {words()}\n")
        leave(code())
    raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    """Whether a library is being imported: an exception in the midst of that may crash one that is
    not written in Python.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _overheard(lost: Any) -> None:
    """An interrupt that came inside a finaliser is lost there; the thread remembers it."""
    if not (asked() and issubclass(lost.exc_type, KeyboardInterrupt)):
        sys.__unraisablehook__(lost)


def _watch(end: int, heard: list[int]) -> None:
    """Wait for a signal; end the process if it does not end by itself.

    An empty read says that the command is over.
    """
    with suppress(_Over):
        _end(end, heard)


class _Over(Exception):
    """The command is over."""


def _end(end: int, heard: list[int]) -> None:
    """After a signal, wait for the command to end by itself, or end it."""
    first = _next(end, heard, None)
    deadline, latest = time.monotonic() + GRACE, time.monotonic() + WRITING
    while (left := deadline - time.monotonic()) > 0:
        if _next(end, heard, left) is not None:
            break  # the second signal
        if files.busy() and time.monotonic() < latest:
            deadline = max(deadline, time.monotonic() + 0.1)
    _STATE.asked = _STATE.asked or first
    _say(f"error: {words()}\n")
    leave(code())


def _next(end: int, heard: list[int], seconds: float | None) -> int | None:
    """The next of these signals within so many seconds; over when the pipe closes."""
    ready, _, _ = select.select([end], [], [], seconds)
    while ready:
        data = os.read(end, 1)
        if not data:
            raise _Over
        if data[0] in heard:
            return data[0]
        ready, _, _ = select.select([end], [], [], seconds)
    return None


def _say(line: str) -> None:
    """A line on standard error, past whatever a progress bar has hidden there."""
    clear = b"\r\x1b[K\x1b[?25h" if os.isatty(2) else b""
    with suppress(OSError):
        os.write(2, clear + line.encode())
