"""Options straight from the catalogue: the fields of the members that a command names become its
options.

`tokenflock simulate --dynamics causal --help` therefore shows the options of `Causal`, read from
its file without importing it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from typing import Annotated, Any

from cyclopts import Group, Parameter

from tokenflock.catalogue import PARTS, Entry, Option, family, find, part, slug
from tokenflock.cli.values import array, whole
from tokenflock.errors import UserError

_NESTED = {
    "Dynamics": "dynamics",
    "MeanField": "dynamics",
    "AttentionLaw": "dynamics",
    "Start": "starts",
}
_KINDS = {
    "int": int,
    "int | None": int,
    "float": float,
    "float | None": float,
    "float | Path": float,
    "bool": bool,
}
_ALIASES = {"h": ["--h", "--step"]}
_UNTYPED = ("NeuralODE", "LayerNorm | None")  # fields whose values cannot be typed as one word


@dataclass(frozen=True)
class Member:
    """A member of the catalogue named on the command line, with the members that its own fields
    name.
    """

    role: str
    entry: Entry
    inner: dict[str, Member] = field(default_factory=dict)
    bare: str | None = (
        None  # the value of the first option, where that was typed in place of a name
    )

    def has(self, name: str) -> bool:
        """Whether it, or a member in it, has a field of this name."""
        own = any(option.name == name for option in self.entry.options)
        return own or any(member.has(name) for member in self.inner.values())


def scan(tokens: Sequence[str], flag: str) -> str | None:
    """The value of `flag` among raw tokens, before anything is parsed."""
    for token, following in zip(tokens, [*tokens[1:], "--"]):
        if token == flag:
            if following.startswith("--"):
                raise UserError(f"{flag} needs a name, got none; write it after {flag}")
            return following
        if token.startswith(flag + "="):
            return token.partition("=")[2]
    return None


def member(
    role: str, kind: str, name: str, tokens: Sequence[str], outer: frozenset[str] = frozenset()
) -> Member:
    """The member called `name`, and those that its fields ask for (`--base` of `noisy`, the mlp of
    `feed-forward`). What is called like a field of an outer member has the role before it:
    `--dynamics noisy --base streamed --base-base sinkhorn`.
    """
    entry = find(kind, name)
    inner, naming = {}, (*_NESTED, "NeuralODE")
    known = outer | {option.name for option in entry.options if option.annotation in naming}
    for option in entry.options:
        within = f"{role}_{option.name}" if option.name in outer else option.name
        if option.annotation in _NESTED:
            chosen = _chosen(option, _flag(within), tokens)
            kind = _NESTED[option.annotation]
            inner[option.name] = member(within, kind, chosen, tokens, known)
        elif option.annotation in PARTS:
            inner[option.name] = _part(option, _chosen(option, _flag(option.name), tokens))
        elif option.annotation == "NeuralODE":
            inner[option.name] = member(within, "dynamics", "neural-ode", tokens, known)
    return Member(role, entry, inner)


def _chosen(option: Option, flag: str, tokens: Sequence[str]) -> str:
    """The name that was typed for a field, or that of its default."""
    typed = scan(tokens, flag)
    return slug((option.default or "").partition("(")[0]) if typed is None else typed


def _part(option: Option, chosen: str) -> Member:
    """The part that a field of a block names: `--mask causal`, `--heads 4`."""
    try:
        entry, bare = part(option.annotation, chosen)
    except UserError:
        shown = sorted(family(option.annotation))
        near = get_close_matches(chosen, shown, n=1)
        remedy = f"; did you mean {near[0]}?" if near else ""
        wanted = f"{_example(option.annotation)}one of {', '.join(shown)}"
        flag = _flag(option.name)
        raise UserError(f"{flag} must be {wanted}, got {chosen!r}{remedy}") from None
    return Member(option.name, entry, {}, bare)


def _example(of: str) -> str:
    """What may be typed in place of the name of a part.

    >>> _example("Heads"), _example("Mask")
    ('a whole number or ', '')
    """
    bare = {"RandomHeads": "a whole number or ", "RandomFeedForward": "an activation or "}
    return bare.get(PARTS[of] or "", "")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def command(
    run: Callable[..., None],
    roles: Mapping[str, tuple[str, str | None]],
    tokens: Sequence[str],
    skip: Sequence[str] = (),
):
    """The function `run` as a command whose options are its own and those of the members that the
    tokens name.

    `roles` gives for each role its kind and its default member; `run` gets the members as `chosen`
    and the values of their options as `values`. Options in `skip` are left out.
    """
    chosen = {}
    for role, (kind, default) in roles.items():
        name = scan(tokens, f"--{role}")
        name = default if name is None else name
        if name is not None:
            chosen[role] = member(role, kind, name, tokens)
    fixed = inspect.signature(run, eval_str=True).parameters
    own = [option for name, option in fixed.items() if name not in ("chosen", "values")]
    taken = {f"--{name.replace('_', '-')}" for option in own for name in _names(option)}
    extra = [option for part in chosen.values() for option in parameters(part, taken, skip)]

    def call(**values: Any) -> None:
        mine = {name: values.pop(name) for name in list(values) if "__" not in name}
        run(chosen=chosen, values=values, **mine)

    call.__signature__ = inspect.Signature([*own, *extra])
    call.__annotations__ = {option.name: option.annotation for option in [*own, *extra]}
    call.__doc__ = run.__doc__
    return call


def _names(option: inspect.Parameter) -> list[str]:
    """What a parameter is called on the command line: itself, or the fields of its object."""
    kind = option.annotation
    return [part.name for part in fields(kind)] if is_dataclass(kind) else [option.name]


def parameters(
    chosen: Member, taken: set[str], skip: Sequence[str] = ()
) -> list[inspect.Parameter]:
    """The options of a member as keyword parameters.

    A name that is taken already gets the role as a prefix.
    """
    title = f"{chosen.role.capitalize().replace('_', ' ')}: {chosen.entry.slug}"
    group = Group(title, help=chosen.entry.summary)
    own = []
    for option in chosen.entry.options:
        first = chosen.bare is not None and option is chosen.entry.options[0]
        if option.name in skip or option.annotation in _UNTYPED or first:
            continue
        names = _ALIASES.get(option.name, [_flag(option.name)])
        if taken & set(names):
            names = [_flag(f"{chosen.role}-{option.name}")]
        taken.update(names)
        own.append(_parameter(chosen, option, names, group))
    inner = [parameters(inside, taken, skip) for inside in chosen.inner.values()]
    return own + [option for options in inner for option in options]


def _parameter(chosen: Member, option: Option, names: list[str], group: Group) -> inspect.Parameter:
    kind = _KINDS.get(option.annotation, str)
    shown = "required" if option.default is None else f"default: {_shown(option.default)}"
    how = Parameter(
        name=names,
        group=group,
        help=f"{option.doc} [{shown}]",
        show_default=False,
        allow_leading_hyphen=kind is not bool,
    )
    return inspect.Parameter(
        _key(chosen, option),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, how],
    )


def _shown(default: str) -> str:
    """A default as one would type it: Clock.PAPER is paper, SelfAttention() is self-attention."""
    if default[0].isupper() and default.endswith("()"):
        return _short(default[:-2])
    head, _, tail = default.partition(".")
    return tail.lower() if head.isidentifier() and tail.isupper() else default


def _short(name: str) -> str:
    """The name of a member as one types it."""
    parts = {entry.name: short for of in PARTS for short, entry in family(of).items()}
    return parts.get(name, slug(name))


def build(chosen: Member, values: dict[str, Any]) -> Any:
    """The member itself, from the options that were given."""
    cls = chosen.entry.load()
    given = {}
    for option in chosen.entry.options:
        value = values.get(_key(chosen, option))
        if chosen.bare is not None and option is chosen.entry.options[0]:
            value = chosen.bare
        if option.name in chosen.inner:
            given[option.name] = build(chosen.inner[option.name], values)
        elif value is not None:
            given[option.name] = _value(option, value)
        elif option.default is None:
            raise UserError(
                f"{chosen.role} {chosen.entry.slug} needs --{option.name} ({option.doc})"
            )
    bare = {} if chosen.bare is None else {chosen.entry.options[0].name: _flag(chosen.role)}
    with _blaming(bare):
        return cls(**given)


@contextmanager
def _blaming(flags: Mapping[str, str]) -> Iterator[None]:
    """Scope in which an error about a field names what was typed for it: `--feed-forward`, or
    `--observe histogram:bins`.
    """
    try:
        yield
    except UserError as error:
        text = str(error)
        for name, flag in flags.items():
            text = re.sub(rf"^(\w+\.)?{name}(?= must )", flag, text)
            text = text.replace(f"write e.g. {name}=", f"write e.g. {flag}=")
        raise UserError(text) from None


def typed(role: str, values: Mapping[str, Any]) -> bool:
    """Whether an option of the member in this role was given."""
    return any(value is not None for key, value in values.items() if key.startswith(f"{role}__"))


def convert(entry: Entry, texts: dict[str, str]) -> Any:
    """A member from texts `name=value`, as in `--observe energy:convention=staircase`."""
    cls, options = entry.load(), {option.name: option for option in entry.options}
    for name in texts:
        if name not in options:
            raise UserError(
                f"{entry.slug} has no option {name!r}; it has {', '.join(options) or 'none'}"
            )
    with _blaming({name: f"--observe {entry.slug}:{name}" for name in options}):
        return cls(**{name: _value(options[name], text) for name, text in texts.items()})


def _value(option: Option, value: Any) -> Any:
    """What was typed as a number, an array or a truth; a text stays, and its member judges it."""
    if "Array" in option.annotation:
        return array(value, f"--{option.name}")
    if option.annotation == "bool" and isinstance(value, str):
        return _bool(value, option.name)
    if isinstance(value, str) and option.annotation.startswith("int"):
        return whole(value, option.name)
    if isinstance(value, str) and option.annotation.startswith("float"):
        try:
            return float(value)
        except ValueError:
            raise UserError(f"{option.name} must be a number, got {value!r}") from None
    return value


def _bool(text: str, name: str) -> bool:
    meanings = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in meanings:
        raise UserError(f"{name} must be true or false, got {text!r}")
    return meanings[text.lower()]


def _key(chosen: Member, option: Option) -> str:
    return f"{chosen.role}__{option.name}"
