"""AMQP 0-10's frames: what is found in them, what is written, and that both kernels agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.base.message import Message, Properties
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.commands import MessageTransfer
from harebell.wire.v010.structs import DeliveryProperties, MessageProperties, ReplyTo
from tests.unit.kernels.twins import told, twin, used

TWIN = twin("segments")
USED = used("segments")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
FAMILY = 10


def sink(module: Any) -> Any:
    class Recorder(module.SegmentSink):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            self.calls: list[tuple[Any, ...]] = []
            self.on_call: Any = None

        def note(self, *call: Any) -> int:
            self.calls.append(call)
            if self.on_call is not None:
                self.on_call()
            return 0

        def frame(self, flags: int, kind: int, track: int, channel: int, payload: bytes) -> int:
            return self.note("frame", flags, kind, track, channel, payload)

        def transfer(self, channel: int, flags: int, to: str, key: str, p: Any, body: bytes) -> int:
            return self.note("transfer", channel, flags, to, key, told(p), p.family, body)

    return Recorder()


def frame(
    flags: int, kind: int, payload: bytes, channel: int = 1, track: int = 1, size: int = 0
) -> bytes:
    head = bytes((flags, kind)) + (size or len(payload) + 12).to_bytes(2) + bytes((0, track))
    return head + channel.to_bytes(2) + bytes(4) + payload


def header(**delivery: Any) -> bytes:
    return AMQP_0_10.encode_struct(DeliveryProperties(**delivery))


def command(destination: str | None = "amq.direct", sync: bool = False, **modes: int) -> bytes:
    return AMQP_0_10.encode(MessageTransfer(destination, **modes), sync)


def transfer(
    body: bytes = b"hello", raw: bytes | None = None, channel: int = 1, **modes: Any
) -> bytes:
    raw = header(routing_key="k") if raw is None else raw
    frames = frame(0x0B, 1, command(**modes), channel) + frame(0x03, 2, raw, channel)
    return frames + frame(0x07, 3, body, channel)


def scan(module: Any, parts: list[bytes], fast: bool = True, most: int = 4096) -> list[Any]:
    seen = sink(module)
    scanner = module.SegmentScanner(seen)
    scanner.fast = fast
    scanner.frame_max = most
    try:
        for part in parts:
            scanner.feed(part)
    except ProtocolError as error:
        seen.calls.append(("error", error.code, error.text))
    seen.calls.append(("kept", scanner.buffered))
    calls: list[Any] = seen.calls
    return calls


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
            module.SYNC,
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
        ({}, {}, 0),
        ({"sync": True}, {}, 1),
        ({}, {"discard_unroutable": True}, 2),
        ({}, {"immediate": True}, 4),
        ({"accept_mode": 1}, {}, 8),
        ({"acquire_mode": 1}, {}, 16),
        ({}, {"redelivered": True}, 32),
        ({"sync": True, "accept_mode": 1, "acquire_mode": 1}, {"immediate": True}, 29),
    ],
)
def test_what_a_transfer_asks_for_is_in_its_flags(
    module: Any, modes: Any, properties: Any, flags: int
) -> None:
    ((_, _, found, *_), _) = scan(module, [transfer(b"", header(**properties), **modes)])
    assert found == flags


@BOTH
@pytest.mark.parametrize(
    ("struct", "suspect"),
    [
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
def test_what_publishing_has_to_look_into_is_suspect(
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
def test_a_transfer_may_come_without_header_and_body(module: Any) -> None:
    (call, _) = scan(module, [frame(0x0F, 1, command(None))])
    assert call == ("transfer", 1, 0, "", "", (b"", 0, -1, False, False), FAMILY, b"")


LONG_WAY = {
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
def test_what_is_not_one_whole_transfer_comes_frame_by_frame(module: Any, data: bytes) -> None:
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


# --- output -------------------------------------------------------------------------------------


def message(
    raw: bytes,
    body: bytes = b"",
    exchange: str = "x",
    key: str = "k",
    told: tuple[int, int] = (-1, 0),
) -> Message:
    properties = Properties(raw)
    properties.family = FAMILY
    made = Message(exchange, key, properties, body)
    made.offset, made.deliveries = told
    return made


def delivered(module: Any, made: Message, redelivered: bool = False) -> list[Any]:
    out = module.SegmentBuffer()
    out.transfer(3, command("c"), redelivered, made, 4096)
    *calls, kept = scan(module, [out.take()], fast=False)
    assert kept == ("kept", 0)
    raw = b"".join(call[5] for call in calls if call[2] == 2)
    return AMQP_0_10.decode_header(raw)


@BOTH
def test_a_delivery_is_what_was_published_with_where_it_went(module: Any) -> None:
    sent = DeliveryProperties(
        discard_unroutable=True,
        priority=3,
        ttl=9,
        exchange="liar",
        routing_key="old",
        resume_id="r",
    )
    raw = AMQP_0_10.encode_struct(sent) + AMQP_0_10.encode_struct(MessageProperties(app_id=b"a"))
    got, rest = delivered(module, message(raw, key="new"), redelivered=True)
    assert got == DeliveryProperties(
        discard_unroutable=True,
        redelivered=True,
        priority=3,
        ttl=9,
        exchange="x",
        routing_key="new",
        resume_id="r",
    )
    assert rest == MessageProperties(app_id=b"a")


@BOTH
def test_a_delivery_without_header_gets_one(module: Any) -> None:
    assert delivered(module, message(b"")) == [DeliveryProperties(exchange="x", routing_key="k")]
    assert delivered(module, message(b"", exchange="", key="")) == [DeliveryProperties()]


@BOTH
@pytest.mark.parametrize(
    "properties",
    [None, MessageProperties(content_type="t"), MessageProperties(application_headers={"a": 1})],
)
def test_what_only_the_consumer_is_told_is_in_the_application_headers(
    module: Any, properties: MessageProperties | None
) -> None:
    raw = b"" if properties is None else AMQP_0_10.encode_struct(properties)
    *_, got = delivered(module, message(raw, told=(5, 2)))
    before = {} if properties is None else properties.application_headers
    assert got.application_headers == {**before, "x-stream-offset": 5, "x-delivery-count": 2}
    assert got.content_type == (properties.content_type if properties else None)


@BOTH
def test_every_field_before_the_application_headers_is_passed_over(module: Any) -> None:
    from uuid import UUID

    full = MessageProperties(
        5, UUID(int=7), b"c", ReplyTo("x", "y"), "t", "e", b"u", b"a", {"k": "v"}
    )
    *_, got = delivered(module, message(AMQP_0_10.encode_struct(full), told=(-1, 3)))
    full.application_headers["x-delivery-count"] = 3
    assert got == full


@BOTH
def test_an_empty_map_of_no_octets_takes_entries_too(module: Any) -> None:
    raw = bytes.fromhex("00000008 0403 0001 00000000")
    *_, got = delivered(module, message(raw, told=(1, 0)))
    assert got.application_headers == {"x-stream-offset": 1}


@BOTH
@pytest.mark.parametrize("size", [0, 1, 4083, 4084, 4085, 8168, 8169])
def test_segments_are_cut_so_that_frames_fit_the_limit(module: Any, size: int) -> None:
    out = module.SegmentBuffer()
    body = b"b" * size
    out.transfer(1, command("c"), False, message(b"", body), 4096)
    data = out.take()
    calls = scan(module, [data], fast=False)
    assert calls[-1] == ("kept", 0)
    (call, _) = scan(module, [data])
    assert call[-1] == body


@BOTH
def test_a_control_or_command_alone_is_first_and_last(module: Any) -> None:
    out = module.SegmentBuffer()
    out.segments(0, 5, b"\x02\x0a\0\0", 4096)
    out.segments(1, 5, b"\x08\x03\1\0\0\0", 4096)
    out.assembly(5, b"\x04\x01\1\0\0\0", b"", b"", 4096)
    assert scan(module, [out.take()], fast=False)[:-1] == [
        ("frame", 15, 0, 0, 5, b"\x02\x0a\0\0"),
        ("frame", 15, 1, 1, 5, b"\x08\x03\1\0\0\0"),
        ("frame", 15, 1, 1, 5, b"\x04\x01\1\0\0\0"),
    ]


raws = st.one_of(
    st.binary(max_size=40),
    st.builds(
        lambda a, b: header(**a) + AMQP_0_10.encode_struct(MessageProperties(**b)),
        st.fixed_dictionaries(
            {},
            optional={
                "ttl": st.integers(0, 9),
                "priority": st.integers(0, 9),
                "exchange": st.text("ab", max_size=3),
                "routing_key": st.text("ab", max_size=3),
                "resume_id": st.text("ab", max_size=3),
            },
        ),
        st.fixed_dictionaries(
            {},
            optional={
                "content_length": st.integers(0, 9),
                "user_id": st.binary(max_size=3),
                "application_headers": st.just({"a": 1}),
            },
        ),
    ),
)


@settings(max_examples=300, deadline=None)
@given(
    raws,
    st.integers(0, 40),
    st.binary(max_size=50),
    st.sampled_from(["", "x", "é" * 9]),
    st.sampled_from([(-1, 0), (5, 0), (-1, 1), (2**40, 9)]),
    st.booleans(),
    st.sampled_from([13, 20, 64, 65535]),
)
def test_both_write_the_same_octets(
    raw: bytes, cut: int, body: bytes, name: str, told: tuple[int, int], again: bool, most: int
) -> None:
    for each in (raw, raw[:cut]):
        written = []
        for module in (USED, TWIN):
            out = module.SegmentBuffer()
            out.transfer(1, command("c"), again, message(each, body, name, name, told), most)
            out.assembly(2, b"c", each, body, most)
            written.append((out.size, out.take()))
        assert written[0] == written[1]
