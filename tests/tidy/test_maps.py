"""A package whose docstring lists its files lists all of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.tidy.sources import SOURCE

FILE = re.compile(r"\b\w+\.py\b")
MIN_FILES = 3
"""A docstring with fewer names of files is no list."""


def test_a_package_that_lists_its_files_lists_all_of_them() -> None:
    lists = 0
    for path in sorted(Path(SOURCE).rglob("__init__.py")):
        listed = set(FILE.findall(ast.get_docstring(ast.parse(path.read_text())) or ""))
        if len(listed) < MIN_FILES:
            continue
        lists += 1
        there = {each.name for each in path.parent.glob("*.py")} - {"__init__.py"}
        missing = sorted(there - listed)
        assert not missing, f"{path}: say in the docstring what {', '.join(missing)} has"
        below = {each.name for each in path.parent.rglob("*.py")}
        gone = sorted(listed - below)
        assert not gone, f"{path}: the docstring has files that are not there: {', '.join(gone)}"
    assert lists
