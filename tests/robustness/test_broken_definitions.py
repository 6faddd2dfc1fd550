"""Calls to the database of definitions fail, and nothing that was answered with ok is lost.

strace has the N-th call of a kind fail that concerns the database or its write-ahead log, in a
broker that declares, binds and deletes. A disk that is full is waited for; after anything else the
broker says so and ends, or does not start. The next one has exactly what was answered, and of what
was not answered no half.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from harebell.store.definitions import NAME
from harebell.wire.v09 import methods as m
from tests.model.peer import publish
from tests.patience import SECONDS
from tests.robustness import strace
from tests.robustness.lives import kill, life
from tests.robustness.swift import Link
from tests.running import DidNotStart

EXCHANGE = "things"
COUNT = 25
LATEST = 40
"""Beyond so many calls of a kind the steps below are over."""
EXIT_CODES = (1, 74)


class Steps:
    """Queues that are declared, bound, and some of them deleted, and what was answered.

    Attributes:
        sure: the queues that are there for certain, bound.
        open: those of which it is not known, for the broker did not answer.
    """

    def __init__(self) -> None:
        self.sure: set[str] = set()
        self.open: set[str] = set()

    def run(self, port: int) -> None:
        """Do it all.

        Raises:
            ConnectionError: the broker went.
        """
        link = Link(port)
        link.ask(m.ExchangeDeclare(EXCHANGE, "fanout", durable=True), m.ExchangeDeclareOk)
        for number in range(COUNT):
            queue = f"q{number}"
            self.open.add(queue)
            link.ask(m.QueueDeclare(queue, durable=True), m.QueueDeclareOk)
            link.ask(m.QueueBind(queue, EXCHANGE), m.QueueBindOk)
            self.open.remove(queue)
            self.sure.add(queue)
            if number % 3 == 2:
                gone = f"q{number - 1}"
                self.sure.remove(gone)
                self.open.add(gone)
                link.ask(m.QueueDelete(gone), m.QueueDeleteOk)
                self.open.remove(gone)
        link.goodbye()

    def judge(self, port: int, where: str) -> None:
        """Every queue that is sure is there and bound, and no other that is not open."""
        link = Link(port)
        link.ask(m.ExchangeDeclare(EXCHANGE, "fanout", durable=True), m.ExchangeDeclareOk)
        found = {name for name in (f"q{n}" for n in range(COUNT)) if _is_there(port, name)}
        assert self.sure <= found, f"{where}: {sorted(self.sure - found)} are gone"
        assert found <= self.sure | self.open, f"{where}: {sorted(found - self.sure)} are back"
        link.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
        acknowledged: list[int] = []
        link.on_ack = lambda _channel, tag, _multiple, _refused: acknowledged.append(tag)
        link.send(_publish_to(EXCHANGE))
        while not acknowledged:
            link.read()
        for queue in sorted(self.sure):
            answer = link.ask(m.QueueDeclare(queue, passive=True), m.QueueDeclareOk)
            assert isinstance(answer, m.QueueDeclareOk)
            assert answer.message_count == 1, f"{where}: {queue} is not bound any more"
        link.goodbye()


def _publish_to(exchange: str) -> bytes:
    return publish(1, exchange, "", b"to all")


def _is_there(port: int, queue: str) -> bool:
    """Whether a queue can be declared passively."""
    link = Link(port)
    try:
        link.ask(m.QueueDeclare(queue, passive=True), m.QueueDeclareOk)
    except AssertionError:
        return False
    else:
        return True
    finally:
        link.close()


def _one(data: Path, call: str, error: str, number: int, *, waits: bool) -> bool:
    """One broker whose N-th call fails, and the next; whether the fault was met."""
    where = f"{call} {number} fails with {error}"
    trace = data.with_suffix(".trace")
    only = [word for name in ("", "-wal") for word in ("-P", str(data / f"{NAME}{name}"))]
    command = strace.log_to(strace.fail_at(call, error, number, for_ever=False), trace)
    steps = Steps()
    refused = ""
    try:
        with life(data, prefix=[command[0], *only, *command[1:]]) as broker:
            try:
                steps.run(broker.port)
            except ConnectionError:
                assert not waits, f"{where}: it did not wait\n{broker.log}"
                assert broker.process.wait(SECONDS) in EXIT_CODES, f"{where}\n{broker.log}"
                assert NAME in broker.log, f"{where}: the log does not name it\n{broker.log}"
            assert "Traceback" not in broker.log, f"{where}\n{broker.log}"
            kill(broker)
    except DidNotStart as stopped:
        refused = str(stopped)
    assert not refused or (NAME in refused and "Traceback" not in refused), f"{where}: {refused}"
    with life(data) as broker:
        steps.judge(broker.port, where)
    return "(INJECTED)" in trace.read_text()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("call", "error", "waits"),
    [
        ("pwrite64", "EIO", False),
        ("pwrite64", "ENOSPC", True),
        ("fdatasync", "EIO", False),
    ],
)
def test_declarations_are_there_although_the_database_failed(
    call: str, error: str, waits: bool, tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    rng = Random(seed)
    met = 0
    numbers = [2, *rng.sample(range(3, LATEST), 2)]
    for number in numbers:
        data = tmp_path / f"at {number}"
        met += _one(data, call, error, number, waits=waits)
    counted(f"{met} of {len(numbers)} calls failed")
    assert met > 0
