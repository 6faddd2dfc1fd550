"""Composites of AMQP 1.0: the table against what is known of it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import DecodeError
from harebell.wire.v1 import composites
from harebell.wire.v1.composites import (
    Accepted,
    Attach,
    Begin,
    Close,
    Coordinator,
    DeleteOnClose,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Header,
    Modified,
    Open,
    Properties,
    Rejected,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from harebell.wire.v1.encoding import encode
from harebell.wire.v1.performatives import (
    code_of,
    composite_of,
    decode_performative,
    decode_repeated,
    encode_composite,
)
from harebell.wire.v1.spec import read_table
from harebell.wire.v1.tables import COMPOSITES
from harebell.wire.v1.values import Array, Described, Symbol, Timestamp, UByte, UInt, ULong

CONVERSATION: list[tuple[str, Any]] = [
    (
        "005340c01501e01202a305504c41494e09414e4f4e594d4f5553",
        SaslMechanisms(("PLAIN", "ANONYMOUS")),
    ),
    (
        "005341c01602a305504c41494ea00c006775657374006775657374",
        SaslInit("PLAIN", b"\0guest\0guest"),
    ),
    ("005344c003015000", SaslOutcome(0)),
    ("005310c0150aa10163a10776686f73743a2f4040404040404040", Open("c", "vhost:/")),
    ("005311c011084043700000019070000001" + "9040404040", Begin(None, 0, 400, 400)),
    (
        "005312c0240ea1016c4342404000532845005329c00c01a1092f7175657565732f7140404340404040",
        Attach(
            "l", 0, False, source=Source(), target=Target("/queues/q"), initial_delivery_count=0
        ),
    ),
    (
        "005313c01107437000000190437000000190434352aa",
        Flow(0, 400, 0, 400, handle=0, delivery_count=0, link_credit=170),
    ),
    ("005314c008054343a001014342", Transfer(0, 0, b"\1", 0, False)),
    ("005315c009054143404100532445", Disposition(True, 0, settled=True, state=Accepted())),
    ("005316c00403434140", Detach(0, True)),
    ("005318c0020140", Close()),
]
"""Frames' bodies of a conversation, hexadecimal, and what they are."""


@pytest.mark.rule("1.0#005")
@pytest.mark.parametrize(("octets", "composite"), CONVERSATION)
def test_a_conversation_is_read_and_written(octets: str, composite: Any) -> None:
    data = bytes.fromhex(octets)
    assert decode_performative(data + b"payload") == (composite, len(data))
    assert encode_composite(composite) == data


@pytest.mark.rule("1.0#005")
@pytest.mark.parametrize(
    ("octets", "composite"),
    [
        ("005310c00d02a10163a10776686f73743a2f", Open("c", "vhost:/")),
        ("005311c00d04404370000001907000000190", Begin(None, 0, 400, 400)),
        ("005316c003024341", Detach(0, True)),
        ("00531845", Close()),
    ],
)
def test_nulls_at_the_end_may_be_left_out(octets: str, composite: Any) -> None:
    data = bytes.fromhex(octets)
    assert decode_performative(data + b"payload") == (composite, len(data))


@pytest.mark.parametrize(
    "value",
    [Open("c"), Begin(None, 0, 1, 1), Attach("l", 0, True), Detach(0), End(), Close(), Error("x")],
    ids=lambda value: value.NAME,
)
def test_clients_that_read_fields_by_their_place_find_them_all(value: Any) -> None:
    octets = encode_composite(value)
    assert octets[3] == 0xC0
    assert octets[5] == len(value.SPEC.fields)


@pytest.mark.parametrize("spec", COMPOSITES.values(), ids=lambda spec: spec.name)
def test_a_composite_without_fields_given_has_the_defaults(spec: Any) -> None:
    composite = spec.type(("PLAIN",)) if spec.name == "sasl-mechanisms" else spec.type()
    decoded, _ = decode_performative(encode_composite(composite))
    assert decoded == composite
    assert code_of(composite) == code_of(type(composite)) == spec.code
    assert getattr(composites, type(composite).__name__) is spec.type


@pytest.mark.rule("1.0#009")
@pytest.mark.parametrize("spec", COMPOSITES.values(), ids=lambda spec: spec.name)
def test_a_composite_may_be_named_by_its_symbol_and_by_a_long_code(spec: Any) -> None:
    composite = spec.type(("PLAIN",)) if spec.name == "sasl-mechanisms" else spec.type()
    octets = encode_composite(composite)[3:]
    assert decode_performative(b"\0" + encode(Symbol(spec.symbol)) + octets)[0] == composite
    assert decode_performative(b"\0\x80" + spec.code.to_bytes(8) + octets)[0] == composite


FULL = [
    Open("c", "h", 512, 7, 9, ("en",), ("de", "en"), ("a",), ("b", "c"), {"product": "x"}),
    Attach(
        "n",
        1,
        True,
        1,
        1,
        Source(
            "q", 2, "never", 3, True, {"lifetime-policy": DeleteOnClose()}, "copy",
            {"f": Described(Symbol("apache.org:selector-filter:string"), "a = 1")},
            Modified(True, True, {"x-opt-a": 1}), ("amqp:accepted:list",), ("queue",),
        ),
        Coordinator(("amqp:local-transactions",)),
        {b"tag": Accepted(), b"other": None},
        True,
        4,
        5,
        ("a",),
        ("b",),
        {"k": [1]},
    ),
    Disposition(True, 1, 2, True, TransactionalState(b"t", Rejected(Error("c", "d", {"i": 1})))),
    Header(True, 9, 1000, True, 5),
    Properties("id", b"u", "to", "s", "r", ULong(5), "t", "e", 1, 2, "g", 3, "rg"),
]  # fmt: skip


@pytest.mark.parametrize("composite", FULL, ids=lambda composite: composite.NAME)
def test_every_field_comes_back(composite: Any) -> None:
    octets = encode_composite(composite)
    assert decode_performative(octets) == (composite, len(octets))


@pytest.mark.rule("1.0#005", "1.0#126")
def test_nulls_mean_the_same_as_fields_that_are_not_there() -> None:
    given = decode_performative(b"\0" + encode(ULong(0x70)) + encode([None] * 5))[0]
    assert given == decode_performative(b"\0\x53\x70\x45")[0] == Header()
    assert (given.durable, given.priority, given.ttl, given.delivery_count) == (
        False,
        None,
        None,
        0,
    )


@pytest.mark.rule("1.0#007")
@pytest.mark.parametrize(
    ("given", "capabilities"),
    [
        (None, ()),
        (Array(0xA3), ()),
        (Symbol("a"), ("a",)),
        (Array(0xA3, [Symbol("a")]), ("a",)),
        (Array(0xB3, [Symbol("a"), Symbol("b")]), ("a", "b")),
    ],
)
def test_a_multiple_field_is_null_one_value_or_an_array(given: Any, capabilities: Any) -> None:
    assert _read(0x30, [given]) == Coordinator(capabilities)


def _read(code: int, fields: list[Any]) -> Any:
    return composite_of(Described(ULong(code), fields))


REFUSED: list[tuple[int, Any, str]] = [
    (0x10, [], "open: container-id: is mandatory"),
    (0x10, [None], "open: container-id: is mandatory"),
    (0x10, [Symbol("c")], "open: container-id: must be string, not symbol"),
    (0x10, ["c", None, 512], "open: max-frame-size: must be uint, not long"),
    (0x10, ["c"] + [None] * 10, "open: 11 fields, at most 10 may be"),
    (
        0x10,
        ["c"] + [None] * 8 + [{"a": 1}],
        "open: properties: must have symbols as keys, not string",
    ),
    (0x12, ["n", UInt(1)], "attach: role: is mandatory"),
    (
        0x12,
        ["n", UInt(1), True, UByte(3)],
        "attach: snd-settle-mode: 3, at most 2 may be",
    ),
    (
        0x12,
        ["n", UInt(1), True, None, None, Described(ULong(0x28), [None, UInt(3)])],
        "attach: source: source: durable: 3, at most 2 may be",
    ),
    (0x14, [UInt(1), None, b"x" * 33], "transfer: delivery-tag: 33 octets, at most 32 may be"),
    (0x18, ["error", 1], "close: 2 fields, at most 1 may be"),
    (0x40, [None], "sasl-mechanisms: sasl-server-mechanisms: is mandatory"),
    (0x40, [Array(0xA3)], "sasl-mechanisms: sasl-server-mechanisms: is mandatory"),
    (
        0x40,
        [Array(0xA1, ["PLAIN"])],
        "sasl-mechanisms: sasl-server-mechanisms: must be symbol, not string",
    ),
    (0x44, [UByte(5)], "sasl-outcome: code: 5, at most 4 may be"),
    (0x24, {}, "accepted: must be a list"),
]


@pytest.mark.rule("1.0#006", "1.0#008")
@pytest.mark.parametrize(("code", "fields", "text"), REFUSED)
def test_fields_that_do_not_fit_are_named(code: int, fields: Any, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _read(code, fields)
    assert (caught.value.condition, caught.value.text) == ("amqp:decode-error", text)


@pytest.mark.parametrize("value", [1, Described(ULong(0x99), []), Described("open", [])])
def test_what_is_no_composite_is_refused_as_a_performative(value: Any) -> None:
    with pytest.raises(DecodeError, match="no composite that is known"):
        decode_performative(encode(value))


@pytest.mark.parametrize(
    "composite", [Open("c", "h"), Begin(None, 0, 1, 2), Detach(1, True), End(), Close()]
)
def test_what_begins_and_ends_is_decoded_once_for_the_same_octets(composite: Any) -> None:
    octets = encode_composite(composite)
    first, end = decode_repeated(octets)
    assert (first, end) == (composite, len(octets))
    assert decode_repeated(bytes(bytearray(octets)))[0] is first


@pytest.mark.parametrize("composite", [SaslInit("PLAIN", b"secret"), Open("c" * 200)])
def test_secrets_and_long_performatives_are_not_kept(composite: Any) -> None:
    octets = encode_composite(composite)
    first, _ = decode_repeated(octets)
    assert first == composite
    assert decode_repeated(octets)[0] is not first


def test_a_repeated_performative_that_is_malformed_is_refused_each_time() -> None:
    octets = encode_composite(End())[:-1]
    for _ in range(2):
        with pytest.raises(DecodeError):
            decode_repeated(octets)


def test_a_described_value_that_is_not_known_stays_as_it_is() -> None:
    unknown = Described(Symbol("x:filter"), [1])
    assert _read(0x28, [unknown]).address == unknown
    assert _read(0x28, [None] * 7 + [{Symbol("f"): unknown}]).filter == {"f": unknown}


@pytest.mark.parametrize(
    ("composite", "text"),
    [
        (Open(None), "open: container-id: is mandatory"),
        (SaslMechanisms(), "sasl-mechanisms: sasl-server-mechanisms: is mandatory"),
        (Begin(None, 2**32), "begin: next-outgoing-id: 4294967296 does not fit into 32 bits"),
        (Error("é"), r"error: condition: '\xe9' is not ASCII, as a symbol must be"),
    ],
)
def test_a_composite_with_a_wrong_value_cannot_be_written(composite: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        encode_composite(composite)
    assert str(caught.value) == text


def test_times_keep_their_type_on_the_wire() -> None:
    octets = encode_composite(Properties(creation_time=5))
    assert octets.endswith(b"\x83" + (5).to_bytes(8))
    assert type(decode_performative(octets)[0].creation_time) is Timestamp  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("t 0\n  x 10 : strange a", "unknown type 'strange'"),
        ("t 0\n  x 10 : uint a==1", "cannot read the field"),
    ],
)
def test_a_table_with_a_fault_is_refused(line: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        read_table(line)
