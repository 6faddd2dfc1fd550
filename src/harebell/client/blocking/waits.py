"""How the blocking API waits: all that differs from the asyncio API.

The files beside it that are made by `tools/blocking_api.py` have the classes, which are those of
`aio`; each of them inherits its waits from here. A call that waits reads the socket itself, until
the answer arrives. Sinks and Arrow batches exist in this API only.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

from harebell.client.blocking.bulk import arrow_batches
from harebell.client.limits import CLIENT_PREFETCH, REPLY_TIMEOUT_SECONDS
from harebell.client.message import Body, Item, PropertyArguments
from harebell.client.protocol.channel_parts import ChannelPhase
from harebell.client.protocol.confirms import Bulk
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.requests import Reply, Request, Requests
from harebell.client.protocol.shared_channel import SharedChannel, SharedPendingConfirm, subscribe
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.wire.v09.frames import FrameSink

if TYPE_CHECKING:
    from harebell.client.blocking.connection_waits import ConnectionWaits


def each(items: Iterable[Item]) -> Iterable[Item]:
    """Return the items; the asyncio API also takes asynchronous iterables here."""
    return items


class ChannelWaits(SharedChannel):
    """The waits of a channel, and its sink.

    Args:
        connection: the open connection that it belongs to.
        core: its protocol state.

    Attributes:
        sinks: the inboxes of the subscriptions whose deliveries the sink gets.
    """

    def __init__(self, connection: ConnectionWaits, core: CoreChannel) -> None:
        self.connection = connection
        self.sinks: set[Inbox] = set()
        super().__init__(connection, core)

    arrow_batches = arrow_batches

    def ready_to_publish(self) -> None:
        """Recover if the connection was lost; wait while the broker stops the channel's flow."""
        self.connection.usable()
        while not self.core.flow_active and self.is_open:
            self.connection.pump(None)

    def _turn(self) -> None:
        """Write the publishes, and read the confirms that have arrived."""
        self.connection.pump(0)

    def _settled(self, bulk: Bulk, low: int) -> None:
        """Wait until at most `low` publishes are unconfirmed."""
        while bulk.outstanding > low:
            self.connection.pump(None)

    # --- sinks ----------------------------------------------------------------------------------

    def consume_into(
        self,
        sink: FrameSink,
        queue: str,
        *,
        prefetch: int | None = CLIENT_PREFETCH,
        no_ack: bool = False,
        exclusive: bool = False,
        tag: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> Subscription:
        """Subscribe, and pass every delivery to `sink.deliver` without an object for it.

        Whenever the connection reads, from this call on and mainly in `Connection.pump`, the sink
        is called with the arguments of `FrameSink.deliver`. It must not call the connection. An
        exception in it ends the connection and is raised by the call that read. A channel has
        one sink, shared by all its consumers of this kind. Acknowledge with `Channel.ack(tag,
        multiple=True)`.
        """
        if self.core.sink is not None and self.core.sink is not sink:
            raise ValueError(f"channel {self.number} has another sink already")
        self.core.set_sink(sink)
        inbox = Inbox(self.connection, no_ack, _no_wake)
        self.sinks.add(inbox)
        try:
            self.connection.usable()
            tag = tag or self.core.next_tag()
            options = {"tag": tag, "no_ack": no_ack, "exclusive": exclusive, "arguments": arguments}
            self.connection.finish(subscribe(self, queue, inbox, options, prefetch, bulk=True))
        except BaseException:
            self.drop_sink(inbox)
            raise
        return Subscription(self, tag, inbox)

    def drop_sink(self, inbox: Inbox) -> None:
        """End a subscription of the sink; the last one removes the sink from the channel."""
        self.inboxes.discard(inbox)
        self.sinks.discard(inbox)
        if not self.sinks:
            self.core.set_sink(None)


def _no_wake() -> None:
    """Wake nothing: the caller that waits for a delivery is the reader itself."""


class Subscription:
    """A subscription whose deliveries are passed to a sink (`Channel.consume_into`)."""

    def __init__(self, channel: ChannelWaits, tag: str, inbox: Inbox) -> None:
        self.tag = tag
        self._channel = channel
        self._inbox = inbox

    @property
    def ended(self) -> bool:
        """Whether no more deliveries will come."""
        return self._inbox.ended

    def check(self) -> None:
        """Raise the error that ended the subscription, if one did."""
        self._inbox.check()

    def cancel(self) -> None:
        """End the subscription; the sink may get deliveries until this returns."""
        channel = self._channel
        if not self._inbox.ended and channel.core.state is ChannelPhase.OPEN:
            channel.connection.finish(channel.core.cancel(self.tag))
            self._inbox.finish(None)
        channel.drop_sink(self._inbox)


class PendingConfirm(SharedPendingConfirm):
    """An unconfirmed publish."""

    __slots__ = ()

    _connection: ConnectionWaits

    def wait(self) -> None:
        """Wait for the broker's confirm.

        Raises:
            PublishNacked: the broker refused it.
            PublishReturned: it was mandatory and unroutable.
            ConnectionLost, ChannelClosed: the outcome is unknown.
        """
        self._connection.finish(self._confirm)


class ConsumerWaits:
    """The waits of a consumer; it subscribes when it is made.

    Args:
        channel: an open one, that it consumes on.
        queue: the name of the queue.
        options: of basic.consume: tag ("" generates one), no_ack, exclusive, arguments.
        prefetch: maximum number of unacknowledged messages; None leaves the channel's qos.
        idle_seconds: maximum time without a message; None waits without limit.
    """

    def __init__(
        self,
        channel: ChannelWaits,
        queue: str,
        options: Mapping[str, Any],
        prefetch: int | None,
        idle_seconds: float | None,
    ) -> None:
        self._channel = channel
        self._idle_seconds = idle_seconds
        self._inbox = inbox = Inbox(channel.connection, options["no_ack"], _no_wake)
        self._subscribed = False
        channel.connection.usable()
        self.tag: str = options["tag"] or channel.core.next_tag()
        tagged = {**options, "tag": self.tag}
        channel.connection.finish(subscribe(channel, queue, inbox, tagged, prefetch))
        self._subscribed = True

    def __enter__(self) -> Self:
        return self

    def _arrived(self) -> bool:
        """Read until there is a delivery; False at the end or after the idle time."""
        inbox = self._inbox
        until = None if self._idle_seconds is None else time.monotonic() + self._idle_seconds
        late = False
        while not inbox.items:
            if inbox.ended:
                inbox.check()
                return False
            if late:
                return False
            remaining = None if until is None else max(0.0, until - time.monotonic())
            # The process may have been suspended; deliveries that arrived meanwhile are in time:
            # read once more after the idle time.
            late = remaining == 0
            self._channel.connection.pump(remaining)
        return True

    def _requeue_rest(self) -> None:
        """Requeue what was not consumed."""
        self._channel.requeue_inbox(self._inbox)
        self._channel.connection.flush()

    def __del__(self) -> None:
        if self._subscribed and not self._inbox.ended:
            # No I/O here, the garbage collector may be the caller: the next call cancels.
            self._channel.connection.abandoned.append((self._channel, self._inbox, self.tag))


class RequesterWaits:
    """The waits of a requester, and requests whose replies are taken later."""

    connection: ConnectionWaits
    requests: Requests

    def _request(
        self, body: Body, exchange: str, routing_key: str, properties: dict[str, Any]
    ) -> Request:
        """Append a request to the output."""
        raise NotImplementedError

    def send(
        self,
        body: Body,
        *,
        routing_key: str,
        exchange: str = "",
        **properties: Unpack[PropertyArguments],
    ) -> PendingReply:
        """Send a request; call `wait()` for its reply later."""
        request = self._request(body, exchange, routing_key, dict(properties))
        self.connection.flush()
        return PendingReply(request, functools.partial(self._reply, request))

    def _reply(self, request: Request, seconds: float) -> Reply:
        """Wait for the reply of a request; raise as `Requester.call`."""
        until = time.monotonic() + seconds
        while not request.reply.done:
            remaining = max(0.0, until - time.monotonic())
            # Also without time left: the request is written, and what has arrived is read.
            self.connection.pump(remaining)
            if remaining == 0 and not request.reply.done:
                self.requests.forget(request)
                raise request.timed_out(seconds)
        return request.reply.value()


class PendingReply:
    """A request without a reply yet."""

    def __init__(self, request: Request, wait: Callable[[float], Reply]) -> None:
        self._request = request
        self._wait = wait

    @property
    def done(self) -> bool:
        """Whether the call is done: the reply has arrived, or an error."""
        return self._request.reply.done

    def wait(self, timeout: float = REPLY_TIMEOUT_SECONDS) -> Reply:
        """Wait for the reply; raise as `Requester.call`."""
        return self._wait(timeout)
