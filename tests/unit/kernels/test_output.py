"""The output buffer: what it writes, and that the compiled one and its twin write the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.message import Message, Properties
from tests.unit.kernels import octets as o
from tests.unit.kernels.twins import twin, used

TWIN = twin("output")
USED = used("output")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
FRAME_MAX = 4096

tags = st.integers(0, 2**64 - 1)
channels = st.integers(0, 65535)
texts = st.sampled_from(["", "x", "amq.topic", "schön", "ключ", "k" * 255])
messages = st.builds(
    lambda exchange, key, raw, body: Message(exchange, key, Properties(raw), body),
    texts,
    texts,
    st.sampled_from([o.PLAIN, o.PERSISTENT, b"\x80\x00\x0atext/plain"]),
    st.binary(max_size=100) | st.sampled_from([b"b" * 4088, b"b" * 4089, b"b" * 20000]),
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
    assert out.take() == o.publish(b"b" * size, most=FRAME_MAX - 8)


@BOTH
def test_an_ack_is_a_frame_of_its_own(module: Any) -> None:
    out = module.OutBuffer()
    out.ack(2, 2**64 - 1, True)
    assert out.take() == o.ack(2**64 - 1, channel=2, multiple=1)


@BOTH
def test_what_was_taken_is_gone_and_stays_as_it_was(module: Any) -> None:
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
