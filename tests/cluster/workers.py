"""A broker with several workers: `harebell serve --workers 2`, its processes and its clients."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harebell.client.blocking import connect
from harebell.management.control.client import ControlError, ask_command, ask_overview
from tests.patience import eventually
from tests.running import RunningBroker

EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


class Workers:
    """Two workers under one supervisor.

    Args:
        broker: the supervisor.
    """

    def __init__(self, broker: RunningBroker) -> None:
        self.broker = broker

    def amqp(self, vhost: str = "%2F", user: str = "guest:guest") -> str:
        """The URL of a vhost for clients."""
        return f"amqp://{user}@127.0.0.1:{self.broker.port}/{vhost}"

    def data_dir(self, store: int) -> Path:
        """The data directory of a store."""
        root = self.broker.data_dir
        return root if store == 1 else root / "stores" / str(store)

    def ask(self, asked: str, store: int = 1, /, **fields: Any) -> Any:
        """Run a command in the process of a store."""
        return ask_command(self.data_dir(store), asked, fields)

    def pid(self, store: int) -> int:
        """The process of a store; 0 while it has none."""
        try:
            return int(ask_overview(self.data_dir(store))["pid"])
        except (ControlError, OSError):
            return 0

    def add_vhost(self, name: str, store: int) -> None:
        """Add a vhost in a store, where the user guest may do everything."""
        self.ask("vhosts.add", name=name, store=store)
        self.ask("permissions.set", user="guest", vhost=name, **EVERYTHING)

    def kill(self, store: int) -> None:
        """End the process of a store by kill -9, and wait for the next one."""
        before = self.pid(store)
        os.kill(before, signal.SIGKILL)
        assert eventually(lambda: self.pid(store) not in (0, before)), self.broker.log

    def pids(self) -> list[int]:
        """The processes of both stores."""
        return [self.pid(1), self.pid(2)]


@contextmanager
def workers(*flags: str, **settings: Any) -> Iterator[Workers]:
    """Two workers for the length of a block; store 2 has the vhost "far"."""
    with RunningBroker("--workers", "2", *flags, **settings) as broker:
        found = Workers(broker)
        if "far" not in {row["name"] for row in found.ask("vhosts.list")}:
            found.add_vhost("far", 2)
        yield found


def publish(url: str, *bodies: bytes, queue: str = "jobs") -> None:
    """Publish persistent messages, and wait for their confirms."""
    with connect(url) as connection, connection.channel(confirms=True) as channel:
        channel.declare_queue(queue, durable=True)
        for body in bodies:
            channel.publish(body, routing_key=queue, delivery_mode=2)


def take_all(url: str, queue: str = "jobs") -> list[bytes]:
    """Take everything out of a queue."""
    bodies = []
    with connect(url) as connection, connection.channel() as channel:
        while (found := channel.get(queue, no_ack=True)) is not None:
            bodies.append(bytes(found.body))
    return bodies
