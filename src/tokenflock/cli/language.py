"""The words of the command line: what is typed, made exact, and errors in the same words.

The library speaks Python. Whoever typed a command never wrote Python, so `d=2` and `RK4(h=0.1)`
are said as the options that the command has: `--d 2`, `--solver rk4 --h 0.1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

from cyclopts import App, Argument, CycloptsError

from tokenflock.catalogue import entries, slug
from tokenflock.cli.values import number, whole
from tokenflock.errors import UserError

_ROLES = {"solver": "solvers", "dynamics": "dynamics", "start": "starts", "until": "events"}
_VALUE = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|\([\d, ]*\)|[^\s,;()\[\]]*[^\s,;.()\[\]]"""
_PAIR = re.compile(rf"(?<![\w=.:-])(\w+)=({_VALUE})")
_CALL = re.compile(r"\b([A-Z]\w*)\(([^()]*)\)")
_SWEPT = re.compile(r"over=\{'(\w+)': [^}]*\}")
_PYTHON = re.compile(r"(?<!in Python )\bresult\.(?=\w+\()")
_IDENTITY = re.compile(r"\bnp\.eye\((\d{1,3})\)")
_SUBJECT = re.compile(r"^(?:[A-Z]\w*\.)?(\w+)(?= must | has | needs |:)")


def exact(app: App, tokens: Sequence[str]) -> list[str]:
    """The tokens with whole numbers written out where an option wants them: 1e6 is 1000000.

    2.9 is an error there: it is never rounded. So is none for any number, which would mean the
    default.
    """
    kinds = {
        name: {argument.hint, *get_args(argument.hint)} & {int, float, str}
        for argument in _arguments(app, tokens)
        for name in argument.names
    }
    written: list[str] = []
    for token in tokens:
        name, tied, value = token.partition("=")
        if not tied:
            name, value = written[-1] if written else "", token
        kind = kinds.get(name, {str})
        if str in kind:
            written.append(token)
            continue
        if kind and value.lower() in ("none", "null"):
            raise UserError(f"{name} must be a number, got {value!r}; write one, or leave it out")
        if int in kind:
            value = str(whole(value, name))
            token = f"{name}={value}" if tied else value
        elif float in kind:
            number(value, name)
        written.append(token)
    return written


def spoken(message: str, app: App | None, tokens: Sequence[str]) -> str:
    """The message with arguments named as options. What the user typed stays as it was typed."""
    options = _options(app, tokens)
    message, typed = _hidden(message, tokens)
    message = _SWEPT.sub(lambda at: f"--{at[1].replace('_', '-')} 1,2,4", message)
    message = _PYTHON.sub("in Python result.", message)
    message = _IDENTITY.sub(lambda at: f"diag:{','.join('1' * int(at[1]))}", message)
    if "--store" in options and "--out" not in options:
        message = message.replace("--out", "--store")
    message = _SUBJECT.sub(lambda at: _option(at[1], options) or at[0], message)
    message = _CALL.sub(lambda at: _member(at[1], at[2], options) if at.start() else at[0], message)
    message = _PAIR.sub(lambda at: _pair(at[1], at[2], options) or at[0], message)
    message = _solvers(message, options)
    for k, text in enumerate(typed):
        message = message.replace(f"\0{k}\0", text)
    return message


def _arguments(app: App, tokens: Sequence[str]) -> list[Argument]:
    """The arguments of the command that the tokens name."""
    if {"--help", "-h", "--version"} & set(tokens):
        return []  # these are commands of their own
    try:
        called = app.parse_commands(tokens)[1][-1]
        return list(called.assemble_argument_collection())
    except (CycloptsError, ValueError):
        return []  # no such command; that is said when it is called


def _options(app: App | None, tokens: Sequence[str]) -> set[str]:
    """Every long option of the command that the tokens name."""
    arguments = [] if app is None else _arguments(app, tokens)
    return {name for argument in arguments for name in argument.names if name.startswith("--")}


def _hidden(message: str, tokens: Sequence[str]) -> tuple[str, list[str]]:
    """The message with marks in place of typed texts that look like Python."""
    parts = {part for token in tokens for part in (token, token.partition("=")[2])}
    typed = sorted((part for part in parts if "=" in part or "(" in part), key=len, reverse=True)
    for k, text in enumerate(typed):
        message = message.replace(text, f"\0{k}\0")
    return message, typed


def _option(name: str, options: set[str]) -> str | None:
    option = f"--{name.replace('_', '-')}"
    return option if option in options else None


def _pair(name: str, value: str, options: set[str]) -> str | None:
    option = _option(name, options)
    return None if option is None else f"{option} {_typed(value)}"


def _typed(value: str) -> str:
    """A Python value as one types it: no quotes, a list by commas, a size with an x."""
    if value.startswith("["):
        return value[1:-1].replace(" ", "")
    if value.startswith("("):
        return value[1:-1].replace(", ", "x")
    return value.strip("'\"")


def _member(name: str, arguments: str, options: set[str]) -> str:
    """`RK4(h=0.1)` as `--solver rk4 --h 0.1`, `Energy(log=True)` as `--observe energy:log=true`."""
    python = f"{name}({arguments})"
    pairs = _PAIR.findall(arguments)
    if arguments and not pairs:
        return python
    if "--observe" in options and _is(name, "observables"):
        return "--observe " + ":".join([slug(name), *(f"{k}={_typed(v)}" for k, v in pairs)])
    for role, kind in _ROLES.items():
        if f"--{role}" in options and _is(name, kind):
            given = [f"--{k.replace('_', '-')} {_typed(v)}" for k, v in pairs]
            return " ".join([f"--{role} {slug(name)}", *given])
    return python


def _is(name: str, kind: str) -> bool:
    return any(entry.name == name for entry in entries(kind))


def _solvers(message: str, options: set[str]) -> str:
    """Solvers by the names that --solver takes."""
    if "--solver" not in options:
        return message
    names = "|".join(entry.name for entry in entries("solvers"))
    return re.sub(rf"(?<=use |got | or )({names})\b(?!\()", lambda at: slug(at[1]), message)
