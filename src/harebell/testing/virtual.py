"""A broker in the process of the test, whose time passes only when the test says so."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import wait
from pathlib import Path
from typing import Any, TypeVar

from harebell.base.errors import HarebellError
from harebell.base.names import did_you_mean
from harebell.config import Configuration, read_configuration
from harebell.config.settings import BY_NAME
from harebell.management.control.client import ask_command
from harebell.server.app import App, node_name
from harebell.server.logs.logger import Logger
from harebell.testing.record import Frame, Record, Transfer
from harebell.testing.relay import HOST, Relay
from harebell.testing.virtual_time import VirtualTime

_QUIET_PASSES = 8
"""Passes of the loop without anything new, after which nothing is under way: bytes go through two
sockets of the relay and one of the broker, in each direction."""
_DISK_SECONDS = 10.0
_CALL_SECONDS = 60.0
_NO_LIMIT = 2**62
_T = TypeVar("_T")


class VirtualBroker:
    """A broker whose time stands still until `advance` moves it.

    It listens on a free port of 127.0.0.1, for clients of this process and of others, and runs in a
    thread. Message TTLs, delays, retries, leases and heartbeats happen in `advance`, in their
    order and each at its own time, and take no real time. Clients have their own clocks, and send
    their heartbeats by these. So no client is closed for missing ones unless `heartbeat` is set.

    As a context manager, it is closed at the end. The methods may be called from any thread but the
    broker's own, also inside coroutines: they return as soon as the broker has done its part.

    Args:
        settings: keys of docs/reference/configuration.md with their values.

    Attributes:
        data_dir: the data directory, a temporary one unless it is set.
        log_path: a file with the lines that a broker would have logged.

    Raises:
        HarebellError: a setting is wrong, or the broker cannot start.
    """

    def __init__(self, **settings: Any) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="harebell-")
        root = Path(self._temporary.name)
        self.data_dir = Path(settings.get("data_dir", root / "data"))
        self.log_path = root / "log"
        self._record = Record()
        self._time = VirtualTime()
        self._with_heartbeats = "heartbeat" in settings
        self._failure: str | None = None
        self._ready = threading.Event()
        self._ended: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self._relay: Relay
        self._app: App
        self._logger: Logger
        try:
            self._configuration = self._configured(settings)
        except HarebellError:
            self._temporary.cleanup()
            raise
        self._refusal: HarebellError | None = None
        self._thread = threading.Thread(target=self._run, name="harebell", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._refusal is not None:
            self._thread.join()
            self._temporary.cleanup()
            raise self._refusal

    # --- where it is ------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port for AMQP without TLS; the same after a restart."""
        return self._relay.port

    @property
    def url(self) -> str:
        """The URL for clients, with the default user."""
        return f"amqp://guest:guest@{HOST}:{self.port}/%2F"

    @property
    def log(self) -> str:
        """Everything that the broker has logged so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    # --- time -------------------------------------------------------------------------------------

    @property
    def passed(self) -> float:
        """Seconds that have passed since the broker was made."""
        return self._time.passed

    def advance(self, seconds: float) -> None:
        """Let time pass, with everything that becomes due in it.

        Args:
            seconds: how long; 0 only lets the broker finish what it has begun.

        Raises:
            ValueError: the time is negative.
        """
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds} seconds")
        self._call(self._time.advance(seconds, self._settle, self._moved))

    def settle(self) -> None:
        """Wait until the broker has handled all input of its clients."""
        self._call(self._settle())

    # --- the recorded traffic ---------------------------------------------------------------------

    def frames(
        self, name: str | None = None, *, sender: str | None = None, connection: int | None = None
    ) -> list[Frame]:
        """Return the frames that passed, in order.

        Args:
            name: only this method, such as "queue.declare", or kind, such as "heartbeat".
            sender: only those of the "client" or of the "broker".
            connection: only those of this connection; the first has the number 1.
        """
        return list(self._record.frames(name, sender, connection))

    @property
    def published(self) -> list[Transfer]:
        """The messages that clients have published with AMQP 0-8, 0-9 or 0-9-1."""
        return self._record.transfers("published")

    @property
    def delivered(self) -> list[Transfer]:
        """The messages that consumers and basic.get received."""
        return self._record.transfers("delivered")

    @property
    def returned(self) -> list[Transfer]:
        """The unroutable messages that the broker returned to their publishers."""
        return self._record.transfers("returned")

    def forget(self) -> None:
        """Forget the recorded traffic."""
        self._record.clear()

    def command(self, name: str, /, **fields: Any) -> Any:
        """Run a command of the command line, such as `command("queues.list")`.

        Args:
            name: noun and verb, joined by a dot.
            fields: the arguments.

        Raises:
            HarebellError: the broker refuses it; the text says why.
        """
        return ask_command(self.data_dir, name, fields)

    # --- faults -----------------------------------------------------------------------------------

    @property
    def connections(self) -> list[int]:
        """The numbers of the open connections, the oldest first."""
        return self._relay.connections

    def cut(self, connection: int | None = None) -> None:
        """Break a connection, or all: both sides see a reset.

        Raises:
            LookupError: no open connection has this number.
        """
        self._do(lambda: self._relay.cut(connection))

    def refuse(self) -> None:
        """Break every new connection at once, until `accept`."""
        self._do(lambda: setattr(self._relay, "refusing", True))

    def accept(self) -> None:
        """Accept new connections again."""
        self._do(lambda: setattr(self._relay, "refusing", False))

    def stall(self) -> None:
        """Hold all bytes between clients and broker back, until `resume`."""
        self._do(lambda: self._relay.stall())

    def resume(self) -> None:
        """Forward the bytes that were held since `stall`."""
        self._do(lambda: self._relay.resume())

    def inject(self, data: bytes, *, sender: str = "broker", connection: int | None = None) -> None:
        """Send frames in the name of one side; the other side gets them.

        Args:
            data: whole frames, as they are on the wire.
            sender: "broker" or "client".
            connection: the number of the connection; None for all.

        Raises:
            LookupError: no open connection has this number.
            ValueError: the sender is neither of the two.
        """
        if sender not in ("broker", "client"):
            raise ValueError(f"the sender is 'broker' or 'client', not {sender!r}")
        self._do(lambda: self._relay.inject(data, connection, client=sender == "client"))

    def close_connections(self, reason: str = "closed by the test") -> None:
        """Close all connections with 320 CONNECTION_FORCED, as an operator does."""
        self.command("connections.close-all", reason=reason)

    def block_publishers(self) -> None:
        """Let the broker be short of disk: publishers get connection.blocked and have to wait."""
        self._do(lambda: self._limit_disk(_NO_LIMIT))

    def unblock_publishers(self) -> None:
        """Let the broker have enough disk again: publishers get connection.unblocked."""
        self._do(lambda: self._limit_disk(0))

    def restart(self) -> None:
        """Stop the broker with a reason for its clients, and start it on the same data and port."""
        self._call(self._restart())

    def close(self) -> None:
        """Stop the broker and remove its files.

        Raises:
            HarebellError: the broker had ended, because its disk failed.
        """
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()
        self._temporary.cleanup()
        if self._failure is not None:
            raise HarebellError(self._failure)

    def __enter__(self) -> VirtualBroker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- in the thread of the broker --------------------------------------------------------------

    def _configured(self, settings: Mapping[str, Any]) -> Configuration:
        for name in settings:
            if name not in BY_NAME:
                raise HarebellError(f"{name} is no setting: {did_you_mean(name, BY_NAME)}")
        flags = {
            "port": 0,
            "data_dir": str(self.data_dir),
            "management_port": 0,
            "metrics_port": 0,
            "log_console": False,
            "log_file": str(self.log_path),
            "heartbeat": 0,
            # The broker runs in the process of the tests: their memory must not block publishers.
            "memory_high_watermark": 1.0,
            **settings,
        }
        return read_configuration(flags, {}, "none")

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._relay = Relay(self._record, self._time)
        self._logger = Logger(self._configuration.config, node_name(self._configuration.config))
        try:
            await self._relay.start()
            await self._start()
        except (HarebellError, OSError) as error:
            self._refusal = error if isinstance(error, HarebellError) else HarebellError(str(error))
            self._logger.close()
            return
        self._ready.set()
        await self._ended.wait()
        self._relay.resume()
        await self._relay.stop()
        if self._failure is None:
            await self._app.stop()
        self._logger.close()

    async def _start(self) -> None:
        config = self._configuration.config
        self._app = App(config, self._logger, time_source=self._time, leave=self._fail)
        await self._app.start()
        self._relay.target = self._app.listeners[0].port

    async def _restart(self) -> None:
        self._relay.target = 0
        await self._app.stop()
        self._time.forget()
        await self._start()

    def _fail(self, code: int) -> None:
        """End the broker where `harebell serve` would end its process: its disk failed."""
        self._failure = f"the broker ended with exit code {code}:\n{self.log}"
        self._ended.set()

    def _limit_disk(self, free_bytes: int) -> None:
        self._app.storage.free_limit = free_bytes
        self._app.look_at_alarms()
        self._app.flush_soon()

    def _moved(self, seconds: float) -> None:
        """Extend the heartbeat deadlines of clients: virtual time does not pass for them."""
        if not self._with_heartbeats:
            for connection in self._app.registry.connections:
                connection.excuse(seconds)

    async def _settle(self) -> None:
        """Wait until no bytes are under way, no output is waiting and all is on disk."""
        app = self._app
        quiet, seen = 0, None
        while quiet < _QUIET_PASSES:
            await asyncio.sleep(0)
            now = (self._relay.passed, app.storage.store.commit.done, len(app.registry.dirty))
            quiet = quiet + 1 if now == seen and not app.registry.turns.busy else 0
            seen = now
            if quiet == _QUIET_PASSES - 1 and not self._ended.is_set():
                await app.flusher.drain(_DISK_SECONDS)

    # --- from other threads -----------------------------------------------------------------------

    def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the thread of the broker; wait as long as virtual time advances."""
        if not self._thread.is_alive():
            work.close()
            raise HarebellError(self._failure or "the broker is closed")
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        before = None
        # A day has 172,800 ticks, which take a busy machine longer than any one call may.
        while not done.done() and before != self._time.passed:
            before = self._time.passed
            wait([done], _CALL_SECONDS)
        return done.result(0)

    def _do(self, act: Callable[[], object]) -> None:
        """Run a function in the thread of the broker, and wait until the broker is idle."""

        async def work() -> None:
            act()
            await self._settle()

        self._call(work())
