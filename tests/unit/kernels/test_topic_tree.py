"""Patterns that mean the same have one form."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit.kernels.twins import twin, used

MODULES = [
    pytest.param(used("topic_tree"), id="used"),
    pytest.param(twin("topic_tree"), id="twin"),
]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", []),
        ("a.#.#.b.#", ["a", "#", "b", "#"]),
        ("#.*.#.*", ["*", "*", "#"]),
        ("#.*.a", ["*", "#", "a"]),
        ("a.*.#.*.b", ["a", "*", "*", "#", "b"]),
        ("..", ["", "", ""]),
    ],
)
def test_stars_come_before_the_one_hash_of_a_run(
    module: ModuleType, pattern: str, expected: list[str]
) -> None:
    assert module.canonical(pattern) == expected
