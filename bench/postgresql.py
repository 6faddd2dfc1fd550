"""Measure the storage in PostgreSQL beside what PostgreSQL itself can do, in one run.

    python -m bench.postgresql                    everything, in about four minutes
    python -m bench.postgresql --seconds 2 --through 100000

Servers are those of the machine's package with the settings of a new cluster, on the disk of
temporary files. `copy` writes as many bytes as the broker has to, in rows as large as a window of
messages: once in one transaction, and once with a commit for each row, which is what confirms wait
for. `psql` is the time of one INSERT of a message by psql, one after the other, and at the pace of
the confirms that it is compared with; see `bench.postgresql_commits`. The rest are brokers with
their defaults: over a directory, over one server, and over one with a synchronous standby, with
bodies that are all the same, of JSON, and of random bytes; and a
quorum queue of RabbitMQ with three nodes on this machine, if RabbitMQ is installed. `meter` is the
time of a confirm of a transient message, which waits for nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import psycopg
from msgspec import structs

from bench.brokers import QUORUM_NODES, Broker, Harebell, RabbitQuorum, rabbitmq_is_installed
from bench.disk import record_bytes
from bench.frames import CONTENTS, Frames
from bench.measure import play
from bench.peer import BenchError, Peer
from bench.postgresql_commits import Times, by_libpq, by_psql, times_of
from bench.process import cpu_seconds
from bench.scenarios import SCENARIOS, WINDOW
from harebell.management.control.client import ask_command
from harebell.wire.v09 import methods as m
from tests.postgresql.brokers import StoreBroker, owner_of
from tests.postgresql.servers import PostgresServer, fresh_database

_DEFAULTS = {"shared_buffers": "128MB", "min_wal_size": "80MB", "max_wal_size": "1GB"}
_DATABASE = "bench"
_PARTS = ("server", "directory", "alone", "size", "fail-over", "drain", "standby", "quorum")
_LEASE_MS = 3_000
"""The default of `storage_lease_ms`."""
_RATE = 1_000
_QUEUES, _IN_EACH = 100, 1_000
_COMMITS = 3_000
_SLOWEST = 20_000
"""Messages per second that any machine reaches."""
_MIB = 1024 * 1024

Figures = dict[str, float]


class OverPostgresql:
    """A broker over PostgreSQL, as the scenarios want one.

    Args:
        broker: it serves.
        name: what it is called.
        start_seconds: how long it took until it served.
    """

    def __init__(self, broker: StoreBroker, name: str, start_seconds: float) -> None:
        self.broker = broker
        self.name = name
        self.port = broker.port
        self.start_seconds = start_seconds

    @property
    def pid(self) -> int:
        """The process."""
        return self.broker.pid

    def stop(self) -> None:
        """End it and remove its files."""
        self.broker.remove()


def main(arguments: Sequence[str]) -> None:
    """Measure, and print a line for each figure."""
    options = _options(arguments)
    figures: Figures = {}
    with _server() as server:
        for part in options.parts:
            figures |= _measured(part, server, options)
    for name in ("c128w", "c1kw"):
        for above, below in (("alone", "copy"), ("alone", "copy_commits"), ("standby", "alone")):
            one, other = figures.get(f"{above}_{name}"), figures.get(f"{below}_{name}")
            if one and other:
                figures[f"{above}_{name}_of_{below}"] = one / other
    for name in ("alone", "standby"):
        one, other = figures.get(f"{name}_p50_ms"), figures.get(f"{name}_psql_paced_p50_ms")
        if one and other:
            figures[f"{name}_p50_of_psql_paced"] = one / other
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n")


def _measured(part: str, server: PostgresServer, options: argparse.Namespace) -> Figures:
    if part == "server":
        return _server_alone(server, options.seconds)
    if part == "directory":
        return _directory(options.seconds)
    if part == "quorum":
        return _quorum(options.seconds)
    if part == "size":
        return _size(server, options.through)
    if part == "fail-over":
        return {"fail_over_s": _new_owner(server, StoreBroker.kill, "fail-over")}
    if part == "drain":
        return {"drain_s": _new_owner(server, _drain, "drain")}
    if part == "alone":
        figures = _commits(server, "alone", options.seconds / 2)
        with _over(server, "alone") as broker:
            return figures | _loads(broker, "alone", options.seconds, server=server)
    standby = server.standby("standby1", settings=_DEFAULTS)
    server.requires_standby("standby1")
    figures = _commits(server, "standby", options.seconds / 2)
    with _over(server, "standby", "--durability=replicated") as broker:
        figures |= _loads(broker, "standby", options.seconds, server=server)
    server.requires_standby()
    standby.stop()
    return figures


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.postgresql")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each load")
    parser.add_argument(
        "--through", type=int, default=1_000_000, help="messages through the queue of `size`"
    )
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS, help="what to run")
    parser.add_argument("--json", help="file to write the figures to")
    return parser.parse_args(arguments)


def _shown(name: str, value: float, unit: str) -> float:
    digits = 2 if unit in ("ms", "us") else 1
    print(f"{name:<46} {value:>14,.{digits}f} {unit}", flush=True)
    return value


@contextmanager
def _server() -> Iterator[PostgresServer]:
    with PostgresServer(settings=_DEFAULTS, below=Path(tempfile.gettempdir())) as server:
        yield server


@contextmanager
def _over(server: PostgresServer, name: str, *flags: str) -> Iterator[Broker]:
    with (
        fresh_database(server, _DATABASE),
        StoreBroker(name, server.url(_DATABASE), flags, lease_ms=_LEASE_MS) as broker,
    ):
        seconds = broker.wait_until_it_serves()
        yield OverPostgresql(broker, f"over PostgreSQL, {name}", seconds)


# --- PostgreSQL without a broker -----------------------------------------------------------------


def _server_alone(server: PostgresServer, seconds: float) -> Figures:
    figures = {}
    with fresh_database(server, _DATABASE), psycopg.connect(server.url(_DATABASE)) as connection:
        connection.execute("CREATE TABLE t (number bigint PRIMARY KEY, content bytea)")
        connection.execute("ALTER TABLE t ALTER COLUMN content SET STORAGE EXTERNAL")
        connection.commit()
        for name in ("c128w", "c1kw"):
            # Random, so that nothing can be compressed.
            row = os.urandom(record_bytes(SCENARIOS[name]) * WINDOW)
            for commits in (False, True):
                connection.execute("TRUNCATE t")
                connection.commit()
                rate = _copied(connection, row, seconds / 2, commits=commits)
                key = f"copy_commits_{name}" if commits else f"copy_{name}"
                figures[key] = _shown(key, rate * WINDOW, "messages/s")
    return figures


def _copied(
    connection: psycopg.Connection[tuple[object, ...]],
    row: bytes,
    seconds: float,
    *,
    commits: bool,
) -> float:
    """Rows per second of COPY in the binary format."""
    statement = "COPY t (number, content) FROM STDIN (FORMAT binary)"
    begin, number = time.monotonic(), 0
    while number == 0 or time.monotonic() < begin + seconds:
        with connection.cursor().copy(statement) as copy:
            copy.set_types(["int8", "bytea"])
            while True:
                copy.write_row((number, row))
                number += 1
                if commits or time.monotonic() > begin + seconds:
                    break
        connection.commit()
    return number / (time.monotonic() - begin)


def _commits(server: PostgresServer, name: str, seconds: float) -> Figures:
    """One commit without a broker, one after the other and at the pace of the confirms."""
    paced = int(seconds * _RATE)
    figures: Figures = {}
    for key, what, times in (
        (f"{name}_psql", "psql, one after the other", by_psql(server, _COMMITS)),
        (f"{name}_psql_paced", "psql, 1,000/s", by_psql(server, paced, _RATE)),
        (f"{name}_libpq_paced", "libpq, 1,000/s", by_libpq(server, paced, _RATE)),
    ):
        figures |= _shown_times(key, f"{name}, {what}", times)
    return figures


def _shown_times(key: str, what: str, times: Times) -> Figures:
    return {
        f"{key}_p50_ms": _shown(f"{what}, p50", times.p50, "ms"),
        f"{key}_p99_ms": _shown(f"{what}, p99", times.p99, "ms"),
    }


# --- brokers -------------------------------------------------------------------------------------


def _directory(seconds: float) -> Figures:
    broker = Harebell()
    try:
        return _loads(broker, "directory", seconds)
    finally:
        broker.stop()


def _quorum(seconds: float) -> Figures:
    if not rabbitmq_is_installed():
        print("RabbitMQ is not installed: no figures of a quorum queue", flush=True)
        return {}
    broker = RabbitQuorum()
    try:
        _check_members(broker)
        return _loads(broker, "quorum", seconds, queue_type="quorum")
    finally:
        broker.stop()


def _check_members(broker: RabbitQuorum) -> None:
    """Check that what is measured is replicated."""
    name = "bench.members"
    peer = Peer(broker.port, lambda *_: None)
    arguments = {"x-queue-type": "quorum"}
    peer.call(m.QueueDeclare(name, durable=True, arguments=arguments), m.QueueDeclareOk)
    members = broker.members_of(name)
    peer.call(m.QueueDelete(name), m.QueueDeleteOk)
    peer.close()
    if members != QUORUM_NODES:
        raise BenchError(f"a quorum queue has {members} members that run, not {QUORUM_NODES}")


def _loads(
    broker: Broker,
    name: str,
    seconds: float,
    *,
    queue_type: str = "",
    server: PostgresServer | None = None,
) -> Figures:
    figures = {}
    # The log in PostgreSQL is compressed, and elsewhere contents make no difference.
    for each, contents in product(("c128w", "c1kw"), ("same",) if server is None else CONTENTS):
        scenario = structs.replace(SCENARIOS[each], queue_type=queue_type, contents=contents)
        before, clients = 0.0 if server is None else cpu_seconds(server.pid), _clients_cpu()
        found = play(broker, scenario, seconds)
        key = f"{name}_{each}" if contents == "same" else f"{name}_{each}_{contents}"
        figures[key] = _shown(key, found.messages_per_second or 0.0, "messages/s")
        if server is not None and found.messages:
            for what, used in (
                ("broker", (found.us_per_message or 0.0) / 1e6 * found.messages),
                ("postgresql", cpu_seconds(server.pid) - before),
                ("clients", _clients_cpu() - clients),
            ):
                share = used * 1e6 / found.messages
                figures[f"{key}_{what}_us"] = _shown(f"{key}, CPU of {what}", share, "us")
    times = _confirm_latency(broker.port, seconds, queue_type)
    figures |= _shown_times(name, f"{name}, confirm", times)
    if server is not None:
        meter = _confirm_latency(broker.port, seconds / 2, queue_type, persistent=False)
        figures |= _shown_times(f"{name}_meter", f"{name}, meter", meter)
    return figures


def _clients_cpu() -> float:
    """Seconds of the processes that have ended, which are those of clients."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _confirm_latency(
    port: int, seconds: float, queue_type: str, *, persistent: bool = True
) -> Times:
    """Milliseconds from when a publish is due to its confirm, at 1,000 messages per second."""
    peer = Peer(port, lambda *_: None)
    arguments = {"x-queue-type": queue_type} if queue_type else {}
    declare = m.QueueDeclare("bench.latency", durable=True, arguments=arguments)
    peer.call(declare, m.QueueDeclareOk)
    peer.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    frames = Frames("", "bench.latency", 128, persistent=persistent, batch=1)
    count = int(seconds * _RATE)
    sent: list[float] = []
    times: list[float] = []
    begin = time.monotonic()
    while len(times) < count:
        now = time.monotonic()
        due = begin + len(sent) / _RATE
        if len(sent) < count and now >= due:
            sent.append(due)
            peer.socket.sendall(frames.numbered(len(sent), 0, 1))
            continue
        wait = max(0.0, due - now) if len(sent) < count else 1.0
        if select.select([peer.socket], [], [], wait)[0]:
            peer.read()
            now = time.monotonic()
            times += [(now - each) * 1_000 for each in sent[len(times) : peer.confirmed]]
    peer.call(m.QueueDelete("bench.latency"), m.QueueDeleteOk)
    peer.close()
    return times_of(times)


def _size(server: PostgresServer, through: int) -> Figures:
    """What the database grows by when many messages pass through one queue."""
    scenario = SCENARIOS["c128w"]
    seconds = min(5.0, through / _SLOWEST)
    with _over(server, "size") as broker:
        before = _database_bytes(server)
        messages, largest = 0, 0
        while messages < through:
            messages += play(broker, scenario, seconds).messages or 0
            largest = max(largest, _database_bytes(server) - before)
        cleaned = server.execute(
            "SELECT coalesce(sum(n_dead_tup), 0), coalesce(sum(autovacuum_count), 0)"
            " FROM pg_stat_user_tables WHERE relname LIKE 'log%'",
            _DATABASE,
        )[0]
    return {
        "through_messages": _shown("through one queue", messages, "messages of 128 B"),
        "through_mib": _shown("the database grew by at most", largest / _MIB, "MiB"),
        "dead_rows": _shown("dead rows of the log", float(str(cleaned[0])), ""),
        "autovacuums": _shown("autovacuums of the log", float(str(cleaned[1])), ""),
    }


def _database_bytes(server: PostgresServer) -> int:
    return int(str(server.execute(f"SELECT pg_database_size('{_DATABASE}')")[0][0]))


def _drain(owner: StoreBroker) -> None:
    ask_command(owner.data_dir, "cluster.drain", {})


def _new_owner(server: PostgresServer, end: Callable[[StoreBroker], object], what: str) -> float:
    """Seconds from the end of the owner of many messages until a client is served again.

    Args:
        server: a server.
        end: ends the ownership of a broker.
        what: a name for that.
    """
    names = [f"bench.fail-over.{number}" for number in range(_QUEUES)]
    with fresh_database(server, _DATABASE):
        url = server.url(_DATABASE)
        with StoreBroker("one", url, lease_ms=_LEASE_MS) as one:
            one.wait_until_it_serves()
            with StoreBroker("two", url, lease_ms=_LEASE_MS) as two:
                _fill(one.port, names)
                _until(lambda: two.has_logged("standing by"))
                # It reads along; the last of it takes a moment. The owner has to know it, too.
                time.sleep(1.0)
                begin = time.monotonic()
                end(one)
                owner_of([two])
                served = time.monotonic() - begin
                _use(two.port, names[-1])
                seconds = time.monotonic() - begin
                peer = Peer(two.port, lambda *_: None)
                for name in names:
                    found = peer.call(m.QueueDeclare(name, passive=True), m.QueueDeclareOk)
                    expected = _IN_EACH + (name == names[-1])
                    if found.message_count != expected:
                        raise BenchError(f"{name}: {found.message_count} of {expected} messages")
                peer.close()
    _shown(f"{what} until it answers", served, "s")
    return _shown(f"{what} until it has confirmed", seconds, "s")


def _until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not happened():
        if time.monotonic() > until:
            raise BenchError("the other broker does not stand by")
        time.sleep(0.01)


def _fill(port: int, names: Sequence[str]) -> None:
    peer = Peer(port, lambda *_: None)
    peer.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    for at, name in enumerate(names, start=1):
        peer.call(m.QueueDeclare(name, durable=True), m.QueueDeclareOk)
        frames = Frames("", name, 128, persistent=True, batch=_IN_EACH)
        peer.socket.sendall(frames.numbered(0, 0, _IN_EACH))
        while peer.confirmed < at * _IN_EACH:
            peer.read()
    peer.close()


def _use(port: int, name: str) -> None:
    """Publish, and consume: both are answered."""
    received: list[bytes] = []
    peer = Peer(port, lambda _lane, _tag, body: received.append(body))
    peer.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    peer.socket.sendall(Frames("", name, 128, persistent=True, batch=1).numbered(0, 0, 1))
    while not peer.confirmed:
        peer.read()
    peer.call(m.BasicQos(0, 1), m.BasicQosOk)
    peer.call(m.BasicConsume(name, "c"), m.BasicConsumeOk)
    while not received:
        peer.read()
    # Without an acknowledgement it goes back when this connection ends.
    peer.close()


if __name__ == "__main__":
    main(sys.argv[1:])
