"""Rules that the classes file and stream share: each is tested once, with both."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_older import (
    FileCancel,
    FileConsume,
    FileReturn,
    StreamCancel,
    StreamConsume,
    StreamReturn,
)
from harebell.wire.v09.property_list import FileProperties
from tests.conformance.file_stream.versions import rule
from tests.conformance.v08.contents import Connect08, Peer08


class ContentClass(NamedTuple):
    """The methods of one class.

    Args:
        name: of the class.
        consume: its method consume.
        cancel: its method cancel.
        returned: its method return.
    """

    name: str
    consume: Any
    cancel: Any
    returned: Any

    def publish(self, peer: Peer08, key: str, body: bytes = b"x", **options: Any) -> None:
        """Publish this body with the header a."""
        if self.name == "file":
            peer.publish_file(key, body, properties=FileProperties(headers={"a": 1}), **options)
        else:
            peer.packet(key, body, headers={"a": 1}, **options)

    def take(self, peer: Peer08) -> bytes:
        """The body of what is delivered next."""
        return (peer.take_file() if self.name == "file" else peer.take_packet()).body


@pytest.fixture(
    params=[
        ContentClass("file", FileConsume, FileCancel, FileReturn),
        ContentClass("stream", StreamConsume, StreamCancel, StreamReturn),
    ],
    ids=lambda each: each.name,
)
def content(request: pytest.FixtureRequest) -> ContentClass:
    """Either class."""
    found: ContentClass = request.param
    return found


def test_a_content_of_no_octets_is_delivered(peer08: Peer08, content: ContentClass) -> None:
    queue = peer08.queue("contents")
    peer08.ask(content.consume(queue))
    content.publish(peer08, queue, b"")
    assert content.take(peer08) == b""


@rule("0-8#124", "0-8#147")
def test_a_queue_has_room_for_20_consumers(connect08: Connect08, content: ContentClass) -> None:
    peer = connect08().open(channels=tuple(range(1, 21)))
    queue = peer.queue("contents")
    for channel in range(1, 21):
        peer.ask(content.consume(queue), channel)
    assert peer.ask(m.QueueDeclare(queue=queue, passive=True)).consumer_count == 20


@rule("0-8#126", "0-8#150")
def test_an_empty_name_and_no_queue_before_end_the_connection(
    peer08: Peer08, content: ContentClass
) -> None:
    peer08.send(content.consume(""))
    peer08.cut_off(530, "no previously declared queue")


def test_an_empty_name_is_the_queue_declared_last(peer08: Peer08, content: ContentClass) -> None:
    queue = peer08.queue("contents")
    peer08.ask(content.consume(""))
    content.publish(peer08, queue)
    assert content.take(peer08) == b"x"


@rule("0-8#127", "0-8#151")
def test_a_consumer_tag_used_twice_ends_the_connection(
    peer08: Peer08, content: ContentClass
) -> None:
    queue = peer08.queue("contents")
    peer08.ask(content.consume(queue, "twice"))
    peer08.send(content.consume(queue, "twice"))
    peer08.cut_off(530, "attempt to reuse consumer tag 'twice'")


@rule("0-8#128", "0-8#152")
@pytest.mark.parametrize("first", [False, True])
def test_an_exclusive_consumer_shares_its_queue_with_no_other(
    peer08: Peer08, other08: Peer08, content: ContentClass, first: bool
) -> None:
    queue = peer08.queue("contents")
    peer08.ask(content.consume(queue, exclusive=first))
    other08.send(content.consume(queue, exclusive=not first))
    other08.refused(405, "in exclusive use")


def test_a_cancelled_consumer_gets_nothing_more(peer08: Peer08, content: ContentClass) -> None:
    queue = peer08.queue("contents")
    tag = peer08.ask(content.consume(queue)).consumer_tag
    assert peer08.ask(content.cancel(tag)).consumer_tag == tag
    content.publish(peer08, queue)
    assert peer08.count(queue) == 1
    peer08.send(content.cancel("unknown", nowait=True))


@rule("0-8#133", "0-8#154")
def test_an_empty_exchange_name_is_the_default_exchange(
    peer08: Peer08, content: ContentClass
) -> None:
    queue = peer08.queue("contents")
    content.publish(peer08, queue, exchange="")
    assert peer08.count(queue) == 1


@rule("0-8#134", "0-8#155")
def test_a_client_cannot_publish_to_an_internal_exchange(
    peer08: Peer08, content: ContentClass
) -> None:
    content.publish(peer08, "k", exchange="amq.rabbitmq.log")
    peer08.refused(403, "cannot publish to internal exchange 'amq.rabbitmq.log'")


@rule("0-8#135", "0-8#156")
@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_every_type_of_exchange_takes_both_classes(
    peer08: Peer08, content: ContentClass, kind: str
) -> None:
    peer08.ask(m.ExchangeDeclare(f"contents.{kind}", kind))
    queue = peer08.queue("contents")
    peer08.ask(m.QueueBind(queue, f"contents.{kind}", "k", arguments={"a": 1}))
    content.publish(peer08, "k", exchange=f"contents.{kind}")
    assert peer08.count(queue) == 1


@rule("0-8#136", "0-8#157")
def test_a_mandatory_content_that_finds_no_queue_comes_back(
    peer08: Peer08, content: ContentClass
) -> None:
    body = bytes(300_000)
    content.publish(peer08, "nowhere", body, flags=1)
    found = peer08.expect_whole(content.returned, exchange="", routing_key="nowhere")
    assert (found.body, found.properties.headers) == (body, {"a": 1})
    assert found.method.reply_code in (310, 312)
    content.publish(peer08, "nowhere")
    peer08.expect_silence()


@rule("0-8#137", "0-8#158")
def test_an_immediate_content_goes_to_a_waiting_consumer_or_comes_back(
    peer08: Peer08, content: ContentClass
) -> None:
    queue = peer08.queue("contents")
    content.publish(peer08, queue, flags=2)
    found = peer08.expect_whole(content.returned, routing_key=queue)
    assert (found.body, found.method.reply_code in (310, 313)) == (b"x", True)
    assert peer08.count(queue) == 0
    peer08.ask(content.consume(queue))
    content.publish(peer08, queue, b"y", flags=2)
    assert content.take(peer08) == b"y"
