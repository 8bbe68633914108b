"""Files of a folder that somebody may have sent: what belongs to it lies in it, and no link in it
is followed.
"""

from __future__ import annotations

import errno
import os
import stat

from tokenflock.errors import UserError

_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class OddFile(UserError):
    """What lies in a store is not its own: a link, a pipe, a device."""


def inside(root: str | os.PathLike[str], name: str, folder: bool = False) -> os.stat_result | None:
    """What lies at a place in a store, e.g. x/c/0; None where nothing does.

    A store may come from anybody, so the file and every folder on the way to it must be there
    themselves: a link, a pipe or a device is refused. The path of the store itself may be a link.
    """
    path, about = os.fspath(root), None
    parts = name.split("/")
    for k, part in enumerate(parts, 1):
        path = f"{path}/{part}"
        try:
            about = os.lstat(path)
        except OSError as error:
            if error.errno in _NOWHERE:
                return None
            raise
        _refuse(path, about.st_mode, folder or k < len(parts))
    return about


def refuse_links(root: str | os.PathLike[str]) -> None:
    """Raise if a link, a pipe or a device lies anywhere in a folder."""
    for folder, names, files in os.walk(root):
        for name in (*names, *files):
            inside(folder, name, folder=name in names)


def _refuse(path: str, mode: int, folder: bool) -> None:
    """Refuse what is no folder, or no file, of the store itself."""
    if stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode):
        return
    wanted = "a folder" if folder else "a file"
    if stat.S_ISLNK(mode):
        raise OddFile(
            f"{path} is a link, which may lead out of the folder; put {wanted} there, e.g. by a"
            " copy of the folder with cp -rL"
        )
    raise OddFile(
        f"{path} must be {wanted}, and is something else, e.g. a pipe or a device; get the folder"
        " anew"
    )


def own_file(path: str | os.PathLike[str], flags: int) -> int:
    """An open handle of a file in a store, which is no link and no pipe, whatever was there when
    the store was looked at.
    """
    extra = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags | extra, 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            _refuse(os.fspath(path), os.lstat(path).st_mode, False)
        raise
    try:
        _refuse(os.fspath(path), os.fstat(handle).st_mode, False)
    except OddFile:
        os.close(handle)
        raise
    return handle
