"""The clients of a load, which write down what they sent and saw before they forget it."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Protocol

from harebell.wire.v09 import methods as m
from tests.model.peer import call
from tests.robustness.ledger import Ledger
from tests.robustness.swift import (
    Damaged,
    Delivery,
    Envelope,
    Link,
    acknowledgement,
    body_of,
    number_in,
)

CLASSIC, PRIORITY, STREAM, TX = "load.classic", "load.priority", "load.stream", "load.tx"
MOVED = "load.moved"
ALL_QUEUES = (CLASSIC, PRIORITY, STREAM, TX, MOVED)
TRANSACTED = (TX, MOVED)
"""Transactions publish to both; what is taken from the first may go on to the second in one."""
LEVELS = 4
PLAIN, TRANSACTIONS = 1, 2
WINDOW = 200
MAX_AT_ONCE = 20
PREFETCH = 60
STREAM_BACK = 20
ODDS_OF_RETURNING = 0.02
ODDS_OF_ROLLBACK = 0.2
ODDS_OF_MOVING = 0.3
LAZINESS = (0.0, 0.0, 0.7, 0.95)
_ODDS_OF_A_LONG_BODY = 0.01
_HARMLESS = (m.ConnectionBlocked, m.ConnectionUnblocked, m.ConnectionCloseOk)
_CONNECTION_FORCED = 320
READERS = itertools.count()
MOVERS = 1_000
"""Sources from here on are consumers that publish."""


class Connection(Protocol):
    """What the clients of every version have in common.

    Attributes:
        alive: whether the broker has not closed it.
        broker: the `cluster_name` that the broker has given.
    """

    alive: bool
    broker: str

    def __hash__(self) -> int:
        """Each is itself only."""

    def fileno(self) -> int:
        """The socket's number."""

    def read(self) -> None:
        """Wait for input and take it."""

    def read_if_any(self) -> None:
        """Take input that is there already."""

    def goodbye(self) -> None:
        """Close as one should."""

    def close(self) -> None:
        """Cut the connection without a word."""


class Arrival(Protocol):
    """A delivery, of whatever version."""

    @property
    def redelivered(self) -> bool:
        """The broker's mark."""

    @property
    def offset(self) -> int:
        """Its place in a stream."""

    @property
    def body(self) -> bytes:
        """Its body."""


class Accounts:
    """What outlives the broker: the ledger, everybody's numbers, and the offsets of the stream.

    Args:
        ledger: where it is all written down.
        rng: decides what is sent.
        queues: which of ALL_QUEUES to use.

    Attributes:
        confirmed: numbers of confirmed messages.
        offsets: what the stream showed, by offset.
        sources: who sent the messages of the stream.
        blocked: how often a publisher was told that it is blocked.
        heard: called with the connection of every confirm and delivery, when it is read.
    """

    def __init__(self, ledger: Ledger, rng: Random, queues: tuple[str, ...]) -> None:
        self.ledger = ledger
        self.rng = rng
        self.queues = queues
        self.confirmed: set[int] = set()
        self.offsets: dict[int, int] = {}
        self.sources: dict[int, int] = {}
        self.blocked = 0
        self.heard: Callable[[Connection], None] = lambda _link: None
        self._numbers = itertools.count()
        self._envelopes = {(queue, -1): Envelope(queue) for queue in queues}
        for level in range(LEVELS + 1):
            self._envelopes[PRIORITY, level] = Envelope(PRIORITY, priority=level)

    def message(self, queue: str, source: int, *, sent: bool = True) -> tuple[int, bytes]:
        """A new message as `fresh` has it: its number, and the frames that publish it."""
        number, body, level = self.fresh(queue, source, sent=sent)
        channel = TRANSACTIONS if queue in TRANSACTED else PLAIN
        return number, self._envelopes[queue, level].around(body, channel)

    def fresh(self, queue: str, source: int, *, sent: bool = True) -> tuple[int, bytes, int]:
        """A new message: its number, its body, and its priority, -1 for none.

        Args:
            queue: where to.
            source: the publisher.
            sent: False for one of a transaction that will be rolled back: nobody may see it.
        """
        rng = self.rng
        number = next(self._numbers)
        long = rng.random() < _ODDS_OF_A_LONG_BODY
        body = body_of(number, rng.randbytes(rng.randrange(20_000 if long else 400)))
        level = rng.randrange(LEVELS + 1) if queue == PRIORITY else -1
        if sent:
            self.ledger.sends(number, body, (queue,), (source, queue, level))
        if queue == STREAM:
            self.sources[number] = source
        return number, body, level

    def confirms(self, number: int) -> None:
        """A message was confirmed."""
        self.confirmed.add(number)
        self.ledger.confirms(number)

    def delivers(self, queue: str, delivery: Arrival, reader: int) -> int | None:
        """A message came; its number, if it says one."""
        number: int | None = None
        with suppress(Damaged):
            number = number_in(delivery.body)
        mark = delivery.redelivered
        if queue == STREAM:
            # What a stream shows again is no redelivery; its order is looked at by its offsets.
            mark = True
            if number is not None:
                self._shown(delivery.offset, number)
        self.ledger.delivers(queue, number, delivery.body, redelivered=mark, reader=reader)
        return number

    def _shown(self, offset: int, number: int) -> None:
        before = self.offsets.get(offset, number)
        assert before == number or before not in self.confirmed, (
            f"offset {offset} was message {before}, which was confirmed, and is {number} now"
        )
        self.offsets[offset] = number


def _is_harmless(method: m.Method) -> bool:
    """Whether it says nothing of messages, or only that the broker goes (AMQP 0-9-1 1.2)."""
    going = isinstance(method, m.ConnectionClose) and method.reply_code == _CONNECTION_FORCED
    return going or isinstance(method, _HARMLESS)


class Publisher:
    """Publishes with confirms and in transactions.

    Args:
        accounts: where to write it down.
        port: where the broker listens.
        source: which publisher it is.

    Raises:
        ConnectionError: the broker went.
    """

    def __init__(self, accounts: Accounts, port: int, source: int) -> None:
        self.accounts = accounts
        self.source = source
        self.link = Link(port)
        self.link.on_ack = self._acknowledged
        self.waiting: deque[tuple[int, int]] = deque()
        self.transaction: list[int] | None = None
        self._tag = 0
        self._plain = [queue for queue in accounts.queues if queue not in TRANSACTED]
        self._transacted = [queue for queue in accounts.queues if queue in TRANSACTED]
        self.link.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
        if self._transacted:
            self.link.ask(m.ChannelOpen(), m.ChannelOpenOk, TRANSACTIONS)
            self.link.ask(m.TxSelect(), m.TxSelectOk, TRANSACTIONS)

    def step(self) -> None:
        """Hear what was answered, and publish a little more."""
        self._hear()
        rng = self.accounts.rng
        if len(self.waiting) < WINDOW and self._plain:
            frames = []
            for _ in range(rng.randint(1, MAX_AT_ONCE)):
                number, octets = self.accounts.message(rng.choice(self._plain), self.source)
                self._tag += 1
                self.waiting.append((self._tag, number))
                frames.append(octets)
            self.link.send(b"".join(frames))
        if self._transacted and self.transaction is None:
            self._transact(keep=rng.random() >= ODDS_OF_ROLLBACK)

    def _transact(self, *, keep: bool) -> None:
        rng = self.accounts.rng
        queues = rng.choices(self._transacted, k=rng.randint(1, MAX_AT_ONCE))
        made = [self.accounts.message(queue, self.source, sent=keep) for queue in queues]
        self.transaction = [number for number, _ in made] if keep else []
        self.accounts.ledger.transacts(zip(queues, self.transaction, strict=False))
        end = m.TxCommit() if keep else m.TxRollback()
        self.link.send(b"".join(octets for _, octets in made) + call(TRANSACTIONS, end))

    def _hear(self) -> None:
        while self.link.methods:
            method = self.link.methods.pop(0)
            if isinstance(method, m.TxCommitOk | m.TxRollbackOk):
                self.accounts.heard(self.link)
                assert self.transaction is not None, f"{method.NAME} that nobody waits for"
                for number in self.transaction:
                    self.accounts.confirms(number)
                self.transaction = None
            elif isinstance(method, m.ConnectionBlocked):
                self.accounts.blocked += 1
            else:
                assert _is_harmless(method), method

    def _acknowledged(self, channel: int, tag: int, multiple: bool, refused: bool) -> None:
        self.accounts.heard(self.link)
        assert channel == PLAIN, f"a confirm on channel {channel}"
        assert self.waiting, f"a confirm of {tag}, and nothing waits"
        first = self.waiting[0][0]
        assert first <= tag if multiple else first == tag, f"a confirm of {tag} before {first}"
        while self.waiting and self.waiting[0][0] <= tag:
            _, number = self.waiting.popleft()
            if not refused:
                self.accounts.confirms(number)

    def finish(self) -> None:
        """The broker is gone or everything was said: take in what it said last."""
        self._hear()


class Consumer:
    """Takes messages, acknowledges them a little late, and returns one now and then.

    In a transaction it acknowledges messages and publishes others, as who moves them on does.

    Args:
        accounts: where to write it down.
        port: where the broker listens.
        queues: what to consume.
        draining: read the stream from its beginning, and leave transactions alone.

    Raises:
        ConnectionError: the broker went.

    Attributes:
        stream: offset and number of everything that came from the stream.
    """

    def __init__(
        self, accounts: Accounts, port: int, queues: tuple[str, ...], *, draining: bool = False
    ) -> None:
        self.accounts = accounts
        self.link = Link(port)
        self.link.on_delivery = self._delivered
        self.stream: list[tuple[int, int]] = []
        self._draining = draining
        self._reader = next(READERS)
        self._waiting: dict[int, list[tuple[int, str, int]]] = {PLAIN: [], TRANSACTIONS: []}
        self._committing: list[tuple[str, int]] | None = None
        self._moving: list[tuple[str, int]] = []
        # A lazy consumer lets messages gather, so that what a restart finds is not always little.
        self._laziness = 0.0 if draining else accounts.rng.choice(LAZINESS)
        self._enough = 1
        if TX in queues and not draining:
            self.link.ask(m.ChannelOpen(), m.ChannelOpenOk, TRANSACTIONS)
            self.link.ask(m.TxSelect(), m.TxSelectOk, TRANSACTIONS)
        for queue in queues:
            self._consume(queue)

    def _consume(self, queue: str) -> None:
        arguments: dict[str, object] = {}
        if queue == STREAM:
            back = max(self.accounts.offsets, default=0) - STREAM_BACK
            arguments["x-stream-offset"] = "first" if self._draining or back < 0 else back
        channel = TRANSACTIONS if queue == TX and not self._draining else PLAIN
        self.link.ask(m.BasicQos(prefetch_count=PREFETCH), m.BasicQosOk, channel)
        method = m.BasicConsume(queue=queue, consumer_tag=queue, arguments=arguments)
        self.link.ask(method, m.BasicConsumeOk, channel)

    def _delivered(self, delivery: Delivery) -> None:
        queue = delivery.consumer
        self.accounts.heard(self.link)
        number = self.accounts.delivers(queue, delivery, self._reader)
        if number is None:
            return
        self._waiting[delivery.channel].append((delivery.tag, queue, number))
        if queue == STREAM:
            self.stream.append((delivery.offset, number))

    def step(self) -> None:
        """Hear what was answered, and acknowledge what has gathered."""
        self.finish()
        plain, transacted = self._waiting[PLAIN], self._waiting[TRANSACTIONS]
        rng = self.accounts.rng
        if rng.random() < self._laziness:
            return
        if len(plain) >= self._enough:
            self._enough = rng.randint(1, PREFETCH // 2)
            if plain[-1][1] != STREAM and rng.random() < ODDS_OF_RETURNING:
                tag, _, _ = plain.pop()
                self.link.send(call(PLAIN, m.BasicReject(tag, requeue=True)))
            self.settle()
        if transacted and self._committing is None:
            self._commit(transacted)

    def _commit(self, transacted: list[tuple[int, str, int]]) -> None:
        """Acknowledge what came, and publish some of it to the next queue, as one."""
        self._committing = self._take(transacted)
        octets = acknowledgement(self._latest, multiple=True, channel=TRANSACTIONS)
        accounts, source = self.accounts, MOVERS + self._reader
        self._moving = []
        for _ in self._committing:
            if MOVED in accounts.queues and accounts.rng.random() < ODDS_OF_MOVING:
                number, publish = accounts.message(MOVED, source)
                self._moving.append((MOVED, number))
                octets += publish
        accounts.ledger.transacts(self._moving, self._committing)
        self.link.send(octets + call(TRANSACTIONS, m.TxCommit()))

    def settle(self) -> bool:
        """Acknowledge what came outside of transactions; returns whether there was anything."""
        if not self._waiting[PLAIN]:
            return False
        self._take(self._waiting[PLAIN])
        self.link.send(acknowledgement(self._latest, multiple=True))
        return True

    def _take(self, waiting: list[tuple[int, str, int]]) -> list[tuple[str, int]]:
        """What waits is about to be acknowledged, but whether the broker hears it is open."""
        self._latest = waiting[-1][0]
        items = [(queue, number) for _, queue, number in waiting]
        waiting.clear()
        for queue, number in items:
            self.accounts.ledger.settles(queue, number)
        return items

    def finish(self) -> None:
        """Take in what the broker answered: a committed acknowledgement is for good."""
        while self.link.methods:
            method = self.link.methods.pop(0)
            if isinstance(method, m.TxCommitOk):
                assert self._committing is not None, "a tx.commit-ok that nobody waits for"
                for queue, number in self._committing:
                    self.accounts.ledger.settles(queue, number, durable=True)
                for _, number in self._moving:
                    self.accounts.confirms(number)
                self._committing = None
            else:
                assert _is_harmless(method), method
