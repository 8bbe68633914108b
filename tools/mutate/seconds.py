"""A plugin of pytest: keeps how long each test took. One that is red without a bug is left out."""

from __future__ import annotations

import json
import os
from collections import Counter

from sight import SECONDS

taken, red = Counter(), set()


def pytest_runtest_logreport(report):
    taken[report.nodeid] += report.duration
    if report.failed:
        red.add(report.nodeid)


def pytest_sessionfinish(session):
    if "PYTEST_XDIST_WORKER" not in os.environ:
        green = {test: seconds for test, seconds in taken.items() if test not in red}
        SECONDS.write_text(json.dumps(green, indent=0), encoding="utf-8")
