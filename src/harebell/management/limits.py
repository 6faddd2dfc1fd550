"""Limits of the HTTP API, control socket, metrics, statistics and backends."""

from __future__ import annotations

# --- backends of users ----------------------------------------------------------------------------
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
SCHEMA_SECONDS = 3.0
"""How long a schema registry may take for a connection, and for a part of its answer."""
BACKEND_CACHE_ENTRIES = 65_536
"""Logins and decisions that the cache of a backend holds."""

# --- commands, metrics, control socket ------------------------------------------------------------
COMMAND_ENTRY_UNITS = 4
"""Work units of an entry that a command examines, such as one queue of a list."""
LIST_AT_ONCE = 100
"""Items of a list in an answer of the control socket that are encoded at once; more in slices."""
METRICS_SAMPLES_PER_SLICE = 500
"""Samples of metrics that are gathered in one slice of a scrape; about 0.3 ms."""
METRICS_LINES_PER_SLICE = 4_000
"""Lines of metrics that are joined in one slice of a scrape; about 0.2 ms."""
METRICS_PART_BYTES = 65_536
"""Size from which gathered text of a scrape is sent (64 KiB)."""
METRICS_SCRAPES = 4
"""Scrapes with a sample per object that one address has in progress; more of them wait."""
AGE_UNACKED_SCANNED = 1_024
"""Most unacknowledged deliveries of a channel in which the first of each queue is searched."""
CONTROL_PATH_BYTES = 107
"""Longest path of the control socket: sun_path of unix(7) without its final zero."""
CONTROL_LINE_BYTES = 67_108_864
"""Longest request on the control socket: one with definitions (64 MiB)."""
CONTROL_CONNECTIONS = 32
"""Clients of the control socket without a request; the oldest make room for more."""
CONTROL_IDLE_SECONDS = 10.0
"""Time after which the broker shows a client that its next rows take longer."""
LAG_STEP_SECONDS = 0.005
"""Interval of measurements of `harebell status --lag`."""
LAG_MAX_SECONDS = 3600.0
"""Longest time that it measures."""

# --- HTTP API -------------------------------------------------------------------------------------
HTTP_ARGUMENTS_BYTES = 1_048_576
"""Largest body without a message or definitions: arguments fit into a frame, JSON is longer."""
HTTP_SWEEP_SECONDS = 0.5
"""Interval at which the times of connections over HTTP are checked."""
HTTP_HEAD_BYTES = 16_384
"""Longest request line and header fields, and what is read ahead of a connection."""
HTTP_HEAD_LINES = 256
"""Most lines of them."""
HTTP_EARLY_BODY_BYTES = 8_192
"""What is kept of a body before the login, and the largest body of a request without one."""
HTTP_PIECE_BYTES = 2_048
"""What is parsed at once of a body with many lines, which may be chunks of one byte each."""
HTTP_PIECE_LINES = 128
"""Lines above which a body has many."""
HTTP_LINGER_SECONDS = 1.0
"""Time that a client has to read why it is refused before its connection is closed."""
HTTP_STEPS_PER_TURN = 6
"""Steps of the connections of a port in a turn of the event loop; a request takes a few."""
HTTP_TURN_SECONDS = 0.001
"""Time that the connections of a port have in a turn of the event loop."""
HTTP_SHUTDOWN_SECONDS = 1
"""Time that requests have to end when the broker stops."""
HTTP_RETRY_SECONDS = 5
"""When a client is asked to come back while a store has no owner."""
HTTP_COMPRESS_BYTES = 860
"""Smallest answer that is compressed: a smaller one fits in one packet anyway."""
HTTP_COMPRESS_LEVEL = 1
"""Level of gzip: the fastest."""
HTTP_PACKED_BODIES = 128
"""Bodies that are kept compressed: those of the web interface and of the OpenAPI document."""
HTTP_PAGE_ROWS = 100
"""Default size of a page."""
HTTP_PAGE_MAX_ROWS = 500
"""Largest page."""
HTTP_SORT_RUN_ROWS = 256
"""Rows that are sorted at once; longer lists are merged from such runs."""
HTTP_SLICE_ROWS = 8
"""Rows of a list that are looked at in one slice while only what they are sorted by is made."""
JSON_PART_BYTES = 16_384
"""Size of the parts in which a long text of JSON is decoded."""
JSON_MEMBERS = 100_000
"""Members of one object; a frame of AMQP has room for a third of so many arguments."""
JSON_STRING_BYTES = 65_536
"""Most of a text of JSON that is searched for the next bracket or comma at once."""
JSON_SLICE_TOKENS = 64
"""Brackets and commas of a text of JSON that are looked at in one slice."""
JSON_DEPTH = 500
"""Most levels of a long text of JSON."""
HTTP_UNREAD_BYTES = 134_217_728
"""Unread answers of one user from which the user's further requests wait (128 MiB)."""
HTTP_ANSWERS = 16
"""Answers that are made for one user at a time; further requests for some wait."""

# --- statistics -----------------------------------------------------------------------------------
STATISTICS_PASSES = 20_000
"""Passes of the sampler whose times are kept: one every five seconds for 24 hours, and more."""
STATISTICS_HISTORIES = 2_000
"""Queues, exchanges, channels and connections with a history; further ones have rates only."""

# --- findings -------------------------------------------------------------------------------------
FINDINGS_SLICE_QUEUES = 32
"""Queues that are looked at for findings between two checks of the work budget."""
FINDINGS_SLICE_UNITS = 300
"""Work units of that: about 10 microseconds for each queue that has messages."""
FINDINGS_TRAILS = 5_000
"""Queues of a vhost with messages that are looked at; each takes about 1 KB of memory."""
FINDINGS_SHOWN = 20
"""Findings of a rule in a vhost that are told one by one; further ones are counted."""
RATE_SECONDS = 60.0
"""How long a rate counts in the steady rate that rules look at."""
USUAL_SECONDS = 86_400.0
"""How long an age of messages counts in the usual age of a queue (a day)."""
USUAL_TIMES = 5.0
"""How many times the usual age the age of a message is that is found."""
FULL_SHARE = 0.1
"""The share of a limit from which on a rule says when a queue or the memory reaches it."""
