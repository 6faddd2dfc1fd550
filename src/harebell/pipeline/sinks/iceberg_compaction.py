"""Merge the small files of an Iceberg table, a bounded number of bytes at a time.

    small files of one partition --read--> rows --written--> fewer files --one commit--> replaced

Each group is a commit of its own, which fails if another writer has removed one of its files. The
rows of earlier snapshots stay readable until these are expired.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from harebell.pipeline.limits import LAKE_COMPACTION_BYTES, LAKE_SMALL_FILE_BYTES

_ABOUT = {"harebell.compaction": "true"}


def compact(table: Any) -> tuple[int, int]:
    """Merge small files; return how many files were replaced, and by how many."""
    removed = added = 0
    for files in list(_groups(table)):
        removed += len(files)
        added += _merged(table, files)
    return removed, added


def _groups(table: Any) -> Iterator[list[Any]]:
    """Yield small files of one partition each, as tasks of a scan."""
    partitions: dict[str, list[Any]] = {}
    for task in table.scan().plan_files():
        if task.file.file_size_in_bytes < LAKE_SMALL_FILE_BYTES and not task.delete_files:
            name = f"{task.file.spec_id} {task.file.partition}"
            partitions.setdefault(name, []).append(task)
    for files in partitions.values():
        group: list[Any] = []
        size = 0
        for task in files:
            if group and size + task.file.file_size_in_bytes > LAKE_COMPACTION_BYTES:
                # A file alone would only be written again.
                if len(group) > 1:
                    yield group
                group, size = [], 0
            group.append(task)
            size += task.file.file_size_in_bytes
        if len(group) > 1:
            yield group


def _merged(table: Any, files: list[Any]) -> int:
    """Replace files in one commit; return the number of new ones."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files

    # Each group is a commit, after which the metadata is an older one.
    table.refresh()
    metadata, io = table.metadata, table.io
    rows = ArrowScan(metadata, io, table.schema(), AlwaysTrue()).to_table(files)
    # pyiceberg has no other way to write files that replace others.
    written = list(_dataframe_to_data_files(table_metadata=metadata, df=rows, io=io))
    try:
        with (
            table.transaction() as changes,
            changes.update_snapshot(snapshot_properties=_ABOUT).overwrite() as replacing,
        ):
            for task in files:
                replacing.delete_data_file(task.file)
            for data_file in written:
                replacing.append_data_file(data_file)
    except BaseException:
        _remove_uncommitted(table, [data_file.file_path for data_file in written])
        raise
    return len(written)


def _remove_uncommitted(table: Any, paths: list[str]) -> None:
    """Remove files that no snapshot has, if that is certain."""
    with contextlib.suppress(Exception):
        table.refresh()
        if not set(paths) & {task.file.file_path for task in table.scan().plan_files()}:
            for path in paths:
                table.io.delete(path)
