"""The traffic between clients and a broker: frames, and the messages that they carry."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harebell.wire.dissect import Dissector, Event
from harebell.wire.dissect.event import BODY, CONTENT, METHOD

_CARRIERS = {
    "basic.publish": "published",
    "basic.deliver": "delivered",
    "basic.get-ok": "delivered",
    "basic.return": "returned",
}
"""The methods of AMQP 0-8, 0-9 and 0-9-1 with a message behind them."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame, or a protocol header.

    Args:
        connection: the number of the connection, from 1.
        sender: "client" or "broker".
        event: its content: `kind`, `name` ("queue.declare"), `channel`, `fields`, `body`.
        at: seconds of virtual time since the broker was made.
    """

    connection: int
    sender: str
    event: Event
    at: float

    @property
    def name(self) -> str:
        """The method, "queue.declare"; for other frames their kind, such as "heartbeat"."""
        event = self.event
        return event.name if event.kind == METHOD else event.kind

    @property
    def channel(self) -> int | None:
        """The channel; None for a protocol header."""
        return self.event.channel

    @property
    def fields(self) -> Mapping[str, Any]:
        """The arguments, by their names in the specification; secrets are masked."""
        return self.event.fields


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message that passed whole.

    Args:
        how: "published", "delivered" (also as the answer to basic.get) or "returned".
        connection: the number of the connection, from 1.
        channel: the number of the channel or session.
        arguments: of the method, such as `exchange`, `routing-key`, `delivery-tag`.
        properties: by their names in the specification, such as `message-id` and `headers`.
        body: the bytes of the message.
        at: seconds of virtual time since the broker was made, when its last frame passed.
    """

    how: str
    connection: int
    channel: int
    arguments: Mapping[str, Any]
    properties: Mapping[str, Any]
    body: bytes
    at: float

    @property
    def exchange(self) -> str:
        """The exchange; "" for the default one."""
        return str(self.arguments.get("exchange", ""))

    @property
    def routing_key(self) -> str:
        """The routing key."""
        return str(self.arguments.get("routing-key", ""))


@dataclass(slots=True)
class _Arriving:
    """A message of which some frames have not passed yet."""

    method: Event
    properties: Mapping[str, Any] = field(default_factory=dict)
    size: int = 0
    body: bytearray = field(default_factory=bytearray)


class Record:
    """Collects frames and messages of all connections; written in one thread, read in any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._frames: list[Frame] = []
        self._transfers: list[Transfer] = []
        self._arriving: dict[tuple[int, bool, int | None], _Arriving] = {}

    def watch(
        self, dissector: Dissector, connection: int, data: bytes, at: float, *, client: bool
    ) -> None:
        """Add bytes that passed.

        Args:
            dissector: the one of this connection.
            connection: the number of the connection.
            data: the bytes.
            at: seconds of virtual time.
            client: whether the client sent them.
        """
        for event in dissector.feed(client, data):
            frame = Frame(connection, "client" if client else "broker", event, at)
            transfer = self._gathered(frame, client=client)
            with self._lock:
                self._frames.append(frame)
                if transfer is not None:
                    self._transfers.append(transfer)

    def _gathered(self, frame: Frame, *, client: bool) -> Transfer | None:
        """Return the message that this frame completes, if it does."""
        event = frame.event
        key = (frame.connection, client, event.channel)
        if event.kind == METHOD:
            # A method in the middle of a message: the rest of that message never arrives.
            self._arriving.pop(key, None)
            if event.name in _CARRIERS:
                self._arriving[key] = _Arriving(event)
            return None
        arriving = self._arriving.get(key)
        if arriving is None:
            return None
        if event.kind == CONTENT:
            arriving.size = event.fields["body-size"]
            arriving.properties = {
                name: value for name, value in event.fields.items() if name != "body-size"
            }
        elif event.kind == BODY:
            arriving.body += event.body
        else:
            return None
        if len(arriving.body) < arriving.size:
            return None
        del self._arriving[key]
        method = arriving.method
        return Transfer(
            _CARRIERS[method.name],
            frame.connection,
            event.channel or 0,
            method.fields,
            arriving.properties,
            bytes(arriving.body),
            frame.at,
        )

    def frames(
        self, name: str | None, sender: str | None, connection: int | None
    ) -> Iterator[Frame]:
        """Return the frames so far, in the order in which they passed; None selects all."""
        with self._lock:
            frames = list(self._frames)
        return (
            frame
            for frame in frames
            if name in (None, frame.name)
            and sender in (None, frame.sender)
            and connection in (None, frame.connection)
        )

    def transfers(self, how: str) -> list[Transfer]:
        """Return the messages that passed whole so far."""
        with self._lock:
            return [each for each in self._transfers if each.how == how]

    def clear(self) -> None:
        """Forget the recorded traffic."""
        with self._lock:
            self._frames.clear()
            self._transfers.clear()
