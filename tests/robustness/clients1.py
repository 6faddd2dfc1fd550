"""The publisher and the consumer of `clients.py` in AMQP 1.0.

What comes in transactions has a session of its own, so that one disposition settles a whole range.
"""

from __future__ import annotations

from typing import Any

from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import value_section
from harebell.wire.v1.values import Described, Symbol, ULong
from tests.robustness.clients import (
    LAZINESS,
    MAX_AT_ONCE,
    MOVED,
    MOVERS,
    ODDS_OF_MOVING,
    ODDS_OF_RETURNING,
    ODDS_OF_ROLLBACK,
    PLAIN,
    PREFETCH,
    READERS,
    STREAM,
    STREAM_BACK,
    TRANSACTED,
    TRANSACTIONS,
    TX,
    WINDOW,
    Accounts,
)
from tests.robustness.swift1 import Delivery1, Link1, payload_of

_CONTROL = 100
_FRAME_SIZES = (512, 4_096, 131_072)
_ODDS_OF_TWO_TRANSFERS = 0.05
_ODDS_OF_DRAIN = 0.02


def _address(queue: str) -> str:
    return f"/queues/{queue}"


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

    @property
    def waits(self) -> bool:
        """Whether an answer is missing."""
        return self._wish >= 0

    def declare(self) -> None:
        """Ask for a transaction."""
        self._link.send(self._ask(c.Declare()))

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


class Publisher1:
    """Publishes unsettled and in transactions; otherwise as `clients.Publisher`.

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
        self.link = Link1(port)
        self.waiting: dict[int, int] = {}
        self._committing: list[int] | None = None
        self._plain = [queue for queue in accounts.queues if queue not in TRANSACTED]
        self._transacted = [queue for queue in accounts.queues if queue in TRANSACTED]
        # By channel and handle, up to which delivery-count the broker gives credit, and the count.
        self._limits: dict[tuple[int, int], int] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self.link.on_outcome = self._settled
        self.link.on_flow = self._credited
        self._plain_session = self.link.begin(PLAIN)
        self._attach(PLAIN, self._plain)
        if self._transacted:
            self._transactions = _Transactions(self.link, accounts)
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

    def step(self) -> None:
        """Hear what was answered, and publish a little more."""
        self.finish()
        rng = self.accounts.rng
        if len(self.waiting) < WINDOW and self._plain:
            self.link.send(b"".join(self._publish() for _ in range(rng.randint(1, MAX_AT_ONCE))))
        if not self._transacted or self._committing is not None:
            return
        if self._transactions.txn:
            self._transact(keep=rng.random() >= ODDS_OF_ROLLBACK)
        elif not self._transactions.waits:
            self._transactions.declare()

    def _publish(self) -> bytes:
        rng = self.accounts.rng
        handle = rng.randrange(len(self._plain))
        if not self._may(PLAIN, handle, 2):
            return b""
        number, body, level = self.accounts.fresh(self._plain[handle], self.source)
        payload = payload_of(body, level if level >= 0 else None)
        cut = len(payload) // 2 + 1 if rng.random() < _ODDS_OF_TWO_TRANSFERS else 0
        delivery, octets = self.link.message(PLAIN, handle, payload, cut=cut)
        self.waiting[delivery] = number
        return octets

    def _transact(self, *, keep: bool) -> None:
        rng = self.accounts.rng
        puts: list[tuple[str, int]] = []
        parts = []
        for _ in range(rng.randint(1, MAX_AT_ONCE)):
            handle = rng.randrange(len(self._transacted))
            if not self._may(TRANSACTIONS, handle, 1):
                continue
            queue = self._transacted[handle]
            number, body, _ = self.accounts.fresh(queue, self.source, sent=keep)
            parts.append(self._transactions.post(handle, payload_of(body)))
            puts.append((queue, number))
        self._committing = [number for _, number in puts] if keep else []
        if keep:
            self.accounts.ledger.transacts(puts)
        self.link.send(b"".join(parts) + self._transactions.discharge(fail=not keep))

    def _settled(self, channel: int, first: int, last: int, state: Any) -> None:
        self.accounts.heard(self.link)
        if channel == PLAIN:
            assert isinstance(state, c.Accepted), f"{first} to {last} were answered by {state}"
            for delivery in range(first, last + 1):
                self.accounts.confirms(self.waiting.pop(delivery))
        elif self._transactions.outcome(first, last, state):
            assert self._committing is not None, "a discharge that nobody waits for"
            for number in self._committing:
                self.accounts.confirms(number)
            self._committing = None

    def finish(self) -> None:
        """Nothing came that ends a link."""
        _hear(self.link)


def _hear(link: Link1) -> None:
    while link.performatives:
        try:
            link.harmless(link.performatives.pop(0))
        except ConnectionError:
            return


class Consumer1:
    """Takes messages as `clients.Consumer` does, and drains its links now and then.

    Args:
        accounts: where to write it down.
        port: where the broker listens.
        queues: what to consume.

    Raises:
        ConnectionError: the broker went.
    """

    def __init__(self, accounts: Accounts, port: int, queues: tuple[str, ...]) -> None:
        self.accounts = accounts
        rng = accounts.rng
        self.link = Link1(port, rng.choice(_FRAME_SIZES))
        self.link.on_delivery = self._delivered
        self.link.on_outcome = self._settled
        self.link.on_flow = self._drained
        self._reader = next(READERS)
        self._queues: dict[tuple[int, int], str] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self._waiting: dict[int, list[tuple[int, int, int]]] = {PLAIN: [], TRANSACTIONS: []}
        self._committing: list[tuple[str, int]] | None = None
        self._moving: list[tuple[str, int]] = []
        self._laziness = rng.choice(LAZINESS)
        self._at_once = rng.random() < 0.5
        self._in_pieces = rng.random() < 0.3
        self._enough = 1
        self._moves = MOVED in accounts.queues and TX in queues
        self.link.begin(PLAIN)
        if TX in queues:
            self._transactions = _Transactions(self.link, accounts)
            if self._moves:
                self.link.attach(TRANSACTIONS, len(queues), c.Source(), c.Target(_address(MOVED)))
        for handle, queue in enumerate(queues):
            self._consume(TRANSACTIONS if queue == TX else PLAIN, handle, queue)

    def _consume(self, channel: int, handle: int, queue: str) -> None:
        filters: dict[Any, Any] | None = None
        if queue == STREAM:
            back = max(self.accounts.offsets, default=0) - STREAM_BACK
            name = Symbol("rabbitmq:stream-offset-spec")
            filters = {name: Described(name, "first" if back < 0 else ULong(back))}
        self._queues[channel, handle] = queue
        source = c.Source(_address(queue), filter=filters)
        answer = self.link.attach(channel, handle, source, c.Target())
        self._counts[channel, handle] = answer.initial_delivery_count or 0
        self._give(channel, handle)

    def _give(self, channel: int, handle: int, *, drain: bool = False) -> None:
        held = sum(each[1] == handle for each in self._waiting[channel])
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
            self._give(*key)

    def _delivered(self, delivery: Delivery1) -> None:
        key = delivery.channel, delivery.handle
        self._counts[key] += 1
        queue = self._queues[key]
        self.accounts.heard(self.link)
        number = self.accounts.delivers(queue, delivery, self._reader)
        if number is not None:
            self._waiting[delivery.channel].append((delivery.number, delivery.handle, number))

    def step(self) -> None:
        """Hear what was answered, and settle what has gathered."""
        self.finish()
        plain, transacted = self._waiting[PLAIN], self._waiting[TRANSACTIONS]
        rng = self.accounts.rng
        if rng.random() < self._laziness:
            return
        if len(plain) >= self._enough:
            self._enough = rng.randint(1, PREFETCH // 2)
            self._settle(plain)
        if transacted and self._committing is None:
            if self._transactions.txn:
                self._commit(transacted)
            elif not self._transactions.waits:
                self._transactions.declare()

    def _settle(self, plain: list[tuple[int, int, int]]) -> None:
        """Accept what came outside of transactions; one of them may be given back."""
        rng = self.accounts.rng
        number, handle, _ = plain[-1]
        if self._queues[PLAIN, handle] != STREAM and rng.random() < ODDS_OF_RETURNING:
            plain.pop()
            back = rng.choice([c.Released(), c.Modified(delivery_failed=True)])
            self.link.say(c.Disposition(True, number, None, self._at_once, back), PLAIN)
            if not plain:
                self._give(PLAIN, handle)
                return
        handles = sorted({handle for _, handle, _ in plain})
        first, last = self._take(PLAIN)
        ranges = [(first, last)]
        if self._in_pieces:
            middle = rng.randint(first, last)
            ranges = [(middle, last), (first, middle)]
        for each in ranges:
            self.link.say(c.Disposition(True, *each, self._at_once, c.Accepted()), PLAIN)
        for handle in handles:
            self._give(PLAIN, handle, drain=rng.random() < _ODDS_OF_DRAIN)

    def _commit(self, transacted: list[tuple[int, int, int]]) -> None:
        """Accept what came, and publish some of it to the next queue, as one."""
        handle = transacted[0][1]
        first, last = self._take(TRANSACTIONS)
        self._committing = [(TX, number) for number in self._taken]
        accounts, source = self.accounts, MOVERS + self._reader
        parts = []
        self._moving = []
        for _ in self._committing:
            if self._moves and accounts.rng.random() < ODDS_OF_MOVING:
                number, body, _ = accounts.fresh(MOVED, source)
                self._moving.append((MOVED, number))
                parts.append(self._transactions.post(len(self._queues), payload_of(body)))
        accounts.ledger.transacts(self._moving, self._committing)
        self.link.say(self._transactions.retirement(first, last), TRANSACTIONS)
        self.link.send(b"".join(parts) + self._transactions.discharge())
        self._give(TRANSACTIONS, handle)

    def _take(self, channel: int) -> tuple[int, int]:
        """What waits is about to be accepted, but whether the broker hears it is open."""
        waiting = self._waiting[channel]
        first, last = waiting[0][0], waiting[-1][0]
        self._taken = [number for _, _, number in waiting]
        for _, handle, number in waiting:
            self.accounts.ledger.settles(self._queues[channel, handle], number)
        waiting.clear()
        return first, last

    def _settled(self, channel: int, first: int, last: int, state: Any) -> None:
        """A commit was answered: what it accepted is for good."""
        assert channel == TRANSACTIONS, f"{first} to {last} were answered by {state}"
        if not self._transactions.outcome(first, last, state):
            return
        assert self._committing is not None, "a discharge that nobody waits for"
        for queue, number in self._committing:
            self.accounts.ledger.settles(queue, number, durable=True)
        for _, number in self._moving:
            self.accounts.confirms(number)
        self._committing = None

    def finish(self) -> None:
        """Nothing came that ends a link."""
        _hear(self.link)
