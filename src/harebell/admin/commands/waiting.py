"""Commands for messages that wait until a time: in a delaying exchange, or for their retry.

They are listed with those first that are due first, and are released or cancelled one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from harebell.admin.arguments import InVhost
from harebell.admin.catalog import EXCHANGES, QUEUES, Noun
from harebell.admin.command import MANAGEMENT, Argument, Row, documentation
from harebell.admin.commands.exchanges import find_exchange
from harebell.admin.commands.messages import (
    Encoding,
    Exact,
    Truncate,
    browsed_row,
    browsed_rows,
    check_truncate,
)
from harebell.admin.commands.queues import find_readable
from harebell.admin.context import AdminContext, CommandRefused, missing
from harebell.admin.limits import BROWSE_SLICE_UNITS, WAITING_SHOWN
from harebell.admin.looking import Looking
from harebell.admin.rows.common import time_text
from harebell.admin.streaming import RowStream
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.auth.topics import TopicRule
    from harebell.base.message import Message
    from harebell.model.exchange.delayed import Held
    from harebell.model.queue.browse import Browsed
    from harebell.model.queue.browse_cursor import WaitingCursor
    from harebell.model.queue.contract import Queue
    from harebell.model.queue.features.retry_delays import Retry
    from harebell.model.vhost import VHost

READ, WRITE, CONFIGURE = "read", "write", "configure"
_WAITING = (
    *("offset", "due", "timestamp", "exchange", "routing_key", "delivery_count"),
    *("properties", "payload_bytes", "payload", "payload_encoding"),
)
_SHOWN = ("offset", "due", "exchange", "routing_key", "payload_bytes", "payload")

Limit = Annotated[int, Argument("Most messages to show: those that are due first.", "NUMBER")]


class _Asked(NamedTuple):
    """What is shown of messages that wait; see the arguments of the commands."""

    limit: int
    encoding: str
    truncate: int
    exact: bool


class _Place(NamedTuple):
    """Where messages wait.

    Args:
        vhost: that of the exchange or queue.
        holder: what has the messages.
        waits: has their times; None for a queue in which nothing can wait.
        topics: which routing keys the actor may read; None for all.
    """

    vhost: VHost
    holder: Queue
    waits: Held | Retry | None
    topics: TopicRule | None = None


_Find = Callable[[AdminContext, str, str], _Place]


def _listing(noun: Noun, route: str) -> Callable[[_Find], _Find]:
    """Make a function a command that shows what waits in the place that it finds."""

    def decorate(find: _Find) -> _Find:
        def shown(
            context: AdminContext,
            name: str,
            vhost: InVhost = "/",
            limit: Limit = 100,
            encoding: Encoding = "auto",
            truncate: Truncate = 50_000,
            exact: Exact = False,
        ) -> RowStream:
            asked = _Asked(limit, encoding, truncate, exact)
            return _soonest(context, find(context, vhost, name), asked)

        summary, verb = documentation(find), find.__name__
        noun.command(route, tag=MANAGEMENT, verb=verb, summary=summary, row=_WAITING, shown=_SHOWN)(
            shown
        )
        return find

    return decorate


@_listing(EXCHANGES, "GET /api/exchanges/{vhost}/{name}/delayed")
def delayed(context: AdminContext, vhost: str, name: str) -> _Place:
    """Show the messages that an exchange delays, without taking them."""
    from harebell.front.common.permission import topic_of

    where, held = _held(context, vhost, name, READ)
    return _Place(where, held, held, topic_of(context.caller(where), where.exchanges[name]))


@EXCHANGES.command(
    "POST /api/exchanges/{vhost}/{name}/delayed/{offset}/release",
    tag=MANAGEMENT,
    done="message {offset} of exchange '{name}' in vhost '{vhost}' is routed now",
)
def release_delayed(
    context: AdminContext, name: str, offset: int, vhost: InVhost = "/"
) -> Slices[Row]:
    """Route a delayed message now."""
    where, held = _held(context, vhost, name, WRITE)
    return _routed(context, where, name, offset, held)


@EXCHANGES.command(
    "DELETE /api/exchanges/{vhost}/{name}/delayed/{offset}",
    tag=MANAGEMENT,
    done="message {offset} of exchange '{name}' in vhost '{vhost}' was dropped",
)
def cancel_delayed(
    context: AdminContext, name: str, offset: int, vhost: InVhost = "/"
) -> Slices[Row]:
    """Drop a delayed message."""
    # As deleting the exchange, which drops all of them.
    where, held = _held(context, vhost, name, CONFIGURE)
    return _ended(context, where, "exchange", name, offset, held, release=False)


@_listing(QUEUES, "GET /api/queues/{vhost}/{name}/waiting")
def waiting(context: AdminContext, vhost: str, name: str) -> _Place:
    """Show the messages of a queue that wait for their retry, without taking them."""
    where, queue = find_readable(context, vhost, name)
    return _Place(where, queue, _retry(queue))


@QUEUES.command(
    "POST /api/queues/{vhost}/{name}/waiting/{offset}/release",
    tag=MANAGEMENT,
    done="message {offset} of queue '{name}' in vhost '{vhost}' is delivered again now",
)
def release_waiting(
    context: AdminContext, name: str, offset: int, vhost: InVhost = "/"
) -> Slices[Row]:
    """Deliver a message again now that waits for its retry."""
    where, queue = find_readable(context, vhost, name)
    return _ended(context, where, "queue", name, offset, _retry(queue), release=True)


@QUEUES.command(
    "DELETE /api/queues/{vhost}/{name}/waiting/{offset}",
    tag=MANAGEMENT,
    done="message {offset} of queue '{name}' in vhost '{vhost}' was dropped",
)
def cancel_waiting(
    context: AdminContext, name: str, offset: int, vhost: InVhost = "/"
) -> Slices[Row]:
    """Drop a message that waits for its retry."""
    where, queue = find_readable(context, vhost, name)
    return _ended(context, where, "queue", name, offset, _retry(queue), release=False)


def _held(context: AdminContext, vhost: str, name: str, action: str) -> tuple[VHost, Held]:
    """Return the delayed messages of an exchange, and its vhost.

    Raises:
        CommandRefused: there is no such exchange, or it delays nothing.
        Refusal: the actor may not do that to the exchange.
    """
    from harebell.model.exchange.delayed import DelayedExchange

    where = context.vhost(vhost)
    context.check_permission(where, action, "exchange", name)
    where, exchange = find_exchange(context, vhost, name)
    if not isinstance(exchange, DelayedExchange) or exchange.held is None:
        raise CommandRefused(
            f"exchange '{name}' in vhost '{where.name}' delays nothing: its type is "
            f"{exchange.KIND}, not {DelayedExchange.KIND}"
        )
    return where, exchange.held


def _routed(context: AdminContext, where: VHost, name: str, offset: int, held: Held) -> Slices[Row]:
    """Release a delayed message whose routing key the actor may publish with."""
    from harebell.front.common.permission import check_topic

    key = yield from held.key_of(offset)
    if key is not None:
        check_topic(context.caller(where), WRITE, name, key)
    return (yield from _ended(context, where, "exchange", name, offset, held, release=True))


def _retry(queue: Queue) -> Retry | None:
    retry: Retry | None = getattr(queue, "retry", None)
    return retry


def _ended(
    context: AdminContext,
    where: VHost,
    kind: str,
    name: str,
    offset: int,
    place: Held | Retry | None,
    *,
    release: bool,
) -> Slices[Row]:
    found = False
    if place is not None:
        found = yield from (place.release_one(offset) if release else place.cancel_one(offset))
    if not found:
        raise missing(
            f"no message {offset} waits in {kind} '{name}' of vhost '{where.name}': it may have "
            "left meanwhile"
        )
    done = "released" if release else "cancelled"
    context.log("info", f"message {offset} of {kind} '{name}' in vhost '{where.name}' was {done}")
    return {"vhost": where.name, "name": name, "offset": offset}


def _soonest(context: AdminContext, place: _Place, asked: _Asked) -> RowStream:
    """Return the rows of the messages that are due first.

    Raises:
        CommandRefused: a number is out of range.
    """
    if not 1 <= asked.limit <= WAITING_SHOWN:
        raise CommandRefused(f"the limit is {asked.limit}: it is from 1 to {WAITING_SHOWN}")
    check_truncate(asked.truncate)
    vhost, holder, waits, topics = place
    if waits is None:
        return RowStream(iter(()))

    def leaves_out(message: Message) -> bool:
        return topics is not None and not topics.allow(READ, message.routing_key)

    looking = Looking(context, vhost, holder, None, leaves_out)
    return RowStream(_rows(context, vhost, looking, waits.soonest(asked.limit), asked))


def _rows(
    context: AdminContext,
    vhost: VHost,
    looking: Looking,
    soonest: Slices[WaitingCursor],
    asked: _Asked,
) -> Iterator[list[Row]]:
    """Yield rows; one step is one slice of work."""
    while True:
        try:
            next(soonest)
        except StopIteration as found:
            cursor: WaitingCursor = found.value
            break
        context.broker.work.charge(BROWSE_SLICE_UNITS)
        yield []
    clock = context.broker.clock

    def row_of(browsed: Browsed) -> Row:
        row: dict[str, Any] = dict(
            browsed_row(
                vhost.editor,
                browsed,
                encoding=asked.encoding,
                truncate=asked.truncate,
                exact=asked.exact,
            )
        )
        row["due"] = time_text(clock.ms + cursor.due - clock.steady)
        del row["state"], row["redelivered"]
        return row

    yield from browsed_rows(looking, cursor, asked.limit, asked.truncate, row_of)
