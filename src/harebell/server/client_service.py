"""Close and open what clients connect to, while the process and its control socket stay.

    running --suspend--> running without AMQP listeners --resume--> running
    running --stop--> stopped --start--> running
    stopped --reset--> the process begins anew on an empty data directory, stopped

These are RabbitMQ's `suspend_listeners`, `stop_app` and `reset`. The listener of metrics and probes
stays open in every state: a probe of liveness must not end a broker that an operator has stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from harebell.admin.context import CommandRefused
from harebell.base.names import did_you_mean
from harebell.cluster.stores import FIRST_STORE
from harebell.server.reloading import Running, set_key, unset_key

if TYPE_CHECKING:
    from harebell.cluster.shared import Member
    from harebell.management.http.listening import HttpListener
    from harebell.server.disk.storage import Storage

RUNNING = "running"
STOPPED = "stopped"
_ANSWER_SECONDS = 0.05
"""Time for the answer to a command that ends the service."""


class ServingApp(Running, Protocol):
    """The parts of a broker that are closed and opened: see `harebell.server.app.App`."""

    loop: asyncio.AbstractEventLoop
    listeners: list[Any]
    http_listeners: list[HttpListener]
    storage: Storage
    member: Member | None
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
        self.resetting: Future[None] | None = None
        self.successor: str | None = None

    @property
    def trouble(self) -> str:
        """Return why clients cannot connect; "" if they can."""
        if self.state == STOPPED:
            return "the broker is stopped: `harebell app start`"
        return "the listeners are suspended: `harebell listeners resume`" if self.closed else ""

    def suspend(self) -> None:
        """Close the AMQP listeners; connections stay.

        Raises:
            CommandRefused: other processes of this machine have the same listeners.
        """
        self._check_listeners()
        app = self._app
        for listener in app.listeners:
            listener.server.close()
        self.closed += app.listeners
        app.listeners = []
        app.logger.write(
            "warning", "Suspended all listeners and will no longer accept client connections"
        )

    def resume(self) -> Future[None]:
        """Open the AMQP listeners again, at the addresses that they had."""
        if self.state == STOPPED:
            raise CommandRefused(f"no listener is opened: {self.trouble}")
        return asyncio.run_coroutine_threadsafe(self._resume(), self._app.loop)

    async def _resume(self) -> None:
        """Open every closed listener, or none.

        Raises:
            StartError: an address is in use.
        """
        app = self._app
        opened: list[Any] = []
        try:
            for listener in self.closed:
                opened += [await app.reopened(listener)]
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
            CommandRefused: other processes of this machine have the same listeners.
        """
        self._check_listeners()
        return asyncio.run_coroutine_threadsafe(self._stop(), self._app.loop)

    async def _stop(self) -> None:
        if self.state == STOPPED:
            return
        app = self._app
        self.state = STOPPED
        self.suspend()
        http, app.http_listeners = app.http_listeners, []
        for each in http:
            await each.close()
        await app.close_connections("the broker was stopped by an operator")
        app.logger.write("info", "the broker is stopped: `harebell app start` starts it again")

    def _check_listeners(self) -> None:
        if self._app.config.storage_stores > 1:
            remedy = (
                "end the broker (SIGTERM to its first process)"
                if self._app.storage.owned is None
                else "`harebell cluster drain` gives its stores to other machines"
            )
            raise CommandRefused(
                "the processes of this machine share its listeners, and would go on accepting "
                f"clients: {remedy}"
            )

    def start(self) -> Future[None]:
        """Open what `stop` has closed."""
        return asyncio.run_coroutine_threadsafe(self._start(), self._app.loop)

    async def _start(self) -> None:
        """Open the listeners of the HTTP API and AMQP; if one cannot be opened, none is.

        Raises:
            StartError: an address is in use.
        """
        if self.state == RUNNING:
            return
        app = self._app
        app.http_listeners = await app.open_http()
        self.state = RUNNING
        try:
            await self._resume()
        except Exception:
            self.state = STOPPED
            http, app.http_listeners = app.http_listeners, []
            for each in http:
                await each.close()
            raise
        app.logger.write("info", "the broker is started again")

    def reset(self) -> Future[None]:
        """Begin the process anew on an empty data directory, stopped."""
        if self.state != STOPPED:
            raise CommandRefused("the broker is running: stop it with `harebell app stop` first")
        if self._app.storage.owned is not None:
            raise CommandRefused(
                "the store is in PostgreSQL, and is not removed from here: stop every broker of "
                "it, and drop its schema (DROP SCHEMA ... CASCADE)"
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
