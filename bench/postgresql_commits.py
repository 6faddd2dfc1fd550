"""Commits of one message in PostgreSQL without a broker, for the latency of confirms beside them.

A confirm is measured at a pace, so commits are, too: processes that sleep between two commits take
longer for each than processes that commit without a break. psql says how long each statement took,
and parses each; `libpq` has the prepared statement of a broker.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from typing import NamedTuple

import psycopg

from bench.peer import BenchError
from tests.postgresql.servers import PostgresServer, fresh_database, programs

_DATABASE = "bench"
_MESSAGE_BYTES = 200
_SETTLE_SECONDS = 0.2


class Times(NamedTuple):
    """Milliseconds of half of the commits, and of 99 of 100 of them."""

    p50: float
    p99: float


def times_of(found: list[float]) -> Times:
    """Return the times of commits.

    Args:
        found: the milliseconds of each.
    """
    found.sort()
    return Times(found[len(found) // 2], found[len(found) * 99 // 100])


def by_psql(server: PostgresServer, commits: int, rate: int = 0) -> Times:
    """Return how long commits of one message take, as psql counts them.

    Args:
        server: a server.
        commits: how many.
        rate: commits per second; 0 for one after the other.

    Raises:
        BenchError: psql does not say so.
    """
    insert = f"INSERT INTO t VALUES (decode(repeat('5a', {_MESSAGE_BYTES}), 'hex'));\n".encode()
    with (
        fresh_database(server, _DATABASE),
        subprocess.Popen(
            [str(programs() / "psql"), "-q", "-X", server.url(_DATABASE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # The time has a decimal point.
            env={**os.environ, "LC_ALL": "C"},
        ) as psql,
    ):
        assert psql.stdin is not None
        psql.stdin.write(b"CREATE TABLE t (content bytea);\n\\timing on\n")
        psql.stdin.flush()
        time.sleep(_SETTLE_SECONDS)
        if not rate:
            psql.stdin.write(insert * commits)
        begin = time.monotonic()
        for number in range(commits if rate else 0):
            time.sleep(max(0.0, begin + number / rate - time.monotonic()))
            psql.stdin.write(insert)
            psql.stdin.flush()
        said = psql.communicate()[0].decode()
    found = [float(each) for each in re.findall(r"Time: ([\d.]+) ms", said)]
    if len(found) != commits:
        raise BenchError(f"psql: {said}")
    return times_of(found)


def by_libpq(server: PostgresServer, commits: int, rate: int) -> Times:
    """Return how long commits of one message take by the statement of a broker.

    Args:
        server: a server.
        commits: how many.
        rate: commits per second.

    Raises:
        BenchError: a statement fails.
    """
    found = []
    with (
        fresh_database(server, _DATABASE),
        psycopg.connect(server.url(_DATABASE), autocommit=True) as link,
    ):
        link.execute("CREATE TABLE s AS SELECT 7::bigint AS epoch")
        link.execute("CREATE TABLE t (number bigint PRIMARY KEY, epoch bigint, content bytea)")
        link.pgconn.prepare(
            b"append",
            b"INSERT INTO t (number, epoch, content) SELECT $1::bigint, epoch, $2::bytea FROM s"
            b" WHERE epoch = $3::bigint",
        )
        content = os.urandom(_MESSAGE_BYTES)
        begin = time.monotonic()
        for number in range(commits):
            time.sleep(max(0.0, begin + number / rate - time.monotonic()))
            sent = time.monotonic()
            result = link.pgconn.exec_prepared(
                b"append", [b"%d" % number, content, b"7"], [0, 1, 0]
            )
            if result.command_tuples != 1:
                raise BenchError(f"libpq: {result.error_message.decode()}")
            found.append((time.monotonic() - sent) * 1_000)
    return times_of(found)
