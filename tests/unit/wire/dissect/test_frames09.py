"""Frames are decoded in whatever pieces they come, and what cannot be read says so."""

from __future__ import annotations

import pytest

from harebell.wire.dissect import Dissector
from harebell.wire.dissect import event as kinds
from harebell.wire.limits import DUMP_FRAME_BYTES
from harebell.wire.v09 import methods
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from tests.unit.wire.dissect.talk import CLIENT, HEADER, SECRET, START_OK, fed, frame, framed


@pytest.mark.parametrize("pieces", [1, 3, 7, 64, 100_000])
def test_frames_are_the_same_in_whatever_pieces_they_come(pieces: int) -> None:
    events = fed(CLIENT, pieces)
    assert [(event.kind, event.name, event.channel) for event in events] == [
        (kinds.HEADER, "0-9-1", None),
        (kinds.METHOD, "connection.start-ok", 0),
        (kinds.METHOD, "basic.publish", 7),
        (kinds.CONTENT, "basic", 7),
        (kinds.BODY, "", 7),
        (kinds.HEARTBEAT, "", 0),
    ]
    assert sum(event.octets for event in events) == len(CLIENT)
    assert {event.version for event in events} == {"0-9-1"}
    assert events[2].fields["routing-key"] == "k"
    assert events[2].fields["mandatory"] is True
    assert events[3].fields == {"body-size": 5, "priority": 3, "headers": {"a": 1}}
    assert events[4].body == b"hello"


def test_raw_octets_are_those_that_were_sent_but_for_the_secret() -> None:
    raw = b"".join(event.raw for event in fed(CLIENT))
    assert len(raw) == len(CLIENT)
    assert raw == CLIENT.replace(SECRET, b"*" * len(SECRET))


def test_a_method_that_cannot_be_read_says_why_and_the_next_one_is_read() -> None:
    broken = framed(1, 1, AMQP_0_9_1.encode(methods.QueuePurge(queue="q")) + b"more")
    events = fed(HEADER + broken + frame(methods.TxSelect(), 1))[1:]
    assert [event.kind for event in events] == [kinds.UNREADABLE, kinds.METHOD]
    assert "4 octets of garbage" in events[0].text


def test_after_a_frame_without_its_end_octet_the_rest_is_only_counted() -> None:
    broken = frame(methods.TxSelect(), 1)[:-1] + b"\0"
    later = frame(START_OK)
    events = fed(HEADER + broken) + fed(HEADER + broken + later, 8)
    assert all(event.kind in (kinds.HEADER, kinds.UNREADABLE) for event in events)
    assert any("ends with 0x00" in event.text for event in events)
    assert "secret indeed" not in repr(events)


def test_a_body_too_long_to_keep_is_counted_and_what_follows_is_read() -> None:
    size = DUMP_FRAME_BYTES + 1
    data = HEADER + framed(3, 1, bytes(size)) + frame(methods.TxSelect(), 1)
    for pieces in (65_536, len(data)):
        events = fed(data, pieces)[1:]
        assert [(event.kind, event.octets) for event in events] == [
            (kinds.BODY, size + 8),
            (kinds.METHOD, 12),
        ]


def test_the_numbers_are_those_of_the_version() -> None:
    close = frame(methods.ConnectionClose(reply_code=200, reply_text="bye"))
    old = close[:7] + b"\x00\x0a\x00\x3c" + close[11:]
    events = fed(b"AMQP\x01\x01\x08\x00" + old)
    assert (events[1].name, events[1].version) == ("connection.close", "0-8")


def test_transitional_0_10_is_read_as_its_clients_knew_it() -> None:
    start = bytes.fromhex(
        "0100000000001c000a000a000a0000000000000005504c41494e00000005656e5f5553ce"
    )
    dissector = Dissector()
    dissector.feed(True, b"AMQP\x01\x01\x00\x0a" + bytes.fromhex("010001000000050015000a00ce"))
    events = dissector.feed(False, start)
    assert [(event.name, event.version, event.from_client) for event in events] == [
        ("connection.start", "0-10t", False),
        ("channel.open", "0-10t", True),
    ]
    assert events[0].fields["mechanisms"] == b"PLAIN"
