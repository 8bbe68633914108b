"""Locks: of two processes that would write to one place the second is told so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tokenflock.errors import UserError


@contextmanager
def alone(path: Path, doing: str) -> Iterator[None]:
    """Hold a lock, so that of two processes which add to one output the second is refused.

    The lock lies on the folder `path` itself, or on a hidden file beside the file `path`, which
    goes when the work ends. It dies with its process, however that ends.
    """
    lock = path if path.is_dir() else path.with_name(f".{path.name}.lock")
    try:
        handle = _lasting(lock)
    except BlockingIOError:
        raise UserError(
            f"{path}: another process is {doing}; wait for it to end, or choose another --out"
        ) from None
    try:
        yield
    finally:
        if handle is not None:
            if not lock.is_dir():
                lock.unlink(missing_ok=True)
            os.close(handle)


def locked(path: Path) -> int:
    """An open handle that holds the lock of a folder or a file, which is made where it is missing.

    A BlockingIOError where another process holds it, another OSError where there are no locks.
    """
    try:
        import fcntl
    except ImportError:
        raise OSError("this system knows no locks") from None
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    handle = os.open(path, flags, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _lasting(lock: Path) -> int | None:
    """The same of what is still there once it is locked; None where there are no locks, as on some
    network file systems.
    """
    while True:
        try:
            handle = locked(lock)
        except BlockingIOError:
            raise
        except OSError:
            return None
        with suppress(OSError):
            if os.stat(lock).st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)  # its last owner removed it meanwhile: lock the new one
