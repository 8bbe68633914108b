"""Files that appear only once they are complete."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tokenflock.errors import UserError
from tokenflock.locks import locked

_PREFIX = ".tokenflock-"  # a folder beside the file that is being written: prefix, process, chance
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LIVE: dict[Path, bool] = {}  # such folders of this process, and whether theirs is soon written
_STALE = 7 * 86_400  # seconds: what is older is nobody's, on a disk that knows no locks
ALLOWED = 2.0**30  # bytes that what a file holds may take in memory without asking,
TIMES = 4  # or so many times the size of the file, where that is more
VALUE = 100  # bytes of a small object in Python, with its place in a list
NETCDF = "netCDF"
_MARKS: dict[str, Callable[[bytes], bool]] = {  # how the files that tokenflock writes begin
    NETCDF: lambda head: head.startswith(b"\x89HDF\r\n\x1a\n"),
    ".png": lambda head: head.startswith(b"\x89PNG\r\n\x1a\n"),
    ".pdf": lambda head: head.startswith(b"%PDF-"),
    ".svg": lambda head: head.startswith((b"<?xml", b"<svg")),
    ".gif": lambda head: head.startswith(b"GIF8"),
    ".mp4": lambda head: head[4:8] == b"ftyp",
    ".html": lambda head: b'content="tokenflock"' in head or b", probed</title>" in head,
    ".json": lambda head: (
        b'"verdict"' in head or b'"tokenflock recording"' in head or head.split() == [b"[]"]
    ),
}


class NoSpace(OSError):
    """A full disk, told in one line that contains the remedy."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"no space left on {path.parent.resolve()} to write {path.name}; free some or choose"
            " another --out"
        )


@contextmanager
def whole(path: str | os.PathLike[str], lasting: bool = False) -> Iterator[Path]:
    """A place to write a file to.

    It gets the name `path` once it is complete; where the writing fails, nothing is left. A link
    stays a link: its target is written. A file that is replaced hands on its mode and its owner.
    What processes that were killed left in the folder is cleared away. `lasting` says that the file
    grows while something is computed: who stops that does not wait for it (see `busy`).
    """
    target = Path(path).resolve()
    _clear(target.parent)
    with told(target), _beside(target, lasting) as folder:
        part = folder / target.name
        yield part
        with open(part, "r+b") as written:
            os.fsync(written.fileno())
        _hand_on(target, part)
        os.replace(part, target)


def put(path: Path, data: bytes, through: Path) -> None:
    """Write a small file whole or not at all, by way of the file `through` on the same disk.

    For a single writer of many files, which clears nothing away and asks nothing.
    """
    with told(path):
        try:
            handle = os.open(through, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            os.replace(through, path)
        except FileNotFoundError:
            raise UserError(f"{path} cannot be written: its folder is gone") from None
        except OSError:
            through.unlink(missing_ok=True)
            raise


@contextmanager
def whole_stream(path: str | os.PathLike[str], lasting: bool = False) -> Iterator[Stream]:
    """A stream for a library that cannot bear a full disk (HDF5 crashes): it never fails while it
    is written to; the failure is told at the end, or by `Stream.check`.
    """
    with whole(path, lasting) as part, open(part, "w+b", buffering=0) as file:
        stream = Stream(file)
        with ExitStack() as quiet:
            quiet.push(lambda kind, error, _: isinstance(error, Exception) and bool(stream.failed))
            yield stream
        stream.check()


class Stream(io.RawIOBase):
    """A file that remembers the first failure instead of raising it."""

    def __init__(self, file: io.FileIO) -> None:
        super().__init__()
        self.file = file
        self.failed: OSError | None = None

    def check(self) -> None:
        """Raise what has failed so far."""
        if self.failed is not None:
            raise self.failed

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer; what could not be written reads as zeros."""
        count = self.file.readinto(buffer) or 0
        if self.failed is None:
            return count
        buffer[count:] = bytes(len(buffer) - count)  # what was not written reads as zeros
        return len(buffer)

    def write(self, data: memoryview) -> int:
        """Write all of it, or remember why that failed and take the rest for written."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(view) and self.failed is None:
                done += self.file.write(view[done:])
        except OSError as error:
            self.failed = error
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        size = self.tell() if size is None else size
        try:
            return self.file.truncate(size)
        except OSError as error:
            self.failed = self.failed or error
            return size


def received(path: str | os.PathLike[str], most: int, pipe: bool = False) -> bytes:
    """The bytes of a file that somebody may have sent: no pipe or device, at most so many bytes.

    With `pipe` it may also be a pipe, which the user named on purpose: `--text <(command)`. A file
    that is not there is a FileNotFoundError.
    """
    waits = 0 if pipe else getattr(os, "O_NONBLOCK", 0)  # for a writer, only where one is expected
    handle = os.open(path, os.O_RDONLY | waits)
    try:
        about = os.fstat(handle)
        if pipe and stat.S_ISFIFO(about.st_mode):
            with open(handle, "rb", closefd=False) as file:
                return file.read(most)
        if not stat.S_ISREG(about.st_mode):
            raise UserError(f"{path} is a folder, a pipe or a device; it must be a file")
        if about.st_size > most:
            raise UserError(f"{path} holds {about.st_size:,} bytes; at most {most:,} are read")
        with open(handle, "rb", closefd=False) as file:
            return file.read(about.st_size)
    finally:
        os.close(handle)


def received_json(path: str | os.PathLike[str], most: int) -> Any:
    """Return the values of a JSON file that somebody may have sent, as `received` reads it."""
    return parsed_json(received(path, most), path)


def parsed_json(data: bytes, path: str | os.PathLike[str]) -> Any:
    """Return the values of a text in JSON. Raise if they may take more memory than is allowed."""
    require_expandable(data, b",[{:", path)
    return json.loads(data)


def require_expandable(data: bytes, separators: bytes, path: str | os.PathLike[str]) -> None:
    """Raise if a text takes too much memory once it is decoded and split at these characters.

    A few bytes of a text, such as `[],`, may become objects of a hundred bytes.
    """
    width = 1 if data.isascii() else 4  # bytes of each character, if only one is not ASCII
    count = sum(data.count(separator) for separator in separators)
    needed = (1 + 2 * width) * len(data) + VALUE * count
    if needed > (most := max(ALLOWED, TIMES * len(data))):
        raise UserError(
            f"{path} has {len(data):,} bytes and takes up to {needed / 1e9:.1f} GB of memory once"
            f" it is read; at most {most / 1e9:.1f} GB are allowed; split it, or get it anew"
        )


def writable(path: str | os.PathLike[str]) -> bool:
    """Refuse a path that cannot be written, before any work is done.

    Says whether a file is there already.
    """
    path = Path(path)
    try:
        target = path.resolve()
        kind = target.stat().st_mode if target.exists() else stat.S_IFREG
    except (OSError, RuntimeError):  # a link that leads to itself, a name that is too long
        raise UserError(f"{path} cannot be written; choose another path") from None
    if stat.S_ISDIR(kind):
        raise UserError(f"{path} is a folder; name a file in it, e.g. {path / 'run.nc'}")
    if not stat.S_ISREG(kind):
        raise UserError(f"{path} is a device, a pipe or a socket, not a file; choose another path")
    if not target.parent.is_dir():
        folder = target.parent if path.is_symlink() else path.parent
        raise UserError(f"the folder {folder} does not exist; make it with: mkdir -p {folder}")
    if not os.access(target.parent, os.W_OK) or (
        target.exists() and not os.access(target, os.W_OK)
    ):
        raise UserError(f"{path} cannot be written; choose another path")
    try:
        with told(target):
            os.rmdir(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=target.parent))
    except NoSpace:
        raise
    except OSError:  # a folder of the system, in which nothing can be made
        raise UserError(f"{path} cannot be written; choose another path") from None
    return target.exists()


def replaceable(path: str | os.PathLike[str], kind: str | None = None) -> bool:
    """As `writable`, and refuse to write over a file that is none of ours: not of the kind that is
    written, which is NETCDF or what the ending of the path says.
    """
    path = Path(path)
    there = writable(path)
    if kind == NETCDF and path.suffix.lower() in (*_MARKS, ".jpg", ".jpeg", ".avi", ".webm"):
        raise UserError(
            f"{path} is written as netCDF, which is no {path.suffix} file; write e.g."
            f" {path.with_suffix('.nc')}"
        )
    kind = kind or path.suffix.lower()
    if there and not is_ours(path, kind):
        raise UserError(
            f"{path} exists and is no {kind} file of tokenflock; move it away, or choose another"
            " path"
        )
    return there


def made_folder(path: str | os.PathLike[str]) -> Path:
    """A folder that is there and can be written, or one clear line."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in _FULL:
            raise NoSpace(path) from None
        raise UserError(
            f"{path} is no folder that can be made; choose another with --out"
        ) from None
    if not os.access(path, os.W_OK):
        raise UserError(f"{path} cannot be written; choose another with --out")
    return path


def cache_folder() -> Path | None:
    """Where results that can be made again are kept: $TOKENFLOCK_CACHE or a folder in the user's
    cache. None where nothing can be kept, or TOKENFLOCK_CACHE=off.
    """
    named = os.environ.get("TOKENFLOCK_CACHE")
    if named == "off":
        return None
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        place = Path(named or Path(home) / "tokenflock")
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, no permission, no space
        return None
    return place if os.access(place, os.W_OK) else None


def discard() -> None:
    """Remove what this process is writing: it is about to end."""
    for folder in list(_LIVE):
        shutil.rmtree(folder, ignore_errors=True)


def busy() -> bool:
    """Whether a file is being written that will soon be complete."""
    return any(_LIVE.values())


@contextmanager
def _beside(target: Path, lasting: bool) -> Iterator[Path]:
    """A hidden folder beside a file, which a lock keeps for this process, named in it."""
    folder, handle = _kept(target.parent)
    _LIVE[folder] = not lasting
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _LIVE.pop(folder, None)
        if handle is not None:
            os.close(handle)


def _kept(place: Path) -> tuple[Path, int | None]:
    """A new hidden folder and the handle that locks it; None where the system knows no locks."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=place))
        try:
            handle = locked(folder)
        except BlockingIOError:  # somebody took it for a leftover before it was locked
            continue
        except OSError:
            return folder, None
        if folder.is_dir():
            return folder, handle
        os.close(handle)


@contextmanager
def told(target: Path) -> Iterator[None]:
    """A full disk in one line."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise NoSpace(target) from None
        raise


def _hand_on(target: Path, part: Path) -> None:
    """Give a new file the mode and, where allowed, the owner of the file that it replaces."""
    try:
        before = target.stat()
    except OSError:
        return
    with suppress(OSError):
        os.chown(part, before.st_uid, before.st_gid)
    os.chmod(part, stat.S_IMODE(before.st_mode))


def _clear(folder: Path) -> None:
    """Remove what processes that are gone left half written in a folder."""
    with suppress(OSError):
        for left in folder.glob(f"{_PREFIX}*"):
            owner = re.fullmatch(re.escape(_PREFIX) + r"(\d+)-\w+", left.name)
            if owner and not _runs(int(owner[1])) and not _held(left):
                shutil.rmtree(left, ignore_errors=True)


def _held(left: Path) -> bool:
    """Whether a process somewhere, be it in another container, still writes to a hidden folder."""
    try:
        os.close(locked(left))
    except BlockingIOError:
        return True
    except OSError:
        return time.time() - left.stat().st_mtime < _STALE
    return False


def _runs(process: int) -> bool:
    """Whether a process is there, among those seen from here; True where that cannot be told."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def is_ours(path: Path, kind: str | None = None) -> bool:
    """Whether a file looks like one that tokenflock writes; an empty one holds nothing to lose."""
    kind = kind or path.suffix.lower()
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    if not head or kind not in _MARKS:
        return True
    return _MARKS[kind](head) and (kind != NETCDF or _has_recipe(path))


def _has_recipe(path: Path) -> bool:
    """Whether a netCDF file says how it was made."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return "recipe" in file.attrs
    except (OSError, RuntimeError, KeyError):
        return False
