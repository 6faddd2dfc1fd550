"""The brokers that the client is tested against, Harebell and RabbitMQ, behind one interface."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Protocol

from harebell.client import aio, blocking
from tests.interop.rabbitmq import RabbitNode, all_stopped
from tests.patience import eventually
from tests.ports import free_port
from tests.running import RunningBroker

# Several, for a queue alone goes to disk before it fills so much memory.
_BALLAST = [f"ballast-{number}" for number in range(4)]
_MEBIBYTE = 1 << 20
_WATERMARK_MEBIBYTES = 48


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
            *("--memory-high-watermark", f"{_WATERMARK_MEBIBYTES}MiB"),
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
        """Fill queues with more than the watermark allows."""
        asyncio.run(self._fill())

    async def _fill(self) -> None:
        async with aio.connect(self.url) as connection:
            channel = await connection.channel(confirms=False)
            for queue in _BALLAST:
                await channel.declare_queue(queue)
            for number in range(_WATERMARK_MEBIBYTES + 1):
                # Without waiting for the socket: the last ones are not read any more.
                queue = _BALLAST[number % len(_BALLAST)]
                channel.publish_nowait(bytes(_MEBIBYTE), routing_key=queue)
            await connection.blocked.wait()

    def unblock_publishers(self) -> None:
        """Delete those queues; a connection that does not publish is not blocked."""
        with blocking.connect(self.url) as connection:
            for queue in _BALLAST:
                connection.channel().delete_queue(queue)


class RabbitBroker(RabbitNode):
    """A RabbitMQ node with TLS."""

    name = "rabbitmq"


def make_broker(name: str, certificates: Path) -> Broker:
    """A broker by its name, not started."""
    if name == HarebellBroker.name:
        return HarebellBroker(certificates)
    return RabbitBroker(certificates)
