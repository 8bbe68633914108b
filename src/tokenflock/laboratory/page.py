"""The page itself: one HTML file with everything inside."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from tokenflock import __version__

SCRIPTS = (
    "pen",
    "state",
    "history",
    "runner",
    "stage",
    "instruments",
    "controls",
    "export",
    "map",
    "models",
    "lessons",
    "pointer",
    "panels",
    "drawers",
    "main",
)


@dataclass(frozen=True)
class Content:
    """What a page holds: the collection, the state it opens with, diagrams and recordings."""

    collection: dict[str, Any]
    state: dict[str, Any] = field(default_factory=dict)
    maps: list[dict[str, Any]] = field(default_factory=list)
    recordings: list[dict[str, Any]] = field(default_factory=list)
    title: str = "tokenflock lab"
    play: bool = False
    figure: bool = False
    given: dict[str, Any] | None = None  # tokens that the library drew for the opening state


def page(content: Content) -> str:
    """The text of a page. Whatever came from outside is data in it: packed, or escaped."""
    packed = {
        **content.collection,
        "maps": content.maps,
        "recordings": content.recordings,
        "given": content.given,
    }
    data = {
        "version": __version__,
        "state": content.state,
        "play": content.play,
        "packed": _packed(packed),
    }
    parts = {
        "title": escape(content.title),
        "class": ' class="figure"' if content.figure else "",
        "style": _static("lab.css"),
        "data": _embedded(data),
        "worker": _static("worker.js"),
        "script": "\n".join(_static(f"{name}.js") for name in SCRIPTS),
    }
    text = _static("page.html")
    for name, value in parts.items():
        head, _, tail = text.partition(f"@{name}@")
        text = head + value + tail
    return text


def _packed(value: Any) -> str:
    """A value as deflated JSON in base64, which holds nothing that a page could read as markup."""
    return base64.b64encode(zlib.compress(json.dumps(value).encode(), 9)).decode()


def _embedded(value: Any) -> str:
    """JSON that can stand in a script element.

    >>> _embedded("</script>")
    '"\\\\u003c/script>"'
    """
    return json.dumps(value).replace("<", "\\u003c")


@cache
def _static(name: str) -> str:
    return (files("tokenflock.laboratory") / "static" / name).read_text(encoding="utf-8")
