"""Brokers over one store: which one serves, and how the store goes from one to another."""

from __future__ import annotations

import re
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from harebell.client.blocking import Connection, connect
from harebell.client.errors import AMQPError
from harebell.management.control.client import ControlError, ask_command
from tests.patience import SECONDS, eventually
from tests.ports import free_port
from tests.postgresql.cluster import Member
from tests.postgresql.servers import PostgresServer
from tests.relay import relay
from tests.running import running_broker

LONG_LEASE_MS = 70_000
"""Longer than anything is waited for."""
CLOSING_LEASE_MS = 24_000
"""15 % of it are left for closing connections: more than a machine stands still."""


@pytest.fixture
def pair(postgresql: PostgresServer, database: str) -> Iterator[tuple[Member, Member]]:
    """An owner and a broker that stands by."""
    url = postgresql.url(database)
    with ExitStack() as stack:
        one = stack.enter_context(Member(url, "one"))
        one.wait("running")
        two = stack.enter_context(Member(url, "two"))
        two.wait("standby")
        assert eventually(lambda: len(one.ask("cluster.status")) == 2)
        yield one, two


def _publish(member: Member, body: bytes) -> None:
    with connect(member.amqp) as connection, connection.channel(confirms=True) as channel:
        channel.declare_queue("jobs", durable=True)
        channel.publish(body, routing_key="jobs", delivery_mode=2)


def _is_known(name: str, owner: Member) -> bool:
    return any(each["name"] == name and each["running"] for each in owner.ask("cluster.status"))


def _take(member: Member) -> bytes:
    with connect(member.amqp) as connection, connection.channel() as channel:
        found = channel.get("jobs", no_ack=True)
        assert found is not None
        return bytes(found.body)


def _read_until_it_ends(connection: Connection) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        connection.pump(0.5)


def test_a_drained_owner_hands_the_store_over_and_stands_by(pair: tuple[Member, Member]) -> None:
    one, two = pair
    _publish(one, b"first")
    with connect(one.amqp) as before:
        one.ask("cluster.drain")
        two.wait("running")
        # Through the drained broker, whose port has never closed.
        _publish(one, b"second")
        with pytest.raises(AMQPError, match="320"), before.channel() as channel:
            channel.declare_queue("jobs", durable=True)
    one.wait("standby")
    assert [_take(two), _take(one)] == [b"first", b"second"]
    wanted = {"one": "standby", "two": "owner"}
    assert eventually(
        lambda: {each["name"]: each["state"] for each in two.ask("cluster.status")} == wanted
    )


def test_a_broker_that_stands_by_lets_the_owner_run_commands(pair: tuple[Member, Member]) -> None:
    one, two = pair
    assert eventually(lambda: bool(_listed(two)))
    # A long request is decoded in slices.
    arguments = {f"x-unknown-{number}": number for number in range(2_000)}
    two.ask("queues.declare", name="made", durable=True, arguments=arguments)
    _publish(one, b"first")
    assert [row["name"] for row in two.ask("queues.list")] == ["jobs", "made"]
    with pytest.raises(ControlError, match="no queue 'none' in vhost '/'"):
        two.ask("queues.purge", name="none")
    # It is about a process, so it says which one is meant.
    with pytest.raises(ControlError, match="this broker stands by: 'one' owns the store"):
        two.ask("config.effective")
    one.kill()
    two.wait("running")
    assert [row["name"] for row in two.ask("queues.list")] == ["jobs", "made"]


def _listed(member: Member) -> list[str]:
    try:
        return [row["name"] for row in member.ask("vhosts.list")]
    except ControlError:
        return []


def test_an_owner_knows_how_far_a_broker_that_stands_by_is_behind(
    postgresql: PostgresServer, database: str
) -> None:
    url = postgresql.url(database)
    with ExitStack() as stack:
        one = stack.enter_context(Member(url, "one", health_interval=500)).wait("running")
        two = stack.enter_context(Member(url, "two")).wait("standby")

        def lag() -> tuple[int, float] | None:
            rows = [each for each in one.ask("cluster.status") if each["name"] == "two"]
            return (rows[0]["behind_bytes"], rows[0]["behind_seconds"]) if rows else None

        def is_behind() -> bool:
            known = lag()
            return known is not None and known[0] > 256 and known[1] > 0

        _publish(one, b"first")
        assert eventually(lambda: lag() == (0, 0.0))
        two.process.send_signal(signal.SIGSTOP)
        # The bytes of the log are compressed.
        _publish(one, bytes(range(256)) * 400)
        assert eventually(is_behind)
        assert eventually(lambda: len(one.ask("health.findings")) == 1)
        (found,) = one.ask("health.findings")
        assert found["rule"] == "standby"
        assert re.fullmatch(
            r"it does not run, and cannot take over store 1; "
            r"it is [\d,]+ bytes and \d+ (second|minute)s? behind",
            found["why"],
        )
        two.process.send_signal(signal.SIGCONT)
        assert eventually(lambda: lag() == (0, 0.0))
        assert [each["behind_bytes"] for each in one.ask("cluster.status")] == [None, 0]


def test_a_store_of_an_earlier_version_gets_what_it_lacks(
    postgresql: PostgresServer, database: str
) -> None:
    with Member(postgresql.url(database), "one") as one:
        one.wait("running")
    for table, column in (("node", "number"), ("store", "load")):
        postgresql.execute(f"ALTER TABLE harebell.{table} DROP COLUMN {column}", database)
    with Member(postgresql.url(database), "one") as one:
        one.wait("running")
        assert _is_known("one", one)


def test_a_drain_does_not_wait_for_the_end_of_a_lease(
    postgresql: PostgresServer, database: str
) -> None:
    url = postgresql.url(database)
    with ExitStack() as stack:
        one, two = (
            stack.enter_context(Member(url, name, storage_lease_ms=LONG_LEASE_MS)).wait(state)
            for name, state in (("one", "running"), ("two", "standby"))
        )
        _publish(one, b"first")
        for owner, other in ((one, two), (two, one)):
            other.wait("standby")
            assert eventually(lambda: _is_known(other.name, owner))  # noqa: B023  # called here
            owner.ask("cluster.drain")
            other.wait("running")
            _publish(other, b"next")


def test_sigterm_of_the_owner_hands_the_store_over(pair: tuple[Member, Member]) -> None:
    one, two = pair
    _publish(one, b"kept")
    one.process.send_signal(signal.SIGTERM)
    two.wait("running")
    assert one.process.wait(60) == 0
    assert _take(two) == b"kept"
    assert eventually(lambda: [each["name"] for each in two.ask("cluster.status")] == ["two"])


def test_a_store_moves_to_the_broker_that_is_named(
    postgresql: PostgresServer, database: str, pair: tuple[Member, Member]
) -> None:
    one, two = pair
    with Member(postgresql.url(database), "three") as three:
        three.wait("standby")
        assert eventually(lambda: len(one.ask("cluster.status")) == 3)
        with pytest.raises(ControlError, match="no broker 'four' stands by"):
            one.ask("cluster.move", name="four")
        one.ask("cluster.move", name="three")
        three.wait("running")
        assert two.state == "standby"


def test_a_store_does_not_move_to_its_owner(pair: tuple[Member, Member]) -> None:
    one, _ = pair
    with pytest.raises(ControlError, match="broker 'one' owns store 1 already"):
        one.ask("cluster.move", name="one")
    assert one.state == "running"


def test_a_signal_that_comes_while_a_standby_becomes_the_owner_ends_it(
    pair: tuple[Member, Member],
) -> None:
    one, two = pair
    one.kill()
    assert eventually(lambda: "this broker owns the store" in two.log)
    two.process.send_signal(signal.SIGTERM)
    assert two.process.wait(60) == 0


def test_a_standby_whose_port_is_in_use_says_so(postgresql: PostgresServer, database: str) -> None:
    with Member(postgresql.url(database), "one") as one:
        one.wait("running")
        with Member(postgresql.url(database), "two", port=one.port) as two:
            assert two.process.wait(60) == 1
            assert "is in use already" in two.log
        assert one.state == "running"


def test_an_owner_that_cannot_reach_the_database_says_so_to_its_clients_and_stands_by(
    postgresql: PostgresServer, database: str
) -> None:
    with (
        relay(postgresql.port) as between,
        Member(
            postgresql.url(database, port=between.port), "one", storage_lease_ms=CLOSING_LEASE_MS
        ) as one,
    ):
        one.wait("running")
        with connect(one.amqp) as connection:
            between.silent = True
            with pytest.raises(AMQPError, match=r"320.*the store has another owner"):
                _read_until_it_ends(connection)
        assert eventually(lambda: "its lease could not be renewed" in one.log)
        between.silent = False
        assert eventually(lambda: one.log.count("this broker owns the store") > 1)
        one.wait("running")


def test_an_owner_without_a_successor_keeps_its_store(
    postgresql: PostgresServer, database: str
) -> None:
    with Member(postgresql.url(database), "one") as one:
        one.wait("running")
        with pytest.raises(ControlError, match="no other broker stands by"):
            one.ask("cluster.drain")
        one.ask("app.stop")
        with pytest.raises(ControlError, match="not removed from here"):
            one.ask("app.reset")


def test_a_broker_that_was_gone_before_a_claim_counts_as_gone_after_it(
    postgresql: PostgresServer, database: str
) -> None:
    with ExitStack() as stack:
        one, two = (
            stack.enter_context(Member(postgresql.url(database), name)).wait(state)
            for name, state in (("one", "running"), ("two", "standby"))
        )
        assert eventually(lambda: _is_known("two", one))
        two.kill()
        # It counts as running for a few seconds, so the store is given back, and nobody takes it.
        one.ask("cluster.drain")
        released = "SELECT 1 FROM harebell.store WHERE released"
        assert eventually(lambda: postgresql.execute(released, database))
        # Until it is gone, the store has another owner, who renews its lease.
        claimed = "owner = 'other', epoch = epoch + 1, released = false, drained = false"
        postgresql.execute(f"UPDATE harebell.store SET {claimed}", database)

        def gone() -> bool:
            postgresql.execute("UPDATE harebell.store SET beat = beat + 1", database)
            rows = {row["name"]: row["running"] for row in one.ask("cluster.status")}
            return rows.get("two") is False

        one.wait("standby")
        assert eventually(gone)
        postgresql.execute("UPDATE harebell.store SET released = true", database)
        assert eventually(lambda: one.log.count("this broker owns the store") > 1)
        one.wait("running")
        assert not _is_known("two", one)
        with pytest.raises(ControlError, match="no other broker stands by"):
            one.ask("cluster.drain")


def test_a_drain_does_not_wait_for_a_commit_that_hangs(
    postgresql: PostgresServer, pair: tuple[Member, Member]
) -> None:
    one, two = pair
    _publish(one, b"confirmed")
    assert eventually(lambda: _is_known("two", one))
    with (
        connect(one.amqp) as connection,
        postgresql.hanging("INSERT INTO %log_0000000001%"),
    ):
        channel = connection.channel()
        channel.publish_nowait(b"never confirmed", routing_key="jobs", delivery_mode=2)
        connection.flush()
        # The commit is on its way.
        assert eventually(lambda: one.overview()["messages_ready"] == 2)
        one.ask("cluster.drain")
        two.wait("running")
        one.wait("standby")
        assert eventually(lambda: "the database has no room, or does not answer" in one.log)
    assert _take(two) == b"confirmed"


def test_a_broker_that_does_not_reach_the_database_does_not_say_who_runs(
    postgresql: PostgresServer, database: str
) -> None:
    with relay(postgresql.port) as between:
        url = postgresql.url(database, port=between.port)
        with (
            Member(postgresql.url(database), "one").wait("running") as one,
            Member(url, "two").wait("standby") as two,
        ):
            for each in (one, two):
                assert eventually(lambda: len(each.ask("cluster.status")) == 2)  # noqa: B023
            between.close()
            assert eventually(lambda: two.overview()["trouble"])
            with pytest.raises(ControlError, match="the store cannot be used: PostgreSQL at"):
                two.ask("cluster.status")
            assert [row["name"] for row in one.ask("cluster.status")] == ["one", "two"]


def test_a_broker_with_a_data_directory_has_no_cluster() -> None:
    with running_broker() as broker:
        assert ask_command(broker.data_dir, "cluster.status", {}) == []
        with pytest.raises(ControlError, match="the store is in the data directory"):
            ask_command(broker.data_dir, "cluster.drain", {})


def test_a_broker_with_the_name_of_the_owner_does_not_start(
    postgresql: PostgresServer, database: str
) -> None:
    with Member(postgresql.url(database), "one") as one:
        one.wait("running")
        with Member(postgresql.url(database), "one") as other:
            assert other.process.wait(60) == 1
            assert "set node_name" in other.log


def test_a_standby_ends_though_the_database_does_not_answer() -> None:
    with PostgresServer() as server:
        server.create_database("slow")
        with (
            Member(server.url("slow"), "one").wait("running"),
            Member(server.url("slow"), "two").wait("standby") as two,
        ):
            server.pause()
            try:
                assert two.stop() == 0
            finally:
                server.resume()


def test_a_standby_says_what_it_is_and_ends_in_good_order(
    postgresql: PostgresServer, database: str, pair: tuple[Member, Member]
) -> None:
    one, _ = pair
    port = free_port()
    with Member(postgresql.url(database), "three", metrics_port=port) as three:
        three.wait("standby")
        assert three.overview()["storage"]["owner"] == "one"
        assert {each["name"] for each in three.ask("cluster.status")} >= {"one", "two"}
        with pytest.raises(ControlError, match="stands by: 'one' owns the store"):
            three.ask("config.effective")
        url = f"http://127.0.0.1:{port}"
        assert eventually(lambda: _get(f"{url}/health/ready") == b'{"status":"ok"}')
        assert b"harebell_storage_owned 0" in _get(f"{url}/metrics")
        assert three.stop() == 0
    assert eventually(lambda: "three" not in str(one.ask("cluster.status")))


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return bytes(answer.read())
    except OSError:
        return b""
