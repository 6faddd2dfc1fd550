"""message.transfer: the octets of 2007's client, every field both ways, every cut an error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.base.message import FAMILY_010T
from harebell.wire.v09.transfer import (
    EMPTY,
    Transfer,
    TransferProperties,
    decode_transfer,
    encode_transfer,
    headers_octets,
    parse_transfer,
    read_transfer,
    stamped_transfer,
    with_headers_octets,
    write_transfer,
)
from harebell.wire.v09.transitional_types import INLINE, REFERENCE
from harebell.wire.v09.typed_fields import FieldDialect, encode_typed
from tests.unit.wire.v09.attempt import attempt
from tests.unit.wire.v09.tables import shortstr

FULL = TransferProperties(
    ttl=60_000,
    priority=9,
    timestamp=1_186_000_000,
    delivery_mode=2,
    expiration=1_186_000_060,
    message_id="m",
    correlation_id="c",
    reply_to="r",
    content_type="text/plain",
    content_encoding="utf-8",
    type="t",
    user_id="u",
    app_id="a",
    transaction_id="x",
    security_token=b"\0secret",
    application_headers={"a": 1, "b": "two"},
)
PROPERTIES: st.SearchStrategy[TransferProperties] = st.builds(
    TransferProperties,
    ttl=st.integers(0, 2**64 - 1),
    priority=st.integers(0, 255),
    timestamp=st.integers(0, 2**64 - 1),
    delivery_mode=st.integers(0, 255),
    expiration=st.integers(0, 2**64 - 1),
    security_token=st.binary(max_size=20),
    application_headers=st.dictionaries(
        shortstr(8), st.integers(-(2**31), 2**31 - 1) | shortstr(8), max_size=3
    ),
    **{name: shortstr(12) for name in TransferProperties.__struct_fields__[5:14]},
)
TRANSFERS: st.SearchStrategy[Transfer] = st.builds(
    Transfer,
    ticket=st.integers(0, 2**16 - 1),
    destination=shortstr(10),
    redelivered=st.booleans(),
    reject_unroutable=st.booleans(),
    immediate=st.booleans(),
    exchange=shortstr(10),
    routing_key=shortstr(10),
    content_length=st.integers(0, 2**64 - 1),
    raw=PROPERTIES.map(encode_transfer),
    kind=st.sampled_from([INLINE, REFERENCE]),
    value=st.binary(max_size=30),
)


def code_of(call: Any, *arguments: Any) -> tuple[int, str]:
    """What a call is refused with."""
    with pytest.raises(ProtocolError) as caught:
        call(*arguments)
    assert (caught.value.class_id, caught.value.method_id) == (120, 10)
    return caught.value.code, caught.value.text


def test_the_octets_that_the_client_of_2007_sent_for_an_empty_body_to_a_queue_are_read():
    payload = bytes.fromhex("0078000a 0000 00 00" + "00" * 26 + "00 0466756c6c" + "00" * 5) + (
        bytes(8) + bytes(4) + bytes(4) + bytes(4) + b"\0" + bytes(4)
    )
    found = read_transfer(payload)
    assert (found.destination, found.routing_key, found.kind, found.value) == ("", "full", 0, b"")
    assert found.raw == EMPTY
    assert write_transfer(found) == payload


def test_every_field_has_its_place():
    transfer = Transfer(1, "d", True, False, True, "e", "k", 4, encode_transfer(FULL), 0, b"body")
    payload = write_transfer(transfer)
    assert payload[:6] == bytes.fromhex("0078000a0001")
    assert payload[6:9] == b"\x01d\x05"
    assert payload[9:17] == (60_000).to_bytes(8)
    assert payload[17] == 9
    assert payload[18:26] == (1_186_000_000).to_bytes(8)
    assert payload[26] == 2
    assert payload[27:35] == (1_186_000_060).to_bytes(8)
    texts = b"\x01e\x01k\x01m\x01c\x01r\x0atext/plain\x05utf-8"
    assert payload[35:].startswith(texts + (4).to_bytes(8) + b"\x01t\x01u\x01a\x01x\0\0\0\x07\0")
    assert payload.endswith(b"\0\0\0\0\x04body")
    assert read_transfer(payload) == transfer
    assert decode_transfer(transfer.raw) == FULL


@given(TRANSFERS)
def test_a_transfer_survives_the_round_trip(transfer: Transfer):
    payload = write_transfer(transfer)
    assert read_transfer(payload) == transfer
    assert write_transfer(read_transfer(payload)) == payload


@given(PROPERTIES)
def test_properties_survive_the_round_trip(properties: TransferProperties):
    raw = encode_transfer(properties)
    assert decode_transfer(raw) == properties
    parsed = parse_transfer(raw)
    assert parsed.raw == raw
    assert parsed.family == FAMILY_010T
    assert parsed.delivery_mode == properties.delivery_mode
    assert parsed.priority == properties.priority
    assert parsed.has_headers == bool(properties.application_headers)


@given(TRANSFERS, st.data())
def test_a_transfer_that_is_cut_off_names_the_field(transfer: Transfer, data: st.DataObject):
    payload = write_transfer(transfer)
    cut = payload[: data.draw(st.integers(4, len(payload) - 1))]
    code, text = code_of(read_transfer, cut)
    assert code == 502
    assert text.startswith("message.transfer: field '")


@given(st.binary(max_size=200))
def test_any_octets_are_a_transfer_or_an_error(tail: bytes):
    found = attempt(read_transfer, bytes.fromhex("0078000a") + tail)
    if isinstance(found, ProtocolError):
        assert found.code in (501, 502)
        return
    decode_transfer(found.raw)
    assert parse_transfer(found.raw).raw == found.raw


def test_octets_after_the_body_are_an_error():
    payload = write_transfer(Transfer(value=b"x"))
    assert code_of(read_transfer, payload + b"yz") == (
        502,
        "message.transfer: 2 octets of garbage after the last field",
    )


def test_a_body_is_inline_or_a_reference():
    payload = bytearray(write_transfer(Transfer()))
    payload[-5] = 2
    code, text = code_of(read_transfer, bytes(payload))
    assert (code, "neither inline (0) nor a reference (1), but 2" in text) == (502, True)


@pytest.mark.parametrize("field", ["destination", "routing_key"])
def test_names_that_are_no_text_are_an_error(field: str):
    payload = write_transfer(Transfer(**{field: "\udcff"}))
    assert code_of(read_transfer, payload)[0] == 501


def test_properties_that_are_no_text_keep_their_octets():
    raw = encode_transfer(TransferProperties(correlation_id="\udcff"))
    found = read_transfer(write_transfer(Transfer(raw=raw)))
    assert found.raw == raw
    assert decode_transfer(found.raw).correlation_id == "\udcff"


def test_headers_that_are_no_table_are_an_error():
    raw = with_headers_octets(EMPTY, b"\0\0\0\x03\x01a\xfe")
    code, text = code_of(read_transfer, write_transfer(Transfer(raw=raw)))
    assert code == 502
    assert "field 'application-headers': malformed field table: 'a': unknown type" in text


def test_the_headers_can_be_taken_out_and_replaced():
    raw = encode_transfer(FULL)
    table = encode_typed({"z": 5})
    assert headers_octets(raw) == encode_typed(FULL.application_headers, FieldDialect.TYPED)
    changed = with_headers_octets(raw, table)
    assert decode_transfer(changed).application_headers == {"z": 5}
    assert with_headers_octets(changed, headers_octets(raw)) == raw


def test_headers_may_be_given_as_octets():
    table = encode_typed({"z": 5})
    raw = encode_transfer(TransferProperties(application_headers={"ignored": 1}), table)
    assert headers_octets(raw) == table


@pytest.mark.parametrize(
    ("properties", "error", "name"),
    [
        (TransferProperties(ttl=-1), ValueError, "ttl"),
        (TransferProperties(priority=256), ValueError, "priority"),
        (TransferProperties(priority=True), TypeError, "priority"),
        (TransferProperties(delivery_mode="2"), TypeError, "delivery_mode"),  # type: ignore[arg-type]
        (TransferProperties(app_id="x" * 256), ValueError, "app_id"),
        (TransferProperties(app_id=b"x"), TypeError, "app_id"),  # type: ignore[arg-type]
        (TransferProperties(security_token="x"), TypeError, "security_token"),  # type: ignore[arg-type]
        (TransferProperties(application_headers={"a": 2**70}), ValueError, "application_headers"),
        (TransferProperties(application_headers={"a": {1}}), TypeError, "application_headers"),
    ],
)
def test_a_value_that_does_not_fit_is_named(
    properties: TransferProperties, error: type[Exception], name: str
):
    with pytest.raises(error, match=f"^{name}: "):
        encode_transfer(properties)


def test_arrival_sets_what_the_publisher_left_to_the_broker():
    raw = encode_transfer(TransferProperties(ttl=1_500, priority=3))
    found = decode_transfer(stamped_transfer(raw, 10_000, "id"))
    assert (found.timestamp, found.expiration, found.message_id) == (10, 12, "id")
    assert (found.ttl, found.priority) == (1_500, 3)


def test_arrival_leaves_what_the_publisher_set():
    raw = encode_transfer(FULL)
    found = decode_transfer(stamped_transfer(raw, 2_000_000_000_000, "id"))
    assert (found.timestamp, found.message_id) == (FULL.timestamp, "m")
    assert found.expiration == 2_000_000_060


def test_a_message_without_ttl_does_not_expire_whatever_its_publisher_says():
    raw = encode_transfer(TransferProperties(expiration=5))
    assert decode_transfer(stamped_transfer(raw, 10_000, "id")).expiration == 0


def test_the_longest_ttl_has_an_expiration_too():
    raw = encode_transfer(TransferProperties(ttl=2**64 - 1))
    assert decode_transfer(stamped_transfer(raw, 10_000, "id")).expiration > 2**54
