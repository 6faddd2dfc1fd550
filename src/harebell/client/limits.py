"""Limits of the client, with units and reasons."""

from __future__ import annotations

CLIENT_PREFETCH = 100
"""Default prefetch of a consumer of the client."""
CLIENT_BUFFER_MESSAGES = 10_000
"""Messages buffered for slow consumers above which the client stops reading."""
REPLY_TIMEOUT_SECONDS = 10.0
"""Default timeout of a client for the reply to a request."""
CLOSE_BLOCKED_SECONDS = 1.0
"""Time to wait for close-ok of a broker that has blocked the client and does not read."""
CLIENT_WRITE_BYTES = 65_536
"""Output that the blocking client gathers before it writes on its own."""
CLIENT_CHUNK_BYTES = 262_144
"""Bytes of a large content that the client encodes and writes at once; they stay in the cache."""
CLIENT_GATHER_BYTES = 65_536
"""Contents of at least this size are gathered from their frames into one buffer..."""
CLIENT_GATHER_MAX = 16_777_216
"""...and of at most this size: for larger ones no memory is reserved before they arrive."""
ROWS_PER_PUBLISH_BYTES = 1_048_576
"""Bytes of rows that are encoded at once."""
BULK_READS_AHEAD = 4
"""Bulk reads that the client has in progress at a time."""
PUBLISH_WINDOW = 10_000
"""Default maximum of unconfirmed publishes of `publish_many`."""
RECOVERY_FIRST_SECONDS = 0.5
"""Longest delay before the first attempt to recover a connection."""
RECOVERY_MAX_SECONDS = 30.0
"""Longest delay between attempts to recover a connection."""
SESSION_WINDOW = 65_536
"""Frames that the client lets a broker of AMQP 1.0 send before it grants more."""
UNLIMITED_CREDIT = 2_000
"""Messages that a broker of AMQP 1.0 may send ahead to a consumer without a prefetch limit."""
IDLE_SECONDS = 60
"""Heartbeat interval that the client asks a broker of AMQP 1.0 for, unless the address has one."""
LINKS_FOR_ROUTES = 48
"""Links of a session for publishes by exchange and key (brokers allow 64 and more for all)."""
