"""What class basic says and what a header segment of 0-10 says is the same, both ways."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.message import FAMILY_010, FAMILY_09, Message, Properties
from harebell.wire.convert.final import from_basic, to_basic
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.structs import (
    DeliveryProperties,
    FileProperties,
    FragmentProperties,
    MessageProperties,
    ReplyTo,
)
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FULL = BasicProperties(
    content_type="text/plain",
    content_encoding="gzip",
    headers={"a": 1, "b": "x"},
    delivery_mode=2,
    priority=7,
    correlation_id="c",
    reply_to="replies",
    expiration="60000",
    message_id="m-1",
    timestamp=MOMENT,
    type="t",
    user_id="guest",
    app_id="app",
    cluster_id="cl",
)


def basic(properties: BasicProperties) -> Message:
    """A message of class basic."""
    return Message("x", "k", parse_properties(encode_properties(properties)), b"body")


def final(*structs: Any) -> Message:
    """A message of 0-10."""
    raw = b"".join(AMQP_0_10.encode_struct(struct) for struct in structs)
    return Message("x", "k", Properties(raw, family=FAMILY_010), b"body")


def structs_of(message: Message) -> dict[str, Any]:
    """The structs of its header segment, by their names."""
    assert message.family == FAMILY_010
    return {type(struct).__name__: struct for struct in AMQP_0_10.decode_header(message.raw)}


def properties_of(message: Message) -> BasicProperties:
    """The properties of a message of class basic."""
    assert message.family == FAMILY_09
    return decode_properties(message.raw)


def test_every_property_of_basic_comes_back() -> None:
    there = from_basic(basic(FULL))
    assert (there.delivery_mode, there.priority, there.has_headers) == (2, 7, True)
    assert properties_of(to_basic(there)) == FULL
    assert (there.body, there.exchange, there.routing_key) == (b"body", "x", "k")


@pytest.mark.parametrize("name", BasicProperties.__struct_fields__)
def test_each_property_of_basic_comes_back_alone(name: str) -> None:
    alone = BasicProperties(**{name: getattr(FULL, name)})
    assert properties_of(to_basic(from_basic(basic(alone)))) == alone


def test_a_consumer_of_0_10_finds_each_property_where_it_looks_for_it() -> None:
    structs = structs_of(from_basic(basic(FULL)))
    assert structs["DeliveryProperties"] == DeliveryProperties(
        priority=7, delivery_mode=2, ttl=60_000, timestamp=MOMENT
    )
    assert structs["MessageProperties"] == MessageProperties(
        correlation_id=b"c",
        reply_to=ReplyTo(routing_key="replies"),
        content_type="text/plain",
        content_encoding="gzip",
        user_id=b"guest",
        app_id=b"app",
        application_headers={
            "a": 1,
            "b": "x",
            "x-amqp-message-id": "m-1",
            "x-amqp-type": "t",
            "x-amqp-cluster-id": "cl",
        },
    )


def test_a_message_id_that_is_a_uuid_is_one() -> None:
    uuid = UUID(int=7)
    there = from_basic(basic(BasicProperties(message_id=str(uuid))))
    assert structs_of(there)["MessageProperties"].message_id == uuid
    shouted = from_basic(basic(BasicProperties(message_id="{" + str(uuid) + "}")))
    assert structs_of(shouted)["MessageProperties"].message_id is None
    assert properties_of(to_basic(shouted)).message_id == "{" + str(uuid) + "}"


@pytest.mark.parametrize("expiration", ["007", "soon", "", " 7", "1_0", "-1", str(2**64)])
def test_an_expiration_that_is_no_plain_number_comes_back_as_it_was(expiration: str) -> None:
    message = basic(BasicProperties(expiration=expiration))
    assert properties_of(to_basic(from_basic(message))).expiration == expiration


@pytest.mark.parametrize(
    "header",
    [
        {"x-amqp-resume-id": "r" * 70_000},
        {"x-amqp-user-id": b"u" * 70_000},
        {"x-amqp-correlation-id": b"c" * 70_000},
        {"x-amqp-structs": b"no struct"},
        {"x-amqp-structs": b"\0\0\0\x04\x04\x01"},
    ],
    ids=lambda header: next(iter(header)),
)
def test_a_header_that_fits_no_field_stays_a_header(header: dict[str, Any]) -> None:
    there = from_basic(basic(BasicProperties(headers=header)))
    structs = structs_of(there)
    assert structs["DeliveryProperties"] == DeliveryProperties()
    assert structs["MessageProperties"].application_headers.keys() == header.keys()
    assert properties_of(to_basic(there)).headers.keys() == header.keys()


@pytest.mark.parametrize("text", ["007", "1_0", " 7", "9" * 5000])
def test_a_resume_ttl_that_is_no_plain_number_stays_a_header(text: str) -> None:
    there = from_basic(basic(BasicProperties(headers={"x-amqp-resume-ttl": text})))
    assert structs_of(there)["DeliveryProperties"].resume_ttl is None
    assert properties_of(to_basic(there)).headers == {"x-amqp-resume-ttl": text}


SENT = [
    DeliveryProperties(priority=3),
    DeliveryProperties(delivery_mode=2),
    DeliveryProperties(ttl=5),
    DeliveryProperties(timestamp=MOMENT),
    DeliveryProperties(expiration=MOMENT),
    DeliveryProperties(resume_id="r", resume_ttl=2**40),
    MessageProperties(message_id=UUID(int=9)),
    MessageProperties(correlation_id=b"\xff\0"),
    MessageProperties(correlation_id=b"c" * 256),
    MessageProperties(user_id=b"u" * 300),
    MessageProperties(app_id=b"a" * 300),
    MessageProperties(reply_to=ReplyTo(exchange="x", routing_key="k")),
    MessageProperties(reply_to=ReplyTo(exchange="x", routing_key="")),
    MessageProperties(content_type="a/b", content_encoding="z"),
    MessageProperties(application_headers={"a": 1, "nested": {"b": [1, "x", None]}}),
    FragmentProperties(first=True, fragment_size=9),
    FileProperties(filename="f"),
]


@pytest.mark.parametrize("struct", SENT, ids=repr)
def test_properties_of_0_10_come_back_through_basic(struct: Any) -> None:
    found = structs_of(from_basic(to_basic(final(struct))))
    assert found.pop(type(struct).__name__) == struct
    assert all(other == type(other)() for other in found.values())


def test_fields_of_one_transfer_end_with_it() -> None:
    sent = final(
        DeliveryProperties(discard_unroutable=True, immediate=True, exchange="x", routing_key="k"),
        MessageProperties(content_length=4),
    )
    found = structs_of(from_basic(to_basic(sent)))
    assert all(struct == type(struct)() for struct in found.values())


@given(st.binary(max_size=200))
def test_whatever_a_publisher_wrote_there_is_a_message_of_basic(raw: bytes) -> None:
    message = Message("", "q", Properties(raw, 2, 5, family=FAMILY_010), b"")
    there = to_basic(message)
    decode_properties(there.raw)


@given(st.data())
def test_a_damaged_header_segment_never_raises(data: st.DataObject) -> None:
    octets = bytearray(from_basic(basic(FULL)).raw)
    for _ in range(data.draw(st.integers(1, 4))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    decode_properties(to_basic(Message("", "q", Properties(bytes(octets), family=10), b"")).raw)
