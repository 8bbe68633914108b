"""Opening a file from someone else never runs code, never reads another file, never writes outside
the path that was named, and never uses more memory than a stated limit without asking.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import gpt
from tokenflock.cli import main
from tokenflock.dynamics import SelfAttention
from tokenflock.errors import UserError
from tokenflock.starts import Uniform
from tokenflock.sweeps import check, repair

SHAPE = (4, 3, 2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with secrets of its reader, and a pipe that nobody writes to."""
    monkeypatch.chdir(tmp_path)
    np.arange(24.0).tofile("secret.bin")
    with h5py.File("secret.h5", "w") as file:
        file["x"] = np.arange(24.0).reshape(SHAPE)
    os.mkfifo("pipe")
    return tmp_path


def virtual(source: str, unlimited: bool = False):
    def add(file: h5py.File) -> None:
        most = (None, 3, 2) if unlimited else SHAPE
        layout = h5py.VirtualLayout(SHAPE, "f8", maxshape=most)
        part = slice(h5py.h5s.UNLIMITED) if unlimited else slice(None)
        layout[part] = h5py.VirtualSource(source, "x", SHAPE, maxshape=most)[part]
        file.create_virtual_dataset("x", layout)

    return add


def external(source: str):
    parts = [(os.path.abspath(source), 0, h5py.h5f.UNLIMITED)]
    return lambda file: file.create_dataset("x", SHAPE, "f8", external=parts)


def deep(file: h5py.File) -> None:
    file["a/b/x"] = h5py.ExternalLink("secret.h5", "/x")


LEADING = {  # ways in which HDF5 leads out of a file, or onto itself
    "external storage": lambda: external("secret.bin"),
    "external storage in a pipe": lambda: external("pipe"),
    "an external link": lambda: lambda file: file.update(x=h5py.ExternalLink("secret.h5", "/x")),
    "an external link in a group": lambda: deep,
    "a link to a pipe": lambda: lambda file: file.update(x=h5py.ExternalLink("pipe", "/x")),
    "a symbolic link": lambda: lambda file: file.update(x=h5py.SoftLink("/w")),
    "a virtual dataset": lambda: virtual("secret.h5"),
    "a virtual dataset without end": lambda: virtual("secret.h5", unlimited=True),
    "a virtual dataset onto itself": lambda: virtual("."),
    "a virtual dataset in a pipe": lambda: virtual("pipe"),
}


def carrying(name: str, add) -> None:
    """Write a file with one more array."""
    with h5py.File(name, "w") as file:
        file["w"] = np.full(3, 1 / 3)
        add(file)


@pytest.mark.parametrize("way", LEADING)
def test_a_file_that_leads_to_another_is_refused_before_that_is_followed(way, folder):
    carrying("run.nc", LEADING[way]())
    with pytest.raises(UserError, match=r"run\.nc is refused: "):
        flock.load("run.nc")


def test_no_command_publishes_what_a_file_leads_to(folder, capsys):
    carrying("run.nc", LEADING["external storage"]())
    for words in (["lab", "run.nc", "--out", "a.json"], ["plot", "run.nc", "--out", "a.png"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 2 and "is refused" in capsys.readouterr().err
    assert not os.path.exists("a.json") and not os.path.exists("a.png")


def test_a_module_that_comes_with_a_result_does_not_run(folder):
    carrying("run.nc", lambda file: None)
    for name in ("h5py", "h5netcdf", "json", "resource"):
        (folder / f"{name}.py").write_text("open('canary', 'w')")
    code = "import sys; sys.path.remove(''); import tokenflock; tokenflock.load('run.nc')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)
    assert not os.path.exists("canary")


def gzipped(file: h5py.File) -> None:
    """4.4 GB of zeros, none of which are in the file."""
    file.create_dataset("unused", 550_000_000, "f8", chunks=(10**6,), compression="gzip")


def chunk_beyond_the_shape(file: h5py.File) -> None:
    """Ten numbers in a chunk of 2 GB, which is unpacked as a whole."""
    kinds = {"chunks": (2 << 30,), "maxshape": (None,), "compression": "gzip"}
    file.create_dataset("unused", (10,), "u1", **kinds)


def one_text_many_times(file: h5py.File) -> None:
    """4,000 references to one text of a million letters."""
    text = h5py.string_dtype()
    data = file.create_dataset("unused", 4000, text, chunks=(4000,), compression="gzip")
    data[:] = ["a" * 10**6] + ["b"] * 3999
    first = zlib.decompress(data.id.read_direct_chunk((0,))[1])[:16]
    data.id.write_direct_chunk((0,), zlib.compress(first * 4000))


def one_text_in_many_rows(file: h5py.File) -> None:
    """4,000 rows of a number and a reference to one text of a million letters."""
    kind = np.dtype([("number", "f8"), ("text", h5py.string_dtype())])
    data = file.create_dataset("unused", 4000, kind, chunks=(4000,), compression="gzip")
    rows = np.zeros(4000, kind)
    rows["text"] = "a" * 10**6
    data[:1] = rows[:1]
    first = zlib.decompress(data.id.read_direct_chunk((0,))[1])[:24]
    data.id.write_direct_chunk((0,), zlib.compress(first * 4000))


def one_array_by_many_names(file: h5py.File) -> None:
    file["a"] = np.zeros(10**6)
    for k in range(200):
        file[f"a{k}"] = file["a"]


def dates(file: h5py.File) -> None:
    """Small integers that become objects of a hundred bytes each."""
    file.create_dataset("unused", 10**8, "i1", chunks=(10**6,), compression="gzip")
    file["unused"].attrs["scale_factor"] = 2.0
    file.create_dataset("time", 10**8, "i1", chunks=(10**6,), compression="gzip")
    file["time"].attrs["scale_factor"] = 2.0


BOMBS = (gzipped, chunk_beyond_the_shape, one_text_many_times, one_text_in_many_rows)
BOMBS += (one_array_by_many_names, dates)


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_takes_far_more_memory_than_its_file_is_not_read(bomb, folder):
    carrying("run.nc", bomb)
    with pytest.raises(UserError, match=r"run\.nc has .* on disk and takes more than .* memory="):
        flock.load("run.nc")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is not limited here")
def test_a_packed_chunk_that_holds_more_than_it_should_is_not_unpacked(folder):
    """100 numbers, packed as 512 MB: HDF5 unpacks all of it."""

    def add(file: h5py.File) -> None:
        data = file.create_dataset("unused", 100, "f8", chunks=(100,), compression="gzip")
        packer = zlib.compressobj()
        parts = [packer.compress(bytes(2**24)) for _ in range(32)]
        data.id.write_direct_chunk((0,), b"".join([*parts, packer.flush()]))

    carrying("run.nc", add)
    with pytest.raises(UserError, match=r"run\.nc is no netCDF file that tokenflock can read"):
        flock.load("run.nc", memory=1e6)


def test_the_limit_of_memory_is_what_the_reader_says(folder):
    run = flock.simulate(SelfAttention(), np.eye(3), t=1, frames=5)
    copy = shutil.copy(flock.save(run, "run.nc"), "copy.nc")
    with pytest.raises(UserError, match="memory=8e9"):
        flock.load(copy, memory=100)
    assert flock.load(copy, memory=1e6).identical(flock.load(copy))
    wrong: Any
    for wrong in (0, -1, np.inf, "2 GB", True):
        with pytest.raises(UserError, match="memory must be"):
            flock.load(copy, memory=wrong)


# ---------------------------------------------------------------- stores


@pytest.fixture
def store(folder):
    def again():
        over, observe = {"beta": [1.0, 2.0, 3.0, 4.0]}, [flock.observables.MeanCosine()]
        options = {"t": 0.2, "frames": 3, "repeats": 2, "observe": observe, "out": "run.zarr"}
        return flock.ensemble(SelfAttention(), Uniform(n=3, d=2), over=over, **options)

    return again


def damage(path: str) -> None:
    """Write the numbers of a chunk in the reverse order."""
    numbers = np.fromfile(path)
    numbers[::-1].tofile(path)


@pytest.mark.parametrize("name", ["beta/c/0", "mean_cosine/c/0/0"])
def test_a_store_whose_numbers_are_not_those_written_is_refused_and_mended(name, store, capsys):
    good = store()
    assert check("run.zarr") == []
    damage(f"run.zarr/{name}")
    for words in (["plot", "run.zarr", "--out", "a.png"], ["sweep", "--check", "run.zarr"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code in (1, 2) and "is damaged" in capsys.readouterr().err
    with pytest.raises(UserError, match="is damaged; forget it with: tokenflock sweep --repair"):
        flock.load("run.zarr")
    assert repair("run.zarr") == [0]
    assert store().equals(good) and flock.load("run.zarr").equals(good)
    assert check("run.zarr") == []


def test_a_store_that_is_larger_than_its_chunks_is_not_read(store, monkeypatch):
    store()
    monkeypatch.setattr("tokenflock.engines.memory.ALLOWED", 10.0)
    assert flock.load("run.zarr").sizes["beta"] == 4  # its numbers are there
    os.truncate("run.zarr/.tokenflock/blocks", 0)  # nothing is done
    with pytest.raises(UserError, match=r"run\.zarr has .* on disk and takes more than"):
        flock.load("run.zarr")


# ---------------------------------------------------------------- folders that are written to


def test_a_link_in_a_report_is_neither_read_nor_written_through(folder, capsys):
    """Else running a report that was sent once more would replace a file of the reader."""
    os.makedirs("report/data/perspective")
    with open("mine.json", "w") as mine:
        mine.write("mine")
    os.symlink(os.path.abspath("mine.json"), "report/data/perspective/wendel.json")
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "perspective/fig6", "--out", "report"])
    assert end.value.code == 2 and "is a link" in capsys.readouterr().err
    with open("mine.json") as mine:
        assert mine.read() == "mine"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "watch.nc"])
def test_a_link_in_a_checkpoint_is_neither_read_nor_written_through(name, folder):
    old = Path(__file__).parents[1] / "data" / "v0.1" / "gpt"
    shutil.copytree(old, "gpt")
    shutil.copy(old / "config.json", "mine")
    if os.path.exists(f"gpt/{name}"):
        shutil.move(f"gpt/{name}", "mine")
    os.symlink(os.path.abspath("mine"), f"gpt/{name}")
    before = os.stat("mine").st_mtime_ns
    for use in (gpt.load, gpt.train):
        with pytest.raises(UserError):
            use("gpt")
    assert os.path.islink(f"gpt/{name}") and os.stat("mine").st_mtime_ns == before
