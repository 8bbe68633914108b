"""Write the programs of the lab for the code as it is, so that the first page needs no tracing.

    python tools/lab_collection.py

A release ships the file; code that changed after it does not use it, and traces anew.
"""

from __future__ import annotations

from tokenflock.laboratory.collection import made_anew, shipped, write


def main() -> None:
    """Replace what is there by the collection of today."""
    path = shipped()
    for old in path.parent.glob("collection-*.z"):
        old.unlink()
    write(made_anew(lambda share: print(f"\r{share:4.0%}", end="", flush=True)), path)
    print(f"\n{path.name}, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
