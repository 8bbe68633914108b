"""Run many pages, a few at a time; what has not changed is not run again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from home import PROJECT

RUNNER = Path(__file__).with_name("runner.py")


class CellError(RuntimeError):
    """A cell that raised."""


@dataclass(frozen=True)
class Ran:
    """What the code cells of one page showed, and the folder with their files."""

    folder: Path
    cells: list[dict[str, Any]]
    seconds: float


@cache
def digest(*more: Path) -> str:
    """Of the library, and of tools beside it: what was made with others is made again."""
    made = hashlib.sha256()
    for path in [*sorted((PROJECT / "src").rglob("*")), *more]:
        if path.suffix in (".py", ".js", ".css", ".html", ".json"):
            made.update(path.read_bytes())
    return made.hexdigest()


def ran(name: str, sources: list[str], kept: Path) -> Ran:
    """Run the cells of one page, or take what they showed when nothing has changed since."""
    text = json.dumps(sources)
    folder = kept / f"{name}-{hashlib.sha256((text + digest(RUNNER)).encode()).hexdigest()[:16]}"
    if not (folder / "outputs.json").exists():
        for old in kept.glob(f"{name}-????????????????"):
            shutil.rmtree(old)
        folder.mkdir(parents=True)
        _run(name, text, folder)
    told = json.loads((folder / "outputs.json").read_text(encoding="utf-8"))
    return Ran(folder, told["cells"], told["seconds"])


def _run(name: str, text: str, folder: Path) -> None:
    paths = [str(PROJECT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg"}
    environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder.parent / "jax"))
    with tempfile.TemporaryDirectory() as empty:
        cells = Path(empty) / "cells.json"
        cells.write_text(text, encoding="utf-8")
        command = [sys.executable, str(RUNNER), str(cells), str(folder.resolve()), name]
        done = subprocess.run(command, cwd=empty, env=environment, capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(folder)
        raise CellError(f"{name}: {done.stderr.strip()[-3000:]}")


def all_ran(pages: dict[str, list[str]], kept: Path, workers: int = 2) -> dict[str, Ran]:
    """Run every page; the first that raises ends it."""
    with ThreadPoolExecutor(workers) as pool:
        done = {name: pool.submit(ran, name, cells, kept) for name, cells in pages.items()}
        return {name: future.result() for name, future in done.items()}
