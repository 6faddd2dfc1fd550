"""The parts of a channel that the asyncio and the blocking API share: all that does not wait.

The waits are in `aio/waits.py` and `blocking/waits.py`: asyncio awaits a future while other tasks
read the socket, the blocking API reads the socket itself. The methods that use these waits are
written once, in `aio`; `tools/blocking_api.py` makes those of `blocking` from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from harebell.client.errors import AMQPError, PublishReturned
from harebell.client.message import Delivered
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import ChannelPhase, CoreConsumer, Got
from harebell.client.protocol.confirms import Confirm
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.shown import CHANNEL_PARTS, without
from harebell.client.protocol.v09.channel import CoreChannel


class Owner(Protocol):
    """The interface of a channel to its connection."""

    def survives(self, error: AMQPError | None) -> bool:
        """True if the connection recovers from this error, or is recovering already."""

    def remove_channel(self, number: int) -> None:
        """Remove a channel that the broker has closed."""


class SharedChannel:
    """A channel of either API.

    Args:
        connection: the connection that it belongs to, also after a recovery.
        core: its protocol state; another one after a recovery.

    Attributes:
        inboxes: the inboxes of its consumers.
        on_return: called with each returned message that matches no unconfirmed publish.
    """

    def __init__(self, connection: Owner, core: CoreChannel) -> None:
        self.core = core
        self.inboxes: set[Inbox] = set()
        self.on_return: Callable[[PublishReturned], None] | None = None
        self._shared_connection = connection
        self.adopt(core)

    @property
    def number(self) -> int:
        """The channel number."""
        return self.core.number

    @property
    def is_open(self) -> bool:
        """Whether the channel can be used; False while its connection recovers."""
        return self.core.state is ChannelPhase.OPEN

    @property
    def confirms(self) -> bool:
        """Whether `publish` waits for the broker's confirm; not every version of AMQP has them."""
        return self.core.wants_confirms

    def __repr__(self) -> str:
        """Return the kind, the number and the state, for people."""
        state = "open" if self.is_open else f"closed: {self.core.error}"
        url = getattr(self._shared_connection, "url", None)
        where = "" if url is None else f" on {url.address}"
        return f"<{type(self).__name__} {self.number}{where}, {state}>"

    def __dir__(self) -> list[str]:
        """Return the names for completion, without parts that only the client itself uses."""
        return without(CHANNEL_PARTS, super().__dir__())

    def adopt(self, core: CoreChannel) -> None:
        """Continue with the state of a recovered connection."""
        self.core = core
        core.on_return = self._on_return
        core.on_closed = self._on_closed

    def _on_return(self, error: PublishReturned) -> None:
        if self.on_return is not None:
            self.on_return(error)

    def _on_closed(self, error: AMQPError) -> None:
        if not self._shared_connection.survives(error):
            self._shared_connection.remove_channel(self.number)

    def speaks_for(self, core: CoreChannel) -> bool:
        """True if a delivery of that state can still be settled.

        False if its connection was lost and has recovered or will: the broker delivers the message
        again, and the old delivery tag is invalid.

        Raises:
            AMQPError: the channel is closed for good.
        """
        if core.state is ChannelPhase.OPEN:
            return True
        if core is not self.core or self._shared_connection.survives(core.error):
            return False
        core.check_open()
        return True

    def requeue_inbox(self, inbox: Inbox) -> None:
        """Requeue the messages of a consumer that were prefetched and not consumed."""
        self.inboxes.discard(inbox)
        items = inbox.take_all()
        if not inbox.no_ack and self.core.state is ChannelPhase.OPEN:
            for item in items:
                self.core.nack(item[0], requeue=True)

    def ended(self, error: AMQPError) -> None:
        """Fail every pending call and end every consumer: the connection has ended."""
        self.core.confirms.fail(error)
        self.core.error = error
        for inbox in list(self.inboxes):
            inbox.finish(error)


def subscribe(
    channel: SharedChannel,
    queue: str,
    inbox: Inbox,
    options: Mapping[str, Any],
    prefetch: int | None,
    *,
    bulk: bool = False,
) -> Call[CoreConsumer]:
    """Subscribe to a queue.

    Args:
        channel: an open one, that it consumes on.
        queue: the name of the queue.
        inbox: gets the deliveries and the end.
        options: of basic.consume: tag, no_ack, exclusive, arguments.
        prefetch: maximum number of unacknowledged messages; None leaves the channel's qos.
        bulk: the channel's sink gets the deliveries; the inbox gets only the end.
    """
    core = channel.core
    if prefetch is not None:
        # The answers arrive in order: after basic.consume-ok this one is done, too.
        core.qos(prefetch)
    deliver = None if bulk else inbox.deliver
    call = core.consume(queue, deliver, inbox.end, inbox=inbox, **options)
    channel.inboxes.add(inbox)
    return call


class SharedDelivery(Delivered):
    """A delivery of either API: a message, and the channel state that it is settled on."""

    __slots__ = ("_channel", "_core")

    def __init__(self, channel: Any, core: CoreChannel, *content: Any) -> None:
        super().__init__(*content)
        self._channel = channel
        self._core = core


def delivered_by_get(got: Got) -> tuple[Any, ...]:
    """Return the arguments of a `Delivered` for the result of basic.get."""
    method = got.method
    return (
        got.body,
        method.exchange,
        method.routing_key,
        got.properties,
        method.delivery_tag,
        method.redelivered,
        "",
        method.message_count,
    )


class SharedPendingConfirm:
    """A publish whose confirm has not been awaited yet."""

    __slots__ = ("_confirm", "_connection")

    def __init__(self, connection: Any, confirm: Confirm) -> None:
        self._connection = connection
        self._confirm = confirm

    @property
    def done(self) -> bool:
        """Whether the broker has answered."""
        return self._confirm.done
