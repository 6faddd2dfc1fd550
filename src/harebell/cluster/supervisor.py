"""Run a process per store on this machine, and let all of them listen at the same ports.

    harebell serve                 opens the ports, and starts the others
      harebell serve  (store 1)    the data directory and control socket of the configuration
      harebell serve  (store 2)    stores/2 in it
      ...

Every process inherits the listening sockets, so the kernel gives a client to one that has time for
it, and a process that ends takes no waiting client with it. A process that ends by itself is
started again; if it has never been ready, its exit code is that of the broker.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harebell.cluster import stores
from harebell.cluster.limits import (
    CLUSTER_RESTART_MAX_SECONDS,
    CLUSTER_RESTART_SECONDS,
    CLUSTER_STARTED_SECONDS,
)
from harebell.cluster.process_config import check_stores
from harebell.management.http.listening import bound_for
from harebell.management.http.serving import http_addresses
from harebell.management.metrics.serving import metrics_addresses
from harebell.server.background_tasks import BackgroundTasks
from harebell.server.net.acceptor import bound
from harebell.server.net.handed_sockets import HandedSockets
from harebell.server.net.listen_address import ListenAddress, listen_addresses, refused
from harebell.server.net.tcp_options import options_of
from harebell.server.net.tls import StartError
from harebell.server.service_manager import ServiceManager

if TYPE_CHECKING:
    from harebell.cluster.workers.layout import Layout
    from harebell.config import Config

_COMPLETE = b"Server startup complete\n"
_NOTIFICATION_BYTES = 4096


class _Process:
    """The process of one store.

    Args:
        number: of the store.
        directory: for the socket on which it reports that it is ready.
    """

    def __init__(self, number: int, directory: Path) -> None:
        self.number = number
        self.ready = asyncio.Event()
        self.running: asyncio.subprocess.Process | None = None
        self.status = ""
        self._reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.address = str(directory / str(number))
        self._reports.bind(self.address)
        self._reports.setblocking(False)
        asyncio.get_running_loop().add_reader(self._reports, self._reported)

    def signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.running is not None and self.running.returncode is None:
            with suppress(ProcessLookupError):
                self.running.send_signal(number)

    def close(self) -> None:
        """Take no more reports."""
        asyncio.get_running_loop().remove_reader(self._reports)
        self._reports.close()

    def _reported(self) -> None:
        with suppress(BlockingIOError):
            lines = self._reports.recv(_NOTIFICATION_BYTES).decode(errors="replace").splitlines()
            if "READY=1" in lines:
                self.ready.set()


class Supervisor:
    """Starts the processes of all stores, and ends with them.

    Args:
        config: the configuration of the broker.
        say: called with the lines that the process of store 1 prints.
        report: called with a level and a line.
    """

    def __init__(
        self, config: Config, say: Callable[[str], None], report: Callable[[str, str], None]
    ) -> None:
        self._config = config
        self._say = say
        self._report = report
        self._manager = ServiceManager(os.environ, os.getpid())
        self._ending = asyncio.Event()
        self._code = 0
        self._processes: list[_Process] = []
        self._handed = HandedSockets()
        self._layout: Layout | None = None
        self._completing = BackgroundTasks()

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT, and return the exit code.

        Raises:
            StartError: a port cannot be used.
            StoreError: the data directory cannot be used.
        """
        check_stores(self._config)
        loop = asyncio.get_running_loop()
        if not self._config.storage:
            # Imported only if it is used: with PostgreSQL the stores are in a database.
            from harebell.cluster.workers.layout import Layout

            self._layout = Layout(self._config)
        try:
            self._handed = await self._bind()
        except StartError:
            self._close()
            raise
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ending.set)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        directory = Path(tempfile.mkdtemp(prefix="harebell-"))
        numbers = range(stores.FIRST_STORE, stores.FIRST_STORE + self._config.storage_stores)
        try:
            self._processes = [_Process(number, directory) for number in numbers]
            async with asyncio.TaskGroup() as group:
                for each in self._processes:
                    group.create_task(self._keep(each))
                reporting = group.create_task(self._report_ready())
                await self._ending.wait()
                reporting.cancel()
                self._manager.stopping()
                for each in self._processes:
                    each.signal(signal.SIGTERM)
        finally:
            self._completing.cancel()
            for each in self._processes:
                each.close()
            self._handed.close()
            self._manager.close()
            self._close()
            shutil.rmtree(directory, ignore_errors=True)
        return self._code

    def _close(self) -> None:
        if self._layout is not None:
            self._layout.close()

    async def _bind(self) -> HandedSockets:
        """Open the ports that all processes listen at.

        Raises:
            StartError: a port cannot be used.
        """
        loop, config = asyncio.get_running_loop(), self._config
        listening: list[tuple[ListenAddress, list[socket.socket]]] = []
        try:
            for asked in listen_addresses(config):
                try:
                    listening.append(
                        (asked, await bound(loop, asked.host, asked.port, options_of(config)))
                    )
                except OSError as error:
                    raise refused(asked, error) from None
            for asked, key, given in http_addresses(config):
                try:
                    listening.append((asked, await bound_for(asked.host, asked.port, key)))
                except StartError as error:
                    if given:
                        raise
                    self._report("warning", f"no HTTP API: {error}")
            # With PostgreSQL the processes of a machine have a port each, as some stand by.
            for asked, key, _ in [] if config.storage else metrics_addresses(config):
                listening.append((asked, await bound_for(asked.host, asked.port, key)))
        except StartError:
            HandedSockets(listening).close()
            raise
        return HandedSockets(listening)

    def _hang_up(self) -> None:
        for each in self._processes:
            each.signal(signal.SIGHUP)

    async def _report_ready(self) -> None:
        """Report to the service manager when clients of every store can connect."""
        await self._until_ready()
        self._manager.ready(f"{len(self._processes)} stores, a process each")

    async def _until_ready(self) -> None:
        """Wait until all processes are ready, or the end has begun."""
        loop = asyncio.get_running_loop()
        ending = loop.create_task(self._ending.wait())
        try:
            for each in self._processes:
                ready = loop.create_task(each.ready.wait())
                await asyncio.wait((ready, ending), return_when=asyncio.FIRST_COMPLETED)
                ready.cancel()
        finally:
            ending.cancel()

    async def _keep(self, process: _Process) -> None:
        """Start the process of a store, and again when it has ended by itself."""
        loop = asyncio.get_running_loop()
        pause = CLUSTER_RESTART_SECONDS
        while not self._ending.is_set():
            began = loop.time()
            code = await self._run_once(process)
            if self._layout is not None:
                self._layout.ended(process.number)
            if self._ending.is_set():
                # One that has not begun to serve ends by the signal itself.
                self._code = self._code or (0 if code == -signal.SIGTERM else code)
                return
            if not process.ready.is_set():
                # It has never served: a fault such as a wrong password would only repeat itself.
                self._code = code or 1
                self._ending.set()
                return
            if loop.time() - began > CLUSTER_STARTED_SECONDS:
                pause = CLUSTER_RESTART_SECONDS
            self._report(
                "error",
                f"the process of store {process.number} has ended with code {code}, and is started "
                f"again in {pause:g} s",
            )
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), pause)
            pause = min(2 * pause, CLUSTER_RESTART_MAX_SECONDS)

    async def _run_once(self, process: _Process) -> int:
        """Start the process of a store, and wait for its end."""
        environ = dict(os.environ)
        # The service manager watches this process alone.
        for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
            environ.pop(name, None)
        environ["NOTIFY_SOCKET"] = process.address
        environ[stores.VARIABLE] = str(process.number)
        environ[stores.PARENT] = str(os.getpid())
        self._handed.bequeath(environ)
        definitions = self._definitions_of(process.number, environ)
        first = process.number == stores.FIRST_STORE
        try:
            process.running = await asyncio.create_subprocess_exec(
                sys.executable,
                *sys.orig_argv[1:],
                env=environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if first else asyncio.subprocess.DEVNULL,
                pass_fds=[*self._handed.numbers, *definitions],
                # Ctrl-C on a terminal is for this process, which then ends the others.
                start_new_session=True,
            )
        finally:
            for each in definitions:
                os.close(each)
        if self._ending.is_set():
            process.signal(signal.SIGTERM)
        if process.running.stdout is not None:
            await self._pass_on(process.running.stdout)
        return await process.running.wait()

    def _definitions_of(self, store: int, environ: dict[str, str]) -> list[int]:
        """Return the file with the definitions that a process loads, at its first start only."""
        if self._layout is None or store not in self._layout.definitions:
            return []
        from harebell.server.loaded_definitions import bequeathed

        return [bequeathed(self._layout.definitions.pop(store), environ)]

    async def _pass_on(self, lines: asyncio.StreamReader) -> None:
        """Print what the process of store 1 prints; its last line when all stores are ready."""
        async for line in lines:
            if line == _COMPLETE:
                # In a task: if this process ends meanwhile, it must not wait for the others.
                self._completing.start(self._say_complete(line))
            else:
                self._say(_text_of(line))

    async def _say_complete(self, line: bytes) -> None:
        await self._until_ready()
        if not self._ending.is_set():
            self._say(_text_of(line))


def _text_of(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\n")


def run(config: Config, say: Callable[[str], None], report: Callable[[str, str], None]) -> int:
    """Run the processes of all stores until SIGTERM or SIGINT, and return the exit code.

    Raises:
        StartError: the broker cannot start; the text is for the user.
    """

    async def supervise() -> int:
        return await Supervisor(config, say, report).run()

    return asyncio.run(supervise())
