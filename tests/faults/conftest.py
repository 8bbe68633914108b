"""Real processes: commands that can be started, stopped and killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
# A shell may start us with SIGINT ignored, nohup with SIGHUP, and children inherit that.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
{first}
from tokenflock.cli import main
main()
"""
PATIENCE = 300.0  # seconds; machines may be busy


class Command:
    """A command of the command line in a process of its own."""

    def __init__(self, line: str, folder: Path, first: str = "", **environment: str | None):
        env = {**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "200"} | environment
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(first=first), *line.split()],
            cwd=folder,
            env={name: value for name, value in env.items() if value is not None},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> tuple[int, str, str]:
        """(exit code, standard output, standard error)."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err

    def until(self, happened: Callable[[], object]) -> None:
        """Wait for something, which must come while the command runs."""
        while not happened():
            if self.process.poll() is not None:
                raise AssertionError(f"it ended too soon: {self.end()}")
            if time.monotonic() - self.began > PATIENCE:
                raise AssertionError("it never came")
            time.sleep(0.02)

    def send(self, number: int) -> float:
        """Send a signal and wait for the end: the seconds that it took."""
        self.process.send_signal(number)
        sent = time.monotonic()
        self.process.wait(PATIENCE)
        return time.monotonic() - sent

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def start(tmp_path):
    """Start a command in a folder of its own; none outlives its test."""
    running: list[Command] = []

    def begin(line: str, first: str = "", folder: Path = tmp_path, **environment) -> Command:
        running.append(Command(line, folder, first, **environment))
        return running[-1]

    yield begin
    for command in running:
        if command.process.poll() is None:
            command.process.kill()
        command.process.communicate()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 kB, or another size: small_disk(kilobytes)."""
    mounted = []

    def mount(kilobytes: int = 256, *options: str) -> Path:
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        how = ",".join((f"size={kilobytes}k", *options))
        tried = shutil.which("mount") and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", how, "tmpfs", str(place)], capture_output=True
        )
        if not tried or tried.returncode != 0:
            pytest.skip("a small disk (mount -t tmpfs) needs root")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", str(place)], capture_output=True)
