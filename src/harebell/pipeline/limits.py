"""Limits of pipelines, with units and reasons."""

from __future__ import annotations

PIPELINE_FILE_BYTES = 1_048_576
"""Longest file that describes a pipeline."""
PIPELINE_NODES = 10_000
"""Most values in such a file, those repeated by anchors counted each time."""
PIPELINE_DEPTH = 20
"""Deepest nesting in it."""
PIPELINE_STOP_SECONDS = 60.0
"""Time that a pipeline may take to end its micro-batch when it is asked to stop."""
PIPELINE_POLL_SECONDS = 0.5
"""Interval at which a running pipeline checks its progress and writes its state."""
PIPELINE_SETTLE_SECONDS = 10.0
"""Time in which a broker must answer a pipeline that has ended."""
PIPELINE_SAME_SIGNAL_SECONDS = 0.2
"""A second signal within that time is the first one, sent twice."""
PIPELINE_BAD_ROWS = 100_000
"""Most bad rows of one micro-batch that are sent to a dead-letter exchange; more mean a wrong
schema, and stop the pipeline."""
LAKE_SMALL_FILE_BYTES = 64 * 1_048_576
"""Size below which a file of an Iceberg table is merged with others."""
LAKE_COMPACTION_BYTES = 128 * 1_048_576
"""Most bytes of such files that are merged at a time: they pass through memory."""
LAKE_SNAPSHOTS = 100
"""Newest snapshots of an Iceberg table that its sink keeps; at twice as many it expires others."""
LAKE_SNAPSHOT_SECONDS = 600.0
"""Age from which it expires others: a reader may still be at younger ones."""
LAKE_METADATA_FILES = 10
"""Earlier metadata files that a table keeps: each has all snapshots of its time."""
LAKE_METADATA_UNUSED_SECONDS = 3600.0
"""Age from which one that the table's log has no more is removed, by `harebell lake expire`."""
TAKEN_MESSAGES = 500_000
"""Most messages of a queue that a DELETE, MOVE or RETRY examines: it holds them meanwhile."""
TAKEN_BYTES = 536_870_912
"""Most bytes of bodies that it holds."""
SETTLED_MESSAGES = 10_000
"""Messages that it settles in one transaction."""
SQL_MEMORY_BYTES = 512 * 1_048_576
"""Most memory that the embedded engine of `harebell sql` takes for a query."""
SQL_THREADS = 2
"""Threads that it uses."""
SQL_BATCH_ROWS = 1_024
"""Rows of a result that are fetched from it at a time."""
