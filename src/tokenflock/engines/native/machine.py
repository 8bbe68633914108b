"""Text of LLVM to machine code of this processor, kept on disk from one process to the next."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jax
import llvmlite.binding as llvm

Function = Callable[..., None]
_LOADED: dict[str, tuple[Any, Function]] = {}  # the engine owns the memory of the function


@cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True
    )


@cache
def lanes() -> int:
    """How many systems run side by side: numbers of single precision in a register."""
    return 16 if llvm.get_host_cpu_features().get("avx512f") else 8


def compiled(text: str, name: str = "run", words: str = "pppppipii") -> Function:
    """The function of a text with this name: p is a place, all else a whole number."""
    if text not in _LOADED:
        engine = _engine(text)
        kinds = [ctypes.c_void_p if word == "p" else ctypes.c_int64 for word in words]
        kind = ctypes.CFUNCTYPE(None, *kinds)
        _LOADED[text] = engine, kind(engine.get_function_address(name))
    return _LOADED[text][1]


def handlers(text: str, names: Sequence[str]) -> dict[str, Any]:
    """Functions of a text that XLA may call, by name. They are there until the process ends."""
    engine = _engine(text)
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    made = {name: kind(engine.get_function_address(name)) for name in names}
    _LOADED[text] = engine, made[names[0]]
    return made


def _engine(text: str) -> Any:
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
    engine.add_object_file(llvm.ObjectFileRef.from_data(_object(text)))
    engine.finalize_object()
    return engine


def _object(text: str) -> bytes:
    """The machine code of a text, from the folder where JAX keeps its own, if it has one."""
    folder: str | None = getattr(jax.config, "jax_compilation_cache_dir", None)
    if folder is None:
        return _made(text)
    features = llvm.get_host_cpu_features().flatten()
    mark = repr((text, llvm.llvm_version_info, llvm.get_host_cpu_name(), features))
    name = f"tokenflock-loop-{hashlib.sha256(mark.encode()).hexdigest()}.o"
    place = Path(folder) / name
    with suppress(OSError):
        return place.read_bytes()
    code = _made(text)
    with suppress(OSError):  # a folder that cannot be written to costs time, not results
        place.parent.mkdir(parents=True, exist_ok=True)
        mine = place.with_suffix(f".{os.getpid()}")
        mine.write_bytes(code)
        mine.replace(place)
    return code


def _made(text: str) -> bytes:
    module, machine = llvm.parse_assembly(text), _target()
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)
