"""AMQP 1.0, decoded frame by frame: SASL, performatives, and messages section by section."""

from __future__ import annotations

import random
from typing import Any

import pytest

from harebell.wire.dissect import Dissector, Event
from harebell.wire.dissect import event as kinds
from harebell.wire.limits import DUMP_FRAME_BYTES
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import EMPTY, SASL, encode_frame
from harebell.wire.v1.performatives import encode_composite
from harebell.wire.v1.sections import data_section, encode_message, value_section
from harebell.wire.v1.values import Symbol

HEADER = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SECRET = b"\0guest\0very secret indeed"


def said(performative: Any, payload: bytes = b"", channel: int = 0, kind: int = 0) -> bytes:
    """A frame."""
    return encode_frame(encode_composite(performative) + payload, channel, kind)


MESSAGE = encode_message(
    data_section(b"hello"),
    header=c.Header(durable=True, ttl=5000),
    message_annotations={"x-opt-note": 1},
    properties=c.Properties(message_id="m", to="/queues/q"),
    application_properties={"n": 1},
)
TALK = b"".join(
    (
        said(c.SaslInit(mechanism="PLAIN", initial_response=SECRET), kind=SASL),
        AMQP_HEADER,
        said(c.Open(container_id="c", hostname="vhost:/")),
        said(
            c.Attach(
                name="l",
                source=c.Source(),
                target=c.Target(address="/queues/q", capabilities=(Symbol("queue"),)),
                initial_delivery_count=0,
            ),
            channel=1,
        ),
        said(c.Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), MESSAGE, channel=1),
        said(
            c.Disposition(role=True, first=0, settled=True, state=c.Modified(delivery_failed=True)),
            channel=1,
        ),
        EMPTY,
    )
)


def fed(data: bytes, pieces: int = 100_000) -> list[Event]:
    """The events of a client whose broker agrees, in pieces of some length."""
    dissector = Dissector()
    dissector.feed(True, HEADER)
    dissector.feed(False, HEADER)
    found: list[Event] = []
    for at in range(0, len(data), pieces):
        found += dissector.feed(True, data[at : at + pieces])
    return found


@pytest.mark.parametrize("pieces", [1, 5, 100_000])
def test_frames_and_messages_are_told_in_the_words_of_the_specification(pieces: int) -> None:
    events = fed(TALK, pieces)
    assert [(event.kind, event.name, event.channel) for event in events] == [
        (kinds.PERFORMATIVE, "sasl-init", 0),
        (kinds.HEADER, "1-0", None),
        (kinds.PERFORMATIVE, "open", 0),
        (kinds.PERFORMATIVE, "attach", 1),
        (kinds.PERFORMATIVE, "transfer", 1),
        (kinds.CONTENT, "message", 1),
        (kinds.BODY, "", 1),
        (kinds.PERFORMATIVE, "disposition", 1),
        (kinds.HEARTBEAT, "", 0),
    ]
    assert {event.version for event in events} == {"1-0"}
    assert events[2].fields == {"container-id": "c", "hostname": "vhost:/"}
    assert events[3].fields["role"] == "sender"
    assert events[3].fields["target"] == {
        "target": {"address": "/queues/q", "capabilities": ["queue"]}
    }
    assert events[5].fields == {
        "header": {"durable": True, "ttl": 5000},
        "message-annotations": {"x-opt-note": 1},
        "properties": {"message-id": "m", "to": "/queues/q"},
        "application-properties": {"n": 1},
    }
    assert events[6].body == b"hello"
    assert events[7].fields["state"] == {"modified": {"delivery-failed": True}}


def test_no_secret_is_in_an_event() -> None:
    for frame in (
        said(c.SaslInit(mechanism="PLAIN", initial_response=SECRET), kind=SASL),
        said(c.SaslChallenge(challenge=SECRET), kind=SASL),
        said(c.SaslResponse(response=SECRET), kind=SASL),
    ):
        shown = repr(fed(frame))
        assert "secret" not in shown
        assert "***" in shown
    malformed = encode_frame(b"\x00\x53\x41\xa0" + bytes((len(SECRET),)) + SECRET, 0, SASL)
    assert "secret" not in repr(fed(malformed))


def test_a_message_in_several_transfers_is_decoded_with_the_last() -> None:
    frames = [
        said(c.Transfer(handle=3, delivery_id=0, delivery_tag=b"t", more=True), MESSAGE[:9]),
        said(c.Transfer(handle=3, more=True), MESSAGE[9:20]),
        said(c.Transfer(handle=3), MESSAGE[20:]),
    ]
    events = fed(b"".join(frames))
    assert [event.kind for event in events[:3]] == [kinds.PERFORMATIVE] * 3
    assert [event.kind for event in events[3:]] == [kinds.CONTENT, kinds.BODY]
    assert events[4].body == b"hello"


def test_an_aborted_message_has_no_body() -> None:
    frames = [
        said(c.Transfer(handle=3, delivery_id=0, delivery_tag=b"t", more=True), MESSAGE[:9]),
        said(c.Transfer(handle=3, aborted=True)),
        said(c.Transfer(handle=3, delivery_id=1, delivery_tag=b"u"), MESSAGE),
    ]
    assert [event.kind for event in fed(b"".join(frames))].count(kinds.BODY) == 1


def test_a_value_is_shown_as_a_body_since_it_may_be_a_token() -> None:
    transfer = c.Transfer(handle=0, delivery_id=0, delivery_tag=b"t")
    events = fed(said(transfer, value_section("a token")))
    assert events[1].kind == kinds.BODY
    assert events[1].text.endswith("octets of sections")
    assert all("a token" not in repr(event.fields) for event in events)


def test_a_frame_that_cannot_be_read_says_why() -> None:
    (event,) = fed(encode_frame(b"\x00\x53\x10\x45"))
    assert event.kind == kinds.UNREADABLE
    assert "container-id" in event.text


def test_a_frame_that_is_too_long_is_counted() -> None:
    size = DUMP_FRAME_BYTES + 1
    data = size.to_bytes(4) + b"\x02\x00\x00\x01" + bytes(size - 8)
    events = fed(data + EMPTY)
    assert [event.kind for event in events] == [kinds.BODY, kinds.HEARTBEAT]
    assert events[0].octets == size


def test_after_octets_that_are_no_frame_the_rest_is_only_counted() -> None:
    events = fed(b"\xff" * 12 + TALK, 12)
    assert all(event.kind == kinds.UNREADABLE for event in events)
    assert "secret" not in repr(events)


def test_random_octets_never_raise() -> None:
    entropy = random.Random(10)
    for _ in range(400):
        data = bytearray(TALK + entropy.randbytes(40))
        for _ in range(entropy.randrange(6)):
            data[entropy.randrange(len(data))] = entropy.randrange(256)
        fed(bytes(data), entropy.randrange(1, 60))
