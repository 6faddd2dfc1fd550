"""Names in the package say what they hold or do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.sources import SOURCE, python_files, tree

VAGUE_PARTS = {
    "folder": "directory",
    "folders": "directories",
    "least": "min, or a minimum of what",
    "most": "max, or a limit of what",
    "nobody": "what is missing, such as no_queue",
    "tell": "publish, send, print or report",
    "telling": "what it does, such as _fencing_explained",
    "told": "what was sent or shown, such as reported",
    "whoever": "the role, such as consumer",
}
"""Words that are no part of a name, and what to write."""

COMPARISONS = (
    *("AT_LEAST_ONCE", "AT_MOST_ONCE", "_at_least", "_at_least_once", "_least_urgent"),
    *("pick_least_busy", "least_rows", "most_seconds", "_least_other"),
)
"""Names where least and most are a delivery guarantee, a comparison, or a public option."""

VAGUE_CLASSES = {
    "Ahead": "what it does ahead of time, such as ClaimAhead",
    "Held": "what is held, such as OutputBarrier",
    "Link": "AsyncTransport, BlockingTransport or BrokerConnection",
    "Part": "QueueReader or StagePart",
    "Place": "OffsetLimit, or what kind of place it is",
    "Point": "QueueOffset",
    "Range": "OffsetRange, or what it is a range of",
    "Reader": "what it reads, such as FrameReader",
    "State": "of what, such as PipelineState",
    "Taken": "what was taken, such as QueueSnapshot",
}
"""Class names that may mean several things, and what to write."""

NAMED_CLASSES = ("client", "front", "kernels", "pipeline", "spark", "wire")
"""The packages that the names of classes are checked in."""

WITH_OCTETS = ("client", "wire", "admin/commands/stages.py")
"""Where `octets` is a name: on the wire, and in an answer that users' programs read."""


def names(path: Path) -> Iterator[tuple[int, str]]:
    """The line and name of each function, parameter, variable and attribute of a file."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self":
            yield node.lineno, node.attr


def advice(path: Path, name: str) -> str:
    """What to write in place of a name; empty when the name may stay."""
    if name == "octets" and not str(path).removeprefix(SOURCE).startswith(WITH_OCTETS):
        return "byte_count for a size, data for a content"
    parts = () if name in COMPARISONS else name.lower().split("_")
    return next((VAGUE_PARTS[part] for part in parts if part in VAGUE_PARTS), "")


def test_no_name_in_the_package_has_a_vague_word() -> None:
    vague = [
        f"{path}:{line} {name}: write {better}"
        for path in python_files()
        if str(path).startswith(SOURCE)
        for line, name in names(path)
        if (better := advice(path, name))
    ]
    assert not vague, "\n".join(vague)


def test_no_class_has_a_name_that_may_mean_anything() -> None:
    vague = [
        f"{path}:{node.lineno} {node.name}: write {VAGUE_CLASSES[node.name]}"
        for path in python_files()
        if str(path).startswith(tuple(f"{SOURCE}{package}/" for package in NAMED_CLASSES))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and node.name in VAGUE_CLASSES
    ]
    assert not vague, "\n".join(vague)
