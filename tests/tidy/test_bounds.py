"""No tool that a test runs may keep the tests waiting for ever."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.tidy.sources import python_files, tree

DIRECTORIES = ("tests/compat", "tests/interop", "tests/packaging")
"""Where tests run the tools of others, which wait for peers of their own."""


def unbounded(module: ast.Module) -> list[int]:
    """The lines where a program is run without saying how long it may take."""
    return [
        node.lineno
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {f"subprocess.{name}" for name in ("run", "check_output")}
        and "timeout" not in {keyword.arg for keyword in node.keywords}
    ]


def in_directory(path: Path) -> bool:
    """Whether a file is in one of these directories."""
    return any(path.is_relative_to(directory) for directory in DIRECTORIES)


def test_every_tool_that_tests_of_other_programs_run_has_a_bound() -> None:
    found = [
        f"{path}:{line}"
        for path in python_files()
        if in_directory(path)
        for line in unbounded(tree(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("subprocess.run(['x'])", [1]),
        ("subprocess.run(['x'], timeout=SECONDS)", []),
        ("subprocess.check_output(['x'])", [1]),
    ],
    ids=["run", "a bound", "check_output"],
)
def test_a_call_without_a_bound_is_found(code: str, lines: list[int]) -> None:
    assert unbounded(ast.parse(code)) == lines
