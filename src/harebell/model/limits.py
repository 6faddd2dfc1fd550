"""Limits of queues, exchanges, leases, streams and publishers, with units and reasons."""

from __future__ import annotations

# --- frames and connections -----------------------------------------------------------------------
FILTER_CHARACTERS = 16_384
"""Length of a filter over messages."""
FILTER_TERMS = 1_000
"""Columns and values of a filter."""
SELECTOR_CHARACTERS = 4_096
"""Length of the selector of a consumer, as in RabbitMQ: it is tested with every message."""
SELECTOR_TERMS = 200
"""Columns and values of a selector, as in RabbitMQ."""
SELECTORS_KEPT = 1_024
"""Compiled selectors that are kept for the next consumer with the same text."""
SELECTOR_RETURNED = 10_000
"""Messages behind the position of selective consumers that became ready again, or that an index
found; they look at them one by one, and with more of them the position moves back."""
SELECTORS_INDEXED = 4
"""Selectors of one queue that compare the same property with constants, from which on an index
finds those that may want a message."""
SELECTOR_LOOKS = 200
"""Messages that a selective consumer looks at in vain before it is another consumer's turn, as in
RabbitMQ's streams."""
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

# --- memory and back-pressure ---------------------------------------------------------------------
TRANSACTION_BYTES = 134_217_728
"""Most memory of the publishes of one transaction until its commit (128 MiB)."""
CHANGED_PROPERTIES_BYTES = 65_536
"""Largest properties, headers included, that consumers can give a message by changing them."""
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
DELAYED_AGAIN_MIN_MS = 1_000
"""Until a delayed message that could not be passed on is tried again, the first time; each time
after that as long as it is late already."""
DELAYED_AGAIN_MAX_MS = 60_000
"""The most of it."""
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
LETTER_UNITS = 25
"""Work units of publishing a dead letter or a message whose delay is over, or of changing one."""
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
REHEARSAL_SLICE_BINDINGS = 500
"""Bindings that `harebell explain` looks at in one slice of work."""
REHEARSAL_SHOWN_BINDINGS = 100
"""Most bindings of an exchange that it shows."""
DEATH_NAMES_KEPT = 1_024
"""Names of headers of which it is known whether they tell of an error."""
JOB_ACT_UNITS = 8
"""Work units of moving, copying or removing a message by a job."""
JOB_SLICE_UNITS = 400
"""Work units of one slice of a job."""
JOB_AHEAD_BYTES = 4_194_304
"""Octets that a job publishes before it waits for a commit (4 MiB)."""
JOB_WAIT_MS = 1_000
"""How often a job that waits while publishers have to wait looks whether it may go on."""
JOB_RANGES = 256
"""Ranges of positions of which a discard notes what it has moved: one, and one more for each time
that others publish to the queue meanwhile."""
JOBS_RUNNING = 16
"""Jobs that run at a time; those of one user are a quarter at most."""
JOBS_KEPT = 100
"""Jobs that have ended and are still listed."""
BROWSED_PER_TURN = 1_000
"""Messages that a browser is shown in one turn."""
GROUP_KEY_LETTERS = 255
"""Length to which ordering keys are compared."""
LAST_VALUE_KEY_BYTES = 255
"""Characters of a key of last values up to which it is kept as it is; of a longer one, a digest."""
INITIAL_VALUES_KEYS = 10_000
"""Routing keys of which an exchange with `qpid.ive` keeps the newest message; the oldest goes."""
SEQUENCE_AHEAD_NUMBERS = 1_000
"""Sequence numbers of an exchange that one record of its log allows: at most so many are left out
after a crash."""
LAST_VALUE_SEGMENT_BYTES = 1_048_576
"""Size from which the log of a queue of last values continues in a new segment (1 MiB): one message
that is never replaced keeps the whole segment, so the disk is bounded by the number of keys."""
ROUTE_CACHE_ENTRIES = 4_096
"""Routing keys whose destinations an exchange caches."""
SPARING_SCAN_MESSAGES = 1_000
"""Messages that a full queue searches for one to drop, past files."""
STAGED_FILES_COUNT = 10_000
"""Most staged files that are not published yet; one user may have a quarter."""
STAGED_CHUNK_BYTES = 65_536
"""Bytes of a staged file that are gathered before they are written."""
STAGED_KEEP_SECONDS = 86_400
"""Time that an unused staged file is kept: a day."""
QUERY_REPORTS = 1_000
"""Most queries that report in a vhost; those of one user are a quarter at most."""
QUERY_REPORT_MS = 86_400_000
"""Time after which a report is dropped (a day)."""

# --- the server -----------------------------------------------------------------------------------
WORK_SLICE_UNITS = 1_000
"""Units after which the next connection or operation of the same user is served."""
POLICY_UNITS = 8
"""Work units of applying the policies to a queue or an exchange, and one for each pattern that is
tried."""
REMOVED_QUEUE_UNITS = 20
"""Work units of deleting a queue."""
REMOVED_BINDING_UNITS = 3
"""Work units of removing a binding of a deleted object."""
REMOVED_AT_ONCE = 50
"""Queues, bindings or consumers that are removed at once; more are removed in slices."""
REQUEUED_SEARCHED = 4_096
"""Most requeued messages among which the oldest one is searched for its age."""
QUEUES_PER_TICK = 2_000
"""Queues whose periodic work, such as retention, is done in one tick (about 2 ms)."""

# --- statistics -----------------------------------------------------------------------------------
STATISTICS_QUEUE_SOURCES = 1_000
"""Exchanges that a queue has counters of; the oldest are forgotten."""

# --- pipelines ------------------------------------------------------------------------------------
TIER_CHARACTERS = 100
"""Longest name of a stream's tier."""

# --- the store ------------------------------------------------------------------------------------
STREAM_SEGMENT_MAX_BYTES = 3_000_000_000
"""Largest segment size of a stream that may be asked for, as in RabbitMQ."""
STREAM_SEGMENT_MIN_BYTES = 16_384
"""Smallest segment of a stream: every segment is a file."""
XID_PART_BYTES = 64
"""Length of the transaction's id in an xid, and of the branch's (X/Open XA)."""
BRANCHES = 65_536
"""Most branches of distributed transactions in a broker; one user may have a quarter."""
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

# --- leases ---------------------------------------------------------------------------------------
LEASE_GROUPS = 1_024
"""Most groups of one queue; one user may have a quarter."""
LEASE_OPEN_CLAIMS = 1_024
"""Most open claims of one group."""
LEASE_SINGLE_MESSAGES = 50_000
"""Most messages of one claim if they are read one by one."""
LEASE_KEYED_MESSAGES = 1_000_000
"""Most claimed messages of a queue with ordering keys."""
LEASE_CLAIM_RANGES = 4_096
"""Most position ranges of one claim."""
LEASE_TIMEOUT_MS = 86_400_000
"""Default timeout of the claims of a group without a holder: a day."""

# --- staged publishing, publishers ----------------------------------------------------------------
PUBLISHERS_COUNT = 40_000
"""Most publishers of one vhost; one user may have a quarter."""
PUBLISHER_KEPT_MS = 90 * 86_400_000
"""Time that a publisher was not used, after which its user's next one may replace it."""
STAGE_RUNS_COUNT = 64
"""Runs of a publisher that are kept, to refuse those that were replaced."""
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
"""Most staged batches; one user may have a quarter."""
STAGE_KEEP_SECONDS = 3_600
"""Time that a staged batch waits for its next piece or its commit: an hour."""
STAGE_LEFT_SECONDS = 300
"""Time that it waits if no connection stages for its publisher: five minutes."""
STAGE_LEFT_LOW_SECONDS = 30
"""The same while disk space is low."""
AHEAD_MESSAGES = 4_096
"""Ready messages of a queue with consumers from which a publisher may be slowed down for them: more
than they take in a few turns, and so few that the caches of the processor hold them."""
RUN_CONSUMERS = 32
"""Consumers from which a busy queue gives each a run of messages: the sockets of fewer are written
once for many messages anyway."""
RUN_MS = 50
"""Time in which a consumer took as many messages as it gets in a run, in milliseconds: the longest
that a message waits for those before it in its run."""
RUN_MESSAGES = 32
"""Most messages of a run: more would save nothing that counts."""
RUN_AFTER = 16
"""Messages of a burst that go to one consumer each, before any runs."""
RUN_GAP_MS = 10
"""Time without a message that ends a burst, in milliseconds: a turn of the broker may take that."""
RUN_LOOK_MS = 100
"""Time after which the length of runs is measured again, in milliseconds."""
