"""Limits of the byte work, with units and reasons."""

from __future__ import annotations

FRAME_FUDGE_BYTES = 8
"""Tolerance over frame-max for clients that do not count the eight bytes of the frame."""
PASSAGE_MESSAGES = 16
"""Fewest messages that pass without becoming objects, for another passage in the same read."""

# --- AMQP 1.0 -------------------------------------------------------------------------------------
NESTING = 32
"""Deepest nesting of lists, maps, arrays and described values in each other, in levels."""
COMPOUND_BYTES = 163_840
"""Longest list, map or array that is decoded (160 KiB): more than the headers of other versions in
their frames. An octet of it may become 64 in memory, and take a fifth of a microsecond.
Bodies are passed on without being decoded, and may be longer."""
MESSAGE_SECTIONS = 4_096
"""Most sections of a message: those of a body may be repeated, and take only five octets each."""
PERFORMATIVE_VALUES = 16_384
"""Most values in a performative, nested ones included: reading and answering them takes time."""
VOID_ARRAY_ELEMENTS = 64
"""Most elements of an array whose elements take no octets: an array of arrays may have one in nine
octets."""
PLAIN_LIST_BYTES = 1_024
"""Longest property list, or sections before a body, that is converted between basic and 1.0 on the
stack; longer ones are rare."""

# --- the server -----------------------------------------------------------------------------------
LONG_BODY_BYTES = 1_048_576
"""Body size from which frames are encoded when the socket takes them (1 MiB)."""

# --- Spark ----------------------------------------------------------------------------------------
COLUMN_BYTES = 2_000_000_000
"""Most bytes in one column of a record batch: Arrow counts them with 31 bits."""

# --- the store ------------------------------------------------------------------------------------
LARGE_RECORD_BYTES = 4_194_304
"""Body size from which a durable log stores a message in its own segment, without copying."""
