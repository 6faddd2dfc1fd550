"""AMQP 1.0's output: deliveries, dispositions and flows, and that both kernels agree."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harebell.base.body_frames import encoded
from harebell.base.message import Message
from harebell.kernels.limits import LONG_BODY_BYTES
from harebell.wire.v1.composites import Disposition, Flow, Header, Properties, Transfer
from harebell.wire.v1.performatives import decode_performative
from harebell.wire.v1.sections import (
    PROPERTIES,
    Sections,
    data_section,
    encode_message,
    encode_sections,
    parse_properties,
    split,
    value_section,
)
from harebell.wire.v1.values import ULong
from tests.unit.kernels.twins import twin, used

TWIN = twin("transfers_1_0")
USED = used("transfers_1_0")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
FRAME_MAX = 512
DIED: dict[Any, Any] = {"x-a": 1, "x-opt-deaths": [1], "x-b": "v"}


def message(
    raw: bytes = b"", body: bytes = b"hi", family: int = 100, exchange: str = "x", key: str = "k"
) -> Message:
    return Message(exchange, key, parse_properties(raw, family), body)


def deliver(module: Any, made: Message, **changes: Any) -> tuple[int, list[tuple[int, Any, bytes]]]:
    """The result of a transfer, and its frames: channel, performative and payload."""
    fields = {
        "handle": 1, "delivery_id": 2, "tag": b"t", "settled": False, "first_acquirer": True,
        "delivery_count": 0, "ttl": -1, "message": made, "frame_max": FRAME_MAX, "window": 10_000,
        **changes,
    }  # fmt: skip
    buffer = module.TransferBuffer()
    buffer.postpones = fields.pop("postpones", False)
    count = buffer.transfer(5, *fields.values())
    size = buffer.size
    octets = encoded(buffer.take_parts())
    assert size == len(octets)
    return count, frames(octets)


def frames(octets: bytes) -> list[tuple[int, Any, bytes]]:
    result = []
    while octets:
        size = int.from_bytes(octets[:4])
        assert octets[4:6] == b"\2\0"
        assert 8 < size <= len(octets)
        body = octets[8:size]
        performative, end = decode_performative(body)
        result.append((int.from_bytes(octets[6:8]), performative, body[end:]))
        octets = octets[size:]
    return result


def received(module: Any, made: Message, **changes: Any) -> tuple[Sections, bytes]:
    """The sections and the body that a peer has after all frames."""
    raw, body, family = split(b"".join(part for _, _, part in deliver(module, made, **changes)[1]))
    parse_properties(raw, family)
    assert family == made.family
    return Sections(raw), body


@BOTH
def test_a_small_delivery_takes_one_frame(module: Any) -> None:
    count, sent = deliver(module, message(), settled=True)
    assert count == 1
    ((channel, transfer, payload),) = sent
    assert (channel, transfer) == (5, Transfer(1, 2, b"t", 0, True, False))
    header = b"\0\x53\x70\xc0\x06\x05\x42\x40\x40\x41\x43"
    annotations = encode_sections(None, {"x-exchange": "x", "x-routing-key": "k"})
    assert payload == header + annotations + data_section(b"hi")


@BOTH
@pytest.mark.rule("1.0#125", "1.0#132")
@pytest.mark.parametrize("size", [0, 2, 255, 256, 5_000])
def test_the_bare_message_arrives_as_it_was_published(module: Any, size: int) -> None:
    header, annotations = encode_sections(Header(durable=True)), encode_sections(None, {"x-a": 1})
    bare = encode_sections(None, None, Properties(message_id="m"), {"a": "v" * size})
    body = data_section(b"b" * size)
    raw, content, family = split(header + annotations + bare + body)
    _, sent = deliver(module, message(raw, content, family))
    payload = b"".join(part for _, _, part in sent)
    assert payload.endswith(bare + body)
    assert Sections(payload[: -len(body)]).message_annotations() == {
        "x-a": 1, "x-exchange": "x", "x-routing-key": "k",
    }  # fmt: skip


@BOTH
@pytest.mark.rule("1.0#129", "1.0#130")
@pytest.mark.parametrize(
    ("published", "changes", "sent"),
    [
        (None, {}, Header(first_acquirer=True)),
        (Header(durable=True, priority=7), {}, Header(True, 7, None, True)),
        (Header(first_acquirer=True, delivery_count=9), {"first_acquirer": False}, Header()),
        (None, {"delivery_count": 70_000}, Header(first_acquirer=True, delivery_count=70_000)),
        (Header(ttl=70_000), {}, Header(ttl=70_000, first_acquirer=True)),
        (Header(ttl=70_000), {"ttl": 5}, Header(ttl=5, first_acquirer=True)),
        (Header(ttl=200), {"ttl": 2**40}, Header(ttl=200, first_acquirer=True)),
        (Header(ttl=200), {"ttl": 0}, Header(ttl=0, first_acquirer=True)),
        (Header(ttl=0), {}, Header(ttl=0, first_acquirer=True)),
        (Header(durable=True), {"ttl": 5}, Header(True, None, None, True)),
        (None, {"ttl": 5}, Header(first_acquirer=True)),
    ],
)
def test_the_header_is_written_anew(module: Any, published: Any, changes: Any, sent: Any) -> None:
    sections, _ = received(module, message(encode_sections(published)), **changes)
    assert sections.header() == sent


@BOTH
@pytest.mark.rule("1.0#130")
@pytest.mark.parametrize("annotations", [DIED, DIED | {"x-long": "v" * 300}])
def test_a_dead_letter_has_no_first_acquirer(module: Any, annotations: Any) -> None:
    sections, _ = received(module, message(encode_sections(Header(durable=True), annotations)))
    assert sections.header() == Header(True)
    assert sections.message_annotations().items() >= annotations.items()


@BOTH
def test_the_broker_adds_its_annotations_once(module: Any) -> None:
    given = {
        "x-exchange": "old", "x-routing-key": "old", "x-stream-offset": 1, "x-delivery-count": 2,
        "x-acquired-count": 3, "x-other": 4, ULong(5): 6, "x-routing-kez": 7, "x" * 300: 8,
    }  # fmt: skip
    made = message(encode_sections(None, given), exchange="e" * 255, key="ä" * 100)
    made.offset, made.deliveries = 70_000, 5
    sections, _ = received(module, made)
    assert sections.message_annotations() == {
        "x-other": 4, ULong(5): 6, "x-routing-kez": 7, "x" * 300: 8, "x-exchange": "e" * 255,
        "x-routing-key": "ä" * 100, "x-stream-offset": 70_000, "x-delivery-count": 5,
        "x-acquired-count": 5,
    }  # fmt: skip


@BOTH
def test_a_body_of_other_sections_is_sent_as_it_came(module: Any) -> None:
    body = value_section({"a": [1]}) + b"\0\x53\x78\xc1\x01\0"
    made = message(encode_sections(None, None, Properties(subject="s")), body, 101)
    sections, sent = received(module, made)
    assert sent == body
    assert PROPERTIES in sections


@BOTH
@pytest.mark.rule("1.0#116")
@pytest.mark.parametrize("postpones", [False, True])
@pytest.mark.parametrize("size", [*range(380, 430), 900, 901, LONG_BODY_BYTES, 2 * LONG_BODY_BYTES])
def test_frames_fit_the_limit_and_are_as_many_as_returned(
    module: Any, size: int, postpones: bool
) -> None:
    made = message(body=b"b" * size)
    count, sent = deliver(module, made, postpones=postpones)
    assert count == len(sent)
    first, *others = [transfer for _, transfer, _ in sent]
    assert first == Transfer(1, 2, b"t", 0, False, more=bool(others))
    for number, transfer in enumerate(others, start=2):
        assert transfer == Transfer(1, more=number < count)
    assert split(b"".join(part for _, _, part in sent))[1] == made.body


@BOTH
@pytest.mark.parametrize("size", [2_000, LONG_BODY_BYTES])
def test_properties_of_several_frames_are_spread_too(module: Any, size: int) -> None:
    raw = encode_sections(None, None, None, {"a": "v" * 3_000})
    for postpones in (False, True):
        sections, body = received(module, message(raw, b"b" * size), postpones=postpones)
        assert sections.application_properties() == {"a": "v" * 3_000}
        assert len(body) == size


@BOTH
@pytest.mark.parametrize("postpones", [False, True])
def test_a_delivery_that_the_window_does_not_hold_is_not_written(
    module: Any, postpones: bool
) -> None:
    for size in (2, 2_000, LONG_BODY_BYTES):
        made = message(body=b"b" * size)
        count, _ = deliver(module, made, postpones=postpones)
        assert deliver(module, made, postpones=postpones, window=count)[0] == count
        assert deliver(module, made, postpones=postpones, window=count - 1) == (0, [])


@BOTH
def test_the_payload_of_a_delivery_can_be_had_by_itself(module: Any) -> None:
    for body, family in ((b"b" * 2_000, 100), (value_section(1), 101)):
        made = message(encode_sections(Header(ttl=9)), body, family)
        _, sent = deliver(module, made, ttl=5, delivery_count=3, first_acquirer=False)
        payload = b"".join(part for _, _, part in sent)
        assert module.delivered_payload(made, False, 3, 5) == payload


@BOTH
def test_a_tag_of_more_than_32_octets_is_refused(module: Any) -> None:
    assert deliver(module, message(), tag=b"t" * 32)[1][0][1].delivery_tag == b"t" * 32
    with pytest.raises(ValueError, match="33 octets, at most 32"):
        deliver(module, message(), tag=b"t" * 33)


@BOTH
def test_a_delivery_without_a_tag_has_its_id_as_its_tag(module: Any) -> None:
    _, ((_, transfer, _),) = deliver(module, message(), delivery_id=258, tag=None)
    assert transfer.delivery_tag == b"\0\0\1\2"


@BOTH
@pytest.mark.parametrize(
    "state", [b"", b"\0\x53\x24\x45", b"\0\x53\x77\xb0\0\0\1\x2c" + b"x" * 300]
)
def test_a_disposition_is_one_frame(module: Any, state: bytes) -> None:
    buffer = module.TransferBuffer()
    buffer.disposition(5, True, 0, 2**32 - 1, True, state)
    buffer.disposition(6, False, 5, 5, False, state)
    first, second = frames(buffer.take())
    read = first[1].state
    assert (read is None) == (state == b"")
    assert first == (5, Disposition(True, 0, 2**32 - 1, True, read), b"")
    assert second == (6, Disposition(False, 5, 5, False, read), b"")


@BOTH
def test_a_flow_leaves_out_what_is_unknown(module: Any) -> None:
    buffer = module.TransferBuffer()
    buffer.flow(5, 1, 2, 3, 4, 5, 2**32 - 1, 300, 0, True, True)
    buffer.flow(5, -1, 2, 3, 4, -1, -1, -1, -1, False, False)
    assert frames(buffer.take()) == [
        (5, Flow(1, 2, 3, 4, 5, 2**32 - 1, 300, 0, True, True), b""),
        (5, Flow(None, 2, 3, 4), b""),
    ]


def test_both_write_the_same_octets() -> None:
    rng = Random(10)
    for _ in range(1_000):
        published = encode_message(
            rng.choice((data_section(rng.randbytes(rng.randrange(1_500))), value_section([1]))),
            rng.choice((None, Header(), Header(True, 9, rng.choice((None, 0, 9, 999))))),
            rng.choice(
                (None, {"x-a": "v" * rng.randrange(400)}, {"x-exchange": 1, "x-b": 2}, DIED)
            ),
            rng.choice((None, Properties(message_id="m"))),
            rng.choice((None, {"a": "v" * rng.randrange(600)})),
        )
        raw, body, family = split(published)
        made = message(raw, body, family, rng.choice(("", "x")), "k" * rng.randrange(256))
        made.offset = rng.choice((-1, 0, 127, 128, 2**40))
        made.deliveries = rng.choice((0, 1, 200))
        changes = {
            "handle": rng.choice((0, 255, 256)), "delivery_id": rng.choice((0, 9, 2**32 - 1)),
            "tag": rng.choice((None, rng.randbytes(rng.randrange(33)))),
            "settled": rng.random() < 0.5, "first_acquirer": rng.random() < 0.5,
            "delivery_count": rng.choice((0, 3, 300)), "ttl": rng.choice((-1, 0, 5)),
            "frame_max": rng.choice((512, 600, 4_096)), "window": rng.choice((1, 3, 100)),
        }  # fmt: skip
        assert deliver(USED, made, **changes) == deliver(TWIN, made, **changes)


def test_both_write_the_same_octets_for_one_delivery_after_the_other() -> None:
    rng = Random(11)
    for _ in range(100):
        raws = [
            encode_sections(
                rng.choice((None, Header(), Header(True, 9, 999))),
                rng.choice((None, {"x-a": "v"}, {"x-exchange": "old"}, DIED)),
                rng.choice((None, Properties(message_id="m"))),
                {"a": "v" * rng.choice((0, 9, 600))},
            )
            for _ in range(2)
        ]
        # Messages in a row share their properties, as those of a connection do.
        shared = [parse_properties(raw, family) for raw in raws for family in (100, 101)]
        names = ("x", "k", "other")
        used, plain = USED.TransferBuffer(), TWIN.TransferBuffer()
        for _ in range(40):
            properties = rng.choice(shared)
            body = data_section(b"b") if properties.family == 101 else b"b" * rng.choice((1, 300))
            made = Message(rng.choice(names[:2]), rng.choice(names[1:]), properties, body)
            if rng.random() < 0.5:
                made.offset = rng.choice((-1, 7))
                made.deliveries = rng.choice((0, 1))
            first, ttl = rng.random() < 0.7, rng.choice((-1, -1, 5))
            changes = (rng.random() < 0.5, first, rng.choice((0, 0, 3)), ttl, made, 1_024, 99)
            for buffer in (used, plain):
                buffer.transfer(5, 1, 9, None, *changes)
        assert used.take() == plain.take()
