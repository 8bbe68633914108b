"""torch and transformers, imported at their first use, or one line that says how to get them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tokenflock.errors import UserError


class _Late:
    """A library that is imported when something of it is asked for: models that were trained here
    need none.
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, item: str) -> Any:
        try:
            return getattr(import_module(self._name), item)
        except ImportError as error:
            raise UserError(
                f"a real model needs torch and transformers ({error.name} is not installed); write:"
                " pip install 'tokenflock[models]'"
            ) from None


torch, transformers = _Late("torch"), _Late("transformers")

__all__ = ["torch", "transformers"]
