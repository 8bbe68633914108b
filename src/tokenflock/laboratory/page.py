"""The page itself: one HTML file with everything inside."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from tokenflock import __version__

SCRIPTS = (
    "pen",
    "lzma",
    "building",
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
    "gif",
    "taking",
    "main",
)
FORESIGHT = ("eigenvalues", "foresight")
WORKER = (*FORESIGHT, "accuracy", "worker")  # what runs beside the page
WHOLE = (  # what a small figure does without
    "building",
    "export",
    "lzma",
    "map",
    "lessons",
    "drawers",
    "gif",
    "taking",
)
FORESEEING = {"energy", "clusters", "spectrum"}  # panels that look ahead
RATE = 30.0  # steps a second
PANELS = ("histogram", "energy", "clusters", "order", "spectrum", "attention")


@dataclass(frozen=True)
class Content:
    """What a page holds: the collection, the state it opens with, diagrams and recordings."""

    collection: dict[str, Any]
    state: dict[str, Any] = field(default_factory=dict)
    maps: list[dict[str, Any]] = field(default_factory=list)
    recordings: list[dict[str, Any]] = field(default_factory=list)
    title: str = "tokenflock lab"
    play: bool = True
    figure: bool = False
    panels: Sequence[str] = ()  # the instruments of a figure
    model: dict[str, Any] | None = None  # the tokens of the model in the last lesson
    given: dict[str, Any] | None = None  # tokens that the library drew for the opening state


def page(content: Content) -> str:
    """The text of a page. Whatever came from outside is data in it: packed, or escaped."""
    packed = {
        **{name: content.collection[name] for name in ("schema", "theory")},
        "programs": _others(content.collection),
        "maps": content.maps,
        "recordings": content.recordings,
        "model": content.model,
        "given": content.given,
    }
    data = {
        "version": __version__,
        "state": content.state,
        "play": content.play,
        "panels": list(content.panels),
        "packed": _packed(packed),
        "squeezed": content.collection.get("squeezed", {}),
    }
    parts = {
        "title": escape(content.title),
        "class": _class(content),
        "style": _static("lab.css"),
        "data": _embedded(data),
        "worker": "\n".join(map(_script, _workers(content))),
        "script": "\n".join(map(_script, _scripts(content))),
    }
    text = _static("page.html")
    for name, value in parts.items():
        head, _, tail = text.partition(f"@{name}@")
        text = head + value + tail
    return text


def _class(content: Content) -> str:
    """What kind of page it is, as the style sheet asks."""
    if not content.figure:
        return ""
    return ' class="figure panels"' if content.panels else ' class="figure"'


def _scripts(content: Content) -> list[str]:
    """The scripts of a page; a small figure does without many."""
    spared = (*WHOLE, *(() if content.recordings else ("models",))) if content.figure else ()
    return [name for name in SCRIPTS if name not in spared]


def _workers(content: Content) -> tuple[str, ...]:
    """Return the scripts of the worker; a figure does without those that its panels and its
    solver do not need.
    """
    if not content.figure:
        return WORKER
    spared = FORESIGHT if FORESEEING.isdisjoint(content.panels) else ()
    flows = any(each["convention"] == "flow" for each in content.collection["schema"]["solvers"])
    return tuple(name for name in WORKER if name not in spared and (flows or name != "accuracy"))


@cache
def _script(name: str) -> str:
    """A script without its comments and indents."""
    lines = (line.strip() for line in _static(f"{name}.js").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _others(collection: dict[str, Any]) -> list[dict[str, Any]]:
    """The programs that do not come squeezed with the collection."""
    return collection["programs"][collection.get("squeezed", {}).get("count", 0) :]


def _packed(value: Any) -> str:
    """A value as deflated JSON in base64, which holds nothing that a page could read as markup."""
    return base64.b64encode(
        zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 7)
    ).decode()


def _embedded(value: Any) -> str:
    """JSON that can stand in a script element.

    >>> _embedded("</script>")
    '"\\\\u003c/script>"'
    """
    return json.dumps(value).replace("<", "\\u003c")


@cache
def _static(name: str) -> str:
    return (files("tokenflock.laboratory") / "static" / name).read_text(encoding="utf-8")
