"""What clients saw, and what must be true of it.

Four sets of (queue, message): *confirmed* by the broker, *uncertain* (sent, and the connection
ended before the confirm), *received* by somebody, *acked* by a consumer. Whatever the network
does:

* what is confirmed and not acked is still in its queue when everything is over (unless the
  queue was deleted);
* nothing is received that nobody sent, and every body is what was sent;
* a message comes without the mark of redelivery at most once;
* what was acked before a clean close is gone for good, unless the broker dies soon after;
* a consumer sees the messages of one publisher's channel in order, redelivered ones excepted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Item = tuple[str, int]


class Violation(AssertionError):
    """The broker broke a promise."""


@dataclass
class Checker:
    """Collects what happens; raises `Violation` as soon as something cannot be."""

    sent: dict[int, bytes] = field(default_factory=dict)
    sources: dict[int, tuple[int, int]] = field(default_factory=dict)
    confirmed: set[Item] = field(default_factory=set)
    uncertain: set[Item] = field(default_factory=set)
    received: set[Item] = field(default_factory=set)
    fresh: set[Item] = field(default_factory=set)
    acked: set[Item] = field(default_factory=set)
    settled: set[Item] = field(default_factory=set)
    excused: set[Item] = field(default_factory=set)
    targets: dict[int, tuple[str, ...]] = field(default_factory=dict)
    transient: set[int] = field(default_factory=set)
    _last: dict[tuple[int, str, int], int] = field(default_factory=dict)

    # --- publishers -----------------------------------------------------------------------------

    def publishes(
        self,
        number: int,
        body: bytes,
        source: int,
        queues: tuple[str, ...],
        *,
        persistent: bool = True,
    ) -> None:
        """A message is sent; `source` names the publishing channel."""
        if not persistent:
            self.transient.add(number)
        self.sent[number] = body
        self.sources[number] = (source, number)
        self.targets[number] = queues

    def confirms(self, number: int) -> None:
        """The broker has taken responsibility."""
        for queue in self.targets[number]:
            if (queue, number) in self.uncertain:
                raise Violation(f"message {number} is confirmed after its connection ended")
            self.confirmed.add((queue, number))

    def gives_up(self, number: int) -> None:
        """The connection ended before the confirm: it may be anywhere."""
        self.uncertain.update((queue, number) for queue in self.targets[number])

    def queue_deleted(self, queue: str) -> None:
        """What was sent to this queue so far is owed to nobody."""
        self.excused.update((queue, number) for number in self.sent)

    # --- the broker -----------------------------------------------------------------------------

    def restarts(self) -> None:
        """The broker died and came back: transient messages are gone, late acks may be, too."""
        for number in self.transient:
            self.excused.update((queue, number) for queue in self.targets[number])
        self.settled.clear()

    # --- consumers ------------------------------------------------------------------------------

    def receives(self, reader: int, queue: str, body: bytes, redelivered: bool) -> Item:
        """A delivery; `reader` names the consuming channel."""
        text = body.partition(b":")[0]
        number = int(text) if text.isdigit() else -1
        if number not in self.sent:
            raise Violation(f"{body[:40]!r} was never sent")
        item = (queue, number)
        if self.sent[number] != body:
            raise Violation(f"the body of message {number} was changed")
        if queue not in self.targets[number]:
            raise Violation(f"message {number} was not sent to {queue}")
        if not redelivered:
            if item in self.fresh:
                raise Violation(f"message {number} came twice from {queue} without the mark")
            self.fresh.add(item)
            self._in_order(reader, queue, number)
        self.received.add(item)
        return item

    def _in_order(self, reader: int, queue: str, number: int) -> None:
        source = (reader, queue, self.sources[number][0])
        if self._last.get(source, -1) > number:
            raise Violation(f"message {number} came after {self._last[source]}, sent later")
        self._last[source] = number

    def acks(self, item: Item) -> None:
        """A consumer says that it is done with a delivery (the broker may not have heard it)."""
        self.acked.add(item)

    def closes_cleanly(self, items: set[Item]) -> None:
        """The broker answered a close that followed these acks: it has heard them."""
        self.settled |= items

    # --- the end --------------------------------------------------------------------------------

    def ends(self, left: set[Item]) -> None:
        """Everything is over; `left` was still in the queues."""
        lost = self.confirmed - self.acked - left - self.excused
        back = self.settled & left
        if back:
            raise Violation(f"acked before a clean close, and back again: {sorted(back)[:5]}")
        if lost:
            raise Violation(f"confirmed, not acked, and gone: {sorted(lost)[:5]}")
