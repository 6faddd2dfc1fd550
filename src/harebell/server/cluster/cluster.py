"""The part of an owner that works with the other stores of its cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.errors import StoreError
from harebell.base.limits import CLUSTER_LOOK_SECONDS
from harebell.server.background_tasks import BackgroundTasks
from harebell.server.cluster import stores
from harebell.server.cluster.client_handover import SERVICE as CLIENTS
from harebell.server.cluster.client_handover import ClientHandover
from harebell.server.cluster.cluster_directory import (
    CLUSTER_SCHEME,
    FINGERPRINT,
    ClusterDirectory,
    View,
)
from harebell.server.cluster.command_links import SERVICE as COMMANDS
from harebell.server.cluster.command_service import CommandService
from harebell.server.cluster.commands import ClusterCommands
from harebell.server.cluster.event_sender import EventSender
from harebell.server.cluster.event_service import EventService
from harebell.server.cluster.event_wire import SERVICE as EVENTS
from harebell.server.cluster.handover_service import clients_service
from harebell.server.cluster.link import ClusterListener
from harebell.server.cluster.link_tls import LinkTls
from harebell.server.cluster.local_handover import NAME as CLIENTS_SOCKET
from harebell.server.cluster.local_handover import LocalHandover, give
from harebell.server.cluster.stores import FIRST_STORE
from harebell.server.cluster.usage_elsewhere import UsageElsewhere
from harebell.server.cluster.usage_service import UsageService
from harebell.server.cluster.usage_wire import SERVICE as USAGE
from harebell.server.cluster.users_copy import UsersCopy, take_over
from harebell.server.net.tls import StartError
from harebell.server.postgresql.addresses import reachable

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.front.common.peer import Peer
    from harebell.front.common.settings import Settings
    from harebell.model.vhost import VHost
    from harebell.server.config import Config
    from harebell.server.control.dispatcher import Dispatcher
    from harebell.server.http.listening import HttpListener
    from harebell.server.logs.published_log import PublishedLog
    from harebell.server.net.elsewhere import Elsewhere
    from harebell.server.net.tls import ServerTls
    from harebell.server.postgresql.owned_store import OwnedStore

_MS = 1_000


class Served(Protocol):
    """The parts of a broker that work with others: see `harebell.server.app.App`."""

    config: Config
    settings: Settings
    registry: ConnectionRegistry
    logger: PublishedLog
    tls: ServerTls | None
    listeners: list[Any]
    http_listeners: list[HttpListener]
    max_connections: int
    handing_over: Elsewhere | None

    def flush_soon(self) -> None:
        """Write output, and start a commit, at the end of this turn."""

    def protocol_of(self, peer: Peer) -> asyncio.BufferedProtocol:
        """Return the connection of a client that another process has accepted."""


class Cluster:
    """What the owner of a store knows of the others, and does for them.

    Args:
        app: the broker.
        owned: its store.
        context: the broker and its users.
        dispatcher: runs commands.

    Attributes:
        directory: who owns the stores, and where the vhosts are.
    """

    def __init__(
        self,
        app: Served,
        owned: OwnedStore,
        context: AdminContext,
        dispatcher: Dispatcher,
    ) -> None:
        self._app = app
        self._owned = owned
        config = app.config
        self._context = context
        context.store = owned.number
        context.vhost_names = lambda: self.directory.view.vhosts
        self._dispatcher = dispatcher
        self._tasks = BackgroundTasks()
        self.directory = ClusterDirectory(
            owned.database, config.storage_schema, config.storage_stores, owned.number, context.log
        )
        self.directory.changed = self._changed
        self._copy = UsersCopy(context.users, self.directory.write_users)
        self._listener: ClusterListener | None = None
        self._local: LocalHandover | None = None
        self._service: CommandService | None = None
        self._sent: ClusterCommands | None = None
        self._events: EventService | EventSender | None = None
        self._usage = UsageService(context.broker, app.registry, context.users)
        self._elsewhere: UsageElsewhere | None = None

    async def start(self) -> None:
        """Learn about the cluster, and let it know what this store has.

        Raises:
            StoreError: the database cannot be used.
            StartError: the cluster port cannot be used.
        """
        directory, broker = self.directory, self._context.broker
        await directory.start(self._owned.ownership.epoch)
        self._check_stores()
        await directory.register(set(broker.vhosts))
        await self.users_changed()
        made_before = broker.vhost_added

        def added(vhost: VHost) -> None:
            made_before(vhost)
            if directory.store_of(vhost.name) is None:
                # Made here without a command that has placed it before.
                self._tasks.start(self._register(vhost.name))

        broker.vhost_added = added
        if directory.stores > 1:
            self._pass_clients_on()
            self._count_elsewhere()
        await self._listen()
        if directory.number != FIRST_STORE:
            self._events = EventSender(
                directory, broker.events, broker.log, self._owned.node, self._app.logger.write
            )

    def _check_stores(self) -> None:
        """Refuse to serve a cluster of more stores than the configuration has.

        Raises:
            StoreError: a vhost is in a store that no process here stands by for.
        """
        stores = self.directory.stores
        beyond = {name: at for name, at in self.directory.view.vhosts.items() if at > stores}
        if beyond:
            name, at = min(beyond.items())
            raise StoreError(
                f"storage_stores is {stores}, and the vhost '{name}' is in store {at}: set it to "
                f"{max(beyond.values())} or more"
            )

    async def _listen(self) -> None:
        """Open the cluster port."""
        app = self._app
        services = {
            CLIENTS: clients_service(app.protocol_of),
            COMMANDS: self._commands().serve,
            USAGE: self._usage.serve,
        }
        if self.directory.number == FIRST_STORE:
            broker = self._context.broker
            events = EventService(broker.events, broker.log, app.flush_soon, app.logger.write)
            self._events = events
            services[EVENTS] = events.serve
        tls = None if app.tls is None else LinkTls(app.tls)
        listener = ClusterListener(services, self.directory.secret, tls, app.logger.write)
        host, port = app.config.host, app.config.storage_cluster_port
        try:
            await listener.listen(host, port)
        except OSError as error:
            raise StartError(
                f"storage_cluster_port: {host}:{port} cannot be listened on: "
                f"{error.strerror or error}; set it to another port, or to 0 for a free one"
            ) from None
        self._listener = listener

    def _commands(self) -> CommandService:
        """Return what serves the commands of the other brokers, and send ours to them."""
        directory, context, dispatcher = self.directory, self._context, self._dispatcher
        commands = ClusterCommands(dispatcher, directory, context, self.users_changed)
        self._sent = commands
        if directory.stores > 1:
            dispatcher.cluster = commands
        self._service = CommandService(context, dispatcher, directory, commands)
        return self._service

    def _pass_clients_on(self) -> None:
        app = self._app
        app.settings.elsewhere = self.directory.is_elsewhere
        over = app.handing_over = ClientHandover(
            self.directory,
            2 * app.config.storage_lease_ms / _MS,
            max(1, app.max_connections // 2),
            app.logger.write,
        )
        over.give = self._give
        self._local = LocalHandover(
            app.config.data_dir / CLIENTS_SOCKET, app.protocol_of, app.logger.write
        )

    def _count_elsewhere(self) -> None:
        """Let limits of users and of the cluster hold for all owners together."""
        usage = self._elsewhere = UsageElsewhere(self.directory, self._app.logger.write)
        self._app.settings.used_elsewhere = usage.of_user
        self._context.broker.ceilings.elsewhere = usage.declared

    def _give(self, store: int, peer: Peer, transport: asyncio.Transport, sent: bytes) -> bool:
        """Give a client to the owner of a store, if that is a process of this machine."""
        owner = self.directory.view.owners.get(store)
        if owner is None or owner.broker != self._owned.node:
            return False
        data_dir = stores.data_dir_of(self._app.config.data_dir, self.directory.number, store)
        return give(data_dir / CLIENTS_SOCKET, peer, transport, sent)

    def addresses(self) -> dict[str, str]:
        """Return where clients and the other brokers reach this one, by scheme."""
        app, listener = self._app, self._listener
        listening = [(each.scheme, each.host, each.port) for each in app.listeners]
        listening += [(each.scheme, each.host, each.port) for each in app.http_listeners]
        if listener is not None:
            listening.append((CLUSTER_SCHEME, listener.host, listener.port))
        found = reachable(app.config, listening)
        if listener is not None:
            found[FINGERPRINT] = listener.fingerprint
        return found

    def publish(self) -> None:
        """Let the other brokers know the addresses of this one."""
        self._owned.ownership.publish(self.addresses())

    def close(self) -> None:
        """Serve the other brokers no more."""
        self.directory.close()
        self._copy.close()
        if self._listener is not None:
            self._listener.close()
        if self._service is not None:
            self._service.close()
        if self._sent is not None:
            self._sent.close()
        if self._local is not None:
            self._local.close()
        if self._events is not None:
            self._events.close()
        self._usage.close()
        if self._elsewhere is not None:
            self._elsewhere.close()
        self._tasks.cancel()

    async def users_changed(self) -> None:
        """Let the other owners have the users of this one, if it is that of store 1.

        Raises:
            StoreError: the database cannot be used.
        """
        if self.directory.number == FIRST_STORE:
            await self._copy.renew()

    async def _changed(self, view: View) -> None:
        """Take over the users of store 1."""
        if self.directory.number != FIRST_STORE:
            await self._dispatcher.run(lambda: take_over(view.users, self._context))

    async def _register(self, vhost: str) -> None:
        """Let the other owners know a new vhost, however long the database is away."""
        said = False
        while vhost in self._context.broker.vhosts:
            try:
                await self.directory.keep(vhost)
                return
            except StoreError as error:
                if not said:
                    self._context.log(
                        "error", f"other owners do not know vhost '{vhost}' yet: {error}"
                    )
                said = True
            await asyncio.sleep(CLUSTER_LOOK_SECONDS)
