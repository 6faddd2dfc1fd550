"""How the model reads and changes messages; the front implements the encodings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from harebell.base.message import Message, Properties, copy_message


def _no_expiration(message: Message) -> str | None:
    return None


def _no_property(message: Message, name: str) -> Any:
    return None


def _as_it_is(
    message: Message,
    exchange: str,
    routing_key: str,
    headers: Mapping[str, Any],
    died: datetime | None = None,
) -> Message:
    return copy_message(message, exchange, routing_key)


def _same_headers(message: Message, headers: Mapping[str, Any]) -> Message:
    return copy_message(message, message.exchange, message.routing_key)


def _same_message(message: Message) -> Message:
    return message


def _no_properties(message: Message) -> dict[str, Any]:
    return {}


def _without_properties(
    exchange: str, routing_key: str, body: bytes, properties: Mapping[str, Any]
) -> Message:
    return Message(exchange, routing_key, Properties(b"\0\0"), body)


class Editor(Struct, eq=False):
    """Functions for the encoded parts of a message.

    Args:
        headers_of: decodes the headers.
        expiration_of: return the property `expiration`, or None.
        forwarded: return a copy without expiration, with another exchange and routing key, and with
            some headers set, or removed if the value is None. The last argument is the time of the
            last event in the history that the headers have, or None.
        property_of: return a property by its name (`message_id`), but not the headers; or None.
        properties_of: return all properties of a message by name, for headers of another message.
        with_headers: return a copy with some headers set, or removed if the value is None.
        basic_of: return a message with properties and body as class basic has them.
        composed: make a message of exchange, routing key, body and properties by name.
        header_of: return the value of one header, or None. If None, all headers are decoded.
        exact_of: return the properties by name, without headers. Those of a message of 1.0 have
            their own types, and there are those that only 1.0 has.
    """

    headers_of: Callable[[Message], Mapping[str, Any]]
    expiration_of: Callable[[Message], str | None] = _no_expiration
    forwarded: Callable[[Message, str, str, Mapping[str, Any], datetime | None], Message] = (
        _as_it_is
    )
    property_of: Callable[[Message, str], Any] = _no_property
    properties_of: Callable[[Message], dict[str, Any]] = _no_properties
    composed: Callable[[str, str, bytes, Mapping[str, Any]], Message] = _without_properties
    with_headers: Callable[[Message, Mapping[str, Any]], Message] = _same_headers
    basic_of: Callable[[Message], Message] = _same_message
    header_of: Callable[[Message, str], Any] = None  # type: ignore[assignment]
    exact_of: Callable[[Message], dict[str, Any]] = _no_properties

    def __post_init__(self) -> None:
        if self.header_of is None:
            self.header_of = self._decoded_header_of

    def _decoded_header_of(self, message: Message, name: str) -> Any:
        return self.headers_of(message).get(name)
