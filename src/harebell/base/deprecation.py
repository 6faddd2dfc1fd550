"""Deprecated names of the public API, which stay for one release."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def deprecated_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module whose names were renamed or moved.

    Each use of an old name warns with a `DeprecationWarning` that gives the new one.

    Args:
        module: the module that had the old names.
        names: for each old name, the dotted path of the new one.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = names[name].rpartition(".")
        warnings.warn(
            f"{module}.{name} is deprecated: use {names[name]}", DeprecationWarning, stacklevel=2
        )
        return getattr(import_module(home), new)

    return find
