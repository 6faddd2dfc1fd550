"""Limits of the data source and sink of Spark, with units and reasons."""

from __future__ import annotations

from harebell.base.limits import FRAME_MAX_BYTES

# --- Spark ----------------------------------------------------------------------------------------
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
PREFETCH_MAX = 65_535
"""Largest prefetch-count of a consumer (basic.qos has a short)."""
SPARK_LOG_SECONDS = 10.0
"""Time that Spark has to log the first micro-batch of a run, before it is taken to be logged."""
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
SPARK_LEASE_SECONDS = 86_400.0
"""Default time that the lease of a query outlives its connection: a driver may crash at night."""
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
SPARK_SERVER_LOOK_SECONDS = 5.0
"""How often the server of `harebell spark start` looks whether it was used."""
SPARK_SERVER_START_SECONDS = 180.0
"""Time that it has to start."""
SPARK_SERVER_STOP_SECONDS = 60.0
"""Time that it has to end."""
SPARK_MEMORY_BYTES = 1_610_612_736
"""Memory that a session on this machine takes, with its Python processes."""
MASTER_ANSWER_SECONDS = 5.0
"""Time that the master of a cluster has to take a connection from `harebell spark doctor`."""

# --- pipelines ------------------------------------------------------------------------------------
SPARK_OUTAGE_SECONDS = 3600.0
"""Age from which the note of an outage is of processes that have died."""
SPARK_HEADER_BYTES = FRAME_MAX_BYTES // 2
"""Most bytes of the headers of a row that Spark writes: they fit a frame with its properties."""
