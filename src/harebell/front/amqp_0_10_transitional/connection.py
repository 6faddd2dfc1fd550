"""A connection of the transitional 0-10: frames of 0-9, with sessions and commands above them.

Many methods have completion and no reply: handlers that are shared with 0-9-1 send their `-ok`,
and `send` drops it where this version has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.errors import ProtocolError
from harebell.base.message import Message
from harebell.front.amqp_0_9_1.connection import Connection
from harebell.front.amqp_0_10_transitional.credit import Credit
from harebell.wire.v09.frames import BODY, HEADER, METHOD
from harebell.wire.v09.methods import ChannelFlow, Method
from harebell.wire.v09.methods_session import SessionClosed, SessionFlow
from harebell.wire.v09.states import ConnectionState
from harebell.wire.v09.typed_fields import FieldDialect, TypedTable, encode_typed

_OK = "-ok"


class TransitionalConnection(Connection):
    """The server's side of one connection.

    Attributes:
        dialect: the types of field tables that the peer has used.
        ended: channels whose session the broker ended, until they are opened again.
        credit: what message.qos set for all channels; None until it did.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.dialect = FieldDialect.PLAIN
        self.ended: set[int] = set()
        self.credit: Credit | None = None

    # --- output ---------------------------------------------------------------------------------

    def table(self, table: Mapping[str, Any]) -> Any:
        """Convert a table for a method to types that the peer knows."""
        return encode_typed(table, self.dialect)

    def send(self, channel: int, method: Method) -> None:
        """Write a method; it is a command when its class is one of commands."""
        if not self.spec.knows(method) and method.NAME.endswith(_OK):
            return
        opened = self.channels.get(channel)
        if isinstance(method, ChannelFlow) and opened is not None and opened.session is not None:
            method = SessionFlow(method.active)
        payload = self.spec.encode(method)
        if opened is None:
            self.out.frame(METHOD, channel, payload)
            self.touch()
        else:
            opened.write_method(payload)

    def send_content(self, channel: int, method: Method, message: Message) -> None:
        """Write a method with a message's content."""
        self.channels[channel].write_content(self.spec.encode(method), message)

    # --- input ----------------------------------------------------------------------------------

    def take_frame(self, kind: int, channel: int, payload: bytes) -> None:
        """Take one frame; on channels, sessions and commands are above the frames of 0-9."""
        if (
            channel == 0
            or kind not in (METHOD, HEADER, BODY)
            or self.state is not ConnectionState.OPEN
        ):
            super().take_frame(kind, channel, payload)
            return
        assert self.profile.channel_frame is not None, "the profile of this version has it"
        self.profile.channel_frame(self, kind, channel, payload)

    def has_begun(self) -> bool:
        """True if a message is received in part, or publishes wait for their commit."""
        if any(channel.references for channel in self.channels.values()):
            return True
        return super().has_begun()

    def note_dialect(self, table: object) -> None:
        """Note the types of a table that the peer sent: it knows them."""
        if isinstance(table, TypedTable):
            self.dialect = max(self.dialect, table.dialect)

    # --- ends -----------------------------------------------------------------------------------

    def end_channel(self, channel: Any, error: ProtocolError, text: str) -> None:
        """Close a channel or destroy a session because of its error."""
        opened = channel
        if opened.session is None:
            super().end_channel(channel, error, text)
            return
        opened.ending = True
        self.drop_channel(channel)
        self.ended.add(channel.number)
        self.send(channel.number, SessionClosed(error.code, text))

    def release(self) -> None:
        """Release what the peer held; exclusive queues without auto-delete lose their owner."""
        if self.vhost is not None:
            kept: set[str] = set()
            for channel in self.channels.values():
                if channel.outlives:
                    kept |= channel.exclusive
            for queue in self.vhost.owned_by(self):
                if not queue.auto_delete and queue.name not in kept:
                    self.vhost.give(queue, None)
        super().release()
