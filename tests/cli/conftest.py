"""Commands, called as from a terminal."""

from __future__ import annotations

import pytest

from tokenflock.cli import main


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(line: str | list[str]):
        with pytest.raises(SystemExit) as stop:
            main(line.split() if isinstance(line, str) else line)
        out = capsys.readouterr()
        return stop.value.code or 0, out.out, out.err

    return run
