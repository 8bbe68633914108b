"""Write the stubs of all lazy folders, so that editors and type checkers see every public name.

    python tools/stubs.py            write them
    python tools/stubs.py --check    say which would change (exit code 1)

A folder is lazy where its names are imported when first asked for. Its stub says where each of them
lives. A test runs the same comparison.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1] / "src" / "tokenflock"


def lazy_folders() -> list[ModuleType]:
    """tokenflock itself and every folder of it that has a `__getattr__`."""
    folders = [path.parent for path in sorted(ROOT.rglob("__init__.py"))]
    names = [".".join(("tokenflock", *folder.relative_to(ROOT).parts)) for folder in folders]
    packages = [importlib.import_module(name) for name in names]
    return [package for package in packages if "__getattr__" in vars(package)]


def stub(package: ModuleType) -> str:
    """The stub of one folder."""
    lines = [_line(package, name) for name in sorted(package.__all__)]
    known = ["", "__version__: str"] if package.__name__ == "tokenflock" else []
    listed = ",\n".join(f'    "{name}"' for name in sorted(package.__all__))
    return "\n".join([*lines, *known, "", f"__all__ = [\n{listed},\n]", ""])


def _line(package: ModuleType, name: str) -> str:
    value = getattr(package, name)
    if isinstance(value, ModuleType):
        parent, _, last = value.__name__.rpartition(".")
        return f"from {parent} import {last} as {name}"
    return f"from {inspect.unwrap(value).__module__} import {value.__name__} as {name}"


def stubs() -> dict[Path, str]:
    """Every stub by its path."""
    return {
        Path(str(package.__file__)).with_suffix(".pyi"): stub(package) for package in lazy_folders()
    }


def stale() -> list[Path]:
    """The stubs that differ from what is written."""
    written = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in stubs()}
    return [path for path, text in stubs().items() if written[path] != text]


def main(arguments: list[str]) -> int:
    """Write or check."""
    old = stale()
    for path in old:
        print(path.relative_to(ROOT.parent))
        if "--check" not in arguments:
            path.write_text(stubs()[path], encoding="utf-8")
    return 1 if old and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
