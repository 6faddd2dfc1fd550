"""A broker in its event loop: made of its parts, started, and stopped.

Its parts: `restored.py` (what it has when it starts), `event_turns.py` (output, timers and ticks),
`alarms.py` (what is short, so that publishers wait), `client_service.py` (clients are kept out, and
let in again) and `reloading.py` (another configuration).
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
from functools import partial
from typing import TYPE_CHECKING, Any

from harebell import __version__
from harebell.admin.context import AdminContext
from harebell.admin.login_attempts import LoginAttempts
from harebell.auth.cram import NAME as CRAM_MD5
from harebell.auth.users import Users
from harebell.base import impl
from harebell.base.chooser import Chooser
from harebell.base.errors import HarebellError
from harebell.base.gauge import Gauge
from harebell.base.work import Work
from harebell.cluster.process_config import loads_definitions
from harebell.cluster.stores import FIRST_STORE, STOPPED, number_of
from harebell.config import Config, Configuration, memory_share
from harebell.config.shown import shown_values
from harebell.front.arrival import Arrival
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
from harebell.front.common.kept import KeptChecks
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.convert import EDITOR, headers_of
from harebell.front.limits import STATISTICS_SLICE_OBJECTS
from harebell.management.control import server as control_server
from harebell.management.control.dispatcher import Dispatcher
from harebell.management.health.watch import Watch
from harebell.management.http.connections import HttpConnections
from harebell.management.http.listening import HttpListener
from harebell.management.http.serving import serve_http
from harebell.management.limits import FINDINGS_SLICE_UNITS
from harebell.management.metrics.serving import serve_metrics
from harebell.management.metrics.source import Source
from harebell.management.statistics import node
from harebell.management.statistics.planning import plan_of
from harebell.management.statistics.sampler import Sampler
from harebell.management.statistics.sampling import Sampling
from harebell.model.broker import Broker
from harebell.server import limits
from harebell.server.alarms import Alarms
from harebell.server.auditing import Auditing
from harebell.server.backup.backups import Backups
from harebell.server.client_service import ClientService
from harebell.server.disk.flusher import Flusher
from harebell.server.disk.storage import Storage
from harebell.server.event_turns import EventTurns
from harebell.server.failed_callbacks import report_failures, report_threads
from harebell.server.file_limits import max_open, shares
from harebell.server.logs.logger import Logger
from harebell.server.logs.published_log import PublishedLog
from harebell.server.memory_watch import MemoryWatch
from harebell.server.net.connection import ServerProtocol
from harebell.server.net.elsewhere import Elsewhere
from harebell.server.net.handed_sockets import HandedSockets
from harebell.server.net.hellos import Hellos
from harebell.server.net.listener import Listener, listen, reopened
from harebell.server.net.tls import ServerTls
from harebell.server.new_vhosts import NewVHosts, complaint_of
from harebell.server.password_verifier import PasswordVerifier
from harebell.server.reloading import limit_logins, reload, reloaded_settings
from harebell.server.restored import restore_broker, restore_users
from harebell.server.service_manager import ServiceManager
from harebell.server.time_source import MachineTime, TimeSource

if TYPE_CHECKING:
    from harebell.cluster.cluster import Cluster
    from harebell.cluster.postgresql.owned_store import OwnedStore
    from harebell.cluster.postgresql.step_down import StepDown
    from harebell.cluster.shared import Member
    from harebell.management.backends.configured import Backends
    from harebell.management.schema_registry import SchemaRegistry
    from harebell.server.sql_questions import SqlQuestions

_SEED_BYTES = 8
_SHUTDOWN = "broker forced connection closure with reason 'shutdown'"
"""RabbitMQ's words; an operator's reason is sent as it is."""
ReadConfig = Callable[[], Configuration]
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
        worker: this process among those of a data directory; None if it is the only one.

    Attributes:
        member: what this broker is in a cluster; None for the only store of a data directory.

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
        worker: Member | None = None,
    ) -> None:
        self.config = config
        self.member: Member | None = worker if owned is None else owned
        self._time = time_source or MachineTime()
        self._leave = leave
        self.clock: Callable[[], float] = self._time.monotonic
        self.loop = asyncio.get_running_loop()
        host = platform.node() or "localhost"
        self.node = node_name(config)
        self.logger = PublishedLog(logger, self.loop, config, self.node)
        self.started_at = self.clock()
        gauge = Gauge(memory_share(config))
        self.storage = Storage(config, gauge, self.logger.write, self._time, owned)
        self.wall = self.storage.wall
        self.files = shares(max_open())
        self.max_connections = self.files.connections
        self.storage.store.handles.allow(self.files.segments)
        self._turned_away = False
        self.broker = self._make_broker(gauge)
        self.registry = self._make_registry(gauge)
        self.overdue = DeliveryAckTimeout(self.registry, config.consumer_timeout)
        self.turns = self._make_turns()
        self.flush, self.flush_soon = self.turns.flush, self.turns.flush_soon
        self.logger.flush = self.flush_soon
        self.registry.turns.limit(limits.WORK_USER_UNITS, self.turns.turn_soon)
        self.kept = KeptChecks(self.registry)
        self.users = self._make_users()
        self._verifying = PasswordVerifier(self.loop, self.users, self.flush_soon)
        self.users.later = self._verifying
        self._backends = self._make_backends(config)
        self.users.complaint = lambda name, password: complaint_of(self.config, name, password)
        self.new_vhosts = self._restore()
        self.flusher = self.turns.flusher = self._make_flusher()
        self.alarms = Alarms(
            self.broker, self.registry, self.storage, self.flusher, self.logger.write
        )
        self.look_at_alarms = self.alarms.look
        self._sql: SqlQuestions | None = None
        self._registry: SchemaRegistry | None = None
        self.backups = Backups(
            self.loop, self.storage, lambda: self.config, self.node, self.logger.write
        )
        self.settings = self._make_settings(config, host)
        self.hellos = Hellos()
        self.listeners: list[Listener] = []
        self.http_listeners: list[HttpListener] = []
        self.tls: ServerTls | None = None
        self.memory = MemoryWatch(gauge, self._press, self.clock)
        self._stop = asyncio.Event()
        self._started = False
        self.manager = ServiceManager({}, 0)
        self.again: ReadConfig | None = None
        self._auditing: Auditing | None = None
        self._control: Any = None
        # Half a microsecond for each object.
        units = STATISTICS_SLICE_OBJECTS // 2
        self._sampling = Sampling(self.loop, self._exact_ms, self.registry.turns, units)
        self.statistics = self._make_sampler()
        self._watching = Sampling(
            self.loop, self._exact_ms, self.registry.turns, FINDINGS_SLICE_UNITS
        )
        self.findings = self._make_watch()
        self.metrics_listeners: list[HttpListener] = []
        self.service = ClientService(self, closed)
        self.step_down = self._make_step_down(owned)
        if self.step_down is not None:
            self.turns.forbids_output = self.step_down.forbids_output
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
        broker.stage_within(self.storage.room_for_stages(self.config))
        broker.stages.report = self.logger.write
        return broker

    def _make_registry(self, gauge: Gauge) -> ConnectionRegistry:
        """Return the registry of connections, with the limits of the configuration."""
        registry = ConnectionRegistry(gauge, self.broker.work)
        registry.turns.failures = self.broker.failures
        limit_logins(registry, self.config)
        return registry

    def _make_turns(self) -> EventTurns:
        return EventTurns(
            self.loop,
            self._time,
            self.broker,
            self.registry,
            self.storage,
            self.overdue,
            self.logger.write,
            self._check,
        )

    def _make_users(self) -> Users:
        """Return the users of the broker; there are none before `restore_users`."""
        return Users(
            os.urandom,
            cram=CRAM_MD5 in (self.config.auth_mechanisms or ()),
            algorithm=self.config.password_hashing_module,
        )

    def _restore(self) -> NewVHosts:
        """Restore the broker and its users; return what a vhost gets when it is made."""
        config, log = self.config, self.logger.write
        # What a new broker has is in store 1 of its cluster.
        is_first = self.member is None or self.member.number == FIRST_STORE
        restore_broker(self.broker, self.storage, config, log, has_default_vhost=is_first)
        return restore_users(self.broker, self.users, self.storage, config, log, has_users=is_first)

    def _make_step_down(self, owned: OwnedStore | None) -> StepDown | None:
        """Return what ends the service when another broker can own the store."""
        if owned is None:
            return None
        # Imported only if it is used: it loads the driver of PostgreSQL.
        from harebell.cluster.postgresql.step_down import StepDown

        return StepDown(self, owned.ownership, self.config.storage_lease_ms, self._leave_store)

    def _leave_store(self, handed: HandedSockets) -> None:
        """End the process after the store was lost: start again, unless it was to stop anyway."""
        from harebell.cluster.postgresql.step_down import restart_process

        if self._stop.is_set() and self.service.successor is None:
            self._leave(limits.EXIT_DISK)
        else:
            restart_process(handed)

    def _make_backends(self, config: Config) -> Backends | None:
        """Return the configured backends of users; None for the users of the broker alone."""
        if config.auth_backends in (None, ("internal",)):
            return None
        # Imported only if it is used: it loads clients of web servers.
        from harebell.management.backends.configured import Backends

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
            cluster_name=config.cluster_name or self.node,
            product=config.compat_product,
            version=config.compat_version,
            mechanisms=config.auth_mechanisms or (),
            log=self.logger.write,
            **reloaded_settings(config),
        )

    def _make_flusher(self) -> Flusher:
        storage = self.storage
        return Flusher(
            self.loop,
            storage.store.commit,
            self.registry,
            definitions=storage.definitions,
            after=storage.after_batch,
            sync_in=storage.sync_in,
            log=self.logger.write,
            failed=self._die,
            flush=self.turns.committed,
            spare=storage.reserve.spend,
            removes_later=storage.owned is None,
            remote=storage.owned,
        )

    def _make_sampler(self) -> Sampler:
        """Return what samples the counters; `take_samples` starts it."""
        return Sampler(
            self.broker,
            self.registry,
            lambda: node.sampled(self),
            self.take_samples,
            plan_of(self.config),
        )

    def _make_watch(self) -> Watch:
        """Return what looks for findings; `start` starts it."""
        return Watch(
            lambda: self._metrics_source(LoginAttempts()),
            lambda: self.config,
            lambda: [] if self.member is None else self.member.nodes(),
        )

    def _die(self, error: Exception) -> None:
        """Exit at once after a failed commit.

        What the disk has of it is unknown, so nothing may be confirmed. The next start recovers.
        """
        if self.step_down is not None and error.args[:1] == (errno.ESTALE,):
            self.step_down.begin(str(error))
            return
        self.logger.write("error", f"cannot be made durable, the broker ends: {error}")
        # `os._exit` ends the thread of the log, which would lose the line above.
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
        report_failures(self.broker.failures, self.loop, self.logger.write)
        stopped = self.service.state == STOPPED
        if self.config.tls_cert is not None:
            self.tls = ServerTls(self.config, self.logger.write)
        context = self._make_context()
        dispatcher = self.dispatcher = Dispatcher(context, self.flush_soon)
        if self.member is not None:
            # Imported only if it is used: most brokers have one store.
            from harebell.cluster.cluster import Cluster

            self.cluster = Cluster(self, self.member, context, dispatcher)
            await self.cluster.start()
        if loads_definitions(self.config):
            # A client that can connect finds them after a kill, too. A disk without room is waited
            # for later.
            await self.flusher.drain(limits.STORE_END_SECONDS)
        handed = handed or HandedSockets()
        self.open_http = lambda: self._serve_http(context, dispatcher, handed)
        if not stopped:
            self.http_listeners = await self.open_http()
        if self.http_listeners:
            self.take_samples()
        self.metrics_listeners = await self._serve_metrics(context.login_attempts, handed)
        self.memory.measure()
        self.look_at_alarms()
        # After the others: a client that can connect finds the HTTP API open too.
        self.listeners = [] if stopped else await listen(self, handed)
        # Sockets that were not taken are of addresses that the configuration has no more: clients
        # in their backlogs would wait for ever.
        handed.close()
        if self.cluster is not None:
            # Before commands that depend on it: all workers may be suspended or stopped now.
            await self.cluster.follow()
        self._control = await control_server.start(self, self.config.data_dir, dispatcher)
        if self.cluster is not None:
            self.cluster.publish()
        if self.step_down is not None:
            self.step_down.start()
        self.turns.start()
        self._watching.start(self.findings)
        self._started = True

    async def _serve_http(
        self, context: AdminContext, dispatcher: Dispatcher, handed: HandedSockets
    ) -> list[HttpListener]:
        return await serve_http(
            self.config,
            self._tls_context,
            self.logger.write,
            context,
            dispatcher,
            handed,
            self._http_connections("HTTP API"),
            self.memory.count_answers,
        )

    async def _serve_metrics(
        self, login_attempts: LoginAttempts, handed: HandedSockets
    ) -> list[HttpListener]:
        return await serve_metrics(
            self.config,
            self._tls_context,
            lambda: self._metrics_source(login_attempts),
            self._trouble,
            self._http_connections("metrics"),
            handed,
            None if self.cluster is None else self.cluster.other_metrics,
        )

    def _make_context(self) -> AdminContext:
        """Return what commands need of the broker."""
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
        context.settings = self.settings
        self.broker.jobs.rights_of = context.job_rights
        context.configuration = lambda: shown_values(self.config)
        context.recent_lines = self.logger.recent.after
        context.brokers = self.service.nodes
        context.operation = self.service
        context.backups = self.backups
        context.questions = self._questions
        context.schemas = self._schemas
        self._auditing = Auditing(context, lambda: self.config, self._exact_ms)
        context.findings = self.findings
        return context

    def _questions(self) -> SqlQuestions:
        """Return what answers SQL, which is loaded for the first question."""
        if self._sql is None:
            from harebell.server.net.listener import serve_user
            from harebell.server.sql_questions import SqlQuestions

            self._sql = SqlQuestions(self.loop, partial(serve_user, self))
        return self._sql

    def _schemas(self) -> SchemaRegistry:
        """Return what reads schemas, which is loaded for the first one."""
        if self._registry is None:
            from harebell.management.schema_registry import SchemaRegistry

            self._registry = SchemaRegistry(
                self.loop, lambda: self.config.management_schema_registry
            )
        return self._registry

    def obey(self, manager: ServiceManager) -> None:
        """End at SIGTERM and SIGINT, reload at SIGHUP, and report both to the service manager."""
        self.manager = manager
        report_threads(self.broker.failures)
        # Handlers of the loop run between two turns; one of `signal` could interrupt a commit.
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
            # logrotate sends SIGHUP after it has renamed the file, whatever the configuration is.
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
            lag=self.turns.lag,
            clock=self.clock,
            started_at=self.started_at,
            max_connections=self.max_connections,
            login_attempts=login_attempts,
            certificates=lambda: node.expiring(self),
            backups=self.backups.figures,
            passed_on=self._passed_on,
            findings=self.findings,
        )

    def _trouble(self) -> str:
        """Return why clients cannot be served; "" if they can."""
        if self._stop.is_set():
            return "the broker is stopping"
        if not self._started:
            return "the broker starts"
        return self.service.trouble

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
            "the store goes to another broker: connect again" if drained else _SHUTDOWN
        )
        if self.handing_over is not None:
            self.handing_over.close()
        self._sampling.stop()
        self._watching.stop()
        if self.cluster is not None:
            self.cluster.close()
        self.turns.stop()
        self._verifying.close()
        if self._backends is not None:
            self._backends.close()
        if self._control is not None:
            await self._control.close()
        # Late: until here /health/ready answers 503, so that load balancers send no client.
        for served in self.metrics_listeners:
            await served.close()
        await self.backups.stop()
        if self._sql is not None:
            await self._sql.stop()
        if self._registry is not None:
            await self._registry.stop()
        if self._auditing is not None:
            self._auditing.close()
        self.broker.end()
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
        turns, look = self.registry.turns, limits.SHUTDOWN_FIRST_LOOK_SECONDS
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
            await asyncio.sleep(look)
            look = min(2 * look, limits.SHUTDOWN_LOOK_SECONDS)

    async def _close_store(self) -> None:
        """Write everything to disk, and mark the data directory as cleanly closed."""
        while self.storage.store.commit.pinned:
            # A pinned operation must be in one commit as a whole, so it is run to its end first.
            self.registry.turns.next_turn()
        # A line behind the end of a closed log would look like damage at the next start.
        self.logger.end_publishing()
        longest = self.storage.longest_end_seconds
        drained = await self.flusher.drain(limits.STORE_END_SECONDS, longest)
        if drained:
            # Closing a log adds what it keeps in memory, such as settlements: another batch.
            self.storage.store.close()
            drained = await self.flusher.drain(limits.STORE_END_SECONDS, longest)
        await self.flusher.stop()
        if self.step_down is not None:
            self.step_down.stop()
        if drained:
            try:
                self.storage.end()
            except OSError as error:
                self._die(error)
        else:
            why = self.storage.give_up()
            self.logger.write("error", f"stopped before everything was written: {why}")

    # --- connections ------------------------------------------------------------------------------

    def _http_connections(self, name: str) -> HttpConnections:
        return HttpConnections(name, self.config, self.files.http, self.logger.write)

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

    def _check(self, now: float) -> None:
        """Check once per tick what has a deadline or a limit, beside the connections."""
        guard = self.broker.failures.guard
        if self.tls is not None:
            guard(self.tls.look)
        guard(self.overdue.look, now)
        guard(self.kept.look, now)
        turns = self.registry.turns
        turns.begin_anyway(turns.own)
        try:
            guard(self.broker.tick)
            guard(self.memory.look)
        finally:
            turns.end()
        guard(self.alarms.look)
        guard(self.backups.look)

    def _press(self, short: bool) -> None:
        """Have messages in memory go to disk if memory is short, and the disk is not."""
        self.storage.store.press(short and not self.registry.publishers.short)

    @property
    def addresses(self) -> list[Listener | HttpListener]:
        """Return everything that listens: AMQP first, then HTTP."""
        return [*self.listeners, *self.http_listeners, *self.metrics_listeners]

    # --- monitoring -------------------------------------------------------------------------------

    def _exact_ms(self) -> int:
        """Return milliseconds since 1970; the clock of the broker may be half a second late."""
        self.wall.read()
        return self.wall.ms

    def take_samples(self) -> None:
        """Sample the counters from now on: the HTTP API is served, or a command shows rates."""
        self._sampling.start(self.statistics)

    def overview(self) -> dict[str, Any]:
        """Return the figures of `harebell status`."""
        stores = self.config.storage_stores
        store = {} if stores == 1 else {"store": number_of(os.environ), "stores": stores}
        return {**node.overview(self), **store, **self._passed_on()}

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
