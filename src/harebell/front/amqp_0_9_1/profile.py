"""The differences between the versions of the 0-9-1 family: one `Profile` per version.

Frames, contents and most methods are the same in 0-8, 0-9, 0-9-1 and the transitional 0-10. The
rest is here: methods and their codec, handlers, reply codes, and what a client of that version can
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harebell.front.common.errors import Errors
from harebell.wire.v09 import methods
from harebell.wire.v09.spec import ProtocolSpec
from harebell.wire.v09.states import ConnectionTable

Handlers = Mapping[type, Callable[[Any, Any], None]]
"""Method class -> handler, called with the connection or the channel, and the method."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A version of the 0-9-1 family.

    Args:
        version: for example "0-9-1".
        major, minor: the version as connection.start gives it.
        spec: its methods, and their codec.
        states: which methods a server may be sent on channel 0, by state.
        connection_handlers: the handlers of methods on channel 0.
        handlers: the handlers of methods on open channels.
        errors: the reply codes.
        start: introduces the broker, called with the connection.
        channel: makes a channel, called with connection and number.
        consumer: makes a consumer of class basic.
        extended: the client knows RabbitMQ's additions: capabilities, and methods of the broker's
            own that it announces.
        capable: whether the capabilities of the client are respected.
        plain: whether the client knows only five types of table values, see
            `harebell.front.convert.plain`.
        echoed: further types that a client gets if it has sent them.
        tickets: whether the access ticket of a publish is checked.
        extensions: Harebell's own classes that the version has, by name; None announces none.
        channel_frame: serves a frame on a channel in a version with sessions, called with the
            connection and the frame.

    Attributes:
        channel_ends: the first bytes of channel.close and close-ok, and the methods.
    """

    version: str
    major: int
    minor: int
    spec: ProtocolSpec
    states: ConnectionTable
    connection_handlers: Handlers
    handlers: Handlers
    errors: Errors
    start: Callable[[Any], None]
    channel: Callable[[Any, int], Any]
    consumer: Callable[..., Any]
    extended: bool = False
    capable: bool = True
    plain: bool = False
    echoed: frozenset[int] = frozenset()
    tickets: bool = False
    extensions: Mapping[str, int] | None = None
    channel_frame: Callable[[Any, int, int, bytes], None] | None = None
    channel_ends: dict[bytes, type[methods.Method]] = field(init=False)

    def __post_init__(self) -> None:
        ends = {
            self.spec.named(kind.NAME).head: kind
            for kind in (methods.ChannelClose, methods.ChannelCloseOk)
        }
        object.__setattr__(self, "channel_ends", ends)
