"""The passage: what it writes is what the output buffer writes for a message with that body."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.arrivals import Arrivals
from harebell.base.message import Message, Properties
from tests.unit.kernels import octets as o
from tests.unit.kernels.twins import twin, used

TWIN = twin("output")
USED = used("output")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
FRAME_MAX = 131_072
OutBuffer = used("output").OutBuffer

bodies = st.lists(st.binary(max_size=200) | st.just(b"b" * 5000), min_size=1, max_size=6)
names = st.sampled_from(["", "x", "schön", "k" * 255])


def passage(
    module: Any,
    out: Any,
    example: Message,
    *,
    channel: int = 1,
    consumer_tag: bytes = b"\x01c",
    tag: int = 1,
    body_max: int = FRAME_MAX - 8,
    output_max: int = 1 << 20,
) -> Any:
    frames = OutBuffer()
    frames.deliver(channel, consumer_tag, 0, False, example, FRAME_MAX)
    size = len(consumer_tag)
    return module.OutputPassage(None, out, frames.take(), size, tag, body_max, output_max)


@settings(max_examples=200, deadline=None)
@given(
    bodies,
    names,
    names,
    st.sampled_from([o.PLAIN, o.PERSISTENT, b"\x20\x00\x00\x00\x00\x04\x01at\x01"]),
    st.sampled_from([1, 65535]),
    st.integers(1, 2**63),
    st.sampled_from([b"\x00", b"\x04ctag", b"\xff" + b"t" * 255]),
)
def test_what_passes_is_written_as_a_delivery_of_its_message(
    bodies: list[bytes],
    exchange: str,
    key: str,
    raw: bytes,
    channel: int,
    tag: int,
    consumer_tag: bytes,
) -> None:
    properties = Properties(raw)
    usual = OutBuffer()
    for number, body in enumerate(bodies):
        message = Message(exchange, key, properties, body)
        usual.deliver(channel, consumer_tag, tag + number, False, message, FRAME_MAX)
    expected = usual.take()
    for module in (USED, TWIN):
        out = OutBuffer()
        example = Message(exchange, key, properties, b"")
        where = {"channel": channel, "consumer_tag": consumer_tag, "tag": tag}
        made = passage(module, out, example, **where)
        assert all(made.put(body) for body in bodies)
        assert made.count == len(bodies)
        assert out.take() == expected


@BOTH
def test_a_body_over_either_limit_does_not_pass(module: Any) -> None:
    out = OutBuffer()
    made = passage(module, out, Message("", "q", Properties(o.PLAIN), b""), body_max=10)
    assert made.put(b"b" * 10)
    assert not made.put(b"b" * 11)
    made.open_to(None, Arrivals(), False, 4)
    assert made.put(b"b" * 4)
    assert not made.put(b"b" * 5)
    made.open_to(None, Arrivals(), False, 1000)
    assert not made.put(b"b" * 5)
    assert made.count == 2


@BOTH
def test_nothing_passes_into_an_output_that_is_full(module: Any) -> None:
    out = OutBuffer()
    made = passage(module, out, Message("", "q", Properties(o.PLAIN), b""), output_max=100)
    assert made.put(b"b" * 10)
    assert made.put(b"b" * 100)
    written = out.size
    assert written > 100
    assert not made.put(b"")
    assert (made.count, out.size) == (2, written)


@BOTH
def test_what_passes_is_counted_by_its_size_for_the_publisher(module: Any) -> None:
    arrivals = Arrivals()
    made = passage(module, OutBuffer(), Message("", "q", Properties(o.PLAIN), b""))
    made.open_to(None, arrivals, True, FRAME_MAX)
    for size in (0, 100, 101, 5000):
        assert made.put(b"b" * size)
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
        made = passage(module, OutBuffer(), Message("", "q", Properties(o.PLAIN), b""))
        made.open_to(publisher, Arrivals(), False, FRAME_MAX)
        assert all(made.put(b"b") for _ in range(count))
        made.end()
    assert publisher.counts == [3]
