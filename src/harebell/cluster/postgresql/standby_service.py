"""A broker that stands by, as clients and operators see it.

Its ports are open and pass connections on to the owner, its control socket and its probes answer,
and the service manager is told that it is ready. All of that ends when it owns the store, but for
the listening sockets: the broker goes on with them.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell import __version__
from harebell.admin.context import CommandRefused
from harebell.admin.streaming import HeldRows
from harebell.base.slices import Slices, ended
from harebell.cluster.cluster_directory import ClusterDirectory
from harebell.cluster.command_caller import CommandsFromStandby
from harebell.cluster.draining import DRAIN, drain
from harebell.cluster.local_handover import takes_clients
from harebell.cluster.postgresql.addresses import host_port, reachable
from harebell.cluster.postgresql.figures import cluster_rows, seen_figures
from harebell.cluster.postgresql.owned_store import shared_tables
from harebell.cluster.postgresql.relay import Owner, Relay
from harebell.cluster.postgresql.standby import Standby
from harebell.cluster.postgresql.standby_metrics import StandbyMetrics
from harebell.cluster.postgresql.step_down import STANDBY_VARIABLE
from harebell.cluster.stores import FIRST_STORE, data_dir_of
from harebell.management.control import server as control_server
from harebell.management.http.connections import HttpConnections
from harebell.management.http.listening import bound_for, is_installed, open_listener
from harebell.management.http.serving import http_addresses
from harebell.management.metrics.serving import port_of
from harebell.server.file_limits import max_open, shares
from harebell.server.net.acceptor import bound
from harebell.server.net.handed_sockets import Claimed, EndedAsStandby, inherited
from harebell.server.net.listen_address import listen_addresses, refused
from harebell.server.net.tcp_options import options_of
from harebell.server.net.tls import StartError

if TYPE_CHECKING:
    from harebell.config import Config
    from harebell.server.service_manager import ServiceManager

_MS = 1_000
STANDBY = "standby"
"""The state of a broker that stands by."""
_OF_A_PROCESS = ("app", "config", "listeners", "logs")
"""Nouns whose commands are about the process that is asked."""
CLUSTER_STATUS = "cluster.status"


class StandbyService:
    """Waits until this broker owns its store, and serves clients and operators meanwhile.

    Args:
        config: the configuration.
        node: the name of this broker.
        number: of the store in its cluster.
        manager: is told when clients can connect.
        report: called with a level and a line.
        say: called with lines for the output of `harebell serve`.
    """

    def __init__(
        self,
        config: Config,
        node: str,
        number: int,
        manager: ServiceManager,
        report: Callable[[str, str], None],
        say: Callable[[str], None],
    ) -> None:
        self._config = config
        self._node = node
        self._number = number
        self._manager = manager
        self._report = report
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._inherited = inherited(os.environ)
        self._standby = Standby(
            config, node, number, report, patient=STANDBY_VARIABLE in os.environ
        )
        limit = max(1, shares(max_open()).connections // 2)
        self._relay = Relay(2 * config.storage_lease_ms / _MS, limit, report)
        pending = self._relay.pending_logins
        pending.limit = config.unauthenticated_connection_max
        pending.max_per_address = config.unauthenticated_connection_max_per_address
        self._commands = CommandsFromStandby(
            lambda: ClusterDirectory(shared_tables(self._standby.database, config), number, report)
        )
        self._control: control_server.Control | None = None
        self._probes: list[Any] = []
        self._opening: asyncio.Task[None] | None = None

    async def own(self) -> Claimed:
        """Wait until this broker owns the store.

        Returns:
            The store, and the sockets that listen already.

        Raises:
            EndedAsStandby: SIGTERM or SIGINT came before.
            HarebellError: it cannot stand by; the text is for the user.
        """
        standby = self._standby
        standby.looked = self._looked
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, standby.end)
        # Until it serves clients there is nothing to read again.
        self._loop.add_signal_handler(signal.SIGHUP, lambda: None)
        owned = None
        try:
            owned = await standby.own()
        finally:
            await self._close()
            if owned is None:
                self._relay.close().close()
                self._inherited.close()
                await asyncio.to_thread(standby.close)
        if owned is None:
            failure = None if self._opening is None else self._opening.exception()
            raise failure or EndedAsStandby
        handed = self._relay.close().joined(self._inherited)
        return Claimed(owned, handed, lambda: standby.ended)

    async def _close(self) -> None:
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._control is not None:
            await self._control.close()
        self._commands.close()
        for each in self._probes:
            await each.close()

    def _looked(self) -> None:
        """Pass on to the owner that was seen last."""
        if self._opening is None:
            self._opening = self._loop.create_task(self._open())
            self._opening.add_done_callback(self._opened)
        self._relay.leave_to_others(others=self._others_serve())
        seen = self._standby.seen
        # An owner of this name is the process before this one: its addresses are those here.
        if seen is None or seen.released or seen.owner == self._node or not seen.addresses:
            self._relay.pass_on_to(None)
        else:
            self._relay.pass_on_to(Owner(seen.epoch, seen.addresses))

    def _others_serve(self) -> bool:
        """True if another process of this machine owns a store, and accepts clients."""
        config = self._config
        return any(
            takes_clients(data_dir_of(config.data_dir, self._number, store))
            for store in range(FIRST_STORE, FIRST_STORE + config.storage_stores)
            if store != self._number
        )

    def _opened(self, opening: asyncio.Task[None]) -> None:
        if opening.exception() is not None:
            self._standby.end()

    async def _open(self) -> None:
        """Open the ports, the control socket and the probes.

        Raises:
            HarebellError: a port is in use, or cannot be used.
        """
        config = self._config
        for asked in listen_addresses(config):
            sockets = self._inherited.take(asked)
            if sockets is None:
                try:
                    sockets = await bound(self._loop, asked.host, asked.port, options_of(config))
                except OSError as error:
                    raise refused(asked, error) from None
            self._relay.listen(asked, sockets)
        await self._open_http()
        self._inherited.close()
        self._control = await control_server.start(self, config.data_dir, self)
        await self._open_probes()
        listening = self._relay.addresses
        self._standby.be_reached_at(reachable(config, listening).get("amqp", ""))
        shown = self._shown()
        for line in [*(f"listening on {each}" for each in shown), f"standing by: {self.owner}"]:
            self._say(line)
        where = ", ".join(shown)
        self._manager.ready(f"standing by: {self.owner}; passes on what comes to {where}")

    async def _open_http(self) -> None:
        """Open the ports of the HTTP API, which is the owner's."""
        for asked, key, given in http_addresses(self._config):
            sockets = self._inherited.take(asked)
            try:
                sockets = sockets or await bound_for(asked.host, asked.port, key)
            except StartError as error:
                if given:
                    raise
                self._report("warning", f"no HTTP API: {error}")
                continue
            self._relay.listen(asked, sockets)

    async def _open_probes(self) -> None:
        """Serve probes and the few metrics that there are."""
        config = self._config
        port = port_of(config)
        if not port or not is_installed():
            return
        # Imported here, so that a broker without metrics starts as fast as before.
        from harebell.management.metrics.application import MetricsApplication

        probes = MetricsApplication(StandbyMetrics(self.overview), lambda: self.trouble)
        connections = HttpConnections("metrics", config, shares(max_open()).http, self._report)
        self._probes.append(
            await open_listener(probes, config.metrics_host, port, "metrics_port", connections)
        )

    # --- for operators ----------------------------------------------------------------------------

    @property
    def owner(self) -> str:
        """Say who owns the store."""
        seen = self._standby.seen
        if seen is None or seen.released:
            return "no broker owns the store"
        return f"'{seen.owner}' owns the store"

    @property
    def trouble(self) -> str:
        """Return why clients cannot be served; "" if they can."""
        if self._standby.trouble:
            return f"this broker stands by, and the store cannot be used: {self._standby.trouble}"
        seen = self._standby.seen
        if seen is None or seen.released or not seen.addresses:
            return "this broker stands by, and no broker serves clients now"
        return ""

    def overview(self) -> dict[str, Any]:
        """Return the figures of `harebell status`."""
        seen = self._standby.seen
        return {
            "version": __version__,
            "node": self._node,
            "pid": os.getpid(),
            "data_dir": str(self._config.data_dir),
            "state": STANDBY,
            "store": self._number,
            "stores": self._config.storage_stores,
            "trouble": self.trouble,
            "listeners": self._shown(),
            "listeners_suspended": False,
            "connections": self._relay.connections,
            "connections_passed_on": self._relay.connections,
            "connections_waiting": self._relay.waiting,
            "shortages": [],
            "memory_alarm": False,
            "storage": {} if seen is None else seen_figures(self._number, seen),
        }

    def _shown(self) -> list[str]:
        return [
            f"{scheme}://{host_port(host, port)}" for scheme, host, port in self._relay.addresses
        ]

    def knows(self, name: Any) -> bool:
        """True if there is a command of that name."""
        from harebell.admin.catalog import find

        return isinstance(name, str) and find(name) is not None

    async def run(self, run: Callable[[], Slices[Any]], *, reads: bool = False) -> Any:
        """Run something in slices, with the bytes of clients passed on in between."""
        slices = run()
        while True:
            try:
                next(slices)
            except StopIteration as end:
                return end.value
            await asyncio.sleep(0)

    async def serve(self, name: str, fields: dict[str, Any], _peer: str = "") -> dict[str, Any]:
        """Let an owner run a command; refuse what is about the process of an owner."""
        if name == CLUSTER_STATUS and self._standby.trouble:
            # Do not show stale rows as current.
            return {"ok": False, "error": self.trouble}
        if name == CLUSTER_STATUS and self._config.storage_stores == 1:
            return {"ok": True, "answer": cluster_rows(self._number, self._standby.nodes)}
        if name == DRAIN:
            return await self._drain(fields)
        from harebell.admin.catalog import find

        command = find(name)
        assert command is not None, "`knows` was asked before"
        if command.noun.name in _OF_A_PROCESS:
            return {"ok": False, "error": self._refusal}
        return await self._commands.serve(command, fields)

    def settle(self, held: HeldRows, *, delivered: bool) -> None:
        """Tell the owner whether the client has got what was held for it."""
        ended(held.end(delivered))

    @property
    def _refusal(self) -> str:
        return f"this broker stands by: {self.owner}, so run the command there"

    async def _drain(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Give away what the other processes of this machine own."""
        try:
            given = await drain(self._config, self._number, fields.get("store"), None)
        except CommandRefused as error:
            return {"ok": False, "error": str(error)}
        return {"ok": True, "answer": {}} if given else {"ok": False, "error": self._refusal}
