"""Final 0-10, decoded frame by frame: what qpid's client said, and what nobody should say."""

from __future__ import annotations

import random

import pytest

from harebell.kernels.transfers import SegmentBuffer
from harebell.wire.dissect import Dissector, Event
from harebell.wire.dissect import event as kinds
from harebell.wire.v010 import controls
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.commands import MessageTransfer, QueueDeclare
from harebell.wire.v010.structs import DeliveryProperties, MessageProperties

HEADER = b"AMQP\x01\x01\x00\x0a"
SECRET = b"\0guest\0very secret indeed"


def control(value: controls.Control, channel: int = 0, frame_max: int = 65_535) -> bytes:
    """A control in its frames."""
    out = SegmentBuffer()
    out.segments(0, channel, AMQP_0_10.encode(value), frame_max)
    return out.take()


def talk() -> bytes:
    """What a client says."""
    out = SegmentBuffer()
    out.raw(control(controls.ConnectionStartOk(mechanism="PLAIN", response=SECRET)))
    out.segments(1, 1, AMQP_0_10.encode(QueueDeclare(queue="q", durable=True), True), 65_535)
    header = AMQP_0_10.encode_struct(DeliveryProperties(routing_key="q", priority=3))
    header += AMQP_0_10.encode_struct(MessageProperties(content_type="text/plain"))
    command = AMQP_0_10.encode(MessageTransfer(destination="x"))
    out.assembly(1, command, header, b"hello", 65_535)
    return out.take()


def fed(data: bytes, pieces: int = 1) -> list[Event]:
    """The events of a client whose broker agrees, in pieces of some length."""
    dissector = Dissector()
    dissector.feed(True, HEADER)
    dissector.feed(False, HEADER)
    found: list[Event] = []
    for at in range(0, len(data), pieces):
        found += dissector.feed(True, data[at : at + pieces])
    return found


@pytest.mark.parametrize("pieces", [1, 5, 100_000])
def test_controls_commands_and_contents_are_told_in_their_own_words(pieces: int) -> None:
    events = fed(talk(), pieces)
    assert [(event.kind, event.name, event.channel) for event in events] == [
        (kinds.CONTROL, "connection.start-ok", 0),
        (kinds.COMMAND, "queue.declare", 1),
        (kinds.COMMAND, "message.transfer", 1),
        (kinds.CONTENT, "message", 1),
        (kinds.BODY, "", 1),
    ]
    assert {event.version for event in events} == {"0-10"}
    assert sum(event.octets for event in events) == len(talk())
    assert (events[1].fields["queue"], events[1].fields["sync"]) == ("q", True)
    assert events[3].fields["delivery-properties"]["routing-key"] == "q"
    assert events[3].fields["message-properties"] == {
        "content-type": "text/plain",
        "application-headers": {},
    }
    assert events[4].body == b"hello"


def test_no_secret_is_in_an_event_whole_or_in_pieces() -> None:
    started = controls.ConnectionStartOk(mechanism="PLAIN", response=SECRET)
    for data in (
        control(started),
        control(started, frame_max=20),
        control(controls.ConnectionSecureOk(response=SECRET)),
        control(controls.ConnectionSecure(challenge=SECRET)),
    ):
        shown = repr(fed(data))
        assert "secret" not in shown
        assert "***" in shown


def test_a_segment_in_several_frames_is_decoded_with_the_last() -> None:
    declare = AMQP_0_10.encode(QueueDeclare(queue="q" * 100))
    out = SegmentBuffer()
    out.segments(1, 1, declare, 60)
    events = fed(out.take(), 7)
    assert [event.text for event in events[:-1]] == ["a part of a segment"] * (len(events) - 1)
    assert len(events) > 1
    assert events[-1].fields["queue"] == "q" * 100


def test_a_frame_that_cannot_be_read_says_why() -> None:
    unknown = bytes((15, 1, 0, 16, 0, 1, 0, 1, 0, 0, 0, 0)) + b"\xee\x01\x01\x00"
    (event,) = fed(unknown)
    assert event.kind == kinds.UNREADABLE
    assert "unknown class 238" in event.text


def test_after_octets_that_are_no_frame_the_rest_is_only_counted() -> None:
    events = fed(b"\xff" * 12 + talk(), 12)
    assert all(event.kind == kinds.UNREADABLE for event in events)
    assert "secret" not in repr(events)


def test_random_octets_never_raise() -> None:
    entropy = random.Random(9)
    for _ in range(400):
        data = bytearray(talk() + entropy.randbytes(40))
        for _ in range(entropy.randrange(6)):
            data[entropy.randrange(len(data))] = entropy.randrange(256)
        fed(bytes(data), entropy.randrange(1, 60))
