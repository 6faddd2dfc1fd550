"""No value of a peer is looked for in a range one number after the other.

Python compares an int itself with the ends of a range. A value of a subclass of int, which tables
of AMQP have, is compared with every number of it, and one declaration stops the broker for minutes.
"""

from __future__ import annotations

import ast

import pytest

from tests.tidy.sources import SOURCE, python_files, tree


def _is_range(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "range"


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign) and _is_range(node.value):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) and _is_range(node.value) else []


def searched_ranges(module: ast.Module) -> list[int]:
    """The lines where something is looked for in a range."""
    nodes = list(ast.walk(module))
    ranges = {ast.unparse(target) for node in nodes for target in _targets(node)}
    return [
        node.lineno
        for node in nodes
        if isinstance(node, ast.Compare)
        for operator, right in zip(node.ops, node.comparators, strict=True)
        if isinstance(operator, ast.In | ast.NotIn)
        if _is_range(right) or ast.unparse(right) in ranges
    ]


def test_no_value_is_looked_for_in_a_range() -> None:
    found = [
        f"{path}:{line}"
        for path in python_files()
        if str(path).startswith(SOURCE)
        for line in searched_ranges(tree(path))
    ]
    assert found == [], "compare with both ends instead"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("x in range(9)", [1]),
        ("_A = range(9)\nx not in _A", [2]),
        ("_A: range = range(9)\nx in _A", [2]),
        ("for x in range(9): x in (1, 2)", []),
        ("0 <= x < 9", []),
    ],
)
def test_a_search_in_a_range_is_found(code: str, lines: list[int]) -> None:
    assert searched_ranges(ast.parse(code)) == lines
