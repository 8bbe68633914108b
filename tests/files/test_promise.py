"""The promise about files from someone else, for each kind of file: opening one runs no code, reads
no other file and writes none. What Python opens, imports and starts is seen by an audit hook.

What memory they may take is tested in test_contained.py, test_lists.py and test_received.py.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import tokenflock as flock
from tokenflock.dynamics import SelfAttention
from tokenflock.observables import MeanCosine
from tokenflock.starts import Uniform

WATCH = """
import os, sys
import numpy as np
import tokenflock as flock
from tokenflock import gpt, probing
from tokenflock.cli.values import array
from tokenflock.errors import UserError
from tokenflock.reproduction.folder import Folder
from tokenflock.reproduction.item import find
from tokenflock.sweeps.spec import read_spec

OPEN = {
    "run.nc": flock.load, "run.zarr": flock.load, "gpt": gpt.load, "spec.toml": read_spec,
    "report": lambda path: Folder(path).recall(find(["perspective/fig6"])[0], "quick", None, False),
    "prompts.json": lambda path: probing.texts.from_file(path),
    "text.txt": lambda path: probing.texts.from_file(path),
    "table.csv": lambda path: array(path, "Q"), "matrix.npy": lambda path: array(path, "Q"),
}
OURS = tuple(map(os.path.realpath, (sys.prefix, sys.base_prefix, os.path.dirname(flock.__file__))))
SYSTEM = ("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/etc/ld.so")
seen, name = [], sys.argv[1]


def hook(event, args):
    if event == "open" and isinstance(args[0], str):
        path, writes = os.path.realpath(args[0]), bool((args[2] or 0) & (os.O_WRONLY | os.O_RDWR))
        inside = path == root or path.startswith(root + os.sep)
        if writes or not (inside or path.startswith(OURS + SYSTEM)):
            seen.append(f"{event} {path} {args[1]} {args[2]}")
    elif event == "subprocess.Popen" and "_look_hdf5" not in str(args[1]):
        seen.append(f"{event} {args[1]}")
    elif event in ("os.system", "os.exec", "os.posix_spawn", "socket.connect"):
        seen.append(f"{event} {args}")


root = os.path.realpath(name)
sys.addaudithook(hook)
try:
    OPEN[name](name)
    print("opened")
except UserError as error:
    print("refused")
assert not seen, seen
"""


class Payload:
    """A pickle that leaves a canary where it is read."""

    def __reduce__(self):
        return exec, ("open('canary', 'w')",)


@pytest.fixture(scope="module")
def received(tmp_path_factory):
    """A folder with a good file of each kind, and modules that shadow those of the readers."""
    folder = tmp_path_factory.mktemp("received")
    run = flock.simulate(SelfAttention(), np.eye(3), t=1, frames=3)
    shutil.copy(flock.save(run, folder / "sent.nc"), folder / "run.nc")
    options: Any = {"t": 0.1, "frames": 2, "repeats": 2, "observe": [MeanCosine()]}
    options |= {"over": {"beta": [1.0, 2.0]}, "out": folder / "run.zarr"}
    flock.ensemble(SelfAttention(), Uniform(n=3, d=2), **options)
    shutil.copytree(Path(__file__).parents[1] / "data" / "v0.1" / "gpt", folder / "gpt")
    spec = '[dynamics]\nname = "causal"\n[start]\nname = "uniform"\nn = 8\nd = 3\n'
    (folder / "spec.toml").write_text(spec)
    (folder / "report" / "data" / "perspective").mkdir(parents=True)
    (folder / "report" / "data" / "perspective" / "fig6.json").write_text("{}")
    (folder / "prompts.json").write_text('["a text"]')
    (folder / "text.txt").write_text("a text")
    (folder / "table.csv").write_text("1,2\n3,4\n")
    np.save(folder / "matrix.npy", np.eye(2))
    for name in ("h5py", "zarr", "safetensors", "numpy", "json", "my_laws"):
        (folder / f"{name}.py").write_text("open('canary', 'w')")
    return folder


def opened(folder: Path, name: str) -> str:
    """Open a file as its reader would, in a process of its own, and return what came of it."""
    words = [sys.executable, "-P", "-c", WATCH, name]
    kept = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    apart: Any = {"env": kept | {"TOKENFLOCK_CACHE": "off"}, "cwd": folder}
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, **apart)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (folder / "canary").exists()
    return done.stdout.strip()


KINDS = ("run.nc", "run.zarr", "gpt", "spec.toml", "report", "prompts.json", "text.txt")
KINDS += ("table.csv", "matrix.npy")


@pytest.mark.parametrize("name", KINDS)
def test_opening_a_file_reads_it_alone_and_writes_nothing(name, received):
    assert opened(received, name) == "opened"


def test_a_pickle_in_an_array_is_not_read(received):
    sent = received / "pickled"
    sent.mkdir()
    np.save(sent / "matrix.npy", np.array([Payload()], dtype=object), allow_pickle=True)
    assert opened(sent, "matrix.npy") == "refused"
    (sent / "table.csv").write_bytes(pickle.dumps(Payload()))
    assert opened(sent, "table.csv") == "refused"


def test_a_law_that_is_not_installed_is_not_imported(received):
    """Neither where its file lies beside the result, nor from the text that the result keeps."""
    own = {"module": "my_laws", "source": "open('canary', 'w')"}
    recipe = {"format": 2, "verb": "simulate", "dynamics": {"type": "my_laws/MyLaw", "own": own}}
    x = np.tile(np.eye(2), (2, 1, 1))
    data = {"x": (("time", "particle", "coord"), x), "w": ("particle", [0.5, 0.5])}
    run = xr.Dataset(data, {"time": [0.0, 1.0]}, {"recipe": json.dumps(recipe)})
    sent = received / "lawless"
    sent.mkdir()
    flock.save(run, sent / "run.nc")
    shutil.copy(received / "my_laws.py", sent / "my_laws.py")
    assert opened(sent, "run.nc") == "opened"


def test_the_watch_sees_what_it_is_for(received):
    """A reader that opens another file, writes one, or runs a program, is seen."""
    for wrong in ("open('/etc/hosts').read()", "open('new', 'w')", "os.system('true')"):
        broken = WATCH.replace("OPEN[name](name)", wrong)
        words = [sys.executable, "-P", "-c", broken, "text.txt"]
        done = subprocess.run(words, cwd=received, capture_output=True, text=True, timeout=200)
        assert done.returncode == 1 and "AssertionError" in done.stderr
