"""Plain messages are converted as all others are, and both twins agree about which are plain."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.message import FAMILY_1_0, Message, Properties
from harebell.kernels.limits import PLAIN_LIST_BYTES
from harebell.wire.convert.amqp_1_0 import exact_list, exact_sections
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from tests.unit.kernels.twins import twin, used
from tests.unit.wire.convert.messages_1_0 import MESSAGES

TWIN, KERNEL = twin("conversion"), used("conversion")
TEXTS = st.text(st.characters(max_codepoint=0x17F), max_size=9)
SHORT = st.none() | st.text("abz-./ 09", max_size=12) | TEXTS
NAMES = (
    st.text("ab", min_size=1, max_size=2)
    | st.text("ab", max_size=3).map(lambda text: f"x-{text}")
    | st.sampled_from(("CC", "BCC", "x-cc", "x-amqp-to", "x-death", "é", ""))
)
MOMENTS = st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC))
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-200, 300),
    st.floats(),
    TEXTS,
    st.text("a", min_size=250, max_size=300),
    st.binary(max_size=300),
    MOMENTS,
    st.lists(st.integers(), max_size=1),
)
LISTS = st.builds(
    BasicProperties,
    content_type=SHORT,
    content_encoding=SHORT,
    headers=st.none() | st.dictionaries(NAMES, VALUES, max_size=4),
    delivery_mode=st.none() | st.integers(0, 3),
    priority=st.none() | st.integers(0, 255),
    correlation_id=SHORT,
    reply_to=SHORT,
    expiration=st.none() | st.integers(0, 2**33).map(str) | st.sampled_from(("", "007", "a", "0")),
    message_id=SHORT | st.just("urn:uuid:a"),
    timestamp=st.none() | MOMENTS,
    type=SHORT | st.just("amqp-1.0"),
    user_id=SHORT,
    app_id=SHORT,
    cluster_id=SHORT,
)


def seen(properties: Properties | None) -> Any:
    """What a list of properties has."""
    if properties is None:
        return None
    p = properties
    return p.raw, p.delivery_mode, p.priority, p.has_headers, p.suspect, p.family


@given(LISTS)
def test_a_plain_list_has_the_sections_of_the_general_conversion(
    given_list: BasicProperties,
) -> None:
    raw = encode_properties(given_list)
    message = Message("x", "k", parse_properties(raw), b"")
    found = KERNEL.sectioned(raw)
    assert seen(found) == seen(TWIN.sectioned(raw))
    if found is not None:
        exact = exact_sections(message)
        assert seen(found)[:4] == seen(exact)[:4]
        assert exact.family == FAMILY_1_0


@given(MESSAGES)
def test_plain_sections_have_the_list_of_the_general_conversion(message: Message) -> None:
    found = KERNEL.listed(message.raw)
    assert found == TWIN.listed(message.raw)
    assert found in (None, exact_list(message.raw))


@given(LISTS)
def test_plain_sections_of_lists_are_lists_again(given_list: BasicProperties) -> None:
    raw = encode_properties(given_list)
    sections = exact_sections(Message("x", "k", parse_properties(raw), b"")).raw
    found = KERNEL.listed(sections)
    assert found == TWIN.listed(sections)
    assert found in (None, exact_list(sections))


@pytest.mark.parametrize("kernel", [TWIN, KERNEL])
def test_most_lists_are_plain(kernel: Any) -> None:
    properties = BasicProperties(
        content_type="text/plain",
        headers={"a": 1, "b": "c", "x-d": True},
        delivery_mode=2,
        priority=0,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        type="t",
        user_id="u",
        app_id="a",
        cluster_id="cl",
    )
    raw = encode_properties(properties)
    sections = kernel.sectioned(raw)
    assert sections is not None
    assert kernel.listed(sections.raw) is not None
    plain = encode_properties(
        BasicProperties(
            headers={"x-d": True, "a": 1},
            message_id="m",
            reply_to="r",
            user_id="u",
            type="t",
            cluster_id="cl",
        )
    )
    assert kernel.listed(kernel.sectioned(plain).raw) == plain
    assert kernel.sectioned(b"\0\0").raw == b""
    assert kernel.listed(b"") == b"\0\0"


@pytest.mark.parametrize("kernel", [TWIN, KERNEL])
def test_long_ones_are_left_to_the_general_conversion(kernel: Any) -> None:
    raw = encode_properties(BasicProperties(headers={"a": "b" * PLAIN_LIST_BYTES}))
    assert kernel.sectioned(raw) is None
    sections = exact_sections(Message("x", "k", parse_properties(raw), b"")).raw
    assert kernel.listed(sections) is None


@given(LISTS, st.data())
def test_no_octet_behind_the_end_is_read(given_list: BasicProperties, data: st.DataObject) -> None:
    """Malformed input never comes here; in C it must not do harm if it does."""
    raw = encode_properties(given_list)
    sections = exact_sections(Message("x", "k", parse_properties(raw), b"")).raw
    for octets, convert in ((raw, KERNEL.sectioned), (sections, KERNEL.listed)):
        end = data.draw(st.integers(0, len(octets)))
        place = data.draw(st.integers(0, max(end - 1, 0)))
        cut = bytearray(octets[:end])
        if cut:
            cut[place] = data.draw(st.integers(0, 255))
        if KERNEL is not TWIN and KERNEL.__file__.endswith(".so"):
            found = convert(bytes(cut))
            assert found is None or len(getattr(found, "raw", found)) < 8 * end + 400
