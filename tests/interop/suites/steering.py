"""Lets a suite steer the broker that it tests: restart it, raise alarms, run `rabbitmqctl`.

RabbitMQ's client for Java does that with `rabbitmqctl` and with targets of `make`. In their places
are scripts (steered.py) that send their command line here.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, UnixStreamServer
from typing import Protocol

from harebell.testing.running import environment
from tests.interop.rabbitmq import RABBITMQCTL, RabbitNode
from tests.interop.suites.archives import ROOT
from tests.running import RunningBroker, asked

SOCKET = "SUITES_STEERING"
_TOOL_SECONDS = 300.0
_COMPAT = ROOT / "packaging" / "rabbitmq-compat" / "src"
_FULL_DISK, _EMPTY_DISK = "900000GB", "1MB"


class Steered(Protocol):
    """A broker, with what a suite may do to it."""

    def stop(self) -> None:
        """Stop it in good order."""

    def start(self) -> None:
        """Start it again, with what it has kept."""

    def alarm(self, source: str, *, raised: bool) -> None:
        """Raise or clear the alarm "memory" or "disk"."""

    def ctl(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        """Run `rabbitmqctl`."""


class SteeredHarebell:
    """Harebell, with a data directory that outlives a restart."""

    def __init__(self, *flags: str) -> None:
        self._kept = tempfile.TemporaryDirectory(prefix="harebell-")
        self._flags = (*flags, "--data-dir", str(Path(self._kept.name) / "data"))
        self._running = RunningBroker(*self._flags)

    def stop(self) -> None:
        """Stop it in good order."""
        self._running.stop()
        self._running.remove()

    def start(self) -> None:
        """Start it again."""
        self._running = RunningBroker(*self._flags)

    def alarm(self, source: str, *, raised: bool) -> None:
        """Move a limit over what there is, or back."""
        disk = ("disk_free_limit", _FULL_DISK if raised else _EMPTY_DISK)
        memory = ("memory_high_watermark", "0" if raised else "0.4")
        done = asked(self._running, "config", "set", *(disk if source == "disk" else memory))
        if done.returncode:
            raise RuntimeError(done.stderr)

    def ctl(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        """Run the `rabbitmqctl` of packaging/rabbitmq-compat."""
        own = {"HAREBELL_DATA_DIR": str(self._running.data_dir), "PYTHONPATH": str(_COMPAT)}
        command = [sys.executable, "-m", "harebell_rabbitmq_compat", "rabbitmqctl", *words]
        return _run(command, environment(own))

    def end(self) -> None:
        """Stop it for good."""
        self.stop()
        self._kept.cleanup()


class SteeredRabbit:
    """A node of RabbitMQ."""

    def __init__(self, node: RabbitNode) -> None:
        self._node = node

    def stop(self) -> None:
        """Stop the broker, not its Erlang machine, as the targets of RabbitMQ's `make` do."""
        self._node.ctl("stop_app")

    def start(self) -> None:
        """Start the broker again."""
        self._node.ctl("start_app")

    def alarm(self, source: str, *, raised: bool) -> None:
        """Raise or clear an alarm without a reason."""
        which = f"{{resource_limit, {source}, node()}}"
        self._node.ctl(
            "eval",
            f"rabbit_alarm:set_alarm({{{which}, []}})." if raised
            else f"rabbit_alarm:clear_alarm({which}).",
        )  # fmt: skip

    def ctl(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        """Run its own `rabbitmqctl`."""
        return _run([str(RABBITMQCTL), *words], self._node.tool_environment)


def _run(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False
    )


def answer(steered: Steered, words: list[str]) -> tuple[int, str, str]:
    """Do what a command line asks for: its exit code, output and errors."""
    tool, *rest = words
    if tool == "make":
        for target in rest:
            _make(steered, target, dict(word.split("=", 1) for word in rest if "=" in word))
        return (0, "", "")
    # The suite's name of the node, and a header that older versions of the tool did not print.
    if rest[:1] == ["-n"]:
        rest = rest[2:]
    if rest and rest[0].startswith("list_"):
        rest.append("--no-table-headers")
    done = steered.ctl(rest)
    return (done.returncode, done.stdout, done.stderr)


def _make(steered: Steered, target: str, variables: dict[str, str]) -> None:
    acts: dict[str, Callable[[], None]] = {
        "stop-node": steered.stop,
        "stop-rabbit-on-node": steered.stop,
        "start-background-broker": steered.start,
        "start-rabbit-on-node": steered.start,
        "set-resource-alarm": lambda: steered.alarm(variables["SOURCE"], raised=True),
        "clear-resource-alarm": lambda: steered.alarm(variables["SOURCE"], raised=False),
    }
    if target in acts:
        acts[target]()


@contextmanager
def steering(steered: Steered) -> Iterator[None]:
    """Answer the scripts for the length of a block."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            words = json.loads(self.rfile.readline())
            try:
                told = answer(steered, words)
            except (OSError, RuntimeError, subprocess.SubprocessError) as failed:
                told = (1, "", f"{shlex.join(words)}: {failed}\n")
            self.wfile.write(json.dumps(told).encode())

    with tempfile.TemporaryDirectory(prefix="suites-") as home:
        path = str(Path(home) / "steering")
        with UnixStreamServer(path, Handler) as server:
            os.environ[SOCKET] = path
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield
            finally:
                server.shutdown()
                del os.environ[SOCKET]
