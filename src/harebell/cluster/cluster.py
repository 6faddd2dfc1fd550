"""The part of an owner that works with the other stores of its cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.errors import StoreError
from harebell.cluster import stores
from harebell.cluster.backup import SERVICE as BACKUP
from harebell.cluster.backup import BackupService, OtherPart
from harebell.cluster.client_handover import SERVICE as CLIENTS
from harebell.cluster.client_handover import ClientHandover, clients_service
from harebell.cluster.cluster_directory import FINGERPRINT, ClusterDirectory, View
from harebell.cluster.command_caller import SERVICE as COMMANDS
from harebell.cluster.command_service import CommandService
from harebell.cluster.commands import ClusterCommands
from harebell.cluster.events import SERVICE as EVENTS
from harebell.cluster.events import EventSender, EventService
from harebell.cluster.limits import CLUSTER_LOOK_SECONDS
from harebell.cluster.lines import LineService
from harebell.cluster.link import ClusterListener, LinkTls, Service
from harebell.cluster.local_handover import NAME as CLIENTS_SOCKET
from harebell.cluster.local_handover import LocalHandover, give
from harebell.cluster.metrics import SERVICE as METRICS
from harebell.cluster.metrics import MetricsElsewhere, MetricsService
from harebell.cluster.postgresql.addresses import reachable
from harebell.cluster.shared import CLUSTER_SCHEME, Member
from harebell.cluster.stores import FIRST_STORE
from harebell.cluster.usage import SERVICE as USAGE
from harebell.cluster.usage import UsageElsewhere, UsageService
from harebell.cluster.users_copy import UsersCopy, take_over
from harebell.server.background_tasks import BackgroundTasks
from harebell.server.net.tls import StartError

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.config import Config
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.front.common.peer import Peer
    from harebell.front.common.settings import Settings
    from harebell.management.control.dispatcher import Dispatcher
    from harebell.management.http.listening import HttpListener
    from harebell.management.metrics.merging import Others
    from harebell.model.vhost import VHost
    from harebell.server.backup.backups import Backups
    from harebell.server.logs.published_log import PublishedLog
    from harebell.server.net.elsewhere import Elsewhere
    from harebell.server.net.tls import ServerTls

_MS = 1_000


class ClientService(Protocol):
    """Accepts clients, or does not: see `harebell.server.client_service`."""

    async def follow(self, state: str) -> None:
        """Act on the state that all workers have."""


class ClusterApp(Protocol):
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
    backups: Backups

    @property
    def service(self) -> ClientService:
        """Return what accepts clients, or does not."""

    def flush_soon(self) -> None:
        """Write output, and start a commit, at the end of this turn."""

    def protocol_of(self, peer: Peer) -> asyncio.BufferedProtocol:
        """Return the connection of a client that another process has accepted."""


class Cluster:
    """What the owner of a store knows of the others, and does for them.

    Args:
        app: the broker.
        member: what it is in the cluster.
        context: the broker and its users.
        dispatcher: runs commands.

    Attributes:
        directory: who owns the stores, and where the vhosts are.
        other_metrics: the metrics of the other workers; None in a cluster with PostgreSQL.
    """

    def __init__(
        self,
        app: ClusterApp,
        member: Member,
        context: AdminContext,
        dispatcher: Dispatcher,
    ) -> None:
        self._app = app
        self._member = member
        self._context = context
        context.store = member.number
        context.vhost_names = lambda: self.directory.view.vhosts
        self._dispatcher = dispatcher
        self._tasks = BackgroundTasks()
        self.directory = ClusterDirectory(member.shared(), member.number, context.log)
        self.directory.changed = self._changed
        self._copy = UsersCopy(context.users, self.directory.write_users)
        self.other_metrics: Others | None = None
        self._listener: ClusterListener | None = None
        self._ends: list[Callable[[], None]] = [
            self.directory.close,
            self._copy.close,
            self._tasks.cancel,
        ]

    async def start(self) -> None:
        """Learn about the cluster, and let it know what this store has.

        Raises:
            StoreError: what the stores share cannot be used.
            StartError: the cluster port cannot be used.
        """
        directory, broker = self.directory, self._context.broker
        await directory.start(await asyncio.to_thread(self._member.claim))
        self._check_stores()
        # The store decides: the owner before this one may have ended after it had made or deleted a
        # vhost, or changed a user, and before the other owners knew.
        await directory.register(set(broker.vhosts))
        await self.users_changed()
        made_before = broker.vhost_added

        def added(vhost: VHost) -> None:
            made_before(vhost)
            if directory.store_of(vhost.name) is None:
                # Made here without a command, which would have chosen its store first.
                self._tasks.start(self._register(vhost.name))

        broker.vhost_added = added
        if directory.stores > 1:
            self._pass_clients_on()
            self._count_elsewhere()
        await self._listen()
        if directory.number != FIRST_STORE:
            sender = EventSender(
                directory, broker.events, broker.log, self._member.node, self._app.logger.write
            )
            self._ends.append(sender.close)

    def _check_stores(self) -> None:
        """Refuse to serve a cluster of more stores than the configuration has.

        Raises:
            StoreError: a vhost is in a store that no process here stands by for.
        """
        stores = self.directory.stores
        beyond = {
            name: store for name, store in self.directory.view.vhosts.items() if store > stores
        }
        if beyond:
            name, store = min(beyond.items())
            raise StoreError(
                f"storage_stores is {stores}, and the vhost '{name}' is in store {store}: set it "
                f"to {max(beyond.values())} or more"
            )

    async def _listen(self) -> None:
        """Open the cluster port."""
        app, broker, report = self._app, self._context.broker, self._app.logger.write
        lines: dict[str, LineService] = {
            COMMANDS: self._commands(),
            USAGE: UsageService(broker, app.registry, self._context.users, report),
        }
        if self._member.socket is not None:
            # Processes of one data directory, which have one port for the metrics of all.
            service = MetricsService(report)
            lines[METRICS] = service
            self.other_metrics = MetricsElsewhere(self.directory, service)
            lines |= self._backups()
        if self.directory.number == FIRST_STORE:
            lines[EVENTS] = EventService(broker.events, broker.log, app.flush_soon, report)
        self._ends += [service.close for service in lines.values()]
        services: dict[str, Service] = {name: service.serve for name, service in lines.items()}
        services[CLIENTS] = clients_service(app.protocol_of)
        path = self._member.socket
        # Within a machine no network sees the bytes.
        tls = None if app.tls is None or path is not None else LinkTls(app.tls)
        listener = ClusterListener(services, self.directory.secret, tls, report)
        host, port = app.config.host, app.config.storage_cluster_port
        try:
            if path is None:
                await listener.listen(host, port)
            else:
                listener.listen_locally(path)
        except OSError as error:
            why = error.strerror or error
            raise StartError(
                f"storage_cluster_port: {host}:{port} cannot be listened on: {why}; set it to "
                "another port, or to 0 for a free one"
                if path is None
                else f"{path} cannot be listened on: {why}"
            ) from None
        self._listener = listener
        self._ends.append(listener.close)

    def _backups(self) -> dict[str, LineService]:
        """Let the worker of store 1 make backups of all stores; return what the others serve."""
        backups, directory, app = self._app.backups, self.directory, self._app
        if directory.number != FIRST_STORE:
            backups.in_charge = False
            return {BACKUP: BackupService(backups.part, app.logger.write)}
        loop, root = asyncio.get_running_loop(), app.config.data_dir
        others = range(FIRST_STORE + 1, FIRST_STORE + directory.stores)
        backups.others = lambda: [OtherPart(directory, each, root, loop) for each in others]
        backups.all_there = lambda: all(map(directory.address_of, others))
        return {}

    def _commands(self) -> CommandService:
        """Return what serves the commands of the other brokers, and send ours to them."""
        directory, context, dispatcher = self.directory, self._context, self._dispatcher
        commands = ClusterCommands(
            dispatcher,
            directory,
            context,
            self.users_changed,
            workers=self._member.socket is not None,
        )
        self._ends.append(commands.close)
        if directory.stores > 1:
            dispatcher.cluster = commands
        return CommandService(context, dispatcher, directory, commands)

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
        local = LocalHandover(
            app.config.data_dir / CLIENTS_SOCKET, app.protocol_of, app.logger.write
        )
        self._ends.append(local.close)

    def _count_elsewhere(self) -> None:
        """Let limits of users and of the cluster hold for all owners together."""
        usage = UsageElsewhere(self.directory, self._is_here, self._app.logger.write)
        self._ends.append(usage.close)
        self._app.settings.used_elsewhere = usage.of_user
        self._app.settings.open_elsewhere = usage.of_node
        self._context.broker.ceilings.elsewhere = usage.declared

    def _give(self, store: int, peer: Peer, transport: asyncio.Transport, sent: bytes) -> bool:
        """Give a client to the owner of a store, if that is a process of this machine."""
        if not self._is_here(store):
            return False
        data_dir = stores.data_dir_of(self._app.config.data_dir, self.directory.number, store)
        return give(data_dir / CLIENTS_SOCKET, peer, transport, sent)

    def _is_here(self, store: int) -> bool:
        """Return whether the owner of a store is a process of this machine."""
        owner = self.directory.view.owners.get(store)
        return owner is not None and owner.broker == self._member.node

    def addresses(self) -> dict[str, str]:
        """Return where clients and the other brokers reach this one, by scheme."""
        app, listener = self._app, self._listener
        listening = [(each.scheme, each.host, each.port) for each in app.listeners]
        listening += [(each.scheme, each.host, each.port) for each in app.http_listeners]
        path = self._member.socket
        if listener is not None and path is None:
            listening.append((CLUSTER_SCHEME, listener.host, listener.port))
        addresses = reachable(app.config, listening)
        if path is not None:
            addresses[CLUSTER_SCHEME] = str(path)
        elif listener is not None:
            addresses[FINGERPRINT] = listener.fingerprint
        return addresses

    def publish(self) -> None:
        """Let the other brokers know the addresses of this one."""
        self._member.publish(self.addresses())

    def close(self) -> None:
        """Serve the other brokers no more."""
        for end in self._ends:
            end()

    async def users_changed(self) -> None:
        """Let the other owners have the users of this one, if it is that of store 1.

        Raises:
            StoreError: the database cannot be used.
        """
        if self.directory.number == FIRST_STORE:
            await self._copy.renew()

    async def follow(self) -> None:
        """Accept clients, or do not, as all workers do."""
        await self._app.service.follow(self.directory.view.service)

    async def _changed(self, view: View) -> None:
        """Take over the users of store 1, and whether clients are accepted."""
        if self._member.socket is not None:
            await self._app.service.follow(view.service)
        if self.directory.number != FIRST_STORE:
            await self._dispatcher.run(lambda: take_over(view.users, self._context))

    async def _register(self, vhost: str) -> None:
        """Let the other owners know a new vhost, however long the database is away."""
        is_reported = False
        while vhost in self._context.broker.vhosts:
            try:
                await self.directory.keep(vhost)
                return
            except StoreError as error:
                if not is_reported:
                    self._context.log(
                        "error", f"other owners do not know vhost '{vhost}' yet: {error}"
                    )
                is_reported = True
            await asyncio.sleep(CLUSTER_LOOK_SECONDS)
