"""Messages as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from harebell.cli.show import BODY, JSON, RAW, as_json, show
from harebell.client.message import Delivered, encode_arguments


def message(body: bytes = b"x", **properties: Any) -> Delivered:
    return Delivered(body, "e", "k", encode_arguments(properties), 1, redelivered=True)


def test_a_message_says_where_it_came_from() -> None:
    assert as_json(message()) == {
        "exchange": "e",
        "routing_key": "k",
        "redelivered": True,
        "properties": {},
        "headers": {},
        "body": "x",
    }


def test_every_type_of_header_can_be_shown() -> None:
    headers = {
        "time": datetime(2026, 1, 31, tzinfo=UTC),
        "price": Decimal("1.50"),
        "octets": b"\xff",
        "table": {"list": [1, None, False, 0.5]},
    }
    shown = as_json(message(headers=headers))
    assert json.loads(json.dumps(shown["headers"])) == {
        "time": "2026-01-31T00:00:00+00:00",
        "price": 1.5,
        "octets": "base64:/w==",
        "table": {"list": [1, None, False, 0.5]},
    }


def test_a_body_that_is_not_text_is_base64() -> None:
    shown = as_json(message(b"\x80"))
    assert shown["body_base64"] == "gA=="
    assert "body" not in shown


@pytest.mark.parametrize(("output", "written"), [(BODY, b"gr\xc3\xbcn\n"), (RAW, b"gr\xc3\xbcn")])
def test_bodies_are_written_as_they_are(
    capfdbinary: pytest.CaptureFixture[bytes], output: str, written: bytes
) -> None:
    show(message("grün".encode()), output)
    assert capfdbinary.readouterr().out == written


def test_json_is_a_line_each(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    show(message(b"a\nb"), JSON)
    out = capfdbinary.readouterr().out
    assert out.count(b"\n") == 1
    assert json.loads(out)["body"] == "a\nb"
