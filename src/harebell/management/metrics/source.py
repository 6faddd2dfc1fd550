"""What metrics are read from: the parts of a running broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from harebell.base.histogram import Histogram

if TYPE_CHECKING:
    from harebell.admin.findings import Findings
    from harebell.admin.login_attempts import LoginAttempts
    from harebell.admin.node import Certificate, Listening
    from harebell.auth.users import Users
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import AnyChannel
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.model.broker import Broker
    from harebell.model.queue.contract import Queue
    from harebell.server.disk.flusher import Flusher
    from harebell.server.disk.storage import Storage


class Source(Struct, frozen=True):
    """A running broker.

    Args:
        broker: its queues and exchanges.
        registry: its connections.
        users: whose logins are counted.
        storage: its data directory.
        flusher: its commits.
        lag: the delays of the event loop, in seconds.
        clock: returns seconds, monotonic.
        started_at: when it started, by that clock.
        max_connections: how many connections the limit of descriptors allows.
        login_attempts: the logins over HTTP.
        certificates: returns the TLS listeners with their certificates, the first to expire of
            each file.
        backups: returns the values of `BACKUPS` in `groups/storage.py`.
        passed_on: returns how many clients of other stores there are; nothing with one store.
        findings: what needs somebody.
    """

    broker: Broker
    registry: ConnectionRegistry
    users: Users
    storage: Storage
    flusher: Flusher
    lag: Histogram
    clock: Callable[[], float]
    started_at: float
    max_connections: int
    login_attempts: LoginAttempts
    certificates: Callable[[], list[tuple[Listening, Certificate]]]
    backups: Callable[[], tuple[float | None, ...]]
    passed_on: Callable[[], dict[str, int]]
    findings: Findings

    def queues(self, vhosts: frozenset[str] | None = None) -> Iterator[Queue]:
        """Yield the queues, of all vhosts or of some; a slice may end between two of them."""
        for vhost in list(self.broker.vhosts.values()):
            if vhosts is None or vhost.name in vhosts:
                for queue in list(vhost.queues.values()):
                    if not queue.deleted:
                        yield queue

    def connections(self) -> Iterator[BaseConnection]:
        """Yield the connections; a slice may end between two of them."""
        for connection in list(self.registry.connections):
            if not connection.closing:
                yield connection

    def channels(
        self, vhosts: frozenset[str] | None = None
    ) -> Iterator[tuple[BaseConnection, AnyChannel]]:
        """Yield the channels with their connections; a slice may end between two of them."""
        for connection in self.connections():
            vhost = connection.vhost
            if vhost is not None and (vhosts is None or vhost.name in vhosts):
                for channel in list(connection.channels.values()):
                    yield connection, channel
