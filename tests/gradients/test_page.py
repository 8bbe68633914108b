"""The page of the documentation runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "gradients.md"


@pytest.mark.slow
def test_the_lines_of_the_page_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), scope)
    assert len(blocks) == 4
    assert {path.name for path in tmp_path.iterdir()} == {"steering.png", "branch.png"}
