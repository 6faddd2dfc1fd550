"""Translate the verbs of the client into commands of final 0-10.

    queue.declare                 queue.declare, queue.query              the client generates names
    queue.bind, unbind            exchange.bind, unbind
    queue.purge, delete           queue.query, then the command           for the count
    basic.consume                 message.subscribe, set-flow-mode, flow (messages), flow (bytes)
    basic.get                     the same for one message, flush, queue.query, cancel
    basic.qos                     nothing is sent: it applies to later subscriptions
    basic.recover                 message.release of all unacknowledged messages

A verb is done when its last command is completed; the reply of 0-9-1 is built from the results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harebell.client.errors import UnsupportedByVersion
from harebell.wire.v010 import commands as c
from harebell.wire.v010.composites import Command
from harebell.wire.v09 import methods as m

VERSION = "0-10"
ALTERNATE = "alternate-exchange"
CREDIT, WINDOW = 0, 1
MESSAGES, OCTETS = 0, 1
EVERYTHING = 0xFFFFFFFF
NOT_ACQUIRED = 1

Results = list[Any]
"""The results of the commands of a verb, without those that have none."""


class CommandPlan(NamedTuple):
    """The commands of a verb.

    Args:
        commands: in order.
        reply: builds the reply of 0-9-1 from the results.
    """

    commands: list[Command]
    reply: Callable[[Results], m.Method]


def plan(method: m.Method, name: Callable[[], str], window: int) -> CommandPlan:
    """Return the commands of 0-10 for a method of 0-9-1.

    Args:
        method: one that the verbs of a channel send.
        name: generates names for queues without one.
        window: maximum number of unacknowledged messages of a subscription, 0 for no limit.

    Raises:
        UnsupportedByVersion: 0-10 has no equivalent.
    """
    if isinstance(method, m.QueueDeclare):
        return _declare_queue(method, name)
    if isinstance(method, m.BasicConsume):
        return _consume(method, window)
    make = _PLANS.get(type(method))
    if make is None:
        raise UnsupportedByVersion(VERSION, method.NAME)
    made: CommandPlan = make(method)
    return made


def _alternate(arguments: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Split off the alternate exchange, which is a separate field, from the arguments."""
    rest = dict(arguments)
    return rest.pop(ALTERNATE, None), rest


def _declare_queue(method: m.QueueDeclare, name: Callable[[], str]) -> CommandPlan:
    queue = method.queue or name()
    alternate, arguments = _alternate(method.arguments)
    declare = c.QueueDeclare(
        queue=queue,
        alternate_exchange=alternate,
        passive=method.passive,
        durable=method.durable,
        exclusive=method.exclusive,
        auto_delete=method.auto_delete,
        arguments=arguments,
    )

    def reply(results: Results) -> m.Method:
        (queried,) = results
        return m.QueueDeclareOk(
            queue=queue,
            message_count=queried.message_count,
            consumer_count=queried.subscriber_count,
        )

    return CommandPlan([declare, c.QueueQuery(queue=queue)], reply)


def _declare_exchange(method: m.ExchangeDeclare) -> CommandPlan:
    if method.internal:
        raise UnsupportedByVersion(VERSION, "internal exchanges")
    alternate, arguments = _alternate(method.arguments)
    declare = c.ExchangeDeclare(
        exchange=method.exchange,
        type=method.type,
        alternate_exchange=alternate,
        passive=method.passive,
        durable=method.durable,
        auto_delete=method.auto_delete,
        arguments=arguments,
    )
    return CommandPlan([declare], lambda results: m.ExchangeDeclareOk())


def _delete_exchange(method: m.ExchangeDelete) -> CommandPlan:
    delete = c.ExchangeDelete(exchange=method.exchange, if_unused=method.if_unused)
    return CommandPlan([delete], lambda results: m.ExchangeDeleteOk())


def _bind(method: m.QueueBind) -> CommandPlan:
    bind = c.ExchangeBind(
        queue=method.queue,
        exchange=method.exchange,
        binding_key=method.routing_key,
        arguments=dict(method.arguments),
    )
    return CommandPlan([bind], lambda results: m.QueueBindOk())


def _unbind(method: m.QueueUnbind) -> CommandPlan:
    unbind = c.ExchangeUnbind(
        queue=method.queue, exchange=method.exchange, binding_key=method.routing_key
    )
    return CommandPlan([unbind], lambda results: m.QueueUnbindOk())


def _purge(method: m.QueuePurge) -> CommandPlan:
    return CommandPlan(
        [c.QueueQuery(queue=method.queue), c.QueuePurge(queue=method.queue)],
        lambda results: m.QueuePurgeOk(message_count=results[0].message_count),
    )


def _delete_queue(method: m.QueueDelete) -> CommandPlan:
    delete = c.QueueDelete(queue=method.queue, if_unused=method.if_unused, if_empty=method.if_empty)
    return CommandPlan(
        [c.QueueQuery(queue=method.queue), delete],
        lambda results: m.QueueDeleteOk(message_count=results[0].message_count),
    )


def _consume(method: m.BasicConsume, window: int) -> CommandPlan:
    destination, arguments = method.consumer_tag, dict(method.arguments)
    if method.no_local:
        arguments["no-local"] = True
    limited = bool(window) and not method.no_ack
    commands: list[Command] = [
        c.MessageSubscribe(
            queue=method.queue,
            destination=destination,
            accept_mode=int(method.no_ack),
            exclusive=method.exclusive,
            arguments=arguments,
        ),
        c.MessageSetFlowMode(destination=destination, flow_mode=WINDOW if limited else CREDIT),
        c.MessageFlow(
            destination=destination, unit=MESSAGES, value=window if limited else EVERYTHING
        ),
        c.MessageFlow(destination=destination, unit=OCTETS, value=EVERYTHING),
    ]
    return CommandPlan(commands, lambda results: m.BasicConsumeOk(consumer_tag=destination))


def _cancel(method: m.BasicCancel) -> CommandPlan:
    return CommandPlan(
        [c.MessageCancel(destination=method.consumer_tag)],
        lambda results: m.BasicCancelOk(consumer_tag=method.consumer_tag),
    )


def get(queue: str, destination: str, *, no_ack: bool) -> list[Command]:
    """Return the commands that get one message, if the queue has any, and count the others."""
    return [
        c.MessageSubscribe(queue=queue, destination=destination, accept_mode=int(no_ack)),
        c.MessageSetFlowMode(destination=destination, flow_mode=CREDIT),
        c.MessageFlow(destination=destination, unit=MESSAGES, value=1),
        c.MessageFlow(destination=destination, unit=OCTETS, value=EVERYTHING),
        c.MessageFlush(destination=destination),
        c.MessageCancel(destination=destination),
        c.QueueQuery(queue=queue),
    ]


_PLANS: dict[type[m.Method], Callable[[Any], CommandPlan]] = {
    m.ExchangeDeclare: _declare_exchange,
    m.ExchangeDelete: _delete_exchange,
    m.QueueBind: _bind,
    m.QueueUnbind: _unbind,
    m.QueuePurge: _purge,
    m.QueueDelete: _delete_queue,
    m.BasicCancel: _cancel,
    m.TxSelect: lambda method: CommandPlan([c.TxSelect()], lambda results: m.TxSelectOk()),
    m.TxCommit: lambda method: CommandPlan([c.TxCommit()], lambda results: m.TxCommitOk()),
    m.TxRollback: lambda method: CommandPlan([c.TxRollback()], lambda results: m.TxRollbackOk()),
}
