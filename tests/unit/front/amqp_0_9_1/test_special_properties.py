"""CC and BCC, and in which order a message's properties are judged."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties, decode_properties
from harebell.wire.v09.frames import HEADER
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish


def with_queues(*names: str) -> OctetPeer:
    peer = World().peer()
    peer.send(*(m.QueueDeclare(name) for name in names))
    peer.frames()
    return peer


def headers_in(peer: OctetPeer, queue: str) -> list[dict[str, Any] | None]:
    """The headers of all messages in a queue."""
    found: list[dict[str, Any] | None] = []
    while True:
        peer.send(m.BasicGet(queue, no_ack=True))
        loads = [load for kind, _, load in peer.frames() if kind == HEADER]
        if not loads:
            return found
        found.append(decode_properties(loads[0][12:]).headers)


def test_copies_go_to_every_key_and_queues_do_not_see_the_blind_ones() -> None:
    peer = with_queues("q", "cc", "bcc")
    headers = {"CC": ["cc", "q", 7], "BCC": ["bcc", "nowhere"], "x": 1}
    peer.give(publish(b"", "q", properties=BasicProperties(headers=headers)))
    seen = {"CC": ["cc", "q", 7], "x": 1}
    assert [headers_in(peer, name) for name in ("q", "cc", "bcc")] == [[seen]] * 3


def test_the_other_properties_stay_as_they_are() -> None:
    peer = with_queues("q")
    sent = BasicProperties(headers={"BCC": []}, delivery_mode=2, priority=3, message_id="m")
    peer.give(publish(b"", "q", properties=sent))
    peer.send(m.BasicGet("q", no_ack=True))
    (header,) = [load for kind, _, load in peer.frames() if kind == HEADER]
    got = decode_properties(header[12:])
    assert (got.headers, got.delivery_mode, got.priority, got.message_id) == ({}, 2, 3, "m")


def test_a_header_that_only_looks_like_one_changes_nothing() -> None:
    peer = with_queues("q", "other")
    headers = {"aCC": ["other"], "x": "CC"}
    peer.give(publish(b"", "q", properties=BasicProperties(headers=headers)))
    assert headers_in(peer, "q") == [headers]
    assert headers_in(peer, "other") == []


def test_a_message_without_a_queue_for_any_key_goes_back_whole() -> None:
    peer = with_queues("q")
    headers = {"CC": ["no"], "BCC": ["neither"]}
    sent = BasicProperties(headers=headers)
    peer.give(publish(b"", "nowhere", mandatory=True, properties=sent))
    frames = peer.frames()
    (header,) = [load for kind, _, load in frames if kind == HEADER]
    assert decode_properties(header[12:]).headers == headers
    peer.give(publish(b"", "no", mandatory=True, properties=BasicProperties(headers={"CC": ["q"]})))
    assert peer.frames() == []


@pytest.mark.parametrize("name", ["CC", "BCC"])
@pytest.mark.parametrize(
    ("value", "kind"), [("q", "longstr"), (1, "signedint"), ({}, "table"), (None, "void")]
)
def test_anything_but_a_list_is_refused(name: str, value: Any, kind: str) -> None:
    peer = with_queues("q")
    peer.give(publish(b"", "q", properties=BasicProperties(headers={name: value})))
    (close,) = peer.methods()
    assert isinstance(close, m.ChannelClose)
    assert (close.reply_code, close.reply_text) == (
        406,
        f'PRECONDITION_FAILED - invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}',
    )


def test_the_first_fault_is_the_one_that_is_told() -> None:
    faults = [
        ("reply_to", "amq.rabbitmq.reply-to", "fast reply consumer"),
        ("expiration", "soon", "invalid expiration"),
        ("headers", {"BCC": "q"}, "invalid message"),
        ("user_id", "root", "user_id property"),
    ]
    for first in range(len(faults)):
        values: dict[str, Any] = {name: value for name, value, _ in faults[first:]}
        peer = with_queues("q")
        peer.give(publish(b"", "q", properties=BasicProperties(**values)))
        (close,) = peer.methods()
        assert isinstance(close, m.ChannelClose)
        assert faults[first][2] in close.reply_text


def test_copies_are_part_of_a_transaction() -> None:
    peer = with_queues("q", "cc")
    peer.send(m.TxSelect())
    peer.give(publish(b"", "q", properties=BasicProperties(headers={"CC": ["cc"]})))
    assert headers_in(peer, "cc") == []
    peer.send(m.TxCommit())
    peer.frames()
    assert [len(headers_in(peer, name)) for name in ("q", "cc")] == [1, 1]
