"""The passage: what it writes is what the output buffer writes for a message with that body."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.arrivals import Arrivals
from harebell.base.message import Message, Properties
from harebell.kernels.limits import LONG_BODY_BYTES
from tests.unit.kernels import octets as o
from tests.unit.kernels.twins import delivery_frames, twin, used

TWIN = twin("output")
USED = used("output")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
FRAME_MAX = 131_072
OutBuffer = used("output").OutBuffer

TABLE = b"\x20\x00\x00\x00\x00\x04\x01at\x01"
PLAIN = Properties(o.PLAIN)

bodies = st.binary(max_size=200) | st.just(b"b" * 5000)
lists = st.sampled_from([o.PLAIN, o.PERSISTENT, TABLE])
names = st.sampled_from(["", "x", "schön", "k" * 255])


def passage(
    module: Any,
    out: Any,
    exchange: str = "",
    key: str = "q",
    *,
    channel: int = 1,
    consumer_tag: bytes = b"\x01c",
    tag: int = 1,
    frame_max: int = FRAME_MAX,
    output_max: int = 1 << 20,
    plain: bool = False,
) -> Any:
    frames = delivery_frames(channel, consumer_tag, exchange, key)
    size = len(consumer_tag)
    return module.DeliveryPassage(None, out, frames, size, tag, frame_max, output_max, plain)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(lists, bodies), min_size=1, max_size=6),
    names,
    names,
    st.sampled_from([1, 65535]),
    st.integers(1, 2**63),
    st.sampled_from([b"\x00", b"\x04ctag", b"\xff" + b"t" * 255]),
)
def test_what_passes_is_written_as_a_delivery_of_its_message(
    messages: list[tuple[bytes, bytes]],
    exchange: str,
    key: str,
    channel: int,
    tag: int,
    consumer_tag: bytes,
) -> None:
    usual = OutBuffer()
    for number, (raw, body) in enumerate(messages):
        message = Message(exchange, key, Properties(raw), body)
        usual.deliver(channel, consumer_tag, tag + number, False, message, FRAME_MAX)
    expected = usual.take()
    for module in (USED, TWIN):
        out = OutBuffer()
        where = {"channel": channel, "consumer_tag": consumer_tag, "tag": tag}
        made = passage(module, out, exchange, key, **where)
        assert all(made.put(Properties(raw), body) for raw, body in messages)
        assert made.count == len(messages)
        assert out.take() == expected


@BOTH
def test_a_body_over_any_limit_does_not_pass(module: Any) -> None:
    made = passage(module, OutBuffer(), frame_max=18)
    assert made.put(PLAIN, b"b" * 10)
    assert not made.put(PLAIN, b"b" * 11)
    made.open_to(None, Arrivals(), False, 4, False)
    assert made.put(PLAIN, b"b" * 4)
    assert not made.put(PLAIN, b"b" * 5)
    made.open_to(None, Arrivals(), False, 1000, False)
    assert not made.put(PLAIN, b"b" * 5)
    assert made.count == 2
    assert not passage(module, OutBuffer(), frame_max=2**31).put(PLAIN, bytes(LONG_BODY_BYTES))


@BOTH
def test_nothing_passes_into_an_output_that_is_full(module: Any) -> None:
    out = OutBuffer()
    made = passage(module, out, output_max=100)
    assert made.put(PLAIN, b"b" * 10)
    assert made.put(PLAIN, b"b" * 100)
    written = out.size
    assert written > 100
    assert not made.put(PLAIN, b"")
    assert (made.count, out.size) == (2, written)


@BOTH
def test_headers_do_not_pass_where_either_side_has_to_look_at_them(module: Any) -> None:
    headers = Properties(TABLE, has_headers=True)
    made = passage(module, OutBuffer())
    assert made.put(headers, b"")
    made.open_to(None, Arrivals(), False, FRAME_MAX, True)
    assert not made.put(headers, b"")
    assert made.put(PLAIN, b"")
    made = passage(module, OutBuffer(), plain=True)
    made.open_to(None, Arrivals(), False, FRAME_MAX, False)
    assert not made.put(headers, b"")
    assert made.put(PLAIN, b"")


@BOTH
def test_what_passes_is_counted_by_its_size_for_the_publisher(module: Any) -> None:
    arrivals = Arrivals()
    made = passage(module, OutBuffer())
    made.open_to(None, arrivals, True, FRAME_MAX, False)
    for size in (0, 100, 101, 5000):
        assert made.put(PLAIN, b"b" * size)
    assert (arrivals.to_100, arrivals.to_1k, arrivals.to_10k) == (2, 1, 1)
    assert (arrivals.routed, arrivals.wanting_confirm, arrivals.byte_count) == (4, 4, 5201)


class Publisher:
    def __init__(self) -> None:
        self.counts: list[int] = []

    def passed(self, passage: Any) -> int:
        self.counts.append(passage.count)
        return 0


@BOTH
def test_the_publisher_counts_at_the_end_what_has_passed(module: Any) -> None:
    publisher = Publisher()
    for count in (0, 3):
        made = passage(module, OutBuffer())
        made.open_to(publisher, Arrivals(), False, FRAME_MAX, False)
        assert all(made.put(PLAIN, b"b") for _ in range(count))
        made.end()
    assert publisher.counts == [3]
