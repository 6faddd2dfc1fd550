"""Limits of the byte work, with units and reasons."""

from __future__ import annotations

FRAME_FUDGE_BYTES = 8
"""Tolerance over frame-max for clients that do not count the eight bytes of the frame."""

# --- the server -----------------------------------------------------------------------------------
LONG_BODY_BYTES = 1_048_576
"""Body size from which frames are encoded when the socket takes them (1 MiB)."""

# --- Spark ----------------------------------------------------------------------------------------
COLUMN_BYTES = 2_000_000_000
"""Most bytes in one column of a record batch: Arrow counts them with 31 bits."""

# --- the store ------------------------------------------------------------------------------------
LARGE_RECORD_BYTES = 4_194_304
"""Body size from which a durable log stores a message in its own segment, without copying."""
