"""The words of the command line: what is typed, made exact, and errors in the same words.

The library speaks Python. Whoever typed a command never wrote Python, so `d=2` and `RK4(h=0.1)`
are said as the options that the command has: `--d 2`, `--solver rk4 --h 0.1`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import get_args

from cyclopts import App, Argument, CycloptsError

from tokenflock.catalogue import Entry, entries, slug
from tokenflock.cli.values import number, whole
from tokenflock.errors import UserError

MOST = 8  # names that an error lists
Options = Mapping[str, bool]
ROLES = {"solver": "solvers", "dynamics": "dynamics", "start": "starts", "until": "events"}
_VALUE = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|\([\d,. ]*\)|[^\s,;()\[\]]*[^\s,;.()\[\]]"""
_PAIR = re.compile(rf"(?<![\w=.:-])(\w+)=({_VALUE})")
_OBJECT = re.compile(r"\b[A-Z]\w*\(")
_NAMES = re.compile(rf"(?<=try )[\w-]+(, [\w-]+){{{MOST},}}")
_SWEPT = re.compile(r"over=\{'(\w+)': [^}]*\}")
_PYTHON = re.compile(r"(?<!in Python )\bresult\.(?=\w+\()")
_IDENTITY = re.compile(r"\bnp\.eye\((\d{1,3})\)")
_CLOCK = re.compile(r"(, or |use )(?:the )?clock '(\w+)'(?: for unnormalised attention)?")
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
    options = options_of(app, tokens)
    message, kept = _hidden(message, tokens)
    message = _SWEPT.sub(lambda at: f"--{at[1].replace('_', '-')} 1,2,4", message)
    message = _PYTHON.sub("in Python result.", message)
    message = _IDENTITY.sub(lambda at: f"diag:{','.join('1' * int(at[1]))}", message)
    if "--store" in options and "--out" not in options:
        message = message.replace("--out", "--store")
    message = _SUBJECT.sub(lambda at: _subject(at[1], options, tokens) or at[0], message)
    message = _objects(message, options, kept)
    message = _PAIR.sub(lambda at: _pair(at[1], at[2], options, tokens) or at[0], message)
    message = _solvers(_short(message), options)
    message = _CLOCK.sub(r"\1--clock \2" if "--clock" in options else "", message)
    for k, text in reversed(list(enumerate(kept))):
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


def options_of(app: App | None, tokens: Sequence[str]) -> dict[str, bool]:
    """Every long option of the command that the tokens name, and whether it takes no value."""
    arguments = [] if app is None else _arguments(app, tokens)
    return {
        name: bool in (argument.hint, *get_args(argument.hint))
        for argument in arguments
        for name in argument.names
        if name.startswith("--")
    }


def _hidden(message: str, tokens: Sequence[str]) -> tuple[str, list[str]]:
    """The message with marks in place of typed texts that look like Python."""
    parts = {part for token in tokens for part in (token, token.partition("=")[2])}
    typed = sorted((part for part in parts if "=" in part or "(" in part), key=len, reverse=True)
    for k, text in enumerate(typed):
        message = message.replace(text, f"\0{k}\0")
    return message, typed


def _option(name: str, options: Options) -> str | None:
    option = f"--{name.replace('_', '-')}"
    return option if option in options else None


def _subject(name: str, options: Options, tokens: Sequence[str]) -> str | None:
    """What an error is about, as one typed it; None where it is no option."""
    told = {"path": _option("out", options), "result": "the file", "subject": "the files"}
    return _option(name, options) or _changed(name, options, tokens) or told.get(name)


def _changed(name: str, options: Options, tokens: Sequence[str]) -> str | None:
    """A number that --set changes: the last part of its name, as `n` of `--set start.n=0`."""
    if "--set" not in options:
        return None
    pairs = [after for before, after in pairwise(tokens) if before == "--set"]
    pairs += [token.removeprefix("--set=") for token in tokens if token.startswith("--set=")]
    names = [pair.partition("=")[0] for pair in pairs]
    typed = next((each for each in names if each.rpartition(".")[2] == name), None)
    return None if typed is None else f"--set {typed}"


def _pair(name: str, value: str, options: Options, tokens: Sequence[str]) -> str | None:
    option = _option(name, options)
    if option is None:
        changed = _changed(name, options, tokens)
        return None if changed is None else f"{changed}={_typed(value)}"
    if options[option]:
        return _switch(option, value)
    return f"{option} {_typed(value)}"


def _switch(option: str, value: str) -> str:
    """An option that takes no value, on or off."""
    return option if value == "True" else f"--no-{option.removeprefix('--')}"


def _typed(value: str) -> str:
    """A Python value as one types it: no quotes, a list by commas, a pair by an x or a comma."""
    if value.startswith("[["):
        return value[2:-2].replace(" ", "").replace("],[", ";")
    if value.startswith("["):
        return value[1:-1].replace(" ", "")
    if value.startswith("("):
        return value[1:-1].replace(", ", "," if "." in value else "x")
    return value.lower() if value in ("True", "False") else value.strip("'\"")


def _objects(message: str, options: Options, kept: list[str]) -> str:
    """The message with objects as the options that make them: `RK4(h=0.1)` as `--solver rk4 --h
    0.1`. Those that no option makes stay as they are, in `kept`.
    """
    written, at = [], 0
    for found in _OBJECT.finditer(message):
        end = _closing(message, found.end())
        if found.start() < at or end is None:
            continue
        text = message[found.start() : end]
        said = _member(text, options)
        if said is None:
            kept.append(text)
            said = f"\0{len(kept) - 1}\0"
        written += [message[at : found.start()], said]
        at = end
    return "".join(written) + message[at:]


def _closing(message: str, start: int) -> int | None:
    """Where the bracket closes that opens before `start`."""
    depth = 1
    for place in range(start, len(message)):
        depth += {"(": 1, ")": -1}.get(message[place], 0)
        if depth == 0:
            return place + 1
    return None


def _member(text: str, options: Options) -> str | None:
    """A member that Python writes, as options; None where no option makes it."""
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    entry = _entry(call.func.id, "observables")
    if "--observe" in options and entry is not None:
        pairs = [f"{name}={_typed(ast.unparse(value))}" for name, value in _fields(call, entry)]
        return "--observe " + ":".join([entry.slug, *pairs])
    for role, kind in ROLES.items():
        entry = _entry(call.func.id, kind)
        if f"--{role}" in options and entry is not None:
            return _written(role, entry, call)
    return None


def _written(role: str, entry: Entry, call: ast.Call) -> str | None:
    """A member and its fields as options: switches without a value, what is off or none not at
    all, members in it in turn.
    """
    words = [f"--{role} {entry.slug}"]
    for name, value in _fields(call, entry):
        flag, text = f"--{name.replace('_', '-')}", ast.unparse(value)
        if isinstance(value, ast.Call):
            inner = isinstance(value.func, ast.Name) and _entry(value.func.id, "dynamics")
            said = _written(name, inner, value) if inner else None
            if said is None:
                return None
            words.append(said)
        elif text in ("True", "False"):
            usual = next((each.default for each in entry.options if each.name == name), "False")
            words += [] if text == usual else [_switch(flag, text)]
        elif text != "None":
            words.append(f"{flag} {text.lower() if text.isupper() else _typed(text)}")
    return " ".join(words)


def _fields(call: ast.Call, entry: Entry) -> list[tuple[str, ast.expr]]:
    """The fields of a member as they are written, those without a name by their order."""
    named = [(each.arg, each.value) for each in call.keywords if each.arg is not None]
    return [*zip((option.name for option in entry.options), call.args), *named]


def _entry(name: str, kind: str) -> Entry | None:
    return next((entry for entry in entries(kind) if entry.name == name), None)


def _short(message: str) -> str:
    """The message with at most a few of many names."""

    def cut(found: re.Match[str]) -> str:
        return ", ".join([*found[0].split(", ")[:MOST], "..."])

    return _NAMES.sub(cut, message)


def _solvers(message: str, options: Options) -> str:
    """Solvers by the names that --solver takes."""
    if "--solver" not in options:
        return message
    names = "|".join(entry.name for entry in entries("solvers"))
    return re.sub(rf"(?<=use |got | or )({names})\b(?!\()", lambda at: slug(at[1]), message)
