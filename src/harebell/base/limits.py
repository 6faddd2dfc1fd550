"""All limits of the broker and the client, with units and defaults.

Names end in the unit. A limit that can be configured has the same name in the configuration
(`harebell.server.config`), whose default is the value here.
"""

from __future__ import annotations

# --- frames and connections ---------------------------------------------------------------------
FRAME_MAX_BYTES = 131_072
"""Largest frame offered in connection.tune, header and end octet included."""
FRAME_MIN_BYTES = 4_096
"""Smallest frame-max that a client may choose (AMQP 0-9-1 4.2.3, frame-min-size)."""
FRAME_FUDGE_BYTES = 8
"""Tolerance over frame-max for clients that do not count the eight bytes of the frame."""
FRAME_OVERHEAD_BYTES = 8
"""Bytes of a frame that are not payload: type, channel, size, end."""
HANDSHAKE_FRAME_BYTES = 8_192
"""Largest frame accepted before connection.tune-ok, as in RabbitMQ 4.1; tokens are long."""
CHANNEL_MAX = 2_047
"""Most channels per connection offered in connection.tune."""
HEARTBEAT_SECONDS = 60
"""Heartbeat interval offered in connection.tune."""
HANDSHAKE_TIMEOUT_SECONDS = 10.0
"""Time from connecting to connection.open-ok."""
UNAUTHENTICATED_CONNECTIONS = 4_096
"""Most connections that are not authenticated yet; more are refused."""
UNAUTHENTICATED_PER_ADDRESS = 1_024
"""The same from one address, which many clients may share."""
CLOSE_TIMEOUT_SECONDS = 10.0
"""Time to wait for close-ok after sending connection.close."""
REFUSAL_PAUSE_SECONDS = 3.0
"""Delay before a connection that failed to authenticate is closed: slows down guessing."""
NEGOTIATION_FAILURES = 200
"""Handshake failures in a row from an address after which it is refused."""
NEGOTIATION_WINDOW_SECONDS = 60.0
"""Time within which these failures have to happen."""
NEGOTIATION_BLOCK_SECONDS = 10.0
"""Time for which such an address is refused."""
NEGOTIATION_OFFENDERS = 4_096
"""Addresses whose failures are kept."""
PERMISSION_CACHE_ENTRIES = 1_024
"""Names whose permission is cached, per user and vhost."""
DECISION_SECONDS = 60.0
"""How long a connection knows what a remote backend of users has allowed it."""
TOKEN_SCOPES = 2_048
"""Scopes of a token for this broker, as in RabbitMQ; a token with more is refused."""
KEYS_SECONDS = 10.0
"""How long no published keys are read again because a token names an unknown one."""
BACKEND_THREADS = 16
"""Requests to remote backends of users at the same time; more wait for one of them."""
BACKEND_ANSWER_BYTES = 1_048_576
"""The largest answer of a remote backend that is read."""
BACKEND_CACHE_ENTRIES = 65_536
"""Logins and decisions that the cache of a backend holds."""
PATTERN_CACHE_ENTRIES = 512
"""Patterns of permissions and policies that are kept compiled."""
PATTERN_STEPS = 5_000
"""States of a pattern that is simulated as an automaton; larger ones are left to `re`."""
PATTERN_LINEAR_STATES = 500
"""States of a pattern that is searched without backtracking."""
PATTERN_LINEAR_TRANSITIONS = 4_096
"""Transitions of such a pattern that are remembered."""
PATTERN_LINEAR_TESTS = 20_000
"""Tests of a single character in one search with it; each takes under a microsecond."""
FILTER_CHARACTERS = 16_384
"""Length of a filter over messages."""
FILTER_TERMS = 1_000
"""Columns and values of a filter."""
FILTER_DEPTH = 50
"""Conditions of a filter that are nested in each other."""
FILTER_PATTERN_CHARACTERS = 255
"""Length of a pattern in a filter."""
FILTER_TEXT_CHARACTERS = 16_384
"""Characters of a text that a pattern in a filter is compared with; the rest is not looked at."""
FILTER_JSON_BYTES = 262_144
"""Largest body that a filter reads as JSON (256 KiB)."""
FILTER_UNITS = 3
"""Work units of testing a message with a filter, beside those of its columns and values."""
FILTER_OCTETS_PER_UNIT = 128
"""Octets of a body that a filter reads in one work unit."""
REPLY_TEXT_BYTES = 255
"""Longest reply text (a shortstr)."""
NAME_BYTES = 255
"""Longest exchange, queue or routing-key name (a shortstr)."""
SEGMENT_FRAME_BYTES = 65_535
"""Largest frame offered in AMQP 0-10, whose frame size has two bytes."""
SEGMENT_MAX_BYTES = 1_048_576
"""Largest segment that can be configured (1 GiB)."""
SESSION_TIMEOUT_SECONDS = 86_400
"""Longest time that a session of AMQP 0-10 lives without a channel."""
REPLAY_BYTES = 16_777_216
"""Unconfirmed commands that such a session keeps; above, it gets no more deliveries."""
TABLE_DEPTH = 32
"""Deepest nesting of tables and arrays inside a field table."""
VOID_ARRAY_ITEMS = 1_024
"""Most values in an array of transitional 0-10 whose values take no bytes."""

# --- messages -----------------------------------------------------------------------------------
MESSAGE_MAX_BYTES = 134_217_728
"""Largest message body accepted (128 MiB)."""
BODY_HARD_MAX_BYTES = 536_870_912
"""A content header that announces more than this closes the connection (512 MiB)."""
REPLIES_UNSENT_BYTES = 134_217_728
"""Unsent output of a connection above which direct replies to it are dropped (128 MiB)."""
CONSUMERS_PER_CHANNEL = 0
"""Most consumers on one channel; 0 is no limit."""
REFERENCES_PER_SESSION = 256
"""Most message bodies that one session sends in pieces at the same time (message.open)."""
REFERENCE_NAME_BYTES = 1_024
"""Longest name of such a body."""
CHECKPOINTS_BYTES = 67_108_864
"""Memory for bodies whose sending was interrupted (64 MiB)."""
CHECKPOINT_SECONDS = 3_600
"""Time that such a body is kept."""

# --- memory and back-pressure -------------------------------------------------------------------
OUTPUT_HIGH_BYTES = 1_048_576
"""Unsent output of a connection above which its consumers get no more deliveries."""
OUTPUT_STOP_BYTES = 4_194_304
"""Unsent output of a connection above which it is not read."""
READ_BUFFER_BYTES = 262_144
"""Size of the one buffer for reading all connections."""
SMALL_READ_BYTES = 16_384
"""Bytes of it that are used while frames may have to wait for another turn."""
MEMORY_HIGH_WATERMARK = 0.4
"""Part of the machine's memory for queued messages above which publishers are blocked."""
MEMORY_LOW_SHARE = 0.9
"""Publishers are unblocked when memory falls to this part of the high watermark."""
MESSAGE_OVERHEAD_BYTES = 192
"""Memory that is counted for a queued message besides its body and properties."""
HELD_AGAIN_BYTES = 24
"""Memory that is counted for each further queue with a message that is in memory."""
SHARED_BODY_BYTES = 4096
"""Size from which a body that several messages share is counted once."""
SHARED_BY_QUEUES = 8
"""Number of queues with a message from which transient queues keep it in memory."""
TRANSACTION_BYTES = 134_217_728
"""Most memory of the publishes of one transaction until its commit (128 MiB)."""
DELIVERY_LIMIT = 20
"""Default `x-delivery-limit` of a quorum queue."""
DEAD_LETTERS_PER_TICK = 1_000
"""Dead letters that no queue took, of which one queue resends so many at a time."""
DELAY_MAX_MS = 4_294_967_295
"""Longest delay of a message: 49 days. With a longer one it is not delayed, as in RabbitMQ."""
RETRY_DELAYS = 64
"""Most delays in `x-retry-delays`, and so the most retries of a message."""
RELEASED_PER_TURN = 1_000
"""Delayed messages of one exchange that are routed in one turn."""
COUNTED_PER_TURN = 5_000
"""Messages of one queue whose bodies are counted in one turn, after a byte limit was set."""
TRIMMED_PER_TURN = 1_000
"""Messages that one queue drops in one turn because it is over a limit."""
LETTERS_PER_TURN = 200
"""Messages that one queue dead-letters in one turn because it is over a limit."""
CHAINED_PER_TURN = 100
"""Dead letters caused by one publish in one turn; later ones are dropped in later turns."""
REFUSED_PER_TURN = 1_000
"""Dead letters of refused messages that are sent in one turn."""
TRANSACTION_AT_ONCE = 200
"""Changes of queues by a transaction that are done in one turn; more take several."""
TRANSACTION_AT_ONCE_BYTES = 1_048_576
"""Bytes of the bodies that it publishes in one turn (1 MiB)."""
TRANSACTION_SLICE = 16
"""Number of them in one slice."""
LETTER_UNITS = 25
"""Work units of publishing a dead letter, or a message whose delay is over."""
EXPIRED_PER_TURN = 1_000
"""Messages of one queue that expire in one turn."""
STREAM_RECENT_MESSAGES = 256
"""Messages that a stream with several consumers keeps in memory; a power of two."""
STREAM_RECENT_BODY_BYTES = 1_024
"""A message with a larger body is read again for each consumer."""
STREAM_SCAN_MESSAGES = 2_000
"""Messages that a stream consumer with a filter skips in one turn."""
STREAM_TRACKED_TAGS = 65_535
"""Consumer tags with tracked offsets in one stream."""
NO_LOCAL_FORGOTTEN = 1_024
"""Settled messages whose connection a queue with a no-local consumer still has."""
NO_LOCAL_RUNS = 65_536
"""Ranges of messages in a stream that one no-local consumer skips."""
RECENT_HISTORY_MESSAGES = 20
"""Default number of messages that a recent history exchange keeps."""
GROUP_WAITING_MESSAGES = 100_000
"""Messages that a queue with ordering keys skips, and keeps, as their keys are held."""
GROUP_SCAN_MESSAGES = 2_000
"""Messages that such a queue skips in one turn."""
BROWSE_MESSAGE_UNITS = 4
"""Work units of reading a message that a command browses."""
BROWSE_ROW_UNITS = 15
"""Work units of showing it, beside those of its body."""
BROWSE_SLICE_UNITS = 400
"""Work units of one slice of such a command."""
BROWSE_PAYLOAD_BYTES = 1_048_576
"""Most octets of a body that such a command shows (1 MiB)."""
REHEARSAL_SLICE_BINDINGS = 500
"""Bindings that `harebell explain` looks at in one slice of work."""
REHEARSAL_SHOWN_BINDINGS = 100
"""Most bindings of an exchange that it shows."""
REHEARSAL_SLICE_QUEUES = 50
"""Queues that it looks at in one slice of work."""
REHEARSAL_SHOWN_QUEUES = 100
"""Most queues that it shows."""
JOB_ACT_UNITS = 8
"""Work units of moving, copying or removing a message by a job."""
JOB_SLICE_UNITS = 400
"""Work units of one slice of a job."""
JOB_AHEAD_BYTES = 4_194_304
"""Octets that a job publishes before it waits for a commit (4 MiB)."""
JOBS_RUNNING = 16
"""Jobs that run at a time."""
JOBS_KEPT = 100
"""Jobs that have ended and are still listed."""
BROWSED_PER_TURN = 1_000
"""Messages that a browser is shown in one turn."""
GROUP_KEY_LETTERS = 255
"""Length to which ordering keys are compared."""
ROUTE_CACHE_ENTRIES = 4_096
"""Routing keys whose destinations an exchange caches."""
CONVERSIONS_KEPT_COUNT = 64
"""Converted property lists that are cached."""
CONVERSIONS_KEPT_BYTES = 131_072
"""Longest property list whose conversion is cached: that of a largest frame."""
DUMP_FRAME_BYTES = 1_048_576
"""Longest frame that `harebell dump` decodes; longer bodies are only counted."""

SPARING_SCAN_MESSAGES = 1_000
"""Messages that a full queue searches for one to drop, past files."""
FILE_DELIVERIES_COUNT = 5
"""Deliveries of a file without acknowledgement until it is dead-lettered (AMQP 0-8, file)."""
FILE_ASIDE_COUNT = 1_000
"""Files that a channel has returned for others and does not get again."""
FILE_RETRY_MS = 100
"""Interval of checks for a file that waits for room in a queue or for another consumer."""
STREAM_WINDOW_MESSAGES = 256
"""Default number of packets that wait for a slow consumer."""
STREAM_WINDOW_BYTES = 1_048_576
"""Default size of the bodies of these packets."""
RATE_SLACK_MS = 20
"""Time that a transfer rate makes up for when a timer is late."""
STREAM_RETRY_MS = 50
"""Interval of checks for a packet consumer whose socket is full."""
STAGED_FILES_COUNT = 10_000
"""Most staged files that are not published yet."""
STAGED_CHUNK_BYTES = 65_536
"""Bytes of a staged file that are gathered before they are written."""
STAGED_KEEP_SECONDS = 86_400
"""Time that an unused staged file is kept: a day."""

SUPER_STREAM_PARTITIONS = 256
"""Most partitions of a super stream."""

BULK_ROWS = 16_384
"""Most rows in one batch of a bulk read."""
BULK_BYTES = 2_097_152
"""Most bytes of messages in it, except for a single larger message (2 MiB)."""
BULK_SCAN_BYTES = 4_194_304
"""Most bytes that one bulk read with a filter scans (4 MiB)."""
BULK_FILTER_UNITS = 1_000
"""Work units of one bulk read that tests messages with a condition."""
BULK_READS_PER_TURN = 4
"""Bulk reads of one connection that are answered in a turn, while its output has room."""
BULK_READS_WAITING = 1_024
"""Most bulk reads of one connection in progress."""

QUERY_REPORTS = 1_000
"""Most queries that report in a vhost."""
QUERY_REPORTS_PER_USER = 250
"""Most of them of one user, so that no user keeps others from reporting."""
QUERY_REPORT_MS = 86_400_000
"""Time after which a report is dropped (a day)."""
QUERY_TEXT_BYTES = 255
"""Longest text in a report, but for the error."""
QUERY_ERROR_CHARACTERS = 2_000
"""Characters of an error that are kept."""
QUERY_SOURCES = 64
"""Most queues that a report names."""

# --- client -------------------------------------------------------------------------------------
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
"""Contents of so many bytes or more are gathered from their frames into one place..."""
CLIENT_GATHER_MAX = 16_777_216
"""...and of so many at most: for larger ones no memory is reserved before they come."""
ROWS_PER_PUBLISH_BYTES = 1_048_576
"""Bytes of rows that are encoded at once."""
BULK_READS_AHEAD = 4
"""Bulk reads that the client has in progress at a time."""
PUBLISH_WINDOW = 10_000
"""Most unconfirmed publishes of a bulk publish."""
RECOVERY_FIRST_SECONDS = 0.5
"""Longest delay before the first attempt to recover a connection."""
RECOVERY_MAX_SECONDS = 30.0
"""Longest delay between attempts to recover a connection."""

# --- the server ---------------------------------------------------------------------------------
WORK_USER_UNITS = 4_000
"""Work units, of about a microsecond each, of one user in one turn."""
WORK_TURN_UNITS = 8_000
"""Units of deferred work in one turn, for all users together."""
WORK_SLICE_UNITS = 1_000
"""Units after which the next connection or operation of the same user is served."""
WORK_MIN_UNITS = 100
"""Units that closing a connection gets at once, whatever its user has spent."""
WORK_LOOK_UNITS = 16
"""Units after which the estimate is compared with the clock."""
POLICY_UNITS = 8
"""Work units of applying the policies to a queue or an exchange."""
REMOVED_QUEUE_UNITS = 20
"""Work units of deleting a queue."""
REMOVED_BINDING_UNITS = 3
"""Work units of removing a binding of a deleted object."""
REMOVED_CONSUMER_UNITS = 2
"""Work units of removing a consumer of a closed channel."""
REMOVED_AT_ONCE = 50
"""Queues, bindings or consumers that are removed at once; more are removed in slices."""
COMMAND_ENTRY_UNITS = 4
"""Work units of an entry that a command examines, such as one queue of a list."""
WORK_FRAME_UNITS = 2
"""Work units of an ordinary frame, or a whole publish to one queue."""
REFUSED_AT_ONCE = 16
"""Deliveries that one method rejects or requeues at once: each may become a dead letter."""
SETTLED_AT_ONCE = 1_000
"""Deliveries that one method settles at once; more are settled in slices."""
WRITE_HIGH_BYTES = 65_536
"""Bytes waiting for a socket above which its consumers get no more deliveries."""
WRITE_LOW_BYTES = 16_384
"""Bytes below which they get deliveries again."""
WRITE_PIECE_BYTES = 1_048_576
"""Bytes of a longer output written to a socket at a time (1 MiB); the unsent rest is copied."""
WRITE_PIECES_PER_TURN = 2
"""Such pieces that one connection writes per turn."""
LONG_BODY_BYTES = 1_048_576
"""Body size from which frames are encoded when the socket takes them (1 MiB)."""
FULL_READS_PER_TURN = 4
"""Reads of a full buffer from one socket per turn."""
WRITE_TURN_SECONDS = 0.004
"""Time for writing to connections in one turn."""
LINGER_SECONDS = 3.0
"""Time that the peer of a closed connection has to close its side."""
METRICS_PORT = 15_692
"""Default port for metrics, as in RabbitMQ."""
METRICS_SAMPLES_PER_SLICE = 500
"""Samples of metrics that are gathered in one slice of a scrape; about 0.3 ms."""
METRICS_LINES_PER_SLICE = 4_000
"""Lines of metrics that are joined in one slice of a scrape; about 0.2 ms."""
METRICS_PART_BYTES = 65_536
"""Size from which gathered text of a scrape is sent (64 KiB)."""
AGE_UNACKED_SCANNED = 1_024
"""Most unacknowledged deliveries of a channel in which the first of each queue is searched."""
RETURNED_SEARCHED = 4_096
"""Most requeued messages among which the oldest one is searched for its age."""
TICK_SECONDS = 0.5
"""Interval of checks of heartbeats and deadlines."""
TICK_LATE_SECONDS = 0.5
"""Delay of a tick from which the process is known to have been suspended."""
CONSUMER_TIMEOUT_MS = 1_800_000
"""Time that a delivery may be unacknowledged before its channel is closed."""
CONSUMER_TIMEOUT_MAX_MS = 315_360_000_000
"""Longest such time that can be configured: ten years."""
TIMEOUT_MARKS = 32
"""Marks that a channel sets per ack timeout: its precision is one part in so many."""
SHUTDOWN_SECONDS = 3.0
"""Default time that clients have to read the remaining output when the broker stops."""
SHUTDOWN_QUIET_SECONDS = 0.3
"""Time that they have to answer connection.close when they have read everything."""
SHUTDOWN_LOOK_SECONDS = 0.02
"""Interval of checks for that."""
STORE_END_SECONDS = 3.0
"""Time to write the last commits when the broker stops."""
COLLECT_YOUNG_OBJECTS = 5_000
"""New objects until a young garbage collection, of about 1 ms."""
COLLECT_MIDDLE_COLLECTIONS = 10
"""Young collections until a middle one, of 5 to 10 ms."""
COLLECT_OLD_COLLECTIONS = 100_000
"""Middle collections until a full one: minutes of busy turns, or more."""
HEAP_TRIM_BYTES = 67_108_864
"""Freed messages after which the heap is trimmed (64 MiB)."""
HEAP_KEEP_BYTES = 16_777_216
"""Freed memory at the top of the heap that is kept when it is trimmed."""
HEAP_MAP_BYTES = 4_194_304
"""Size from which a buffer is mapped by itself and unmapped when it is freed."""
ACCEPTS_PER_TURN = 100
"""Connections that a TLS listener accepts per turn."""
ACCEPT_PAUSE_SECONDS = 1.0
"""Time without accepting connections after the system had no files or memory for more."""
BACKLOG_CONNECTIONS = 1_024
"""Connections that wait to be accepted."""
CONTROL_PATH_BYTES = 107
"""Longest path of the control socket: sun_path of unix(7) without its final zero."""
CONTROL_LINE_BYTES = 67_108_864
"""Longest request on the control socket: one with definitions (64 MiB)."""
USER_NAME_BYTES = 255
"""Longest name of a new user."""
VHOST_NAME_BYTES = 255
"""Longest name of a new vhost: connection.open sends it as a short string."""
PARAMETER_NAME_BYTES = 255
"""Longest name of a parameter, and of a component."""
POLICY_NAME_BYTES = 255
"""Longest name of a policy."""
CONTROL_TIMEOUT_SECONDS = 30.0
"""Timeout of both sides of the control socket."""
CONTROL_IDLE_SECONDS = 10.0
"""Time after which the broker shows a client that its next rows take longer."""
LAG_STEP_SECONDS = 0.005
"""Interval of measurements of `harebell status --lag`."""
LAG_MAX_SECONDS = 3600.0
"""Longest time that it measures."""
CONTROL_COMMAND_SECONDS = 60.0
"""Time that the command line waits until a change is on disk."""
CONTROL_IMPORT_SECONDS = 600.0
"""Time that the command line waits until definitions are imported."""

# --- HTTP API -----------------------------------------------------------------------------------
MANAGEMENT_PORT = 15_672
"""Default port of the HTTP API."""
HTTP_BODY_BYTES = 20_000_000
"""Default of the largest request body, as in RabbitMQ."""
HTTP_BODY_MAX_BYTES = 2_147_483_647
"""Largest value of that setting."""
HTTP_BACKLOG_CONNECTIONS = 128
"""Connections that wait to be accepted."""
HTTP_CONCURRENT_REQUESTS = 1_000
"""Open connections above which a request is answered with 503."""
HTTP_IDLE_SECONDS = 60
"""Time without a request after which a connection is closed."""
HTTP_SHUTDOWN_SECONDS = 1
"""Time that requests have to end when the broker stops."""
HTTP_REFUSED_SECONDS = 1.0
"""Delay of the answer to a wrong password after too many of them."""
HTTP_PREPARE_SECONDS = 0.2
"""Time after the start at which the files of the commands are imported."""
HTTP_RETRY_SECONDS = 5
"""When a client is asked to come back while a store has no owner."""
HTTP_CHUNK_BYTES = 65_536
"""Size of the pieces in which an answer is compressed and sent."""
HTTP_COMPRESS_BYTES = 860
"""Smallest answer that is compressed: a smaller one fits in one packet anyway."""
HTTP_COMPRESS_LEVEL = 1
"""Level of gzip: the fastest."""
HTTP_PAGE_ROWS = 100
"""Default size of a page."""
HTTP_PAGE_MAX_ROWS = 500
"""Largest page."""
HTTP_SORT_RUN_ROWS = 256
"""Rows that are sorted at once; longer lists are merged from such runs."""
JSON_PART_BYTES = 16_384
"""Size of the parts in which a long text of JSON is decoded."""
JSON_STRING_BYTES = 65_536
"""Most of a text of JSON that is searched for the next bracket or comma at once."""
JSON_SLICE_TOKENS = 64
"""Brackets and commas of a text of JSON that are looked at in one slice."""
JSON_DEPTH = 500
"""Most levels of a long text of JSON."""
HTTP_CORS_SECONDS = 1_800
"""Default of the time that browsers may keep the answer of a preflight request."""
HTTP_GET_MESSAGES = 10_000
"""Most messages of one answer."""
HTTP_GET_BYTES = 33_554_432
"""Size of their bodies above which the answer has no more (32 MiB)."""
LOGIN_SOURCES = 1_000
"""Addresses and users whose logins are counted."""

# --- statistics ---------------------------------------------------------------------------------
STATISTICS_SECONDS = 5
"""Interval of the samples of counters, as RabbitMQ's collect_statistics_interval."""
STATISTICS_MIN_MS = 1_000
"""Shortest interval of samples that can be configured."""
STATISTICS_MAX_MS = 600_000
"""Longest interval of samples that can be configured (10 minutes)."""
STATISTICS_RING_SAMPLES = 10_000
"""Most samples that a retention policy may keep of one thing."""
STATISTICS_HISTORIES = 2_000
"""Queues, exchanges, channels and connections with a history; further ones have rates only."""
STATISTICS_CHANNEL_DETAILS = 1_000
"""Exchanges, and queues, that a channel has counters of; the oldest are forgotten."""
STATISTICS_QUEUE_SOURCES = 1_000
"""Exchanges that a queue has counters of; the oldest are forgotten."""
STATISTICS_SLICE_OBJECTS = 200
"""Objects that the sampler looks at between two checks of the work budget."""

# --- Spark --------------------------------------------------------------------------------------
SPARK_ROWS_PER_TRIGGER = 250_000
"""Default number of messages in one micro-batch, and of unacknowledged ones."""
SPARK_ROWS_PER_BATCH = 8_192
"""Rows of an Arrow record batch; Spark is fastest between 1,000 and 8,000."""
SPARK_ROWS_PER_BATCH_MAX = 65_536
"""Most rows per record batch that can be configured."""
SPARK_BATCH_BYTES = 16_777_216
"""Bytes of messages after which a record batch ends, however few rows it has."""
SPARK_CONSUMERS = 64
"""Most consumers of one queue over plain AMQP; a prefetch that needs more is refused."""
SPARK_ROWS_PER_PARTITION = 1_024
"""Fewer rows than this are not split into more partitions."""
COLUMN_BYTES = 2_000_000_000
"""Most bytes in one column of a record batch: Arrow counts them with 31 bits."""
PREFETCH_MAX = 65_535
"""Largest prefetch-count of a consumer (basic.qos has a short)."""
SPARK_LONG_POLL_SECONDS = 0.2
"""Time that an idle query waits for a message before it replies to Spark."""
SPARK_DOUBT_SECONDS = 0.2
"""Time after which an empty result, neither messages nor consumers, may mean that the broker could
not be reached."""
SPARK_TRIGGER_DELAY_SECONDS = 900.0
"""Time that a micro-batch waits for the messages of minOffsetsPerTrigger, as with Kafka."""
SPARK_QUIET_SECONDS = 0.02
"""Pause in the deliveries after which a micro-batch begins."""
SPARK_GATHER_SECONDS = 1.0
"""Longest time that deliveries are gathered for one micro-batch, while they keep coming."""
SPARK_FETCH_TIMEOUT_SECONDS = 30.0
"""Time without an answer, a connection or an expected delivery after which a query fails."""
SPARK_CALLS_PER_TIMEOUT = 3
"""Calls that fit into a timeout of a query: one that is not answered is made again."""
SPARK_RECONNECT_SECONDS = 30.0
"""Default time in which a write task has to recover a lost connection."""
SPARK_TURN_SECONDS = 3.0
"""How long a task waits at most before it asks again for a connection that a limit refuses."""
SPARK_RETRY_SECONDS = 0.2
"""Pause between two attempts to recover a connection."""
SPARK_CONNECTION_WAIT_SECONDS = 600.0
"""Default time that a task waits for a connection where a limit allows no more of them."""
SPARK_IDLE_CONNECTION_SECONDS = 5.0
"""Time after which a connection that no task uses is closed."""
SPARK_SLOT_LOOK_SECONDS = 0.05
"""Interval in which a task looks whether another one has ended its connection."""
SPARK_CONNECTIONS_MAX = 1_000
"""Most connections of an executor that can be configured."""
SPARK_KEPT_BYTES = 33_554_432
"""Most bytes of staged rows that a task keeps, in case the broker loses them."""
SPARK_KEEP_SECONDS = 1.0
"""Interval of serving the connection while Spark works on a micro-batch."""
SPARK_LAST_LINES_SECONDS = 1.0
"""Most time in which the last lines of a JVM that does not start are printed."""
SPARK_LEASE_SECONDS = 300.0
"""Default time that the lease of a query outlives its connection."""
SPARK_STREAM_SECONDS = 86_400.0
"""Default time that the stream of a query over an exchange keeps messages, and is not read."""
SPARK_IN_FLIGHT_MAX = 1_000_000
"""Most unconfirmed rows of a write task that can be configured."""
SPARK_TXN_VERSION_MAX = 2**63 - 2
"""Largest txnVersion of a batch write."""
SPARK_PIECES_IN_FLIGHT = 8
"""Record batches of a write task that are being sent at a time."""
SPARK_PIECE_BYTES = 8_388_608
"""Bytes above which a record batch that a task writes is sent in several parts (8 MiB)."""
SPARK_COMMITTED_PER_SECOND = 10_000
"""Rows of a staged batch that a broker commits per second at least, beside other work."""
SPARK_EXAMPLES = 3
"""Unroutable messages that an error shows."""
JAVA_ANSWER_SECONDS = 30.0
"""Time that Java has to print its version."""
SPARK_WARM_SECONDS = 600.0
"""Time for making the class-data archive."""
SQL_HISTORY_LINES = 1_000
"""Lines that the shell of `harebell sql` remembers."""
SPARK_SERVER_IDLE_SECONDS = 1_800.0
"""Time without a statement after which the server of `harebell spark start` ends."""
SPARK_SERVER_LOOK_SECONDS = 5.0
"""How often that server looks whether it was used."""
SPARK_SERVER_START_SECONDS = 180.0
"""Time that it has to start."""
SPARK_SERVER_STOP_SECONDS = 60.0
"""Time that it has to end."""
SPARK_MEMORY_BYTES = 1_610_612_736
"""Memory that a session on this machine takes, with its Python processes."""
PROGRESS_AFTER_SECONDS = 2.0
"""How long a command takes before it shows how far it is."""
PROGRESS_EVERY_SECONDS = 0.25
"""How often it shows that."""
JOB_LOOK_SECONDS = 0.25
"""How often a command on a terminal looks how far the job is that it has started."""
DEMO_SECONDS = 20.0
"""How long the publisher of `harebell demo` takes on a terminal, for people who watch it."""
DEMO_CHUNK_FLIGHTS = 200
"""Flights that it publishes before it waits for their confirms."""
DEMO_LOOK_SECONDS = 0.1
"""How often `harebell demo` shows how far it is."""
DEMO_PATIENCE_SECONDS = 1.0
"""How long a consumer of `harebell demo` waits before it looks whether to stop."""
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
MASTER_ANSWER_SECONDS = 5.0
"""Time that the master of a cluster has to take a connection from `harebell spark doctor`."""

# --- pipelines ----------------------------------------------------------------------------------
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
PIPELINE_LEASE = "24h"
"""How long the claims of a pipeline that does not run are kept, as an option of the format."""
PIPELINE_SAME_SIGNAL_SECONDS = 0.2
"""A second signal within that time is the first one, sent twice."""
PIPELINE_BAD_ROWS = 100_000
"""Most bad rows of one micro-batch that are sent to a dead-letter exchange; more mean a wrong
schema, and stop the pipeline."""
TIER_CHARACTERS = 100
"""Longest name of a stream's tier."""
LAKE_SMALL_FILE_BYTES = 64 * 1_048_576
"""Size below which a file of an Iceberg table is merged with others."""
LAKE_COMPACTION_BYTES = 128 * 1_048_576
"""Most bytes of such files that are merged at a time: they pass through memory."""
TAKEN_MESSAGES = 500_000
"""Most messages of a queue that a DELETE, MOVE or RETRY examines: it holds them meanwhile."""
TAKEN_BYTES = 536_870_912
"""Most bytes of bodies that it holds."""
SETTLED_MESSAGES = 10_000
"""Messages that it settles in one transaction."""

# --- the store ----------------------------------------------------------------------------------
SEGMENT_BYTES = 8_388_608
"""Size from which the log of a queue continues in a new segment (8 MiB)."""
STREAM_SEGMENT_MIN_BYTES = 16_384
"""Smallest segment of a stream: every segment is a file."""
STREAM_SEGMENT_BYTES = 67_108_864
"""The same for a stream (64 MiB)."""
WRITE_EARLY_BYTES = 2_097_152
"""Bytes that a log gathers before it writes without waiting for the next commit."""
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
SEEN_AHEAD = 65_536
"""Positions ahead of the deliveries at which a log stores its mark of delivered messages."""
LARGE_RECORD_BYTES = 4_194_304
"""Body size from which a durable log stores a message in its own segment, without copying."""
READ_FIRST_BYTES = 16_384
"""The first read of a log from disk."""
READ_MAX_BYTES = 262_144
"""Size of one read when a log is read in order."""
READ_HELD_BYTES = 67_108_864
"""Most bytes of blocks in memory, for all logs; a single larger message is allowed."""
READ_PLACES = 7
"""Places of a log that are read in order at the same time, beside the last one."""
SCAN_WINDOW_BYTES = 4_194_304
"""Size of one read when a log is opened."""
AHEAD_FROM_BYTES = 65_536
"""Size of a segment from which space is written ahead of its records."""
AHEAD_MAX_BYTES = 1_048_576
"""Most space written ahead at a time: as much as the segment has, up to this (1 MiB)."""
AHEAD_WRITE_BYTES = 262_144
"""Size of a commit for one log above which no space is written ahead: its sync is rare."""
PERFORM_MAX = 64
"""Most writes of a commit that are done without a Python thread."""
REMOVALS_MAX = 64
"""Settled segments that wait to be removed from which a commit removes as many before it begins."""
SYNC_TOGETHER_FILES = 8
"""Number of files from which a commit syncs the whole file system, if the platform can."""
REDO_KEEP_BYTES = 1_048_576
"""Size above which the redo file is truncated at once after a transaction."""
LOG_LINES = 10_000
"""Log lines that wait to be written; more are dropped and counted."""
LOG_EXCHANGE_LINES = 1_000
"""Log lines that wait to be published to the log exchange."""
LOG_RECENT_LINES = 1_000
"""Log lines that are kept in memory, for administrators who look at the log."""
LOG_RECENT_TEXT_CHARACTERS = 2_000
"""Characters that are shown of such a line."""
DEFINITIONS_SECONDS = 30.0
"""Time that a server of definitions has for its answers at the start."""
DEFINITIONS_BYTES = 268_435_456
"""Largest document of definitions that is fetched."""
LOG_SOCKET_SECONDS = 2.0
"""Time that a syslog server has to take a connection or a line over TCP."""
LOG_DRAIN_SECONDS = 5
"""Time that a complete start waits for its log lines before it reports success."""
EXIT_INTERRUPTED = 130
"""Exit code of the command line after Ctrl-C: 128 and the number of SIGINT, as in shells."""
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
DISK_FREE_LIMIT_BYTES = 268_435_456
"""Free space below which publishers are blocked (256 MiB)."""
DURABILITY_INTERVAL_MS = 500
"""Default sync interval with durability "interval"."""
DURABILITY_INTERVAL_MAX_MS = 60_000
"""Longest such interval: a minute."""
STORAGE_LEASE_MS = 3_000
"""After so many milliseconds of silence, another broker takes over a store in PostgreSQL."""
STORAGE_LEASE_MIN_MS = 500
"""The shortest such lease: a commit has to fit in a quarter of it."""
STORAGE_LEASE_MAX_MS = 300_000
"""The longest: five minutes."""
KEEPALIVES_MAX = 127
"""The most unanswered keepalives that Linux lets a socket wait for (MAX_TCP_KEEPCNT)."""
STORAGE_STORES = 64
"""The most stores of a cluster: each is a process on every machine."""
COMPRESS_MIN_BYTES = 4_096
"""The size from which a row of the log is compressed: PostgreSQL stores it in parts of 2 KB."""
COMPRESS_SHARE = 0.8
"""The largest share of its size that a row may have when it is compressed."""
COMPRESS_SKIPPED_ROWS = 15
"""Rows that are not compressed after one that did not get smaller."""
STANDBY_LOOK_SECONDS = 0.1
"""The longest time between two looks of a standby at the store."""
STANDBY_END_SECONDS = 5.0
"""How long a standby that is told to end waits for an answer of PostgreSQL."""
DRAINED_SECONDS = 5.0
"""How long a broker that was drained leaves the store to others."""
CLUSTER_LOOK_SECONDS = 0.25
"""Time between two looks of a process at the shared tables of its cluster."""
CLUSTER_FIRST_SECONDS = 30.0
"""How long a process that starts waits for the first answer about them, beyond a lease."""
CLUSTER_KNOWN_SECONDS = 1.0
"""How long a change of them waits until every owner knows it, or a lease if that is longer."""
CLUSTER_LOAD_SECONDS = 5.0
"""Time over which an owner measures what share of a core it uses."""
CLUSTER_COPY_SECONDS = 10.0
"""Time that a change of users waits until the other owners have it."""
CLUSTER_COPY_RETRY_SECONDS = 1.0
"""Time until a copy of the users that failed is made again."""
CLUSTER_REACH_SECONDS = 5.0
"""Time to reach the owner of another store for a command."""
CLUSTER_LIST_SECONDS = 15.0
"""Time that a list of all stores waits for the owner of one."""
CLUSTER_ANSWER_BYTES = 268_435_456
"""Longest line between brokers: definitions, or the rows of a list (256 MiB)."""
CLUSTER_IDLE_LINKS = 4
"""Connections to the owner of a store that wait for the next command."""
CLUSTER_IDLE_SECONDS = 10.0
"""How long they wait. The owner closes them after CONTROL_TIMEOUT_SECONDS, which is longer."""
CLUSTER_USERS_PER_TURN = 100
"""Users that are written down for the other owners in one turn of the event loop."""
CLUSTER_EVENT_BYTES = 4_194_304
"""Events and log lines that wait for the owner of store 1; more are left out and counted."""
CLUSTER_EVENTS_PER_TURN = 100
"""Events and log lines of other owners that are published in one turn of the event loop."""
CLUSTER_EVENTS_SECONDS = 0.25
"""The longest time until another owner knows that something is bound to the event exchange."""
CLUSTER_EVENTS_AGAIN_SECONDS = 1.0
"""Pause before the owner of store 1 is connected to again, and between two lines about losses."""
CLUSTER_USAGE_SECONDS = 0.25
"""The longest time until another owner knows what users and declarations use here."""
CLUSTER_USAGE_AGAIN_SECONDS = 1.0
"""Pause before another owner is connected to again."""
CLUSTER_USAGE_PER_TURN = 1_000
"""Connections that are counted in one turn of the event loop, and users in one record."""
CLUSTER_USAGE_BYTES = 4_194_304
"""Longest record: names have at most 255 bytes, which JSON makes at most six times as long."""
CLUSTER_RESTART_SECONDS = 0.5
"""Pause before the process of a store that has ended is started again; it doubles each time."""
CLUSTER_RESTART_MAX_SECONDS = 10.0
"""The longest such pause."""
CLUSTER_STARTED_SECONDS = 60.0
"""A process that has run for so long begins again with the shortest pause."""
RELAY_BUFFER_BYTES = 65_536
"""Octets that a standby keeps for a peer that reads slowly, beside those of one read."""
RELAY_CONNECT_SECONDS = 2.0
"""Time that the owner has to accept a connection that is passed on to it."""
RELAY_RETRY_SECONDS = 0.05
"""Time before a standby tries that again at first; it doubles up to a second."""
RELAY_LOOK_SECONDS = 0.5
"""Time between two looks whether clients that wait for an owner have left."""
RELAY_END_SECONDS = 10.0
"""Time for a peer to read the rest, after the other one has gone."""
RELAY_ENDED_SECONDS = 1.0
"""Time for the answers to a client that sends no more, if its owner is reached over TLS."""
LINK_SECONDS = 5.0
"""Time for the handshake at the cluster port."""
LINK_LINE_BYTES = 65_536
"""Longest line of that handshake."""
LINK_HANDSHAKES = 256
"""Most connections at the cluster port that have not proven that they know the secret."""
LINK_YOUNG_SECONDS = 0.25
"""Age of one of these from which it makes room for a new one."""
LOCAL_CLIENT_BYTES = 65_536
"""The longest message with a client for another process of this machine; a longer one goes over
the cluster port."""
LOCAL_CLIENT_SIGN_SECONDS = 0.5
"""Time between two signs that a process takes clients from the others of its machine."""
LOCAL_CLIENT_GONE_SECONDS = 3.0
"""Age of the last sign from which the others accept clients themselves."""
HAND_OVER_BYTES = 327_680
"""What a client may send until connection.open is answered, in a cluster of several stores: all of
it is kept for the owner of the vhost."""
SEGMENT_MIN_BYTES = 65_536
"""Smallest segment that can be configured."""
SEGMENT_MAX_BYTES = 1_073_741_824
"""Largest segment that may be asked for (1 GiB)."""
OPEN_FILES = 256
"""Segments kept open for reading, and as many for writing."""
STORE_FILES_SHARE = 8
"""Each of them uses at most one part in so many of the open files that the process may have."""
STORE_FILES_MIN = 8
"""Each of them may use at least this many files."""
OTHER_FILES = 64
"""Open files besides segments and connections, and some to spare."""
XID_PART_BYTES = 64
"""Length of the transaction's id in an xid, and of the branch's (X/Open XA)."""
BRANCHES = 65_536
"""Most branches of distributed transactions in a broker."""
BRANCH_BYTES = 134_217_728
"""Most memory of the publishes of one branch until it is prepared or committed (128 MiB)."""
BRANCH_SETTLED_MESSAGES = 1_000_000
"""Most deliveries that one branch acknowledges."""
BRANCH_TIMEOUT_SECONDS = 60
"""Default timeout of a branch until it is prepared."""
BRANCH_TIMEOUT_MAX_SECONDS = 86_400
"""Longest such timeout: a day."""
BRANCH_REMEMBERED_SECONDS = 3_600
"""Time that a rolled back branch is kept: an hour."""

# --- leases -------------------------------------------------------------------------------------
LEASE_GROUPS = 256
"""Most groups of one queue."""
LEASE_GROUP_KEPT_MS = 90 * 86_400_000
"""Time after which a group without claims and holder is deleted: ninety days."""
LEASE_OPEN_CLAIMS = 1_024
"""Most open claims of one group."""
LEASE_CLAIM_MESSAGES = 1_000_000
"""Most messages of one claim."""
LEASE_SINGLE_MESSAGES = 50_000
"""Most messages of one claim if they are read one by one."""
LEASE_KEYED_MESSAGES = 1_000_000
"""Most claimed messages of a queue with ordering keys."""
LEASE_CLAIM_RANGES = 4_096
"""Most position ranges of one claim."""
LEASE_TIMEOUT_MS = 86_400_000
"""Default timeout of the claims of a group without a holder: a day."""
LEASE_TIMEOUT_MAX_MS = 2_592_000_000
"""Longest such timeout: thirty days."""

# --- staged publishing, publishers --------------------------------------------------------------
PUBLISHERS_COUNT = 10_000
"""Most publishers of one vhost; a new one replaces the one that is idle longest."""
PUBLISHER_REFUSED_COUNT = 65_536
"""Refused publishing ids of one publisher that it may send once more."""
STAGE_RUNS_COUNT = 64
"""Runs of a publisher that are kept, to refuse those that were replaced."""
STAGE_PIECE_BYTES = 67_108_864
"""Largest piece of a staged batch (64 MiB)."""
STAGE_FILE_BYTES = 67_108_864
"""Size from which staged pieces continue in another file (64 MiB): removing takes long."""
STAGE_SWEEP_BYTES = 2_097_152
"""Bytes of such a file that are removed in one turn (2 MiB)."""
STAGE_SPARE_BYTES = 268_435_456
"""Bytes of files of committed batches that are kept for the next batches (256 MiB)."""
STAGE_SPARE_SHARE = 0.125
"""Most of the available space that such files may take."""
STAGE_SPARE_SECONDS = 60
"""Time after which they are removed if no batch has used one."""
STAGE_USER_SHARE = 0.5
"""Default part of the available space that one user may stage, see `stage_user_limit`."""
STAGE_VHOST_SHARE = 0.75
"""Default part of the available space for one vhost, see `stage_vhost_limit`."""
STAGES_COUNT = 1_000
"""Most staged batches."""
STAGE_KEEP_SECONDS = 3_600
"""Time that a staged batch waits for its next piece or its commit: an hour."""
STAGE_LEFT_SECONDS = 300
"""Time that it waits if no connection stages for its publisher: five minutes."""
STAGE_LEFT_LOW_SECONDS = 30
"""The same while disk space is low."""
STAGE_ROWS_PER_LOOK = 1_024
"""Most rows of a staged batch that are published between two checks of the work budget."""
STAGE_SPECIAL_PER_LOOK = 256
"""Most of them that need more than a route, such as those with an expiration."""
STAGE_LOOK_BYTES = 262_144
"""Bytes of such rows, on average; one row may be larger."""
STAGE_ROW_UNITS = 2
"""Work units of such a row that is appended alone."""
STAGE_ROWS_PER_UNIT = 4
"""Rows that are appended together, as they differ in their bodies only, for one work unit."""
STAGE_JOINT_ROWS = 4_096
"""Most rows of a batch that is committed as a whole through the redo file."""
STAGE_FLIGHT_BYTES = 524_288
"""Bytes of such rows after which they are handed to the disk. Two such flights may gather before
that, and both are below WRITE_EARLY_BYTES: early writes block the event loop while the disk is
busy."""
STAGE_UNSYNCED_SEGMENTS = 16
"""Segments of a log that may have rows which are written and not synced: one later commit opens and
syncs all of them."""
STAGE_POLL_MS = 50
"""Interval at which the commit of a batch checks for free memory and disk space."""

# --- sessions of transitional 0-10 --------------------------------------------------------------
SESSION_LIFETIME_SECONDS = 86_400
"""Longest time that a session without a channel is kept."""
SESSIONS_KEPT = 16_384
"""Most sessions with a lifetime, or with a timeout in 0-10; later ones get none."""
SESSION_REPLAY_BYTES = 8_388_608
"""Frames kept for replay to a client; deliveries wait when it is full."""
REFUSED_RETRY_MS = 500
"""Interval at which a message rejected by a session is offered to other sessions."""
COMPLETION_RANGES = 8_192
"""Most intervals in one execution.complete."""
RECOVERED_XIDS = 28
"""Xids in one reply of a recovery scan: what fits into the smallest frame."""
