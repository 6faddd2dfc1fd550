"""Names of modules and classes: one word for one thing, and no old word comes back."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from tests.tidy.sources import SOURCE, python_files, text_of, tree

REPLACED_MODULES = {
    "client/core010": "client/protocol/v010/core",
    "kernels/foresight": "kernels/prefetch",
    "kernels/positions": "kernels/settled_bitmap",
    "pipeline/lakes": "pipeline/sql/tables",
    "pipeline/looking": "pipeline/builtin/queue_reports",
    "pipeline/run/lags": "spark/lag",
    "pipeline/shipped": "pipeline/builtin/builtin_pipelines",
    "pipeline/taking": "pipeline/sql/queue_snapshot",
    "spark/aim": "spark/writing/write_target",
    "spark/carried": "spark/runtime/connect_pickle",
    "spark/losses": "spark/reading/data_loss_policy",
    "spark/parts": "spark/reading/reader_factory",
    "spark/reading/naming": "spark/reading/queue_lookup",
    "spark/places": "spark/runtime/spark_home_cache",
}
"""Modules that had another name, and what they are called now."""

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
"""Class names that meant several things, and what to write."""

OLD_CLASSES = {
    "Blind": "BccMessage",
    "CreditedUnacked": "SizedUnacked",
    "Duplicates": "DedupCache",
    "Place": "RecordedQueue, ValueOrigin or what kind of place it is",
    "_Place": "what kind of place it is, such as RowExchange",
    "Run": "LeasedRange or PositionRange",
    "Stretch": "LogRange",
    "Taken": "ClaimedMessages, SettledDelivery or what was taken",
}
"""Class names of before, and what they are called now."""

OLD_NAMES = {
    "_told": "what was sent or shown, such as _reported",
    "_tell": "what is done, such as _write_collected",
    "_telling": "what it does, such as _fencing_explained",
    "told": "what it is, such as announced",
    "tell": "publish, send or write",
}
"""Names of variables and functions that say that somebody hears something."""

OLD_PARTS = {"folder": "directory", "folders": "directories"}
"""Words that are no part of a name, and what to write."""

OLD_PARTS_OF_SOURCE = OLD_PARTS | {
    "least": "min, or a minimum of what",
    "most": "max, or a limit of what",
    "nobody": "what is missing, such as no_queue",
    "tell": "publish, send, print or report",
    "told": "what was sent or shown, such as reported",
    "whoever": "the role, such as consumer",
}
"""The same for the package, where names are no sentences."""

OTHER_SENSE = (
    *("AT_LEAST_ONCE", "AT_MOST_ONCE", "_at_least", "_at_least_once", "_least_urgent"),
    *("pick_least_busy", "least_rows", "most_seconds", "_least_other"),
)
"""Names where they are delivery guarantees, comparisons, or a public option."""

SIZES = (
    *("admin", "auth", "base", "cli", "front", "kernels", "model", "pipeline", "server", "spark"),
    "store",
)
"""The packages where `octets` is no name: the specification's word is for the wire."""

ANSWERS = ("src/harebell/admin/commands/stages.py",)
"""Files with `octets` as a member of an answer, which users' programs read."""

ROOMS = ("client", "front", "kernels", "pipeline", "spark", "wire")
"""The packages that the names of classes are checked in."""


def test_no_module_has_an_old_name() -> None:
    here = {str(path.with_suffix("")).removeprefix(SOURCE) for path in python_files()}
    old = [f"{name}: call it {new}" for name, new in REPLACED_MODULES.items() if name in here]
    assert not old, "\n".join(old)


def test_the_new_names_of_modules_exist() -> None:
    here = {str(path.with_suffix("")).removeprefix(SOURCE) for path in python_files()}
    assert set(REPLACED_MODULES.values()) <= here


def test_no_class_has_a_name_that_may_mean_anything() -> None:
    vague = [
        f"{path}:{node.lineno} {node.name}: say {VAGUE_CLASSES[node.name]}"
        for path in python_files()
        if str(path).startswith(tuple(f"{SOURCE}{room}/" for room in ROOMS))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and node.name in VAGUE_CLASSES
    ]
    assert not vague, "\n".join(vague)


def test_no_class_has_an_old_name() -> None:
    old = [
        f"{path}:{node.lineno} {node.name}: call it {OLD_CLASSES[node.name]}"
        for path in python_files()
        if str(path).startswith(SOURCE)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and node.name in OLD_CLASSES
    ]
    assert not old, "\n".join(old)


def test_no_variable_or_function_is_told_something() -> None:
    old = [
        f"{path}:{line} {name}: say {OLD_NAMES[name]}"
        for path in python_files()
        if str(path).startswith(SOURCE)
        for line, name in bound_names(path)
        if name in OLD_NAMES
    ]
    assert not old, "\n".join(old)


def test_no_name_has_an_old_word_in_it() -> None:
    old = [
        f"{path}:{line} {name}: say {old_parts[part]}"
        for path in python_files()
        for old_parts in [OLD_PARTS_OF_SOURCE if str(path).startswith(SOURCE) else OLD_PARTS]
        if any(part in (text_of(path) or "").lower() for part in old_parts)
        for line, name in bound_names(path)
        for part in name.lower().split("_")
        if part in old_parts and name not in OTHER_SENSE
    ]
    assert not old, "\n".join(old)


def test_sizes_and_contents_are_bytes_and_not_octets() -> None:
    old = [
        f"{path}:{line} octets: byte_count for a size, data for a content"
        for path in python_files()
        if str(path).startswith(tuple(f"{SOURCE}{room}/" for room in SIZES))
        for line, name in bound_names(path)
        if name == "octets" and str(path) not in ANSWERS
    ]
    assert not old, "\n".join(old)


@functools.cache
def bound_names(path: Path) -> list[tuple[int, str]]:
    """The names of functions, parameters, variables and attributes of a file."""
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append((node.lineno, node.name))
        elif isinstance(node, ast.arg):
            found.append((node.lineno, node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append((node.lineno, node.id))
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self":
            found.append((node.lineno, node.attr))
    return found
