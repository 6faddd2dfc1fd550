"""What is written in frames of AMQP 0-10, and that both kernels write the same."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.body_frames import encoded
from harebell.base.message import FAMILY_010, Message, Properties
from harebell.kernels.limits import LONG_BODY_BYTES
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.structs import DeliveryProperties, MessageProperties, ReplyTo
from tests.unit.kernels.segment_frames import command, header, scan
from tests.unit.kernels.twins import twin, used

SCANNER = used("segments")
TWIN = twin("transfers")
USED = used("transfers")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])


def message(
    raw: bytes,
    body: bytes = b"",
    exchange: str = "x",
    key: str = "k",
    told: tuple[int, int] = (-1, 0),
) -> Message:
    properties = Properties(raw)
    properties.family = FAMILY_010
    made = Message(exchange, key, properties, body)
    made.offset, made.deliveries = told
    return made


def delivered(module: Any, made: Message, redelivered: bool = False) -> list[Any]:
    out = module.SegmentBuffer()
    out.transfer(3, command("c"), redelivered, made, 4096)
    *calls, kept = scan(SCANNER, [out.take()], fast=False)
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
    assert delivered(module, message(b"", exchange="", key="")) == [DeliveryProperties(exchange="")]


@BOTH
def test_a_redelivered_message_stays_redelivered(module: Any) -> None:
    raw = AMQP_0_10.encode_struct(DeliveryProperties(redelivered=True))
    (found,) = delivered(module, message(raw))
    assert found.redelivered


@BOTH
@pytest.mark.parametrize(
    "properties",
    [None, MessageProperties(content_type="t"), MessageProperties(application_headers={"a": 1})],
)
def test_fields_for_the_consumer_alone_are_in_the_application_headers(
    module: Any, properties: MessageProperties | None
) -> None:
    raw = b"" if properties is None else AMQP_0_10.encode_struct(properties)
    *_, got = delivered(module, message(raw, told=(5, 2)))
    before = {} if properties is None else properties.application_headers
    assert got.application_headers == {**before, "x-stream-offset": 5, "x-delivery-count": 2}
    assert got.content_type == (properties.content_type if properties else None)


@BOTH
def test_every_field_before_the_application_headers_is_passed_over(module: Any) -> None:
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
    calls = scan(SCANNER, [data], fast=False)
    assert calls[-1] == ("kept", 0)
    (call, _) = scan(SCANNER, [data])
    assert call[-1] == body


@BOTH
def test_a_control_or_command_alone_is_first_and_last(module: Any) -> None:
    out = module.SegmentBuffer()
    out.segments(0, 5, b"\x02\x0a\0\0", 4096)
    out.segments(1, 5, b"\x08\x03\1\0\0\0", 4096)
    out.assembly(5, b"\x04\x01\1\0\0\0", b"", b"", 4096)
    assert scan(SCANNER, [out.take()], fast=False)[:-1] == [
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
    raw: bytes, cut: int, body: bytes, name: str, told: tuple[int, int], again: bool, limit: int
) -> None:
    for each in (raw, raw[:cut]):
        written = []
        for module in (USED, TWIN):
            out = module.SegmentBuffer()
            out.transfer(1, command("c"), again, message(each, body, name, name, told), limit)
            out.assembly(2, b"c", each, body, limit)
            written.append((out.size, out.take()))
        assert written[0] == written[1]


@BOTH
def test_a_long_body_is_encoded_when_it_is_taken_and_is_the_same_then(module: Any) -> None:
    at_once, later = module.SegmentBuffer(), module.SegmentBuffer()
    later.postpones = True
    body = b"b" * LONG_BODY_BYTES
    for out in (at_once, later):
        out.transfer(3, b"command", True, message(b"", body), 65_535)
        out.transfer(3, b"command", True, message(b"", b"short"), 65_535)
    assert later.size == at_once.size
    parts = later.take_parts()
    assert [type(part).__name__ for part in parts] == ["bytes", "SegmentFrames", "bytes"]
    assert encoded(parts) == at_once.take()
