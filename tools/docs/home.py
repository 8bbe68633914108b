"""Where the project is; what is imported after this file finds its library and its tests."""

from __future__ import annotations

import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
for folder in (PROJECT / "src", PROJECT):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
