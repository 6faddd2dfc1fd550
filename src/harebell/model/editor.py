"""How the model looks into messages and changes them: encodings are the front's business."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.base.message import Message, copy_message


def _no_expiration(message: Message) -> str | None:
    return None


def _no_property(message: Message, name: str) -> Any:
    return None


def _as_it_is(
    message: Message, exchange: str, routing_key: str, headers: Mapping[str, Any]
) -> Message:
    return copy_message(message, exchange, routing_key)


class Editor:
    """Functions for what is encoded in a message.

    Args:
        headers_of: decodes the headers.
        expiration_of: the property expiration, or None.
        forwarded: a copy without expiration, under another exchange and routing key, with some
            headers set, or removed where the value is None. Without it copies keep their headers.
        property_of: a property by its name (`message_id`), or None.
    """

    def __init__(
        self,
        headers_of: Callable[[Message], Mapping[str, Any]],
        expiration_of: Callable[[Message], str | None] = _no_expiration,
        forwarded: Callable[[Message, str, str, Mapping[str, Any]], Message] = _as_it_is,
        property_of: Callable[[Message, str], Any] = _no_property,
    ) -> None:
        self.headers_of = headers_of
        self.expiration_of = expiration_of
        self.forwarded = forwarded
        self.property_of = property_of
