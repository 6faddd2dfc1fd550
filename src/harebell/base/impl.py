"""The choice between the compiled and the pure Python implementation.

`HAREBELL_IMPL=native` requires the compiled modules, `HAREBELL_IMPL=python` ignores them; without
it they are used if they were built. The choice is made once, when `harebell` is first imported, for
all modules: compiled classes share C layouts, so compiled and uncompiled modules cannot be mixed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import (
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import ModuleType

NATIVE = "native"
PYTHON = "python"
_PROBE = "harebell.kernels.frames"

_state = {"chosen": "", "wanted": ""}


class SourceOnly:
    """A finder that loads `harebell.*` from `.py` files, even if compiled files are beside them."""

    def __init__(self) -> None:
        self._finders: dict[str, FileFinder] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the source file; None for modules outside Harebell."""
        if not fullname.startswith("harebell.") or path is None:
            return None
        for directory in path:
            finder = self._finders.get(directory)
            if finder is None:
                finder = FileFinder(directory, (SourceFileLoader, SOURCE_SUFFIXES))
                self._finders[directory] = finder
            spec = finder.find_spec(fullname)
            if spec is not None:
                return spec
        return None


def _compiled(module: str) -> bool:
    """True if importing the module would load a compiled one."""
    spec = PathFinder.find_spec(module, [str(Path(__file__).parents[1] / "kernels")])
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)


def choose(wanted: str) -> None:
    """Choose the implementation for this process.

    Args:
        wanted: the value of HAREBELL_IMPL, or "" if it is not set.

    Raises:
        ImportError: an unknown value, or `native` without compiled modules.
    """
    if wanted not in ("", NATIVE, PYTHON):
        raise ImportError(f"HAREBELL_IMPL={wanted!r} is unknown: use 'python' or 'native'")
    _state["wanted"] = wanted
    built = wanted != PYTHON and _compiled(_PROBE)
    if wanted == NATIVE and not built:
        raise ImportError(
            "HAREBELL_IMPL=native, but the compiled parts are not built: "
            "run `pip install -e .` with a C compiler (Debian: apt-get install gcc python3-dev)"
        )
    if built:
        _state["chosen"] = NATIVE
    else:
        _state["chosen"] = PYTHON
        sys.meta_path.insert(0, SourceOnly())


def chosen() -> str:
    """Return the implementation in use: "native" or "python"."""
    return _state["chosen"]


def warning() -> str | None:
    """Return a warning if compiled modules are missing and `python` was not requested."""
    if _state["chosen"] == NATIVE or _state["wanted"] == PYTHON:
        return None
    return (
        "the compiled parts are not installed, a message costs about ten times the CPU: install a "
        "C compiler (Debian: apt-get install gcc python3-dev), then run pip install "
        "--force-reinstall --no-cache-dir harebell, or set HAREBELL_IMPL=python to accept it"
    )
