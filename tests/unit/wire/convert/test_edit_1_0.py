"""A change of headers leaves the bare message of 1.0 as its publisher wrote it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harebell.base.values import Long
from harebell.kernels.sections import MESSAGE_ANNOTATIONS, parse_properties
from harebell.wire.convert.edit_1_0 import Milliseconds, edited
from harebell.wire.v1 import values as v
from harebell.wire.v1.composites import Header, Properties
from harebell.wire.v1.sections import Sections, encode_sections

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 3, 4, 9, tzinfo=UTC)
EVENT: dict[str, Any] = {
    "count": Long(1),
    "reason": "expired",
    "queue": "q",
    "time": MOMENT,
    "exchange": "x",
    "routing-keys": ["k"],
}
BARE = encode_sections(
    properties=Properties(message_id="m", to="/queues/q"), application_properties={"a": 1, "x-b": 2}
)
HEADER = encode_sections(Header(durable=True, priority=5, ttl=7))
ANNOTATIONS = encode_sections(message_annotations={"x-b": v.UInt(1), "x-c": "c", "x-cc": ["k"]})
RAW = HEADER + ANNOTATIONS + BARE


def annotations(raw: bytes) -> dict[Any, Any]:
    """The message annotations, of sections that can be decoded."""
    assert parse_properties(raw).raw == raw
    return Sections(raw).message_annotations()


def ms(moment: datetime) -> v.Timestamp:
    """A time of 1.0."""
    return v.Timestamp(int(moment.timestamp()) * 1000)


def test_headers_are_annotations() -> None:
    raw = edited(RAW, {"x-new": "n", "x-c": 5, "CC": ["l"], "BCC": ["never"]})
    assert annotations(raw) == {"x-b": 1, "x-new": "n", "x-c": 5, "x-cc": ["l"]}
    assert raw.startswith(HEADER)
    assert raw.endswith(BARE)


def test_a_time_in_milliseconds_is_a_timestamp() -> None:
    moment = annotations(edited(RAW, {"x-time": Milliseconds(1_234)}))["x-time"]
    assert (type(moment), moment) == (v.Timestamp, 1_234)


@pytest.mark.parametrize("raw", [b"", HEADER, BARE])
def test_a_message_without_annotations_gets_some(raw: bytes) -> None:
    assert annotations(edited(raw, {"x-a": 1})) == {"x-a": 1}


def test_a_header_that_is_removed_is_gone_from_both_maps() -> None:
    raw = edited(RAW, {"x-b": None, "x-c": None, "CC": None})
    assert annotations(raw) == {}
    assert MESSAGE_ANNOTATIONS not in Sections(raw)
    assert Sections(raw).application_properties() == {"a": 1}
    assert Sections(raw).properties() == Properties(message_id="m", to="/queues/q")


def test_a_header_of_another_name_is_an_application_property() -> None:
    raw = edited(RAW, {"a": None, "b": True})
    assert Sections(raw).application_properties() == {"x-b": 2, "b": True}
    assert Sections(edited(b"", {"b": True})).application_properties() == {"b": True}
    assert edited(b"", {"b": None}) == b""


def test_a_header_without_its_time_to_live_keeps_the_rest() -> None:
    raw = edited(RAW, {}, keep_ttl=False)
    assert Sections(raw).header() == Header(durable=True, priority=5)
    assert raw.endswith(ANNOTATIONS + BARE)
    assert edited(b"\0\x53\x70\x45", {}, keep_ttl=False) == b"\0\x53\x70\x45"


def test_a_history_says_when_the_last_event_was() -> None:
    other = {**EVENT, "queue": "r", "original-expiration": "5000", "last-time": LATER}
    raw = edited(RAW, {"x-death": [EVENT, other]}, died=LATER)
    first, second = annotations(raw)["x-opt-deaths"]
    assert first == {
        "queue": "q",
        "reason": "expired",
        "count": 1,
        "first-time": ms(MOMENT),
        "last-time": ms(LATER),
        "exchange": "x",
        "routing-keys": v.Array(0xB1, ["k"]),
    }
    assert (second["queue"], second["ttl"], second["last-time"]) == ("r", 5_000, ms(LATER))
    kinds = {name: type(value) for name, value in first.items()}
    assert (kinds["reason"], kinds["count"]) == (v.Symbol, v.ULong)
    assert annotations(edited(raw, {"x-death": None})) == annotations(RAW)


def test_a_history_of_another_form_is_an_annotation_of_its_name() -> None:
    raw = edited(RAW, {"x-death": [{"queue": "q", "count": 1, "more": 5}]})
    assert annotations(raw)["x-death"] == [{"queue": "q", "count": 1, "more": 5}]


def test_a_value_that_1_0_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="x-a"):
        edited(RAW, {"x-a": object()})
