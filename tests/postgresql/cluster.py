"""Several brokers over one store, each in a process of its own; one that stands by is one, too."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from harebell.management.control.client import ControlError, ask_command, ask_overview
from tests.patience import eventually
from tests.ports import free_port
from tests.running import command, environment

LEASE_MS = 8_000
"""A machine may stand still for seconds before a broker loses its store, which no test expects."""


class Member:
    """A broker of a store.

    Args:
        url: of the database.
        name: of the broker.
        **settings: keys of the configuration.

    Attributes:
        port: for AMQP; the same in all of its lives.
        data_dir: the data directory.
    """

    def __init__(self, url: str, name: str, **settings: object) -> None:
        self.name = name
        self.port = free_port()
        self._temporary = tempfile.TemporaryDirectory(prefix="harebell-")
        self.data_dir = Path(self._temporary.name) / "data"
        self._log = Path(self._temporary.name) / "log"
        self._url = url
        given = {"storage_lease_ms": LEASE_MS, "port": self.port, **settings}
        self._flags = [f"--{key.replace('_', '-')}={value}" for key, value in given.items()]
        self.start()

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(command(), "serve", "--data-dir", str(self.data_dir), *self._flags),
                    *("--node-name", self.name),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment({"HAREBELL_STORAGE": self._url}),
            )

    @property
    def log(self) -> str:
        """Everything that it has printed."""
        return self._log.read_text(errors="replace")

    @property
    def amqp(self) -> str:
        """The URL for clients."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    def overview(self) -> dict[str, Any]:
        """The figures of `harebell status`; empty if it does not answer."""
        try:
            return ask_overview(self.data_dir)
        except (ControlError, OSError):
            return {}

    def ask(self, asked: str, **fields: Any) -> Any:
        """Run a command."""
        return ask_command(self.data_dir, asked, fields)

    @property
    def state(self) -> str:
        """Which state it says that it is in; "" if it does not answer."""
        return str(self.overview().get("state", ""))

    def wait(self, state: str) -> Member:
        """Wait until it is in a state; returns itself."""
        assert eventually(lambda: self.state == state, 60.0), f"{self.name}: {self.log}"
        return self

    def kill(self) -> None:
        """End it as a crash would."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """End it in good order."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60.0)

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.process.poll() is None:
                self.stop()
        finally:
            if self.process.poll() is None:
                self.kill()
            self._temporary.cleanup()
