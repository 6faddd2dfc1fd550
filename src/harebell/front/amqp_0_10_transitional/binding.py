"""The class binding (class 130): query whether a binding exists, and which part is missing.

Empty fields of the query match everything. The default exchange binds every queue by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_10_transitional.access import check_ticket
from harebell.front.common.access_tickets import PASSIVE
from harebell.front.common.permission import check_binding_seen
from harebell.model.binding import Binding, frozen
from harebell.wire.v09.methods_transitional import BindingQuery, BindingQueryOk

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

_CLASS, _QUERY = 130, 10
_NO_ARGUMENTS: Mapping[str, Any] = {}


def _bindings(vhost: VHost, exchange: Exchange) -> Iterator[Binding]:
    if not exchange.default:
        yield from exchange.bindings.values()
        return
    for queue in vhost.queues.values():
        yield Binding(exchange, queue, queue.name, _NO_ARGUMENTS)


def _matches(binding: Binding, queue: Queue | None, key: str, arguments: Mapping[str, Any]) -> bool:
    return (
        (queue is None or binding.destination is queue)
        and (not key or binding.routing_key == key)
        and (not arguments or frozen(binding.arguments) == frozen(arguments))
    )


def query(channel: TransitionalChannel, method: BindingQuery) -> None:
    """binding.query: each flag of the answer is a part that was not found."""
    check_ticket(channel, method.ticket, PASSIVE, (_CLASS, _QUERY))
    check_binding_seen(channel, method.exchange, method.queue, method.routing_key)
    vhost = channel.vhost
    exchange = vhost.exchanges.get(method.exchange)
    queue = vhost.queues.get(method.queue) if method.queue else None
    answer = BindingQueryOk(
        exchange_not_found=exchange is None,
        queue_not_found=bool(method.queue) and queue is None,
    )
    if exchange is not None and not answer.queue_not_found:
        key, arguments = method.routing_key, method.arguments
        bindings = list(_bindings(vhost, exchange))

        def some(queue: Queue | None, key: str, arguments: Mapping[str, Any]) -> bool:
            return any(_matches(each, queue, key, arguments) for each in bindings)

        if not some(queue, key, arguments):
            answer.queue_not_matched = queue is not None and not some(queue, "", _NO_ARGUMENTS)
            answer.key_not_matched = bool(key) and not some(None, key, _NO_ARGUMENTS)
            answer.args_not_matched = bool(arguments) and not some(None, "", arguments)
            if not (answer.queue_not_matched or answer.key_not_matched or answer.args_not_matched):
                # Each part matches: report the first that does not match with those before it.
                answer.key_not_matched = not some(queue, key, _NO_ARGUMENTS)
                answer.args_not_matched = not answer.key_not_matched
    channel.connection.send(channel.number, answer)


HANDLERS = {BindingQuery: query}
