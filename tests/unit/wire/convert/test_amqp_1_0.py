"""What class basic says and what AMQP 1.0 says is the same, both ways, bodies included."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.message import FAMILY_09, FAMILY_1_0, FAMILY_1_0_SECTIONS, Message
from harebell.base.values import Long
from harebell.kernels.sections import parse_properties as parse_sections
from harebell.wire.convert.amqp_1_0 import from_basic, to_basic
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.edit import header_octets, headers_span
from harebell.wire.v09.fields import LongString, Timestamp, entries
from harebell.wire.v1 import values as v
from harebell.wire.v1.composites import Header, Properties
from harebell.wire.v1.sections import (
    Sections,
    data_section,
    encode_message,
    encode_sections,
    sequence_section,
    value_section,
)
from tests.unit.wire.convert.messages_1_0 import FOOTER, MESSAGES, contents, message_of

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC)
MOMENT_MS = int(MOMENT.timestamp()) * 1000
FULL = BasicProperties(
    content_type="text/plain",
    content_encoding="gzip",
    headers={"a": 1, "x-b": "x"},
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
EVENT: dict[str, Any] = {
    "original-expiration": "5000",
    "count": Long(2),
    "reason": "expired",
    "queue": "q",
    "time": MOMENT,
    "exchange": "x",
    "routing-keys": ["k", "l"],
}


def basic(properties: BasicProperties, body: bytes = b"body") -> Message:
    """A message of class basic."""
    return Message("x", "k", parse_properties(encode_properties(properties)), body)


def sections(body: bytes = b"", **given: Any) -> Message:
    """A message of 1.0 with these properties, or sections of other names."""
    other = {
        name: given.pop(name) for name in ("header", "annotations", "application") if name in given
    }
    return message_of(
        encode_message(
            body or data_section(b"body"),
            other.get("header"),
            {v.Symbol(key): value for key, value in other.get("annotations", {}).items()},
            Properties(**given) if given else None,
            other.get("application"),
        )
    )


def basic_of(message: Message) -> BasicProperties:
    """The properties of a message of 1.0 in basic."""
    there = to_basic(message)
    assert there.family == FAMILY_09
    return decode_properties(there.raw)


def test_every_property_of_basic_comes_back() -> None:
    there = from_basic(basic(FULL))
    assert (there.family, there.delivery_mode, there.priority) == (FAMILY_1_0, 2, 7)
    assert (there.body, there.exchange, there.routing_key) == (b"body", "x", "k")
    assert there.has_headers
    back = to_basic(there)
    assert (back.body, decode_properties(back.raw)) == (b"body", FULL)
    assert parse_sections(there.raw).delivery_mode == 2


def test_every_property_of_basic_has_its_place() -> None:
    there = Sections(from_basic(basic(FULL)).raw)
    assert there.header() == Header(durable=True, priority=7, ttl=60_000)
    assert there.properties() == Properties(
        message_id="m-1",
        user_id=b"guest",
        reply_to="/queues/replies",
        correlation_id="c",
        content_type="text/plain",
        content_encoding="gzip",
        creation_time=MOMENT_MS,
        group_id="app",
    )
    assert there.application_properties() == {"a": 1}
    assert there.message_annotations() == {
        "x-b": "x",
        "x-basic-type": "t",
        "x-amqp-cluster-id": "cl",
    }


@pytest.mark.parametrize("name", BasicProperties.__struct_fields__)
def test_each_property_of_basic_comes_back_alone(name: str) -> None:
    alone = BasicProperties(**{name: getattr(FULL, name)})
    assert decode_properties(to_basic(from_basic(basic(alone))).raw) == alone


@pytest.mark.parametrize(
    "properties",
    [
        BasicProperties(expiration="007"),
        BasicProperties(expiration=str(2**40)),
        BasicProperties(expiration="soon"),
        BasicProperties(expiration=" 7"),
        BasicProperties(expiration="1_0"),
        BasicProperties(delivery_mode=1),
        BasicProperties(delivery_mode=0),
        BasicProperties(delivery_mode=3),
        BasicProperties(priority=255),
        BasicProperties(content_type="größe"),
        BasicProperties(content_encoding="\udcff"),
        BasicProperties(reply_to="a/b c%"),
        BasicProperties(reply_to="/exchanges/x/k"),
        BasicProperties(reply_to="\udcff", type="\udcff", app_id="\udcff", cluster_id="\udcff"),
        BasicProperties(user_id="\udcff"),
        BasicProperties(reply_to="k", headers={"x-amqp-reply-exchange": "x"}),
        BasicProperties(message_id=f"urn:uuid:{UUID(int=5)}"),
        BasicProperties(message_id=f"urn:uuid:{UUID(int=5)}".upper()),
        BasicProperties(correlation_id="5"),
        BasicProperties(timestamp=Timestamp(2**63)),
        BasicProperties(type="amqp-1.0"),
        BasicProperties(headers={"CC": ["a", "b"]}),
        BasicProperties(headers={"CC": "a"}),
        BasicProperties(headers={"x-death": [EVENT]}),
        BasicProperties(headers={"x-death": [EVENT, {**EVENT, "last-time": LATER, "queue": "r"}]}),
        BasicProperties(headers={"x-death": [{"queue": "q"}], "x-last-death-queue": "q"}),
        BasicProperties(headers={"x-death": [{**EVENT, "original-expiration": "9" * 5000}]}),
        BasicProperties(headers={"x-death": "never"}),
        BasicProperties(headers={"list": [1, "two", [None]], "table": {"a": {"b": True}}}),
        BasicProperties(headers={"x-list": [1, "two", [None]], "x-table": {"a": {"é": 5}}}),
        BasicProperties(headers={"late": Timestamp(2**62), "deep": [Timestamp(2**62)]}),
        BasicProperties(headers={"x-table": {"\udcff": 1}, "\udcff": 1}),
        BasicProperties(headers={"x-é": 1, "x-basic-type": "t", "x-exchange": "x", "x-cc": "a"}),
        BasicProperties(headers={"x-amqp-headers": "a", "x-amqp-basic": b"", "x-opt-deaths": 1}),
        BasicProperties(headers={"x-amqp-to": "a", "x-amqp-subject": "s"}),
        BasicProperties(headers={"x-amqp-to": 5, "x-amqp-sections": b"a", "x-amqp-user-id": "u"}),
        BasicProperties(headers={"x-amqp-group-sequence": -1, "x-amqp-expires-at": 5}),
        BasicProperties(headers={"x-amqp-message-id": "m" * 300, "x-amqp-app-id": b"a" * 300}),
        BasicProperties(
            headers={"x-amqp-correlation-id": b"c" * 300, "x-amqp-user-id": b"u" * 300}
        ),
        BasicProperties(headers={"x-amqp-correlation-id": b"\xff", "x-amqp-message-id": b"\xff"}),
        BasicProperties(message_id="m", headers={"x-amqp-message-id": "n" * 300}),
    ],
    ids=str,
)
def test_what_1_0_has_no_words_for_comes_back_all_the_same(properties: BasicProperties) -> None:
    there = from_basic(basic(properties))
    assert parse_sections(there.raw).raw == there.raw
    assert decode_properties(to_basic(there).raw) == properties


def test_of_equal_names_the_last_one_counts() -> None:
    once = encode_properties(BasicProperties(headers={"a": 1}))
    entry = header_octets(once)
    begin, end = headers_span(once)
    twice = entry + entry[:-1] + b"\2"
    raw = once[:begin] + len(twice).to_bytes(4) + twice + once[end:]
    there = from_basic(Message("x", "k", parse_properties(raw), b""))
    assert Sections(there.raw).application_properties() == {"a": 2}
    assert to_basic(there).raw == raw


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8).map(str.encode)


def _sized(tag: bytes, octets: bytes) -> bytes:
    return tag + len(octets).to_bytes(4) + octets


def _octets(tag: str, width: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=width, max_size=width).map(lambda data: tag.encode() + data)


FIELDS = st.recursive(
    st.one_of(
        st.sampled_from((b"V", b"t\0", b"t\1")),
        *(_octets(tag, 1) for tag in "bB"),
        *(_octets(tag, 2) for tag in "su"),
        *(_octets(tag, 4) for tag in "Iif"),
        *(_octets(tag, 8) for tag in "ldT"),
        _octets("D", 5),
        TEXT.map(lambda text: _sized(b"S", text)),
        st.binary(max_size=300).map(lambda data: _sized(b"x", data)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: _sized(b"A", b"".join(items))),
        st.dictionaries(TEXT, inner, max_size=3).map(lambda table: _sized(b"F", _entries(table))),
    ),
    max_leaves=6,
)
NAMES = TEXT | TEXT.map(b"x-".__add__) | st.sampled_from((b"CC", b"x-cc", b"x-death", b"\xff"))


def _entries(table: dict[bytes, bytes]) -> bytes:
    return b"".join(bytes((len(name),)) + name + value for name, value in table.items())


@given(st.dictionaries(NAMES, FIELDS, min_size=1, max_size=5))
def test_every_header_of_basic_comes_back_octet_for_octet(table: dict[bytes, bytes]) -> None:
    octets = _entries(table)
    raw = b"\x20\0" + len(octets).to_bytes(4) + octets
    there = from_basic(Message("x", "k", parse_properties(raw), b""))
    assert parse_sections(there.raw).raw == there.raw
    back = to_basic(there).raw
    begin, end = headers_span(back)
    found = {name: back[at:after] for name, at, after in entries(back, begin)}
    assert end == len(back)
    assert found == {name: _entries({name: value}) for name, value in table.items()}


def test_a_text_that_is_no_utf8_is_binary_in_1_0() -> None:
    properties = BasicProperties(message_id="\udcff", headers={"a": LongString(b"\xff")})
    there = from_basic(basic(properties))
    assert Sections(there.raw).properties().message_id == b"\xff"
    assert Sections(there.raw).application_properties() == {"a": b"\xff"}
    assert decode_properties(to_basic(there).raw) == BasicProperties(
        headers={"a": b"\xff", "x-amqp-message-id": b"\xff"}
    )


# --- from 1.0 -----------------------------------------------------------------------------------


@given(MESSAGES)
def test_every_message_of_1_0_comes_back_from_basic_with_all_types(message: Message) -> None:
    back = from_basic(to_basic(message))
    assert contents(back) == contents(message)
    assert parse_sections(back.raw).raw == back.raw


@pytest.mark.parametrize(
    ("given_id", "text"),
    [
        ("m", "m"),
        (UUID(int=5), f"urn:uuid:{UUID(int=5)}"),
        (v.ULong(2**64 - 1), "18446744073709551615"),
        (b"octets", "octets"),
    ],
)
def test_an_identifier_of_any_kind_is_a_text(given_id: Any, text: str) -> None:
    message = sections(message_id=given_id, correlation_id=given_id)
    found = basic_of(message)
    assert (found.message_id, found.correlation_id) == (text, text)


@pytest.mark.parametrize("given_id", ["m" * 300, b"\xff" * 16, b"m" * 300])
def test_an_identifier_that_is_no_short_text_is_a_header(given_id: Any) -> None:
    found = basic_of(sections(message_id=given_id))
    assert found.message_id is None
    assert (found.headers or {})["x-amqp-message-id"] == given_id


def test_what_basic_has_no_property_for_is_a_header() -> None:
    found = basic_of(
        sections(
            to="/queues/q",
            subject="s",
            absolute_expiry_time=MOMENT_MS,
            group_sequence=7,
            reply_to_group_id="g",
            user_id=b"u" * 300,
            group_id="g" * 300,
            annotations={"x-opt-a": v.UInt(5)},
        )
    )
    assert found.headers == {
        "x-opt-a": 5,
        "x-amqp-to": "/queues/q",
        "x-amqp-subject": "s",
        "x-amqp-expires-at": MOMENT,
        "x-amqp-group-sequence": 7,
        "x-amqp-reply-to-group-id": "g",
        "x-amqp-user-id": b"u" * 300,
        "x-amqp-app-id": b"g" * 300,
    }


@pytest.mark.parametrize(
    ("address", "reply_to", "exchange"),
    [
        ("/queues/a%2Fb", "a/b", None),
        ("/queues/%61", "a", None),
        ("/exchanges/x%20y/k", "k", "x y"),
        ("/exchanges/x", "", "x"),
        ("answers", "answers", None),
        ("/queues/" + "a" * 300, None, None),
    ],
)
def test_the_address_of_replies_is_a_queue_or_an_exchange_and_a_key(
    address: str, reply_to: str | None, exchange: str | None
) -> None:
    message = sections(reply_to=address)
    found = basic_of(message)
    assert found.reply_to == reply_to
    assert (found.headers or {}).get("x-amqp-reply-exchange") == exchange
    assert Sections(from_basic(to_basic(message)).raw).properties().reply_to == address


def test_durable_false_is_transient_and_no_header_says_nothing() -> None:
    assert basic_of(sections(header=Header(durable=True))).delivery_mode == 2
    transient = message_of(b"\0\x53\x70\xc0\2\1\x42" + data_section(b""))
    assert basic_of(transient).delivery_mode == 1
    assert basic_of(sections()).delivery_mode is None


def test_a_property_that_the_way_back_does_not_find_as_it_was_is_the_new_one() -> None:
    there = to_basic(sections(message_id=v.ULong(5), application={"x-a": v.ULong(6), "b": 1}))
    changed = decode_properties(there.raw)
    assert changed.headers is not None
    changed.message_id = "6"
    changed.headers["x-a"] = 7
    back = Sections(from_basic(basic(changed)).raw)
    assert back.properties().message_id == "6"
    assert back.message_annotations() == {"x-a": 7}


def test_annotations_of_a_delivery_end_with_it() -> None:
    found = basic_of(sections(annotations={"x-exchange": "e", "x-routing-key": "r", "x-a": "b"}))
    assert found.headers == {"x-a": "b"}


def test_only_the_annotation_of_copies_routes_in_basic() -> None:
    keys = {"x-cc": ["a"], "CC": ["b"], "BCC": ["c"]}
    headers = basic_of(sections(annotations=keys)).headers or {}
    assert headers["CC"] == ["a"]
    assert "BCC" not in headers


@pytest.mark.parametrize(
    ("body", "text", "kind"),
    [
        (data_section(b"a"), b"a", None),
        (data_section(b"a") + data_section(b"bc"), b"abc", None),
        (data_section(b"a") + FOOTER, b"a", None),
        (b"\0\x53\x75\xb0\0\0\0\1a", b"a", None),
        (value_section("text"), value_section("text"), "amqp-1.0"),
        (value_section(5) + FOOTER, value_section(5), "amqp-1.0"),
        (sequence_section([1]) + sequence_section([]), None, "amqp-1.0"),
    ],
)
def test_a_body_is_octets_or_encoded_sections(
    body: bytes, text: bytes | None, kind: str | None
) -> None:
    message = sections(body, annotations={"x-basic-type": "t"})
    there = to_basic(message)
    assert there.body == (body if text is None else text)
    assert decode_properties(there.raw).type == (kind or "t")
    assert contents(from_basic(there)) == contents(message)


def test_a_client_of_basic_can_send_sections() -> None:
    body = value_section({"a": 1})
    there = from_basic(basic(BasicProperties(type="amqp-1.0"), body))
    assert (there.family, there.raw, there.body) == (FAMILY_1_0_SECTIONS, b"", body)


@pytest.mark.parametrize(
    "body", [b"", b"text", encode_sections(Header()) + value_section(1), value_section(1)[:-1]]
)
def test_a_type_that_lies_about_the_body_stays_a_type(body: bytes) -> None:
    message = basic(BasicProperties(type="amqp-1.0"), body)
    there = from_basic(message)
    assert (there.family, there.body) == (FAMILY_1_0, body)
    back = to_basic(there)
    assert (back.raw, back.body) == (message.raw, body)


@pytest.mark.parametrize("forged", [FOOTER + FOOTER, FOOTER[:-1], data_section(b"a"), b"a"])
def test_exact_values_that_are_no_sections_are_a_header(forged: bytes) -> None:
    properties = BasicProperties(headers={"x-amqp-sections": forged})
    there = from_basic(basic(properties))
    assert there.family == FAMILY_1_0
    assert decode_properties(to_basic(there).raw) == properties


@pytest.mark.parametrize("sizes", [[1, 2], [-1, 5], ["a"], [True]])
def test_lengths_that_are_not_those_of_the_body_are_ignored(sizes: list[Any]) -> None:
    there = from_basic(basic(BasicProperties(headers={"x-amqp-data-sections": sizes})))
    assert (there.family, there.raw, there.body) == (FAMILY_1_0, b"", b"body")


def test_an_empty_body_is_a_data_section_whatever_its_headers_say_of_sections() -> None:
    properties = BasicProperties(headers={"x-amqp-data-sections": []})
    raw = parse_properties(encode_properties(properties))
    there = from_basic(Message("x", "k", raw, b""))
    assert (there.family, there.body) == (FAMILY_1_0, b"")
    assert to_basic(there).body == b""
