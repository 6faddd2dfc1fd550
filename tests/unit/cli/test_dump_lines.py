"""Events as lines: what is false or empty is left out for users, and nothing is for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

from harebell.cli.dump_lines import Look, hex_lines, plain
from harebell.wire.dissect import Event
from harebell.wire.dissect import event as kinds

DECLARE = Event(
    kinds.METHOD,
    True,
    34,
    name="queue.declare",
    channel=2,
    fields={"queue": "", "passive": False, "durable": True, "arguments": {}},
    raw=b"\x01\x00frame",
    version="0-9-1",
)


def test_a_line_has_the_bits_that_are_set_and_the_texts_that_are_empty() -> None:
    (line,) = Look(raw=False, bodies=0).lines(3, DECLARE)
    assert line == "#3 0-9-1 > channel 2 queue.declare queue='' durable (34 octets)"


def test_octets_follow_their_line() -> None:
    lines = Look(raw=True, bodies=0).lines(1, DECLARE)
    assert lines[1].startswith("    000000  ")
    assert "01 00 66 72 61 6d 65" in lines[1]
    assert lines[1].endswith("..frame")


def test_an_object_has_every_field() -> None:
    found = json.loads(Look(raw=True, bodies=0).json(1, DECLARE))
    assert found["fields"] == dict(DECLARE.fields)
    assert (found["from"], found["channel"], found["raw"]) == ("client", 2, "01006672616d65")


def test_a_body_is_shown_as_far_as_it_was_asked_for() -> None:
    body = Event(kinds.BODY, False, 13, channel=1, text="5 octets", body=b"hello", version="0-8")
    assert Look(raw=False, bodies=0).lines(1, body) == [
        "#1 0-8 < channel 1 body 5 octets (13 octets)"
    ]
    assert "b'he'" in Look(raw=False, bodies=2).lines(1, body)[0]
    assert "body" not in json.loads(Look(raw=False, bodies=0).json(1, body))
    assert json.loads(Look(raw=False, bodies=2).json(1, body))["body"] == "he"


def test_values_that_json_lacks_become_text() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    values = {"a": b"\xff", "b": b"text", "c": Decimal("1.5"), "d": moment, "e": [None, (1,)]}
    assert plain(values) == {
        "a": "0xff",
        "b": "text",
        "c": "1.5",
        "d": "2026-01-02T00:00:00+00:00",
        "e": [None, [1]],
    }


def test_sixteen_octets_stand_on_a_line_of_hexadecimal() -> None:
    lines = hex_lines(bytes(range(0x41, 0x41 + 18)))
    assert len(lines) == 2
    assert lines[0].endswith("ABCDEFGHIJKLMNOP")
    assert lines[1].startswith("    000010  51 52 ")
