"""Offsets that clients keep of a stream whose broker was restored, or has lost the end of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pika
import pytest

from harebell.client import blocking
from harebell.client.errors import PreconditionFailed, RecoveryFailed
from harebell.client.protocol.recovery import Recovery
from tests.patience import eventually
from tests.ports import free_port
from tests.robustness.lives import forget, life, segments, snapshot

QUEUE = "events"
STREAM = {"x-queue-type": "stream"}
OFFSET, ERAS = "x-stream-offset", "x-stream-eras"


def publish(channel: blocking.Channel, first: int, end: int) -> None:
    channel.declare_queue(QUEUE, durable=True, arguments=STREAM)
    for number in range(first, end):
        channel.publish(b"%d" % number, routing_key=QUEUE, persistent=True)


def read(channel: blocking.Channel, count: int, tag: str = "", **arguments: Any) -> list[int]:
    """The next messages of a consumer."""
    found: list[int] = []
    if count:
        with channel.consume(QUEUE, prefetch=10, tag=tag, arguments=arguments) as messages:
            for message in messages:
                found.append(int(message.body))
                message.ack()
                if len(found) == count:
                    break
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory with a stream of 30 messages."""
    data = tmp_path / "data"
    with life(data) as broker, blocking.connect(broker.address()) as connection:
        publish(connection.channel(), 0, 30)
    return data


@pytest.mark.parametrize(("ahead", "fresh"), [(0, 50), (1, 0), (20, 1), (20, 50)])
def test_an_offset_with_its_eras_is_refused_with_counts_if_the_broker_has_lost_what_is_before_it(
    home: Path, ahead: int, fresh: int
) -> None:
    copy = home.with_name("copy")
    snapshot(home, copy)
    with life(home) as broker, blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        publish(channel, 30, 30 + ahead)
        eras = channel.history(QUEUE).eras
    forget(home, copy)
    with life(home) as broker, blocking.connect(broker.address()) as connection:
        publish(connection.channel(), 100, 100 + fresh)
        kept = {OFFSET: 30 + ahead, ERAS: eras}
        if ahead:
            with pytest.raises(PreconditionFailed) as caught:
                read(connection.channel(), 1, **kept)
            assert f"data loss: {ahead} offsets before {30 + ahead} are lost" in caught.value.text
            assert f"{min(ahead, fresh)} of them belong to other" in caught.value.text
            assert f"Go on with {OFFSET} 30" in caught.value.text
            kept = {OFFSET: 30}
        found = read(connection.channel(), fresh, **kept)
        assert found == list(range(100, 100 + fresh))


def test_restarts_that_lose_nothing_are_followed_by_silence(home: Path) -> None:
    kept: dict[str, Any] = {OFFSET: 0}
    found: list[int] = []
    for day in range(4):
        # Each life is killed at its end.
        with life(home) as broker, blocking.connect(broker.address()) as connection:
            channel = connection.channel()
            publish(channel, 30 + 10 * day, 40 + 10 * day)
            found += read(channel, 8, **kept)
            kept = {OFFSET: len(found), ERAS: channel.history(QUEUE).eras}
    assert found == list(range(32))


def test_a_plain_client_begins_at_the_end_of_a_restored_stream_and_the_log_says_so(
    home: Path,
) -> None:
    asked = 900
    with life(home) as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.address()))
        channel = connection.channel()
        channel.basic_qos(prefetch_count=10)
        got: list[bytes] = []
        channel.basic_consume(
            QUEUE, lambda *each: got.append(each[3]), consumer_tag="c", arguments={OFFSET: asked}
        )
        channel.basic_publish("", QUEUE, b"new")
        assert eventually(lambda: connection.process_data_events(0.05) or got == [b"new"])
        lost = f"asked for: if it has read that far, {asked - 30} messages are lost"
        assert eventually(lambda: lost in broker.log)
        assert f"at the offset {asked} that" in broker.log
        connection.close()


def test_nothing_is_logged_for_an_offset_at_the_end(home: Path) -> None:
    with life(home) as broker, blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        with channel.consume(QUEUE, prefetch=1, arguments={OFFSET: 30}) as messages:
            channel.publish(b"30", routing_key=QUEUE)
            assert next(messages).body == b"30"
        # A later line of the log is there, so an earlier one would be.
        with channel.consume(QUEUE, prefetch=1, arguments={OFFSET: 99}):
            assert eventually(lambda: "not at the offset 99" in broker.log)
        assert "not at the offset 30" not in broker.log


def test_eras_that_do_not_fit_are_refused(home: Path) -> None:
    foreign = f"{'a' * 16}:0"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({OFFSET: 1, ERAS: "yes"}, "invalid_eras"),
        ({OFFSET: 1, ERAS: 7}, "unacceptable_type"),
        ({OFFSET: "first", ERAS: foreign}, "it needs an integer in 'x-stream-offset'"),
        ({ERAS: foreign}, "it needs an integer in 'x-stream-offset'"),
        ({OFFSET: 31, ERAS: foreign}, "31 offsets before 31 are lost"),
    ]
    with life(home) as broker, blocking.connect(broker.address()) as connection:
        for arguments, why in wrong:
            with pytest.raises(PreconditionFailed) as caught:
                read(connection.channel(), 1, **arguments)
            assert why in caught.value.text


def test_a_tracked_offset_goes_back_with_a_log_that_has_lost_its_end(home: Path) -> None:
    tracked = {"x-stream-automatic-offset-tracking": True, OFFSET: "first"}
    with life(home) as broker:
        connection = blocking.connect(broker.address())
        assert read(connection.channel(), 30, "reader", **tracked) == list(range(30))
        broker.stop()
    (segment,) = [path for path in segments(home) if b"29" in path.read_bytes()][:1]
    whole = segment.read_bytes()
    segment.write_bytes(whole[: len(whole) // 2])
    del tracked[OFFSET]
    with life(home) as broker, blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        kept = channel.span(QUEUE).end
        assert 0 < kept < 30
        said = f"read by consumer 'reader' up to 29: {30 - kept} messages are lost"
        assert eventually(lambda: said in broker.log)
        publish(channel, 100, 140)
        assert read(channel, 3, "reader", **tracked) == [100, 101, 102]
    # Killed, and not told again: the offset was stored.
    with life(home) as broker, blocking.connect(broker.address()) as connection:
        assert read(connection.channel(), 1, "reader", **tracked)[0] in range(100, 104)
        assert "up to 29" not in broker.log


def numbered(channel: blocking.Channel, first: int, end: int) -> None:
    """Publish numbered messages, as a publisher that is declared."""
    for number in range(first, end):
        channel.publish(
            b"%d" % number, routing_key=QUEUE, persistent=True, headers={"x-publishing-id": number}
        )


@pytest.mark.parametrize("fresh", [0, 1, 9])
def test_a_publisher_whose_numbers_a_restored_broker_has_lost_is_told_which(
    home: Path, fresh: int
) -> None:
    copy = home.with_name("copy")
    with life(home) as broker, blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        assert channel.publisher_declare("sensor").next == 0
        numbered(channel, 0, 5)
        broker.stop()
    snapshot(home, copy)
    with life(home) as broker, blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        following, eras = channel.publisher_declare("sensor")
        assert following == 5
        numbered(channel, 5, 8)
    forget(home, copy)
    with life(home) as broker, blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        assert channel.publisher_declare("sensor", next_number=5, eras=eras).next == 5
        # Another process of the same publisher, which knows of nothing, gives the numbers again.
        numbered(channel, 5, 5 + fresh)
        with pytest.raises(PreconditionFailed) as caught:
            connection.channel().publisher_declare("sensor", next_number=8, eras=eras)
        assert "data loss: the messages 5 to 7 that publisher 'sensor'" in caught.value.text
        assert f"goes on with {5 + fresh}" in caught.value.text
        going_on = connection.channel().publisher_declare("sensor")
        assert going_on.next == 5 + fresh


def test_a_publisher_goes_on_without_a_word_over_kills_that_lose_nothing(home: Path) -> None:
    following, eras = 0, ""
    for _ in range(4):
        with life(home) as broker, blocking.connect(broker.address()) as connection:
            channel = connection.channel()
            declared = channel.publisher_declare("sensor", next_number=following, eras=eras)
            assert declared.next == following
            # It was told the eras before a kill that came before its next number.
            eras = declared.eras
            numbered(channel, following, following + 3)
            following += 3
    with life(home) as broker, blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        with pytest.raises(PreconditionFailed, match="the messages 12 to 19"):
            channel.publisher_declare("sensor", next_number=20, eras=eras)
        with pytest.raises(PreconditionFailed, match=r"messages 0 to 11 .* was forgotten"):
            connection.channel().publisher_declare("other", next_number=12, eras=eras)
        with pytest.raises(PreconditionFailed, match="given eras that are none"):
            connection.channel().publisher_declare("other", next_number=12, eras="x")


@pytest.mark.parametrize("begin", ["first", 0])
def test_a_recovered_consumer_of_a_stream_goes_on_behind_what_its_program_has_taken(
    home: Path, begin: Any
) -> None:
    port = ("--port", str(free_port()))
    found: list[int] = []
    with life(home, *port) as broker:
        connection = blocking.connect(broker.address(), recover=_SOON)
        arguments = {OFFSET: begin, ERAS: ""}
        messages = connection.channel().consume(QUEUE, prefetch=5, arguments=arguments)
        # Of those that are prefetched some are taken, and some of these acknowledged.
        found += [_taken(messages, ack=number < 10) for number in range(12)]
        broker.stop()
    for day in range(2):
        with life(home, *port) as broker, blocking.connect(broker.address()) as other:
            publish(other.channel(), 30 + 10 * day, 40 + 10 * day)
            found += [_taken(messages) for _ in range(12)]
    assert found == list(range(36))
    connection.abort()


def test_a_recovered_consumer_says_what_a_restored_broker_has_lost(home: Path) -> None:
    port = ("--port", str(free_port()))
    copy = home.with_name("copy")
    snapshot(home, copy)
    with life(home, *port) as broker:
        connection = blocking.connect(broker.address(), recover=_SOON)
        channel = connection.channel()
        publish(channel, 30, 50)
        arguments = {OFFSET: "first", ERAS: ""}
        messages = channel.consume(QUEUE, prefetch=50, arguments=arguments)
        assert [_taken(messages) for _ in range(50)] == list(range(50))
    forget(home, copy)
    with life(home, *port) as broker, blocking.connect(broker.address()) as other:
        publish(other.channel(), 100, 140)
        with pytest.raises(RecoveryFailed, match="data loss: 20 offsets before 50 are lost"):
            _taken(messages)


_SOON = Recovery(restore_attempts=1)


def _taken(messages: blocking.Consumer, *, ack: bool = True) -> int:
    message = next(messages)
    if ack:
        message.ack()
    return int(message.body)
