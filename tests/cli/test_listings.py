"""What a running broker has, listed; and what an operator purges, deletes and closes there."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from harebell.admin.catalog import NOUNS
from harebell.base.errors import HarebellError
from harebell.client.blocking import connect
from tests.cli.conftest import done, error_of, listed, run
from tests.patience import eventually
from tests.running import RunningBroker, running_broker

LISTED = ("queues", "exchanges", "bindings", "connections", "channels", "consumers")
COLUMNS = {noun: NOUNS[noun].commands["list"].columns for noun in LISTED}


def test_everything_is_listed_with_all_its_columns() -> None:
    with running_broker() as broker, connect(broker.address()) as connection:
        channel = connection.channel()
        channel.declare_exchange("x", "topic", durable=True)
        channel.declare_queue("q", durable=True, arguments={"x-max-priority": 5})
        channel.declare_queue("mine", exclusive=True)
        channel.bind_queue("q", "x", "a.#", arguments={"k": 1})
        channel.publish(b"m", routing_key="q")
        channel.publish(b"m", routing_key="q")
        assert channel.get("q") is not None
        channel.consume("mine", prefetch=7, tag="t")
        done(broker, "policies", "set", "p", "^q", '{"durability": "os", "max-length": 9}')
        found = {noun: listed(broker, noun) for noun in COLUMNS}
        for noun, rows in found.items():
            assert rows, noun
            for row in rows:
                assert sorted(row) == sorted(COLUMNS[noun])
        mine, q = found["queues"]
        (one,) = found["connections"]
        assert (q["type"], q["durable"], q["arguments"]) == ("classic", True, {"x-max-priority": 5})
        assert (q["policy"], q["durability"], q["operator_policy"]) == ("p", "os", "")
        assert q["effective_policy_definition"] == {"durability": "os", "max-length": 9}
        assert (q["messages_ready"], q["messages_unacknowledged"], q["messages"]) == (1, 1, 2)
        assert (mine["exclusive"], mine["owner"]) == (True, one["name"])
        assert one["name"].endswith(f" -> 127.0.0.1:{broker.port}")
        assert (one["user"], one["vhost"], one["state"]) == ("guest", "/", "running")
        assert one["client_properties"]["capabilities"]["basic.nack"] is True
        (opened,) = [row for row in found["channels"] if row["consumer_count"]]
        assert opened["name"] == f"{one['name']} ({opened['number']})"
        assert (opened["confirm"], opened["messages_unacknowledged"]) == (True, 1)
        (consumer,) = found["consumers"]
        assert (consumer["consumer_tag"], consumer["queue_name"]) == ("t", "mine")
        assert (consumer["prefetch_count"], consumer["ack_required"]) == (7, True)
        assert consumer["channel"] == opened["name"]
        bound = [row for row in found["bindings"] if row["source_name"] == "x"]
        assert [(row["routing_key"], row["arguments"]) for row in bound] == [("a.#", {"k": 1})]
        assert {row["name"] for row in found["exchanges"]} >= {"", "amq.topic", "x"}


def test_a_list_has_the_columns_and_the_vhost_that_are_asked_for() -> None:
    with running_broker() as broker, connect(broker.address()) as connection:
        connection.channel().declare_queue("q")
        done(broker, "vhosts", "add", "v")
        assert done(broker, "queues", "list", "messages", "name").splitlines() == [
            "messages  name",
            "0         q",
        ]
        assert json.loads(done(broker, "queues", "list", "name", "--json")) == [{"name": "q"}]
        for noun in ("queues", "bindings", "connections", "channels", "consumers"):
            assert json.loads(done(broker, noun, "list", "--vhost", "v", "--json")) == []


def test_a_connection_is_closed_by_name_with_a_reason() -> None:
    with running_broker() as broker, connect(broker.address()) as other:
        mine = connect(broker.address(), properties={"connection_name": "mine"})
        channel = mine.channel()
        (closed,) = [
            row["name"]
            for row in listed(broker, "connections")
            if row["client_properties"].get("connection_name") == "mine"
        ]
        done(broker, "connections", "close", closed, "--reason", "too old")
        with pytest.raises(HarebellError, match=r"320.*CONNECTION_FORCED - too old"):
            channel.declare_queue("q")
        assert eventually(lambda: len(listed(broker, "connections")) == 1)
        other.channel().declare_queue("", exclusive=True)
        assert done(broker, "connections", "close-all", "--user", "guest") == "1 connection closed"
        # The broker waits for the answer of a peer that it closes; this one answers when it reads.
        with pytest.raises(HarebellError, match="320"):
            other.channel()
        assert eventually(lambda: listed(broker, "connections") == [])


def test_a_queue_is_purged_and_deleted_and_its_consumers_are_told() -> None:
    with running_broker() as broker, connect(broker.address()) as connection:
        channel = connection.channel()
        for name in ("durable", "transient"):
            channel.declare_queue(name, durable=name == "durable")
            for _ in range(3):
                channel.publish(b"m", routing_key=name)
            said = done(broker, "queues", "purge", name)
            assert said == f"queue '{name}' in vhost '/' was purged of 3 messages"
            assert channel.declare_queue(name, passive=True).message_count == 0
            channel.publish(b"m", routing_key=name)
            refused = run(broker, "queues", "delete", name, "--if-empty")
            assert refused.returncode == 1
            assert f"queue '{name}' in vhost '/' not empty" in error_of(refused)
            said = done(broker, "queues", "delete", name)
            assert said == f"queue '{name}' in vhost '/' was deleted with 1 message"
        assert listed(broker, "queues") == []
        channel.declare_exchange("x", "fanout")
        assert done(broker, "exchanges", "delete", "x") == ("exchange 'x' in vhost '/' was deleted")


def test_messages_that_wait_are_counted_and_their_waiting_is_ended() -> None:
    with running_broker() as broker, connect(broker.address()) as connection:
        channel = connection.channel()
        arguments = {"x-retry-delays": [3_600_000]}
        channel.declare_queue("q", durable=True, arguments=arguments)
        for _ in range(2):
            channel.publish(b"m", routing_key="q")
        for _ in range(2):
            message = channel.get("q")
            assert message is not None
            message.reject(requeue=False)
        assert eventually(lambda: listed(broker, "queues")[0]["messages_delayed"] == 2)
        (row,) = listed(broker, "queues")
        assert (row["messages_ready"], row["messages_delayed"], row["messages"]) == (0, 2, 2)
        said = done(broker, "queues", "retry-now", "q")
        assert said == "queue 'q' in vhost '/' delivers 2 messages again now"
        again = channel.get("q")
        assert again is not None
        assert again.redelivered
        channel.declare_exchange(
            "later", "x-delayed-message", arguments={"x-delayed-type": "fanout"}
        )
        channel.publish(b"m", exchange="later", headers={"x-delay": 3_600_000})
        found = {each["name"]: each for each in listed(broker, "exchanges")}
        assert found["later"]["messages_delayed"] == 1
        assert found["amq.topic"]["messages_delayed"] == 0


def test_an_exclusive_queue_of_another_connection_is_purged_and_deleted() -> None:
    with running_broker() as broker, connect(broker.address()) as connection:
        connection.channel().declare_queue("mine", exclusive=True)
        done(broker, "queues", "purge", "mine")
        done(broker, "queues", "delete", "mine")
        assert listed(broker, "queues") == []


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("queues list nmae", 2, "queues have no column 'nmae': did you mean name?"),
        ("queues purge q9", 1, "no queue 'q9' in vhost '/': `harebell queues list` shows all"),
        ("queues delete q9 --vhost v", 1, "no vhost 'v'"),
        ("exchanges delete x9", 1, "no exchange 'x9' in vhost '/'"),
        ("exchanges delete amq.topic", 1, "deletion of system exchange 'amq.topic'"),
        ("connections close nobody", 1, "no connection 'nobody': `harebell connections list`"),
        ("connections close-all --user eve", 1, "no user 'eve'"),
        ("consumers list --vhost v", 1, "no vhost 'v'"),
    ],
)
def test_a_wrong_argument_is_named(
    broker: RunningBroker, line: str, code: int, sentence: str
) -> None:
    result = run(broker, *line.split())
    assert result.returncode == code, result.stderr
    assert sentence in error_of(result)


@pytest.fixture(scope="module")
def stocked() -> Iterator[RunningBroker]:
    """A broker with three queues."""
    with running_broker() as broker, connect(broker.address()) as connection:
        channel = connection.channel()
        for name, count, durable in (("b", 2, True), ("a", 10, False), ("c", 0, True)):
            channel.declare_queue(name, durable=durable, arguments={"x-max-length": 20})
            for _ in range(count):
                channel.publish(b"m", routing_key=name)
        channel.get("b")
        yield broker


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (["--sort", "messages"], ["c", "b", "a"]),
        (["--sort", "-messages"], ["a", "b", "c"]),
        (["--sort", "name"], ["a", "b", "c"]),
        (["--where", "messages > 1"], ["a", "b"]),
        (["--where", "messages>=2", "--where", "durable = yes"], ["b"]),
        (["--where", "durable != true"], ["a"]),
        (["--where", "name ~ ^[bc]$", "--sort", "-name"], ["c", "b"]),
        (["--where", "name=nothing"], []),
        (["--where", 'arguments ~ "x-max-length":20', "--sort", "name"], ["a", "b", "c"]),
    ],
)
def test_a_list_is_filtered_and_sorted_as_asked(
    stocked: RunningBroker, flags: list[str], names: list[str]
) -> None:
    rows = json.loads(done(stocked, "queues", "list", "--json", *flags))
    assert [row["name"] for row in rows] == names
    _, *lines = done(stocked, "queues", "list", "name", *flags).splitlines()
    assert lines == names


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--sort", "mesages"], "no column 'mesages': did you mean messages?"),
        (["--where", "mesages = 1"], "no column 'mesages': did you mean messages?"),
        (["--where", "jobs"], "--where 'jobs' is no condition: write COLUMN, one of = != <"),
        (["--where", "name ~ ("], "in the regular expression"),
    ],
)
def test_a_filter_that_is_none_is_a_mistake_in_the_command_line(
    stocked: RunningBroker, flags: list[str], said: str
) -> None:
    result = run(stocked, "queues", "list", *flags)
    assert result.returncode == 2
    assert said in result.stderr.decode()
