"""Files that import each other in a circle, imports for types included: few at a time, and why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.reviewed import CIRCLES
from tests.tidy.sources import SOURCE, python_files, tree

MAX_FILES = 4


def module_of(path: Path) -> str:
    """The name of a module, as it is imported."""
    return ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")


def modules() -> dict[str, Path]:
    """Every module of the package."""
    return {module_of(path): path for path in python_files() if str(path).startswith(SOURCE)}


def imported(node: ast.AST, known: dict[str, Path]) -> Iterator[str]:
    """The modules that a statement imports from the package."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            found = whole if whole in known else node.module
            if found in known:
                yield found


def graph() -> dict[str, set[str]]:
    """Who imports whom."""
    known = modules()
    return {
        name: {found for node in ast.walk(tree(path)) for found in imported(node, known)} - {name}
        for name, path in known.items()
    }


def reached(arrows: dict[str, set[str]], start: str) -> set[str]:
    """Every module that can be reached from one."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in arrows[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def circles() -> set[frozenset[str]]:
    """The groups of modules that reach each other."""
    arrows = graph()
    ways = {name: reached(arrows, name) for name in arrows}
    return {
        frozenset(other for other in ways[name] if name in ways[other])
        for name in arrows
        if name in ways[name]
    }


def test_no_circle_ties_more_files_than_a_reader_holds_in_mind() -> None:
    large = [sorted(circle) for circle in circles() if len(circle) > MAX_FILES]
    assert not large, large


def test_every_circle_has_a_reason() -> None:
    found = {tuple(sorted(circle)) for circle in circles()}
    assert found == set(CIRCLES), "\n".join(map(str, sorted(found ^ set(CIRCLES))))
    assert all(len(reason.split()) > 3 for reason in CIRCLES.values())
