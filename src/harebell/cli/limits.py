"""Limits of the command line, with units and reasons."""

from __future__ import annotations

# --- Spark ----------------------------------------------------------------------------------------
HISTORY_LINES = 1_000
"""Lines that a shell remembers."""
LAST_RESULT_ROWS = 10_000
"""Most rows that a shell keeps for `\\last`."""
WATCH_SECONDS, WATCH_SECONDS_MIN, WATCH_SECONDS_MAX = 2.0, 0.1, 86_400.0
"""How long `\\watch` waits between two times."""
SPARK_SERVER_IDLE_SECONDS = 1_800.0
"""Time without a statement after which the server of `harebell spark start` ends."""
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
BAD_DAY_SECONDS = 60.0
"""How long `harebell demo --bad-day` waits until all that it has planted is found."""
BAD_DAY_LOOK_SECONDS = 1.0
"""How often it looks what was found."""
BAD_DAY_TRANSACTION_BYTES = 104_857_600
"""Size of each of its open transactions, below the limit of the broker (100 MiB)."""

# --- pipelines ------------------------------------------------------------------------------------
LAKE_EXPIRE_AGE = "7d"
"""Age of what `harebell lake expire` removes, by default: that of Delta's vacuum."""
LAKE_EXPIRE_SECONDS_MIN = 3600.0
"""Least age of it: a micro-batch that is being written has files that no version has yet."""

# --- the store ------------------------------------------------------------------------------------
EXIT_INTERRUPTED = 130
"""Exit code of the command line after Ctrl-C: 128 and the number of SIGINT, as in shells."""
