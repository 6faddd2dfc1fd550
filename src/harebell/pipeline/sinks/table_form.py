"""What the sinks `delta` and `iceberg` have in common: how their table is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MODES = ("append", "overwrite")
"""`append` adds the rows of a micro-batch; `overwrite` makes them the whole table."""


@dataclass(frozen=True)
class TableForm:
    """How a table is written.

    Args:
        partition_by: columns that the table is partitioned by.
        overwrite: whether a micro-batch replaces the rows of the table.
        merge_schema: whether columns may be added, or missing.
        compact_every: number of micro-batches after which small files are merged; 0 for never.
    """

    partition_by: tuple[str, ...] = ()
    overwrite: bool = False
    merge_schema: bool = False
    compact_every: int = 0


def form_of(options: Mapping[str, str], partition_by: tuple[str, ...]) -> TableForm:
    """Return the form for the options of a checked sink."""
    return TableForm(
        partition_by,
        overwrite=options.get("mode") == "overwrite",
        merge_schema=options.get("mergeSchema") == "true",
        compact_every=int(options.get("compactEvery", "0")),
    )
