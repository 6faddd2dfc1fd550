"""A machine of a cluster with several stores: `harebell serve` and its process per store."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from harebell.management.control.client import ControlError, ask_command, ask_overview
from tests.patience import eventually
from tests.ports import free_port
from tests.postgresql.cluster import Member


class Machine:
    """One of the machines.

    Args:
        url: of the database.
        name: of its broker.
        stores: how many stores the cluster has.
        **settings: more keys of the configuration.

    Attributes:
        management_port: for the HTTP API.
    """

    def __init__(self, url: str, name: str, stores: int = 2, **settings: object) -> None:
        self.stores = range(1, stores + 1)
        self.management_port = free_port()
        self.member = Member(
            url,
            name,
            storage_stores=stores,
            management_port=self.management_port,
            metrics_port=0,
            **settings,
        )

    @property
    def log(self) -> str:
        """Everything that its processes have printed."""
        return self.member.log

    def amqp(self, vhost: str = "%2F", user: str = "guest:guest") -> str:
        """The URL of a vhost for clients."""
        return f"amqp://{user}@127.0.0.1:{self.member.port}/{vhost}"

    def data_dir(self, store: int) -> Path:
        """The data directory of the process of a store."""
        directory = self.member.data_dir
        return directory if store == 1 else directory / "stores" / str(store)

    def ask(self, asked: str, store: int = 1, /, **fields: Any) -> Any:
        """Run a command in the process of a store."""
        return ask_command(self.data_dir(store), asked, fields)

    def overview(self, store: int) -> dict[str, Any]:
        """The figures of the process of a store; empty if it does not answer."""
        try:
            return ask_overview(self.data_dir(store))
        except (ControlError, OSError):
            return {}

    def states(self) -> list[str]:
        """The state of each process, "" for one that does not answer."""
        return [str(self.overview(each).get("state", "")) for each in self.stores]

    def wait(self, *states: str) -> Machine:
        """Wait until its processes are in these states, the last of which counts for the rest."""
        wanted = [*states, *[states[-1]] * (len(self.stores) - len(states))]
        assert eventually(lambda: self.states() == wanted, 60.0), f"{self.states()}:\n{self.log}"
        return self

    def pids(self) -> list[int]:
        """The processes of its stores that run."""
        found = (self.overview(each).get("pid") for each in self.stores)
        return [each for each in found if each is not None]

    def crash(self) -> None:
        """End all processes as a loss of power would."""
        supervisor = self.member.process.pid
        pids = self.pids()
        # It must not start again what is killed here.
        os.kill(supervisor, signal.SIGSTOP)
        for each in [*pids, supervisor]:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.member.process.wait()

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.member.__exit__(kind, error, trace)
