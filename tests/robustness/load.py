"""What clients do to a broker that may die at any moment, written down in a ledger.

Three publishers send over every kind of queue: with confirms to a classic queue, a priority queue
and a stream, and in transactions to two other classic queues; some transactions are rolled back.
Two consumers acknowledge a little late, some of it in transactions that publish too, and return a
message now and then. Each of them speaks AMQP 0-9-1 or 1.0, another one in every life.
All of them run in one thread. A run goes:

    load = Load(seed)
    for every life of the broker:
        load.declare(port)
        load.run(port, ...)            returns when the broker is gone
    load.drain(port)                   takes what is left, and judges
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from random import Random

from harebell.wire.v09 import methods as m
from tests.robustness.clients import (
    ALL_QUEUES,
    CLASSIC,
    LEVELS,
    MOVED,
    PRIORITY,
    STREAM,
    TX,
    Accounts,
    Connection,
    Consumer,
    Consumer1,
    Publisher,
    Publisher1,
)
from tests.robustness.ledger import Ledger, Verdict
from tests.robustness.swift import Link

PUBLISHERS = 3
Client = Publisher | Consumer
_PUBLISHERS: tuple[Callable[[Accounts, int, int], Client], ...] = (Publisher, Publisher1)
_CONSUMERS: tuple[Callable[[Accounts, int, tuple[str, ...]], Client], ...] = (Consumer, Consumer1)
_ARGUMENTS: dict[str, dict[str, object]] = {
    CLASSIC: {},
    PRIORITY: {"x-max-priority": LEVELS},
    STREAM: {"x-queue-type": "stream"},
    TX: {},
    MOVED: {},
}
_QUIET_SECONDS = 0.05
_DRAIN_SECONDS = 300.0
_POLL_SECONDS = 0.002


class Load:
    """A load and its accounts, which outlive the broker.

    Args:
        seed: decides what is sent; the broker's pace decides how much.
        queues: which of ALL_QUEUES to use.

    Attributes:
        lives: how many brokers it has met.
        links: the connections of the run that goes on.
    """

    def __init__(self, seed: int, queues: tuple[str, ...] = ALL_QUEUES) -> None:
        self.seed = seed
        self.queues = queues
        self.lives = 0
        self.links: list[Connection] = []
        self.ledger = Ledger()
        self.accounts = Accounts(self.ledger, Random(seed), queues)

    def declare(self, port: int) -> None:
        """Declare every queue; the same is declared after every restart.

        Raises:
            ConnectionError: the broker went.
        """
        link = Link(port)
        for queue in self.queues:
            arguments = _ARGUMENTS[queue]
            method = m.QueueDeclare(queue=queue, durable=True, arguments=arguments)
            link.ask(method, m.QueueDeclareOk)
        link.goodbye()

    def run(
        self,
        port: int,
        end_at: float,
        kill: Callable[[], None] | None = None,
        meanwhile: Sequence[tuple[float, Callable[[], object]]] = (),
        until: Callable[[], object] = lambda: False,
    ) -> bool:
        """Publish and consume until the broker is gone, and read what it had said before.

        Args:
            port: where it listens.
            end_at: when to call `kill`, or without one to leave it alone (`time.monotonic()`).
            kill: ends the broker.
            meanwhile: what else to do while clients work, and when, in order of time. The end comes
                so much later as they take: clients see what follows for as long on any machine.
            until: ends it before `end_at` when it becomes true.

        Returns:
            Whether the broker went.
        """
        waiting = deque(meanwhile)
        began = time.monotonic()
        self.lives += 1
        self.ledger.restarts()
        everybody: list[Client] = []
        accounts, choice = self.accounts, self.accounts.rng.choice
        try:
            everybody.extend(choice(_PUBLISHERS)(accounts, port, at) for at in range(PUBLISHERS))
            for queues in ((CLASSIC, TX), (CLASSIC, PRIORITY, STREAM, MOVED)):
                here = tuple(queue for queue in queues if queue in self.queues)
                everybody.append(choice(_CONSUMERS)(accounts, port, here))
        except ConnectionError:
            self._leave(everybody)
            return True
        self.links = [each.link for each in everybody]
        # A slow machine takes long to connect them all, and would see nothing else.
        end_at += time.monotonic() - began
        killed = False
        while living := [each for each in everybody if each.link.alive]:
            if not killed and (time.monotonic() >= end_at or until()):
                if kill is None:
                    break
                kill()
                killed = True
            while waiting and time.monotonic() >= waiting[0][0]:
                began = time.monotonic()
                waiting.popleft()[1]()
                end_at += time.monotonic() - began
            living = [each for each in living if each.link.alive]
            links = [each.link for each in living]
            for link in select.select(links, [], [], _POLL_SECONDS)[0]:
                link.read()
            if not killed:
                for each in living:
                    each.step()
        self._leave(everybody)
        for _, action in waiting:
            action()
        return not living

    def _leave(self, everybody: list[Client]) -> None:
        for each in everybody:
            each.link.goodbye()
            each.finish()

    # --- the end --------------------------------------------------------------------------------

    def drain(self, port: int, where: str = "") -> Verdict:
        """Take and acknowledge everything that is left, see that queues are empty, and judge.

        Args:
            port: where the broker listens.
            where: how to come back here, for a failure.
        """
        self.lives += 1
        self.ledger.restarts()
        consumer = Consumer(self.accounts, port, self.queues, draining=True)
        until = time.monotonic() + _DRAIN_SECONDS
        left = {"": 1}
        while any(left.values()):
            if time.monotonic() > until:
                self.ledger.judge().check(where)
                raise AssertionError(f"{where}: not drained in {_DRAIN_SECONDS:g} s: {left}")
            while consumer.link.readable(_QUIET_SECONDS):
                consumer.link.read()
                assert consumer.link.alive, f"{where}: the broker ended the drain"
                consumer.settle()
            left = {queue: self._left(consumer, queue) for queue in self.queues}
            if consumer.settle():
                # These came while it was asked.
                left[""] = 1
        if STREAM in self.queues:
            self._judge_stream(consumer.stream)
        consumer.link.goodbye()
        return self.ledger.judge().check(where)

    def _left(self, consumer: Consumer, queue: str) -> int:
        look = m.QueueDeclare(queue=queue, passive=True)
        answer = consumer.link.ask(look, m.QueueDeclareOk)
        assert isinstance(answer, m.QueueDeclareOk)
        return answer.message_count - (len(consumer.stream) if queue == STREAM else 0)

    def _judge_stream(self, found: list[tuple[int, int]]) -> None:
        """Read from its first offset, a stream has each message once, and each source in order."""
        offsets = [offset for offset, _ in found]
        assert offsets == sorted(set(offsets)), "the offsets of a stream do not grow"
        last: dict[int, int] = {}
        for _, number in found:
            # What nobody sent is in the ledger's verdict.
            source = self.accounts.sources.get(number, -1)
            assert last.get(source, -1) < number, f"message {number} of the stream is out of order"
            last[source] = number
        seen = {number for _, number in found}
        lost = sorted(self.accounts.confirmed & self.accounts.sources.keys() - seen)
        assert not lost, f"{len(lost)} confirmed messages are not in the stream: {lost[:5]}"
