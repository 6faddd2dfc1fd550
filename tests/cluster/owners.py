"""Two brokers with real sockets that own the stores of a cluster, in a thread with an event loop.

What the database says of a cluster is written here by hand: which store each vhost is in, and where
the owners are. So an owner can be away, or be somewhere else, without a database.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harebell.cluster.command_caller import SERVICE
from harebell.cluster.command_service import CommandService
from harebell.cluster.commands import ClusterCommands
from harebell.cluster.events import SERVICE as EVENTS
from harebell.cluster.events import EventSender, EventService
from harebell.cluster.link import ClusterListener, Header
from harebell.cluster.stores import ClusterAddress
from harebell.cluster.usage import SERVICE as USAGE
from harebell.cluster.usage import UsageElsewhere, UsageService
from harebell.cluster.users_copy import take_over, written
from harebell.config import Config
from harebell.server.app import App
from harebell.server.logs.logger import Logger
from tests.patience import SECONDS
from tests.ports import free_port
from tests.running import command
from tests.unit.management.http.asking import Api

SECRET = b"of the cluster"
_T = TypeVar("_T")


@dataclass
class Paper:
    """What is written of the cluster.

    Args:
        vhosts: the store of each vhost.
        addresses: where the owners are.
    """

    vhosts: dict[str, int] = field(default_factory=dict)
    addresses: dict[int, ClusterAddress] = field(default_factory=dict)


class PaperDirectory:
    """What one owner knows: all that is on the paper."""

    def __init__(self, paper: Paper, number: int) -> None:
        self.paper = paper
        self.number = number
        self.stores = 2
        self.secret = SECRET

    def store_of(self, vhost: str) -> int | None:
        return self.paper.vhosts.get(vhost)

    def address_of(self, store: int) -> ClusterAddress | None:
        return self.paper.addresses.get(store)

    async def place(self, vhost: str, wanted: int | None = None) -> int:
        counts = {store: list(self.paper.vhosts.values()).count(store) for store in (1, 2)}
        lightest = min(counts, key=lambda each: counts[each])
        return self.paper.vhosts.setdefault(vhost, wanted or lightest)

    async def forget(self, vhost: str) -> None:
        self.paper.vhosts.pop(vhost, None)


class Owner:
    """One broker, and its HTTP API.

    Args:
        config: its configuration.
        number: its store.
        cluster: the other one is there, too.

    Attributes:
        log: the lines that its commands have written.
        links: the connections that have come to its cluster port.
        errors: what the last command line has written to standard error.
    """

    def __init__(self, config: Config, number: int, cluster: Owners) -> None:
        self.config = config
        self.number = number
        self.directory = PaperDirectory(cluster.paper, number)
        self.api = Api(config.management_port or 0)
        self.log: list[str] = []
        self.errors = ""
        self.links: list[asyncio.Transport] = []
        self._cluster = cluster
        self._logger = Logger(config)

    async def start(self) -> None:
        app = self.app = App(self.config, self._logger)
        await app.start()
        dispatcher, context = app.dispatcher, app.dispatcher.context
        if self.number != 1:
            await dispatcher.run(self._leave_shared)
        write = context.log

        def log(level: str, line: str) -> None:
            self.log.append(line)
            write(level, line)

        context.log = log
        commands = self.commands = ClusterCommands(
            dispatcher, self.directory, context, self._cluster.copy_users
        )
        service = self.service = CommandService(context, dispatcher, self.directory, commands)

        def serve(header: Header, transport: asyncio.Transport) -> None:
            self.links.append(transport)
            service.serve(header, transport)

        events, lines = app.broker.events, app.broker.log
        published = EventService(events, lines, app.flush_soon, log)
        self.usage = UsageService(app.broker, app.registry, context.users, log)
        services = {SERVICE: serve, EVENTS: published.serve, USAGE: self.usage.serve}
        self.listener = ClusterListener(services, SECRET, None, log)
        await self.listener.listen("127.0.0.1", 0)
        self.events: EventService | EventSender = published
        if self.number != 1:
            self.events = EventSender(self.directory, events, lines, "far@localhost", log)
        dispatcher.cluster = commands
        self.elsewhere = UsageElsewhere(self.directory, lambda _: True, log)
        app.settings.used_elsewhere = self.elsewhere.of_user
        app.settings.open_elsewhere = self.elsewhere.of_node
        app.broker.ceilings.elsewhere = self.elsewhere.declared
        self.come_back()

    def _leave_shared(self) -> None:
        """Have no vhost of its own, and no users: those of store 1 come."""
        context = self.app.dispatcher.context
        context.broker.delete_vhost(context.broker.vhosts["/"])
        for user in context.users.all():
            user.permissions.clear()

    def go_away(self) -> None:
        """Be unknown to the other owner."""
        self.directory.paper.addresses.pop(self.number, None)

    def come_back(self) -> None:
        address = ClusterAddress(1, f"127.0.0.1:{self.listener.port}", "")
        self.directory.paper.addresses[self.number] = address

    async def stop(self) -> None:
        self.listener.close()
        self.service.close()
        self.commands.close()
        self.events.close()
        self.usage.close()
        self.elsewhere.close()
        await self.app.stop()
        self._logger.close()

    def run(self, *words: str) -> str:
        """Run the command line on it; returns its output, and its errors if it fails."""
        done = subprocess.run(
            [command(), *words, "--data-dir", str(self.config.data_dir)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        self.errors = done.stderr
        return done.stdout if done.returncode == 0 else done.stderr

    def json(self, *words: str) -> Any:
        """The answer of a command line with --json."""
        return msgspec.json.decode(self.run(*words, "--json"))


class Owners:
    """Both brokers, in a thread of their own.

    Args:
        directory: for their data.
        settings: keys of both configurations.
    """

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.paper = Paper({"/": 1})
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.both: list[Owner] = []
        for number in (1, 2):
            config = Config(
                data_dir=directory / str(number),
                port=0,
                management_port=free_port(),
                metrics_port=0,
                log_file=str(directory / f"{number}.log"),
                **settings,
            )
            self.both.append(Owner(config, number, self))

    async def start(self) -> None:
        for owner in self.both:
            await owner.start()
        await self.copy_users()

    async def copy_users(self) -> None:
        """Copy the users, as the database does."""
        first, second = (each.app.dispatcher for each in self.both)
        text = await written(first.context.users)
        await second.run(lambda: take_over(text, second.context))

    def call(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run something in the loop of the brokers."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(SECONDS)

    def do(self, act: Callable[[], _T]) -> _T:
        """Call something in the loop of the brokers."""

        async def work() -> _T:
            return act()

        return self.call(work())

    async def stop(self) -> None:
        for owner in self.both:
            await owner.stop()

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(SECONDS)
        self.loop.close()


@contextmanager
def running_owners(directory: Path, **settings: Any) -> Iterator[Owners]:
    """Two owners for the length of a block; the settings are those of both."""
    owners = Owners(directory, **settings)
    try:
        owners.call(owners.start())
        yield owners
        owners.call(owners.stop())
    finally:
        owners.end()
