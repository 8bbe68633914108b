"""A small page, cut out of the collection: one law, one start, one solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DELTA = 0.001  # threshold of clusters of a small page


def cut(
    collection: dict[str, Any], state: dict[str, Any], panels: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What of a collection the state of a page and its instruments need, and that state."""
    told, d, programs = collection["schema"], str(state["d"]), _Chosen(collection["programs"])
    law = next(each for each in told["laws"] if each["name"] == state["law"])
    variant = law["variants"][",".join(state.get("choices", {}).values())]
    host = "sphere" if variant["sphere"] else "flat"
    kept = {
        "programs": {d: {state["solver"]: programs.place(variant["programs"][d][state["solver"]])}},
        "sights": {d: programs.place(variant["sights"][d])},
    }
    schema = {
        "laws": [{**law, "choices": [], "variants": {"": {**variant, **kept}}}],
        "starts": [
            {**start, "programs": {d: programs.place(start["programs"][d])}}
            for start in told["starts"]
            if start["name"] in ("Uniform", state["start"])
        ],
        "solvers": [each for each in told["solvers"] if each["name"] == state["solver"]],
        "lenses": {host: {d: {str(DELTA): programs.place(told["lenses"][host][d][str(DELTA)])}}},
        "deltas": [DELTA],
        "matrices": {},
    }
    tables = {d: "energy", "cosine": "order", "polygon": "spectrum"}
    names = [name for name, panel in tables.items() if panel in panels]
    theory = {name: collection["theory"][name] for name in names}
    made = {"schema": schema, "programs": programs.list, "theory": theory}
    return made, {**state, "choices": {}}


class _Chosen:
    """Programs that are taken along, each at its new place."""

    def __init__(self, programs: list[dict[str, Any]]) -> None:
        self._all = programs
        self._places: dict[int, int] = {}
        self.list: list[dict[str, Any]] = []

    def place(self, old: int) -> int:
        """The new place of a program."""
        if old not in self._places:
            self._places[old] = len(self.list)
            self.list.append(self._all[old])
        return self._places[old]
