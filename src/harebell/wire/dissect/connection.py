"""Decode both directions of a connection: first the version, then its frames.

client  A M Q P 1 1 0 10 | frames ...
server                     A M Q P 1 1 0 10   final 0-10: the same header
01 00 00 ...       transitional 0-10: connection.start at once
A M Q P 0 0 9 1    refused, with a supported version
client  A M Q P 3 1 0 0 | SASL ... | A M Q P 0 1 0 0 | frames ...
server  the same                                                   1.0
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from harebell.wire import FINAL_0_10, TRANSITIONAL_0_10, VERSION_1_0, VERSIONS
from harebell.wire.dissect import event as kinds
from harebell.wire.dissect.event import Event
from harebell.wire.dissect.frames010 import Frames010
from harebell.wire.dissect.frames09 import SPECS, Frames09
from harebell.wire.dissect.frames1 import Frames1

FINAL = FINAL_0_10
TRANSITIONAL = TRANSITIONAL_0_10
HEADERS = VERSIONS
"""Protocol headers and their versions; the header of final 0-10 may mean the transitional one."""

_HEADER = 8
_MAGIC = b"AMQP"
_TLS = (0x16, 0x15)
_TEXT = 16


class FrameReader(Protocol):
    """Decode the frames of one direction."""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Decode bytes; return the events that they complete."""


class _Opaque:
    """A direction that cannot be decoded: its bytes are counted."""

    def __init__(self, from_client: bool) -> None:
        self._from_client = from_client

    def feed(self, data: bytes) -> Iterator[Event]:
        """Count bytes."""
        yield Event(kinds.UNREADABLE, self._from_client, len(data), text="not looked into")


class Dissector:
    """Decode one connection.

    Attributes:
        version: the version, "" until it is known.
    """

    def __init__(self) -> None:
        self.version = ""
        self._header = b""
        self._begun = {True: b"", False: b""}
        self._readers: dict[bool, FrameReader] = {}

    def feed(self, from_client: bool, data: bytes) -> list[Event]:
        """Decode bytes that one side has sent.

        Args:
            from_client: whether the client sent them.
            data: the bytes.
        """
        if not data:
            return []
        reader = self._readers.get(from_client)
        if reader is not None:
            return list(reader.feed(data))
        self._begun[from_client] += data
        return list(self._client() if from_client else self._server())

    def _client(self) -> Iterator[Event]:
        """Handle the bytes of the client until the server has answered."""
        data = self._begun[True]
        if not self._header:
            # It may still become a header: the rest is in another packet.
            if len(data) < _HEADER and _MAGIC.startswith(data[: len(_MAGIC)]):
                return
            header = data[:_HEADER]
            version = HEADERS.get(header)
            if version is None:
                yield from self._unknown(data)
                return
            self._header = header
            self._begun[True] = data[_HEADER:]
            yield _header_event(True, header, version)
            # The header of final 0-10 may be the transitional one: the server's answer decides.
            if version != FINAL:
                self.version = version
        if self.version:
            yield from self._catch_up(True)

    def _unknown(self, data: bytes) -> Iterator[Event]:
        self._readers[True] = _Opaque(True)
        self._readers[False] = _Opaque(False)
        if data[:4] == _MAGIC and len(data) >= _HEADER:
            numbers = " ".join(str(octet) for octet in data[4:_HEADER])
            yield Event(kinds.HEADER, True, len(data), text=f"AMQP {numbers} is not read here")
        elif data[0] in _TLS:
            text = "it is encrypted (TLS): only its length is known"
            yield Event(kinds.UNREADABLE, True, len(data), text=text)
        else:
            text = f"it is no AMQP: {data[:_TEXT]!r}"
            yield Event(kinds.UNREADABLE, True, len(data), text=text)

    def _server(self) -> Iterator[Event]:
        """Handle the first bytes of the server."""
        data = self._begun[False]
        if _MAGIC.startswith(data[: len(_MAGIC)]):
            if len(data) < _HEADER:
                return
            header, self._begun[False] = data[:_HEADER], data[_HEADER:]
            same = header == self._header and HEADERS[header] in (FINAL, VERSION_1_0)
            yield _header_event(False, header, HEADERS.get(header, ""), refused=not same)
            if not same:
                self._readers = {True: _Opaque(True), False: _Opaque(False)}
                return
            self.version = HEADERS[header]
        elif not self.version and self._header:
            # No header came back, so the server has begun with connection.start at once.
            self.version = TRANSITIONAL
        yield from self._catch_up(False)
        yield from self._catch_up(True)

    def _catch_up(self, from_client: bool) -> Iterator[Event]:
        """Decode input that arrived before the version was known."""
        if from_client in self._readers:
            return
        reader = self._reader(from_client)
        self._readers[from_client] = reader
        data, self._begun[from_client] = self._begun[from_client], b""
        if data:
            yield from reader.feed(data)

    def _reader(self, from_client: bool) -> FrameReader:
        if self.version in SPECS:
            return Frames09(self.version, from_client)
        if self.version == VERSION_1_0:
            return Frames1(from_client)
        return Frames010(from_client) if self.version == FINAL else _Opaque(from_client)


def _header_event(
    from_client: bool, header: bytes, version: str, *, refused: bool = False
) -> Event:
    numbers = " ".join(str(octet) for octet in header[4:])
    text = f"AMQP {numbers}"
    if refused:
        text += ": the version that was asked for is refused, this one is offered"
    return Event(
        kinds.HEADER, from_client, len(header), name=version, text=text, raw=header, version=version
    )
