"""Files and packets to class basic and back: every property survives, forged ones stay headers."""

from __future__ import annotations

from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from harebell.base.message import (
    FAMILY_09,
    FAMILY_FILE,
    FAMILY_STREAM,
    PERSISTENT,
    Message,
)
from harebell.front.convert import converted, file, stream
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.property_list import (
    FILE,
    STREAM,
    FileProperties,
    PropertyList,
    StreamProperties,
)

BODY = b"body"
WHEN = datetime(2007, 8, 1, tzinfo=UTC)
FULL = BasicProperties(
    content_type="a/b", content_encoding="gzip", headers={"h": 1}, delivery_mode=1, priority=3,
    correlation_id="c", reply_to="r", expiration="5000", message_id="m", timestamp=WHEN,
    type="t", user_id="guest", app_id="a", cluster_id="k",
)  # fmt: skip
BOTH = pytest.mark.parametrize(("module", "listed"), [(file, FILE), (stream, STREAM)])


def basic(properties: BasicProperties) -> Message:
    return Message("e", "k", parse_properties(encode_properties(properties)), BODY)


def other(listed: PropertyList, properties: Any) -> Message:
    return Message("e", "k", listed.made(properties), BODY)


@BOTH
@pytest.mark.parametrize("mode", [None, 1, 2])
def test_every_property_of_basic_comes_back(
    module: ModuleType, listed: PropertyList, mode: int | None
):
    full = BasicProperties(**{**asdict(FULL), "delivery_mode": mode})
    there = module.from_basic(basic(full))
    assert there.family == listed.family
    back = module.to_basic(there)
    assert back.family == FAMILY_09
    assert decode_properties(back.raw) == full
    assert (back.exchange, back.routing_key, back.body) == ("e", "k", BODY)


@BOTH
@pytest.mark.parametrize("name", BasicProperties.__struct_fields__)
def test_each_property_alone_comes_back(module: ModuleType, listed: PropertyList, name: str):
    one = BasicProperties(**{name: getattr(FULL, name)})
    back = module.to_basic(module.from_basic(basic(one)))
    assert decode_properties(back.raw) == one


@BOTH
@pytest.mark.parametrize("headers", [None, {}, {"x-amqp-other": 1}])
def test_an_empty_header_table_and_none_are_kept_apart(
    module: ModuleType, listed: PropertyList, headers: dict[str, Any] | None
):
    one = BasicProperties(headers=headers, delivery_mode=2)
    back = decode_properties(module.to_basic(module.from_basic(basic(one))).raw)
    if module is stream and headers == {}:
        # A header had to carry the delivery-mode, so nobody can tell.
        headers = None
    assert back.headers == headers


def test_a_file_is_a_persistent_message_with_its_name_in_a_header():
    whole = FileProperties("a/b", "gzip", {"h": 1}, 7, "r", "m", "x.pdf", WHEN, "k")
    found = decode_properties(file.to_basic(other(FILE, whole)).raw)
    assert found == BasicProperties(
        "a/b", "gzip", {"h": 1, "x-amqp-filename": "x.pdf"}, 2, 7, None, "r", None, "m", WHEN,
        cluster_id="k",
    )  # fmt: skip
    back = file.from_basic(file.to_basic(other(FILE, whole)))
    assert FILE.decode(back.raw) == whole
    assert back.delivery_mode == PERSISTENT
    assert back.priority == 7


def test_a_packet_has_no_delivery_mode_in_class_basic():
    whole = StreamProperties("a/b", None, {"h": 1}, 7, WHEN)
    found = decode_properties(stream.to_basic(other(STREAM, whole)).raw)
    assert found == BasicProperties("a/b", None, {"h": 1}, None, 7, timestamp=WHEN)
    back = stream.from_basic(stream.to_basic(other(STREAM, whole)))
    assert STREAM.decode(back.raw) == whole


def test_a_file_can_become_a_packet_and_come_back():
    whole = FileProperties("a/b", "gzip", {"h": 1}, 7, "r", "m", "x.pdf", WHEN, "k")
    packet = converted(other(FILE, whole), FAMILY_STREAM)
    assert packet.family == FAMILY_STREAM
    back = converted(packet, FAMILY_FILE)
    assert FILE.decode(back.raw) == whole


@BOTH
def test_a_property_that_is_no_utf_8_keeps_its_octets(module: ModuleType, listed: PropertyList):
    one = BasicProperties(delivery_mode=2, type="\udcff", correlation_id="ü")
    back = module.to_basic(module.from_basic(basic(one)))
    assert decode_properties(back.raw) == one


@pytest.mark.parametrize("value", [5, "x" * 256, None, b"raw", {"a": 1}])
def test_a_header_that_is_no_such_property_stays_a_header(value: Any):
    headers = {"x-amqp-type": value}
    found = decode_properties(file.to_basic(other(FILE, FileProperties(headers=headers))).raw)
    assert found.type is None
    assert found.headers == headers


@given(
    st.dictionaries(
        st.sampled_from(["x-amqp-filename", "x-amqp-delivery-mode", "x-amqp-app-id", "other"]),
        st.integers(-5, 300) | st.text(max_size=300) | st.booleans(),
    )
)
def test_no_header_breaks_the_conversion(headers: dict[str, Any]):
    try:
        message = other(FILE, FileProperties(headers=headers))
    except ValueError:
        return
    there = file.to_basic(message)
    file.from_basic(there)
    stream.from_basic(there)
