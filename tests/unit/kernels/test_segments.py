"""AMQP 0-10's frames: what is found in them, what is written, and that both kernels agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.structs import (
    DeliveryProperties,
    FragmentProperties,
    MessageProperties,
    ReplyTo,
)
from tests.unit.kernels.segment_frames import command, frame, header, scan, sink, transfer
from tests.unit.kernels.twins import twin, used

TWIN = twin("segments")
USED = used("segments")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
FAMILY = 10


@BOTH
def test_a_whole_transfer_is_one_call(module: Any) -> None:
    raw = header(routing_key="a.b", delivery_mode=2, priority=7) + AMQP_0_10.encode_struct(
        MessageProperties(application_headers={"x": 1})
    )
    data = transfer(b"hello", raw, channel=9, sync=True)
    assert scan(module, [data]) == [
        (
            "transfer",
            9,
            module.SYNC | module.ACCEPT_EXPLICIT,
            "amq.direct",
            "a.b",
            (raw, 2, 7, True, False),
            FAMILY,
            b"hello",
        ),
        ("kept", 0),
    ]


@BOTH
@pytest.mark.parametrize(
    ("modes", "properties", "flags"),
    [
        ({}, {}, 64),
        ({"sync": True}, {}, 65),
        ({}, {"discard_unroutable": True}, 66),
        ({}, {"immediate": True}, 68),
        ({"accept_mode": 1}, {}, 8),
        ({"acquire_mode": 1}, {}, 80),
        ({}, {"redelivered": True}, 96),
        ({"sync": True, "accept_mode": 1, "acquire_mode": 1}, {"immediate": True}, 29),
    ],
)
def test_options_of_a_transfer_are_in_its_flags(
    module: Any, modes: Any, properties: Any, flags: int
) -> None:
    ((_, _, found, *_), _) = scan(module, [transfer(b"", header(**properties), **modes)])
    assert found == flags


@BOTH
def test_an_accept_mode_that_is_not_there_is_neither(module: Any) -> None:
    octets = b"\x04\x01\x01\x00" + b"\x01\x00" + b"\x01x"
    data = frame(0x0B, 1, octets) + frame(0x03, 2, header()) + frame(0x07, 3, b"")
    ((_, _, found, *_), _) = scan(module, [data])
    assert found == 0


@BOTH
@pytest.mark.parametrize(
    ("struct", "suspect"),
    [
        (FragmentProperties(first=True), True),
        (DeliveryProperties(ttl=1), True),
        (DeliveryProperties(expiration=None, exchange="x", resume_id="r", resume_ttl=4), False),
        (MessageProperties(user_id=b"u"), True),
        (MessageProperties(reply_to=ReplyTo("x", "k")), True),
        (MessageProperties(application_headers={"BCC": "x"}), True),
        (MessageProperties(application_headers={"c": "x"}, correlation_id=b"CC"), True),
        (MessageProperties(application_headers={"c": "x"}), False),
        (MessageProperties(content_type="CC"), False),
    ],
)
def test_properties_that_publishing_has_to_check_are_suspect(
    module: Any, struct: Any, suspect: bool
) -> None:
    ((*_, properties, _, _), _) = scan(module, [transfer(raw=AMQP_0_10.encode_struct(struct))])
    assert properties[4] == suspect


@BOTH
def test_equal_headers_in_a_row_share_their_properties(module: Any) -> None:
    held = []

    class Keeping(module.SegmentSink):  # type: ignore[misc,name-defined]
        def transfer(self, channel: int, flags: int, to: str, key: str, p: Any, body: bytes) -> int:
            held.append((p, key))
            return 0

    scanner = module.SegmentScanner(Keeping())
    scanner.fast = True
    scanner.feed(transfer(b"1") + transfer(b"2") + transfer(b"3", header(routing_key="other")))
    assert held[0][0] is held[1][0]
    assert held[2][0] is not held[1][0]
    assert [key for _, key in held] == ["k", "k", "other"]


@BOTH
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_body_in_several_frames_is_put_together(module: Any, parts: int) -> None:
    frames = frame(0x0B, 1, command()) + frame(0x03, 2, header())
    for number in range(parts):
        first, last = 2 * (number == 0), 1 * (number == parts - 1)
        frames += frame(0x04 | first | last, 3, bytes((65 + number,)) * 3)
    (call, _) = scan(module, [frames])
    assert call[-1] == b"AAABBBCCC"[: 3 * parts]


@BOTH
def test_a_transfer_may_come_without_header(module: Any) -> None:
    (call, _) = scan(module, [frame(0x0B, 1, command(None)) + frame(0x07, 3, b"")])
    assert call == ("transfer", 1, 64, "", "", (b"", 0, -1, False, False), FAMILY, b"")


LONG_WAY = {
    "no header and no body": frame(0x0F, 1, command(None)),
    "no body": frame(0x0B, 1, command()) + frame(0x07, 2, header()),
    "cut off": transfer()[:-1],
    "another channel between": frame(0x0B, 1, command()) + frame(0x03, 2, header(), channel=2),
    "a control between": frame(0x0B, 1, command()) + frame(0x0F, 0, b"\x01\x0a\0\0", track=0),
    "a header in two frames": frame(0x0B, 1, command()) + frame(0x02, 2, b"") + frame(0x05, 2, b""),
    "two headers": frame(0x0B, 1, command()) + frame(0x03, 2, b"") + frame(0x07, 2, b""),
    "a body that begins in the middle": frame(0x0B, 1, command()) + frame(0x05, 3, b"x"),
    "a body that begins twice": frame(0x0B, 1, command())
    + frame(0x06, 3, b"x")
    + frame(0x07, 3, b"x"),
    "a command in two frames": frame(0x0A, 1, command()) + frame(0x05, 1, b""),
    "a broken header": transfer(raw=b"\0\0\0\x09\4\1\0\0"),
    "a routing key that is no text": transfer(raw=b"\0\0\0\x06\4\1\0\2\1\xff"),
    "a broken command": frame(0x0F, 1, command()[:-1]),
    "an accept mode there is not": frame(0x0F, 1, b"\4\1\1\0\2\0\7"),
    "packing flags there are not": frame(0x0F, 1, b"\4\1\1\0\x10\0"),
    "another command": frame(0x0F, 1, b"\5\1\1\0\0\0"),
    "the track of controls": frame(0x0F, 1, command(), track=0),
}


@BOTH
@pytest.mark.parametrize("data", LONG_WAY.values(), ids=LONG_WAY.keys())
def test_an_incomplete_transfer_comes_frame_by_frame(module: Any, data: bytes) -> None:
    *calls, _ = scan(module, [data])
    assert calls
    assert {call[0] for call in calls} == {"frame"}


@BOTH
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (frame(0x1F, 1, b""), "frame flags 0x1f are of another version"),
        (frame(0x0F, 4, b""), "unknown segment type 4"),
        (frame(0x0F, 0, b"", size=11), "a frame of 11 octets has no head"),
        (frame(0x0F, 0, b"", size=4097), "a frame of 4097 octets, at most 4096 may be"),
    ],
)
def test_octets_that_are_no_frame_end_the_scan(module: Any, data: bytes, text: str) -> None:
    assert scan(module, [data])[0] == ("error", 501, text)


@BOTH
def test_a_sink_may_stop_or_hold_the_scan(module: Any) -> None:
    for flag in ("stopped", "hold"):
        seen = sink(module)
        scanner = module.SegmentScanner(seen)
        scanner.fast = True
        seen.on_call = lambda scanner=scanner, flag=flag: setattr(scanner, flag, True)
        scanner.feed(transfer(b"1") + transfer(b"2"))
        assert len(seen.calls) == 1
        scanner.feed(transfer(b"3"))
        assert len(seen.calls) == 1
        seen.on_call = None
        scanner.stopped = scanner.hold = False
        scanner.feed(b"")
        assert [call[-1] for call in seen.calls] == (
            [b"1"] if flag == "stopped" else [b"1", b"2", b"3"]
        )


pieces = st.one_of(
    st.builds(
        transfer,
        st.binary(max_size=20),
        st.sampled_from([None, b"", header(ttl=5), b"\0\0", header(routing_key="é")]),
        st.sampled_from([0, 1]),
        sync=st.booleans(),
    ),
    st.sampled_from(list(LONG_WAY.values())),
    st.binary(max_size=30),
    st.builds(
        frame, st.integers(0, 15), st.integers(0, 3), st.binary(max_size=20), st.integers(0, 2)
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=6), st.integers(1, 40), st.booleans())
def test_both_scanners_make_the_same_calls(pieces: list[bytes], step: int, fast: bool) -> None:
    data = b"".join(pieces)
    for parts in ([data], [data[at : at + step] for at in range(0, len(data), step)]):
        assert scan(USED, parts, fast) == scan(TWIN, parts, fast)


@settings(max_examples=100, deadline=None)
@given(st.lists(pieces, max_size=4), st.integers(1, 40))
def test_frames_are_the_same_however_they_arrive(pieces: list[bytes], step: int) -> None:
    data = b"".join(pieces)
    parts = [data[at : at + step] for at in range(0, len(data), step)]
    assert scan(USED, [data], fast=False) == scan(USED, parts, fast=False)
