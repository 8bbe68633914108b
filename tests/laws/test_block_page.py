"""The lines of docs/block.md run."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tokenflock.catalogue import PARTS, family
from tokenflock.parts import CausalMask, IndependentNoise

PAGE = (Path(__file__).parents[2] / "docs" / "block.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_lines_of_the_page_run():
    scope: dict = {}
    for lines in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(lines, "docs/block.md", "exec"), scope)
    for name in ("run", "layers", "other", "pairs"):
        assert np.isfinite(scope[name].x.values).all() and float(np.ptp(scope[name].x.values)) > 0.1
    assert isinstance(scope["told"].mask, CausalMask)
    assert isinstance(scope["told"].noise, IndependentNoise)


def test_the_page_names_every_part():
    for of in PARTS:
        for short in family(of):
            assert short in PAGE or short == "random", short
