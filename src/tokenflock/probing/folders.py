"""The folder of a model, looked at before a library opens what lies in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenflock.errors import UserError, require
from tokenflock.files import received, received_json, require_expandable

MOST = 2**28  # bytes of a file in JSON, or of a list of words, that is read
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.safetensors.index.json")
_LISTS = {".json": b",[{:", ".txt": b"\n"}  # ending -> what separates values, each an object
_NAMING = {"*.index.json": "weight_map", "tokenizer_config.json": "fast_tokenizer_files"}


def check(folder: Path) -> None:
    """Refuse a folder that leads out of itself, or whose lists do not fit in the memory; and one
    that holds a pipe or a device, which might never end.
    """
    try:
        inside = sorted({*folder.iterdir(), *folder.glob("*/*")})
    except OSError as error:
        raise UserError(f"{folder} cannot be read ({error.strerror})") from None
    for path in inside:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UserError(
                f"{path} is a pipe or a device, and a model is made of files; remove it, or give"
                " another folder"
            )
        _refuse_link(path, folder)
        if path.is_file() and path.suffix in _LISTS:
            require_expandable(received(path, MOST), _LISTS[path.suffix], path)
    _refuse_names(folder)


def _refuse_link(path: Path, folder: Path) -> None:
    """Refuse a link out of the folder, unless to where the cache of the hub keeps its files."""
    root, target = folder.resolve(), path.resolve()
    kept = target.parent.name == "blobs" and target.parent.parent in root.parents
    if path.is_symlink() and not (target.is_relative_to(root) or kept):
        raise UserError(
            f"{path} is a link to {target}, out of the folder; if you trust it, put the file itself"
            " there, e.g. by a copy of the folder with cp -rL"
        )


def _refuse_names(folder: Path) -> None:
    """Refuse files of other folders, which these files may name for a library to open."""
    for pattern, key in _NAMING.items():
        for path in folder.glob(pattern):
            told = described(path).get(key)
            names = list(told.values()) if isinstance(told, dict) else told
            for name in names if isinstance(names, list) else ():
                plain = isinstance(name, str) and Path(name).name == name
                require(plain, f"{key} in {path}", "names of files beside it", f"{name!r:.80}")
    adapter = folder / "adapter_config.json"
    if adapter.exists():
        raise UserError(
            f"{adapter} names another model, which would be loaded too; merge the adapter into its"
            " model, or remove the file"
        )


def described(path: Path) -> dict[str, Any]:
    """Return the object that a file in JSON describes."""
    try:
        told = received_json(path, MOST)
    except UserError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON that can be read ({error})") from None
    require(isinstance(told, dict), str(path), "an object", type(told).__name__)
    return told


def weight_files(folder: Path) -> list[Path]:
    """The files of a folder that hold weights, or say which others do."""
    return [path for name in _WEIGHTS for path in folder.glob(name)]


def weight_bytes(folder: Path) -> int:
    """How large the weights of a folder are."""
    return sum(path.stat().st_size for path in weight_files(folder) if path.suffix != ".json")
