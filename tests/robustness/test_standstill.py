"""A broker, or a client, that stood still for two heartbeats: nobody is cut for that."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aio_pika
import pika
import pytest

from harebell.client.blocking import connect
from tests.interop.matrix import SPOKEN
from tests.patience import eventually
from tests.running import RunningBroker, asked, running_broker
from tests.unit.server.listening import talk

BEAT_SECONDS = 3
"""Half of it less than twice that is how long this process may stand still itself: the broker cuts
it rightly then."""
STILL_SECONDS = 6.6
"""More than two heartbeats."""
PIKA_BEAT_SECONDS, PIKA_STILL_SECONDS = 2, 4.8
"""pika gives the broker up when nothing came for five seconds more than an interval."""


@pytest.fixture(params=["asyncio", "uvloop"])
def broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    with running_broker("--loop", request.param) as started:
        yield started


def stand_still(process: subprocess.Popen[bytes], seconds: float = STILL_SECONDS) -> None:
    """Stop a process as a suspended machine stops it, and let it go on.

    Another process does so: it is not for longer where this one stands still, too.
    """
    pid = process.pid
    script = f"kill -STOP {pid}; sleep {seconds}; kill -CONT {pid}"
    subprocess.run(["sh", "-c", script], check=True)


def stood_still(broker: RunningBroker) -> bool:
    return "the broker stood still for" in broker.log


def test_no_client_of_any_version_is_cut_as_the_broker_stood_still(broker: RunningBroker) -> None:
    url = f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F?heartbeat={BEAT_SECONDS}"
    links = [connect(url, version=each, background_heartbeats=True) for each in SPOKEN]
    stand_still(broker.process)
    assert eventually(lambda: stood_still(broker)), broker.log
    for link in links:
        link.channel().declare_queue("", exclusive=True)
    assert "missed heartbeats" not in broker.log
    for link in links:
        link.close()


def test_pika_and_aio_pika_are_not_cut_as_the_broker_stood_still(broker: RunningBroker) -> None:
    parameters = pika.ConnectionParameters("127.0.0.1", broker.port, heartbeat=PIKA_BEAT_SECONDS)
    blocking = pika.BlockingConnection(parameters)
    url = f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F?heartbeat={PIKA_BEAT_SECONDS}"

    async def idle() -> None:
        async with await aio_pika.connect(url) as other:
            channel = await other.channel()
            still = asyncio.create_task(
                asyncio.to_thread(stand_still, broker.process, PIKA_STILL_SECONDS)
            )
            while not still.done():
                await asyncio.to_thread(blocking.process_data_events, 0.05)
            await still
            assert await asyncio.to_thread(eventually, lambda: stood_still(broker))
            await channel.declare_queue("", exclusive=True)

    asyncio.run(idle())
    blocking.channel().queue_declare("", exclusive=True)
    assert "missed heartbeats" not in broker.log
    blocking.close()


def allow_handshakes(broker: RunningBroker, config: Path, seconds: int) -> None:
    """Let a broker cut those that have not logged in after so many seconds."""
    config.write_text(f"handshake_timeout_seconds = {seconds}\n")
    done = asked(broker, "config", "reload")
    assert done.returncode == 0, done.stderr


def test_a_handshake_goes_on_after_the_broker_stood_still(tmp_path: Path) -> None:
    config = tmp_path / "harebell.toml"
    config.write_text("")
    with running_broker("--config", str(config)) as broker:
        opened = talk(broker.port)
        slow = pika.ConnectionParameters("127.0.0.1", broker.port, socket_timeout=30)
        allow_handshakes(broker, config, 4)
        os.kill(broker.process.pid, signal.SIGSTOP)
        try:
            # It is accepted by the system, and its header lies in the socket meanwhile.
            early = socket.create_connection(("127.0.0.1", broker.port), timeout=30)
            early.sendall(b"AMQP\x00\x00\x09\x01")
            time.sleep(STILL_SECONDS)
        finally:
            os.kill(broker.process.pid, signal.SIGCONT)
        assert early.recv(4) != b""
        assert "timed out" not in broker.log
        early.close()
        # A client that stands still itself is not what is tried.
        allow_handshakes(broker, config, 600)
        pika.BlockingConnection(slow).close()
        assert "timed out" not in broker.log
        opened.open_channel()


def test_a_peer_that_says_nothing_is_still_cut_after_a_standstill(broker: RunningBroker) -> None:
    url = f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F?heartbeat={BEAT_SECONDS}"
    # Kept in a variable, or it would be closed.
    silent = connect(url)
    stand_still(broker.process)
    assert eventually(lambda: "missed heartbeats from client" in broker.log), broker.log
    del silent


_CLIENT = """
import asyncio, sys
from harebell.client.aio import connect

async def main():
    async with connect(sys.argv[1]) as connection:
        channel = await connection.channel()
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await channel.declare_queue("", exclusive=True)
        print("still open", flush=True)

asyncio.run(main())
"""


def test_a_client_does_not_give_the_broker_up_as_it_stood_still_itself() -> None:
    # The broker is patient here: what is tried is the client's own judgement.
    with running_broker() as broker:
        url = f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F?heartbeat={BEAT_SECONDS}"
        client = subprocess.Popen(
            [sys.executable, "-c", _CLIENT, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert client.stdout is not None
        assert client.stdin is not None
        assert client.stdout.readline() == b"open\n"
        os.kill(broker.process.pid, signal.SIGSTOP)
        os.kill(client.pid, signal.SIGSTOP)
        try:
            time.sleep(STILL_SECONDS)
        finally:
            # The client goes on first, and finds nothing from the broker.
            os.kill(client.pid, signal.SIGCONT)
            time.sleep(BEAT_SECONDS / 2)
            os.kill(broker.process.pid, signal.SIGCONT)
        client.stdin.write(b"\n")
        client.stdin.flush()
        out, _ = client.communicate(timeout=60)
        assert out == b"still open\n"
