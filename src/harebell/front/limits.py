"""Limits of connections, channels and sessions, with units and reasons."""

from __future__ import annotations

# --- frames and connections -----------------------------------------------------------------------
CLIENT_PROPERTIES_VALUES = 100
"""Most values in the properties of a client, nested ones included: they are kept before its login
and take more memory than octets."""
HEARTBEAT_BYTES = 16
"""No heartbeat of any version is longer. What is as short, such as close-ok, keeps nothing."""
HEARTBEAT_SECONDS = 60
"""Heartbeat interval offered in connection.tune."""
HANDSHAKE_TIMEOUT_SECONDS = 10.0
"""Time from connecting to connection.open-ok."""
REFUSAL_PAUSE_SECONDS = 3.0
"""Delay before a connection that failed to authenticate is closed: slows down guessing."""
NEGOTIATION_FAILURES = 200
"""Handshake failures in a row from an address after which it is refused."""
NEGOTIATION_WINDOW_SECONDS = 60.0
"""Time within which these failures have to happen."""
NEGOTIATION_BLOCK_SECONDS = 10.0
"""Time for which such an address is refused."""
GUESSES_BLOCK_SECONDS = 600.0
"""Time for which another guess has to wait, after as many wrong passwords from an address or of a
user in that window."""
GUESS_SECONDS = 1.0
"""Time between two passwords of one user from one address then."""
GUESS_WAIT_SECONDS = 5.0
"""Longest time that a guess waits for that; more of them are refused for now. Less than the time
for the handshake, which is at least twice as long."""
GUESS_PROOF_SECONDS = 0.05
"""Time between two guesses at a user who has logged in from the address before, of which the right
password does not wait."""
NEGOTIATION_OFFENDERS = 4_096
"""Addresses whose failures are kept."""
ASSEMBLED_MAX_BYTES = 1_048_576
"""Longest control, command or header of AMQP 0-10, whatever number of frames it has (1 MiB)."""
SESSION_TIMEOUT_SECONDS = 86_400
"""Longest time that a session of AMQP 0-10 lives without a channel."""
REPLAY_BYTES = 16_777_216
"""Unconfirmed commands that such a session keeps; above, it gets no more deliveries."""

# --- messages -------------------------------------------------------------------------------------
MESSAGE_MAX_BYTES = 134_217_728
"""Largest message body accepted (128 MiB)."""
REPLIES_UNSENT_BYTES = 134_217_728
"""Unsent output of a connection above which direct replies to it are dropped (128 MiB)."""
CONSUMERS_PER_CHANNEL = 0
"""Most consumers on one channel; 0 is no limit."""
REFERENCES_PER_SESSION = 256
"""Most message bodies that one session sends in pieces at the same time (message.open)."""
REFERENCE_NAME_BYTES = 1_024
"""Longest name of such a body."""
CHECKPOINTS_BYTES = 268_435_456
"""Memory for bodies whose sending was interrupted (256 MiB); one user may use a quarter."""
CHECKPOINT_COST_BYTES = 1_024
"""Memory that is counted for such a body besides its octets."""
CHECKPOINT_SECONDS = 3_600
"""Time that such a body is kept."""

# --- memory and back-pressure ---------------------------------------------------------------------
CONNECTION_KEPT_BYTES = 268_435_456
"""Memory that one connection may use for consumers, transactions and deliveries without
acknowledgement (256 MiB); the largest message that it receives or sends comes on top."""
CONSUMER_BYTES = 1_024
"""Memory that is counted for a consumer besides its arguments."""
CONSUMERS_PER_UNIT = 16
"""Consumers of which the memory is counted again in a work unit."""
UNACKED_BYTES = 64
"""Memory that is counted for a delivery without acknowledgement, besides its message."""
KEPT_CHECK_SECONDS = 5.0
"""Interval of checks of that memory."""
PACE_DELIVERIES = 32
"""Deliveries between two looks at a publisher from which it is slowed down for its consumers: with
fewer they are slow whatever it does."""
CREDIT_PACE_MS = 4
"""The longest time in which a link of AMQP 1.0 gets no credit for the sake of its consumers: they
take some thousand messages."""
CREDIT_PACE_LINKS = 64
"""Links that wait so at a time."""
OUTPUT_HIGH_BYTES = 1_048_576
"""Unsent output of a connection above which its consumers get no more deliveries."""
OUTPUT_STOP_BYTES = 4_194_304
"""Unsent output of a connection above which it is not read."""
BLOCKED_INPUT_BYTES = 16_777_216
"""Input of a blocked connection of AMQP 1.0 with which its transfers stop being read (16 MiB)."""
CONVERSIONS_KEPT_COUNT = 64
"""Converted property lists that are cached."""
CONVERSIONS_KEPT_BYTES = 131_072
"""Longest property list whose conversion is cached: that of a largest frame."""
HEADERS_BYTES = 122_880
"""Longest properties and headers of a message, in the form of AMQP 0-9-1 (120 KiB): they have to
fit into one frame there, with what the broker adds, such as the history of a dead letter."""
HEADERS_SHORT_BYTES = 12_288
"""Properties of other versions that are no longer need no look: an octet becomes nine at most."""
HEADERS_BYTES_PER_UNIT = 15
"""Bytes of the headers of 0-10 whose conversion takes a unit of work, about a microsecond."""
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

# --- the server -----------------------------------------------------------------------------------
WORK_TURN_UNITS = 8_000
"""Units of deferred work in one turn, for all users together."""
WORK_MIN_UNITS = 100
"""Units that closing a connection gets at once, whatever its user has spent."""
REMOVED_CONSUMER_UNITS = 2
"""Work units of removing a consumer of a closed channel."""
ENDED_CHANNEL_UNITS = 20
"""Work units of ending a channel or a session that has nothing."""
ARRIVAL_UNITS = 100
"""Work units of opening the connection that a protocol header asks for, and of answering it."""
REFUSED_AT_ONCE = 1
"""Deliveries that are rejected or requeued between two checks of the work budget: each may become a
dead letter, whose publisher chooses how long its history is."""
REQUEUED_AT_ONCE = 16
"""Deliveries that one method requeues at once, consumer by consumer as RabbitMQ does; more are
requeued in slices."""
COMPLETED_PER_STEP = 16
"""Deliveries that are acknowledged one by one between two checks of the work budget."""
SETTLED_AT_ONCE = 1_000
"""Deliveries that one method settles at once; more are settled in slices."""
RANGES_MAX = 8_191
"""Ranges of command numbers in one field of AMQP 0-10: the size has 16 bits, a range 8 octets."""
LINGER_SECONDS = 3.0
"""Time that the peer of a closed connection has to close its side."""
CHANNELS_PER_TICK = 4_000
"""Connections and channels in one piece of a round over all of them (about 2 ms)."""
TIMEOUT_MARKS = 32
"""Marks that a channel sets per ack timeout: its precision is this part of the timeout."""

# --- HTTP API -------------------------------------------------------------------------------------
LOGIN_SOURCES = 4_096
"""Addresses and users whose logins are counted."""

# --- statistics -----------------------------------------------------------------------------------
STATISTICS_CHANNEL_DETAILS = 1_000
"""Exchanges, and queues, that a channel has counters of; the oldest are forgotten."""
STATISTICS_SLICE_OBJECTS = 200
"""Objects, or counters of one, that the sampler looks at between two checks of the work budget."""

# --- staged publishing, publishers ----------------------------------------------------------------
PUBLISHER_REFUSED_COUNT = 65_536
"""Refused publishing ids of one publisher that it may send once more."""
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
STAGE_POLL_MS = 50
"""Interval at which the commit of a batch checks for free memory and disk space."""

# --- sessions of transitional 0-10 ----------------------------------------------------------------
ACCESS_TICKETS = 65_534
"""Most access tickets of versions before 0-9-1: their numbers have two octets. One user may have a
quarter."""
SESSION_LIFETIME_SECONDS = 86_400
"""Longest time that a session without a channel is kept."""
SESSIONS_KEPT = 16_384
"""Most sessions with a lifetime, or with a timeout in 0-10; later ones get none. One user may have
a quarter."""
SESSION_REPLAY_BYTES = 8_388_608
"""Frames kept for replay to a client; deliveries wait when it is full."""
REFUSED_RETRY_MS = 500
"""Interval at which a message rejected by a session is offered to other sessions."""
COMPLETION_RANGES = 8_192
"""Most intervals in one execution.complete."""
RECOVERED_XIDS = 28
"""Xids in one reply of a recovery scan: what fits into the smallest frame."""

# --- AMQP 1.0 -------------------------------------------------------------------------------------
SESSION_NUMBER_MAX = 65_535
"""Highest channel of a session: its number has two octets."""
LINKS_PER_SESSION = 256
"""Most links of one session, as in RabbitMQ."""
LINK_BYTES = 1_024
"""Memory that is counted for a link."""
LINK_CREDIT = 1_024
"""Deliveries that a publisher may send on one link before it gets credit again, and that may wait
for their outcome: enough for a commit to gather the messages of several milliseconds."""
DECODED_AT_ONCE_BYTES = 1_024
"""Bytes that a frame is decoded of for what a frame costs."""
DECODED_BYTES_PER_UNIT = 8
"""Bytes of a longer one that are decoded in a work unit."""
TRANSACTIONS_PER_SESSION = 64
"""Open transactions of one session."""
KEPT_LINK_SECONDS = 1_800
"""Longest time that deliveries of a link which is detached and not closed are kept for it: as long
as an attached one may leave them unsettled."""
RESUMED_UNITS = 25
"""Work units of a delivery that is sent again on a resumed link of 1.0."""
KEPT_LINK_DELIVERIES = 4_096
"""Most unsettled deliveries of a session of which a link that is detached keeps its own."""
KEPT_DELIVERIES = 65_536
"""Most deliveries that detached links of 1.0 keep; what is beyond goes back. One user may have a
quarter."""
MANAGEMENT_CREDIT = 8
"""Requests to the management node that one link may have on their way, as in RabbitMQ."""
MANAGEMENT_REQUEST_BYTES = 131_072
"""Longest request to the management node: as long as a declaration in a frame of other versions."""
MANAGEMENT_UNTAKEN_BYTES = 1_048_576
"""Bytes of answers that a client has not taken, with which no other request is served: one answer
may be larger."""
MANAGEMENT_BINDINGS = 10_000
"""Most bindings in one answer of the management node."""
MANAGEMENT_BINDING_UNITS = 1
"""Work units of looking at a binding."""
MANAGEMENT_SHOWN_UNITS = 12
"""Work units of one in an answer, and of the digest of its arguments."""
INCOMING_WINDOW = 2_048
"""Transfers that the peer of a session may send before the broker opens the window again; that many
may still arrive after memory has become short."""
IDLE_TIME_OUT_MIN_MS = 1_000
"""Shortest time in which a peer may want to hear something, as in RabbitMQ."""
FINISH_MS = 10_000
"""Time for messages that have come in part to end a shortage of memory that they alone cause, in
milliseconds: then those in AMQP 1.0 of the user who has most are dropped, and again each time."""
MODIFIED_BYTES = 16_384
"""Most bytes of annotations that one outcome can give a message."""
REASON_CHARACTERS = 1_024
"""Characters of the error of a rejected message that its history has."""
