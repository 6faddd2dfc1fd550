"""What queues do, they do whichever version of AMQP a peer speaks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from harebell.client.blocking import Channel, connect
from harebell.client.message import Delivered
from tests.interop.matrix import SPOKEN, published
from tests.patience import SECONDS, eventually
from tests.running import RunningBroker, command, environment, running_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    """One broker for all versions."""
    with running_broker() as started:
        yield started


@pytest.fixture(params=SPOKEN)
def channel(request: pytest.FixtureRequest, broker: RunningBroker) -> Iterator[Channel]:
    """A channel in each version."""
    with connect(broker.address(), version=request.param) as connection:
        yield connection.channel()


@pytest.fixture
def name(channel: Channel) -> str:
    """A name for a queue that only this test and version use."""
    return f"features.{channel.connection.url.version}"


def fetched(channel: Channel, queue: str) -> Delivered:
    """The next message of a queue, once there is one."""
    found: list[Delivered] = []

    def there() -> bool:
        message = channel.get(queue, no_ack=True)
        if message is not None:
            found.append(message)
        return message is not None

    assert eventually(there), f"no message comes to {queue}"
    return found[0]


def with_letters(channel: Channel, name: str, **arguments: object) -> tuple[str, str]:
    """A queue, and the queue that its dead letters go to."""
    letters = f"{name}.letters"
    channel.declare_queue(letters, durable=True)
    given = {
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": letters,
        **{key.replace("_", "-"): value for key, value in arguments.items()},
    }
    channel.declare_queue(name, durable=True, arguments=given)
    return name, letters


def test_a_rejected_message_is_dead_lettered(channel: Channel, name: str) -> None:
    queue, letters = with_letters(channel, f"{name}.rejected")
    with published(channel):
        channel.publish(b"bad", routing_key=queue, headers={"a": "b"}, delivery_mode=2)
    # In 0-8 the other channel has become transactional, and so would be the reject.
    message = channel.connection.channel().get(queue)
    assert message is not None
    message.reject(requeue=False)
    letter = fetched(channel, letters)
    assert letter.body == b"bad"
    assert letter.headers["a"] == "b"
    assert letter.headers["x-first-death-reason"] == "rejected"


@pytest.mark.parametrize("where", ["queue", "message"])
def test_expired_messages_are_dead_lettered(channel: Channel, name: str, where: str) -> None:
    arguments = {"x_message_ttl": 1} if where == "queue" else {}
    queue, letters = with_letters(channel, f"{name}.{where}", **arguments)
    with published(channel):
        if where == "message":
            channel.publish(b"old", routing_key=queue, expiration="1")
        else:
            channel.publish(b"old", routing_key=queue)
    letter = fetched(channel, letters)
    assert (letter.body, letter.headers["x-first-death-reason"]) == (b"old", "expired")


def test_higher_priorities_come_first(channel: Channel, name: str) -> None:
    queue = f"{name}.priority"
    channel.declare_queue(queue, durable=True, arguments={"x-max-priority": 5})
    with published(channel):
        for priority in (1, 5, 3):
            channel.publish(b"%d" % priority, routing_key=queue, priority=priority)
    assert [fetched(channel, queue).body for _ in range(3)] == [b"5", b"3", b"1"]


def test_a_stream_is_read_from_its_beginning_as_often_as_one_likes(
    channel: Channel, name: str
) -> None:
    queue = f"{name}.stream"
    channel.declare_queue(queue, durable=True, arguments={"x-queue-type": "stream"})
    with published(channel):
        for number in range(3):
            channel.publish(b"%d" % number, routing_key=queue)
    for _ in range(2):
        reader = channel.connection.channel()
        messages = reader.consume(
            queue, prefetch=10, arguments={"x-stream-offset": "first"}, timeout=SECONDS
        )
        bodies = []
        for message in messages:
            bodies.append(message.body)
            assert int(message.headers["x-stream-offset"]) == len(bodies) - 1
            message.ack()
            if len(bodies) == 3:
                break
        assert bodies == [b"0", b"1", b"2"]
        reader.close()


def test_a_policy_counts_for_queues_of_every_version(
    broker: RunningBroker, channel: Channel, name: str
) -> None:
    queue = f"{name}.policy"
    channel.declare_queue(queue, durable=True)
    done = subprocess.run(
        [
            *(command(), "policies", "set", name, f"^{queue}$", '{"max-length": 1}'),
            *("--apply-to", "queues", "--data-dir", str(broker.data_dir)),
        ],
        env=environment(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with published(channel):
        for number in range(3):
            channel.publish(b"%d" % number, routing_key=queue)
    assert fetched(channel, queue).body == b"2"
    assert channel.get(queue) is None
