"""Files that appear only once they are complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokenflock.errors import UserError


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place to write a file to.

    It gets the name `path` once it is complete; where the writing fails, nothing is left.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".tokenflock-") as folder:
        part = Path(folder) / path.name
        yield part
        with open(part, "r+b") as written:
            os.fsync(written.fileno())
        os.replace(part, path)


def writable(path: Path) -> None:
    """Refuse a path that cannot be written, before any work is done."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file in it, e.g. {path / 'run.nc'}")
    if not path.parent.is_dir():
        raise UserError(
            f"the folder {path.parent} does not exist; make it with: mkdir -p {path.parent}"
        )
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise UserError(f"{path} cannot be written; choose another path")
