"""Defaults and ranges of keys of the configuration that no other room reads."""

from __future__ import annotations

# --- frames and connections -----------------------------------------------------------------------
UNAUTHENTICATED_CONNECTIONS = 4_096
"""Most connections that are not authenticated yet; more are refused."""
UNAUTHENTICATED_PER_ADDRESS = 1_024
"""Most of these connections from one address, which many clients may share."""

# --- memory and back-pressure ---------------------------------------------------------------------
MEMORY_HIGH_WATERMARK = 0.4
"""Part of the machine's memory: publishers are blocked when the process uses more."""

# --- the server -----------------------------------------------------------------------------------
CONSUMER_TIMEOUT_MS = 1_800_000
"""Time that a delivery may be unacknowledged before its channel is closed."""
CONSUMER_TIMEOUT_MAX_MS = 315_360_000_000
"""Largest value of `consumer_timeout`: ten years."""
SHUTDOWN_SECONDS = 3.0
"""Default time that clients have to read the remaining output when the broker stops."""

# --- HTTP API -------------------------------------------------------------------------------------
HTTP_BODY_BYTES = 20_000_000
"""Default of the largest request body, as in RabbitMQ."""
HTTP_BODY_MAX_BYTES = 2_147_483_647
"""Largest value of `management_body_max_bytes`."""
HTTP_REQUEST_SECONDS = 10.0
"""Default of the time for a request until its login: TLS handshake, head and body."""
HTTP_IDLE_SECONDS = 60.0
"""Default of the time without a request, or without a byte of one, after the login."""
HTTP_CORS_SECONDS = 1_800
"""Default of the time that browsers may keep the answer of a preflight request."""

# --- statistics -----------------------------------------------------------------------------------
STATISTICS_MIN_MS = 1_000
"""Shortest interval of samples that can be configured."""
STATISTICS_MAX_MS = 600_000
"""Longest interval of samples that can be configured (10 minutes)."""
STATISTICS_RING_SAMPLES = 10_000
"""Most samples of one queue, connection and so on that a retention policy may keep."""

# --- the store ------------------------------------------------------------------------------------
DISK_FREE_LIMIT_BYTES = 268_435_456
"""Free space below which publishers are blocked (256 MiB)."""
STORAGE_LEASE_MS = 3_000
"""After so many milliseconds of silence, another broker takes over a store in PostgreSQL."""
STORAGE_LEASE_MIN_MS = 500
"""The shortest lease of a store: a commit has to fit in a quarter of it."""
STORAGE_LEASE_MAX_MS = 300_000
"""The longest lease of a store: five minutes."""
SEGMENT_MIN_BYTES = 65_536
"""Smallest segment that can be configured."""
SEGMENT_MAX_BYTES = 1_073_741_824
"""Largest segment that can be configured (1 GiB)."""

# --- backups --------------------------------------------------------------------------------------
BACKUP_INTERVAL_MAX_SECONDS = 31_622_400
"""Longest time between two backups of the configuration: a year."""
BACKUP_TIMEOUT_SECONDS = 1_800
"""Default time that the target of a backup may not answer: a sync of much data takes long."""
BACKUP_TIMEOUT_MAX_SECONDS = 86_400
"""Largest value of `backup_timeout_seconds`: a day."""
