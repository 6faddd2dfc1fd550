"""The brokers that the client is tested against, Harebell and RabbitMQ, behind one interface."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Protocol

from tests.interop.rabbitmq import RabbitNode, all_stopped
from tests.patience import eventually
from tests.ports import free_port
from tests.running import RunningBroker, set_watermark

# Several, for a queue alone goes to disk before it fills so much memory.


class Broker(Protocol):
    """A broker process that can be killed and started again at the same address."""

    name: str

    @property
    def url(self) -> str:
        """Its address for plain AMQP, without a virtual host."""

    @property
    def tls_port(self) -> int:
        """Its port for TLS."""

    def start(self) -> None:
        """Start it; returns when it takes connections."""

    def freeze(self) -> None:
        """Let it do nothing more, until it is killed."""

    def kill(self) -> None:
        """End it without a farewell."""

    def stop(self) -> None:
        """End it for good."""

    def block_publishers(self) -> None:
        """Make it short of memory."""

    def unblock_publishers(self) -> None:
        """Give it room again."""


class HarebellBroker:
    """`harebell serve` with TLS, on ports that survive a restart."""

    name = "harebell"

    def __init__(self, certificates: Path) -> None:
        self.port = free_port()
        self._tls_port = free_port()
        self._certificates = certificates
        self._running: RunningBroker | None = None

    @property
    def url(self) -> str:
        """Its address for plain AMQP, without a virtual host."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}"

    @property
    def tls_port(self) -> int:
        """Its port for TLS."""
        return self._tls_port

    def start(self) -> None:
        """Start it; returns when it takes connections."""
        where = self._certificates
        self._running = RunningBroker(
            *("--port", str(self.port), "--tls-port", str(self._tls_port)),
            *("--tls-cert", str(where / "server.pem"), "--tls-key", str(where / "server.key")),
        )

    def freeze(self) -> None:
        """Let it do nothing more, until it is killed."""
        assert self._running is not None
        process = self._running.process
        process.send_signal(signal.SIGSTOP)
        assert eventually(lambda: all_stopped([process.pid])), "the broker does not stop"

    def kill(self) -> None:
        """End it without a farewell."""
        if self._running is not None:
            self._running.stop(signal.SIGKILL)
            self._running.remove()
            self._running = None

    def stop(self) -> None:
        """End it for good."""
        self.kill()

    def block_publishers(self) -> None:
        """Lower the watermark below what the process uses."""
        assert self._running is not None
        set_watermark(self._running, 0)

    def unblock_publishers(self) -> None:
        """Raise it again."""
        assert self._running is not None
        set_watermark(self._running, 0.9)


class RabbitBroker(RabbitNode):
    """A RabbitMQ node with TLS and AMQP 1.0."""

    name = "rabbitmq"


def make_broker(name: str, certificates: Path) -> Broker:
    """A broker by its name, not started."""
    if name == HarebellBroker.name:
        return HarebellBroker(certificates)
    return RabbitBroker(certificates, plugins=["rabbitmq_amqp1_0"])
