"""Two machines with two stores each, while processes and machines are killed, drained and moved.

Clients publish with confirms in a vhost of each store, through whichever machine answers. What was
confirmed has to be there at the end, in its order.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from random import Random

import pytest

from harebell.client.blocking import connect
from harebell.client.errors import AMQPError
from harebell.management.control.client import ControlError
from tests.patience import eventually
from tests.postgresql.machine import Machine
from tests.postgresql.servers import PostgresServer
from tests.running import opens

CYCLES = int(os.environ.get("HAREBELL_POSTGRESQL_CYCLES", "40"))
VHOSTS = ("near", "far")
QUEUE = "numbers"
_PAUSE_SECONDS = 0.05


class Publisher:
    """Publishes numbers in one vhost until it is ended, and notes which were confirmed.

    Args:
        machines: where it connects, one after the other.
        vhost: its vhost.

    Attributes:
        confirmed: the numbers, in their order.
    """

    def __init__(self, machines: tuple[Machine, Machine], vhost: str) -> None:
        self.confirmed: list[int] = []
        self._urls = [each.amqp(vhost) for each in machines]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._publish, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Publish no more."""
        self._over.set()
        self._thread.join()

    def _publish(self) -> None:
        number = 0
        while not self._over.is_set():
            # The next one after an error is the one that was not confirmed.
            with (
                suppress(AMQPError, OSError),
                connect(self._urls[0]) as connection,
                connection.channel(confirms=True) as channel,
            ):
                while not self._over.is_set():
                    channel.publish(b"%d" % number, routing_key=QUEUE, delivery_mode=2)
                    self.confirmed.append(number)
                    number += 1
            self._urls.reverse()
            self._over.wait(_PAUSE_SECONDS)


class Cluster:
    """The two machines, and what is done to them.

    Args:
        machines: both of them.
        rng: decides which of them it is.
    """

    def __init__(self, machines: tuple[Machine, Machine], rng: Random) -> None:
        self.machines = machines
        self._rng = rng
        self.faults: dict[str, Callable[[Machine, Machine], None]] = {
            "process": self._kill_process,
            "machine": self._crash,
            "lost machine": self._lose,
            "drain": self._drain,
            "move": self._move,
        }

    def strike(self, fault: str) -> None:
        """Do something to one of the machines, and wait until everything is served again."""
        one, two = self._rng.sample(self.machines, 2)
        self.faults[fault](one, two)
        self.wait_until_served()

    def wait_until_served(self) -> None:
        """Wait until every process runs, and every vhost can be opened at each machine."""
        for each in self.machines:
            assert eventually(lambda: "" not in each.states(), 60.0), each.log  # noqa: B023
            for vhost in VHOSTS:
                url = each.amqp(vhost)
                assert eventually(lambda: opens(url), 60.0), f"{vhost}: {each.log}"  # noqa: B023

    def _kill_process(self, one: Machine, _: Machine) -> None:
        os.kill(self._rng.choice(one.pids()), signal.SIGKILL)

    def _crash(self, one: Machine, _: Machine) -> None:
        one.crash()
        one.member.start()

    def _lose(self, one: Machine, _: Machine) -> None:
        one.crash()
        shutil.rmtree(one.member.data_dir)
        one.member.start()

    def _drain(self, one: Machine, _: Machine) -> None:
        # It may own nothing, or the other one may not be known to stand by yet.
        with suppress(ControlError):
            one.ask("cluster.drain")

    def _move(self, one: Machine, two: Machine) -> None:
        store = self._rng.choice(one.stores)
        with suppress(ControlError):
            one.ask("cluster.move", store, name=two.member.name, store=store)


@pytest.fixture
def cluster(postgresql: PostgresServer, database: str) -> Iterator[Cluster]:
    """Two machines, the first of which owns both stores, with a vhost in each store."""
    url = postgresql.url(database)
    with ExitStack() as stack:
        one = stack.enter_context(Machine(url, "one"))
        one.wait("running")
        two = stack.enter_context(Machine(url, "two"))
        two.wait("standby")
        for store, vhost in enumerate(VHOSTS, 1):
            one.ask("vhosts.add", name=vhost, store=store)
            one.ask(
                "permissions.set", user="guest", vhost=vhost, configure=".*", write=".*", read=".*"
            )
            one.ask("queues.declare", vhost=vhost, name=QUEUE, durable=True)
        places = {row["vhost"] for row in one.ask("queues.list", 1)}
        assert places == set(VHOSTS)
        yield Cluster((one, two), Random(18))


def _taken(url: str) -> list[int]:
    """Take every message; one may come twice, as a store may still move to the other machine."""
    found: list[int] = []

    def takes_all() -> bool:
        with (
            suppress(AMQPError, OSError),
            connect(url) as connection,
            connection.channel() as channel,
        ):
            while (message := channel.get(QUEUE)) is not None:
                found.append(int(message.body))
                message.ack()
            return True
        return False

    assert eventually(takes_all, 60.0), f"{len(found)} messages were taken, and then no more"
    return found


def _play(cluster: Cluster, faults: list[str]) -> None:
    publishers = {vhost: Publisher(cluster.machines, vhost) for vhost in VHOSTS}
    try:
        for fault in faults:
            before = {vhost: len(each.confirmed) for vhost, each in publishers.items()}
            cluster.strike(fault)
            for vhost, each in publishers.items():
                went_on = eventually(
                    lambda: len(each.confirmed) > before[vhost] + 10,  # noqa: B023
                    60.0,
                )
                assert went_on, f"nothing is confirmed in '{vhost}' after a {fault}"
    finally:
        for each in publishers.values():
            each.end()
    for vhost, each in publishers.items():
        found = _taken(cluster.machines[0].amqp(vhost))
        first_seen = list(dict.fromkeys(found))
        assert not set(each.confirmed) - set(found), f"confirmed messages of '{vhost}' are lost"
        assert first_seen == sorted(first_seen), f"messages of '{vhost}' are out of order"


def test_nothing_confirmed_is_lost_in_any_store(cluster: Cluster) -> None:
    _play(cluster, list(cluster.faults))


@pytest.mark.soak
def test_nothing_confirmed_is_lost_in_many_cycles(cluster: Cluster) -> None:
    rng = Random(81)
    _play(cluster, [rng.choice(list(cluster.faults)) for _ in range(CYCLES)])
