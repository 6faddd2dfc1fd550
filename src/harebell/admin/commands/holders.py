"""The command that says who has a message: a consumer, a lease group, or its queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harebell.admin.arguments import InVhost
from harebell.admin.catalog import QUEUES
from harebell.admin.command import MANAGEMENT, Row
from harebell.admin.commands.queues import find_readable
from harebell.admin.context import AdminContext, missing
from harebell.admin.limits import HOLDER_LOOKS
from harebell.admin.rows.common import time_text
from harebell.admin.rows.connections import channel_details
from harebell.base.slices import Slices
from harebell.base.timers import NEVER

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

_AT_THE_END = 2**62


@QUEUES.command("GET /api/queues/{vhost}/{name}/messages/{offset}", tag=MANAGEMENT)
def holder(context: AdminContext, name: str, offset: int, vhost: InVhost = "/") -> Slices[Row]:
    """Say who has a message of a queue.

    It is ready; delivered to a consumer, or by a get; leased by a group; waiting for its retry; or
    withheld, such as by a distributed transaction.
    """
    where, queue = find_readable(context, vhost, name)
    return _said(context, where, queue, offset)


def _said(context: AdminContext, vhost: VHost, queue: Queue, offset: int) -> Slices[Row]:
    row: Row = {"vhost": vhost.name, "queue": queue.name, "offset": offset}
    bits = 0 if queue.kind == "stream" else queue.order.level_bits  # type: ignore[attr-defined]
    level, in_log = offset & (1 << bits) - 1, offset >> bits
    if _is_ready(vhost, queue, level, in_log, offset):
        return {**row, "state": "ready"}
    retry: Any = getattr(queue, "retry", None)
    if retry is not None:
        due = yield from retry.due_of(offset)
        if due != NEVER:
            clock = context.broker.clock
            return {**row, "state": "waiting", "due": time_text(clock.ms + due - clock.steady)}
    group = yield from _group_with(queue, level, in_log)
    if group:
        return {**row, "state": "leased", "group": group}
    found = yield from _delivery(context, vhost, queue, offset)
    return {**row, **(found or {"state": "withheld"})}


def _is_ready(vhost: VHost, queue: Queue, level: int, in_log: int, offset: int) -> bool:
    """Return whether a message is ready.

    Raises:
        CommandRefused: there is none at that offset.
    """
    from harebell.model.queue.browse import READY, Start

    cursor = queue.browse(Start(), ready_only=False)
    if 0 <= in_log < _AT_THE_END and level < len(cursor.cursors):
        places = [_AT_THE_END] * len(cursor.cursors)
        places[level] = in_log
        cursor.go_to(places, cursor.ends)
        if cursor.next() == offset:
            browsed = cursor.read()
            if browsed is not None:
                return browsed.state == READY
    raise missing(
        f"no message {offset} in queue '{queue.name}' of vhost '{vhost.name}': it may have left "
        "meanwhile"
    )


def _group_with(queue: Queue, level: int, in_log: int) -> Slices[str]:
    """Return the name of the group that has leased a message; "" if none has."""
    leases: Any = getattr(queue, "leases", None)
    looked = 0
    for group in [] if leases is None else list(leases.groups.values()):
        for claim in list(group.claims.values()):
            if any(run.level == level and run.first <= in_log < run.end for run in claim.runs):
                name: str = group.name
                return name
            looked += len(claim.runs)
            if looked >= HOLDER_LOOKS:
                looked = 0
                yield
    return ""


def _delivery(context: AdminContext, vhost: VHost, queue: Queue, offset: int) -> Slices[Row | None]:
    """Return to whom a message was delivered; None if no channel has it."""
    looked = 0
    for connection, channel in context.channels():
        if channel.vhost is not vhost:
            continue
        for place in (channel, getattr(channel, "extras", None)):
            for entry in () if place is None else _entries(place.unacked):
                looked += 1
                if looked % HOLDER_LOOKS == 0:
                    yield
                if entry is not None and entry.queue is queue and entry.position == offset:
                    consumer = entry.consumer
                    # Everybody sees consumers; other channels are for those who see the connection.
                    shown = consumer is not None or context.may_see_work_of(connection.user.name)
                    return {
                        "state": "delivered",
                        **(
                            {"channel_details": channel_details(connection, channel)}
                            if shown
                            else {}
                        ),
                        "consumer_tag": "" if consumer is None else consumer.tag,
                    }
    return None


def _entries(unacked: Any) -> Iterator[Any]:
    """Yield the deliveries that are not acknowledged, a run of them one by one."""
    number = unacked.next_from(0)
    while number < unacked.next:
        entry = unacked.get(number)
        # Several in a row share an object.
        alone = getattr(entry, "entry", None)
        yield entry if alone is None else alone(number)
        number = unacked.next_from(number + 1)
