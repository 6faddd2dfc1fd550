"""Types of a channel: its phase, its consumers, its pending calls, and its connection."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from harebell.base.message import Properties
from harebell.client.errors import AMQPError
from harebell.client.protocol.call import Call
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.v09.dialect import ClientDialect
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import FrameScanner, OutBuffer

M = TypeVar("M", bound=m.Method)
OnDelivery = Callable[[int, bool, str, str, Properties, bytes], None]
OnEnd = Callable[[AMQPError | None], None]
OFFSET, ERAS = "x-stream-offset", "x-stream-eras"
"""Arguments of consumers of streams; the first is a header of their deliveries, too."""
TRACKING = "x-stream-automatic-offset-tracking"


class ChannelPhase(enum.Enum):
    """The phases of a channel, from channel.open to channel.close-ok."""

    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


class Mode(enum.Enum):
    """The meaning of a publish on the channel."""

    PLAIN = "plain"
    CONFIRM = "confirm"
    TRANSACTION = "transaction"


OPEN, PLAIN, CONFIRM = ChannelPhase.OPEN, Mode.PLAIN, Mode.CONFIRM
"""What every message is compared with: Python 3.11 looks up a member of an enum slowly."""


class Recorder(Protocol):
    """Record declarations, to repeat them on a recovered connection (`topology`)."""

    def rewrite(self, channel: int, method: M) -> M:
        """Return the method to send instead of this one."""

    def observe(self, channel: int, method: m.Method, result: Any) -> None:
        """Record a completed method; `result` is the verb's result."""

    def forget_consumer(self, channel: int, tag: str) -> None:
        """Forget a subscription that the broker has ended."""

    def forget_channel(self, channel: int) -> None:
        """Forget a closed channel."""


class Host(Protocol):
    """The interface of a channel to its connection."""

    out: OutBuffer
    frame_max: int
    scanner: FrameScanner
    dialect: ClientDialect
    recorder: Recorder | None

    def forget(self, number: int) -> None:
        """Free the number of the channel."""

    def check_extension(self, name: str) -> None:
        """Raise `ExtensionMissing` if the broker does not support a protocol extension."""


class Got:
    """A reply with a content: of basic.get, or of bulk.read."""

    __slots__ = ("body", "method", "properties")

    def __init__(self, method: Any, properties: Properties, body: bytes) -> None:
        self.method = method
        self.properties = properties
        self.body = body


class CoreConsumer:
    """One subscription.

    Args:
        tag: its consumer tag.
        no_ack: whether the broker expects no acknowledgements.
        on_delivery: called for every message; None hands it to the channel's bulk sink.
        on_end: called once, when no more will arrive; with the error unless we cancelled it.
        inbox: where the program takes its deliveries from; None if it gets them by itself.

    Attributes:
        eras: of the offsets of its stream, if it keeps eras; "" else.
    """

    __slots__ = ("eras", "inbox", "no_ack", "on_delivery", "on_end", "tag")

    def __init__(
        self,
        tag: str,
        no_ack: bool,
        on_delivery: OnDelivery | None,
        on_end: OnEnd,
        inbox: Inbox | None = None,
    ) -> None:
        self.eras = ""
        self.inbox = inbox
        self.tag = tag
        self.no_ack = no_ack
        self.on_delivery = on_delivery
        self.on_end = on_end


class Pending:
    """A call that waits for its reply."""

    __slots__ = ("call", "convert", "method", "replies")

    def __init__(
        self,
        method: m.Method,
        replies: tuple[type[m.Method], ...],
        convert: Callable[[Any], Any],
        call: Call[Any],
    ) -> None:
        self.method = method
        self.replies = replies
        self.convert = convert
        self.call = call


def nothing(reply: Any) -> None:
    """Return None: the verb has no result."""


def got(reply: Got | m.BasicGetEmpty) -> Got | None:
    """Return the result of basic.get."""
    return reply if isinstance(reply, Got) else None


def drop(*rest: object) -> None:
    """Ignore a delivery without acknowledgement, or the end, of an abandoned consumer."""
