"""The passage of 1.0: it writes what the output buffer writes for a message with that body."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.arrivals import Arrivals
from harebell.base.message import Message
from harebell.kernels.limits import LONG_BODY_BYTES, PLAIN_LIST_BYTES
from harebell.wire.v1.composites import Header, Properties
from harebell.wire.v1.sections import encode_sections, parse_properties, value_section
from tests.unit.kernels.twins import twin, used

TWIN = twin("transfers_1_0")
USED = used("transfers_1_0")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
FRAME_MAX = 131_072
PLAIN = parse_properties(b"", 100)

bodies = st.binary(max_size=300) | st.just(b"b" * 5_000)
lists = st.sampled_from(
    [
        PLAIN,
        parse_properties(encode_sections(Header(durable=True, priority=9)), 100),
        parse_properties(encode_sections(None, {"x-opt-deaths": [1]}), 100),
        parse_properties(encode_sections(None, None, Properties(message_id="m")), 100),
    ]
)
names = st.sampled_from(["", "x", "sch\u00f6n", "k" * 255])


def passage(
    module: Any,
    out: Any,
    *,
    number: int = 0,
    exchange: str = "",
    key: str = "q",
    frame_max: int = FRAME_MAX,
    output_max: int = 1 << 20,
) -> Any:
    return module.TransferPassage(None, out, 3, 7, number, exchange, key, frame_max, output_max)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(lists, bodies), min_size=1, max_size=6),
    names,
    names,
    st.sampled_from([0, 1, 254, 2**32 - 3, 2**33]),
)
def test_what_passes_is_written_as_a_delivery_of_its_message(
    messages: list[tuple[Any, bytes]], exchange: str, key: str, number: int
) -> None:
    for module in (USED, TWIN):
        usual, out = module.TransferBuffer(), module.TransferBuffer()
        made = passage(module, out, number=number, exchange=exchange, key=key)
        for at, (properties, body) in enumerate(messages):
            message = Message(exchange, key, properties, body)
            delivery = ((number + at) % 2**32, b"", True, True, 0, -1, message)
            assert usual.transfer(3, 7, *delivery, FRAME_MAX, 1) == 1
            assert made.put(properties, body)
        assert made.count == len(messages)
        assert out.take() == usual.take()


@BOTH
def test_other_bodies_than_data_pass_too(module: Any) -> None:
    properties, body = parse_properties(b"", 101), value_section(["a"])
    usual, out = module.TransferBuffer(), module.TransferBuffer()
    assert passage(module, out).put(properties, body)
    usual.transfer(
        3, 7, 0, b"", True, True, 0, -1, Message("", "q", properties, body), FRAME_MAX, 1
    )
    assert out.take() == usual.take()


@BOTH
def test_a_delivery_of_several_frames_does_not_pass(module: Any) -> None:
    for size in range(350, 512):
        usual, out = module.TransferBuffer(), module.TransferBuffer()
        body = b"b" * size
        message = Message("", "q", PLAIN, body)
        fits = usual.transfer(3, 7, 0, b"", True, True, 0, -1, message, 512, 1) == 1
        assert passage(module, out, frame_max=512).put(PLAIN, body) == fits
        assert out.take() == usual.take()
    out = module.TransferBuffer()
    assert not passage(module, out, frame_max=2**31).put(PLAIN, bytes(LONG_BODY_BYTES))


@BOTH
def test_a_message_over_any_limit_does_not_pass(module: Any) -> None:
    made = passage(module, module.TransferBuffer())
    raw = encode_sections(Header(durable=True))
    properties = parse_properties(raw, 100)
    made.open_to(None, Arrivals(), False, len(raw) + 4, False)
    assert made.put(properties, b"b" * 4)
    assert not made.put(properties, b"b" * 5)
    long = encode_sections(None, None, Properties(message_id="m" * PLAIN_LIST_BYTES))
    made = passage(module, module.TransferBuffer())
    assert not made.put(parse_properties(long, 100), b"")
    assert made.count == 0


@BOTH
def test_nothing_passes_into_an_output_that_is_full(module: Any) -> None:
    out = module.TransferBuffer()
    made = passage(module, out, output_max=200)
    while made.put(PLAIN, b"b" * 20):
        pass
    written = out.size
    assert 200 <= written < 400
    assert not made.put(PLAIN, b"")
    assert out.size == written


@BOTH
def test_what_passes_is_counted_by_its_size_for_the_publisher(module: Any) -> None:
    arrivals = Arrivals()
    made = passage(module, module.TransferBuffer())
    made.open_to(None, arrivals, True, FRAME_MAX, False)
    for size in (0, 100, 101, 5_000):
        assert made.put(PLAIN, b"b" * size)
    assert (arrivals.to_100, arrivals.to_1k, arrivals.to_10k) == (2, 1, 1)
    assert (arrivals.routed, arrivals.wanting_confirm, arrivals.byte_count) == (4, 4, 5_201)
