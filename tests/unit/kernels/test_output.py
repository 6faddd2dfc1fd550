"""The output buffer: what it writes, and that the compiled one and its twin write the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.body_frames import encoded
from harebell.base.message import Message, Properties
from harebell.kernels.limits import LONG_BODY_BYTES
from harebell.wire.v09.content import decode_properties
from tests.unit.kernels import octets as o
from tests.unit.kernels.twins import twin, used

TWIN = twin("output")
USED = used("output")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
FRAME_MAX = 4096

tags = st.integers(0, 2**64 - 1)
channels = st.integers(0, 65535)
texts = st.sampled_from(["", "x", "amq.topic", "schön", "ключ", "k" * 255])
TABLE = b"\x00\x00\x00\x04\x01at\x01"
LISTS = [
    o.PLAIN,
    o.PERSISTENT,
    b"\x80\x00\x0atext/plain",
    b"\x20\x00" + TABLE,
    b"\x20\x00\x00\x00\x00\x00",
    b"\xf8\x00\x04text\x04gzip" + TABLE + b"\x02\x09",
    b"\xd8\x00\x00\x04gzip\x02\x09",
]
CUT = [b"", b"\x20", b"\x80\x00", b"\xc0\x00\x01t", b"\x20\x00\x00\x00", b"\x20\x00\0\0\0\x01"]
"""Lists that no scanner lets pass."""


def build(exchange: str, key: str, raw: bytes, body: bytes, offset: int, failed: int) -> Message:
    built = Message(exchange, key, Properties(raw), body)
    built.offset = offset
    built.deliveries = failed
    return built


messages = st.builds(
    build,
    texts,
    texts,
    st.sampled_from([*LISTS, *CUT]),
    st.binary(max_size=100) | st.sampled_from([b"b" * 4088, b"b" * 4089, b"b" * 20000]),
    st.sampled_from([-1, -1, 0, 255, 2**63 - 1]),
    st.sampled_from([0, 0, 1, 2**31 - 1]),
)
frame_limits = st.sampled_from([9, 16, 64, FRAME_MAX, 131072])
calls = st.one_of(
    st.tuples(st.just("raw"), st.binary(max_size=50)),
    st.tuples(st.just("frame"), st.integers(0, 255), channels, st.binary(max_size=50)),
    st.tuples(
        st.just("deliver"),
        channels,
        st.sampled_from([b"\0", b"\x04ctag"]),
        tags,
        st.booleans(),
        messages,
        frame_limits,
    ),
    st.tuples(st.just("content"), channels, st.binary(max_size=30), messages, frame_limits),
    st.tuples(st.just("publish"), channels, st.integers(0, 3), messages, frame_limits),
    st.tuples(st.just("ack"), channels, tags, st.booleans()),
    st.tuples(st.just("take")),
)


def replay(module: Any, script: list[tuple[Any, ...]]) -> list[Any]:
    out = module.OutBuffer()
    seen: list[Any] = []
    for name, *arguments in script:
        seen.append((getattr(out, name)(*arguments), out.size, len(out)))
    seen.append(out.take())
    return seen


@settings(max_examples=200, deadline=None)
@given(st.lists(calls, max_size=12))
def test_both_write_the_same_octets_for_any_calls(script: list[tuple[Any, ...]]) -> None:
    assert replay(USED, script) == replay(TWIN, script)


def message(body: bytes = b"hello", **changed: str) -> Message:
    exchange, key = changed.get("exchange", "x"), changed.get("key", "a.b")
    return Message(exchange, key, Properties(o.PLAIN), body)


@BOTH
def test_a_delivery_is_method_header_and_body(module: Any) -> None:
    out = module.OutBuffer()
    out.deliver(7, b"\x04ctag", 2**40, True, message(), FRAME_MAX)
    assert out.take() == o.deliver(b"hello", channel=7, tag=2**40, redelivered=1)


@BOTH
def test_a_publish_is_method_header_and_body(module: Any) -> None:
    out = module.OutBuffer()
    out.publish(7, 3, message(), FRAME_MAX)
    assert out.take() == o.publish(b"hello", channel=7, flags=3)


@BOTH
def test_an_empty_body_has_no_body_frame(module: Any) -> None:
    out = module.OutBuffer()
    out.publish(1, 0, message(b""), FRAME_MAX)
    assert out.take() == o.publish(b"")


@BOTH
@pytest.mark.parametrize("size", [4087, 4088, 4089, 2 * 4088, 2 * 4088 + 1])
def test_a_body_is_cut_so_that_whole_frames_fit_the_limit(module: Any, size: int) -> None:
    out = module.OutBuffer()
    out.publish(1, 0, message(b"b" * size), FRAME_MAX)
    assert out.take() == o.publish(b"b" * size, limit=FRAME_MAX - 8)


@BOTH
def test_an_ack_is_a_frame_of_its_own(module: Any) -> None:
    out = module.OutBuffer()
    out.ack(2, 2**64 - 1, True)
    assert out.take() == o.ack(2**64 - 1, channel=2, multiple=1)


@BOTH
def test_taken_output_is_gone_and_stays_as_it_was(module: Any) -> None:
    out = module.OutBuffer()
    out.raw(b"first")
    taken = out.take()
    out.raw(b"second")
    assert (taken, out.size) == (b"first", 6)
    assert out.take() == b"second"
    assert out.take() == b""
    assert len(out) == 0


@BOTH
def test_the_buffer_grows_without_losing_what_it_has(module: Any) -> None:
    out = module.OutBuffer()
    expected = bytearray()
    for number in range(3000):
        octets = number.to_bytes(4)
        out.raw(octets)
        expected += octets
    assert out.take() == bytes(expected)


@BOTH
@pytest.mark.parametrize("changed", [{"exchange": "x" * 256}, {"key": "ü" * 128}])
def test_a_name_that_no_shortstr_can_carry_is_refused_and_nothing_written(
    module: Any, changed: dict[str, str]
) -> None:
    out = module.OutBuffer()
    with pytest.raises(ValueError, match="more than 255 octets"):
        out.publish(1, 0, message(**changed), FRAME_MAX)
    assert out.take() == b""


OFFSET = b"\x0fx-stream-offsetl"


def counts(failed: int) -> bytes:
    """The entries of a message whose deliveries have failed so often."""
    number = failed.to_bytes(8)
    return b"\x10x-delivery-countl" + number + b"\x10x-acquired-countl" + number


def told(module: Any, raw: bytes, offset: int = -1, deliveries: int = 0) -> bytes:
    """The property list that a consumer gets."""
    out = module.OutBuffer()
    out.deliver(
        1, b"\x04ctag", 1, False, build("x", "a.b", raw, b"hello", offset, deliveries), 4096
    )
    octets = out.take()
    without = o.deliver(b"hello", properties=b"")
    start = without.index(b"\x00\x00\x00\x00\x00\x00\x00\x05\xce") + 8
    end = len(octets) - (len(without) - start)
    size = len(octets) - len(without)
    assert int.from_bytes(octets[start - 16 : start - 12]) == 12 + size
    return octets[start:end]


@BOTH
def test_an_offset_is_added_to_the_headers_that_are_there(module: Any) -> None:
    entry = OFFSET + (7).to_bytes(8)
    given = b"\xf8\x00\x04text\x04gzip" + TABLE + b"\x02\x09"
    expected = b"\xf8\x00\x04text\x04gzip" + (29).to_bytes(4) + TABLE[4:] + entry + b"\x02\x09"
    assert told(module, given, offset=7) == expected


@BOTH
def test_headers_are_made_at_their_place_where_there_were_none(module: Any) -> None:
    entry = counts(3)
    given = b"\x90\x00\x04text\x02"
    assert told(module, given, deliveries=3) == (
        b"\xb0\x00\x04text" + (52).to_bytes(4) + entry + b"\x02"
    )


@BOTH
def test_offset_and_count_can_both_be_told(module: Any) -> None:
    entries = OFFSET + (0).to_bytes(8) + counts(1)
    assert told(module, o.PLAIN, 0, 1) == b"\x20\x00" + (77).to_bytes(4) + entries


@BOTH
@pytest.mark.parametrize("raw", LISTS)
def test_an_added_header_reads_like_any_other(module: Any, raw: bytes) -> None:
    found = decode_properties(told(module, raw, 2**40, 2))
    before = decode_properties(raw)
    added = {"x-stream-offset": 2**40, "x-delivery-count": 2, "x-acquired-count": 2}
    expected = {**(before.headers or {}), **added}
    assert found.headers == expected
    found.headers = before.headers
    assert found == before


@BOTH
@pytest.mark.parametrize("raw", CUT)
def test_a_list_that_is_cut_off_goes_out_as_it_is(module: Any, raw: bytes) -> None:
    assert told(module, raw, 1, 1) == raw


LONG = b"0123456789" * (LONG_BODY_BYTES // 10 + 1)


@BOTH
def test_long_bodies_are_encoded_when_they_are_taken_and_are_the_same_then(module: Any) -> None:
    at_once, later = module.OutBuffer(), module.OutBuffer()
    later.postpones = True
    for out in (at_once, later):
        out.deliver(1, b"\x01t", 1, False, message(LONG), FRAME_MAX)
        out.ack(1, 2, False)
        out.content(2, b"method", message(LONG), FRAME_MAX)
        out.content(2, b"method", message(b"short"), FRAME_MAX)
    assert later.size == at_once.size == len(later)
    parts = later.take_parts()
    assert [type(part).__name__ for part in parts] == ["bytes", "BodyFrames"] * 2 + ["bytes"]
    assert later.size == 0
    assert encoded(parts) == at_once.take()
    later.raw(b"more")
    assert (later.size, later.take_parts(), later.take_parts()) == (4, [b"more"], [])


@BOTH
def test_taking_everything_as_octets_encodes_long_bodies_too(module: Any) -> None:
    at_once, later = module.OutBuffer(), module.OutBuffer()
    later.postpones = True
    for out in (at_once, later):
        out.publish(1, 0, message(LONG), FRAME_MAX)
        out.raw(b"end")
    assert later.take() == at_once.take()
    assert (later.size, later.take()) == (0, b"")
