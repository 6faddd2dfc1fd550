"""Every limit of the broker and the client: its name, its unit, its default, and one home.

Names end in the unit. A limit that a user may change is repeated, by the same name, in the
configuration (`harebell.server.config`), whose defaults come from here.
"""

from __future__ import annotations

# --- frames and connections ---------------------------------------------------------------------
FRAME_MAX_BYTES = 131_072
"""Largest frame offered in connection.tune, in octets, header and end octet included."""
FRAME_MIN_BYTES = 4_096
"""Smallest frame-max a client may ask for (AMQP 0-9-1 4.2.3, frame-min-size)."""
FRAME_FUDGE_BYTES = 8
"""Tolerance over frame-max for clients that forget to count the frame's own eight octets."""
FRAME_OVERHEAD_BYTES = 8
"""Octets of a frame that are not payload: type, channel, size, end."""
HANDSHAKE_FRAME_BYTES = 4_096
"""Largest frame accepted before connection.tune-ok, as with RabbitMQ 3.13."""
CHANNEL_MAX = 2_047
"""Highest number of channels per connection offered in connection.tune."""
HEARTBEAT_SECONDS = 60
"""Heartbeat interval offered in connection.tune."""
HANDSHAKE_TIMEOUT_SECONDS = 10.0
"""Time from connecting to connection.open-ok."""
UNAUTHENTICATED_CONNECTIONS = 4_096
"""Connections that have not logged in yet; one more is turned away."""
UNAUTHENTICATED_PER_ADDRESS = 1_024
"""The same from one address, behind which there may be many clients."""
CLOSE_TIMEOUT_SECONDS = 10.0
"""Time we wait for close-ok after sending connection.close."""
REFUSAL_PAUSE_SECONDS = 3.0
"""Pause before a connection that failed to log in is cut: slows down guessing."""
NEGOTIATION_FAILURES = 200
"""Exceptions in a row, before any connection is open, after which an address is turned away."""
NEGOTIATION_WINDOW_SECONDS = 60.0
"""Time within which they have to happen."""
NEGOTIATION_BLOCK_SECONDS = 10.0
"""Time that such an address is turned away."""
NEGOTIATION_OFFENDERS = 4_096
"""Addresses whose failures are remembered."""
PERMISSION_CACHE_ENTRIES = 1_024
"""Names whose permission is remembered, per user and vhost."""
PATTERN_CACHE_ENTRIES = 512
"""Patterns of permissions and policies that are kept ready to be searched for."""
PATTERN_STEPS = 5_000
"""Steps of a pattern that is followed in all ways at once; one with more is left to `re`."""
REPLY_TEXT_BYTES = 255
"""Longest reply text; a shortstr cannot carry more."""
NAME_BYTES = 255
"""Longest exchange, queue or routing-key name (a shortstr)."""
SEGMENT_FRAME_BYTES = 65_535
"""Largest frame offered in AMQP 0-10, whose frames have a size of two octets."""
SEGMENT_MAX_BYTES = 1_048_576
"""Largest control, command or header of AMQP 0-10 that is put together from frames."""
SESSION_TIMEOUT_SECONDS = 86_400
"""Longest that a session of AMQP 0-10 lives without a channel; it may ask for less."""
REPLAY_BYTES = 16_777_216
"""Octets of unconfirmed commands that such a session keeps; above, it gets no more deliveries."""
TABLE_DEPTH = 32
"""Deepest nesting of tables and arrays inside a field table."""
VOID_ARRAY_ITEMS = 1_024
"""Most values in an array of transitional 0-10 whose values take no octets."""

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
"""Message bodies that one session may send in pieces at the same time (message.open)."""
REFERENCE_NAME_BYTES = 1_024
"""Longest name of such a body."""
CHECKPOINTS_BYTES = 67_108_864
"""What is kept of bodies whose sending was interrupted, all together (64 MiB)."""
CHECKPOINT_SECONDS = 3_600
"""How long that is kept."""

# --- memory and back-pressure -------------------------------------------------------------------
OUTPUT_HIGH_BYTES = 1_048_576
"""Unsent output of a connection above which its consumers get no more deliveries."""
OUTPUT_STOP_BYTES = 4_194_304
"""Unsent output of a connection above which we stop reading from it."""
READ_BUFFER_BYTES = 262_144
"""Size of the one buffer that all connections are read through."""
SMALL_READ_BYTES = 16_384
"""Octets of it that are used while what is read may have to wait for another turn."""
MEMORY_HIGH_WATERMARK = 0.4
"""Share of the machine's memory that queued messages may take before publishers are blocked."""
MEMORY_LOW_SHARE = 0.9
"""Publishers are let go again when memory falls to this share of the high watermark."""
MESSAGE_OVERHEAD_BYTES = 192
"""What a queued message is counted beside its body and properties."""
HELD_AGAIN_BYTES = 24
"""What each further queue is counted that holds a message which is in memory anyway."""
SHARED_BODY_BYTES = 4096
"""Size from which a body is counted once that several messages have: copies of one another."""
SHARED_BY_QUEUES = 8
"""How many queues have to hold what comes to a transient queue for it to stay in memory."""
TRANSACTION_BYTES = 134_217_728
"""Memory that the publishes of one transaction take until its commit (128 MiB)."""
DELIVERY_LIMIT = 20
"""Failed deliveries of a message that a quorum queue puts up with, unless it says otherwise."""
DEAD_LETTERS_PER_TICK = 1_000
"""Dead letters that no queue took, of which one queue tries again at a time."""
DELAY_MAX_MS = 4_294_967_295
"""Longest delay of a message: 49 days. One that asks for more is not delayed, as with RabbitMQ."""
RETRY_DELAYS = 64
"""Most delays in `x-retry-delays`, and so the most times that a message is tried again."""
RELEASED_PER_TURN = 1_000
"""Delayed messages of one exchange that go on in one turn; the others follow in the next."""
COUNTED_PER_TURN = 5_000
"""Messages of one queue whose bodies are counted in one turn, when a limit of octets is new."""
TRIMMED_PER_TURN = 1_000
"""Messages that leave one queue in one turn because they are too many or too large together."""
LETTERS_PER_TURN = 200
"""Messages that leave one queue for a dead-letter exchange in one turn as they are too many."""
CHAINED_PER_TURN = 100
"""Dead letters that follow from one publish before full queues drop in turns what they get."""
REFUSED_PER_TURN = 1_000
"""Dead letters of refused messages that are sent in one turn; the others follow in the next."""
TRANSACTION_AT_ONCE = 200
"""Publishes and settlements of a transaction that take effect in one turn; more take several."""
TRANSACTION_SLICE = 16
"""Of them that one slice does, or reads, or writes."""
LETTER_UNITS = 25
"""What it counts to publish a dead letter, or a message whose delay is over."""
EXPIRED_PER_TURN = 1_000
"""Messages of one queue that expire in one turn; the others follow in the next."""
STREAM_RECENT_MESSAGES = 256
"""Messages that a stream with several consumers keeps for the others; a power of two."""
STREAM_RECENT_BODY_BYTES = 1_024
"""One with a larger body is read again for each."""
STREAM_SCAN_MESSAGES = 2_000
"""Messages that a stream's consumer with a filter passes over in one turn."""
STREAM_TRACKED_TAGS = 65_535
"""Consumer tags of which one stream keeps the offset."""
NO_LOCAL_FORGOTTEN = 1_024
"""Settled messages of which a queue with a no-local consumer still knows the connection."""
NO_LOCAL_RUNS = 65_536
"""Runs of messages in a stream that it remembers not to show to one no-local consumer."""
RECENT_HISTORY_MESSAGES = 20
"""Messages that a recent history exchange keeps, unless it says otherwise."""
GROUP_WAITING_MESSAGES = 100_000
"""Messages that a queue with ordering keys passes over, and remembers, as their keys are held."""
GROUP_SCAN_MESSAGES = 2_000
"""Messages that such a queue passes over in one turn."""
BROWSED_PER_TURN = 1_000
"""Messages that a browser is shown in one turn."""
GROUP_KEY_LETTERS = 255
"""Letters of an ordering key that tell it from others."""
ROUTE_CACHE_ENTRIES = 4_096
"""Routing keys whose destinations an exchange remembers."""
CONVERSIONS_KEPT_COUNT = 64
"""Property lists that were converted for peers of another protocol family and are remembered."""
CONVERSIONS_KEPT_BYTES = 131_072
"""The longest property list of which the conversion is remembered: that of a largest frame."""
DUMP_FRAME_BYTES = 1_048_576
"""The longest frame that `harebell dump` keeps to decode it; longer bodies are only counted."""

SPARING_SCAN_MESSAGES = 1_000
"""Messages that a queue which is too full looks through for one that may go, past files."""
FILE_DELIVERIES_COUNT = 5
"""Deliveries of a file without acknowledgement after which it is a dead letter (AMQP 0-8, file)."""
FILE_ASIDE_COUNT = 1_000
"""Files that a channel gave back for others, and that it is not delivered again."""
FILE_RETRY_MS = 100
"""How often a file that waits for room in a queue, or for another consumer, is looked at."""
STREAM_WINDOW_MESSAGES = 256
"""Packets that wait for a consumer which is slower than they come, unless it asks otherwise."""
STREAM_WINDOW_BYTES = 1_048_576
"""Octets of their bodies, unless it asks otherwise."""
RATE_SLACK_MS = 20
"""Time that a rate of transfer makes up for when a timer comes late."""
STREAM_RETRY_MS = 50
"""How often a consumer of packets whose socket takes nothing is looked at."""
STAGED_FILES_COUNT = 10_000
"""Files that are staged and not published yet; one more is refused."""
STAGED_CHUNK_BYTES = 65_536
"""Octets of a file that is being staged which are gathered before they are written."""
STAGED_KEEP_SECONDS = 86_400
"""Time that a staged file is kept without being continued or published: a day."""

BULK_ROWS = 16_384
"""Most rows in one batch of a bulk read, whatever is asked for."""
BULK_OCTETS = 2_097_152
"""Most octets of messages in it, but for a single larger message (2 MiB)."""
BULK_SCAN_BYTES = 4_194_304
"""What one bulk read looks at, with a filter that lets little through (4 MiB)."""
BULK_READS_PER_TURN = 4
"""Bulk reads that one connection is served in a turn, while its output has room."""
BULK_READS_WAITING = 1_024
"""Bulk reads that one connection may have under way."""

# --- client -------------------------------------------------------------------------------------
CLIENT_PREFETCH = 100
"""Unacknowledged messages that a consumer of the client takes ahead, by default."""
CLIENT_BUFFER_MESSAGES = 10_000
"""Messages read for consumers that do not take them, above which the client stops reading."""
REPLY_TIMEOUT_SECONDS = 10.0
"""Longest wait of a client for the reply to a request, by default."""
CLOSE_BLOCKED_SECONDS = 1.0
"""Time we wait for close-ok of a broker that has blocked us and so does not read."""
CLIENT_WRITE_BYTES = 65_536
"""Output that the blocking client gathers before it writes without being asked."""
ROWS_PER_PUBLISH_BYTES = 1_048_576
"""Octets of rows that become output in one go."""
BULK_READS_AHEAD = 4
"""Bulk reads that the client has under way at a time."""
PUBLISH_WINDOW = 10_000
"""Publishes of a bulk that wait for their confirm at the same time."""
RECOVERY_FIRST_SECONDS = 0.5
"""Longest delay before the first attempt to recover a connection."""
RECOVERY_MOST_SECONDS = 30.0
"""Longest delay between attempts to recover a connection."""

# --- the shell ----------------------------------------------------------------------------------
WORK_USER_UNITS = 4_000
"""Units of work, of about a microsecond each, that one user may cause in one turn."""
WORK_TURN_UNITS = 8_000
"""Units of work that was put off and is done in one turn, for all users together."""
WORK_SLICE_UNITS = 1_000
"""Units after which the next connection or operation of the same user has its turn."""
WORK_LEAST_UNITS = 100
"""Units that the end of a connection gets at once, whatever its user has spent."""
WORK_LOOK_UNITS = 16
"""Units after which the estimate of what was done is compared with the clock."""
POLICY_UNITS = 8
"""What it counts to bring a queue or an exchange in line with the policies."""
REMOVED_QUEUE_UNITS = 20
"""What it counts to delete a queue."""
REMOVED_BINDING_UNITS = 3
"""What it counts to remove a binding of what is deleted."""
REMOVED_CONSUMER_UNITS = 2
"""What it counts to remove a consumer of a channel that is over."""
REMOVED_AT_ONCE = 50
"""Queues, bindings or consumers that go at once with a connection; more go in slices."""
COMMAND_ENTRY_UNITS = 4
"""Units of work that an entry counts which a command looks at, such as one queue of a list."""
WORK_FRAME_UNITS = 2
"""What an ordinary frame, or a whole publish to one queue, counts."""
REFUSED_AT_ONCE = 16
"""Deliveries that one method refuses or gives back in one go: each may become a dead letter."""
SETTLED_AT_ONCE = 1_000
"""Deliveries that one method settles in one go; where it means more it is done in slices."""
WRITE_HIGH_BYTES = 65_536
"""Octets that a socket may keep us waiting with before its consumers are held back."""
WRITE_LOW_BYTES = 16_384
"""Octets below which they are served again."""
WRITE_PIECE_BYTES = 1_048_576
"""What of a longer output goes to a socket at a time (1 MiB); what it cannot send is copied."""
WRITE_PIECES_PER_TURN = 2
"""Such pieces that one connection writes before others have their turn."""
LONG_BODY_BYTES = 1_048_576
"""Body size from which frames are encoded when the socket takes them (1 MiB)."""
FULL_READS_PER_TURN = 4
"""Reads that fill the buffer which one socket gets before the others have their turn."""
WRITE_TURN_SECONDS = 0.004
"""Time in which connections are written in one turn; the others follow in the next."""
LINGER_SECONDS = 3.0
"""Time a closed connection's peer has to end its side before the socket is cut."""
TICK_SECONDS = 0.5
"""How often heartbeats and deadlines are looked at."""
TICK_LATE_SECONDS = 0.5
"""A tick that comes later than this shows that the process itself stood still meanwhile."""
CONSUMER_TIMEOUT_MS = 1_800_000
"""Time that a delivery may go without acknowledgement before its channel is closed."""
CONSUMER_TIMEOUT_MAX_MS = 315_360_000_000
"""The longest such time that can be configured: ten years."""
TIMEOUT_MARKS = 32
"""Marks that a channel's deliveries get over their timeout: it is kept to that share of itself."""
SHUTDOWN_SECONDS = 3.0
"""Time that clients have to read what is left when the broker stops, unless it is configured."""
SHUTDOWN_QUIET_SECONDS = 0.3
"""Time that they have to answer connection.close when they have read everything."""
SHUTDOWN_LOOK_SECONDS = 0.02
"""How often that is looked at."""
STORE_END_SECONDS = 3.0
"""Time that the last batches have to be written when the broker stops."""
COLLECT_YOUNG_OBJECTS = 5_000
"""New objects after which the collector of cycles looks at them, in about 1 ms."""
COLLECT_MIDDLE_COLLECTIONS = 10
"""Young collections after which it looks at all that has lived on since, in 5 to 10 ms."""
COLLECT_OLD_COLLECTIONS = 100_000
"""Middle collections after which it may look at everything: minutes of crowded turns, or more."""
HEAP_TRIM_BYTES = 67_108_864
"""Messages that went since memory was given back, after which the heap is trimmed (64 MiB)."""
HEAP_KEEP_BYTES = 16_777_216
"""Freed memory at the top of the heap that is kept for the next turn."""
HEAP_MAP_BYTES = 4_194_304
"""Size from which a buffer is mapped by itself and given back when it is freed."""
ACCEPTS_PER_TURN = 100
"""Connections that a TLS listener accepts at a time; the others follow in the next turn."""
ACCEPT_PAUSE_SECONDS = 1.0
"""Time that it accepts none when the system has no files or memory for more."""
BACKLOG_CONNECTIONS = 1_024
"""Connections that wait to be accepted."""
CONTROL_PATH_BYTES = 107
"""Longest path of the control socket: sun_path of unix(7) without its closing zero."""
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
"""Time that either side of the control socket waits for the other."""
LAG_STEP_SECONDS = 0.005
"""How often `harebell status --lag` looks whether the event loop is late."""
LAG_MOST_SECONDS = 3600.0
"""How long it looks at most."""
CONTROL_COMMAND_SECONDS = 60.0
"""Time that the command line waits until what it asked for is on disk."""
CONTROL_IMPORT_SECONDS = 600.0
"""Time that the command line waits until the broker has taken in definitions."""

# --- Spark --------------------------------------------------------------------------------------
SPARK_ROWS_PER_TRIGGER = 250_000
"""Most messages in one micro-batch, and unacknowledged, by default."""
SPARK_ROWS_PER_BATCH = 8_192
"""Rows of an Arrow record batch; Spark is fastest between 1,000 and 8,000."""
SPARK_ROWS_PER_BATCH_MOST = 65_536
"""Largest number of rows that may be asked for in one record batch."""
SPARK_BATCH_BYTES = 16_777_216
"""Octets of messages after which a record batch ends, however few rows it has."""
SPARK_CONSUMERS = 64
"""Consumers of one queue over plain AMQP; a prefetch that needs more of them is none."""
SPARK_ROWS_PER_PARTITION = 1_024
"""Fewer rows than this are not split into more partitions."""
COLUMN_BYTES = 2_000_000_000
"""Most octets in one column of a record batch: Arrow counts them with 31 bits."""
PREFETCH_MOST = 65_535
"""Largest prefetch-count of a consumer (basic.qos has a short)."""
SPARK_LONG_POLL_SECONDS = 0.2
"""Time that an idle query waits for a message before it answers Spark."""
SPARK_DOUBT_SECONDS = 0.2
"""Time after which the answer that a queue has neither messages nor consumers may mean that nobody
could be asked."""
SPARK_QUIET_SECONDS = 0.02
"""Pause in the deliveries after which a micro-batch begins."""
SPARK_GATHER_SECONDS = 1.0
"""Longest time that deliveries are gathered for one micro-batch, while they keep coming."""
SPARK_FETCH_TIMEOUT_SECONDS = 30.0
"""Time without an answer, a connection or an expected delivery after which a query fails."""
SPARK_CALLS_PER_TIMEOUT = 3
"""Calls that fit into a timeout of a query: one that is not answered is made again."""
SPARK_RECONNECT_SECONDS = 30.0
"""Time in which a write task has to get a lost connection back, by default."""
SPARK_RETRY_SECONDS = 0.2
"""Pause between two attempts to get a lost connection back."""
SPARK_KEPT_BYTES = 33_554_432
"""Most octets that a task keeps of what it has staged, for a broker that may lose it."""
SPARK_KEEP_SECONDS = 1.0
"""How often the connection is served while Spark works on a micro-batch."""
SPARK_LEASE_SECONDS = 300.0
"""Time that the lease of a query outlives its connection, by default."""
SPARK_IN_FLIGHT_MOST = 1_000_000
"""Largest number of rows of a write task that may wait for their confirm."""
SPARK_TXN_VERSION_MOST = 2**63 - 2
"""Largest txnVersion of a batch write."""
SPARK_PIECES_IN_FLIGHT = 8
"""Record batches of a write task that are on their way to the broker at a time."""
SPARK_COMMITTED_PER_SECOND = 10_000
"""Rows of a staged batch that a broker commits in a second at least, beside other work."""
SPARK_EXAMPLES = 3
"""Unroutable messages that an error shows."""
JAVA_ANSWER_SECONDS = 30.0
"""Time that Java has to say its version."""
SPARK_WARM_SECONDS = 600.0
"""Time that the class-data archive may take to be made."""
SPARK_MEMORY_BYTES = 1_610_612_736
"""Memory that a session on this machine takes, with its Python processes."""
MASTER_ANSWER_SECONDS = 5.0
"""Time that the master of a cluster has to take a connection from `harebell spark doctor`."""

# --- pipelines ----------------------------------------------------------------------------------
PIPELINE_FILE_BYTES = 1_048_576
"""Longest file that describes a pipeline."""
PIPELINE_NODES = 10_000
"""Most values in such a file, those that anchors repeat counted each time."""
PIPELINE_DEPTH = 20
"""Most values within each other there."""
PIPELINE_STOP_SECONDS = 60.0
"""Time that a pipeline may take to end its micro-batch when it is asked to stop."""
PIPELINE_POLL_SECONDS = 0.5
"""How often a running pipeline looks at its progress and writes its state."""
PIPELINE_BAD_ROWS = 100_000
"""Most bad rows of one micro-batch that are sent to a dead-letter exchange; more of them are a
wrong schema, and stop the pipeline."""
TAKEN_MESSAGES = 500_000
"""Most messages of a queue that a DELETE, MOVE or RETRY looks at: it holds them all meanwhile."""
TAKEN_BYTES = 536_870_912
"""Most octets of bodies that it holds."""
SETTLED_MESSAGES = 10_000
"""Messages that it settles in one transaction."""

# --- the store ----------------------------------------------------------------------------------
SEGMENT_BYTES = 8_388_608
"""Size from which a queue's log goes on in a new segment (8 MiB)."""
STREAM_SEGMENT_LEAST_BYTES = 16_384
"""Smallest segment that a stream may ask for: every segment is a file."""
STREAM_SEGMENT_BYTES = 67_108_864
"""The same for a stream (64 MiB)."""
WRITE_EARLY_BYTES = 2_097_152
"""What a log gathers before it writes without waiting for the next commit."""
TRANSIENT_SEGMENT_BYTES = 1_048_576
"""Size from which a transient log goes on in a new segment (1 MiB)."""
TRANSIENT_FIRST_BYTES = 65_536
"""Size from which a transient segment that is mostly settled is left behind."""
TRANSIENT_RESET_BYTES = 16_384
"""Size from which a transient segment is thrown away when everything in it is settled."""
TRANSIENT_SLICE_BYTES = 524_288
"""What of a transient segment with a large message is written at a time (512 KiB)."""
TRANSIENT_SLICE_UNITS = 400
"""Units of work that it counts: the copy into the memory of the system, and its pages."""
TRANSIENT_MEMORY_BYTES = 16_777_216
"""What a transient log keeps in memory before it writes full segments to disk (16 MiB)."""
SEEN_AHEAD = 65_536
"""How many positions ahead of the deliveries a log writes its mark of what was handed out."""
LARGE_RECORD_BYTES = 4_194_304
"""Body size from which a durable log gives a message a segment of its own, and never copies it."""
READ_FIRST_BYTES = 16_384
"""The first read of a log from disk."""
READ_MOST_BYTES = 262_144
"""What one read takes when a log is read in order."""
READ_HELD_BYTES = 67_108_864
"""What is kept, of all logs together, of what was read from disk; a larger message alone may be."""
READ_PLACES = 7
"""Places of a log that are read in order at the same time, beside the one read last."""
SCAN_WINDOW_BYTES = 4_194_304
"""What is read at a time when a log is opened."""
AHEAD_FROM_BYTES = 65_536
"""Size of a segment from which space is written ahead of its records."""
AHEAD_MOST_BYTES = 1_048_576
"""Most that is written ahead at a time: as much as the segment has, up to this (1 MiB)."""
AHEAD_WRITE_BYTES = 262_144
"""A commit with more than this for one log has no space written ahead: its sync is rare enough."""
PERFORM_MOST = 64
"""Writes of a commit that are done without a Python thread; one with more takes the long way."""
SYNC_TOGETHER_FILES = 8
"""From so many files on a commit syncs the whole file system at once, where it can be."""
REDO_KEEP_BYTES = 1_048_576
"""A redo file that grew larger than this for a transaction is emptied at once."""
LOG_EXCHANGE_LINES = 1_000
"""Lines of the log that wait to be published on the log exchange."""
LOG_DRAIN_SECONDS = 5
"""A start that is complete waits so long for its log lines before it says so."""
EXIT_INTERRUPTED = 130
"""Exit code of the command line after Ctrl-C: 128 and the number of SIGINT, as with shells."""
EXIT_DISK = 74
"""Exit code after a write or sync that failed: EX_IOERR of sysexits.h."""
GATHER_SECONDS = 0.001
"""Longest time that a commit waits for as many messages as the publishers have under way."""
FLUSH_SECONDS = 0.05
"""Longest time that changes without a waiting reply, such as acknowledgements, stay in memory."""
STALL_RETRY_SECONDS = 0.25
"""Pause between attempts to write to a disk that is full."""
RESERVE_BYTES = 16_777_216
"""Room on the disk that is kept for the moment at which nothing else is left."""
RESERVE_SHARE = 32
"""No more of the disk than one part in so many is kept for that."""
DISK_FREE_LIMIT_BYTES = 268_435_456
"""Free space below which publishers are blocked (256 MiB)."""
DURABILITY_INTERVAL_MS = 500
"""How often the disk is synced with durability "interval"."""
DURABILITY_INTERVAL_MAX_MS = 60_000
"""The longest such time that can be asked for: a minute."""
SEGMENT_MIN_BYTES = 65_536
"""Smallest segment that may be asked for."""
SEGMENT_MAX_BYTES = 1_073_741_824
"""Largest segment that may be asked for (1 GiB)."""
OPEN_FILES = 256
"""Segments kept open for reading, and as many for writing."""
STORE_FILES_SHARE = 8
"""One part in so many of what the process may have open is for each of them, if that is less."""
STORE_FILES_LEAST = 8
"""But no fewer than these."""
OTHER_FILES = 64
"""Open files that are neither of segments nor of connections, and some to spare."""
XID_PART_BYTES = 64
"""Length of the transaction's id in an xid, and of the branch's (X/Open XA)."""
BRANCHES = 65_536
"""Branches of distributed transactions that a broker knows at a time."""
BRANCH_BYTES = 134_217_728
"""Memory that the publishes of one branch take until they are prepared or committed (128 MiB)."""
BRANCH_SETTLED_MESSAGES = 1_000_000
"""Deliveries that one branch acknowledges."""
BRANCH_TIMEOUT_SECONDS = 60
"""How long a branch may take until it is prepared, where the client says nothing."""
BRANCH_TIMEOUT_MOST_SECONDS = 86_400
"""The longest time that a client may ask for: a day."""
BRANCH_REMEMBERED_SECONDS = 3_600
"""How long a branch that was rolled back is remembered: an hour."""

# --- leases -------------------------------------------------------------------------------------
LEASE_GROUPS = 256
"""Groups that one queue has at a time."""
LEASE_GROUP_KEPT_MS = 604_800_000
"""Time after which a group without claims that no connection holds is forgotten: seven days."""
LEASE_OPEN_CLAIMS = 1_024
"""Claims of one group that are neither committed nor released."""
LEASE_CLAIM_MESSAGES = 1_000_000
"""Messages that one claim has at most, whatever is asked for."""
LEASE_SINGLE_MESSAGES = 50_000
"""Messages that one claim has at most where they are looked at one by one."""
LEASE_KEYED_MESSAGES = 1_000_000
"""Messages of a queue with ordering keys above which nothing more of it can be claimed."""
LEASE_CLAIM_RANGES = 4_096
"""Runs of positions that one claim has at most."""
LEASE_TIMEOUT_MS = 86_400_000
"""How long the claims of a group without a holder wait, where the client says nothing: a day."""
LEASE_TIMEOUT_MOST_MS = 2_592_000_000
"""The longest such time that can be asked for: thirty days."""

# --- staged publishing, publishers --------------------------------------------------------------
PUBLISHERS_COUNT = 10_000
"""Publishers that one vhost remembers; the one that was idle for longest goes for a new one."""
PUBLISHER_REFUSED_COUNT = 65_536
"""Publishing ids of one publisher that may come once more because their messages were refused."""
STAGE_RUNS_COUNT = 64
"""Runs of a publisher that are remembered, to refuse those that another has replaced."""
STAGE_PIECE_BYTES = 67_108_864
"""Largest piece of a staged batch (64 MiB)."""
STAGE_FILE_BYTES = 67_108_864
"""Size from which staged pieces go on in another file (64 MiB): large ones take long to remove."""
STAGE_SWEEP_BYTES = 2_097_152
"""What is removed of such a file in one turn (2 MiB)."""
STAGE_USER_SHARE = 0.5
"""What one user may stage of the room for it, unless `stage_user_limit` says how much."""
STAGE_VHOST_SHARE = 0.75
"""What may be staged in one vhost, unless `stage_vhost_limit` says how much."""
STAGES_COUNT = 1_000
"""Batches that are staged at a time."""
STAGE_KEEP_SECONDS = 3_600
"""How long a staged batch waits for its next piece or its commit: an hour."""
STAGE_LEFT_SECONDS = 300
"""How long it waits when nobody is connected who stages for its publisher: five minutes."""
STAGE_LEFT_LOW_SECONDS = 30
"""The same while the disk is low."""
STAGE_ROWS_PER_LOOK = 256
"""Rows of a staged batch that are published before the budget of the turn is looked at."""
STAGE_ROW_UNITS = 2
"""Units of work that such a row counts."""
STAGE_JOINT_ROWS = 4_096
"""Rows of a batch up to which all of it goes through the redo file, in one commit of the disk."""
STAGE_FLIGHT_BYTES = 1_048_576
"""Octets of such rows after which the next ones wait for the disk; below WRITE_EARLY_BYTES, for to
write early keeps the loop waiting while the disk is busy."""
STAGE_POLL_MS = 50
"""How often the commit of a batch looks whether memory and disk have room again."""

# --- sessions of transitional 0-10 --------------------------------------------------------------
SESSION_LIFETIME_SECONDS = 86_400
"""Longest time that a session without a channel is kept, whatever its client asks for."""
SESSIONS_KEPT = 16_384
"""Most sessions with a lifetime, or with a timeout in 0-10; those opened beyond get none."""
SESSION_REPLAY_BYTES = 8_388_608
"""Frames kept for a client that may have to have them again; deliveries wait when it is full."""
REFUSED_RETRY_MS = 500
"""How often a message that a session rejected is offered to other sessions again."""
COMPLETION_RANGES = 8_192
"""Most intervals in one execution.complete."""
RECOVERED_XIDS = 28
"""Xids that one answer of a recovery scan tells of: what fits into the smallest frame."""
