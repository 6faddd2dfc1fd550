"""A limit has one value: one package owns it, whose `limits.py` alone binds its name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from tests.limits import packages
from tests.tidy.sources import SOURCE, python_files, tree

MODULES = [path for path in python_files() if str(path).startswith(SOURCE)]
LIMITS = [Path(SOURCE) / name / "limits.py" for name in packages()]


def _bound(path: Path, *, numbers: bool = False) -> list[str]:
    """The constants that a module binds, or those of them that are numbers, as often as it does."""
    found = []
    for node in tree(path).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        value = node.value.value if isinstance(node.value, ast.Constant) else node.value
        if numbers and not isinstance(value, int | float | ast.BinOp):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        found += [each.id for each in targets if isinstance(each, ast.Name) and each.id.isupper()]
    return found


def test_no_constant_is_bound_twice_in_a_module() -> None:
    twice = [
        f"{path}: {name}"
        for path in MODULES
        for name, count in Counter(_bound(path)).items()
        if count > 1
    ]
    assert twice == []


def test_one_package_owns_a_limit() -> None:
    owners = Counter(name for path in LIMITS for name in _bound(path))
    assert [name for name, count in owners.items() if count > 1] == []


def test_no_limit_has_another_value_in_another_module() -> None:
    known = {name for path in LIMITS for name in _bound(path)}
    again = [
        f"{path}: {name}"
        for path in MODULES
        if path not in LIMITS
        for name in known.intersection(_bound(path, numbers=True))
    ]
    assert again == []


def test_a_limit_of_one_package_is_in_that_package() -> None:
    """`base` has what packages share that cannot import from each other."""
    users: dict[str, set[str]] = {name: set() for name in _bound(Path(SOURCE) / "base/limits.py")}
    for path in MODULES:
        package = path.relative_to(SOURCE).parts[0]
        for name in re.findall(r"\b[A-Z][A-Z0-9_]+\b", path.read_text()):
            if name in users and path.name != "limits.py":
                users[name].add(package)
    misplaced = {name: found for name, found in users.items() if len(found - {"base"}) == 1}
    assert {name for name, found in misplaced.items() if "base" not in found} == set()
