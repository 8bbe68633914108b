"""Output that ends early, and terminals without letters beyond ASCII."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def called(line, **options):
    """A command as a process of its own."""
    argv = [sys.executable, "-m", "tokenflock", *line.split()]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("line", ["list theory", "simulate --help", "theory dirac-energy --json"])
def test_a_pipe_that_closes_ends_a_command_quietly(line):
    read, write = os.pipe()
    os.close(read)
    command = called(line, stdout=write)
    os.close(write)
    assert command.communicate()[1] == b""
    assert command.returncode == 141  # as a shell says it of a program that SIGPIPE ends


def test_a_terminal_without_letters_gets_their_numbers():
    command = called("reproduce --list", stdout=subprocess.PIPE, env=os.environ | ASCII)
    out, err = command.communicate()
    assert (command.returncode, err) == (0, b"")
    assert b"R\\xe9nyi" in out and out.isascii()


def test_no_output_at_all_is_no_error():
    line = f"{sys.executable} -m tokenflock list theory >&-"
    command = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE)
    assert (command.stderr, command.returncode) == (b"", 0)
