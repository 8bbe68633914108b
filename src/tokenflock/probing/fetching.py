"""What lies on the disk, in the cache of the hub, or on the hub.

Or one clear line about why it cannot be had.
"""

from __future__ import annotations

import os
import pickle
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from tokenflock.errors import UserError
from tokenflock.probing._needs import transformers


def fetched(source: str, fetch: Callable[..., Any]) -> Any:
    """What `fetch` gives: from the disk if it is there, else from the hub, else an error."""
    local = Path(source).is_dir()
    with quiet():
        try:
            return fetch(local_files_only=True, trust_remote_code=False)
        except pickle.UnpicklingError as error:
            raise UserError(
                f"the weights of {source} are a pickle that would run code ({line(error)});"
                " convert them to safetensors"
            ) from None
        except Exception as error:  # transformers raises many kinds
            if local or not isinstance(error, OSError):
                raise UserError(_trouble(source, error)) from None
        if not _online():
            raise UserError(absent(source))
        try:
            return fetch(trust_remote_code=False)
        except Exception as error:
            raise UserError(_trouble(source, error)) from None


def cached(name: str) -> bool:
    """Whether a model lies in the cache of the hub, weights and all."""
    try:
        with quiet():
            transformers.AutoConfig.from_pretrained(name, local_files_only=True)
            from huggingface_hub import try_to_load_from_cache

            files = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
            return any(isinstance(try_to_load_from_cache(name, file), str) for file in files)
    except (OSError, ValueError):
        return False


def absent(name: str) -> str:
    """What to say of a model that is not here and cannot be fetched."""
    folder = name.rpartition("/")[2]
    return (
        f"{name} is not in the cache and there is no network; where there is one, run: hf download"
        f" {name} --local-dir {folder}; then bring the folder and give its path"
    )


@contextmanager
def quiet() -> Iterator[None]:
    """transformers and torch without their chatter: what is wrong is told by us, in one line. A
    panic of a library below them, which is no Exception, becomes a RuntimeError.
    """
    log = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a class that cannot be imported
            raise
        raise RuntimeError(line(error)) from None
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def _trouble(source: str, error: Exception) -> str:
    text = str(error)
    if "UnpicklingError" in text or "weights_only" in text.lower() or "Weights only" in text:
        return (
            f"the weights of {source} are a pickle that would run code; convert them to safetensors"
        )
    if (
        "model type" in text
        or "model_type" in text
        or "trust_remote_code" in text
        or isinstance(error, KeyError)
    ):
        return (
            f"{source} has an architecture that transformers {transformers.__version__} does not"
            f" know: {line(error)}"
        )
    return f"{source} could not be loaded: {line(error)}"


def line(error: BaseException) -> str:
    """Return the first line of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__


def _online() -> bool:
    """Whether the hub can be reached, found out in seconds rather than after many retries."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        return False
    if any(
        os.environ.get(name) for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    ):
        return True
    place = urlparse(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    try:
        socket.create_connection(
            (place.hostname or "huggingface.co", place.port or 443), timeout=4
        ).close()
    except OSError:
        return False
    return True
