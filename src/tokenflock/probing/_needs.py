"""torch and transformers, or one line that says how to get them."""

from __future__ import annotations

from tokenflock.errors import UserError

try:
    import torch
    import transformers
except ImportError as error:
    raise UserError(
        f"a real model needs torch and transformers ({error.name} is not installed); write: pip install 'tokenflock[models]'"
    ) from None

__all__ = ["torch", "transformers"]
