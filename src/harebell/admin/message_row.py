"""A message as a row of an answer, with the names of RabbitMQ's `POST /api/queues/{}/{}/get`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

from harebell.admin.command import Row

if TYPE_CHECKING:
    from harebell.base.message import Message
    from harebell.model.editor import Editor

STRING = "string"
BASE64 = "base64"
AUTO = "auto"
_SAFE_INTEGER = 2**64
_CUT_OCTETS = 3
"""Octets of the last character that are there when it was cut."""


def message_row(editor: Editor, message: Message, encoding: str, truncate: int) -> Row:
    """Return the members of a row that are those of the message itself.

    Args:
        editor: reads messages.
        message: what is shown; it stays as it is.
        encoding: "auto" for a body as text if it is UTF-8, "base64" for base64 always.
        truncate: octets of the body to show.
    """
    payload, as_text = payload_of(message.body, encoding, truncate)
    return {
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "properties": properties_row(editor, message),
        "payload_bytes": len(message.body),
        "payload": payload,
        "payload_encoding": STRING if as_text else BASE64,
    }


def payload_of(body: bytes, encoding: str, truncate: int) -> tuple[str, bool]:
    """Return the beginning of a body, and whether it is text and not base64."""
    shown = body[:truncate]
    if encoding == AUTO:
        try:
            return shown.decode(), True
        except UnicodeDecodeError as error:
            if len(shown) < len(body) and error.start >= len(shown) - _CUT_OCTETS:
                return shown[: error.start].decode(), True
    return b64encode(shown).decode("ascii"), False


def properties_row(editor: Editor, message: Message) -> Row:
    """Return the properties that a message has, its headers among them, as JSON has them."""
    found = {
        name: json_of(value)
        for name, value in editor.properties_of(message).items()
        if name != "headers"
    }
    if message.has_headers:
        found["headers"] = json_of(editor.headers_of(message))
    return found


def json_of(value: Any) -> Any:
    """Return a value of a header as JSON has it: times as seconds, as in RabbitMQ."""
    if isinstance(value, Mapping):
        return {str(name): json_of(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_of(each) for each in value]
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, Decimal):
        return float(value) if isfinite(value) else str(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < _SAFE_INTEGER else str(value)
    return str(value)
