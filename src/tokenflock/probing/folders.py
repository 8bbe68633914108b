"""The folder of a model, looked at before a library opens what lies in it."""

from __future__ import annotations

from pathlib import Path

from tokenflock.errors import UserError

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.safetensors.index.json")


def check(folder: Path) -> None:
    """Refuse a folder that holds a pipe or a device, which might never end."""
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


def weight_files(folder: Path) -> list[Path]:
    """The files of a folder that hold weights, or say which others do."""
    return [path for name in _WEIGHTS for path in folder.glob(name)]


def weight_bytes(folder: Path) -> int:
    """How large the weights of a folder are."""
    return sum(path.stat().st_size for path in weight_files(folder) if path.suffix != ".json")
