"""`tokenflock theory`."""

from __future__ import annotations

import inspect
import json as jsonlib
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
from cyclopts import App, Parameter
from rich.console import Console

from tokenflock.catalogue import Entry, Option, find
from tokenflock.cli.console import console, errors
from tokenflock.cli.values import MOST, array, numbers
from tokenflock.engines.memory import require_memory
from tokenflock.errors import UserError
from tokenflock.theory._guard import explains_inf, explains_nan, guarded, numbers_in
from tokenflock.theory._letters import meaning

ARRAYS = 60  # numbers held for each row: those of the formula, and the table that is printed
ROWS = 100_000  # of a table that is read; as JSON it may have MOST
SHOWN = 4  # arguments in the example of a form


def command(tokens: Sequence[str]) -> App | Callable[..., None]:
    """The closed form that the first token names, with its arguments as options."""
    name = next((token for token in tokens if not token.startswith("-")), None)
    if name is None:
        return theory
    entry = find("theory", name)
    keyword, positional = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_ONLY
    defaults = _defaults(entry)
    options = [
        inspect.Parameter(
            option.name, keyword, default=None, annotation=_annotation(entry, option, defaults)
        )
        for option in entry.options
    ]
    form = inspect.Parameter("form", positional, annotation=Annotated[str, Parameter(show=False)])
    json = inspect.Parameter(
        "json",
        keyword,
        default=False,
        annotation=Annotated[
            bool, Parameter(help="print JSON; null is no number", negative=(), show_default=False)
        ],
    )

    def evaluate(form: str, *, json: bool = False, **texts: Any) -> None:
        _evaluate(entry, texts, json)

    evaluate.__signature__ = inspect.Signature([form, *options, json])
    evaluate.__annotations__ = {option.name: option.annotation for option in [form, *options, json]}
    app = App(
        name="theory",
        usage=f"Usage: tokenflock theory {entry.slug} [OPTIONS]",
        help=_help(entry, defaults),
        help_format="markdown",
        version_flags=(),
    )
    app.default(evaluate)
    return app


def _defaults(entry: Entry) -> dict[str, str]:
    """The default of each argument as it is typed; none for those that must be given."""
    parameters = inspect.signature(entry.load()).parameters.values()
    return {p.name: _typed(p.default) for p in parameters if p.default is not p.empty}


def _typed(value: Any) -> str:
    """A default as it is typed.

    >>> _typed(1e-3), _typed(((1.0, 0.0), (0.0, 1.0))), _typed((0.5, 0.5)), _typed("SA")
    ('0.001', "'1,0;0,1'", '0.5,0.5', 'SA')
    """
    if isinstance(value, tuple):
        rows = [_typed(part) for part in value]
        return f"'{';'.join(rows)}'" if len(rows) > 1 and "," in rows[0] else ",".join(rows)
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


def _help(entry: Entry, defaults: dict[str, str]) -> str:
    """What a form is, how numbers are written, and a line that runs."""
    said = {k: text for k, text in defaults.items() if text not in ("False", "inf")}
    shown = [f"{_flag(name)} {text}" for name, text in [*said.items()][:SHOWN]]
    line = " ".join(["tokenflock theory", entry.slug, *shown])
    how = "Numbers: 4, a list 1,2,3, or a range 0.1:9:45 (45 values)."
    if any(map(_axes, entry.options)):
        how += " Matrices: '1,0;0,1', diag:1,2 or a .npy file."
    return f"{entry.summary}\n\n{how}\n\nExample: `{line}`\n"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


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


def _annotation(entry: Entry, option: Option, defaults: dict[str, str]) -> Any:
    switch = option.annotation == "bool"
    shown = f"[default: {defaults[option.name]}]" if option.name in defaults else "[required]"
    told = [meaning(entry.doc, option.name), "" if switch else shown]
    return Annotated[
        (bool if switch else str) | None,
        Parameter(
            name=_flag(option.name),
            help=" ".join(filter(None, told)),
            show_default=False,
            negative=(),
            allow_leading_hyphen=not switch,
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
            f"{entry.slug} needs {_flag(missing[0])}; see: tokenflock theory {entry.slug} --help"
        )
    arrays = {option.name for option in entry.options if _axes(option)}
    lists = {
        name: value
        for name, value in given.items()
        if isinstance(value, np.ndarray) and value.size > 1 and name not in arrays
    }
    _require_rows(lists, json)
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
    answers = _columns(entry, guarded(form)(**single, **grids))
    _print(_table(grids, answers), json)
    _explain(form, answers, errors if json else console)


def _require_rows(lists: dict[str, np.ndarray], json: bool) -> None:
    """Refuse a table that nobody reads, or that takes more memory than there is."""
    rows = math.prod(value.size for value in lists.values())
    most = MOST if json else ROWS
    if rows > most:
        more = "" if json else f", or {MOST:,} with --json"
        what = " times ".join(f"{value.size:,} of {_flag(name)}" for name, value in lists.items())
        raise UserError(
            f"a table has at most {most:,} rows{more}, got {what}; give shorter lists, or ranges of"
            " fewer numbers"
        )
    require_memory(
        8 * rows * (len(lists) + ARRAYS),
        f"a table of {rows:,} rows",
        "give shorter lists, or ranges of fewer numbers",
    )


def _explain(form: Callable[..., Any], answers: dict[str, np.ndarray], where: Console) -> None:
    """Say what nan and inf mean: below a table, and beside JSON, which holds only itself."""
    parts = list(numbers_in(tuple(answers.values())))
    if any(np.isnan(part).any() for part in parts):
        where.print(f"({explains_nan(form)})", soft_wrap=True, markup=False)
    if any(np.isinf(part).any() for part in parts):
        told = explains_inf(form) or "inf: beyond double precision"
        where.print(f"({told})", soft_wrap=True, markup=False)


def _argument(option: Option, value: Any) -> Any:
    if (
        isinstance(value, bool)
        or "str" in option.annotation.split(" | ")
        or "Literal" in option.annotation
    ):
        return value
    name = _flag(option.name)
    if _axes(option):
        return np.array(array(value, name), ndmin=_axes(option))
    values = numbers(value, name)
    if values.size > 1 and "ArrayLike" not in option.annotation:
        raise UserError(f"{name} takes one number, got {value!r}")
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


def _table(inputs: dict[str, np.ndarray], answers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns of one length: what was given, and the answers."""
    long = {a.size for a in answers.values()} - {1}
    whole = long.pop() if len(long) == 1 else 1  # arrays of several sizes stand in one row
    rows = max([len(column) for column in inputs.values()] or [whole])
    table = dict(inputs)
    for name, value in answers.items():
        flat = (
            value.reshape(rows, -1)
            if value.size % rows == 0 and value.size >= rows
            else np.broadcast_to(value.ravel(), (rows, value.size))
        )
        table |= {
            name if flat.shape[1] == 1 else f"{name}[{k}]": flat[:, k] for k in range(flat.shape[1])
        }
    return table


def _print(table: dict[str, np.ndarray], json: bool) -> None:
    if json:
        clean = {name: [_plain(value) for value in column] for name, column in table.items()}
        console.print(jsonlib.dumps(clean), soft_wrap=True, markup=False)
        return
    columns = [[name, *map(_cell, column.tolist())] for name, column in table.items()]
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "    ".join(f"{cell:>{width}}" for cell, width in zip(row, widths)) for row in zip(*columns)
    ]
    # no number is cut or wrapped to fit
    console.print(f"  {lines[0]}", style="bold", soft_wrap=True, markup=False)
    console.print("\n".join(f"  {line}" for line in lines[1:]), soft_wrap=True, markup=False)


def _cell(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """A value as JSON has it, which knows no infinity and no NaN: "inf", "-inf" and null.

    >>> _plain(np.float64(0.5)), _plain(-np.inf), _plain(np.nan), _plain(3)
    (0.5, '-inf', None, 3)
    """
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)
