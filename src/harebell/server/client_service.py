"""Close and open what clients connect to, while the process and its control socket stay.

    running --suspend--> running without AMQP listeners --resume--> running
    running --stop--> stopped --start--> running
    stopped --reset--> the process begins anew on an empty data directory, stopped

These are RabbitMQ's `suspend_listeners`, `stop_app` and `reset`. The listener of metrics and probes
stays open in every state: a probe of liveness must not end a broker that an operator has stopped.

Several workers have one state, which is among what their stores share: each of them acts on it when
it changes, and when it starts. Their sockets are the same, so the one that was asked silences them
when all others have stopped to accept clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from harebell.admin.context import CommandRefused
from harebell.base.names import did_you_mean
from harebell.cluster.stores import FIRST_STORE, RUNNING, STOPPED, SUSPENDED
from harebell.server.reloading import Running, set_key, unset_key

if TYPE_CHECKING:
    import socket

    from harebell.cluster.cluster import Cluster
    from harebell.cluster.shared import Member
    from harebell.management.http.listening import HttpListener
    from harebell.server.disk.storage import Storage

_ANSWER_SECONDS = 0.05
"""Time for the answer to a command that ends the service."""


class ServingApp(Running, Protocol):
    """The parts of a broker that are closed and opened: see `harebell.server.app.App`."""

    loop: asyncio.AbstractEventLoop
    listeners: list[Any]
    http_listeners: list[HttpListener]
    storage: Storage
    member: Member | None
    cluster: Cluster | None
    open_http: Callable[[], Awaitable[list[HttpListener]]]
    reopened: Callable[[Any], Awaitable[Any]]

    def end(self) -> None:
        """End the broker soon, in an orderly way."""

    async def close_connections(self, reason: str) -> None:
        """Close every connection with a reason."""


class ClientService:
    """The service of the clients of a broker.

    Args:
        app: the broker.
        closed: AMQP listeners that are closed from the start, because the broker was reset.

    Attributes:
        state: "running" or "stopped".
        closed: the AMQP listeners to open again; empty while they are open.
        resetting: done when the process has begun anew; None if it does not begin anew.
        successor: the name of the broker that is given the store, "" for any other; None if the
            broker keeps it.
    """

    def __init__(self, app: ServingApp, closed: list[Any] | None = None) -> None:
        self._app = app
        self.state = RUNNING if closed is None else STOPPED
        self.closed = closed or []
        self._paused_http: list[HttpListener] = []
        self.resetting: Future[None] | None = None
        self.successor: str | None = None

    @property
    def trouble(self) -> str:
        """Return why clients cannot connect; "" if they can."""
        if self.state == STOPPED:
            return "the broker is stopped: `harebell app start`"
        return "the listeners are suspended: `harebell listeners resume`" if self.closed else ""

    def suspend(self) -> Future[None]:
        """Close the AMQP listeners; connections stay.

        Raises:
            CommandRefused: processes of other machines would go on.
        """
        self._check_machines()
        return self._begun(self._suspend())

    async def _suspend(self) -> None:
        if self._workers is not None:
            await self._change_all(STOPPED if self.state == STOPPED else SUSPENDED)
            return
        self._close_listeners()

    def _begun(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        """Start to open or close listeners."""
        return asyncio.run_coroutine_threadsafe(work, self._app.loop)

    def _check_machines(self) -> None:
        config = self._app.config
        if config.storage_stores > 1 and config.storage:
            raise CommandRefused(
                "the processes of this machine share its listeners, and would go on accepting "
                "clients: `harebell cluster drain` gives its stores to other machines"
            )

    def _close_listeners(self) -> None:
        app = self._app
        for listener in app.listeners:
            if self._workers is None:
                listener.server.close()
            else:
                listener.server.pause(paused=True)
        self.closed += app.listeners
        app.listeners = []
        app.logger.write(
            "warning", "Suspended all listeners and will no longer accept client connections"
        )

    def resume(self) -> Future[None]:
        """Open the AMQP listeners again, at the addresses that they had."""
        if self.state == STOPPED:
            raise CommandRefused(f"no listener is opened: {self.trouble}")
        return self._begun(self._resume())

    async def _resume(self) -> None:
        """Open every closed listener, or none.

        Raises:
            StartError: an address is in use.
        """
        if self._workers is not None:
            await self._change_all(RUNNING)
            return
        await self._open_listeners()

    async def _open_listeners(self) -> None:
        app = self._app
        opened: list[Any] = []
        try:
            for listener in self.closed:
                if self._workers is None:
                    opened += [await app.reopened(listener)]
                else:
                    listener.server.pause(paused=False)
                    opened += [listener]
        except Exception:
            for listener in opened:
                listener.server.close()
            raise
        self.closed = []
        app.listeners += opened
        app.logger.write(
            "warning", "Resumed all listeners and will accept client connections again"
        )

    def stop(self) -> Future[None]:
        """Close the listeners of AMQP and the HTTP API, and every connection.

        Raises:
            CommandRefused: processes of other machines would go on.
        """
        self._check_machines()
        return self._begun(self._stop())

    async def _stop(self) -> None:
        if self._workers is not None:
            await self._change_all(STOPPED)
            return
        await self._close()

    async def _close(self) -> None:
        app = self._app
        was_stopped, self.state = self.state == STOPPED, STOPPED
        if app.listeners or not was_stopped:
            self._close_listeners()
        http, app.http_listeners = app.http_listeners, []
        if self._workers is not None:
            self._paused_http += http
        for each in http:
            await (each.close() if self._workers is None else each.pause())
        if not was_stopped:
            await app.close_connections("the broker was stopped by an operator")
            app.logger.write("info", "the broker is stopped: `harebell app start` starts it again")

    def start(self) -> Future[None]:
        """Open what `stop` has closed."""
        return self._begun(self._start())

    async def _start(self) -> None:
        """Open the listeners of the HTTP API and AMQP; if one cannot be opened, none is.

        Raises:
            StartError: an address is in use.
        """
        if self.state == RUNNING:
            return
        if self._workers is not None:
            await self._change_all(RUNNING)
            return
        app = self._app
        app.http_listeners = await app.open_http()
        self.state = RUNNING
        try:
            await self._open_listeners()
        except Exception:
            self.state = STOPPED
            http, app.http_listeners = app.http_listeners, []
            for each in http:
                await each.close()
            raise
        app.logger.write("info", "the broker is started again")

    # --- several workers --------------------------------------------------------------------------

    @property
    def _workers(self) -> Cluster | None:
        """Return what this worker knows of the others; None for a broker that has none."""
        app = self._app
        return None if app.storage.owned is not None else app.cluster

    async def _change_all(self, state: str) -> None:
        """Change the state of all workers.

        Raises:
            StartError: an address is in use by another program.
            StoreError: what they share cannot be used.
        """
        workers = self._workers
        assert workers is not None, "there are several"
        if state == RUNNING:
            self._listen_again()
        # It returns when all that serve act on it, this one included.
        await workers.directory.write_service(state)
        if state != RUNNING:
            # Imported only if it is used: most brokers have one process.
            from harebell.server.net.silencing import silence

            # No process watches these any more, so they wake no event loop.
            silence(self._sockets(http=state == STOPPED))

    def _sockets(self, *, http: bool) -> list[socket.socket]:
        found = [sock for each in self.closed for sock in each.server.sockets]
        if http:
            found += [sock for each in self._paused_http for sock in each.sockets]
        return found

    def _listen_again(self) -> None:
        """Let the sockets of all workers accept clients again, or none of them.

        Raises:
            StartError: an address is in use.
        """
        # Imported only if it is used, as above.
        from harebell.server.net.listen_address import ListenAddress, refused
        from harebell.server.net.silencing import listen_again
        from harebell.server.net.tcp_options import options_of

        sockets = self._sockets(http=self.state == STOPPED)
        try:
            listen_again(sockets, options_of(self._app.config).backlog)
        except OSError as error:
            first = self.closed[0]
            address = ListenAddress(first.scheme, first.configured_host, first.port)
            raise refused(address, error) from None

    async def follow(self, state: str) -> None:
        """Act on the state that all workers have; may be called again and again.

        Args:
            state: RUNNING, SUSPENDED or STOPPED.
        """
        if state == RUNNING:
            was_stopped, self.state = self.state == STOPPED, RUNNING
            for each in self._paused_http:
                each.go_on()
            self._app.http_listeners += self._paused_http
            self._paused_http = []
            if self.closed:
                await self._open_listeners()
            if was_stopped:
                self._app.logger.write("info", "the broker is started again")
        elif state == SUSPENDED and self._app.listeners:
            self._close_listeners()
        elif state == STOPPED:
            await self._close()

    def reset(self) -> Future[None]:
        """Begin the process anew on an empty data directory, stopped."""
        if self.state != STOPPED:
            raise CommandRefused("the broker is running: stop it with `harebell app stop` first")
        if self._app.storage.owned is not None:
            raise CommandRefused(
                "the store is in PostgreSQL, and is not removed from here: stop every broker of "
                "it, and drop its schema (DROP SCHEMA ... CASCADE)"
            )
        if self._workers is not None:
            raise CommandRefused(
                "there are several stores: end the broker, remove its data directory, and start it "
                "again"
            )
        self._app.logger.write("warning", "everything that is stored is removed")
        self.resetting = Future()
        self._app.end()
        return self.resetting

    def nodes(self) -> list[dict[str, Any]]:
        """Return the brokers of the store; none if it is the only one of a data directory."""
        member = self._app.member
        return [] if member is None else member.nodes()

    def check_store(self, store: int) -> None:
        """Refuse a number of a store that is not that of this process.

        Raises:
            CommandRefused: it is another one.
        """
        member = self._app.member
        number = FIRST_STORE if member is None else member.number
        if store != number:
            raise CommandRefused(f"there is no store {store} here: this is store {number}")

    def hand_over(self, successor: str, store: int) -> None:
        """Give the store to another broker, and stand by.

        Args:
            successor: the name of the broker; "" for any other.
            store: the number of the store that is meant.

        Raises:
            CommandRefused: the store is in the data directory or another one, or there is no such
                broker.
        """
        owned = self._app.storage.owned
        if owned is None:
            raise _no_other()
        self.check_store(store)
        if successor == owned.node:
            raise CommandRefused(f"broker '{successor}' owns store {store} already")
        others = [
            each["name"] for each in owned.nodes() if each["running"] and each["state"] != "owner"
        ]
        if not others:
            raise CommandRefused(
                "no other broker stands by, so clients would not be served: start one first"
            )
        if successor and successor not in others:
            hint = did_you_mean(successor, others, quote="'")
            raise CommandRefused(f"no broker '{successor}' stands by: {hint}")
        self.successor = successor
        owned.ownership.give_to(successor)
        what = "the store" if self._app.config.storage_stores == 1 else f"store {store}"
        self._app.logger.write("warning", f"{what} goes to {successor or 'another broker'}")
        self._app.loop.call_later(_ANSWER_SECONDS, self._app.end)

    def drain(self, store: int | None) -> Future[None]:
        """Give the stores that the processes of this machine own to others, or one of them."""
        owned = self._app.storage.owned
        if owned is None:
            raise _no_other()
        # Imported here: a store in the data directory has no need of it.
        from harebell.cluster.draining import drain

        async def drained() -> None:
            await drain(
                self._app.config, owned.number, store, lambda: self.hand_over("", owned.number)
            )

        return asyncio.run_coroutine_threadsafe(drained(), self._app.loop)

    def set_key(self, key: str, value: str) -> dict[str, Any]:
        """Give a key of the configuration another value until a restart or a reload."""
        return set_key(self._app, key, value)

    def unset_key(self, key: str) -> dict[str, Any]:
        """Give a key the value again that the configuration has for it."""
        return unset_key(self._app, key)

    def reopen_logs(self) -> None:
        """Open the log files anew by their names."""
        self._app.logger.reopen()


def _no_other() -> CommandRefused:
    return CommandRefused(
        "the store is in the data directory, which no other broker can take over: set storage to a "
        "URL of PostgreSQL"
    )
