"""A few bytes of a file may become objects of a hundred bytes: no list that somebody sent fills the
memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tokenflock as flock
from tokenflock import gpt, probing
from tokenflock.dynamics import SelfAttention
from tokenflock.errors import UserError
from tokenflock.files import parsed_json, received_json
from tokenflock.observables import MeanCosine
from tokenflock.recipe import parse
from tokenflock.starts import Uniform
from tokenflock.sweeps.log import Log, Standing

LIST = "[" + "[]," * 20_000 + "[]]"  # 60 kB, which take 1.5 MB


@pytest.fixture
def little(tmp_path, monkeypatch):
    """A folder of a reader who has a megabyte."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tokenflock.files.ALLOWED", 1e6)
    return tmp_path


def store(folder: Path) -> None:
    options: Any = {
        "t": 0.1,
        "frames": 2,
        "repeats": 2,
        "observe": [MeanCosine()],
        "out": "list.zarr",
    }
    flock.ensemble(SelfAttention(), Uniform(n=3, d=2), over={"beta": [1.0, 2.0]}, **options)
    path = folder / "list.zarr" / "zarr.json"
    path.write_text(path.read_text()[:-1] + f', "more": {LIST}}}')
    flock.load("list.zarr")


def checkpoint(folder: Path) -> None:
    (folder / "config.json").write_text(f'{{"model_type": "tokenflock-gpt", "shape": {LIST}}}')
    gpt.load(folder)


def prompts(folder: Path) -> None:
    (folder / "prompts.json").write_text(LIST)
    probing.texts.as_texts(folder / "prompts.json")


def lines(folder: Path) -> None:
    (folder / "prompts.txt").write_text("a\n" * 20_000)
    probing.texts.as_texts(folder / "prompts.txt")


KINDS = (store, checkpoint, prompts, lines, lambda _: parse(LIST))


@pytest.mark.parametrize("kind", KINDS, ids=["store", "gpt", "json", "text", "recipe"])
def test_a_list_that_fills_the_memory_is_refused(kind, little):
    with pytest.raises(UserError, match="of memory once it is read"):
        kind(little)


def test_the_limit_is_four_times_the_file_or_more(little):
    text = json.dumps("x" * 10**6)
    (little / "long.json").write_text(text)
    assert len(received_json(little / "long.json", 2**21)) == 10**6
    with pytest.raises(UserError, match="at most 0"):  # one letter makes four bytes of each
        parsed_json(f'["{"x" * 10**6}\U0001f600"]'.encode(), "wide.json")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory cannot be measured here")
@pytest.mark.parametrize(
    "entry", ["[],", "{},", '{"a":1},', "300,", "1.5,", '"ab",', '"\xe9\xe9",']
)
def test_no_list_takes_more_than_is_reckoned_with(entry):
    """Measured: what json makes of each kind of value, against what is allowed for it."""
    code = (
        "import json, sys\n"
        "from tokenflock import files\n"
        "def pages(): return int(open('/proc/self/statm').read().split()[1])\n"
        "data = ('[' + sys.argv[1] * 300_000 + '0]').encode()\n"
        "before = pages()\n"
        "kept = json.loads(data)\n"
        "taken = 4096 * (pages() - before)\n"
        "assert taken > 2e6, taken\n"
        "files.ALLOWED, files.TIMES = taken - 1.0, 0\n"
        "try: files.parsed_json(data, 'a.json')\n"
        "except files.UserError: print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, entry], capture_output=True, text=True)
    assert done.stdout == "refused\n", done.stderr


def test_the_log_of_a_store_takes_no_more_memory_than_its_file(little):
    """A line of it may be 4,096 bytes of small lists."""
    progress, facts = Standing.nothing(1), {"a": json.loads("[" + "[]," * 1000 + "[]]")}
    progress.take(["run", facts])
    assert sum(map(sys.getsizeof, progress.runs)) < 8192
    log = Log(little / "blocks")
    log.rewrite(progress)
    assert log.read(1).runs == progress.runs
