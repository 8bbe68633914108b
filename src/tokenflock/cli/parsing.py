"""What the parser of the command line refuses, in the words of this library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from cyclopts import App, CycloptsError
from cyclopts.exceptions import CoercionError, UnknownOptionError, UnusedCliTokensError

from tokenflock.catalogue import entries
from tokenflock.cli.language import MOST, ROLES, options_of

_NAMES = {"h": ("h", "step")}  # options by more than one name


def refused(error: CycloptsError, app: App | None, tokens: Sequence[str]) -> str:
    """An error of the parser, in one line that says what to write instead."""
    if isinstance(error, UnknownOptionError):
        return _unknown(error.token.keyword or error.token.value, app, list(tokens))
    if isinstance(error, UnusedCliTokensError):
        return _unused([str(token) for token in error.unused_tokens or ()], tokens)
    if isinstance(error, CoercionError) and error.target_type is bool and error.token:
        flag = error.token.keyword or "the option"
        return f"{flag} takes no value, got {error.token.value!r}; write {flag} alone"
    return str(error)


def _unused(words: Sequence[str], tokens: Sequence[str]) -> str:
    """What was typed beyond what the command takes."""
    called = tokens[0] if tokens else "the command"
    shown = ", ".join(map(repr, words[:MOST])) + (", ..." if len(words) > MOST else "")
    return f"{called} takes no {shown} here; leave it out (see tokenflock {called} --help)"


def _unknown(typed: str, app: App | None, tokens: list[str]) -> str:
    """An option that the command does not have: who has it, else what is spelt nearly so."""
    name, options = typed.partition("=")[0], options_of(app, tokens)
    given = next((token for token in tokens if token.startswith(f"{name}=")), name)
    if name in tokens:
        given = " ".join([name, *tokens[tokens.index(name) + 1 :][:1]])
    for role, members in _owners(name, list(options)):
        shown = ", ".join(members[:MOST]) + (", ..." if len(members) > MOST else "")
        return (
            f"Unknown option: {name}. It belongs to --{role} {shown}; write e.g. --{role}"
            f" {members[0]} {given}"
        )
    near = get_close_matches(name, options, n=1)
    if near:
        return f"Unknown option: {name}. Did you mean {near[0]}?"
    called = tokens[0] if tokens else ""
    if len(options) <= MOST:
        return f"Unknown option: {name}. Here there are {', '.join(options) or 'none'}."
    return f"Unknown option: {name}. See them all: tokenflock {called} --help"


def _owners(name: str, options: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The members that have an option, by the role in which the command takes them."""
    for role, kind in ROLES.items():
        if f"--{role}" not in options:
            continue
        having = [
            entry.slug
            for entry in entries(kind)
            if any(name in _flags(option.name) for option in entry.options)
        ]
        if having:
            yield role, having


def _flags(name: str) -> list[str]:
    """An option of a member as one may type it."""
    return [f"--{each.replace('_', '-')}" for each in _NAMES.get(name, (name,))]
