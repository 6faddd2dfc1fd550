"""A broker in its event loop: listeners, turns, the periodic tick, and shutdown.

A turn is one pass of the event loop. Every readable socket is read, the output is collected in the
buffers of the connections, and at the end of the turn each buffer is written once.
"""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import signal
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from harebell import __version__
from harebell.admin.accounts import load_users, make_default_user
from harebell.admin.context import AdminContext
from harebell.admin.login_attempts import LoginAttempts
from harebell.auth.cram import NAME as CRAM_MD5
from harebell.auth.permissions import Permissions
from harebell.auth.users import Users
from harebell.base import impl, limits
from harebell.base.chooser import Chooser
from harebell.base.errors import HarebellError
from harebell.base.gauge import Gauge
from harebell.base.histogram import LAG_SECONDS, Histogram
from harebell.base.work import Work
from harebell.front.arrival import Arrival
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_registry import ConnectionRegistry, in_turns
from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.convert import EDITOR, headers_of
from harebell.model.broker import Broker
from harebell.model.settings.ceilings import Ceilings
from harebell.server.client_service import STOPPED, ClientService
from harebell.server.cluster.stores import number_of
from harebell.server.config import Config, Configuration, default_password, memory_bytes
from harebell.server.config.shown import shown_values
from harebell.server.control import server as control_server
from harebell.server.control.dispatcher import Dispatcher
from harebell.server.disk.flusher import Flusher
from harebell.server.disk.storage import Storage
from harebell.server.file_limits import max_open, shares
from harebell.server.http.listening import HttpListener
from harebell.server.http.serving import serve_http
from harebell.server.logs.logger import Logger
from harebell.server.logs.outputs import log_paths
from harebell.server.logs.published_log import PublishedLog
from harebell.server.memory_tuning import Trimmer, collect_new
from harebell.server.metrics.serving import serve_metrics
from harebell.server.metrics.source import Source
from harebell.server.net.connection import ServerProtocol
from harebell.server.net.elsewhere import Elsewhere
from harebell.server.net.handed_sockets import HandedSockets
from harebell.server.net.listener import Listener, listen, reopened
from harebell.server.net.tls import ServerTls
from harebell.server.new_vhosts import NewVHosts, complaint_of
from harebell.server.password_verifier import PasswordVerifier
from harebell.server.service_manager import ServiceManager
from harebell.server.statistics import node
from harebell.server.statistics.planning import plan_of
from harebell.server.statistics.sampler import Sampler
from harebell.server.statistics.sampling import Sampling
from harebell.server.time_source import Cancellable, MachineTime, TimeSource

if TYPE_CHECKING:
    from harebell.server.backends.configured import Backends
    from harebell.server.cluster.cluster import Cluster
    from harebell.server.postgresql.fence import Fence
    from harebell.server.postgresql.owned_store import OwnedStore

_SEED_BYTES = 8
_LOOK_WRITES = 16
_MS = 1_000
Again = Callable[[], Configuration]
"""Reads the configuration again."""


class App:
    """One broker process.

    Args:
        config: the configuration.
        logger: writes log lines.
        closed: after a reset, the AMQP listeners that are opened when the broker is started.
        time_source: the clocks; None for those of the machine.
        leave: ends the process with an exit code when the disk has failed.
        owned: the store in PostgreSQL; None for one in the data directory.

    Raises:
        StoreError: the data directory is in use or unusable; the text is for the user.
    """

    def __init__(
        self,
        config: Config,
        logger: Logger,
        closed: list[Listener] | None = None,
        time_source: TimeSource | None = None,
        leave: Callable[[int], object] = os._exit,
        owned: OwnedStore | None = None,
    ) -> None:
        self.config = config
        self._time = time_source or MachineTime()
        self._leave = leave
        self.clock: Callable[[], float] = self._time.monotonic
        self.loop = asyncio.get_running_loop()
        host = platform.node() or "localhost"
        self.node = node_name(config)
        self.logger = PublishedLog(logger, self.loop, config, self.node)
        self.started_at = self.clock()
        gauge = Gauge(memory_bytes(config.memory_high_watermark))
        self.storage = Storage(config, gauge, self.logger.write, self._time, owned)
        self.wall = self.storage.wall
        segments, self.max_connections = shares(max_open())
        self.storage.store.handles.allow(segments)
        self._turned_away = False
        self.broker = self._make_broker(gauge)
        self.timers = self.broker.timers
        self._alarm: Cancellable | None = None
        self.registry = self._make_registry(gauge)
        self.overdue = DeliveryAckTimeout(self.registry, config.consumer_timeout)
        self.users = self._make_users()
        self._verifying = PasswordVerifier(self.loop, self.users, self.flush_soon)
        self.users.later = self._verifying
        self._backends = self._make_backends(config)
        self._restore()
        self.flusher = self._make_flusher()
        self.settings = self._make_settings(config, host)
        self.read_buffer = memoryview(bytearray(limits.READ_BUFFER_BYTES))
        self.small_buffer = self.read_buffer[: limits.SMALL_READ_BYTES]
        self.listeners: list[Listener] = []
        self.http_listeners: list[HttpListener] = []
        self.tls: ServerTls | None = None
        self._flushing = False
        self._ticking: Cancellable | None = None
        self._tick_due = 0.0
        self.lag = Histogram(LAG_SECONDS)
        self._trimmer = Trimmer()
        self._stop = asyncio.Event()
        self.manager = ServiceManager({}, 0)
        self.again: Again | None = None
        self._control: Any = None
        self._sampling = Sampling(self.loop, self.wall, self.registry.turns)
        self.statistics = Sampler(
            self.broker,
            self.registry,
            lambda: node.sampled(self),
            self.take_samples,
            plan_of(config),
        )
        self.metrics_listeners: list[HttpListener] = []
        self.service = ClientService(self, closed)
        self.fence = self._make_fence(owned)
        self.cluster: Cluster | None = None
        self.handing_over: Elsewhere | None = None
        self.open_http: Callable[[], Awaitable[list[HttpListener]]]
        self.reopened = lambda closed: reopened(self, closed)

    def _make_broker(self, gauge: Gauge) -> Broker:
        """Return the broker over the storage, which the log publishes its lines in."""
        broker = Broker(
            self.storage.store,
            gauge,
            headers_of,
            EDITOR,
            self.wall,
            Chooser(os.urandom(_SEED_BYTES)),
            node=self.node,
            # "" declares classic queues without adding `x-queue-type` to their arguments.
            default_queue_type=self.config.default_queue_type.replace("classic", ""),
            work=Work(time.monotonic),
        )
        self.storage.store.work = broker.work
        self.logger.exchange = broker.log
        self.logger.flush = self.flush_soon
        broker.stages.room = self.storage.room_for_stages(self.config)
        broker.stages.report = self.logger.write
        return broker

    def _make_registry(self, gauge: Gauge) -> ConnectionRegistry:
        """Return the registry of connections, with the limits of the configuration."""
        config = self.config
        registry = ConnectionRegistry(gauge, self.broker.work)
        registry.turns.limit(limits.WORK_USER_UNITS, self._turn_soon)
        pending = registry.pending_logins
        pending.limit = config.unauthenticated_connection_max
        pending.max_per_address = config.unauthenticated_connection_max_per_address
        return registry

    def _make_users(self) -> Users:
        """Return the users of the broker; there are none before `_restore_users`."""
        return Users(
            os.urandom,
            cram=CRAM_MD5 in (self.config.auth_mechanisms or ()),
            algorithm=self.config.password_hashing_module,
        )

    def _make_fence(self, owned: OwnedStore | None) -> Fence | None:
        """Return what ends the service when another broker can own the store."""
        if owned is None:
            return None
        # Imported only if it is used: it loads the driver of PostgreSQL.
        from harebell.server.postgresql.fence import Fence

        return Fence(self, owned.ownership, self.config.storage_lease_ms, self._leave_store)

    def _leave_store(self, handed: HandedSockets) -> None:
        """End the process after the store was lost: start again, unless it was to stop anyway."""
        from harebell.server.postgresql.fence import restart_process

        if self._stop.is_set() and self.service.successor is None:
            self._leave(limits.EXIT_DISK)
        else:
            restart_process(handed)

    def _make_backends(self, config: Config) -> Backends | None:
        """Return the configured backends of users; None for the users of the broker alone."""
        if config.auth_backends in (None, ("internal",)):
            return None
        # Imported only if it is used: it loads clients of web servers.
        from harebell.server.backends.configured import Backends

        backends = Backends(config, self.users, self.logger.write, self.flush_soon, self.clock)
        self.users.log_in = backends.chain
        self.users.local = backends.local
        self.users.tokens = backends.tokens
        return backends

    def _make_settings(self, config: Config, host: str) -> Settings:
        """Return the settings that all connections share."""
        return Settings(
            rng=os.urandom,
            information=f"Harebell {__version__}: AMQP broker, client and data pipeline in Python",
            platform=(
                f"Harebell {__version__} / {platform.python_implementation()} "
                f"{platform.python_version()} ({impl.chosen()})"
            ),
            host=host,
            frame_max=config.frame_max,
            initial_frame_max=config.initial_frame_max,
            channel_max=config.channel_max,
            channel_max_per_node=config.channel_max_per_node,
            connection_max=config.connection_max,
            consumer_max=config.consumer_max_per_channel,
            heartbeat=config.heartbeat,
            handshake_timeout=config.handshake_timeout_seconds,
            message_max=config.message_max_bytes,
            cluster_name=config.cluster_name or self.node,
            product=config.compat_product,
            version=config.compat_version,
            mechanisms=config.auth_mechanisms or (),
            anonymous_user=config.anonymous_login_user or "",
            stamp_time=config.message_interceptors_incoming_set_header_timestamp_overwrite,
            stamp_node=config.message_interceptors_incoming_set_header_routing_node_overwrite,
            stamp_sent=config.message_interceptors_outgoing_timestamp_enabled,
            journal=self.logger.write,
        )

    def _restore(self) -> None:
        """Restore the declared vhosts, queues, exchanges, bindings and users from disk."""
        storage = self.storage
        storage.begin()
        if storage.owned is not None and not storage.owned.has_users:
            self.broker.leave_default_vhost()
        for sentence in self.broker.restore():
            self.logger.write("error", sentence)
        if len(self.broker.branches):
            text = f"{len(self.broker.branches)} prepared transactions: `harebell transactions`"
            self.logger.write("info", text)
        for weaker in self.broker.weaker():
            self.logger.write(
                "warning", f"a confirm does not wait for the disk in all queues: {weaker}"
            )
        self.broker.limit(
            Ceilings(
                self.config.vhost_max or None,
                self.config.cluster_queue_limit or None,
                self.config.cluster_exchange_limit or None,
            )
        )
        self._restore_users()

    def _restore_users(self) -> None:
        """Restore the users, import the definitions file, and make what a new broker has."""
        config, definitions = self.config, self.storage.definitions
        self.users.restrict_to_loopback(config.loopback_users)
        load_users(self.users, definitions)
        # "/" is there before a new broker has any users.
        known = set(self.broker.vhosts) if self.users.all() else set[str]()
        new_vhosts = NewVHosts(config, self.users, definitions)
        self.new_vhosts = new_vhosts
        self.users.complaint = lambda name, password: complaint_of(self.config, name, password)
        if config.load_definitions is not None or config.definitions_import_backend == "https":
            # Imported only if it is used: it loads the parser of RabbitMQ's JSON.
            from harebell.admin.definitions.entries import ImportTarget
            from harebell.server.loaded_definitions import load_definitions

            load_definitions(
                ImportTarget(self.broker, self.users, definitions), config, self.logger.write
            )
        owned = self.storage.owned
        if owned is not None and not owned.has_users:
            # What a new broker has is in store 1 of its cluster.
            self.broker.vhost_added = new_vhosts.added
            return
        if not self.users.all() and config.default_vhost not in self.broker.vhosts:
            self.broker.add_vhost(config.default_vhost)
        make_default_user(
            self.users,
            definitions,
            config.default_user,
            default_password(config),
            vhost=config.default_vhost,
            tags=config.default_user_tags,
            permissions=Permissions(
                config.default_permissions_configure,
                config.default_permissions_write,
                config.default_permissions_read,
            ),
        )
        # Later, for users that are made for a vhost would stand in for the default user.
        for name, vhost in self.broker.vhosts.items():
            if name not in known:
                new_vhosts.added(vhost)
        self.broker.vhost_added = new_vhosts.added

    def _make_flusher(self) -> Flusher:
        storage = self.storage
        return Flusher(
            self.loop,
            storage.store.commit,
            self.registry,
            gathered=lambda: storage.definitions.gathered,
            after=storage.after_batch,
            sync_in=storage.sync_in,
            log=self.logger.write,
            failed=self._die,
            flush=self._go_on,
            spare=storage.reserve.spend,
            removes_later=storage.owned is None,
            remote=storage.owned,
        )

    def _go_on(self) -> None:
        """A commit is on disk: send the confirms and answers that waited for it."""
        turns = self.registry.turns
        turns.begin_anyway(turns.own)
        try:
            self.broker.committed()
        finally:
            turns.end()
        self.flush_soon()

    def _die(self, error: Exception) -> None:
        """Exit at once after a failed commit.

        What the disk has of it is unknown, so nothing may be confirmed. The next start recovers.
        """
        if self.fence is not None and error.args[:1] == (errno.ESTALE,):
            self.fence.step_down(str(error))
            return
        self.logger.write("error", f"cannot be made durable, the broker ends: {error}")
        self.logger.close()
        self._leave(limits.EXIT_DISK)

    # --- start and stop ---------------------------------------------------------------------------

    async def start(self, handed: HandedSockets | None = None) -> None:
        """Open the listeners and the control socket, and start the timers.

        Args:
            handed: sockets that listen already; None if there are none.

        Raises:
            StartError: an address cannot be used; the text is for the user.
        """
        stopped = self.service.state == STOPPED
        if self.config.tls_cert is not None:
            self.tls = ServerTls(self.config, self.logger.write)
        context = AdminContext(
            self.broker,
            self.users,
            self.registry,
            self.storage.definitions,
            self.clock,
            self.logger.write,
            self.statistics,
            lambda: node.facts(self),
            self.reload,
        )
        context.figures = self.overview
        context.configuration = lambda: shown_values(self.config)
        context.recent_lines = self.logger.recent.after
        context.brokers = self.service.nodes
        context.operation = self.service
        dispatcher = self.dispatcher = Dispatcher(context, self.flush_soon)
        if self.storage.owned is not None:
            # Imported only if it is used: it loads the driver of PostgreSQL.
            from harebell.server.cluster.cluster import Cluster

            self.cluster = Cluster(self, self.storage.owned, context, dispatcher)
            await self.cluster.start()
        handed = handed or HandedSockets()
        self.listeners = [] if stopped else await listen(self, handed)
        self.open_http = lambda: serve_http(
            self.config, self._tls_context, self.logger.write, context, dispatcher, handed
        )
        if not stopped:
            self.http_listeners = await self.open_http()
        handed.close()
        if self.http_listeners:
            self.take_samples()
        self._control = await control_server.start(self, self.config.data_dir, dispatcher)
        self.metrics_listeners = await serve_metrics(
            self.config,
            self._tls_context,
            lambda: self._metrics_source(context.login_attempts),
            self._trouble,
        )
        if self.fence is not None and self.cluster is not None:
            self.cluster.publish()
            self.fence.start()
        self.look_at_disk()
        self.timers.wake = self._wake_at
        self._wake_at(self.timers.due)
        self.flusher.look()
        self._tick_later()

    def obey(self, manager: ServiceManager) -> None:
        """End at SIGTERM and SIGINT, reload at SIGHUP, and report both to the service manager."""
        self.manager = manager
        for number in (signal.SIGTERM, signal.SIGINT):
            self.loop.add_signal_handler(number, self._terminate)
        self.loop.add_signal_handler(signal.SIGHUP, self._hang_up)

    def _tls_context(self) -> ssl.SSLContext:
        """Return the TLS context for new connections; the files are read at the first call."""
        if self.tls is None:
            self.tls = ServerTls(self.config, self.logger.write)
        return self.tls.context

    def reload(self) -> dict[str, Any]:
        """Read the configuration again; see `harebell.server.reloading`.

        Raises:
            HarebellError: it is invalid; the one from before stays in use.
        """
        from harebell.server.reloading import reload

        answer = reload(self)
        if self.cluster is not None:
            # The certificate may be another one.
            self.cluster.publish()
        return answer

    def _hang_up(self) -> None:
        """Read the configuration and the TLS files again, and open the log file anew (SIGHUP)."""
        self.manager.reloading()
        try:
            self.reload()
        except HarebellError as error:
            self.logger.write("error", f"{error}; the configuration stays as it is")
            self.logger.reopen()
        self.report_ready()

    def _metrics_source(self, login_attempts: LoginAttempts) -> Source:
        """Return what metrics are read from."""
        return Source(
            broker=self.broker,
            registry=self.registry,
            users=self.users,
            storage=self.storage,
            flusher=self.flusher,
            lag=self.lag,
            clock=self.clock,
            started_at=self.started_at,
            max_connections=self.max_connections,
            login_attempts=login_attempts,
            passed_on=self._passed_on,
        )

    def _trouble(self) -> str:
        """Return why clients cannot be served; "" if they can."""
        return "the broker is stopping" if self._stop.is_set() else self.service.trouble

    def end(self) -> None:
        """End the broker soon, in an orderly way."""
        self._stop.set()

    def _terminate(self) -> None:
        """End the broker and not begin anew (SIGTERM, SIGINT)."""
        self.service.resetting = None
        self.end()

    async def wait(self) -> None:
        """Wait for SIGTERM, SIGINT or a reset."""
        await self._stop.wait()

    def report_ready(self) -> None:
        """Report to the service manager that clients are served, and where."""
        self.manager.ready("listening on " + ", ".join(each.shown for each in self.addresses))

    async def stop(self) -> None:
        """Stop accepting, close every connection with a reason, and close the store."""
        self.logger.write("info", "stopping")
        drained = self.service.successor is not None
        if not drained:
            self.manager.stopping()
        for listener in self.listeners:
            listener.server.close()
        self.listeners = []
        # Their sockets are not there any more if the store is lost while this goes on.
        http_listeners, self.http_listeners = self.http_listeners, []
        for http in http_listeners:
            await http.close()
        await self.close_connections(
            "the store goes to another broker: connect again" if drained else "shutdown"
        )
        if self.handing_over is not None:
            self.handing_over.close()
        self._sampling.stop()
        if self.cluster is not None:
            self.cluster.close()
        for handle in (self._ticking, self._alarm):
            if handle is not None:
                handle.cancel()
        self._verifying.close()
        if self._backends is not None:
            self._backends.close()
        if self._control is not None:
            await self._control.close()
        for served in self.metrics_listeners:
            await served.close()
        self.broker.tick()
        await self._close_store()

    async def close_connections(self, reason: str) -> None:
        """Close every connection with a reason, and give its peer time to read it."""
        now = self.clock()
        for connection in list(self.registry.connections):
            connection.force_close(reason, now)
        self.flush_soon()
        await self._let_them_read()
        for connection in list(self.registry.connections):
            if connection.transport is not None:
                connection.transport.abort()

    async def _let_them_read(self) -> None:
        """Wait until all output is in the kernel and long operations are finished.

        `SHUTDOWN_QUIET_SECONDS` is the time for peers to answer connection.close;
        `shutdown_grace_seconds` is the upper limit. The kernel delivers what it has accepted even
        after the socket is closed.
        """
        began = time.monotonic()
        until = began + self.config.shutdown_grace_seconds
        quiet = min(began + limits.SHUTDOWN_QUIET_SECONDS, until)
        turns = self.registry.turns
        while (self.registry.connections or turns.busy) and (now := time.monotonic()) < until:
            if (
                now >= quiet
                and not turns.busy
                and not any(
                    each.transport is not None and each.transport.unsent()
                    for each in self.registry.connections
                )
            ):
                return
            await asyncio.sleep(limits.SHUTDOWN_LOOK_SECONDS)

    async def _close_store(self) -> None:
        """Write everything to disk, and mark the data directory as cleanly closed."""
        while self.storage.store.commit.pinned:
            # A pinned operation must be in one commit as a whole, so it is run to its end first.
            self.registry.turns.next_turn()
        longest = self.storage.longest_end_seconds
        drained = await self.flusher.drain(limits.STORE_END_SECONDS, longest)
        if drained:
            self.storage.store.close()
            drained = await self.flusher.drain(limits.STORE_END_SECONDS, longest)
        await self.flusher.stop()
        if self.fence is not None:
            self.fence.stop()
        if drained:
            try:
                self.storage.end()
            except OSError as error:
                self._die(error)
        else:
            why = self.storage.give_up()
            self.logger.write("error", f"stopped before everything was written: {why}")

    # --- connections ------------------------------------------------------------------------------

    def has_room(self) -> bool:
        """True if another connection leaves enough file descriptors for the store."""
        taken = len(self.registry.connections)
        if self.handing_over is not None:
            # Each takes a socket here, and one to the owner.
            taken += 2 * (self.handing_over.connections + self.handing_over.waiting)
        room = taken < self.max_connections
        if not room and not self._turned_away:
            self.logger.write(
                "warning",
                f"{self.max_connections} connections are open and more are turned away, for the "
                f"process may have {max_open()} files and sockets: raise that limit (ulimit -Hn)",
            )
        self._turned_away = not room
        return room

    def accept(self, peer: Peer) -> BaseConnection:
        """Return the connection object for an accepted peer."""
        return Arrival(self.broker, self.users, self.registry, self.settings, peer, self.clock())

    def protocol_of(self, peer: Peer) -> ServerProtocol:
        """Return the connection of a client that another process of the cluster has accepted."""
        return ServerProtocol(self, None, peer=peer)

    def flush_soon(self) -> None:
        """Schedule `flush` for the end of this turn."""
        if not self._flushing:
            self._flushing = True
            self.loop.call_soon(self._flush)

    def _turn_soon(self) -> None:
        """Schedule the deferred work for the next turn."""
        self.loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self.storage.set_clock()
        turns = self.registry.turns
        crowded = turns.busy
        try:
            turns.next_turn()
        finally:
            if crowded:
                collect_new()
            self.flush()

    def _flush(self) -> None:
        self._flushing = False
        self.flush()

    def flush(self) -> None:
        """Write every connection that has output; new output is written in the next turn."""
        if self.fence is not None and self.fence.forbids_output():
            return
        now = self.clock()
        self.registry.relieve()
        self.flusher.look()
        dirty = in_turns(self.registry.take_dirty())
        until = time.monotonic() + limits.WRITE_TURN_SECONDS
        for at, connection in enumerate(dirty):
            if connection.transport is not None:
                connection.transport.flush(now)
            if at % _LOOK_WRITES == _LOOK_WRITES - 1 and time.monotonic() > until:
                self.registry.dirty_again(dirty[at + 1 :])
                break
        if self.registry.dirty:
            self.flush_soon()

    def _wake_at(self, due: int) -> None:
        """Schedule the timers for `due`; the tick runs those that are further away."""
        if self._alarm is not None:
            self._alarm.cancel()
        delay = (due - self.wall.steady) / _MS
        self._alarm = None
        if delay < limits.TICK_SECONDS * 2:
            self._alarm = self._time.call_later(max(delay, 0.0), self._run_timers)

    def run_due(self) -> None:
        """Run the due timers within the work budget of this turn."""
        turns = self.registry.turns
        if turns.begin(turns.own):
            try:
                self.timers.run()
            finally:
                turns.end()

    def _run_timers(self) -> None:
        self.storage.set_clock()
        self.run_due()
        self._wake_at(self.timers.due)
        if self.registry.dirty:
            self.flush_soon()
        self.flusher.look()

    def _tick(self) -> None:
        now = self.clock()
        late = max(now - self._tick_due, 0.0)
        self.lag.observe(late)
        if late > limits.TICK_LATE_SECONDS:
            self._excuse(late)
        self.storage.set_clock()
        self.look_at_disk()
        if self.tls is not None:
            self.tls.look()
        for connection in list(self.registry.connections):
            connection.tick(now)
        self.overdue.look(now)
        self.broker.events.alarms(self.registry.short_of())
        turns = self.registry.turns
        turns.begin_anyway(turns.own)
        try:
            self.broker.tick()
        finally:
            turns.end()
        self._trimmer.look(self.broker.gauge.used)
        self._wake_at(self.timers.due)
        self.registry.relieve()
        if self.registry.dirty:
            self.flush_soon()
        self.flusher.tick()
        self.flusher.look()
        self._tick_later()

    def _tick_later(self) -> None:
        self._tick_due = self.clock() + limits.TICK_SECONDS
        self._ticking = self._time.call_later(limits.TICK_SECONDS, self._tick)

    def _excuse(self, late: float) -> None:
        """Extend heartbeat and acknowledgement deadlines after the process was stopped or starved.

        Frames that the peers sent meanwhile are still unread in the sockets.
        """
        self.logger.write("warning", f"the broker stood still for {late:.1f} s")
        for connection in self.registry.connections:
            connection.excuse(late)
        self.overdue.excuse(late)

    def look_at_disk(self) -> None:
        """Block publishers while the free space is below `disk_free_limit`."""
        storage = self.storage
        low = self.broker.stages.set_low(storage.low())
        if self.flusher.set_low(low):
            room = storage.room()
            if low:
                self.logger.write("warning", f"the disk is low, publishers wait: {room}")
            else:
                self.logger.write("info", f"the disk is no longer low: {room}")

    @property
    def addresses(self) -> list[Listener | HttpListener]:
        """Return everything that listens: AMQP first, then HTTP."""
        return [*self.listeners, *self.http_listeners, *self.metrics_listeners]

    # --- monitoring -------------------------------------------------------------------------------

    def take_samples(self) -> None:
        """Sample the counters from now on: the HTTP API is served, or a command shows rates."""
        self._sampling.start(self.statistics)

    def overview(self) -> dict[str, Any]:
        """Return the figures of `harebell status`."""
        connections = self.registry.connections
        gauge = self.broker.gauge
        return {
            "version": __version__,
            "node": self.node,
            "rabbitmq_version": self.config.compat_version,
            "implementation": impl.chosen(),
            "loop": type(self.loop).__module__.split(".")[0],
            "pid": os.getpid(),
            "uptime_seconds": round(self.clock() - self.started_at, 3),
            "data_dir": str(self.config.data_dir),
            "log_files": [str(path) for path in log_paths(self.config)],
            "log_console": self.config.log_console_stdio if self.config.log_console else "",
            "state": self.service.state,
            "listeners_suspended": bool(self.service.closed),
            "listeners": [each.shown for each in self.addresses],
            "connections": len(connections),
            "channels": sum(len(connection.channels) for connection in connections),
            **self.broker.totals(),
            "memory_used_bytes": gauge.used,
            "memory_high_watermark_bytes": gauge.high,
            "memory_alarm": gauge.over,
            "blocked_connections": len(self.registry.blocked),
            **self.storage.overview(),
            "weaker_durability": self.broker.weaker(),
            "disk_alarm": self.registry.short,
            "shortages": sorted(self.registry.short_of()),
            **self._store_of_cluster(),
            **self._passed_on(),
        }

    def _store_of_cluster(self) -> dict[str, int]:
        """Return which store this is, and of how many; nothing with one store."""
        stores = self.config.storage_stores
        return {} if stores == 1 else {"store": number_of(os.environ), "stores": stores}

    def _passed_on(self) -> dict[str, int]:
        """Return how many clients of other stores there are; nothing with one store."""
        over = self.handing_over
        if over is None:
            return {}
        return {"connections_passed_on": over.connections, "connections_waiting": over.waiting}


def node_name(config: Config) -> str:
    """Return the name of the broker, as name@host."""
    host = platform.node() or "localhost"
    return config.node_name or f"harebell@{host.partition('.')[0]}"
