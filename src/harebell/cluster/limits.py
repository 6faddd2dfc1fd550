"""Limits between the brokers of a cluster, with units and reasons."""

from __future__ import annotations

CONTROL_IMPORT_SECONDS = 600.0
"""Time that the command line waits until definitions are imported."""
KEEPALIVES_MAX = 127
"""The most unanswered keepalives that Linux lets a socket wait for (MAX_TCP_KEEPCNT)."""
STANDBY_LOOK_SECONDS = 0.1
"""The longest time between two looks of a standby at the store."""
STANDBY_END_SECONDS = 5.0
"""How long a standby that is told to end waits for an answer of PostgreSQL."""
LAG_SAMPLES = 500
"""Renewals of which an owner keeps where the log ended; of older ones it keeps fewer."""
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
CLUSTER_WORKING_SECONDS = 2.0
"""How often an owner that still works on a command says so."""
CLUSTER_SILENT_SECONDS = 10.0
"""Time without a byte after which an owner that runs a command counts as one that hangs."""
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
CLUSTER_METRICS_SECONDS = 4.0
"""How long a document of metrics waits for the next part of another worker: less than the 10 s that
Prometheus waits for the whole."""
BACKUP_SEGMENTS_PER_LINE = 1_000
"""Segments in one line between two workers that make a backup, which takes about a millisecond."""
CLUSTER_RESTART_SECONDS = 0.5
"""Pause before the process of a store that has ended is started again; it doubles each time."""
CLUSTER_RESTART_MAX_SECONDS = 10.0
"""The longest such pause."""
CLUSTER_STARTED_SECONDS = 60.0
"""A process that has run for so long begins again with the shortest pause."""
RELAY_CONNECT_SECONDS = 2.0
"""Time that the owner has to accept a connection that is passed on to it."""
RELAY_RETRY_SECONDS = 0.05
"""Time before the owner is tried again at first; it doubles each time."""
RELAY_RETRY_MAX_SECONDS = 1.0
"""The longest such time."""
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
HAND_OVER_BYTES = 24_576
"""What a client may send until connection.open is answered, in a cluster of several stores: all of
it is kept for the owner of the vhost. A larger `initial_frame_max` adds to it."""
WORKERS_PATIENCE_SECONDS = 5.0
"""How long a change waits for the other processes of a data directory: a start may take a while."""
WORKERS_SECRET_BYTES = 32
"""Random bytes by which these processes know each other."""
WORKERS_USERS_LOOK_SECONDS = 0.02
"""Pause between two looks for the users, for which the processes of other stores than 1 wait at the
start: many times less than the start itself."""
DIVISION_ROOM_BYTES = 1_048_576
"""Room on the disk, beside that for the definitions, below which errors of `harebell store split`
and `join` are those of a full disk (1 MiB): logs are renamed, and the rest takes a few pages."""
