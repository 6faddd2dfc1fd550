"""Commands for super streams: streams that are read and written as one, as RabbitMQ lays them out.

A super stream is a durable direct exchange with the argument `x-super-stream`. Its partitions are
streams that are bound to it, each with a routing key of its own and its place in the argument
`x-stream-partition-order` of the binding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import NO_ARGUMENTS, InVhost, OnlyVhost
from harebell.admin.catalog import STREAMS
from harebell.admin.command import MANAGEMENT, Argument, Form, Row, plural
from harebell.admin.context import (
    AdminContext,
    CommandRefused,
    checked_name,
    checked_table,
    missing,
)
from harebell.admin.limits import SUPER_STREAM_PARTITIONS
from harebell.base.errors import HarebellError
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.model.exchange import Exchange
    from harebell.model.vhost import VHost

Table = Annotated[
    dict[str, Any],
    Argument(
        "An argument of every partition: name=text or name:=JSON. May be repeated.",
        form=Form.TABLE,
    ),
]
_SUPER = "x-super-stream"
_ORDER = "x-stream-partition-order"
_TYPE = "x-queue-type"
_COLUMNS = ("vhost", "name", "partitions")
"""The columns of a super stream."""


def _added(outcome: Mapping[str, Any]) -> str:
    count = plural(len(outcome["partitions"]), "partition")
    return f"super stream '{outcome['name']}' in vhost '{outcome['vhost']}' has {count}"


@STREAMS.command(
    "PUT /api/stream/super-streams/{vhost}/{name}",
    tag=MANAGEMENT,
    verb="add-super",
    done=_added,
    row=_COLUMNS,
)
def add_super(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    partitions: Annotated[int, Argument("How many partitions it has.", "NUMBER")] = 3,
    arguments: Table = NO_ARGUMENTS,
) -> Slices[Row]:
    """Make the super stream NAME with the partitions NAME-0, NAME-1 and so on."""
    where = context.vhost(vhost)
    checked_name(name, "super stream", NAME_BYTES)
    if not 1 <= partitions <= SUPER_STREAM_PARTITIONS:
        raise CommandRefused(
            f"a super stream has 1 to {SUPER_STREAM_PARTITIONS} partitions, not {partitions}"
        )
    if arguments.get(_TYPE, "stream") != "stream":
        raise CommandRefused(f"the partitions of a super stream are streams: leave {_TYPE} out")
    queues = [f"{name}-{number}" for number in range(partitions)]
    checked_name(queues[-1], "partition", NAME_BYTES)
    kept = checked_table({**arguments, _TYPE: "stream"}, f"the arguments of stream '{name}'")
    return _declared(context, where, name, queues, kept)


def _declared(
    context: AdminContext, where: VHost, name: str, queues: list[str], arguments: dict[str, Any]
) -> Slices[Row]:
    """Declare all parts; if one is refused, delete the parts that were declared before it."""
    from harebell.front.operations.bind import BindingRequest, bind
    from harebell.front.operations.declare import (
        ExchangeOptions,
        QueueOptions,
        declare_exchange,
        declare_queue,
    )

    caller = context.caller(where)
    made: list[str] = []
    made_exchange = name not in where.exchanges
    try:
        options = ExchangeOptions(durable=True, arguments={_SUPER: True})
        partitions = set(_partitions(declare_exchange(caller, name, "direct", options)))
        if not partitions <= set(queues):
            raise CommandRefused(
                f"super stream '{name}' in vhost '{where.name}' has {len(partitions)} partitions "
                f"already, not {len(queues)}"
            )
        for number, queue in enumerate(queues):
            if queue not in where.queues:
                made.append(queue)
            partition = QueueOptions(durable=True, arguments=arguments)
            declare_queue(caller, queue, partition).declared()
            bind(caller, BindingRequest("queue", queue, name, str(number), {_ORDER: number}))
            yield
    except HarebellError:
        for queue in made:
            if queue in where.queues:
                where.delete_queue(queue)
        if made_exchange and name in where.exchanges:
            where.delete_exchange(name)
        raise
    if made_exchange or made:
        context.log("info", f"super stream '{name}' in vhost '{where.name}' was declared")
    return {"vhost": where.name, "name": name, "partitions": queues}


@STREAMS.command(
    "DELETE /api/stream/super-streams/{vhost}/{name}",
    tag=MANAGEMENT,
    verb="delete-super",
    done="super stream '{name}' in vhost '{vhost}' was deleted",
    row=_COLUMNS,
)
def delete_super(context: AdminContext, name: str, vhost: InVhost = "/") -> Slices[Row]:
    """Delete a super stream, its partitions and their messages."""
    from harebell.front.operations.delete import deletable_queue

    where = context.vhost(vhost)
    caller = context.caller(where)
    context.check_permission(where, "configure", "exchange", name)
    exchange = where.exchanges.get(name)
    if exchange is None or not exchange.arguments.get(_SUPER):
        raise missing(
            f"no super stream '{name}' in vhost '{where.name}': `harebell streams list-super` "
            "shows all"
        )
    queues = _partitions(exchange)
    for queue in queues:
        deletable_queue(caller, queue, if_unused=False, if_empty=False)
    return _deleted(context, where, name, queues)


def _deleted(context: AdminContext, where: VHost, name: str, queues: list[str]) -> Slices[Row]:
    count = 0
    try:
        for queue in queues:
            if queue in where.queues:
                where.delete_queue(queue)
            count += 1
            yield
        # Last, so that an interrupted deletion can be repeated.
        if name in where.exchanges:
            where.delete_exchange(name)
    except HarebellError as error:
        raise CommandRefused(
            f"{count} of {len(queues)} partitions of super stream '{name}' in vhost "
            f"'{where.name}' were deleted: {error}: delete it again"
        ) from None
    context.log("info", f"super stream '{name}' in vhost '{where.name}' was deleted")
    return {"vhost": where.name, "name": name, "partitions": queues}


@STREAMS.command(tag=MANAGEMENT, verb="list-super", row=_COLUMNS, summary="List all super streams.")
def list_super(
    context: AdminContext,
    vhost: OnlyVhost = None,
) -> Slices[list[Row]]:
    """List super streams by vhost and name, with their partitions in order."""
    rows: list[Row] = []
    for where in context.vhosts(vhost):
        for name, exchange in sorted(where.exchanges.items()):
            if exchange.arguments.get(_SUPER):
                rows.append(
                    {"vhost": where.name, "name": name, "partitions": _partitions(exchange)}
                )
            yield
    return rows


def _partitions(exchange: Exchange) -> list[str]:
    """Return the names of the partitions of a super stream, in their order."""
    from harebell.model.queue.contract import Queue

    bound = [
        (order, binding.destination.name)
        for binding in exchange.bindings.values()
        if isinstance(binding.destination, Queue)
        and isinstance(order := binding.arguments.get(_ORDER), int)
    ]
    return [name for _, name in sorted(bound)]
