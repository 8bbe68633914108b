"""Build the documentation.

    python tools/docs                        everything, into build/docs/index.html
    python tools/docs --only plot_03         the scripts whose path has that in it, for a quick look
    python tools/docs --examples DIR         scripts of another folder

Text is in docs/*.md, the lessons are scripts in examples/, the rest is generated from the code.
Everything is put together in build/docs-source and built from there by Sphinx, with warnings as
errors. What scripts showed is kept in build/docs-kept until they or the library change.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import assembling
import running
from home import PROJECT


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    told = argparse.ArgumentParser(prog="tools/docs", description=__doc__.partition("\n")[0])
    told.add_argument("--out", type=Path, default=PROJECT / "build" / "docs", help="the site")
    told.add_argument("--only", default="", help="scripts whose path has this in it, alone")
    told.add_argument("--examples", type=Path, default=PROJECT / "examples")
    told.add_argument("--claims", type=Path, help="a folder of reports with claims.json")
    told.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    return told.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Assemble and build; the exit code is that of Sphinx."""
    asked = options(arguments)
    began = time.monotonic()
    site = asked.out.resolve()
    source, kept = site.with_name(site.name + "-source"), site.with_name(site.name + "-kept")
    if source.exists():
        shutil.rmtree(source)
    try:
        if asked.only:
            assembling.some(asked, source, kept)
        else:
            assembling.whole(asked, source, kept)
    except (running.CellError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"put together in {time.monotonic() - began:.0f} s; now Sphinx", flush=True)
    if site.exists():
        shutil.rmtree(site)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-E"]
    code = subprocess.call([*command, "-d", str(kept / "doctrees"), str(source), str(site)])
    print(f"{site / 'index.html'} ({time.monotonic() - began:.0f} s)" if code == 0 else "failed")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
