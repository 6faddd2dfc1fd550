"""Controls, commands and structs of AMQP 0-10: octets to typed values and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.base.values import Typed
from harebell.wire.v010 import commands, controls, structs
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Command, Composite, Control
from harebell.wire.v010.spec import CompositeSpec, ProtocolSpec
from harebell.wire.v010.types import Array
from harebell.wire.v09.fields import read_timestamp

PLACES: dict[str, Any] = {
    "uint8": st.integers(0, 255),
    "uint16": st.integers(0, 2**16 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "sequence-no": st.integers(0, 2**32 - 1),
    "datetime": st.integers(0, 2**33).map(read_timestamp),
    "str8": st.text("aé", max_size=9),
    "str16": st.text("aé", max_size=9),
    "vbin8": st.binary(max_size=9),
    "vbin16": st.binary(max_size=9),
    "vbin32": st.binary(max_size=9),
    "map": st.dictionaries(st.text("ab", max_size=3), st.integers(-9, 9), max_size=3),
    "array": st.lists(st.text("ab", max_size=3), max_size=3),
    "uuid": st.uuids(),
    "sequence-set": st.lists(st.tuples(st.integers(0, 9), st.integers(10, 19)), max_size=3).map(
        tuple
    ),
    "byte-ranges": st.lists(st.tuples(st.integers(0, 9), st.integers(10, 2**60)), max_size=3).map(
        tuple
    ),
}


def composites(spec: CompositeSpec) -> Any:
    places: dict[str, Any] = {}
    for field in spec.fields:
        if field.domain is None:
            places[field.attribute] = st.booleans()
            continue
        if field.kind == "struct32":
            place: Any = composites(AMQP_0_10.structs["dtx.xa-result"])
        elif field.kind in AMQP_0_10.structs:
            place = composites(AMQP_0_10.structs[field.kind])
        else:
            place = PLACES[field.kind]
        if not field.required and field.kind not in ("map", "array", "sequence-set"):
            place = st.none() | place
        places[field.attribute] = place
    return st.builds(spec.type, **places)


ALL = [*AMQP_0_10.controls.values(), *AMQP_0_10.commands.values()]


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_control_and_command_survives_being_written_and_read(
    spec: CompositeSpec, data: Any
) -> None:
    value = data.draw(composites(spec))
    raw = AMQP_0_10.encode(value, True)
    if isinstance(value, Control):
        assert AMQP_0_10.decode_control(raw) == value
    else:
        sync, command = AMQP_0_10.decode_command(raw)
        assert (sync, command) == (True, value)


CODED = [spec for spec in AMQP_0_10.structs.values() if spec.code >= 0]


@pytest.mark.parametrize("spec", CODED, ids=lambda spec: spec.name)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_struct_survives_a_header_segment(spec: CompositeSpec, data: Any) -> None:
    values = data.draw(st.lists(composites(spec), max_size=2))
    raw = b"".join(AMQP_0_10.encode_struct(value) for value in values)
    assert AMQP_0_10.decode_header(raw) == values


CAPTURED: list[tuple[str, Any]] = [
    ("0201 0100 0002 7331", controls.SessionAttach(b"s1")),
    ("0207 0300 00000000 0000000000000000", controls.SessionCommandPoint(0, 0)),
    ("0801 0101 2100 0177", commands.QueueDeclare("w", auto_delete=True)),
    ("0401 0100 0000", commands.MessageTransfer()),
]


@pytest.mark.parametrize(("octets", "value"), CAPTURED)
def test_the_octets_of_a_real_client_are_understood(octets: str, value: Composite) -> None:
    raw = bytes.fromhex(octets)
    if isinstance(value, Control):
        assert AMQP_0_10.decode_control(raw) == value
        assert AMQP_0_10.encode(value) == raw
        return
    assert isinstance(value, Command)
    sync, command = AMQP_0_10.decode_command(raw)
    if command != commands.MessageTransfer():
        assert AMQP_0_10.encode(command, sync) == raw
    assert command == value


def test_a_captured_header_is_understood_and_written_alike() -> None:
    raw = bytes.fromhex("00000006 0401 0002 0177 0000000f 0403 1000 0a746578742f706c61696e")
    delivery, message = AMQP_0_10.decode_header(raw)
    assert delivery == structs.DeliveryProperties(routing_key="w")
    assert message == structs.MessageProperties(content_type="text/plain")
    assert b"".join(AMQP_0_10.encode_struct(each) for each in (delivery, message)) == raw


def test_required_fields_are_written_even_when_they_are_zero() -> None:
    assert AMQP_0_10.encode(commands.MessageTransfer("q")).hex() == "04010100070001710000"


def test_a_branch_is_understood_in_the_first_print_too() -> None:
    now = AMQP_0_10.encode(commands.DtxStart(structs.Xid(7, b"g", b"b")))
    then = now.replace(bytes.fromhex("0000000c0604"), bytes.fromhex("000a"))
    assert then != now
    assert AMQP_0_10.decode_command(then) == AMQP_0_10.decode_command(now)


def test_branches_travel_in_an_array_of_structs() -> None:
    branches = [structs.Xid(1, b"a", b"b"), structs.Xid(2, b"c", b"")]
    raw = AMQP_0_10.struct_array(list(branches))
    result = commands.ExecutionResult(3, structs.RecoverResult(raw))
    command: Any = AMQP_0_10.decode_command(AMQP_0_10.encode(result)).command
    back = [
        AMQP_0_10.read_struct32(len(each.data).to_bytes(4) + each.data, 0, 4 + len(each.data))[0]
        for each in command.value.in_doubt
    ]
    assert back == branches


@pytest.mark.parametrize(
    ("octets", "code", "text"),
    [
        ("0299 0000", 501, "unknown control 0299"),
        ("09", 501, "unknown control 09"),
        ("0801 0000", 501, "unknown control 0801"),
        ("0201 01", 501, "session.attach: its packing flags are cut off"),
        ("0201 0100 00ff 61", 501, "field 'name': 255 octets are announced, 1 are there"),
        ("0201 0100 0001 6161", 501, "1 octets after the last field"),
        ("0201 0400", 501, "packing flags 0x4 for 2 fields"),
    ],
)
def test_a_control_that_cannot_be_read_ends_the_connection(
    octets: str, code: int, text: str
) -> None:
    with pytest.raises(ProtocolError) as caught:
        AMQP_0_10.decode_control(bytes.fromhex(octets))
    assert caught.value.code == code
    assert caught.value.hard
    assert text in caught.value.text


@pytest.mark.parametrize(
    ("octets", "code", "hard", "text"),
    [
        ("0801", 501, True, "no session header"),
        ("0801 0200", 501, True, "no session header"),
        ("0801 0102 0000", 501, True, "no session header"),
        ("6301 0100 0000", 503, False, "unknown class 99"),
        ("0899 0100 0000", 503, False, "unknown command 153 in class queue"),
        ("0201 0100 0000", 503, False, "unknown command 1 in class session"),
        ("0801 0100 0100 05 6161", 531, False, "field 'queue': 5 octets are announced"),
        ("0801 0100 0100 02 c3c3", 531, False, "a text is no UTF-8"),
        ("0801 0100 8000", 531, False, "packing flags 0x80 for 7 fields"),
        ("0402 0100 0100 0004 00000000", 531, False, "4 octets are no whole ranges"),
        ("0402 0100 0100 0008 0000000500000001", 531, False, "from 5 to 1 goes backwards"),
        ("0602 0100 0100 0000000c 0999 0000 000000000000000000", 531, False, "not the code of"),
    ],
)
def test_a_command_that_cannot_be_read_is_refused_with_the_reason(
    octets: str, code: int, hard: bool, text: str
) -> None:
    with pytest.raises(ProtocolError) as caught:
        AMQP_0_10.decode_command(bytes.fromhex(octets))
    assert (caught.value.code, caught.value.hard) == (code, hard)
    assert text in caught.value.text


def test_ranges_may_cross_the_end_of_the_numbers() -> None:
    accept = commands.MessageAccept(((2**32 - 2, 3),))
    assert AMQP_0_10.decode_command(AMQP_0_10.encode(accept)).command == accept


def test_an_unknown_struct_of_a_header_is_kept() -> None:
    raw = bytes.fromhex("00000005 7f01 112233")
    assert AMQP_0_10.decode_header(raw) == [Typed(0xAB, raw[4:])]


@pytest.mark.parametrize(
    "octets", ["000000", "00000001 04", "00000009 0401 0000", "0000000404010080"]
)
def test_a_header_that_cannot_be_read_is_refused(octets: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        AMQP_0_10.decode_header(bytes.fromhex(octets))
    assert caught.value.code == 531


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (commands.QueueDeclare("q" * 256), "queue.declare: 'queue': 256 octets"),
        (commands.QueueDeclare(5), "queue.declare: 'queue': must be a str, not int"),  # type: ignore[arg-type]
        (commands.MessageFlow("d", 0, 2**32), "'value': 4294967296 is not between"),
        (commands.DtxStart(None), "must be a Xid, not None"),  # type: ignore[arg-type]
        (commands.ExecutionResult(1, structs.ReplyTo()), "is no struct with a code"),
    ],
)
def test_a_value_that_cannot_be_sent_names_the_command_and_the_field(
    value: Command, text: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        AMQP_0_10.encode(value)


@pytest.mark.parametrize(
    "table",
    ["queue 8\n  declare 1 C : nonsense queue", "queue 8\n  purge 3 C ?"],
)
def test_a_table_that_makes_no_sense_is_refused(table: str) -> None:
    with pytest.raises(ValueError, match=r"unknown data type|cannot read"):
        ProtocolSpec(table)


def test_an_array_keeps_the_type_of_its_items() -> None:
    start = controls.ConnectionStart({}, Array(0x95, ["PLAIN"]), [])
    raw = AMQP_0_10.encode(start)
    assert AMQP_0_10.decode_control(raw) == start
