"""Errors are caught where they are understood; output and threads stay under control."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.tidy.reviewed import FUNNELS
from tests.tidy.sources import SOURCE, python_files, tree


def catches_everything(path: Path) -> list[int]:
    """The lines where a file catches every exception there can be."""
    found = []
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = "" if node.type is None else ast.unparse(node.type)
        # What is raised again was not swallowed: tidying up on the way out is allowed anywhere.
        raises = any(isinstance(child, ast.Raise) and child.exc is None for child in node.body)
        if caught in ("", "Exception", "BaseException") and not raises:
            found.append(node.lineno)
    return found


def test_only_the_funnels_catch_everything() -> None:
    wide = [
        f"{path}:{line}"
        for path in python_files()
        if str(path).startswith(SOURCE) and str(path) not in FUNNELS
        for line in catches_everything(path)
    ]
    assert not wide, "\n".join(wide)


def test_the_list_of_funnels_is_needed() -> None:
    for name in FUNNELS:
        assert catches_everything(Path(name)), f"{name} is no funnel any more"


def test_only_the_command_line_prints() -> None:
    printing = [
        f"{path}:{node.lineno}"
        for path in python_files()
        if str(path).startswith(SOURCE) and not str(path).startswith(SOURCE + "cli/")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    ]
    assert not printing, "\n".join(printing)


def test_no_thread_keeps_a_run_of_the_tests_from_ending() -> None:
    lasting = [
        f"{path}:{node.lineno}"
        for path in python_files()
        if str(path).startswith("tests/")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).removeprefix("threading.") == "Thread"
        and not any(
            each.arg == "daemon" and ast.unparse(each.value) == "True" for each in node.keywords
        )
    ]
    assert not lasting, "\n".join(lasting)


def test_a_test_asserts_the_state_that_it_waits_for() -> None:
    """`eventually` returns False when the time is over: alone on a line it cannot fail."""
    unasserted = [
        f"{path}:{node.lineno}"
        for path in python_files()
        if str(path).startswith("tests/")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "eventually"
        and len(node.value.args) == 1
    ]
    assert not unasserted, "\n".join(unasserted)
