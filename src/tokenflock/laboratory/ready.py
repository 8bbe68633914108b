"""The lab as it opens where nothing is said: it is shipped, and needs neither JAX nor tracing."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from tokenflock.laboratory.collection import known
from tokenflock.laboratory.page import RATE, Content, page
from tokenflock.laboratory.sheet import Lab

DIAGRAMS = "diagrams.json"
MODEL = "model.json"


def ready_made() -> Content | None:
    """What the page holds that opens with self-attention of 64 tokens; None where it must be
    traced first.
    """
    collection = known()
    if collection is None:
        return None
    usual = collection["usual"]
    state = {"rate": RATE, **usual["state"]}
    more = {"model": shipped_model(), "given": usual["given"]}
    return Content(collection, state, shipped_diagrams(), **more)


def ready_page() -> Lab | None:
    """The same as `lab()`, without importing JAX."""
    content = ready_made()
    return None if content is None else Lab(page(content))


def shipped_diagrams() -> list[dict[str, Any]]:
    """The diagrams that come with the library (tools/lab_diagrams.py computed them)."""
    return _static(DIAGRAMS)


def shipped_model() -> dict[str, Any]:
    """The tokens of a small model that comes with the library (tools/lab_model.py trained it)."""
    return _static(MODEL)


def _static(name: str) -> Any:
    home = files("tokenflock.laboratory") / "static" / name
    return json.loads(home.read_text(encoding="utf-8"))
