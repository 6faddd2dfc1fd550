"""Brokers over one store: which one serves, and how the store goes from one to another."""

from __future__ import annotations

import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from harebell.client.blocking import connect
from harebell.client.errors import AMQPError
from harebell.server.control.client import ControlError, ask_command
from tests.patience import eventually
from tests.ports import free_port
from tests.postgresql.cluster import Member
from tests.postgresql.servers import PostgresServer
from tests.running import running_broker

PAUSE_SECONDS = 1.0


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


def test_the_pause_of_a_drain_is_short(pair: tuple[Member, Member]) -> None:
    one, two = pair
    _publish(one, b"first")
    pauses = []
    for owner, other in ((one, two), (two, one)):
        other.wait("standby")
        assert eventually(lambda: _is_known(other.name, owner))  # noqa: B023  # called here
        began = time.monotonic()
        owner.ask("cluster.drain")
        # Before that, it would pass a client on to the broker that is being drained.
        other.wait("running")
        _publish(other, b"next")
        pauses.append(time.monotonic() - began)
    # On a machine with much else to do, one of them may take longer.
    assert min(pauses) < PAUSE_SECONDS, pauses


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
            three.ask("queues.list")
        url = f"http://127.0.0.1:{port}"
        assert eventually(lambda: _get(f"{url}/health/ready") == b'{"status":"ok"}')
        assert b"harebell_storage_owned 0" in _get(f"{url}/metrics")
        assert three.stop() == 0
    assert eventually(lambda: "three" not in str(one.ask("cluster.status")))


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bytes(answer.read())
    except OSError:
        return b""
