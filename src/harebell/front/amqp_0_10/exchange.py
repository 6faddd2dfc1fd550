"""The class exchange (AMQP 0-10, class 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import CONFIGURE
from harebell.front.amqp_0_10.arguments import check_known
from harebell.front.amqp_0_10.errors import (
    INVALID_ARGUMENT,
    NOT_ALLOWED,
    NOT_FOUND,
    PRECONDITION_FAILED,
    ExecutionError,
)
from harebell.front.amqp_0_10.long_commands import perform
from harebell.front.common.permission import (
    EXCHANGE,
    QUEUE,
    check,
    check_any,
    check_binding_seen,
    may_see,
)
from harebell.front.operations.bind import BOUND, UNBOUND, check_binding
from harebell.front.operations.caller import caller_of_session
from harebell.front.operations.declare import ExchangeOptions, make_exchange
from harebell.front.operations.delete import exchange_deletion
from harebell.model.binding import Binding
from harebell.model.exchange import KINDS
from harebell.model.queue.features.alternate_exchange import ALTERNATE
from harebell.model.resource import RESERVED_PREFIX, rendered
from harebell.wire.v010 import commands
from harebell.wire.v010.composites import Table
from harebell.wire.v010.structs import ExchangeBoundResult, ExchangeQueryResult

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.session import Session
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue

_ALTERNATE = "alternate-exchange"
_QPID = "qpid."
"""A prefix that clients of 0-10 know as reserved."""

_DELETE = (7, 2)
"""The codes of class and command of exchange.delete."""


def _named(name: str, field: int) -> None:
    if not name:
        raise ExecutionError(INVALID_ARGUMENT, "the name of the exchange is empty", field)


def declare(session: Session, command: commands.ExchangeDeclare) -> None:
    """exchange.declare: create it, or check that type and alternate exchange are the same."""
    name = command.exchange
    _named(name, 0)
    vhost = session.vhost
    resource = rendered("exchange", name, vhost.name)
    if command.passive:
        check_any(session, EXCHANGE, name)
    else:
        check(session, CONFIGURE, EXCHANGE, name)
    exchange = vhost.exchanges.get(name)
    if command.passive:
        if exchange is None:
            raise ExecutionError(NOT_FOUND, f"no {resource}", 0)
        if command.type and command.type != exchange.KIND:
            raise _typed(resource, exchange, command.type)
        return
    if command.type not in KINDS:
        raise ExecutionError(NOT_FOUND, f"unknown exchange type '{command.type}'", 1)
    alternate = command.alternate_exchange or ""
    if exchange is not None:
        if command.type != exchange.KIND:
            raise _typed(resource, exchange, command.type)
        if alternate and alternate != (exchange.alternate or ""):
            text = f"{resource} has another alternate exchange: '{exchange.alternate or ''}'"
            raise ExecutionError(NOT_ALLOWED, text, 2)
    else:
        _make(session, command, resource, alternate)
    if vhost.exchange(name).durable:
        session.hold_until_recorded()


def _typed(resource: str, exchange: Exchange, kind: str) -> ExecutionError:
    return ExecutionError(NOT_ALLOWED, f"{resource} is of type '{exchange.KIND}', not '{kind}'", 1)


def _make(
    session: Session, command: commands.ExchangeDeclare, resource: str, alternate: str
) -> None:
    for prefix in (RESERVED_PREFIX, _QPID):
        if command.exchange.startswith(prefix):
            raise ExecutionError(NOT_ALLOWED, f"{resource}: names with '{prefix}' are taken", 0)
    check_known(command.arguments, 6)
    arguments = dict(command.arguments)
    if alternate:
        arguments[_ALTERNATE] = alternate

    def check_alternate() -> None:
        if alternate:
            session.vhost.exchange(alternate)

    options = ExchangeOptions(command.durable, command.auto_delete, arguments=arguments)
    caller = caller_of_session(session)
    make_exchange(caller, command.exchange, command.type, options, check_alternate)


def delete(session: Session, command: commands.ExchangeDelete) -> None:
    """exchange.delete: the exchange must exist and not be an alternate exchange."""
    name = command.exchange
    _named(name, 0)
    vhost = session.vhost
    resource = rendered("exchange", name, vhost.name)
    if name.startswith(RESERVED_PREFIX):
        raise ExecutionError(NOT_ALLOWED, f"{resource} cannot be deleted", 0)
    check(session, CONFIGURE, EXCHANGE, name)
    exchange = vhost.exchange(name)
    # The exception "used-as-alternate"; 0-9-1 and RabbitMQ allow such a deletion.
    for each in vhost.exchanges.values():
        if each.alternate == name and each is not exchange:
            other = _shown(session, EXCHANGE, each.name)
            raise ExecutionError(NOT_ALLOWED, f"{resource} is the alternate exchange of {other}", 0)
    for queue in vhost.queues.values():
        if queue.arguments.get(ALTERNATE) == name:
            other = _shown(session, QUEUE, queue.name)
            raise ExecutionError(NOT_ALLOWED, f"{resource} is the alternate exchange of {other}", 0)
    if command.if_unused and exchange.bindings:
        raise ExecutionError(PRECONDITION_FAILED, f"{resource} in use", 1)
    vhost.find_exchange_to_delete(name)

    step = exchange_deletion(vhost, name, exchange)
    perform(session, step, lambda: vhost.recorder.ticket, _DELETE)


def _shown(session: Session, kind: str, name: str) -> str:
    """Return the name of a resource for an error, if the user may see it."""
    return rendered(kind, name, session.vhost.name) if may_see(session, kind, name) else f"a {kind}"


def query(session: Session, command: commands.ExchangeQuery) -> None:
    """exchange.query: describe it; without a name, the default exchange."""
    check_any(session, EXCHANGE, command.name or "")
    exchange = session.vhost.exchanges.get(command.name or "")
    if exchange is None:
        session.result(ExchangeQueryResult(not_found=True))
        return
    session.result(
        ExchangeQueryResult(
            type=exchange.KIND, durable=exchange.durable, arguments=dict(exchange.arguments)
        )
    )


def _both(
    session: Session, command: commands.ExchangeBind | commands.ExchangeUnbind, event: str
) -> tuple[Queue, Exchange, str]:
    """Check and return queue, exchange and key of a binding."""
    if not command.queue:
        raise ExecutionError(INVALID_ARGUMENT, "the name of the queue is empty", 0)
    _named(command.exchange, 1)
    key = command.binding_key or ""
    check_binding(session, QUEUE, command.queue, command.exchange, key, event=event)
    vhost = session.vhost
    return vhost.queue(command.queue, session), vhost.exchange(command.exchange), key


def _bindings(queue: Queue, exchange: Exchange, key: str) -> list[Binding]:
    """Return the bindings of a queue to an exchange with that key; 0-10 allows one."""
    return [
        binding
        for binding in (queue.bound or {}).values()
        if binding.source is exchange and binding.routing_key == key
    ]


def bind(session: Session, command: commands.ExchangeBind) -> None:
    """exchange.bind: a repetition changes nothing, not even with other arguments."""
    queue, exchange, key = _both(session, command, BOUND)
    # The rule "duplicates": the arguments of an existing binding with that key do not change.
    if not _bindings(queue, exchange, key):
        check_known(command.arguments, 3, names=exchange.KIND == "headers")
        session.vhost.bind(exchange.name, queue, key, command.arguments)
    if queue.durable:
        session.hold_until_recorded()


def unbind(session: Session, command: commands.ExchangeUnbind) -> None:
    """exchange.unbind: the binding must exist."""
    queue, exchange, key = _both(session, command, UNBOUND)
    bindings = _bindings(queue, exchange, key)
    if not bindings:
        names = rendered("queue", queue.name, session.vhost.name)
        text = f"{names} is not bound to exchange '{exchange.name}' with the key '{key}'"
        raise ExecutionError(NOT_FOUND, text, 2)
    for binding in bindings:
        session.vhost.unbind(exchange.name, queue, key, binding.arguments)
    session.hold_until_recorded()


def bound(session: Session, command: commands.ExchangeBound) -> None:
    """exchange.bound: whether a binding exists, and if not, which part is missing."""
    names = (command.exchange or "", command.queue or "", command.binding_key or "")
    check_binding_seen(session, *names)
    exchange = session.vhost.exchanges.get(command.exchange or "")
    queue = session.vhost.queues.get(command.queue) if command.queue else None
    no_queue = bool(command.queue) and queue is None
    if exchange is None or no_queue:
        session.result(
            ExchangeBoundResult(exchange_not_found=exchange is None, queue_not_found=no_queue)
        )
        return
    key, arguments = command.binding_key, command.arguments
    pairs = _bound(session, exchange)
    result = ExchangeBoundResult()
    if not _any(pairs, queue, key, arguments):
        result.queue_not_matched = queue is not None and not _any(pairs, queue, None, {})
        result.key_not_matched = bool(key) and not _any(pairs, None, key, {})
        result.args_not_matched = bool(arguments) and not _any(pairs, None, None, arguments)
        if not (result.queue_not_matched or result.key_not_matched or result.args_not_matched):
            # Each part matches some binding, but no binding matches all.
            result.queue_not_matched = queue is not None
            result.key_not_matched = bool(key)
            result.args_not_matched = bool(arguments)
    session.result(result)


def _bound(session: Session, exchange: Exchange) -> list[tuple[object, str, Table]]:
    """Return destination, key and arguments of all bindings."""
    # The default exchange has no bindings that are stored: every queue has one by its name.
    if exchange.default:
        return [(queue, name, {}) for name, queue in session.vhost.queues.items()]
    return [
        (binding.destination, binding.routing_key, dict(binding.arguments))
        for binding in exchange.bindings.values()
    ]


def _any(
    pairs: list[tuple[object, str, Table]], queue: Queue | None, key: str | None, arguments: Table
) -> bool:
    return any(
        (queue is None or destination is queue)
        and (not key or bound_key == key)
        and (not arguments or bound_arguments == arguments)
        for destination, bound_key, bound_arguments in pairs
    )


COMMANDS: dict[type, Any] = {
    commands.ExchangeDeclare: declare,
    commands.ExchangeDelete: delete,
    commands.ExchangeQuery: query,
    commands.ExchangeBind: bind,
    commands.ExchangeUnbind: unbind,
    commands.ExchangeBound: bound,
}
