"""The connections of both APIs, written once: open, open channels, and recover after a loss.

Methods that wait yield their waits (`waits`). `aio/connection.py` and `blocking/connection.py`
answer them, and say when a connection is lost and how it ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar

from harebell.client.errors import AMQPError, ConnectionLost
from harebell.client.protocol.recovery import (
    Backoff,
    Recovery,
    connects_again,
    recoverable,
    refused,
    replay,
    resend,
)
from harebell.client.protocol.reports import Reports
from harebell.client.protocol.shared_channel import SharedChannel
from harebell.client.protocol.shown import CONNECTION_PARTS, without
from harebell.client.protocol.topology import Topology
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.v09.core import CoreConnection as Core
from harebell.client.protocol.v09.core import Random, new_core
from harebell.client.protocol.waits import (
    DIAL,
    NOW,
    USABLE,
    BrokerLink,
    Restored,
    Sleep,
    Steps,
    own,
    steps,
)
from harebell.client.url import URL, shown
from harebell.wire.v09 import extensions

ChannelT = TypeVar("ChannelT", bound=SharedChannel[Any, Any, Any, Any, Any])
RequesterT = TypeVar("RequesterT")
ConnectionState = Literal["open", "blocked", "recovering", "closed"]
OnState = Callable[[ConnectionState, AMQPError | str | None], object]

_WAITING = Recovery(first_seconds=0.2, most_seconds=2.0)
"""The delays of `connect(..., wait=seconds)` without recovery."""


class SharedConnection(Generic[ChannelT, RequesterT]):
    """A connection of either API.

    Args:
        api: its name in the log.
        url: the address.
        recovery: how to recover; None disables recovery.
        rng: randomness for the delays.
        properties: added to the client properties.
        ssl_context: an `ssl.SSLContext` instead of the TLS settings of the address, or None.
        patience: seconds to go on trying to connect; None tries as `recovery` says.

    Attributes:
        channels: the open channels, by number.
        buffered: number of deliveries that were read and not consumed.
        recovering: whether the connection was lost and is being restored.
        on_recovered: called after each recovery.
    """

    _core: Core
    """The protocol state; another one after a recovery."""
    _channel_type: Callable[..., ChannelT]
    _requester_type: Callable[..., RequesterT]

    def __init__(
        self,
        api: str,
        url: URL,
        recovery: Recovery | None,
        rng: Random,
        properties: dict[str, Any],
        ssl_context: Any,
        patience: float | None,
    ) -> None:
        self.url = url
        self.channels: dict[int, ChannelT] = {}
        self.buffered = 0
        self.recovering = False
        self.on_recovered: Callable[[], None] | None = None
        self._recovery = recovery
        self._rng = rng
        self._properties = properties
        self._ssl_context = ssl_context
        self._patience = patience
        self._reported: ConnectionState = "open"
        self._watchers: list[OnState] = []
        self.reports = Reports(api, url)
        self._topology = Topology() if recovery is not None else None
        self._error: AMQPError | None = None
        self._closing = False

    def __repr__(self) -> str:
        """Return the user, the broker, the version and the state; never the password."""
        url = self.url
        who = f"{url.username}@{url.address}, vhost {url.vhost!r}, AMQP {shown(url.version)}"
        return f"<{type(self).__name__} {who}, {self.state}>"

    def __dir__(self) -> list[str]:
        """Return the names for completion, without parts that only the client itself uses."""
        return without(CONNECTION_PARTS, super().__dir__())

    @property
    def state(self) -> ConnectionState:
        """Whether it is open, blocked (the broker blocks publishers), recovering or closed."""
        if self.recovering:
            return "recovering"
        if self._error is not None or not self.is_open:
            return "closed"
        return "open" if self._core.blocked is None else "blocked"

    def on_state(self, callback: OnState) -> Callable[[], None]:
        """Call a function with each new state of the connection.

        The blocking API notices changes inside its calls, a loss with the call after the one that
        has failed, and calls the function there. The function must not use the connection; an
        error in it is logged.

        Args:
            callback: takes the state (see `state`) and its reason: the error of a lost or closed
                connection, the broker's text of a blocked one, or None.

        Returns:
            A function that ends this.
        """
        self._watchers.append(callback)
        return functools.partial(self._unwatch, callback)

    def _unwatch(self, callback: OnState) -> None:
        if callback in self._watchers:
            self._watchers.remove(callback)

    def _changed(self, state: ConnectionState, reason: AMQPError | str | None) -> None:
        """Call the functions of `on_state`, unless they know the state."""
        if state == self._reported:
            return
        self._reported = state
        for callback in tuple(self._watchers):
            try:
                callback(state, reason)
            except Exception:
                self.reports.callback_failed(state)

    def _blocked(self, reason: str | None) -> None:
        """Handle that the broker blocks publishers, or does not any more."""
        # One that recovers is open when its channels are restored.
        if self._reported != "recovering":
            self._changed("open" if reason is None else "blocked", reason)

    @property
    def is_open(self) -> bool:
        """Whether the connection can be used."""
        raise NotImplementedError

    @property
    def _connection(self) -> Any:
        """The connection whose waits its methods yield: itself."""
        return self

    @steps
    def channel(self, *, confirms: bool | None = None) -> Steps[ChannelT]:
        """Open a channel.

        Args:
            confirms: whether `publish` waits for the broker's confirm; None waits if the version of
                AMQP has confirms.
        """
        yield USABLE
        core = yield self._core.open_channel(confirms=confirms, keep=self._resends)
        channel = self._channel_type(self, core)
        self.channels[core.number] = channel
        return channel

    @own
    def requester(self) -> RequesterT:
        """Return a client for requests and replies (RPC); use it with `async with`."""
        return self._requester_type(self)

    @property
    def _resends(self) -> bool:
        """Whether unconfirmed messages are kept and published again after a recovery."""
        return self._recovery is not None and self._recovery.resend

    @property
    def blocked_reason(self) -> str | None:
        """Why the broker blocks publishers."""
        return self._core.blocked

    @property
    def server_properties(self) -> dict[str, Any]:
        """The server properties of the broker."""
        return self._core.server_properties

    @property
    def extensions(self) -> dict[str, int]:
        """Harebell's protocol extensions that the broker supports, and their versions."""
        return extensions.announced(self._core.server_properties)

    @property
    def frame_max(self) -> int:
        """Negotiated maximum frame size, in bytes."""
        return self._core.frame_max

    @property
    def heartbeat(self) -> int:
        """Negotiated heartbeat interval, in seconds, 0 for none."""
        return self._core.heartbeat

    def name_now(self, queue: str) -> str:
        """Return the present name of a queue that the broker had named before a recovery."""
        return queue if self._topology is None else self._topology.name_now(queue)

    def survives(self, error: AMQPError | None) -> bool:
        """True if the connection recovers from this error, or is recovering already."""
        if self._recovery is None or self._closing or self._error is not None:
            return False
        return self.recovering or recoverable(error)

    # --- opening and recovery -------------------------------------------------------------------

    def _new_core(self, now: float) -> Core:
        """Return the state of a new attempt to connect."""
        return new_core(self.url, now, self._properties, self._rng)

    def _use(self, link: Any) -> None:
        """Continue with a link."""
        raise NotImplementedError

    def _opened(self) -> Steps[None]:
        """Connect for the first time; try again as `recover` says."""
        backoff = Backoff(self._recovery or _WAITING, self._rng)
        begun = yield NOW
        tried = 0
        while True:
            try:
                link = yield DIAL
            except AMQPError as error:
                tried += 1
                waited = (yield NOW) - begun
                if not connects_again(error, self._recovery, tried, waited, self._patience):
                    raise
                self.reports.failed(tried, error)
            else:
                link.core.recorder = self._topology
                self._use(link)
                return
            delay = backoff.delay()
            if self._patience is not None:
                delay = min(delay, max(0.0, begun + self._patience - (yield NOW)))
            yield Sleep(delay)

    def _lost(self, error: AMQPError) -> Backoff:
        """Begin to recover; the result is for `_reopened`."""
        assert self._recovery is not None, "recovery was not asked for"
        backoff = Backoff(self._recovery, self._rng)
        backoff.error = error
        self.recovering = True
        self.reports.lost(error)
        self._changed("recovering", error)
        return backoff

    def _reopened(self, backoff: Backoff) -> Steps[bool]:
        """Try to reconnect until it succeeds; False if the recovery gives up."""
        while True:
            yield Sleep(backoff.delay())
            try:
                yield from self._restored()
            except AMQPError as failure:
                backoff.error = failure
                self.reports.failed(backoff.tried, failure)
                if not backoff.failed(refused=refused(failure)):
                    return False
            else:
                self.recovering = False
                self.reports.regained(backoff.tried)
                self._changed(self.state, self.blocked_reason)
                if self.on_recovered is not None:
                    self.on_recovered()
                return True

    def _restored(self) -> Steps[None]:
        """Make one attempt: connect and restore the topology."""
        link = yield DIAL
        old = {number: channel.core for number, channel in self.channels.items()}
        try:
            channels = yield from self._replayed(link, old)
        except BaseException:
            link.abort()
            raise
        self._adopt(channels, old)
        self._use(link)
        for number, core in channels.items():
            resend(old[number], core)
        link.flush()
        for channel in self.channels.values():
            for inbox in channel.inboxes:
                inbox.wake()

    def _replayed(
        self, link: BrokerLink, old: Mapping[int, CoreChannel]
    ) -> Steps[dict[int, CoreChannel]]:
        """Run a replay over a link; return its channels."""
        assert self._topology is not None, "nothing was recorded"
        replaying = replay(link.core, self._topology, old)
        try:
            call = next(replaying)
            while True:
                yield Restored(link, call)
                call = replaying.send(None) if call.error is None else replaying.throw(call.error)
        except StopIteration as end:
            channels: dict[int, CoreChannel] = end.value
        finally:
            replaying.close()
        if link.core.finished:
            raise link.core.error or ConnectionLost("the connection broke again while it recovered")
        return channels

    def _adopt(self, channels: Mapping[int, CoreChannel], old: Mapping[int, CoreChannel]) -> None:
        """Continue with the channels of a recovered connection.

        Args:
            channels: the new states, by number.
            old: the states when the recovery began.
        """
        assert self._topology is not None, "nothing was recorded"
        for number, core in channels.items():
            channel = self.channels.get(number)
            if channel is None or channel.core is not old[number]:
                # The program closed the channel while it was being restored.
                core.close()
                continue
            for tag in core.consumers.keys() - self._topology.channel(number).consumers.keys():
                core.abandon(tag)
            channel.adopt(core)

    def _end(self, error: AMQPError) -> None:
        """End the connection for good."""
        self._error = error
        self.reports.ended(error)
        self.recovering = False
        for channel in list(self.channels.values()):
            channel.ended(error)
        self._changed("closed", error)

    def remove_channel(self, number: int) -> None:
        """Remove a channel that the broker has closed."""
        self.channels.pop(number, None)

    def forget_channel(self, number: int) -> None:
        """Remove a channel that the program has closed, possibly while disconnected."""
        self.channels.pop(number, None)
        if self._topology is not None:
            self._topology.forget_channel(number)

    def forget_consumer(self, number: int, tag: str) -> None:
        """Do not restore a consumer that the program dropped without cancelling it."""
        if self._topology is not None:
            self._topology.forget_consumer(number, tag)
