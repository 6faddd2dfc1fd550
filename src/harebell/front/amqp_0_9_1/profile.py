"""The differences between the versions of the 0-9-1 family: one `Profile` per version.

Frames, contents and most methods are the same in 0-8, 0-9, 0-9-1 and the transitional 0-10. The
rest is here: methods and their codec, handlers, reply codes, and what a client of that version can
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harebell.base.errors import ProtocolError
from harebell.base.message import Message
from harebell.front.amqp_0_9_1.channel_states import ChannelEvent
from harebell.front.amqp_0_9_1.connection_states import ConnectionTable
from harebell.front.common.errors import Errors
from harebell.wire.v09 import methods
from harebell.wire.v09.spec import MethodSpec, ProtocolSpec

Handlers = Mapping[type, Callable[[Any, Any], object]]
"""Method class -> handler, called with the connection or the channel, and the method."""


class ChannelLayer(Protocol):
    """What a version has between its frames and its channels."""

    def send(self, connection: Any, channel: int, method: methods.Method) -> None:
        """Write a method."""

    def send_content(
        self, connection: Any, channel: int, method: methods.Method, message: Message
    ) -> None:
        """Write a method with a message's content."""

    def channel_frame(self, connection: Any, kind: int, channel: int, payload: bytes) -> None:
        """Take a method, header or body frame on a channel of an open connection."""

    def has_begun(self, connection: Any) -> bool:
        """True if a message is received in part, in a way that its channel does not count."""

    def end_channel(self, connection: Any, channel: Any, error: ProtocolError, text: str) -> bool:
        """End a session because of its error; False for a channel without one."""

    def release(self, connection: Any) -> None:
        """Prepare the end of the connection, before its channels end."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A version of the 0-9-1 family.

    Args:
        version: for example "0-9-1".
        major, minor: the version as connection.start gives it.
        spec: its methods, and their codec.
        states: what follows each event of a connection, by state.
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
        layer: makes what a connection of a version with sessions has above the frames.

    Attributes:
        channel_ends: the events of channel.close and close-ok, by the first bytes of the frame.
        channel_events: the events of methods on channels, by class.
    """

    version: str
    major: int
    minor: int
    spec: ProtocolSpec
    states: ConnectionTable
    connection_handlers: Handlers
    handlers: Handlers
    errors: Errors
    start: Callable[[Any], object]
    channel: Callable[[Any, int], Any]
    consumer: Callable[..., Any]
    extended: bool = False
    capable: bool = True
    plain: bool = False
    echoed: frozenset[int] = frozenset()
    tickets: bool = False
    extensions: Mapping[str, int] | None = None
    layer: Callable[[], ChannelLayer] | None = None
    channel_ends: dict[bytes, ChannelEvent] = field(init=False)
    channel_events: dict[type, ChannelEvent] = field(init=False)

    def __post_init__(self) -> None:
        ends = (ChannelEvent.CLOSE, ChannelEvent.CLOSE_OK)
        object.__setattr__(
            self, "channel_ends", {self.spec.named(event.value).head: event for event in ends}
        )
        object.__setattr__(
            self, "channel_events", {each.type: self._event(each) for each in self.spec.methods}
        )

    def _event(self, spec: MethodSpec) -> ChannelEvent:
        """Return the event of a method on a channel."""
        if spec.type is methods.ChannelOpen:
            return ChannelEvent.OPEN
        if spec.type not in self.handlers:
            is_close_ok = spec.type is methods.ChannelCloseOk
            return ChannelEvent.CLOSE_OK if is_close_ok else ChannelEvent.UNSERVED
        if spec.type is methods.ChannelClose:
            return ChannelEvent.CLOSE
        return ChannelEvent.CONTENT_METHOD if spec.has_content else ChannelEvent.METHOD
