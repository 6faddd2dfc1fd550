"""AMQP 1.0's frames: what is found in them, and that both kernels agree."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harebell.base.errors import ConditionError
from harebell.wire.v1.composites import (
    Accepted,
    Disposition,
    Error,
    Flow,
    Header,
    Modified,
    Open,
    Properties,
    Rejected,
    Released,
    Transfer,
)
from harebell.wire.v1.encoding import encode
from harebell.wire.v1.frames import EMPTY, SASL, encode_frame
from harebell.wire.v1.performatives import encode_composite
from harebell.wire.v1.sections import data_section, encode_message, encode_sections, value_section
from harebell.wire.v1.values import Described, Symbol, UByte, UInt, ULong
from tests.unit.kernels.performative_frames import scan, sink
from tests.unit.kernels.twins import told, twin, used

TWIN = twin("performatives")
USED = used("performatives")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
MESSAGE = encode_message(data_section(b"hi"), Header(durable=True, priority=7))
RAW = encode_sections(Header(durable=True, priority=7))
TOLD = (RAW, 2, 7, False, False)
TAGS = (b"", b"t", b"tag", b"T" * 32)


def frame(composite: Any, payload: bytes = b"", channel: int = 3) -> bytes:
    return encode_frame(encode_composite(composite) + payload, channel)


def by_hand(code: int, fields: list[Any], payload: bytes = b"") -> bytes:
    return encode_frame(encode(Described(ULong(code), fields)) + payload, 3)


@BOTH
@pytest.mark.rule("1.0#020")
def test_a_transfer_with_a_whole_message_is_one_call(module: Any) -> None:
    data = frame(Transfer(7, 9, b"tag", 0, True, rcv_settle_mode=1, batchable=True), MESSAGE)
    flags = module.SETTLED | module.SETTLED_GIVEN | module.BATCHABLE
    flags |= module.SECOND | module.SECOND_GIVEN
    assert scan(module, [data]) == [
        ("transfer", 3, 7, 9, b"tag", 0, flags, TOLD, 100, b"hi"),
        ("kept", 0),
    ]


@BOTH
def test_fields_that_are_not_there_are_minus_one(module: Any) -> None:
    for data in (frame(Transfer(7), MESSAGE), by_hand(0x14, [UInt(7)] + [None] * 10, MESSAGE)):
        assert scan(module, [data])[0] == ("transfer", 3, 7, -1, None, -1, 0, TOLD, 100, b"hi")


@BOTH
def test_a_body_that_is_no_single_data_section_is_passed_with_its_family(module: Any) -> None:
    body = value_section(["a"])
    (call, _) = scan(module, [frame(Transfer(7), RAW + body)])
    assert call == ("transfer", 3, 7, -1, None, -1, 0, TOLD, 101, body)


@BOTH
@pytest.mark.parametrize(
    ("transfer", "flags", "state"),
    [
        (Transfer(7, 1, b"t", more=True), "MORE", b""),
        (Transfer(7, 1, b"t", aborted=True), "ABORTED", b""),
        (Transfer(7, 1, b"t", resume=True), "RESUME", b""),
        (Transfer(7, 1, b"t", settled=False), "SETTLED_GIVEN", b"\0\x53\x24\x45"),
        (Transfer(7, 1, b"t", rcv_settle_mode=0), "SECOND_GIVEN", b"\0\x53\x24\x45"),
    ],
)
def test_other_transfers_are_parts(module: Any, transfer: Any, flags: str, state: bytes) -> None:
    transfer.state = Accepted() if state else None
    expected = ("partial", 3, 7, 1, b"t", -1, getattr(module, flags), state, MESSAGE)
    assert scan(module, [frame(transfer, MESSAGE)])[0] == expected


@BOTH
def test_while_a_delivery_is_begun_a_transfer_is_a_part(module: Any) -> None:
    call = scan(module, [frame(Transfer(7), MESSAGE)], pending=1)[0]
    assert call == ("partial", 3, 7, -1, None, -1, 0, b"", MESSAGE)


@BOTH
@pytest.mark.parametrize("payload", [b"", RAW, b"junk", MESSAGE + b"\0", value_section(1) * 2])
def test_a_malformed_message_is_a_part(module: Any, payload: bytes) -> None:
    call = scan(module, [frame(Transfer(7, 1, b"t"), payload)])[0]
    assert call == ("partial", 3, 7, 1, b"t", -1, 0, b"", payload)


@BOTH
def test_equal_sections_in_a_row_share_their_properties(module: Any) -> None:
    seen = sink(module)
    scanner = module.PerformativeScanner(seen)
    scanner.fast = True
    annotated = b"\0\x53\x71\xc1\x01\0"
    other = encode_message(data_section(b"3"), properties=Properties(message_id="m"))
    values = (MESSAGE, RAW + data_section(b"2"), RAW + annotated + data_section(b"3"), other)
    for message in (*values, MESSAGE, RAW + value_section(1)):
        scanner.feed(frame(Transfer(7), message))
    first, second, third, fourth, fifth, sixth = seen.properties
    assert first is second is third
    assert len({id(each) for each in (third, fourth, fifth, sixth)}) == 4
    assert told(fifth) == told(first) == told(sixth)
    assert (fifth.family, sixth.family) == (100, 101)


@BOTH
@pytest.mark.parametrize(
    ("state", "outcome", "octets"),
    [
        (None, 0, b""),
        (Accepted(), 0x24, b""),
        (Released(), 0x26, b""),
        (Rejected(), 0x25, b""),
        (Modified(), 0x27, b""),
        (Rejected(Error("amqp:x")), 0x25, encode_composite(Rejected(Error("amqp:x")))),
        (Modified(True), 0x27, encode_composite(Modified(True))),
        (Described(ULong(0x24), [None]), 0x24, b"\0\x53\x24\xc0\x02\x01\x40"),
    ],
)
def test_a_disposition_is_passed_on_by_field(
    module: Any, state: Any, outcome: int, octets: bytes
) -> None:
    data = frame(Disposition(True, 5, 9, True, state, True)) + frame(
        Disposition(False, 2**32 - 1, None, False, state)
    )
    assert scan(module, [data]) == [
        ("disposition", 3, True, 5, 9, True, outcome, octets),
        ("disposition", 3, False, 2**32 - 1, 2**32 - 1, False, outcome, octets),
        ("kept", 0),
    ]


@BOTH
@pytest.mark.rule("1.0#004")
@pytest.mark.parametrize("empty", [b"\x45", b"\xc0\x01\0", b"\xd0\0\0\0\x04\0\0\0\0"])
def test_an_empty_list_has_three_encodings(module: Any, empty: bytes) -> None:
    state = b"\0\x53\x24" + empty
    fields = b"\x41\x52\x05\x43\x56\x01" + state
    for head in (
        bytes((0xC0, len(fields) + 1, 5)),
        b"\xd0" + (len(fields) + 4).to_bytes(4) + (5).to_bytes(4),
    ):
        data = encode_frame(b"\0\x53\x15" + head + fields, 3)
        assert scan(module, [data])[0] == ("disposition", 3, True, 5, 0, True, 0x24, b"")


@BOTH
def test_a_flow_is_passed_on_by_field(module: Any) -> None:
    flags = module.DRAIN | module.ECHO
    data = frame(Flow(1, 2, 300, 4, 5, 6, 2**32 - 1, 8, True, True)) + frame(Flow(None, 2, 3, 4))
    assert scan(module, [data]) == [
        ("flow", 3, 1, 2, 300, 4, 5, 6, 2**32 - 1, 8, flags),
        ("flow", 3, -1, 2, 3, 4, -1, -1, -1, -1, 0),
        ("kept", 0),
    ]


OTHERS = [
    frame(Open("c"), channel=3),
    frame(Flow(1, 2, 3, 4, properties={"a": 1})),
    frame(Disposition(True, 5, state=Described(Symbol("amqp:accepted:list"), []))),
    by_hand(0x13, [None] * 4),
    by_hand(0x13, [UInt(1)] * 12),
    by_hand(0x13, [ULong(1)] * 4),
    by_hand(0x14, []),
    by_hand(0x14, [None, UInt(1)]),
    by_hand(0x14, [UInt(1), UInt(1), "tag"]),
    by_hand(0x14, [UInt(1), UInt(1), b"t" * 33]),
    by_hand(0x14, [UInt(1), UInt(1), b"t", None, None, None, UByte(2)]),
    by_hand(0x14, [UInt(1)] + [None] * 11),
    by_hand(0x15, [None, UInt(1)]),
    by_hand(0x15, [True, None]),
    by_hand(0x15, [True, UInt(1), None, UInt(1)]),
    encode_frame(b"\0\x53\x14\xc1\x01\0", 3),
    encode_frame(b"\0\x53\x14\xc0\x03\x01\x52", 3),
    encode_frame(b"\0\x53\x14\xc0\x05\x02\x43\x56\x02\x43", 3),
    encode_frame(b"\0\x53\x14\xc0\x03\x01\x43\x43", 3),
    encode_frame(b"\0\x53\x14\xc0\x00", 3),
    encode_frame(b"\0\x53\x14\xc0\xff\x01\x43", 3),
    encode_frame(b"\0\x53\x14", 3),
    encode_frame(b"\0\xa3\x12amqp:transfer:list\xc0\x02\x01\x43" + MESSAGE, 3),
    encode_frame(b"\x53\x14\xc0\x02\x01\x43", 3),
]


@BOTH
@pytest.mark.rule("1.0#009")
@pytest.mark.parametrize("data", OTHERS)
def test_what_is_malformed_or_of_another_form_is_passed_as_a_frame(
    module: Any, data: bytes
) -> None:
    assert scan(module, [data]) == [("frame", 3, 0, data[8:]), ("kept", 0)]


@BOTH
def test_everything_is_a_frame_until_the_scanner_is_fast(module: Any) -> None:
    datas = [frame(Transfer(7), MESSAGE), frame(Disposition(True, 5)), frame(Flow(1, 2, 3, 4))]
    expected = [("frame", 3, 0, data[8:]) for data in datas]
    assert scan(module, [b"".join(datas)], fast=False) == [*expected, ("kept", 0)]


@BOTH
@pytest.mark.rule("1.0#021", "1.0#022")
def test_empty_frames_and_those_of_other_types_are_frames(module: Any) -> None:
    data = EMPTY + encode_frame(b"x", 1, SASL) + encode_frame(b"y", 2, 9)
    assert scan(module, [data]) == [
        ("frame", 0, 0, b""),
        ("frame", 1, 1, b"x"),
        ("frame", 2, 9, b"y"),
        ("kept", 0),
    ]


@BOTH
@pytest.mark.rule("1.0#019")
def test_the_extended_header_is_skipped(module: Any) -> None:
    body = encode_composite(Transfer(7)) + MESSAGE
    data = (len(body) + 16).to_bytes(4) + b"\4\0\0\3" + b"extended" + body
    assert scan(module, [data])[0] == ("transfer", 3, 7, -1, None, -1, 0, TOLD, 100, b"hi")


@BOTH
@pytest.mark.rule("1.0#018")
@pytest.mark.parametrize(
    ("head", "text"),
    [
        (b"\0\0\0\x07\2\0\0\0", "frame size (7 bytes) < minimum frame size (8 bytes)"),
        (b"\0\0\x10\x01\2\0\0\0", "frame size (4097 bytes) > maximum frame size (4096 bytes)"),
        (
            b"\xff\xff\xff\xff\2\0\0\0",
            "frame size (4294967295 bytes) > maximum frame size (4096 bytes)",
        ),
        (b"\0\0\0\x08\1\0\0\0", "data offset (1) < minimum data offset (2)"),
        (b"\0\0\0\x08\3\0\0\0", "data offset (12 bytes) > frame size (8 bytes)"),
    ],
)
def test_an_impossible_head_is_a_framing_error(module: Any, head: bytes, text: str) -> None:
    seen = scan(module, [EMPTY + head])
    assert seen[:2] == [("frame", 0, 0, b""), ("error", "amqp:connection:framing-error", text)]


@BOTH
def test_the_largest_frame_is_accepted(module: Any) -> None:
    assert scan(module, [encode_frame(bytes(4088), 1)]) == [
        ("frame", 1, 0, bytes(4088)),
        ("kept", 0),
    ]


@BOTH
def test_input_that_comes_in_pieces_is_the_same(module: Any) -> None:
    data = frame(Transfer(7), MESSAGE) + frame(Disposition(True, 5)) + frame(Flow(1, 2, 3, 4))
    whole = scan(module, [data])
    assert scan(module, [data[at : at + 1] for at in range(len(data))]) == whole
    for at in range(len(data)):
        assert scan(module, [data[:at], memoryview(data)[at:]]) == whole
    assert scan(module, [data[:-1]])[-1] == ("kept", len(frame(Flow(1, 2, 3, 4))) - 1)


@BOTH
def test_a_sink_holds_and_stops_the_input(module: Any) -> None:
    data = frame(Disposition(True, 5)) * 3
    seen = sink(module)
    scanner = module.PerformativeScanner(seen)
    scanner.fast = True

    def hold() -> None:
        scanner.hold = True

    seen.on_call = hold
    scanner.feed(data)
    assert (len(seen.calls), scanner.buffered) == (1, len(data) * 2 // 3)
    scanner.feed(b"")
    assert len(seen.calls) == 1
    scanner.hold = False
    scanner.feed(b"")
    assert len(seen.calls) == 2

    def stop() -> None:
        scanner.stopped = True

    seen.on_call = stop
    scanner.hold = False
    scanner.feed(data)
    assert (len(seen.calls), scanner.buffered) == (3, 0)
    scanner.feed(data)
    assert (len(seen.calls), scanner.buffered) == (3, 0)


@BOTH
def test_work_ends_a_turn(module: Any) -> None:
    seen = sink(module)
    scanner = module.PerformativeScanner(seen)
    scanner.work.begin(2)
    scanner.feed(EMPTY * 3)
    assert len(seen.calls) < 3
    assert scanner.hold
    assert scanner.cut


@BOTH
@pytest.mark.parametrize(
    "data", [frame(Transfer(7), MESSAGE), frame(Disposition(True, 5)), frame(Flow(1, 2, 3, 4))]
)
def test_what_a_sink_raises_leaves_the_scanner(module: Any, data: bytes) -> None:
    seen = sink(module)
    scanner = module.PerformativeScanner(seen)
    scanner.fast = True

    def refuse() -> None:
        raise ConditionError("amqp:decode-error", "of the sink")

    seen.on_call = refuse
    with pytest.raises(ConditionError, match="of the sink"):
        scanner.feed(data)
    assert len(seen.calls) == 1


@BOTH
def test_a_scanner_that_is_ended_drops_its_input_and_its_sink(module: Any) -> None:
    scanner = module.PerformativeScanner(sink(module))
    scanner.feed(EMPTY[:5])
    scanner.break_cycle()
    scanner.feed(EMPTY)
    assert (scanner.buffered, scanner.stopped) == (0, True)


def test_both_kernels_make_the_same_calls_of_random_changes() -> None:
    rng = Random(1000)
    frames = [
        frame(Transfer(7, 300, b"tag", 0, False, state=Accepted(), batchable=True), MESSAGE),
        frame(Transfer(7, 300, b"tag", 0, True), MESSAGE),
        frame(Transfer(7, more=True), MESSAGE),
        frame(Disposition(True, 5, 9, True, Rejected(Error("amqp:x")))),
        frame(Flow(1, 2, 300, 4, 5, 6, 70_000, 8, True, True)),
        EMPTY,
    ]
    for _ in range(3_000):
        data = bytearray(b"".join(rng.choices(frames, k=2)))
        for _ in range(rng.randrange(3)):
            data[rng.randrange(len(data))] = rng.choice(
                b"\0\x01\x02\x40\x41\x43\x45\x52\x53\x56\x70\xa0\xa3\xc0\xd0\xff"
            )
        assert scan(USED, [bytes(data)]) == scan(TWIN, [bytes(data)])


def test_both_kernels_make_the_same_calls_of_transfers_that_are_alike() -> None:
    rng = Random(1001)
    bodies = [
        MESSAGE,
        RAW + data_section(b"x" * 300),
        RAW + b"\0\x53\x75\xb0\0\0\0\x02hi",
        RAW + b"\0\x53\x71\xc1\x01\0" + data_section(b"h"),
        RAW + data_section(b"h") * 2,
        data_section(b""),
        RAW + value_section(1),
        RAW,
    ]
    for _ in range(1_000):
        data = b"".join(
            frame(
                Transfer(7, rng.choice((0, 9, 255, 256, 2**32 - 1)), rng.choice(TAGS), 0, settled),
                rng.choice(bodies),
                channel,
            )
            for settled in (True, True, rng.random() < 0.5)
            for channel in (3, rng.choice((3, 4)))
        )
        changed = bytearray(data)
        for _ in range(rng.randrange(2)):
            changed[rng.randrange(len(data))] = rng.choice(b"\0\x01\x40\x41\x53\x70\xa0\xb0\xff")
        for each in (data, bytes(changed)):
            for passes in (0, 1_000):
                assert scan(USED, [each], passes=passes) == scan(TWIN, [each], passes=passes)


def repeats(count: int, settled: bool = True, handle: int = 7) -> bytes:
    """Transfers that differ in delivery-id and tag."""
    return b"".join(
        frame(Transfer(handle, 300 + number, b"%3d" % number, 0, settled), MESSAGE)
        for number in range(count)
    )


def names(calls: list[Any]) -> list[str]:
    return [call[0] for call in calls]


@BOTH
def test_settled_transfers_that_repeat_each_other_pass_together(module: Any) -> None:
    flags = module.SETTLED | module.SETTLED_GIVEN
    calls = scan(module, [repeats(20) + frame(Flow(1, 2, 3, 4)) + repeats(18)], passes=1 << 20)
    expected = ["transfer", "passage", "passed", "flow", "passage", "passed", "kept"]
    assert names(calls) == expected
    assert calls[1] == ("passage", 3, 7, flags)
    assert (calls[2][1], calls[5][1]) == (19, 18)


@BOTH
@pytest.mark.parametrize(
    "data",
    [
        repeats(20, settled=False),
        repeats(1) + repeats(19, handle=8)[:50],
        repeats(1) + EMPTY + repeats(1) + EMPTY,
        repeats(1) + frame(Transfer(7, more=True), MESSAGE),
        repeats(1) + frame(Transfer(7, 300, b"t", 0, True), MESSAGE),
        repeats(1) + frame(Transfer(7, 3, b"  0", 0, True), MESSAGE),
        repeats(1) + frame(Transfer(7, 300, b"  0", 0, True), MESSAGE, channel=4),
        frame(Transfer(7, 300, None, 0, True), MESSAGE) * 3,
        frame(Transfer(7, None, b"  0", 0, True), MESSAGE) * 3,
    ],
)
def test_no_passage_is_asked_for_other_transfers(module: Any, data: bytes) -> None:
    assert "passage" not in names(scan(module, [data], passes=1 << 20))


@BOTH
def test_what_follows_a_passage_goes_the_usual_way(module: Any) -> None:
    others = [
        frame(Transfer(7, 300, b"  0", 0, True), MESSAGE + b"\0"),
        frame(Transfer(7, 300, b"  0", 0, True), encode_message(data_section(b"x"), Header(ttl=1))),
    ]
    for other, name in zip(others, ("partial", "transfer"), strict=True):
        calls = scan(module, [repeats(20) + other], passes=1 << 20)
        assert names(calls) == ["transfer", "passage", "passed", name, "kept"]


@BOTH
def test_a_passage_takes_as_many_as_it_may(module: Any) -> None:
    seen = sink(module)
    seen.passes, seen.limit = 1 << 20, 17
    scanner = module.PerformativeScanner(seen)
    scanner.fast = True
    scanner.feed(repeats(40))
    assert names(seen.calls) == ["transfer", "passage", "passed"] * 3
    assert [call[1] for call in seen.calls if call[0] == "passed"] == [17, 17, 3]


@BOTH
def test_after_a_short_passage_or_none_no_other_is_tried_in_the_same_input(module: Any) -> None:
    for passes, told_of in ((0, []), (1 << 20, ["passed"])):
        seen = sink(module)
        seen.passes, seen.limit = passes, 3
        scanner = module.PerformativeScanner(seen)
        scanner.fast = True
        scanner.feed(repeats(9))
        calls = [name for name in names(seen.calls) if name != "transfer"]
        assert calls == ["passage", *told_of]
        scanner.feed(repeats(9))
        assert names(seen.calls).count("passage") == 2


@BOTH
def test_a_passage_ends_where_the_work_budget_does(module: Any) -> None:
    seen = sink(module)
    seen.passes = 1 << 20
    scanner = module.PerformativeScanner(seen)
    scanner.fast = True
    scanner.work.begin(40)
    scanner.feed(repeats(200))
    assert scanner.hold
    assert scanner.cut
    first = seen.calls[-1][1]
    assert 0 < first < 199
    scanner.work.end()
    scanner.hold = scanner.cut = False
    scanner.feed(b"")
    assert names(seen.calls) == ["transfer", "passage", "passed", "passage", "passed"]
    assert first + seen.calls[-1][1] == 199


def test_both_kernels_keep_the_same_input_for_later_turns() -> None:
    rng = Random(1002)
    each = frame(Transfer(7, 300, b"tag", 0, False), MESSAGE)
    for _ in range(300):
        data = each * rng.randrange(1, 30) + each[: rng.randrange(len(each))]
        cuts = sorted(rng.randrange(len(data)) for _ in range(rng.randrange(4)))
        turns = [rng.randrange(1, 9) for _ in range(40)]
        assert _in_turns(USED, data, cuts, turns) == _in_turns(TWIN, data, cuts, turns)


def _in_turns(module: Any, data: bytes, cuts: list[int], turns: list[int]) -> list[Any]:
    """What is called and kept if the sink holds the input after so many calls each turn."""
    seen = sink(module)
    scanner = module.PerformativeScanner(seen)
    scanner.fast = True
    left = iter(turns)
    until = next(left)

    def hold() -> None:
        scanner.hold = len(seen.calls) >= until

    seen.on_call = hold
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        scanner.feed(data[start:end])
        seen.calls.append(scanner.buffered)
        if len(seen.calls) % 2:
            until = len(seen.calls) + next(left)
            scanner.hold = False
    for _ in range(3):
        until = len(seen.calls) + next(left)
        scanner.hold = False
        scanner.feed(b"")
        seen.calls.append(scanner.buffered)
    calls: list[Any] = seen.calls
    return calls
