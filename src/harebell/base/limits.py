"""All limits that several packages share, with units and reasons.

A limit that one package owns is in the `limits.py` of that package. Names end in the unit. A limit
that can be configured has the same name in the configuration (`harebell.config`), whose default is
the value here.
"""

from __future__ import annotations

# --- frames and connections -----------------------------------------------------------------------
FRAME_MAX_BYTES = 131_072
"""Largest frame offered in connection.tune, header and end octet included."""
FRAME_MIN_BYTES = 4_096
"""Smallest frame-max that a client may choose (AMQP 0-9-1 4.2.3, frame-min-size)."""
FRAME_OVERHEAD_BYTES = 8
"""Bytes of a frame that are not payload: type, channel, size, end."""
HANDSHAKE_FRAME_BYTES = 8_192
"""Largest frame accepted before connection.open, and in 0-10 the longest control, whatever number
of frames it has. RabbitMQ 4.1 has the same limit before connection.tune-ok; tokens are long."""
CHANNEL_MAX = 2_047
"""Most channels per connection offered in connection.tune."""
CLOSE_TIMEOUT_SECONDS = 10.0
"""Time to wait for close-ok after sending connection.close."""
PATTERN_BYTES = 4_096
"""Longest regular expression for names."""
PATTERN_NESTING = 100
"""Most groups in each other in one."""
PATTERN_RANGE_CHARACTERS = 65_536
"""Most characters of all its ranges together: `re` looks at each of them when it compiles."""
PATTERN_TESTS = 5_000
"""Tests of a single character or position in one search of a name (about 2 ms)."""
PATTERN_TESTS_TOGETHER = 10_000
"""Tests in the searches of one name for the patterns of all policies of a vhost. Policies of lower
priority whose patterns need more do not apply."""
PATTERN_CACHE_ENTRIES = 1_024
"""Patterns that are compiled once for all permissions and policies that have them, each of which
keeps its own."""
PATTERN_NAMES = 4
"""Last names of which a pattern that is simulated as an automaton knows whether it is found."""
PATTERN_LITERAL_CHARACTERS = 16
"""Longest text inside a name by which the patterns that need it are found."""
PATTERN_LITERALS = 16
"""Most texts of a pattern, and most choices of one, by which it may be found."""
PATTERN_STEPS = 1_000
"""States of a pattern that is simulated as an automaton; larger ones are refused."""
PATTERN_LINEAR_STATES = 500
"""States of a pattern that is searched without backtracking."""
PATTERN_LINEAR_TRANSITIONS = 4_096
"""Transitions of such a pattern that are remembered."""
PATTERN_LINEAR_TESTS = 20_000
"""Tests of a single character in one search with it; each takes under a microsecond."""
ERROR_TEXT_CHARACTERS = 4_000
"""Longest text of an error, which may repeat what a peer has sent."""
NAME_BYTES = 255
"""Longest exchange, queue or routing-key name (a shortstr)."""
SEGMENT_FRAME_BYTES = 65_535
"""Largest frame offered in AMQP 0-10, whose frame size has two bytes."""
TABLE_DEPTH = 32
"""Deepest nesting of tables and arrays inside a field table."""

# --- messages -------------------------------------------------------------------------------------
BODY_HARD_MAX_BYTES = 536_870_912
"""A content header that announces more than this closes the connection (512 MiB)."""

# --- memory and back-pressure ---------------------------------------------------------------------
READ_BUFFER_BYTES = 262_144
"""Size of the one buffer for reading all connections."""
MEMORY_LOW_SHARE = 0.9
"""Publishers are unblocked when messages fall to this part of what the watermark leaves them."""
MESSAGE_OVERHEAD_BYTES = 192
"""Memory that is counted for a queued message besides its body and properties."""
HELD_AGAIN_BYTES = 24
"""Memory that is counted for each further queue with a message that is in memory."""
SHARED_BODY_BYTES = 4096
"""Size from which a body that several messages share is counted once."""
TIMER_AGAIN_MS = 1_000
"""Until a timer is called again whose function has raised."""
TRANSACTION_SLICE = 16
"""Changes and publishes of a transaction in one slice."""
QUERY_TEXT_BYTES = 255
"""Longest text in a report, but for the error."""
QUERY_ERROR_CHARACTERS = 2_000
"""Characters of an error that are kept."""
QUERY_SOURCES = 64
"""Most queues that a report names."""

# --- the server -----------------------------------------------------------------------------------
WORK_LOOK_UNITS = 16
"""Units after which the estimate is compared with the clock."""
WORK_FRAME_UNITS = 2
"""Work units of an ordinary frame, or a whole publish to one queue."""
TICK_LATE_SECONDS = 0.5
"""Delay of a tick from which the process is known to have been suspended."""
HEAP_KEEP_BYTES = 16_777_216
"""Freed memory at the top of the heap up to which it is kept (16 MiB)."""
HEAP_MAP_BYTES = 16_778_240
"""Size from which a buffer is mapped by itself and unmapped when it is freed.

A body of 16 MiB is not: its pages would fault anew for each message. The work area of scrypt, which
a login needs once, has 2 KiB more than that and is.
"""

# --- the store ------------------------------------------------------------------------------------
STREAM_SEGMENT_BYTES = 67_108_864
"""The same for a stream (64 MiB)."""
SYNC_TOGETHER_FILES = 8
"""Number of files from which a commit syncs the whole file system, if the platform can."""
DURABILITY_INTERVAL_MAX_MS = 60_000
"""Longest interval between syncs: a minute."""

# --- leases ---------------------------------------------------------------------------------------
LEASE_GROUP_KEPT_MS = 90 * 86_400_000
"""Time after which a group without claims and holder is deleted: ninety days."""
ERAS_KEPT = 128
"""Most eras that a log or a lease group remembers; the oldest are forgotten first."""
ERAS_OF_OFFSET = 16
"""Most eras that an offset of Spark has: the last ones before it."""
LEASE_CLAIM_MESSAGES = 1_000_000
"""Most messages of one claim."""
LEASE_TIMEOUT_MAX_MS = 2_592_000_000
"""Longest timeout of a claim: thirty days."""

# --- dead letters --------------------------------------------------------------------------------
CARRIED_DELIVERIES = 255
"""Most failed deliveries that a dead letter takes along: its record has one byte for them."""

# --- staged publishing, publishers ----------------------------------------------------------------
STAGE_PIECE_BYTES = 67_108_864
"""Largest piece of a staged batch (64 MiB)."""
