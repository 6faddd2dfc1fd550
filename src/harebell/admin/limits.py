"""Limits of commands and their rows, with units and reasons."""

from __future__ import annotations

# --- memory and back-pressure ---------------------------------------------------------------------
BROWSE_ROW_UNITS = 15
"""Work units of showing a message that is browsed, beside those of its body."""
BROWSE_SLICE_UNITS = 400
"""Work units of one slice of such a command."""
BROWSE_PAYLOAD_BYTES = 1_048_576
"""Most octets of a body that such a command shows (1 MiB)."""
RETRY_BODY_BYTES = 262_144
"""Most bytes of a body that retried messages get: the record of the job has it (256 KiB)."""
DISCARD_REASON_CHARACTERS = 1_000
"""Longest reason of a discard: each message gets it."""
DEAD_LETTER_GROUPS = 500
"""Most groups of dead letters in an answer; what is in others is counted."""
DEAD_LETTER_LOOKS = 200_000
"""Messages that a command looks at for groups of dead letters; each queue has its share."""
DEAD_LETTER_MS = 8_000
"""How long such a command looks at most: the web interface waits 20 seconds."""
DEAD_LETTER_QUEUES = 1_000
"""Queues that such a command looks at."""
DEAD_LETTER_PROBES = 20
"""Messages at the head of a queue; one without dead letters among them is passed by."""
DEAD_LETTER_UNITS = 16
"""Work units of finding the group of a message with headers, beside reading it."""
DEAD_LETTER_TIMES = 48
"""Most intervals in which the dead letters of a group are counted; beyond, they are widened."""
WAITING_SHOWN = 1_000
"""Most messages that wait until a time which one command shows."""
HOLDER_LOOKS = 500
"""Deliveries, or ranges of leases, that one slice of a search for a message looks at."""
REHEARSAL_SLICE_QUEUES = 50
"""Queues that `harebell explain` looks at in one slice of work."""
REHEARSAL_SHOWN_QUEUES = 100
"""Most queues that it shows."""
POLICY_PREVIEW_ROWS = 100
"""Most queues and exchanges that the preview of a policy names."""
SEARCH_NAMES = 500_000
"""Most names that a search looks at: a second of work, in slices; routing keys are the last."""
SEARCH_SLICE_NAMES = 16
"""Names of one slice of it."""
SEARCH_ROWS = 8
"""Most matches of each kind."""
SEARCH_TEXT_BYTES = 255
"""Longest text that is searched."""
SUPER_STREAM_PARTITIONS = 256
"""Most partitions of a super stream."""

AUDIT_USER_LINES = 300
"""Most lines of the audit trail in a minute for what a user is refused, and again for what the user
does over AMQP or without the tag administrator."""
AUDIT_USER_BYTES = 4 * 1_048_576
"""Most bytes of each of these in a day: a sixteenth of what is kept by default."""
AUDIT_SEARCHES = 2
"""Most searches of a user in the audit trail at the same time."""
AUDIT_ROWS = 1_000
"""Most lines of one answer of the audit trail."""
AUDIT_BLOCK_UNITS = 600
"""Work units of searching a block of the audit trail."""
AUDIT_ITEMS = 50
"""Most members of a list or table in a line of the audit trail."""
AUDIT_TEXT_CHARACTERS = 1_000
"""Longest text in a line of the audit trail."""

# --- the server -----------------------------------------------------------------------------------
USER_NAME_BYTES = 255
"""Longest name of a new user."""
VHOST_NAME_BYTES = 255
"""Longest name of a new vhost: connection.open sends it as a short string."""
PARAMETER_NAME_BYTES = 255
"""Longest name of a parameter, and of a component."""
POLICY_NAME_BYTES = 255
"""Longest name of a policy."""

# --- HTTP API -------------------------------------------------------------------------------------
HTTP_CHUNK_BYTES = 65_536
"""Size of the pieces in which an answer is compressed and sent."""
HTTP_GET_MESSAGES = 10_000
"""Most messages of one answer to `get`."""
HTTP_GET_BYTES = 33_554_432
"""Size of their bodies and properties above which the answer has no more (32 MiB)."""

# --- SQL ------------------------------------------------------------------------------------------
SCHEMA_REQUESTS = 16
"""Schemas that are read from a registry at a time."""
SCHEMA_USER_REQUESTS = 4
"""Those of one user."""
SCHEMA_BYTES = 262_144
"""Longest schema that is taken, with the schemas that it refers to (256 KiB)."""
SCHEMA_REFERENCES = 32
"""Most schemas that one refers to, those of its references included."""
SCHEMA_REFERENCE_DEPTH = 8
"""Most references one behind the other."""
SCHEMAS_KEPT = 32
"""Schemas that are kept: 8 MiB at most."""
SQL_STATEMENT_BYTES = 20_000
"""Longest question in SQL of the web interface."""
SQL_ROWS = 1_000
"""Most rows of its answer."""
SQL_QUESTIONS = 4
"""Questions that are answered at a time, each in a process of its own."""
SQL_USER_QUESTIONS = 1
"""Those of one user."""
SQL_SECONDS = 15.0
"""Time that a question has, in seconds of the clock and of the processor."""
SQL_ANSWER_BYTES = 524_288
"""Longest answer, as JSON."""
SQL_QUESTION_MEMORY_BYTES = 256 * 1_048_576
"""Most memory that its engine has."""
SQL_PROCESS_BYTES = 1_024 * 1_048_576
"""Most memory that its process has."""

# --- statistics -----------------------------------------------------------------------------------
STATISTICS_SECONDS = 5
"""Interval of the samples of counters, as RabbitMQ's collect_statistics_interval."""
STUCK_SECONDS = 60
"""Time from which a channel that holds deliveries and does nothing is said to be stuck."""
TREND_SECONDS = 600
"""Time over which the trend of a queue is taken: for as long as samples of queues are kept."""

# --- the store ------------------------------------------------------------------------------------
LOG_RECENT_LINES = 1_000
"""Log lines that are kept in memory, for administrators who look at the log."""

# --- backups --------------------------------------------------------------------------------------
BACKUP_RATE_BYTES = 52_428_800
"""Default bytes per second that a backup copies (50 MiB)."""
BACKUP_RATE_MAX_BYTES = 2**40
"""Largest such rate."""
BACKUP_KEEP_MAX = 10_000
"""Most backups that a target is told to keep."""
