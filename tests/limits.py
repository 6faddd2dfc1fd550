"""The limits of all packages: each package has its own in a module `limits`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import harebell


def packages() -> list[str]:
    """The packages that have limits."""
    root = Path(harebell.__file__).parent
    return sorted(path.parent.name for path in root.glob("*/limits.py"))


def modules() -> list[ModuleType]:
    """The modules of limits."""
    return [import_module(f"harebell.{name}.limits") for name in packages()]


def limits(*packages_of: str) -> dict[str, float]:
    """Limits by name: those of some packages, or all."""
    found: dict[str, float] = {}
    for name in packages_of or packages():
        module = import_module(f"harebell.{name}.limits")
        found |= {key: value for key, value in vars(module).items() if key.isupper()}
    return found


def set_limit(name: str, value: float) -> None:
    """Change a limit for modules that are imported later."""
    known = [module for module in modules() if hasattr(module, name)]
    assert known, f"there is no limit {name}"
    for module in known:
        setattr(module, name, value)
