"""Options that another option would silently drop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tokenflock.errors import UserError


class Rule(NamedTuple):
    """Options of a command that mean nothing beside another, or without one."""

    command: str
    options: str
    beside: str = ""  # the option that drops them, if it is there
    without: str = ""  # the option that they need, unless it is empty


_INSTEAD = ("--dry-run", "--status", "--check", "--repair")
RULES = (
    Rule("gpt probe", "--seed", without="--untrained"),
    Rule("probe", "--prompts --minimum", beside="--string"),
    Rule("probe", "--seed", beside="--string", without="--untrained"),
    Rule("probe", "--follow", beside="--out", without="--report"),
    Rule("reproduce", "--scale --out --model --again --dask", beside="--list"),
    Rule("steer", "--clouds --n --d --spread", beside="--inputs"),
    Rule("steer", "--aims --target-spread", beside="--targets"),
    *(Rule("sweep", " ".join(_INSTEAD[:k]), beside=name) for k, name in enumerate(_INSTEAD)),
)


def refuse_dropped(tokens: Sequence[str]) -> None:
    """Raise if a command line names an option that the command would not read."""
    words = [token for token in tokens if not token.startswith("-")]
    typed = {token.partition("=")[0] for token in tokens if token.startswith("--")}
    for rule in RULES:
        command = rule.command.split()
        dropping = (not rule.beside or rule.beside in typed) and rule.without not in typed
        for option in rule.options.split() if words[: len(command)] == command else ():
            if dropping and option in typed:
                beside = f" beside {rule.beside}" if rule.beside else ""
                without = f" without {rule.without}" if rule.without else ""
                raise UserError(f"{option} has no effect{beside}{without}; leave it out")
