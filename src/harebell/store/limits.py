"""Limits of the message log and its files, with units and reasons."""

from __future__ import annotations

# --- memory and back-pressure ---------------------------------------------------------------------
SHARED_BY_QUEUES = 8
"""Number of queues with a message from which transient queues keep it in memory."""

# --- the store ------------------------------------------------------------------------------------
SEGMENT_BYTES = 8_388_608
"""Size from which the log of a queue continues in a new segment (8 MiB)."""
WRITE_EARLY_BYTES = 1_572_864
"""Bytes that a log gathers before it writes without waiting for the next commit (1.5 MiB)."""
TRANSIENT_SEGMENT_BYTES = 1_048_576
"""Size from which a transient log continues in a new segment (1 MiB)."""
TRANSIENT_FIRST_BYTES = 65_536
"""Size from which a mostly settled transient segment is followed by a new one."""
TRANSIENT_RESET_BYTES = 16_384
"""Size from which a completely settled transient segment is discarded."""
TRANSIENT_SLICE_BYTES = 524_288
"""Bytes of a transient segment with a large message that are written at a time (512 KiB)."""
TRANSIENT_SLICE_UNITS = 400
"""Work units of such a slice: the copy into the page cache."""
TRANSIENT_MEMORY_BYTES = 16_777_216
"""Memory of a transient log before it writes full segments to disk (16 MiB)."""
TRANSIENT_SPILL_BYTES = 32_768
"""Smallest segment that goes to disk when the memory of the broker is short (32 KiB)."""
SEEN_AHEAD = 65_536
"""Positions ahead of the deliveries at which a log stores its mark of delivered messages."""
READ_FIRST_BYTES = 16_384
"""The first read of a log from disk."""
READ_MAX_BYTES = 262_144
"""Size of one read when a log is read in order."""
READ_HELD_BYTES = 67_108_864
"""Most bytes of blocks in memory, for all logs; a single larger message is allowed."""
READ_PLACES = 7
"""Places of a log that are read in order at the same time, beside the last one."""
OFFSETS_BYTES = 16_777_216
"""Most memory for the offsets of full segments, of all logs together (16 MiB): those loaded first
are left out of memory."""
OFFSETS_FULL_BYTES = 1_048_576
"""Most memory for those among them that no reader has loaded: of segments that got full (1 MiB)."""
OFFSETS_MIN_MESSAGES = 256
"""Number of messages from which a segment has an index file of its own: the offsets of fewer take
less room than a file."""
SCAN_WINDOW_BYTES = 4_194_304
"""Size of one read when a log is opened."""
AHEAD_FROM_BYTES = 65_536
"""Size of a segment from which space is written ahead of its records."""
AHEAD_MAX_BYTES = 1_048_576
"""Most space written ahead at a time: as much as the segment has, up to this (1 MiB)."""
AHEAD_PIECE_BYTES = 65_536
"""Bytes of it that are made in memory and written again and again."""
AHEAD_WRITE_BYTES = 262_144
"""Size of a commit for one log above which no space is written ahead: its sync is rare."""
REDO_KEEP_BYTES = 1_048_576
"""Size above which the redo file is truncated at once after a transaction."""
DURABILITY_INTERVAL_MS = 500
"""Default sync interval with durability "interval"."""
COMPRESS_MIN_BYTES = 4_096
"""The size from which a row of the log is compressed: PostgreSQL stores it in parts of 2 KB."""
COMPRESS_SHARE = 0.8
"""The largest share of its size that a row may have when it is compressed."""
COMPRESS_SKIPPED_ROWS = 15
"""Rows that are not compressed after one that did not get smaller."""
OPEN_FILES = 256
"""Segments kept open for reading, and as many for writing."""

# --- staged publishing, publishers ----------------------------------------------------------------
STAGE_UNSYNCED_SEGMENTS = 16
"""Segments of a log that may have rows which are written and not synced: one later commit opens and
syncs all of them."""

# --- backups --------------------------------------------------------------------------------------
CUT_LOGS = 256
"""Logs whose lengths a backup notes in one turn."""
BACKUP_STORES = 99
"""Stores in a backup: their numbers have two digits, and a broker has fewer."""
BACKUP_LINES_PER_PAUSE = 256
"""Lines of a manifest after which the thread of a backup pauses, for the event loop."""
