"""Feedback that exchanges get about a message that they have routed, when it is published.

A message may be published long after it was routed: at the commit of its transaction, or never. So
a value becomes known to a deduplicating exchange when a queue takes the message and none refuses
it. A recent history exchange keeps a message when the first queue takes it, or when it is published
without a queue.

    exchange.match   add_feedback -> message.once
    publish          prepare, then `answered` for each queue, or `unrouted`
    row of a batch   stage, then `end_batch` when the batch is committed or rolled back

A message carries its feedback as bytes: the garbage collector need not visit messages that refer to
no other object.

    for each exchange   number, 8 bytes | time to live, 8 | flags, 1 | digest of the value, 16

Numbers are big-endian, the time is in milliseconds; flags: 1 the value was new, 2 it is known
because of this message, 4 a queue has refused the message, 8 the exchange keeps a history.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Container
from typing import Any
from weakref import WeakValueDictionary

from harebell.base.message import Message

_ACCEPTED = 0
_REJECTED = 1
_FORM = struct.Struct(">QQB16s")
_NEW, _KNOWN, _REFUSED, _HISTORY = 1, 2, 4, 8
_NO_KEY = bytes(16)
_NUMBERS = itertools.count(1)
# Weak: a message that waits for its commit must not keep a deleted exchange in memory.
_EXCHANGES: WeakValueDictionary[int, Any] = WeakValueDictionary()
Same = tuple[int, bytes]
"""The number of an exchange, and the digest of a value."""


def number_of(exchange: Any) -> int:
    """Return a new number for an exchange, by which messages refer to it."""
    number = next(_NUMBERS)
    _EXCHANGES[number] = exchange
    return number


class DeduplicationFeedback:
    """Tells a deduplicating exchange what queues did with a message that has a value.

    Args:
        exchange: the exchange that the message came to.
        key: the digest of the value.
        ttl_ms: how long a new value is known; 0 for as long as there is room.
        new: whether the value was not known, so that the exchange has routed the message.
        known: whether the value is known because of this message.
        refused: whether a queue has refused the message.
    """

    __slots__ = ("_known", "_new", "_refused", "_ttl_ms", "exchange", "key")

    def __init__(
        self,
        exchange: Any,
        key: bytes,
        ttl_ms: int,
        new: bool,
        known: bool = False,
        refused: bool = False,
    ) -> None:
        self.exchange = exchange
        self.key = key
        self._ttl_ms = ttl_ms
        self._new = new
        self._known = known
        self._refused = refused

    @property
    def same(self) -> Same:
        """Return what is equal for messages that are duplicates of each other."""
        return self.exchange.number, self.key

    @property
    def duplicate(self) -> bool:
        """True if the exchange knew the value, and routed the message nowhere."""
        return not self._new

    @property
    def over(self) -> bool:
        """True if a queue has answered: the message was published."""
        return self._known or self._refused

    def repeats(self, taken: Container[Same]) -> bool:
        """True if the message has become a duplicate since it was routed.

        Args:
            taken: the values of its batch.
        """
        return self._new and not self.over and (self.same in taken or self.exchange.knows(self.key))

    def prepare(self) -> None:
        """Prepare for a publish."""
        self.exchange.prepare()

    def answered(self, message: Message, outcome: int) -> int:
        """Note the outcome in a queue; return the outcome for the publisher."""
        if not self._new:
            return outcome | self.unrouted(message)
        if outcome & _REJECTED:
            self._refused = True
            # Another queue took it before. The publisher hears that it was refused and repeats it:
            # the repeat must not count as a duplicate.
            if self._known:
                self._known = False
                self.exchange.forget(self.key)
        elif not self.over:
            self._known = True
            self.exchange.note(self.key, self._ttl_ms)
        return outcome

    def unrouted(self, message: Message) -> int:
        """Return what the publisher of a duplicate is told: PENDING or ACCEPTED."""
        return int(self.exchange.pending(self.key))

    def stage(self, message: Message) -> bool:
        """Return whether a row of a batch waits for the end of the batch."""
        return self._new

    def end_batch(self, message: Message, committed: bool) -> None:
        """Note the value of a row of a batch that was committed."""
        if committed:
            self.answered(message, _ACCEPTED)

    def packed(self) -> bytes:
        """Return the bytes that a message carries."""
        flags = self._new * _NEW | self._known * _KNOWN | self._refused * _REFUSED
        return _FORM.pack(self.exchange.number, self._ttl_ms, flags, self.key)


class HistoryFeedback:
    """Tells a recent history exchange that a queue took a message, which it then keeps.

    Args:
        exchange: the exchange that the message came to.
    """

    __slots__ = ("exchange", "over")

    def __init__(self, exchange: Any) -> None:
        self.exchange = exchange
        self.over = False

    @property
    def same(self) -> Same:
        """Return what is equal for all messages of the exchange."""
        return self.exchange.number, _NO_KEY

    def repeats(self, taken: Container[Same]) -> bool:
        """Return False: equal messages are kept each."""
        return False

    def prepare(self) -> None:
        """Do nothing."""

    def answered(self, message: Message, outcome: int) -> int:
        """Keep the message when the first queue has taken it: a refused one comes again."""
        if not (self.over or outcome & _REJECTED):
            self.unrouted(message)
        return outcome

    def unrouted(self, message: Message) -> int:
        """Keep a message; its publisher need not wait for that."""
        self.over = True
        self.exchange.keep(message)
        return _ACCEPTED

    def stage(self, message: Message) -> bool:
        """Keep a row of a batch that may be rolled back."""
        self.exchange.stage(message)
        return True

    def end_batch(self, message: Message, committed: bool) -> None:
        """Show the rows of a batch, or drop them."""
        self.exchange.end_batch(committed)

    def packed(self) -> bytes:
        """Return the bytes that a message carries."""
        return b"" if self.over else _FORM.pack(self.exchange.number, 0, _HISTORY, _NO_KEY)


Feedback = DeduplicationFeedback | HistoryFeedback


def feedback_of(message: Message) -> list[Feedback]:
    """Return the feedback that a message carries, but for exchanges that were deleted."""
    feedback: list[Feedback] = []
    for number, ttl_ms, flags, key in _FORM.iter_unpack(message.once or b""):
        exchange = _EXCHANGES.get(number)
        if exchange is None:
            continue
        bits = [bool(flags & each) for each in (_NEW, _KNOWN, _REFUSED)]
        if flags & _HISTORY:
            feedback.append(HistoryFeedback(exchange))
        else:
            feedback.append(DeduplicationFeedback(exchange, key, ttl_ms, *bits))
    return feedback


def is_duplicate(message: Message) -> bool:
    """Return whether an exchange has dropped a message as the duplicate of another one."""
    return any(
        isinstance(each, DeduplicationFeedback) and each.duplicate for each in feedback_of(message)
    )


def set_feedback(message: Message, feedback: list[Feedback]) -> None:
    """Replace the feedback that a message carries."""
    message.once = b"".join([each.packed() for each in feedback]) or None


def add_feedback(message: Message, new: Feedback) -> None:
    """Add feedback to a message; remove that of an earlier publish, which is over."""
    set_feedback(message, [*(each for each in feedback_of(message) if not each.over), new])


def drop_history_feedback(message: Message) -> None:
    """Have no exchange keep a message of which a queue has taken a copy before."""
    kept: list[Feedback] = [
        each for each in feedback_of(message) if not isinstance(each, HistoryFeedback)
    ]
    set_feedback(message, kept)


def routed_now(
    message: Message, queues: tuple[Any, ...], taken: Container[Same] = frozenset()
) -> tuple[Any, ...]:
    """Return the queues of a message that was routed before, and is published now.

    They are others if it has become a duplicate since: those of its other ways, or of the alternate
    exchange, or none.

    Args:
        message: what is published.
        queues: the queues that it was routed to.
        taken: the values of the batch that it is a row of.
    """
    repeated: list[Feedback] = []
    try:
        # The other way may lead to another exchange that knows its value of the message.
        while more := [each for each in feedback_of(message) if each.repeats(taken)]:
            for each in more:
                each.exchange.assumed = each.same[1]
            repeated += more
            queues = more[0].exchange.route_again(message, queues)
    finally:
        for each in repeated:
            each.exchange.assumed = None
    return queues
