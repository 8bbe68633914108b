"""Where the blocks of a result go: memory, or a netCDF file that grows prompt by prompt."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import xarray as xr

from tokenflock.files import whole_stream, writable


class Memory:
    """Blocks side by side in memory."""

    def __init__(self) -> None:
        self.blocks: list[xr.Dataset] = []

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def add(self, block: xr.Dataset) -> None:
        """Put a block of prompts behind those that are there."""
        self.blocks.append(block)

    def result(self) -> xr.Dataset:
        """All of them as one."""
        if len(self.blocks) == 1:
            return self.blocks[0]
        return xr.concat(
            self.blocks,
            "prompt",
            data_vars="minimal",
            coords="minimal",
            compat="override",
            join="override",
        )


class File:
    """Blocks in one netCDF file, which has its name only once it is complete."""

    def __init__(self, path: str | os.PathLike[str], prompts: int) -> None:
        self.path, self.prompts, self.done = Path(path), prompts, 0
        writable(self.path)

    def __enter__(self) -> File:
        with ExitStack() as stack:
            self.stream = stack.enter_context(whole_stream(self.path, lasting=True))
            self.file = stack.enter_context(h5netcdf.File(self.stream, "w"))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *raised: Any) -> bool | None:
        return self.stack.__exit__(*raised)

    def add(self, block: xr.Dataset) -> None:
        """Put a block of prompts behind those that are there."""
        if not self.done:
            self._lay_out(block)
        here = slice(self.done, self.done + block.sizes["prompt"])
        for name, variable in block.variables.items():
            if "prompt" in variable.dims:
                self.file.variables[name][here] = variable.values
        self.stream.check()
        self.done += block.sizes["prompt"]

    def result(self) -> xr.Dataset:
        """The file, read only where it is looked at."""
        return xr.open_dataset(self.path, engine="h5netcdf")

    def _lay_out(self, block: xr.Dataset) -> None:
        """Room for all prompts, and what does not depend on them."""
        self.file.dimensions = {
            dim: self.prompts if dim == "prompt" else size for dim, size in block.sizes.items()
        }
        for name, variable in block.variables.items():
            dtype = h5py.string_dtype() if variable.dtype == object else variable.dtype
            made = self.file.create_variable(name, variable.dims, dtype)
            made.attrs.update(variable.attrs)
            if "prompt" not in variable.dims:
                made[...] = variable.values
        self.file.attrs.update(block.attrs)
        extra = [name for name in block.coords if name not in block.dims]
        if extra:
            self.file.attrs["coordinates"] = " ".join(map(str, extra))
