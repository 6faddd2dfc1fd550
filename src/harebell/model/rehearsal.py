"""Rehearse a publish: find the route of a message, and what each queue would do with it.

    exchange --binding--> exchange --binding--> queue      each step, and the bindings that match
        `--alternate-exchange--> ...
    queue    delivered, kept, refused, or kept while the oldest one is dropped

The route is found as `Router` finds it, with `Exchange.rehearse` in the place of `Exchange.match`,
in slices: an exchange may have a hundred thousand bindings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.base.message import PERSISTENT
from harebell.model.exchange.delayed import HELD_PREFIX, Held
from harebell.model.exchange.gate import opened
from harebell.model.exchange.kind import Exchange, Rehearsal
from harebell.model.limits import REHEARSAL_SHOWN_BINDINGS, REHEARSAL_SLICE_BINDINGS
from harebell.model.queue.queue import MessageQueue
from harebell.model.queue.reply import REPLY_PREFIX, ReplyQueue

if TYPE_CHECKING:
    from harebell.base.message import Message
    from harebell.base.slices import Slices
    from harebell.model.binding import Binding
    from harebell.model.queue.contract import Queue
    from harebell.model.router import Router

PUBLISHED = "publish"
BOUND = "binding"
INSTEAD = "alternate-exchange"
"""How a message gets to an exchange."""

DELIVERED = "delivered"
KEPT = "kept"
REFUSED = "refused"
DROPS_OLDEST = "drops-oldest"
DUPLICATE = "duplicate"
"""The outcome in a queue."""

NO_TTL = -1
_NO_HEADERS: dict[str, Any] = {}


class Step(NamedTuple):
    """An exchange that the message comes to.

    Args:
        exchange: what is asked for destinations.
        via: PUBLISHED, BOUND or INSTEAD.
        source: the exchange that it comes from; "" for the publisher.
        bindings: those that match, as far as they are shown.
        more: whether there are more.
        note: the effects of its type beside routing.
        one_of: whether only one of the bindings is chosen.
        alternate: the alternate exchange that gets what no binding matches; None for none.
        queue: the queue that the routing key names, at the default exchange; None for none.
    """

    exchange: Exchange
    via: str
    source: str
    bindings: list[Binding]
    more: bool
    note: str
    one_of: bool
    alternate: str | None
    queue: Queue | None = None


class Route(NamedTuple):
    """Where a message goes.

    Args:
        steps: the exchanges, in the order in which it comes to them.
        queues: the queues, each once.
        direct_reply: whether it is the answer to a request, for a consumer and no queue.
    """

    steps: list[Step]
    queues: list[Queue]
    direct_reply: bool = False


class Prospect(NamedTuple):
    """What one queue does with a message.

    Args:
        outcome: DELIVERED, KEPT, REFUSED, DROPS_OLDEST or DUPLICATE.
        letters: whether the dead-letter exchange gets what is refused or dropped.
        ttl_ms: after how many milliseconds it expires; NO_TTL for never.
        synced: whether the confirm waits until it is on disk.
    """

    outcome: str
    letters: bool
    ttl_ms: int
    synced: bool


def route_of(
    router: Router, start: Exchange, messages: tuple[Message, ...], headers: Mapping[str, Any]
) -> Slices[Route]:
    """Return where a message goes.

    Args:
        router: of the vhost.
        start: the exchange that it is published to.
        messages: the message, and a copy for each of its further routing keys (CC and BCC).
        headers: those of the message, decoded; empty without any.
    """
    steps: list[Step] = []
    queues: dict[Queue, None] = {}
    seen = {start}
    todo = [(start, PUBLISHED, "")]
    last: set[Exchange] = set()
    reply = False
    while todo:
        exchange, via, source = todo.pop(0)
        # Its bindings are the names of queues, so there are none to show.
        if exchange.default:
            by_key = [router.queues.get(each.routing_key) for each in messages]
            named = [queue for queue in by_key if queue is not None]
            reply = reply or any(each.routing_key.startswith(REPLY_PREFIX) for each in messages)
            queues |= dict.fromkeys(named)
            first = named[0] if named else None
            steps.append(Step(exchange, via, source, [], False, "", False, None, first))
            continue
        rehearsal = _rehearsed(exchange, messages, headers)
        destinations = set(rehearsal.destinations)
        bindings, more = yield from _matching(exchange, destinations, messages, headers)
        alternate = None
        if not destinations and exchange.alternate is not None and exchange not in last:
            instead = router.exchanges.get(exchange.alternate)
            alternate = exchange.alternate
            if instead is not None:
                if exchange.alternate_once:
                    last.add(instead)
                if instead not in seen:
                    seen.add(instead)
                    todo.append((instead, INSTEAD, exchange.name))
        note, one_of = rehearsal.note, rehearsal.one_of
        steps.append(Step(exchange, via, source, bindings, more, note, one_of, alternate))
        for destination in rehearsal.destinations:
            if not isinstance(destination, Exchange):
                queues[destination] = None
            elif destination not in seen:
                seen.add(destination)
                todo.append((destination, BOUND, exchange.name))
        yield
    return Route(steps, list(queues), reply)


def _rehearsed(
    exchange: Exchange, messages: tuple[Message, ...], headers: Mapping[str, Any]
) -> Rehearsal:
    """Rehearse a message by each of its keys, as far as the type looks at them."""
    used = headers if exchange.needs_headers else _NO_HEADERS
    examined = messages if exchange.each_key else messages[:1]
    each = [exchange.rehearse(message, used) for message in examined]
    destinations = [
        destination
        for one, message in zip(each, examined, strict=True)
        for destination in opened(one.destinations, message)
    ]
    return each[0]._replace(destinations=destinations)


def _matching(
    exchange: Exchange,
    destinations: set[Any],
    messages: tuple[Message, ...],
    headers: Mapping[str, Any],
) -> Slices[tuple[list[Binding], bool]]:
    """Return the bindings that lead to the destinations, and whether there are more."""
    bindings: list[Binding] = []
    if not destinations:
        return bindings, False
    used = headers if exchange.needs_headers else _NO_HEADERS
    examined = messages if exchange.each_key else messages[:1]
    for number, binding in enumerate(list(exchange.bindings.values())):
        # A copy of the bindings is examined: other turns may change them in between.
        if number % REHEARSAL_SLICE_BINDINGS == REHEARSAL_SLICE_BINDINGS - 1:
            yield
        if binding.destination not in destinations:
            continue
        probe = exchange.alone(binding)
        if any(opened(probe.match(message, used), message) for message in examined):
            if len(bindings) == REHEARSAL_SHOWN_BINDINGS:
                return bindings, True
            bindings.append(binding)
    return bindings, False


def prospect_of(queue: Queue, message: Message, size: int, expiration_ms: int) -> Prospect:
    """Return what a queue does with a message.

    Args:
        queue: a queue that the message is routed to; it is not changed.
        message: the message, whose body may be left out.
        size: the bytes of its body.
        expiration_ms: its own time to live; NO_TTL for none.
    """
    if not isinstance(queue, MessageQueue):
        return Prospect(KEPT, letters=False, ttl_ms=NO_TTL, synced=queue.durable)
    expiry = queue.expiry
    ttl = NO_TTL if expiry is None else expiry.ttl
    lives = [each for each in (ttl, expiration_ms) if each != NO_TTL]
    ttl_ms = min(lives, default=NO_TTL)
    # Quorum queues store every message; RabbitMQ confirms a transient one in a classic queue at
    # once.
    kept = queue.quorum is not None or message.delivery_mode == PERSISTENT
    outcome, letters = _outcome(queue, message, size)
    return Prospect(outcome, letters, ttl_ms, synced=queue.durable and kept)


def refusal(queue: Queue, message: Message) -> str:
    """Return why a queue would not keep a message that is moved to it; "" if it would.

    A message that a consumer gets at once need not be kept.

    Args:
        queue: a queue that the message is routed to; it is not changed.
        message: the message, with its `due` time if it has one.
    """
    name = f"queue '{queue.name}'"
    if isinstance(queue, Held):
        exchange = queue.name.removeprefix(HELD_PREFIX)
        return f"exchange '{exchange}' delays it, and takes no messages of a job"
    if isinstance(queue, ReplyQueue):
        waits = any(consumer.ready() for consumer in queue.consumers)
        return "" if waits else f"no requester waits for a direct reply at '{message.routing_key}'"
    if not isinstance(queue, MessageQueue):
        return ""
    size, limits = len(message.body), queue.limits
    outcome, _ = _outcome(queue, message, size)
    if outcome == DUPLICATE:
        return f"{name} has a message with the same x-deduplication-header"
    if outcome == REFUSED:
        return f"{name} is full"
    if outcome == DELIVERED:
        return ""
    if outcome == DROPS_OLDEST and limits is not None:
        if limits.max_length == 0 or 0 <= limits.max_bytes < size:
            return f"{name} would drop it: it is over the limit of the queue by itself"
        if queue.order.heads > 1:
            return f"{name} is full, and priorities decide which message it drops"
    expiry = queue.expiry
    if (message.due and queue.expired(message)) or (expiry is not None and expiry.ttl == 0):
        return f"it would expire in {name} at once"
    return ""


def unheld(queue: Queue, durable: bool) -> str:
    """Return why a queue cannot hold messages until they are moved back; "" if it can.

    Args:
        queue: the queue; it is not changed.
        durable: whether they are in a durable queue now.
    """
    if not isinstance(queue, MessageQueue) or isinstance(queue, Held):
        return "what it holds cannot be moved back"
    if queue.values is not None:
        return "it keeps the last message of each key alone"
    if queue.owner is not None or queue.auto_delete:
        return "it is deleted with its connection or its last consumer"
    if durable and not queue.durable:
        return "it is not durable, and the queue of the messages is"
    return ""


def drops_for(queue: Queue, message: Message) -> bool:
    """Return whether a queue would drop its oldest message to keep this one."""
    if not isinstance(queue, MessageQueue):
        return False
    return _outcome(queue, message, len(message.body))[0] == DROPS_OLDEST


def _outcome(queue: MessageQueue, message: Message, size: int) -> tuple[str, bool]:
    limits, (hidden, hidden_bytes) = queue.limits, queue.hidden()
    ready = queue.order.count + hidden
    if queue.knows(message):
        return DUPLICATE, False
    if limits is not None and limits.refuses(ready, size + hidden_bytes):
        return REFUSED, limits.letters and queue.dead_letters is not None
    if not (ready or queue.staging) and queue.keyed is None and _is_served(queue, message):
        return DELIVERED, False
    if limits is not None and limits.drops and limits.full(ready, size):
        return DROPS_OLDEST, queue.dead_letters is not None
    return KEPT, False


def _is_served(queue: MessageQueue, message: Message) -> bool:
    """True if a consumer is ready that may get the message."""
    return any(
        each.ready() and (not each.excluded or each.excluded != message.origin)
        for each in queue.consumers
    )
