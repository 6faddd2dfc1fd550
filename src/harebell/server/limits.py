"""Limits of sockets, files, memory and the log, with units and reasons."""

from __future__ import annotations

# --- memory and back-pressure ---------------------------------------------------------------------
SMALL_READ_BYTES = 16_384
"""Bytes of the read buffer that are used while frames may have to wait for another turn, and for a
connection that is not open yet."""
MEMORY_SPILL_SHARE = 0.8
"""Part of the watermark above which messages go to disk and freed memory goes to the system."""
MEMORY_READ_SECONDS = 0.2
"""Least time between two readings of the resident memory."""
MEMORY_TRIM_BYTES = 1_048_576
"""A call of malloc_trim that gives back less than this is not repeated soon (1 MiB)."""
MEMORY_TRIM_SECONDS = 16.0
"""Longest time between two calls that give back nothing; it doubles up to this."""

# --- the server -----------------------------------------------------------------------------------
WORK_USER_UNITS = 4_000
"""Work units, of about a microsecond each, of one user in one turn."""
WRITE_HIGH_BYTES = 65_536
"""Bytes waiting for a socket above which its consumers get no more deliveries."""
WRITE_LOW_BYTES = 16_384
"""Bytes below which they get deliveries again."""
WRITE_PIECE_BYTES = 1_048_576
"""Bytes of a longer output written to a socket at a time (1 MiB); the unsent rest is copied."""
WRITE_PIECES_PER_TURN = 2
"""Such pieces that one connection writes per turn."""
PACE_READ_BYTES = 65_536
"""Bytes of a read from a publisher that is slowed down for its consumers."""
PACE_SECONDS = 0.001
"""Time until the next such read: the shortest of a timer; consumers take about 1,000 messages."""
FULL_READS_PER_TURN = 4
"""Reads of a full buffer from one socket per turn."""
WRITE_TURN_SECONDS = 0.004
"""Time for writing to connections in one turn."""
METRICS_PORT = 15_692
"""Default port for metrics, as in RabbitMQ."""
TICK_SECONDS = 0.5
"""Interval of checks of heartbeats and deadlines."""
CONNECTIONS_PER_TURN = 1_000
"""Connections whose heartbeats and deadlines are checked in one turn (about 1 ms)."""
SHUTDOWN_QUIET_SECONDS = 0.3
"""Time that clients have to answer connection.close when they have read everything."""
SHUTDOWN_FIRST_LOOK_SECONDS = 0.001
"""Time until the first check for that, as most clients answer at once; it doubles each time."""
SHUTDOWN_LOOK_SECONDS = 0.02
"""Longest interval of these checks."""
STORE_END_SECONDS = 3.0
"""Time to write the last commits when the broker stops."""
COLLECT_YOUNG_OBJECTS = 5_000
"""New objects until a young garbage collection, of about 1 ms."""
COLLECT_MIDDLE_COLLECTIONS = 10
"""Young collections until a middle one, of 5 to 10 ms."""
COLLECT_OLD_COLLECTIONS = 100_000
"""Middle collections until a full one: minutes of busy turns, or more."""
HEAP_LOAD_BYTES = 67_108_864
"""The same as HEAP_KEEP_BYTES for a broker, which gives back what is free when its load has ended
(64 MiB): a few bodies of 16 MiB, whose pages would fault anew for each message."""
HEAP_TRIM_BYTES = 8_388_608
"""Memory that holds neither messages nor answers, from which the heap is trimmed (8 MiB)."""
ACCEPTS_PER_TURN = 8
"""Connections for TLS or HTTP that are accepted in a turn of the event loop; each takes 0.3 ms."""
TLS_HELLOS_PER_TURN = 2
"""TLS handshakes that begin in a turn, of each listener; each takes a signature of about 1 ms."""
ACCEPT_PAUSE_SECONDS = 1.0
"""Time without accepting connections after the system had no files or memory for more."""
BACKLOG_CONNECTIONS = 1_024
"""Connections that wait to be accepted."""
CONTROL_TIMEOUT_SECONDS = 30.0
"""Timeout of both sides of the control socket."""
CONTROL_COMMAND_SECONDS = 60.0
"""Time that the command line waits until a change is on disk."""

# --- HTTP API -------------------------------------------------------------------------------------
MANAGEMENT_PORT = 15_672
"""Default port of the HTTP API."""
HTTP_CONNECTIONS = 1_000
"""Default of the most connections of the HTTP API, and of the metrics."""
HTTP_FILES_SHARE = 4
"""They use at most one part in so many of the files that all connections may have."""

# --- harebell doctor ------------------------------------------------------------------------------
DOCTOR_SYNCS = 30
"""Syncs that `harebell doctor` measures."""
DOCTOR_SLOW_SYNC_MS = 20.0
"""Milliseconds of a sync above which it says so."""
DOCTOR_FILES_MIN = 512
"""Open files without which a broker can hardly work."""
DOCTOR_FILES_FEW = 4_096
"""Open files below which it says so."""
DOCTOR_MEMORY_BYTES = 268_435_456
"""Free memory below which it says so (256 MiB)."""
DOCTOR_FREE_BYTES = 268_435_456
"""Free space on disk below which it says so (256 MiB)."""
DOCTOR_CLOCK_SECONDS = 60.0
"""How far the clock may be behind the files of a broker."""

# --- the store ------------------------------------------------------------------------------------
PERFORM_MAX = 64
"""Most writes of a commit that are done without a Python thread."""
REMOVALS_MAX = 64
"""Settled segments that wait to be removed from which a commit removes as many before it begins."""
EXIT_DISK = 74
"""Exit code after a failed write or sync: EX_IOERR of sysexits.h."""
GATHER_SECONDS = 0.001
"""Longest time that a commit waits for messages that publishers are sending..."""
GATHER_SHARE = 0.5
"""... and this share of what the commit before took, if that is less..."""
GATHER_MANY = 8
"""... and fewer messages than this are expected."""
GATHER_BYTES = 524_288
"""A commit in PostgreSQL waits for no more messages when the one before it had more bytes."""
LOOP_COMMIT_BYTES = 32_768
"""Bytes up to which a commit in PostgreSQL is sent by the event loop, without waking a thread."""
FLUSH_SECONDS = 0.05
"""Longest time that changes without a waiting reply, such as acknowledgements, stay in memory."""
SLOW_COMMIT_SECONDS = 5.0
"""Time after which a commit that has not ended is a line in the log."""
STALL_RETRY_SECONDS = 0.25
"""Pause between attempts to write to a full disk."""
RESERVE_BYTES = 16_777_216
"""Disk space kept in reserve for a full disk."""
RESERVE_SHARE = 32
"""The reserve is at most one part in so many of the disk."""
STORAGE_STORES = 64
"""The most stores of a cluster: each is a process on every machine."""
STORE_FILES_SHARE = 8
"""Segments open for reading, and again for writing: at most one part in so many of all files."""
STORE_FILES_MIN = 8
"""Segments that may always be open for reading, and as many for writing."""
OTHER_FILES = 64
"""Open files besides segments and connections, and some to spare."""

# --- the log --------------------------------------------------------------------------------------
LOG_LINES = 10_000
"""Log lines that wait to be written; more are dropped and counted."""
LOG_TEXT_CHARACTERS = 16_384
"""Characters of a line; a longer one, which repeats what was sent, loses its middle."""
LOG_EXCHANGE_LINES = 1_000
"""Log lines that wait to be published to the log exchange."""
LOG_RECENT_TEXT_CHARACTERS = 2_000
"""Characters that are shown of a recent line of the log."""
LOG_SOCKET_SECONDS = 2.0
"""Time that a syslog server has to take a connection or a line over TCP."""
LOG_GATHER_SECONDS = 0.02
"""Time that the thread of the log gathers lines in before it writes again: waking it for each one
costs the event loop more than the line."""
LOG_DRAIN_SECONDS = 5
"""Time that a complete start waits for its log lines before it reports success."""

# --- definitions that are fetched -----------------------------------------------------------------
DEFINITIONS_SECONDS = 30.0
"""Time that a server of definitions has for its answers at the start."""
DEFINITIONS_BYTES = 268_435_456
"""Largest document of definitions that is fetched."""

# --- a standby that passes clients on -------------------------------------------------------------
RELAY_BUFFER_BYTES = 65_536
"""Octets that a standby keeps for a peer that reads slowly, beside those of one read."""
RELAY_LOOK_SECONDS = 0.5
"""Time between two looks whether clients that wait for an owner have left."""
RELAY_END_SECONDS = 10.0
"""Time for a peer to read the rest, after the other one has gone."""
RELAY_ENDED_SECONDS = 1.0
"""Time for the answers to a client that sends no more, if its owner is reached over TLS."""

# --- the audit trail ------------------------------------------------------------------------------
AUDIT_BLOCK_BYTES = 65_536
"""Octets of the audit trail that are read at once."""
AUDIT_LINE_BYTES = 16_384
"""Longest line of the audit trail; a longer one has no arguments and no states."""
AUDIT_SYNC_SECONDS = 1.0
"""Time after which a line of the audit trail is synced."""
AUDIT_FILE_SHARE = 16
"""A file of the audit trail is at most one part in so many of what is kept."""

# --- backups --------------------------------------------------------------------------------------
BACKUP_PIECE_BYTES = 1_048_576
"""Bytes that a backup reads and writes at a time (1 MiB)."""
BACKUP_PAGES = 256
"""Pages of the definitions that a backup copies at a time."""
BACKUP_FILES_PER_PAUSE = 16
"""Files after which a backup pauses."""
BACKUP_PAUSE_SECONDS = 0.001
"""How long it pauses."""
BACKUP_RETRY_SECONDS = 60.0
"""Time from a backup of the configuration that failed to the next one."""
BACKUP_OTHERS_SECONDS = 120.0
"""How long after its start a worker leaves a backup that is due for later, while others start."""
BACKUP_LOOK_SECONDS = 3_600.0
"""Longest time to the next look whether one is due: the configuration may change."""
BACKUP_WAIT_SECONDS = 0.25
"""Interval at which the threads of a backup look whether it is to stop."""
BACKUP_END_SECONDS = 5.0
"""How long a backup that is stopped waits for its thread, whose target may hang."""
BACKUP_ROWS = 20
"""Backups that a broker remembers for `harebell backups list`."""
