"""Names of modules and classes: one word for one thing, and no old word comes back."""

from __future__ import annotations

import ast

from tests.tidy.sources import SOURCE, python_files, tree

REPLACED_MODULES = {
    "client/core010": "client/protocol/core010",
    "kernels/foresight": "kernels/prefetch",
    "kernels/positions": "kernels/settled_bitmap",
    "pipeline/lakes": "pipeline/sql/tables",
    "pipeline/looking": "pipeline/builtin/queue_reports",
    "pipeline/shipped": "pipeline/builtin/builtin_pipelines",
    "pipeline/taking": "pipeline/sql/queue_snapshot",
    "spark/aim": "spark/writing/write_target",
    "spark/carried": "spark/runtime/connect_pickle",
    "spark/losses": "spark/reading/data_loss_policy",
    "spark/parts": "spark/reading/queue_reader",
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
