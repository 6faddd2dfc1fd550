"""Dead-lettering: republish rejected, expired and dropped messages of a queue.

A dead letter is published to the dead-letter exchange of the queue, with its history in headers:

    x-death               array of tables, the newest event first, one per queue and reason:
                          count, reason, queue, time of the first, exchange, routing-keys,
                          original-expiration if it had one, and condition and description if
                          its consumer said why it rejects it (AMQP 1.0)
    x-first-death-*       reason, queue and exchange of the first event, never overwritten while
                          there is a history
    x-last-death-*        the same of the last event

Its failed deliveries go with it (`Message.deliveries`).
It keeps its routing keys, CC and BCC included, or gets the dead-letter routing key of the queue; CC
and BCC are then removed.

A message is not published to a queue where it died before, unless it was rejected since: it would
circulate for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harebell.base.bcc import BCC, CC, hidden, keys_in, whole
from harebell.base.clock import Clock
from harebell.base.limits import CARRIED_DELIVERIES
from harebell.base.message import Message
from harebell.base.values import Long
from harebell.model.dead_letter_counts import AT_LEAST_ONCE, AT_MOST_ONCE, DeadLetterCounts
from harebell.model.dead_letter_scheduler import DeadLetterScheduler
from harebell.model.death import CONDITION, DESCRIPTION, HISTORY
from harebell.model.editor import Editor
from harebell.model.feedback import drop_history_feedback
from harebell.model.limits import LETTER_UNITS
from harebell.model.queue.contract import ACCEPTED, unrouted
from harebell.model.queue.contract import REJECTED as REFUSED
from harebell.model.remark import Remark
from harebell.model.router import Router

REJECTED = "rejected"
DELIVERY_LIMIT = "delivery_limit"
EXPIRED = "expired"
MAXLEN = "maxlen"

NOWHERE = 4
"""No queue took the message, as none is bound."""
GONE = 8
"""There is no dead-letter exchange."""

_NO_REMARK = Remark()
_FIRST_REASON = "x-first-death-reason"
_CHANGED = (CC, BCC, HISTORY, _FIRST_REASON)
_MS = 1000


def _history(headers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the `x-death` events of a message, one per queue and reason.

    Invalid events are left out. Only a client can have written several for the same queue and
    reason: the first is used, and if it has no count, its count is their number.
    """
    header = headers.get(HISTORY)
    if not isinstance(header, list):
        return []
    events: list[dict[str, Any]] = []
    seen: dict[tuple[str, str], tuple[dict[str, Any], bool]] = {}
    for event in header:
        if isinstance(event, Mapping) and isinstance(event.get("queue"), str):
            key = event["queue"], str(event.get("reason"))
            if key in seen:
                first, counted = seen[key]
                if not counted:
                    first["count"] = Long(first["count"] + 1)
                continue
            count = event.get("count")
            known = isinstance(count, int) and not isinstance(count, bool) and 0 < count < 2**62
            events.append({**event, "count": Long(count if known else 1)})  # type: ignore[arg-type]
            seen[key] = events[-1], known
    return events


def is_cycle(history: list[dict[str, Any]], queue: str) -> bool:
    """True if dead-lettering forms a cycle without a rejection."""
    for event in history:
        if event.get("reason") == REJECTED:
            return False
        if event["queue"] == queue:
            return True
    return False


class DeadLetters:
    """The dead-letter settings of one queue.

    Args:
        queue: the name of the queue.
        exchange: the name of its dead-letter exchange, which need not exist.
        routing_key: the dead-letter routing key; None keeps the keys of the messages.
        router: the router of the vhost.
        editor: reads and changes messages.
        clock: wall clock.
        chain: the dead-letter scheduler of the vhost.
        counts: counts dead letters.
        kind: the type of the queue.

    Attributes:
        exchange: as given.
        routing_key: as given.
        sent: the number of dead letters by reason.
    """

    def __init__(
        self,
        queue: str,
        exchange: str,
        routing_key: str | None,
        router: Router,
        editor: Editor,
        clock: Clock,
        chain: DeadLetterScheduler,
        counts: DeadLetterCounts,
        kind: str,
    ) -> None:
        self._queue = queue
        self.exchange = exchange
        self.routing_key = routing_key
        self._router = router
        self._editor = editor
        self._clock = clock
        self._chain = chain
        self._counts = counts
        self._kind = kind
        self.sent: dict[str, int] = {}

    def count(self, reason: str) -> None:
        """Count a dead letter that is sent until other queues have stored it."""
        self._count(AT_LEAST_ONCE, reason)

    def _count(self, strategy: str, reason: str) -> None:
        self._counts.count(self._kind, strategy, reason)
        self.sent[reason] = self.sent.get(reason, 0) + 1

    def confirm(self) -> None:
        """Count a dead letter that other queues have stored."""
        self._counts.confirm(self._kind)

    def send_later(self, message: Message, reason: str) -> None:
        """Publish a dead letter after the one that caused it, if there is one."""
        self._chain.send(self, message, reason)

    def room(self, *, in_turns: bool) -> int:
        """Return how many messages the queue may drop now, see `DeadLetterScheduler.room`."""
        return self._chain.room(in_turns=in_turns)

    def send(
        self,
        message: Message,
        reason: str,
        taken: set[str] | None = None,
        remark: Remark | None = None,
    ) -> int:
        """Publish a dead letter.

        Args:
            message: the message as it was in the queue.
            reason: why it is dead-lettered.
            taken: the names of queues that have taken it already and do not get it again; those
                that take it now are added. None if the message is not sent again.
            remark: what the consumer says that has rejected it.

        Returns:
            GONE or NOWHERE, or the result of the queues that got it.
        """
        exchange = self._router.exchanges.get(self.exchange)
        if exchange is None:
            return GONE
        self._chain.work.charge(LETTER_UNITS)
        # With `taken` it may be sent several times: its caller counts it, once.
        if taken is None:
            self._count(AT_MOST_ONCE, reason)
        remark = _NO_REMARK if remark is None else remark
        letter, keys, history = self._letter(whole(message), reason, remark)
        targets = self._router.route_keys(exchange, letter, keys[1:])
        if not targets:
            if taken is None:
                unrouted(letter)
            return NOWHERE
        if taken:
            drop_history_feedback(letter)
        outcome = ACCEPTED
        for queue in targets:
            # As in RabbitMQ: a consumer rejects each time, so that cycle does not run by itself.
            if reason != REJECTED and is_cycle(history, queue.name):
                continue
            if taken is None:
                outcome |= queue.take_over(letter)
            elif queue.name not in taken:
                # A queue that would drop it as a duplicate refuses it: the letter is tried again.
                said = REFUSED if queue.knows(letter) else queue.publish(letter)
                outcome |= said
                if not said & REFUSED:
                    taken.add(queue.name)
        return outcome

    def _letter(
        self, message: Message, reason: str, remark: Remark
    ) -> tuple[Message, list[str], list[dict[str, Any]]]:
        """Return the dead letter of a message, its routing keys and its history."""
        headers = self._headers_of(message)
        copies = keys_in(headers.get(CC))
        blind = keys_in(headers.get(BCC)) if self.routing_key is None else []
        keys = [message.routing_key, *copies]
        changes = {**remark.headers, **self._events(message, reason, headers, keys, remark)}
        history = changes[HISTORY]
        if BCC in headers and not blind:
            changes[BCC] = None
        if self.routing_key is None:
            keys = [message.routing_key, *copies, *blind]
        else:
            keys = [self.routing_key]
            if CC in headers:
                changes[CC] = None
        letter = self._editor.forwarded(message, self.exchange, keys[0], changes, self._now())
        if blind:
            letter = hidden(letter)
        # The failure above the limit is in no count of the queue, and neither is a rejection.
        failed = reason == DELIVERY_LIMIT or remark.failed
        letter.deliveries = min(message.deliveries + failed, CARRIED_DELIVERIES)
        return letter, keys, history

    def _headers_of(self, message: Message) -> dict[str, Any]:
        """Return the headers that a letter changes: decoding thousands of others takes long."""
        if not message.has_headers:
            return {}
        found = ((name, self._editor.header_of(message, name)) for name in _CHANGED)
        return {name: value for name, value in found if value is not None}

    def _events(
        self,
        message: Message,
        reason: str,
        headers: Mapping[str, Any],
        keys: list[str],
        remark: Remark,
    ) -> dict[str, Any]:
        """Return the headers that describe this event."""
        history = _history(headers)
        first = not history or _FIRST_REASON not in headers
        mine = [e for e in history if e["queue"] == self._queue and e.get("reason") == reason]
        # It moves to the front, and keeps the time and the exchange of the first such event.
        if mine:
            event = mine[0]
            history = [each for each in history if each is not event]
            event["count"] = Long(event["count"] + 1)
        else:
            event = self._event(message, reason, keys)
        # Those of the last time: why the message was rejected before is no news.
        for name, value in ((CONDITION, remark.condition), (DESCRIPTION, remark.description)):
            event.pop(name, None)
            if value:
                event[name] = value
        changes: dict[str, Any] = {HISTORY: [event, *history]}
        about = {"reason": reason, "queue": self._queue, "exchange": message.exchange}
        if first:
            changes |= {f"x-first-death-{what}": value for what, value in about.items()}
        changes |= {f"x-last-death-{what}": value for what, value in about.items()}
        return changes

    def _event(self, message: Message, reason: str, keys: list[str]) -> dict[str, Any]:
        event: dict[str, Any] = {}
        expiration = self._editor.expiration_of(message)
        if expiration is not None:
            event["original-expiration"] = expiration
        # `Long`: RabbitMQ writes the count with the type octet `l`, whatever its value.
        event["count"] = Long(1)
        event["reason"] = reason
        event["queue"] = self._queue
        event["time"] = self._now()
        event["exchange"] = message.exchange
        event["routing-keys"] = keys
        return event

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.ms // _MS, UTC)
