"""What a connection of the transitional 0-10 has above the frames of 0-9: sessions and commands.

Many methods have completion and no reply: handlers that are shared with 0-9-1 send their `-ok`,
and `send` drops it where this version has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.errors import ProtocolError
from harebell.base.message import Message
from harebell.front.amqp_0_10_transitional.credit import Credit
from harebell.wire.v09.frames import METHOD
from harebell.wire.v09.methods import ChannelFlow, Method
from harebell.wire.v09.methods_transitional import SessionClosed, SessionFlow
from harebell.wire.v09.typed_fields import FieldDialect, TypedTable, encode_typed

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.connection import Connection

_OK = "-ok"


class TransitionalLayer:
    """The sessions of one connection; see `harebell.front.amqp_0_9_1.profile.ChannelLayer`.

    It has no reference to the connection: the cycle would delay the release of memory.

    Args:
        take: takes a frame on a channel, called with the connection and the frame.

    Attributes:
        dialect: the types of field tables that the peer has used.
        ended: channels whose session the broker ended, until they are opened again.
        credit: what message.qos set for all channels; None until it did.
    """

    def __init__(self, take: Callable[[Connection, int, int, bytes], None]) -> None:
        self._take = take
        self.dialect = FieldDialect.PLAIN
        self.ended: set[int] = set()
        self.credit: Credit | None = None

    # --- output ---------------------------------------------------------------------------------

    def table(self, table: Mapping[str, Any]) -> Any:
        """Convert a table for a method to types that the peer knows."""
        return encode_typed(table, self.dialect)

    def send(self, connection: Connection, channel: int, method: Method) -> None:
        """Write a method; it is a command when its class is one of commands."""
        # Shared handlers reply; this version has completion in place of these replies.
        if not connection.spec.knows(method) and method.NAME.endswith(_OK):
            return
        opened = connection.channels.get(channel)
        # A session has the method in its own class.
        if isinstance(method, ChannelFlow) and opened is not None and opened.session is not None:
            method = SessionFlow(method.active)
        payload = connection.spec.encode(method)
        if opened is None:
            connection.out.frame(METHOD, channel, payload)
            connection.touch()
        else:
            opened.write_method(payload)

    def send_content(
        self, connection: Connection, channel: int, method: Method, message: Message
    ) -> None:
        """Write a method with a message's content."""
        connection.channels[channel].write_content(connection.spec.encode(method), message)

    # --- input ----------------------------------------------------------------------------------

    def channel_frame(
        self, connection: Connection, kind: int, channel: int, payload: bytes
    ) -> None:
        """Take a method, header or body frame on a channel of an open connection."""
        self._take(connection, kind, channel, payload)

    def has_begun(self, connection: Connection) -> bool:
        """True if a message is received in part by reference."""
        return any(channel.references for channel in connection.channels.values())

    def note_dialect(self, table: object) -> None:
        """Note the types of a table that the peer sent: it knows them."""
        if isinstance(table, TypedTable):
            self.dialect = max(self.dialect, table.dialect)

    # --- ends -----------------------------------------------------------------------------------

    def end_channel(
        self, connection: Connection, channel: Any, error: ProtocolError, text: str
    ) -> bool:
        """Destroy a session because of its error; False for a channel without one."""
        if channel.session is None:
            return False
        # Otherwise the session would only be detached, and could be resumed.
        channel.ending = True
        connection.drop_channel(channel)
        self.ended.add(channel.number)
        self.send(connection, channel.number, SessionClosed(error.code, text))
        return True

    def release(self, connection: Connection) -> None:
        """Prepare the end: exclusive queues without auto-delete lose their owner."""
        if connection.vhost is None:
            return
        of_sessions: set[str] = set()
        for channel in connection.channels.values():
            if channel.outlives:
                of_sessions |= channel.exclusive
        for queue in connection.vhost.owned_by(connection):
            if not queue.auto_delete and queue.name not in of_sessions:
                connection.vhost.give(queue, None)


def layer_of(connection: Connection) -> TransitionalLayer:
    """Return the sessions of a connection of this version."""
    layer = connection.layer
    assert isinstance(layer, TransitionalLayer), "the profile of this version makes it"
    return layer
