"""The parts of a connection that the asyncio and the blocking API share: all that does not wait.

The waits are in `aio/connection_waits.py` and `blocking/connection_waits.py`. How a connection is
opened and recovered is written once, in `aio/connection.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from harebell.client.errors import AMQPError
from harebell.client.protocol.recovery import Recovery, recoverable
from harebell.client.protocol.reports import Reports
from harebell.client.protocol.shared_channel import SharedChannel
from harebell.client.protocol.shown import CONNECTION_PARTS, without
from harebell.client.protocol.topology import Topology
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.v09.core import CoreConnection as Core
from harebell.client.protocol.v09.core import Random, new_core
from harebell.client.url import URL
from harebell.wire.v09 import extensions

C = TypeVar("C", bound=SharedChannel)


class SharedConnection(Generic[C]):
    """A connection of either API.

    Args:
        api: its name in the log.
        url: the address.
        recovery: how to recover; None disables recovery.
        rng: randomness for the delays.
        properties: added to the client properties.

    Attributes:
        channels: the open channels, by number.
        buffered: number of deliveries that were read and not consumed.
        recovering: whether the connection was lost and is being restored.
        on_recovered: called after each recovery.
    """

    _core: Core
    """The protocol state; another one after a recovery."""

    def __init__(
        self,
        api: str,
        url: URL,
        recovery: Recovery | None,
        rng: Random,
        properties: dict[str, Any],
    ) -> None:
        self.url = url
        self.channels: dict[int, C] = {}
        self.buffered = 0
        self.recovering = False
        self.on_recovered: Callable[[], None] | None = None
        self._recovery = recovery
        self._rng = rng
        self._properties = properties
        self._reports = Reports(api, url)
        self._topology = Topology() if recovery is not None else None
        self._error: AMQPError | None = None
        self._closing = False

    def __repr__(self) -> str:
        """Return the user, the broker, the version and the state; never the password."""
        url = self.url
        state = "recovering" if self.recovering else "open" if self.is_open else "closed"
        who = f"{url.username}@{url.address}, vhost {url.vhost!r}, AMQP {url.version}"
        return f"<{type(self).__name__} {who}, {state}>"

    def __dir__(self) -> list[str]:
        """Return the names for completion, without parts that only the client itself uses."""
        return without(CONNECTION_PARTS, super().__dir__())

    @property
    def is_open(self) -> bool:
        """Whether the connection can be used."""
        raise NotImplementedError

    def _new_core(self, now: float) -> Core:
        """Return the state of a new attempt to connect."""
        return new_core(self.url, now, self._properties, self._rng)

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
