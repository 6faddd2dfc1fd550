"""The clients of a load, which write down what they sent and saw before they forget it.

`Publisher` and `Consumer` speak AMQP 0-9-1, `Publisher1` and `Consumer1` AMQP 1.0. What comes in
transactions of 1.0 has a session of its own, so that one disposition settles a whole range.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, Protocol

from harebell.wire.v09 import methods as m
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import value_section
from harebell.wire.v1.values import Described, Symbol, ULong
from tests.model.peer import call
from tests.robustness.ledger import Ledger
from tests.robustness.swift import (
    Damaged,
    Envelope,
    Link,
    acknowledgement,
    body_of,
    number_in,
)
from tests.robustness.swift1 import Link1, payload_of

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
_CONTROL = 100
_FRAME_SIZES = (512, 4_096, 131_072)
_ODDS_OF_TWO_TRANSFERS = 0.05
_ODDS_OF_DRAIN = 0.02

Waiting = list[tuple[int, str, int]]
"""Deliveries that are not settled: what the broker numbers them, their queues, their numbers."""


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


# --- AMQP 0-9-1, and what both versions do --------------------------------------------------------


class Publisher:
    """Publishes with confirms and in transactions.

    Args:
        accounts: where to write it down.
        port: where the broker listens.
        source: which publisher it is.

    Raises:
        ConnectionError: the broker went.
    """

    link: Any
    waiting: Any

    def __init__(self, accounts: Accounts, port: int, source: int) -> None:
        self.accounts = accounts
        self.source = source
        self.transaction: list[int] | None = None
        self._plain = [queue for queue in accounts.queues if queue not in TRANSACTED]
        self._transacted = [queue for queue in accounts.queues if queue in TRANSACTED]
        self._connect(port)

    def step(self) -> None:
        """Hear what was answered, and publish a little more."""
        self.finish()
        rng = self.accounts.rng
        if len(self.waiting) < WINDOW and self._plain:
            queues = rng.choices(self._plain, k=rng.randint(1, MAX_AT_ONCE))
            self.link.send(b"".join(map(self._publish, queues)))
        if self._transacted and self.transaction is None and self._begun():
            self._transact(keep=rng.random() >= ODDS_OF_ROLLBACK)

    def _transact(self, *, keep: bool) -> None:
        rng = self.accounts.rng
        queues = rng.choices(self._transacted, k=rng.randint(1, MAX_AT_ONCE))
        made = [(queue, *post) for queue in queues if (post := self._post(queue, keep))]
        self.transaction = [number for _, number, _ in made] if keep else []
        self.accounts.ledger.transacts([each[:2] for each in made] if keep else [])
        self.link.send(b"".join(octets for _, _, octets in made) + self._end(keep))

    def _begun(self) -> bool:
        """Whether there is a transaction; if not, one is asked for."""
        return True

    def _ended(self) -> None:
        """Take it that the transaction has ended."""
        self.accounts.heard(self.link)
        assert self.transaction is not None, "a transaction ends that nobody waits for"
        for number in self.transaction:
            self.accounts.confirms(number)
        self.transaction = None

    def _connect(self, port: int) -> None:
        self.link = Link(port)
        self.link.on_ack = self._acknowledged
        # Of 1.0: numbers of messages by delivery-id; here in order, with their tags.
        self.waiting = deque()
        self._tag = 0
        self.link.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
        if self._transacted:
            self.link.ask(m.ChannelOpen(), m.ChannelOpenOk, TRANSACTIONS)
            self.link.ask(m.TxSelect(), m.TxSelectOk, TRANSACTIONS)

    def _publish(self, queue: str) -> bytes:
        number, octets = self.accounts.message(queue, self.source)
        self._tag += 1
        self.waiting.append((self._tag, number))
        return octets

    def _post(self, queue: str, keep: bool) -> tuple[int, bytes] | None:
        return self.accounts.message(queue, self.source, sent=keep)

    def _end(self, keep: bool) -> bytes:
        return call(TRANSACTIONS, m.TxCommit() if keep else m.TxRollback())

    def finish(self) -> None:
        """Take in what the broker has said."""
        while self.link.methods:
            method = self.link.methods.pop(0)
            if isinstance(method, m.TxCommitOk | m.TxRollbackOk):
                self._ended()
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

    link: Any

    def __init__(
        self, accounts: Accounts, port: int, queues: tuple[str, ...], *, draining: bool = False
    ) -> None:
        self.accounts = accounts
        self._queues = queues
        self.stream: list[tuple[int, int]] = []
        self._draining = draining
        self._reader = next(READERS)
        self._waiting: dict[int, Waiting] = {PLAIN: [], TRANSACTIONS: []}
        self._committing: list[tuple[str, int]] | None = None
        self._moving: list[tuple[str, int]] = []
        self._moves = MOVED in accounts.queues and TX in queues
        # A lazy consumer lets messages gather, so that what a restart finds is not always little.
        self._laziness = 0.0 if draining else accounts.rng.choice(LAZINESS)
        self._enough = 1
        self._connect(port)
        self.link.on_delivery = self._delivered
        for queue in queues:
            self._consume(queue)

    def _channel_of(self, queue: str) -> int:
        return TRANSACTIONS if queue == TX and not self._draining else PLAIN

    def _arrived(self, queue: str, delivery: Any, tag: int) -> None:
        self.accounts.heard(self.link)
        number = self.accounts.delivers(queue, delivery, self._reader)
        if number is None:
            return
        self._waiting[delivery.channel].append((tag, queue, number))
        if queue == STREAM:
            self.stream.append((delivery.offset, number))

    def _back(self) -> int:
        """From which offset to read the stream; below 0 for the first."""
        back = max(self.accounts.offsets, default=0) - STREAM_BACK
        return -1 if self._draining else back

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
                tag, queue, _ = plain.pop()
                self._give_back(tag, queue)
            self.settle()
        if transacted and self._committing is None and self._begun():
            self._commit(transacted)

    def _commit(self, transacted: Waiting) -> None:
        """Acknowledge what came, and publish some of it to the next queue, as one."""
        first, last, self._committing = self._take(transacted)
        accounts, parts = self.accounts, []
        self._moving = []
        for _ in self._committing:
            if self._moves and accounts.rng.random() < ODDS_OF_MOVING:
                number, octets = self._move(MOVERS + self._reader)
                self._moving.append((MOVED, number))
                parts.append(octets)
        accounts.ledger.transacts(self._moving, self._committing)
        self._end(first, last, b"".join(parts))

    def _take(self, waiting: Waiting) -> tuple[int, int, list[tuple[str, int]]]:
        """What waits is about to be acknowledged, but whether the broker hears it is open."""
        first, last = waiting[0][0], waiting[-1][0]
        items = [(queue, number) for _, queue, number in waiting]
        waiting.clear()
        for queue, number in items:
            self.accounts.ledger.settles(queue, number)
        return first, last, items

    def _committed(self) -> None:
        """Take it that the transaction has ended: what it acknowledged is for good."""
        assert self._committing is not None, "a commit that nobody waits for"
        for queue, number in self._committing:
            self.accounts.ledger.settles(queue, number, durable=True)
        for _, number in self._moving:
            self.accounts.confirms(number)
        self._committing = None

    def _begun(self) -> bool:
        """Whether there is a transaction; if not, one is asked for."""
        return True

    def _connect(self, port: int) -> None:
        self.link = Link(port)
        if TX in self._queues and not self._draining:
            self.link.ask(m.ChannelOpen(), m.ChannelOpenOk, TRANSACTIONS)
            self.link.ask(m.TxSelect(), m.TxSelectOk, TRANSACTIONS)

    def _consume(self, queue: str) -> None:
        arguments: dict[str, object] = {}
        if queue == STREAM:
            back = self._back()
            arguments["x-stream-offset"] = "first" if back < 0 else back
        channel = self._channel_of(queue)
        self.link.ask(m.BasicQos(prefetch_count=PREFETCH), m.BasicQosOk, channel)
        method = m.BasicConsume(queue=queue, consumer_tag=queue, arguments=arguments)
        self.link.ask(method, m.BasicConsumeOk, channel)

    def _delivered(self, delivery: Any) -> None:
        self._arrived(delivery.consumer, delivery, delivery.tag)

    def _give_back(self, tag: int, queue: str) -> None:
        self.link.send(call(PLAIN, m.BasicReject(tag, requeue=True)))

    def settle(self) -> bool:
        """Acknowledge what came outside of transactions; returns whether there was anything."""
        if not self._waiting[PLAIN]:
            return False
        _, last, _ = self._take(self._waiting[PLAIN])
        self.link.send(acknowledgement(last, multiple=True))
        return True

    def _move(self, source: int) -> tuple[int, bytes]:
        return self.accounts.message(MOVED, source)

    def _end(self, first: int, last: int, moved: bytes) -> None:
        taken = acknowledgement(last, multiple=True, channel=TRANSACTIONS)
        self.link.send(taken + moved + call(TRANSACTIONS, m.TxCommit()))

    def finish(self) -> None:
        """Take in what the broker has said."""
        while self.link.methods:
            method = self.link.methods.pop(0)
            if isinstance(method, m.TxCommitOk):
                self._committed()
            else:
                assert _is_harmless(method), method


# --- AMQP 1.0 -------------------------------------------------------------------------------------


def _address(queue: str) -> str:
    return f"/queues/{queue}"


def _hear(link: Link1) -> None:
    while link.performatives:
        try:
            link.harmless(link.performatives.pop(0))
        except ConnectionError:
            return


class _Transactions:
    """Declares and discharges one transaction after another on a session of its own.

    Args:
        link: the connection.
        accounts: decides which posts are settled.

    Attributes:
        txn: the id of the open transaction; b"" while there is none.
    """

    def __init__(self, link: Link1, accounts: Accounts) -> None:
        self.txn = b""
        self._link = link
        self._rng = accounts.rng
        self._wish = -1
        link.begin(TRANSACTIONS)
        link.attach(TRANSACTIONS, _CONTROL, c.Source(), c.Coordinator())

    def _ask(self, wish: Any) -> bytes:
        self._wish, octets = self._link.message(TRANSACTIONS, _CONTROL, value_section(wish))
        return octets

    def begun(self) -> bool:
        """Whether a transaction is open; asks for one if no answer is missing."""
        if not self.txn and self._wish < 0:
            self._link.send(self._ask(c.Declare()))
        return bool(self.txn)

    def post(self, handle: int, payload: bytes) -> bytes:
        """The frames of a message in the open transaction."""
        state = c.TransactionalState(self.txn)
        settled = self._rng.random() < 0.5
        return self._link.message(TRANSACTIONS, handle, payload, settled=settled, state=state)[1]

    def retirement(self, first: int, last: int) -> Any:
        """The disposition that accepts these in the open transaction."""
        state = c.TransactionalState(self.txn, c.Accepted())
        return c.Disposition(True, first, last, True, state)

    def discharge(self, *, fail: bool = False) -> bytes:
        """The frames that end the open transaction."""
        txn, self.txn = self.txn, b""
        return self._ask(c.Discharge(txn, fail))

    def outcome(self, first: int, last: int, state: Any) -> bool:
        """Take an outcome of this session; returns whether it ended a transaction."""
        if not first <= self._wish <= last:
            txn = isinstance(state, c.TransactionalState) and isinstance(state.outcome, c.Accepted)
            assert txn, f"a post was answered by {state}"
            return False
        assert first == last or isinstance(state, c.Accepted), state
        self._wish = -1
        if isinstance(state, c.Declared):
            self.txn = state.txn_id
            return False
        assert isinstance(state, c.Accepted), f"a discharge was answered by {state}"
        return True


class Publisher1(Publisher):
    """Publishes unsettled in AMQP 1.0."""

    def _connect(self, port: int) -> None:
        self.link = Link1(port)
        self.waiting = {}
        # By channel and queue, up to which delivery-count the broker gives credit, and the count.
        self._limits: dict[tuple[int, int], int] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self.link.on_outcome = self._settled
        self.link.on_flow = self._credited
        self.link.begin(PLAIN)
        self._attach(PLAIN, self._plain)
        if self._transacted:
            self._transactions = _Transactions(self.link, self.accounts)
            self._attach(TRANSACTIONS, self._transacted)

    def _attach(self, channel: int, queues: list[str]) -> None:
        for handle, queue in enumerate(queues):
            self._counts[channel, handle] = 0
            self.link.attach(channel, handle, c.Source(), c.Target(_address(queue)))

    def _credited(self, channel: int, flow: c.Flow) -> None:
        assert flow.handle is not None
        self._limits[channel, flow.handle] = (flow.delivery_count or 0) + (flow.link_credit or 0)

    def _may(self, channel: int, handle: int, transfers: int) -> bool:
        """Whether there is credit and room for another delivery; counts it if there is."""
        session = self.link.sessions[channel]
        count = self._counts[channel, handle]
        if count >= self._limits.get((channel, handle), 0):
            return False
        if session.transfers + transfers > session.room:
            return False
        self._counts[channel, handle] = count + 1
        return True

    def _publish(self, queue: str) -> bytes:
        handle = self._plain.index(queue)
        if not self._may(PLAIN, handle, 2):
            return b""
        number, body, level = self.accounts.fresh(queue, self.source)
        payload = payload_of(body, level if level >= 0 else None)
        two = self.accounts.rng.random() < _ODDS_OF_TWO_TRANSFERS
        cut = len(payload) // 2 + 1 if two else 0
        delivery, octets = self.link.message(PLAIN, handle, payload, cut=cut)
        self.waiting[delivery] = number
        return bytes(octets)

    def _begun(self) -> bool:
        return self._transactions.begun()

    def _post(self, queue: str, keep: bool) -> tuple[int, bytes] | None:
        handle = self._transacted.index(queue)
        if not self._may(TRANSACTIONS, handle, 1):
            return None
        number, body, _ = self.accounts.fresh(queue, self.source, sent=keep)
        return number, self._transactions.post(handle, payload_of(body))

    def _end(self, keep: bool) -> bytes:
        return self._transactions.discharge(fail=not keep)

    def _settled(self, channel: int, first: int, last: int, state: Any) -> None:
        if channel == TRANSACTIONS:
            if self._transactions.outcome(first, last, state):
                self._ended()
            return
        self.accounts.heard(self.link)
        assert isinstance(state, c.Accepted), f"{first} to {last} were answered by {state}"
        for delivery in range(first, last + 1):
            self.accounts.confirms(self.waiting.pop(delivery))

    def finish(self) -> None:
        """Nothing came that ends a link."""
        _hear(self.link)


class Consumer1(Consumer):
    """Consumes in AMQP 1.0, and drains its links now and then."""

    def _connect(self, port: int) -> None:
        rng = self.accounts.rng
        self.link = Link1(port, rng.choice(_FRAME_SIZES))
        self.link.on_outcome = self._settled
        self.link.on_flow = self._drained
        self._counts: dict[tuple[int, int], int] = {}
        self._at_once = rng.random() < 0.5
        self._in_pieces = rng.random() < 0.3
        self.link.begin(PLAIN)
        if TX in self._queues:
            self._transactions = _Transactions(self.link, self.accounts)
            if self._moves:
                handle, target = len(self._queues), c.Target(_address(MOVED))
                self.link.attach(TRANSACTIONS, handle, c.Source(), target)

    def _consume(self, queue: str) -> None:
        filters: dict[Any, Any] | None = None
        if queue == STREAM:
            back = self._back()
            name = Symbol("rabbitmq:stream-offset-spec")
            filters = {name: Described(name, "first" if back < 0 else ULong(back))}
        channel, handle = self._channel_of(queue), self._queues.index(queue)
        source = c.Source(_address(queue), filter=filters)
        answer = self.link.attach(channel, handle, source, c.Target())
        self._counts[channel, handle] = answer.initial_delivery_count or 0
        self._give(queue)

    def _give(self, queue: str, *, drain: bool = False) -> None:
        channel, handle = self._channel_of(queue), self._queues.index(queue)
        held = sum(each[1] == queue for each in self._waiting[channel])
        count = self._counts[channel, handle]
        self.link.credit(channel, handle, count, PREFETCH - held, drain=drain)

    def _drained(self, channel: int, flow: c.Flow) -> None:
        """The broker says what it has made of the credit."""
        assert flow.handle is not None
        key = channel, flow.handle
        if key in self._counts and flow.drain:
            assert flow.link_credit == 0, flow
            assert flow.delivery_count is not None
            self._counts[key] = flow.delivery_count
            self._give(self._queues[flow.handle])

    def _delivered(self, delivery: Any) -> None:
        self._counts[delivery.channel, delivery.handle] += 1
        self._arrived(self._queues[delivery.handle], delivery, delivery.number)

    def _give_back(self, tag: int, queue: str) -> None:
        back = self.accounts.rng.choice([c.Released(), c.Modified(delivery_failed=True)])
        self.link.say(c.Disposition(True, tag, None, self._at_once, back), PLAIN)
        if not self._waiting[PLAIN]:
            self._give(queue)

    def settle(self) -> bool:
        """Accept what came outside of transactions; returns whether there was anything."""
        plain, rng = self._waiting[PLAIN], self.accounts.rng
        if not plain:
            return False
        queues = sorted({queue for _, queue, _ in plain})
        first, last, _ = self._take(plain)
        ranges = [(first, last)]
        if self._in_pieces:
            middle = rng.randint(first, last)
            ranges = [(middle, last), (first, middle)]
        for each in ranges:
            self.link.say(c.Disposition(True, *each, self._at_once, c.Accepted()), PLAIN)
        for queue in queues:
            self._give(queue, drain=rng.random() < _ODDS_OF_DRAIN)
        return True

    def _begun(self) -> bool:
        return self._transactions.begun()

    def _move(self, source: int) -> tuple[int, bytes]:
        number, body, _ = self.accounts.fresh(MOVED, source)
        return number, self._transactions.post(len(self._queues), payload_of(body))

    def _end(self, first: int, last: int, moved: bytes) -> None:
        self.link.say(self._transactions.retirement(first, last), TRANSACTIONS)
        self.link.send(moved + self._transactions.discharge())
        self._give(TX)

    def _settled(self, channel: int, first: int, last: int, state: Any) -> None:
        """A commit was answered."""
        assert channel == TRANSACTIONS, f"{first} to {last} were answered by {state}"
        if self._transactions.outcome(first, last, state):
            self._committed()

    def finish(self) -> None:
        """Nothing came that ends a link."""
        _hear(self.link)
