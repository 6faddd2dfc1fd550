"""Format the output of `harebell dump`: lines for users, or one JSON object per line.

#1 0-9-1 > channel 1 queue.declare queue='jobs' durable            34 octets
|  |     | |         |             |
|  |     | |         |             fields: a bit by its name, and none that are false or empty
|  |     | |         method, command, control, performative, or kind of frame
|  |     | channel, but for channel 0
|  |     > from the client, < from the broker
|  version
number of the connection
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from harebell.base.printable import printable
from harebell.wire.dissect import Event
from harebell.wire.dissect import event as kinds
from harebell.wire.json_values import shown, text_of

_COLUMN = 16
_NAMED = (kinds.METHOD, kinds.COMMAND, kinds.CONTROL, kinds.PERFORMATIVE)


class Look:
    """Formats events.

    Args:
        raw: show the bytes of each frame, too.
        bodies: the number of bytes to show of each message body.
    """

    def __init__(self, *, raw: bool, bodies: int) -> None:
        self.raw = raw
        self.bodies = bodies

    def lines(self, number: int, event: Event) -> list[str]:
        """Return the lines of an event for users."""
        arrow = ">" if event.from_client else "<"
        words = [f"#{number}", event.version or "?", arrow]
        if event.channel:
            words.append(f"channel {event.channel}")
        words += self._what(event)
        words.append(f"({event.octets} octets)")
        lines = [printable(" ".join(words))]
        if self.raw and event.raw:
            lines += hex_lines(event.raw)
        return lines

    def _what(self, event: Event) -> list[str]:
        words = [event.name] if event.kind in _NAMED else [event.kind]
        if event.kind == kinds.CONTENT:
            words.append(event.name)
        words += [_shown(name, value) for name, value in event.fields.items() if _is_shown(value)]
        if event.kind == kinds.BODY and self.bodies:
            words.append(repr(event.body[: self.bodies]))
        elif event.text:
            words.append(event.text)
        return words

    def json(self, number: int, event: Event) -> str:
        """Return an event as a JSON object on one line."""
        entry: dict[str, Any] = {
            "connection": number,
            "version": event.version,
            "from": "client" if event.from_client else "broker",
            "kind": event.kind,
            "octets": event.octets,
        }
        if event.channel is not None:
            entry["channel"] = event.channel
        if event.name:
            entry["name"] = event.name
        if event.fields:
            entry["fields"] = {name: plain(value) for name, value in event.fields.items()}
        if event.text:
            entry["text"] = event.text
        if self.bodies and event.kind == kinds.BODY:
            entry["body"] = plain(event.body[: self.bodies])
        if self.raw and event.raw:
            entry["raw"] = event.raw.hex()
        return json.dumps(entry, ensure_ascii=True)


def _is_shown(value: Any) -> bool:
    """True if a field is shown: an empty text is, a bit that is 0 is not."""
    return value is not False and value is not None and value != {} and value != []


def _shown(name: str, value: Any) -> str:
    if value is True:
        return name
    if isinstance(value, bytes):
        value = plain(value)
    return f"{name}={value!r}"


def plain(value: Any) -> Any:
    """Convert a value as all doors do, but for octets that are no UTF-8: they are hexadecimal."""
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return f"0x{bytes(value).hex()}"
    if isinstance(value, Mapping):
        return {text_of(str(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | set | frozenset) or type(value) is tuple:
        return [plain(inner) for inner in value]
    return str(value) if isinstance(value, Decimal) else shown(value, iso=True)


def hex_lines(data: bytes) -> list[str]:
    """Format bytes in hexadecimal and as text, sixteen per line."""
    lines = []
    for at in range(0, len(data), _COLUMN):
        row = data[at : at + _COLUMN]
        text = "".join(chr(octet) if 0x20 <= octet < 0x7F else "." for octet in row)
        lines.append(f"    {at:06x}  {row.hex(' '):<{3 * _COLUMN}} {text}")
    return lines
