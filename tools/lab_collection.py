"""Write the programs of the lab for the code as it is, so that the first page needs no tracing.

    python tools/lab_collection.py           about a minute
    python tools/lab_collection.py --check   whether the shipped file is of the code as it is

The library ships the file. Code that changed after it does not use it and traces anew, which
takes a minute at the first page: write it again before a release.
"""

from __future__ import annotations

import sys

from tokenflock.laboratory.collection import SHIPPED, fresh, key, made_anew, write

STALE = f"{SHIPPED.name} is of other code than {key()}: run tools/lab_collection.py"


def main() -> None:
    """Replace what is there by the collection of today, or say whether it is needed."""
    if "--check" in sys.argv:
        sys.exit(STALE if fresh() is None else None)
    write(made_anew(lambda share: print(f"\r{share:4.0%}", end="", flush=True)), SHIPPED)
    print(f"\n{SHIPPED.name}, {SHIPPED.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
