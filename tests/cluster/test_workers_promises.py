"""What one broker promises holds with several workers: XA, leases, back-pressure, heartbeats."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from harebell.client.blocking import connect
from harebell.client.errors import AMQPError
from harebell.management.control.client import ask_overview
from harebell.wire.v09 import methods as m
from tests.cluster.certificates import make_certificate
from tests.cluster.workers import Workers, take_all, workers
from tests.model.peer import FRAME_MAX, call, login
from tests.patience import SECONDS, eventually
from tests.robustness.prepared_lives import Branches, LostError
from tests.robustness.swift import Envelope, Link

KILLS = 6
HEARTBEATS = 6
"""Seconds: a broker that misses those of its client closes it after two or three."""
LEASED = 40


@pytest.mark.parametrize(("store", "vhost"), [(1, "/"), (2, "far")])
def test_a_prepared_branch_outlives_kills_of_its_worker(store: int, vhost: str, seed: int) -> None:
    rng = Random(seed)
    branches = Branches(seed, vhost)
    with workers() as found:
        for _ in range(KILLS):
            goal = branches.ended + rng.randint(1, 6)
            killed = threading.Event()

            def kill(goal: int = goal, killed: threading.Event = killed) -> None:
                assert eventually(lambda: branches.ended >= goal)
                killed.set()
                found.kill(store)

            killer = threading.Thread(target=kill, daemon=True)
            killer.start()
            # A client may come before the worker has started again, and be lost at once.
            while not killed.is_set():
                with pytest.raises(LostError):
                    branches.live(found.broker.port)
            killer.join()
        assert "Traceback" not in found.broker.log
        branches.settle(found.broker.port)


def test_claims_outlive_kills_of_each_worker() -> None:
    with workers() as found:
        with connect(found.amqp("far")) as connection:
            channel = connection.channel(confirms=True)
            channel.declare_queue("q", durable=True)
            bodies = [b"%d" % number for number in range(LEASED)]
            channel.publish_many(iter(bodies), routing_key="q", delivery_mode=2)
            lease = channel.lease_open("q", "g")
            claims = [channel.lease_claim("q", "g", lease.epoch, LEASED // 4) for _ in range(4)]
            assert channel.lease_commit("q", "g", lease.epoch, 2) == LEASED // 2
        for store in (1, 2):
            found.kill(store)
        with connect(found.amqp("far")) as connection:
            channel = connection.channel()
            again = channel.lease_open("q", "g")
            assert (again.epoch, again.committed, again.last, again.lost) == (2, 2, 4, 0)
            assert again.claims == tuple(claims[2:])
        assert take_all(found.amqp("far"), "q") == []
        with connect(found.amqp("far")) as connection:
            channel = connection.channel()
            again = channel.lease_open("q", "g")
            assert channel.lease_release("q", "g", again.epoch) == LEASED // 2
        assert sorted(take_all(found.amqp("far"), "q")) == sorted(bodies[LEASED // 2 :])


# --- clients with TLS are relayed -----------------------------------------------------------------


class _TlsLink(Link):
    """A connection over TLS to a vhost, with a heartbeat of one second.

    Args:
        port: for TLS.
        context: trusts the broker.
        vhost: the vhost.

    Attributes:
        heartbeats: how many have come.
    """

    def __init__(self, port: int, context: ssl.SSLContext, vhost: str) -> None:
        self._begin(context.wrap_socket(socket.create_connection(("127.0.0.1", port), SECONDS)))
        self.heartbeats = 0
        self.send(login(vhost=vhost, heartbeat=1) + call(1, m.ChannelOpen()))
        self.until(m.ChannelOpenOk)

    def _frame(self, kind: int, channel: int, data: bytes, at: int, size: int) -> None:
        self.heartbeats += kind == 8
        super()._frame(kind, channel, data, at, size)

    def sent(self, data: bytes) -> int:
        """Write as much as goes without waiting; reads meanwhile. Returns how many bytes went."""
        self.socket.setblocking(False)
        try:
            return self.socket.send(data)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError, BlockingIOError):
            return 0
        finally:
            self.socket.settimeout(SECONDS)

    def take(self) -> None:
        """Read what is there."""
        pending = self.socket.pending()  # type: ignore[attr-defined]
        if pending or select.select([self.socket], [], [], 0.05)[0]:
            self.socket.setblocking(False)
            try:
                self.read()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                """Only a part of a record has come."""
            finally:
                self.socket.settimeout(SECONDS)


@contextmanager
def _with_tls(tmp_path: Path, *flags: str) -> Iterator[tuple[Workers, int, ssl.SSLContext]]:
    certificate = make_certificate(tmp_path / "certificate.pem")
    files = ("--tls-cert", str(certificate), "--tls-key", str(certificate))
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    with workers("--tls-port", "0", *files, *flags) as found:
        yield found, int(found.broker.address("amqps").rpartition(":")[2]), context


def _relayed(found: Workers, port: int, context: ssl.SSLContext) -> _TlsLink:
    """A client of store 2 that the process of store 1 has accepted."""

    def relayed() -> int:
        return int(ask_overview(found.data_dir(1))["connections_passed_on"])

    while True:
        assert eventually(lambda: relayed() == 0)
        link = _TlsLink(port, context, "far")
        if relayed():
            return link
        link.close()


def test_a_relayed_publisher_is_slowed_down_and_its_heartbeats_go_on(tmp_path: Path) -> None:
    body = bytes(100_000)
    with _with_tls(tmp_path) as (found, port, context):
        link = _relayed(found, port, context)
        acked = [0]

        def confirmed(_channel: int, tag: int, _multiple: bool, refused: bool) -> None:
            assert not refused
            acked[0] = max(acked[0], tag)

        link.on_ack = confirmed
        link.ask(m.QueueDeclare("q", durable=True), m.QueueDeclareOk)
        link.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
        publish = Envelope("q").around(body)
        assert len(body) < FRAME_MAX
        link.send(publish)
        while acked[0] < 1:
            link.read()
        found.ask("config.set", 2, key="memory_high_watermark", value="0")
        # Nothing reads any more, neither the relay nor the owner: the sockets fill up.
        waiting, published = publish, 1
        before = link.heartbeats
        while link.heartbeats < before + HEARTBEATS:
            went = link.sent(waiting)
            waiting = waiting[went:]
            if not waiting:
                published += 1
                waiting = publish
            link.take()
            assert link.alive
        # What fits into the buffers of three sockets and two processes, and not what was offered.
        assert published * len(body) < 64 * 1024 * 1024
        found.ask("config.set", 2, key="memory_high_watermark", value="0.4")
        link.send(waiting)
        published += 1
        while acked[0] < published:
            link.read()
        link.goodbye()
        rows = found.ask("queues.list", 2, vhost="far")
        assert [(row["name"], row["messages"]) for row in rows] == [("q", published)]


def test_a_relayed_client_that_reads_nothing_holds_no_memory(tmp_path: Path) -> None:
    body, count = bytes(100_000), 600
    with _with_tls(tmp_path) as (found, port, context):
        with connect(found.amqp("far")) as connection:
            channel = connection.channel(confirms=True)
            channel.declare_queue("q", durable=True)
            for _ in range(count):
                channel.publish(body, routing_key="q", delivery_mode=2)
        link = _relayed(found, port, context)
        came = [0]

        def delivered(delivery: object) -> None:
            came[0] += 1

        link.on_delivery = delivered
        link.ask(m.BasicConsume("q", no_ack=True), m.BasicConsumeOk)

        def unread() -> int:
            return int(found.ask("queues.list", 2, vhost="far")[0]["messages"])

        # The broker delivers what the buffers take, and the rest stays in the queue.
        assert eventually(lambda: 0 < unread() < count)
        while came[0] < count:
            link.read()
        assert eventually(lambda: unread() == 0)
        link.goodbye()


def test_a_relayed_client_is_told_when_its_worker_is_killed(tmp_path: Path) -> None:
    with _with_tls(tmp_path) as (found, port, context):
        link = _relayed(found, port, context)
        found.kill(2)
        while link.alive:
            link.read()
        again = _relayed(found, port, context)
        found.kill(1)
        while again.alive:
            again.read()
        url = f"amqps://guest:guest@127.0.0.1:{port}/far"

        def opens() -> bool:
            try:
                with connect(url, ssl_context=context):
                    return True
            except (AMQPError, OSError):
                return False

        assert all(eventually(opens) for _ in range(4))
