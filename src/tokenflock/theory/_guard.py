"""What every closed form promises: a number, an infinity, or one clear line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, wraps
from inspect import getdoc, signature
from typing import Any

import numpy as np

from tokenflock.errors import UserError, require_kinds


@cache
def guarded(form: Callable[..., Any]) -> Callable[..., Any]:
    """A closed form whose mistakes are told: shapes that do not fit, and answers that are none.

    An answer holds NaN only where the docstring says when.
    """

    @wraps(form)
    def call(*args: Any, **options: Any) -> Any:
        require_kinds(form, dict(zip(signature(form).parameters, args)) | options)
        try:
            with np.errstate(all="ignore"):
                answer = form(*args, **options)
        except UserError:
            raise
        except (ValueError, TypeError, IndexError, OverflowError, AttributeError) as error:
            raise UserError(_unfit(form, args, options)) from error
        if not explains_nan(form) and any(np.isnan(part).any() for part in numbers_in(answer)):
            raise UserError(
                f"{form.__name__} has no value in double precision for"
                f" {_said(form, args, options)}; take arguments nearer to one"
            )
        return answer

    return call


def explains_nan(form: Callable[..., Any]) -> str:
    """What the docstring says of NaN: `nan after the blow-up`; empty where it says nothing."""
    return _clause(form, r"\bnan (?:where|after)\b")


def explains_inf(form: Callable[..., Any]) -> str:
    """What the docstring says of infinity: `inf where it never does`; empty where it says
    nothing.
    """
    return _clause(form, r"(?<![\w=-])-?(?:inf|Infinite) (?:where|after|beyond|at)\b")


def _clause(form: Callable[..., Any], begins: str) -> str:
    """The words of a docstring, above its examples, from a beginning to the end of the clause: a
    full stop or a semicolon that stands in no bracket.
    """
    text = " ".join((getdoc(form) or "").partition(">>>")[0].split())
    at = re.search(begins + r"(?:\([^()]*\)|\.(?=\S)|[^.;(])*", text)
    return at[0].strip() if at else ""


def numbers_in(answer: Any) -> Iterator[np.ndarray]:
    """Every array of floats in an answer."""
    parts = answer if isinstance(answer, tuple) else (answer,)
    if isinstance(answer, dict):
        parts = tuple(answer.values())
    for part in parts:
        array = np.asarray(part)
        if array.dtype.kind == "f":
            yield array


def _unfit(form: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> str:
    """What to say of arguments that the formula cannot take together."""
    try:
        signature(form).bind(*args, **options)
    except TypeError as error:
        return f"{form.__name__}: {error}"
    return (
        f"{form.__name__} takes numbers, or arrays of shapes that fit each other, got"
        f" {_said(form, args, options)}"
    )


def _said(form: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> str:
    given = signature(form).bind(*args, **options).arguments
    return ", ".join(f"{name}={_short(value)}" for name, value in given.items()) or "its defaults"


def _short(value: Any) -> str:
    try:
        array = np.asarray(value)
    except ValueError:
        return "an array whose rows differ in length"
    return f"an array of shape {array.shape}" if array.size > 3 else str(array.tolist())[:60]
