"""`tokenflock theory`."""

from __future__ import annotations

import inspect
import json as jsonlib
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from tokenflock.catalogue import Entry, Option, find
from tokenflock.cli.console import console, say
from tokenflock.cli.values import array, numbers
from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError
from tokenflock.theory._guard import explains_nan, guarded, numbers_in

ARRAYS = 60  # numbers held for each row: those of the formula, and the table that is printed
_EXAMPLE = """

    Example: `tokenflock theory transition-curve --n 32 --delta 1e-3 --t 10,20,30`
"""


def command(tokens: Sequence[str]) -> Callable[..., None]:
    """The closed form that the first token names, with its arguments as options."""
    name = next((token for token in tokens if not token.startswith("-")), None)
    if name is None:
        return theory
    entry = find("theory", name)
    keyword, positional = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_ONLY
    options = [
        inspect.Parameter(option.name, keyword, default=None, annotation=_annotation(option))
        for option in entry.options
    ]
    form = inspect.Parameter(
        "form", positional, annotation=Annotated[str, Parameter(help="the closed form")]
    )
    json = inspect.Parameter(
        "json",
        keyword,
        default=False,
        annotation=Annotated[bool, Parameter(help="print JSON", negative=())],
    )

    def evaluate(form: str, *, json: bool = False, **texts: Any) -> None:
        _evaluate(entry, texts, json)

    evaluate.__signature__ = inspect.Signature([form, *options, json])
    evaluate.__annotations__ = {option.name: option.annotation for option in [form, *options, json]}
    evaluate.__doc__ = (
        f"{entry.summary}\n\n    Numbers: 4, a list 1,2,3, or a range 0.1:9:45 (45"
        f" values). Matrices: '1,0;0,1', diag:1,2 or a .npy file.{_EXAMPLE}"
    )
    return evaluate


def theory() -> None:
    """Evaluate a closed form of the theory, over lists and ranges of numbers.

    Which ones there are: `tokenflock list theory`

    Example: `tokenflock theory transition-curve --n 32 --delta 1e-3 --t 10,20,30`

    Example: `tokenflock theory hemisphere-probability --n 32 --d 2,8,16`
    """
    raise UserError(
        "name a closed form, e.g. tokenflock theory transition-curve --n 32 --t 10,20,30 (all:"
        " tokenflock list theory)"
    )


def _annotation(option: Option) -> Any:
    kind = bool if option.annotation == "bool" else str
    shown = "required" if option.default is None else f"default: {option.default}"
    return Annotated[
        kind | None,
        Parameter(
            name=f"--{option.name.replace('_', '-')}",
            help=f"[{shown}]",
            show_default=False,
            allow_leading_hyphen=kind is str,
        ),
    ]


def _evaluate(entry: Entry, texts: dict[str, Any], json: bool) -> None:
    given = {
        option.name: _argument(option, texts[option.name])
        for option in entry.options
        if texts.get(option.name) is not None
    }
    missing = [
        option.name
        for option in entry.options
        if option.default is None and option.name not in given
    ]
    if missing:
        raise UserError(
            f"{entry.slug} needs --{missing[0].replace('_', '-')}; see: tokenflock theory"
            f" {entry.slug} --help"
        )
    arrays = {option.name for option in entry.options if _axes(option)}
    lists = {
        name: value
        for name, value in given.items()
        if isinstance(value, np.ndarray) and value.size > 1 and name not in arrays
    }
    rows = math.prod(float(value.size) for value in lists.values())
    require_memory(
        8 * rows * (len(lists) + ARRAYS),
        f"a table of {rows:,.0f} rows",
        "give shorter lists, or ranges of fewer numbers",
    )
    grids = (
        dict(zip(lists, (grid.ravel() for grid in np.meshgrid(*lists.values(), indexing="ij"))))
        if lists
        else {}
    )
    single = {
        name: value.item() if isinstance(value, np.ndarray) and name not in arrays else value
        for name, value in given.items()
        if name not in lists
    }
    form = entry.load()
    answer = guarded(form)(**single, **grids)
    answers = _columns(entry, answer)
    _print(entry, grids, answers, json)
    if not json and any(np.isnan(part).any() for part in numbers_in(tuple(answers.values()))):
        say(f"({explains_nan(form)})")


def _argument(option: Option, value: Any) -> Any:
    if (
        isinstance(value, bool)
        or "str" in option.annotation.split(" | ")
        or "Literal" in option.annotation
    ):
        return value
    name = f"--{option.name.replace('_', '-')}"
    if _axes(option):
        return np.array(array(value, name), ndmin=_axes(option))
    values = numbers(value, name)
    counts = option.annotation.startswith("int") or option.name in ("n", "d", "k", "p")
    whole = counts and bool(np.all(values == np.round(values)) and np.all(np.abs(values) < 2**62))
    return values.astype(int) if whole else values


def _axes(option: Option) -> int:
    """Axes of an argument that is one array, as its default is: a vector has 1, a matrix 2."""
    default = option.default or ""
    return len(default) - len(default.lstrip("("))


def _columns(entry: Entry, answer: Any) -> dict[str, np.ndarray]:
    """The answer as named columns."""
    if hasattr(answer, "_asdict"):
        answer = answer._asdict()
    if isinstance(answer, tuple):
        answer = {f"{entry.name}_{k}": part for k, part in enumerate(answer)}
    if not isinstance(answer, dict):
        answer = {entry.name: answer}
    return {name: np.asarray(value) for name, value in answer.items()}


def _print(
    entry: Entry, inputs: dict[str, np.ndarray], answers: dict[str, np.ndarray], json: bool
) -> None:
    long = {a.size for a in answers.values()} - {1}
    whole = long.pop() if len(long) == 1 else 1  # arrays of several sizes stand in one row
    rows = max([len(column) for column in inputs.values()] or [whole])
    table = {name: column for name, column in inputs.items()}
    for name, value in answers.items():
        flat = (
            value.reshape(rows, -1)
            if value.size % rows == 0 and value.size >= rows
            else np.broadcast_to(value.ravel(), (rows, value.size))
        )
        table |= {
            name if flat.shape[1] == 1 else f"{name}[{k}]": flat[:, k] for k in range(flat.shape[1])
        }
    if json:
        clean = {name: [_plain(value) for value in column] for name, column in table.items()}
        console.print(jsonlib.dumps(clean), soft_wrap=True, markup=False)
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=None, padding=(0, 2))
    for name in table:
        shown.add_column(name, justify="right")
    for row in zip(*table.values()):
        shown.add_row(
            *(
                f"{value:.10g}" if isinstance(value, (float, np.floating)) else str(value)
                for value in row
            )
        )
    natural = shown.__rich_measure__(console, console.options.update(max_width=10**6)).maximum
    wide = Console(highlight=False, width=max(natural, console.width))  # no number is cut to fit
    wide.print(shown, crop=False)


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value
