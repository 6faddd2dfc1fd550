"""Every row of docs/protocols/conversion.md is true, in both directions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from harebell.base.message import (
    FAMILY_010,
    FAMILY_010T,
    FAMILY_09,
    FAMILY_1_0,
    FAMILY_FILE,
    FAMILY_STREAM,
    Message,
    Properties,
)
from harebell.front.convert import converted
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Composite
from harebell.wire.v010.structs import DeliveryProperties, MessageProperties, ReplyTo
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.property_list import FILE, STREAM
from harebell.wire.v09.transfer import decode_transfer
from harebell.wire.v1.sections import Sections
from tests.docs.markdown import ROOT, read, rows

FAMILIES = {
    "Final 0-10": FAMILY_010,
    "Transitional 0-10": FAMILY_010T,
    "AMQP 1.0": FAMILY_1_0,
    "Files": FAMILY_FILE,
    "Streams": FAMILY_STREAM,
}
MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
SAMPLES: dict[str, Any] = {
    "content-type": "text/plain",
    "content-encoding": "gzip",
    "headers.a": 5,
    "delivery-mode": 1,
    "priority": 7,
    "correlation-id": "c",
    "reply-to": "answers",
    "expiration": "60000",
    "message-id": "m",
    "timestamp": MOMENT,
    "type": "t",
    "user-id": "u",
    "app-id": "a",
    "cluster-id": "cl",
    "headers.x-amqp-correlation-id": b"c" * 300,
    "headers.x-amqp-user-id": b"u" * 300,
    "headers.x-amqp-app-id": b"a" * 300,
    "headers.x-amqp-reply-exchange": "x",
    "headers.x-amqp-expires-at": MOMENT,
    "headers.x-amqp-resume-id": "r",
    "headers.x-amqp-resume-ttl": 9,
    "headers.x-amqp-transaction-id": "tx",
    "headers.x-amqp-security-token": b"token",
    "headers.x-amqp-filename": "f.txt",
    "headers.x-a": "annotation",
    "headers.list": [1, "two"],
    "headers.CC": ["k"],
    "headers.x-death": [
        {
            "count": 1,
            "reason": "expired",
            "queue": "q",
            "time": MOMENT,
            "exchange": "x",
            "routing-keys": ["k"],
        }
    ],
    "headers.x-amqp-message-id": "m" * 300,
    "headers.x-amqp-to": "/queues/q",
    "headers.x-amqp-subject": "s",
    "headers.x-amqp-group-sequence": 3,
    "headers.x-amqp-reply-to-group-id": "g",
}
COMPANIONS: dict[str, dict[str, Any]] = {"headers.x-amqp-reply-exchange": {"reply-to": "k"}}
"""What has to be there for a row to mean anything."""

DOCUMENT = read(ROOT / "docs/protocols/conversion.md")
ROWS = [
    (section, cells[0].strip("`"), cells[1].strip("`"))
    for section in FAMILIES
    for cells in rows(DOCUMENT.section(section))
]


def basic(given: dict[str, Any]) -> Message:
    """A message of class basic with these properties."""
    found = BasicProperties()
    for name, value in given.items():
        place, dot, key = name.partition(".")
        if dot:
            found.headers = {**(found.headers or {}), key: value}
        else:
            setattr(found, place.replace("-", "_"), value)
    return Message("x", "k", parse_properties(encode_properties(found)), b"")


def _flat(prefix: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Composite):
        value = msgspec.structs.asdict(value)
    if not isinstance(value, dict):
        return {prefix: value}
    found: dict[str, Any] = {}
    for name, inner in value.items():
        where = name if "headers" in prefix else name.replace("_", "-")
        found |= _flat(f"{prefix}.{where}" if prefix else where, inner)
    return found


def _of_final(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {}
    names = {DeliveryProperties: "delivery-properties", MessageProperties: "message-properties"}
    for struct in AMQP_0_10.decode_header(message.raw):
        found |= _flat(names[type(struct)], struct)  # type: ignore[index]
    return {name.replace("message-properties.application", "application"): value
            for name, value in found.items()}  # fmt: skip


def _of_list(decode: Callable[[bytes], Any]) -> Callable[[Message], dict[str, Any]]:
    return lambda message: _flat("", msgspec.structs.asdict(decode(message.raw)))


def _of_sections(message: Message) -> dict[str, Any]:
    sections = Sections(message.raw)
    parts = {
        "header": msgspec.structs.asdict(sections.header()),
        "properties": msgspec.structs.asdict(sections.properties()),
        "message-annotations": sections.message_annotations(),
        "application-properties": sections.application_properties(),
    }
    # As texts, in which false is there as well.
    return {
        f"{part}.{name.replace('_', '-')}": str(value)
        for part, values in parts.items()
        for name, value in values.items()
        if value is not None
    }


SEEN: dict[int, Callable[[Message], dict[str, Any]]] = {
    FAMILY_09: _of_list(decode_properties),
    FAMILY_010: _of_final,
    FAMILY_010T: _of_list(decode_transfer),
    FAMILY_FILE: _of_list(FILE.decode),
    FAMILY_STREAM: _of_list(STREAM.decode),
    FAMILY_1_0: _of_sections,
}
"""What a consumer of a family finds, by the names in the document."""


@pytest.mark.parametrize(("section", "here", "there"), ROWS)
def test_a_row_is_true_in_both_directions(section: str, here: str, there: str) -> None:
    family = FAMILIES[section]
    given = {here: SAMPLES[here], **COMPANIONS.get(here, {})}
    message = basic(given)
    other = converted(message, family)
    assert SEEN[family](other).get(there), f"{there} is not in {SEEN[family](other)}"
    fresh = Properties(
        other.raw, other.delivery_mode, other.priority, other.has_headers, family=family
    )
    back = SEEN[FAMILY_09](converted(Message("x", "k", fresh, b""), FAMILY_09))
    assert back[here] == SAMPLES[here]
    extra = {name for name, value in back.items() if value is not None} - set(given)
    assert extra <= {"delivery-mode"}, f"new in basic: {extra}"


def test_every_property_of_basic_has_its_row_in_every_family() -> None:
    names = {name.replace("_", "-") for name in BasicProperties.__struct_fields__} - {"headers"}
    for section in FAMILIES:
        assert names | {"headers.a"} <= {here for where, here, _ in ROWS if where == section}


def test_a_reply_to_of_0_10_is_put_together_from_both_of_its_rows() -> None:
    reply_to = ReplyTo(exchange="x", routing_key="k")
    raw = AMQP_0_10.encode_struct(MessageProperties(reply_to=reply_to))
    message = Message("", "q", Properties(raw, family=FAMILY_010), b"")
    found = SEEN[FAMILY_09](converted(message, FAMILY_09))
    assert (found["reply-to"], found["headers.x-amqp-reply-exchange"]) == ("k", "x")
