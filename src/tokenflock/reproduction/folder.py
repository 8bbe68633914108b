"""A report on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import xarray as xr

from tokenflock import recipe as recipes
from tokenflock.errors import UserError
from tokenflock.files import is_ours, received_json, whole, whole_stream
from tokenflock.locks import alone
from tokenflock.pages.paper import page
from tokenflock.reproduction.claim import FAILS, Claim
from tokenflock.reproduction.item import Item, find
from tokenflock.reproduction.outcome import Outcome
from tokenflock.sweeps.own import refuse_links

if TYPE_CHECKING:
    from tokenflock.plots.styles import ThemeName

LARGEST = 2**26  # bytes of a note or of all claims: more is no report of ours
DARK = "-dark.png"  # the end of a figure's name for dark screens
Numbers = xr.Dataset | xr.DataTree


class Folder:
    """A report on disk: data, figures, films, and what came of each item."""

    def __init__(self, path: Path):
        self.path = path

    def alone(self) -> AbstractContextManager[None]:
        """No other process may write to this report meanwhile."""
        return alone(self.path, "writing this report")

    def refuse_foreign(self) -> None:
        """Refuse a folder whose page or claims were not written here, or that holds links, through
        which files elsewhere would be read or replaced.
        """
        refuse_links(self.path)
        for name in ("index.html", "claims.json"):
            path = self.path / name
            if path.exists() and not (_old_report(self.path) or is_ours(path)):
                raise UserError(
                    f"{path} is not a report of tokenflock; choose another folder with --out"
                )

    def keep(self, item: Item, home: ModuleType, data: Numbers, figures: bool) -> dict[str, Any]:
        """Write the numbers and, if wanted, the pictures of an item; say where they are."""
        place = f"data/{item.name}.nc"
        (self.path / place).parent.mkdir(parents=True, exist_ok=True)
        with whole_stream(self.path / place) as stream:
            data.to_netcdf(stream, engine="h5netcdf")
        return {"data": place} | (self._draw(item, home, data) if figures else {})

    def _draw(self, item: Item, home: ModuleType, data: Numbers) -> dict[str, Any]:
        figures = self._figures(item, home, data) if hasattr(home, "draw") else ()
        return {"figures": figures, "films": self._films(item, home, data)} | self._live(item, home)

    def _figures(self, item: Item, home: ModuleType, data: Numbers) -> tuple[str, ...]:
        """Each figure for print, and once more for dark screens."""
        from tokenflock import plots

        stems: dict[str, None] = {}
        themes: dict[ThemeName, tuple[tuple[str, ...], int]] = {
            "light": ((".png", ".pdf"), 220),
            "dark": ((DARK,), 150),
        }
        for theme, (suffixes, dots) in themes.items():
            with plots.style(theme, shown=False):
                drawn = home.draw(data)
            for name, figure in (drawn if isinstance(drawn, dict) else {"": drawn}).items():
                stem = f"figures/{item.name}{'-' + name if name else ''}"
                stems[stem] = None
                for suffix in suffixes:
                    plots.save_figure(figure, self._made(stem + suffix), dpi=dots)
        return tuple(stems)

    def _films(self, item: Item, home: ModuleType, data: Numbers) -> tuple[str, ...]:
        from tokenflock import plots

        films = home.films(data) if hasattr(home, "films") else {}
        places = {name: f"films/{item.name}-{name}.mp4" for name in films}
        for name, film in films.items():
            run, how = film if isinstance(film, tuple) else (film, {})
            plots.film(run, self._made(places[name]), seconds=10, **how)
        return tuple(places.values())

    def _live(self, item: Item, home: ModuleType) -> dict[str, str]:
        """The law of a picture, live, where the item names one: `live()` gives law and start."""
        if not hasattr(home, "live"):
            return {}
        from tokenflock.laboratory.lab import lab

        law, start = home.live()
        place = f"live/{item.name}.html"
        lab(law, start, embed=True).save(self._made(place))
        return {"live": place}

    def _made(self, place: str) -> Path:
        """A path within the report whose folder is there."""
        path = self.path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def remember(self, outcome: Outcome, model: str | None) -> None:
        """Note a finished item, so that the same command need not run it again."""
        plain = {
            "mark": mark(outcome.scale, model),
            "item": outcome.item.name,
            "scale": outcome.scale,
            "seconds": outcome.seconds,
            "device": outcome.device,
            "setting": outcome.setting,
            "data": outcome.data,
            "figures": outcome.figures,
            "films": outcome.films,
            "live": outcome.live,
            "claims": [claim.as_json(marked=True) for claim in outcome.claims],
        }
        text = json.dumps(plain, indent=1, ensure_ascii=False)
        _write(self._note(outcome.item), lambda part: part.write_text(text, encoding="utf-8"))

    def forget(self, item: Item) -> None:
        """No longer know an item: it broke, and what it was before is no verdict on what it is."""
        self._note(item).unlink(missing_ok=True)

    def recall(self, item: Item, scale: str, model: str | None, figures: bool) -> Outcome | None:
        """What came of an item, if it was run by this very code at this scale, and drawn if figures
        are wanted.
        """
        noted = self._read(item)
        if noted is None or noted[0] != mark(scale, model):
            return None
        outcome = noted[1]
        pictures = [stem + suffix for stem in outcome.figures for suffix in (".png", ".pdf", DARK)]
        live = [outcome.live] if outcome.live else []
        complete = all(
            (self.path / place).exists()
            for place in (outcome.data, *pictures, *outcome.films, *live)
        )
        drawn = not figures or bool(outcome.figures) or not hasattr(item.load(), "draw")
        return outcome if complete and drawn else None

    def write(self, done: Sequence[Outcome]) -> None:
        """The page and the claims: of these outcomes, and of those that were here already."""
        outcomes = [*self._others(done), *done]
        places = {item.name: k for k, item in enumerate(find(()))}
        outcomes.sort(key=lambda outcome: places[outcome.item.name])
        claims = [claim.as_json() for outcome in outcomes for claim in outcome.claims]
        text = json.dumps(claims, indent=1, ensure_ascii=False)
        _write(
            self.path / "claims.json", lambda part: part.write_text(text + "\n", encoding="utf-8")
        )
        html = page(outcomes, self.path)
        _write(self.path / "index.html", lambda part: part.write_text(html, encoding="utf-8"))

    def _others(self, done: Sequence[Outcome]) -> Iterator[Outcome]:
        names = {outcome.item.name for outcome in done}
        for item in find(()):
            noted = None if item.name in names else self._read(item)
            if noted is not None and noted[0].partition(" ")[0] == source_mark():
                yield noted[1]

    def _note(self, item: Item) -> Path:
        return self.path / "data" / f"{item.name}.json"

    def _read(self, item: Item) -> tuple[str, Outcome] | None:
        """The mark and the outcome of an item as they were noted; None where that is no note."""
        try:
            note = received_json(self._note(item), LARGEST)
            return str(note["mark"]), _outcome(item, note)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def mark(scale: str, model: str | None) -> str:
    """What a number depends on: the code, the scale, the model."""
    return f"{source_mark()} {scale} {'' if model is None else model_mark(model)}".strip()


def model_mark(model: str) -> str:
    """A digest of all files of a model's folder; the name of a model that is elsewhere."""
    folder = Path(model)
    if not folder.is_dir():
        return model
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    seen = [(path, path.stat()) for path in files]
    return _digest(
        str(folder.resolve()),
        tuple((str(path.relative_to(folder)), at.st_size, at.st_mtime_ns) for path, at in seen),
    )


@lru_cache(maxsize=4)
def _digest(folder: str, files: tuple[tuple[str, int, int], ...]) -> str:
    """Of these files' names and contents; read again only where sizes or times changed."""
    whole = hashlib.sha256()
    for name, size, _ in files:
        whole.update(f"{name} {size}\n".encode())
        with open(Path(folder) / name, "rb") as file:
            while block := file.read(1 << 20):
                whole.update(block)
    return whole.hexdigest()


def _old_report(folder: Path) -> bool:
    """Whether an earlier version of tokenflock wrote a report here."""
    try:
        claims = received_json(folder / "claims.json", LARGEST)
        return all({"id", "verdict", "interval"} <= set(claim) for claim in claims)
    except (OSError, ValueError, TypeError, RecursionError):
        return False


@cache
def source_mark() -> str:
    """A digest of this library's own code and of the versions under it."""
    whole = hashlib.sha256(
        json.dumps(recipes.versions("jax", "numpy", "scipy"), sort_keys=True).encode()
    )
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


def _outcome(item: Item, note: dict[str, Any]) -> Outcome:
    """An outcome as it was noted. A note names files of its own item, and no others."""
    claims = tuple(_claim(plain) for plain in note["claims"])
    words = {name: str(note[name]) for name in ("scale", "device", "setting")}
    return Outcome(
        item,
        claims=claims,
        seconds=float(note["seconds"]),
        data=_own(item, "data", note["data"]),
        figures=tuple(_own(item, "figures", stem) for stem in note["figures"]),
        films=tuple(_own(item, "films", place) for place in note["films"]),
        live=_own(item, "live", note["live"]) if note["live"] else "",
        **words,
    )


def _own(item: Item, folder: str, place: Any) -> str:
    """A path within a report, if it is one that this item writes to."""
    ours = isinstance(place, str) and place.startswith(f"{folder}/{item.name}")
    if not ours or ".." in place or "\\" in place:
        raise ValueError(f"{place!r} is no file of {item.name}")
    return place


def _claim(plain: dict[str, Any]) -> Claim:
    low, high = plain["interval"]
    ends = float("-inf") if low is None else low, float("inf") if high is None else high
    if low is None and high is None:  # what was expected was no number
        ends = float("nan"), float("nan")
    values = {name: value for name, value in plain.items() if name not in ("verdict", "interval")}
    if plain["verdict"] == FAILS and plain["measured"] is None:
        values["measured"] = float("nan")
    return Claim(interval=ends, **values)


def _write(path: Path, write: Callable[[Path], Any]) -> None:
    """A file that appears only once it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as part:
        write(part)
