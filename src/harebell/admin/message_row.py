"""A message as a row of an answer, with the names of RabbitMQ's `POST /api/queues/{}/{}/get`."""

from __future__ import annotations

from base64 import b64encode
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Any

from harebell.admin.limits import HTTP_CHUNK_BYTES
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harebell.admin.command import Row
    from harebell.base.message import Message
    from harebell.model.editor import Editor

STRING = "string"
BASE64 = "base64"
AUTO = "auto"
_PIECE_OCTETS = HTTP_CHUNK_BYTES // 4 * 3
"""A multiple of three, so that pieces in base64 are those of the whole."""
_CUT_OCTETS = 3
"""Octets of the last character that are there when it was cut."""

_TYPES = {
    "t": "bool", "b": "byte", "B": "unsignedbyte", "s": "short", "u": "unsignedshort",
    "I": "signedint", "i": "unsignedint", "l": "long", "L": "long", "f": "float", "d": "double",
    "D": "decimal", "S": "longstr", "x": "binary", "T": "timestamp", "A": "array", "F": "table",
    "V": "void",
}  # fmt: skip


def message_row(editor: Editor, message: Message, encoding: str, truncate: int) -> Row:
    """Return the members of a row that are those of the message itself.

    Args:
        editor: reads messages.
        message: what is shown; it stays as it is.
        encoding: "auto" for a body as text if it is UTF-8, "base64" for base64 always.
        truncate: octets of the body to show.
    """
    message = editor.basic_of(message)
    payload, as_text = payload_of(message.body, encoding, truncate)
    return {**_about(editor, message, as_text), "payload": payload}


def long_message_row(
    editor: Editor, message: Message, encoding: str, truncate: int
) -> Slices[dict[str, Any]]:
    """Return the row as `message_row`; it is a `LongRow` if the payload is long."""
    message = editor.basic_of(message)
    body = message.body
    shown = memoryview(body)[:truncate]
    if len(shown) <= HTTP_CHUNK_BYTES:
        return dict(message_row(editor, message, encoding, truncate))
    as_text = encoding == AUTO and (yield from _is_text(shown, cut=len(shown) < len(body)))
    return LongRow(_about(editor, message, as_text), shown, as_text)


class LongRow(dict[str, Any]):
    """A row of a message whose payload is encoded in slices, see `pieces`.

    Args:
        row: the row without its payload.
        payload: the octets that are shown.
        as_text: whether they are text; the last character may be cut.
    """

    def __init__(self, row: Row, payload: memoryview, as_text: bool) -> None:
        super().__init__(row)
        self.payload = payload
        self.as_text = as_text

    def pieces(self) -> Iterator[str]:
        """Yield the payload in pieces, as text or base64."""
        decode = getincrementaldecoder("utf-8")().decode
        for at in range(0, len(self.payload), _PIECE_OCTETS):
            piece = self.payload[at : at + _PIECE_OCTETS]
            yield decode(piece) if self.as_text else b64encode(piece).decode("ascii")


def _is_text(shown: memoryview, *, cut: bool) -> Slices[bool]:
    """Return whether octets are UTF-8; the last character may be cut."""
    decode = getincrementaldecoder("utf-8")().decode
    try:
        for at in range(0, len(shown), _PIECE_OCTETS):
            decode(shown[at : at + _PIECE_OCTETS])
            yield
        decode(b"", final=not cut)
    except UnicodeDecodeError:
        return False
    return True


def _about(editor: Editor, message: Message, as_text: bool) -> dict[str, Any]:
    return {
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "properties": properties_row(editor, message),
        "payload_bytes": len(message.body),
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


def exact_headers(editor: Editor, message: Message) -> Row:
    """Return the type of each header, and the headers as publishing takes them back.

    The types are those on the wire of 0-9-1, by their names in RabbitMQ.
    """
    from harebell.wire.json_values import kept_table, text_of
    from harebell.wire.v09.edit import headers_span
    from harebell.wire.v09.fields import entries

    message = editor.basic_of(message)
    if not message.has_headers:
        return {"header_types": {}, "kept_headers": {}}
    raw = message.raw
    types = {
        text_of(name): _TYPES[chr(raw[at + 1 + len(name)])]
        for name, at, _ in entries(raw, headers_span(raw)[0])
    }
    return {"header_types": types, "kept_headers": kept_table(editor.headers_of(message))}


def properties_row(editor: Editor, message: Message) -> Row:
    """Return the properties that a message has, its headers among them, as JSON has them."""
    from harebell.wire.json_values import shown, shown_table

    row: Row = {
        name: shown(value) for name, value in editor.exact_of(message).items() if value is not None
    }
    if message.has_headers:
        row["headers"] = shown_table(editor.headers_of(message))
    return row
