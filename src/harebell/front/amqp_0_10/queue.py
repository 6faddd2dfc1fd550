"""The class queue (AMQP 0-10, class 8).

An exclusive queue belongs to the session that declared it. When the session ends, the queue is no
longer exclusive, or is deleted if it is auto-delete, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import CONFIGURE
from harebell.base.errors import Refusal
from harebell.front.amqp_0_10.arguments import check_known, translated
from harebell.front.amqp_0_10.errors import (
    INVALID_ARGUMENT,
    NOT_ALLOWED,
    NOT_FOUND,
    RESOURCE_LOCKED,
    ExecutionError,
)
from harebell.front.amqp_0_10.long_commands import perform
from harebell.front.common.permission import QUEUE, check, check_any, check_other_exchange
from harebell.front.operations.caller import caller_of_session
from harebell.front.operations.declare import QueueOptions, make_queue
from harebell.front.operations.delete import deletion
from harebell.front.operations.purge import purge_queue
from harebell.model.queue.features.alternate_exchange import ALTERNATE, leaves_messages
from harebell.model.resource import RESERVED_PREFIX, rendered
from harebell.wire.v010 import commands
from harebell.wire.v010.structs import QueueQueryResult

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.session import Session
    from harebell.model.queue.contract import Queue

_DELETE = (8, 2)
"""The codes of class and command of queue.delete."""


def _named(name: str) -> None:
    if not name:
        raise ExecutionError(INVALID_ARGUMENT, "the name of the queue is empty", 0)


def declare(session: Session, command: commands.QueueDeclare) -> None:
    """queue.declare: create it, or check that it may be used and has the same alternate."""
    name = command.queue
    _named(name)
    vhost = session.vhost
    resource = rendered("queue", name, vhost.name)
    if command.passive:
        check_any(session, QUEUE, name)
        _check_existing(session, command, resource)
        return
    check(session, CONFIGURE, QUEUE, name)
    if name in vhost.queues:
        queue = vhost.queue(name, session)
        _check_alternate(resource, queue, command.alternate_exchange or "")
    else:
        queue = _make(session, command, resource)
    if command.exclusive and queue.owner is None:
        if any(consumer not in session.consumers.values() for consumer in queue.consumers):
            raise ExecutionError(RESOURCE_LOCKED, f"{resource} is used by others", 4)
        vhost.give(queue, session)
        # The specification deletes an exclusive auto-delete queue with its session, not earlier.
        queue.stays = True
    queue.declared()
    session.last_queue = name
    # The command completes when a crash cannot lose the queue any more.
    if queue.durable:
        session.hold_until_recorded()


def _check_existing(session: Session, command: commands.QueueDeclare, resource: str) -> None:
    """Check a passive declaration: the queue exists, and is the session's if exclusive is set."""
    queue = session.vhost.queues.get(command.queue)
    if queue is None:
        raise ExecutionError(NOT_FOUND, f"no {resource}", 2)
    if command.exclusive and queue.owner is not session:
        raise ExecutionError(RESOURCE_LOCKED, f"{resource} is not this session's alone", 4)
    queue.declared()
    session.last_queue = command.queue


def _check_alternate(resource: str, queue: Queue, alternate: str) -> None:
    argument = queue.arguments.get(ALTERNATE, "")
    # A declaration without an alternate exchange accepts any.
    if alternate and alternate != argument:
        raise ExecutionError(
            NOT_ALLOWED, f"{resource} has another alternate exchange: '{argument}'", 1
        )


def _make(session: Session, command: commands.QueueDeclare, resource: str) -> Queue:
    name, vhost = command.queue, session.vhost
    if name.startswith(RESERVED_PREFIX):
        raise ExecutionError(
            NOT_ALLOWED, f"{resource}: names with '{RESERVED_PREFIX}' are taken", 0
        )
    arguments = translated(command.arguments)
    check_known(arguments, 6)
    alternate = command.alternate_exchange

    def check_alternate() -> None:
        if alternate:
            check_other_exchange(session, QUEUE, name, {ALTERNATE: alternate}, ALTERNATE)
            if alternate not in vhost.exchanges:
                missing = rendered("exchange", alternate, vhost.name)
                raise ExecutionError(NOT_FOUND, f"no {missing}", 1)

    if alternate:
        arguments[ALTERNATE] = alternate
    # The model's exclusive queues are deleted with a connection, and are never durable.
    options = QueueOptions(
        durable=command.durable, auto_delete=command.auto_delete, arguments=arguments
    )
    return make_queue(caller_of_session(session), name, options, check_alternate)


def delete(session: Session, command: commands.QueueDelete) -> None:
    """queue.delete: remaining messages go to the alternate exchange."""
    name = command.queue
    _named(name)
    check(session, CONFIGURE, QUEUE, name)
    queue = session.vhost.queue(name, session)
    own = {consumer for consumer in session.consumers.values() if consumer.queue is queue}
    conditions = {"if_unused": command.if_unused, "if_empty": command.if_empty}
    # Now, and in `finish` again: the bindings are removed in slices in between.
    session.vhost.find_queue_to_delete(name, session, **conditions)

    routes_messages = leaves_messages(queue)

    def finish() -> None:
        if queue.deleted:
            return
        # The session may still cancel its own subscriptions: they do not end it (`queue_lost`).
        session.ending |= own
        try:
            session.vhost.delete_queue(name, session, **conditions)
        except Refusal:
            session.ending -= own
            raise

    def ticket() -> int:
        # Messages that go to the alternate exchange are in the logs of other queues.
        commit = session.connection.commit
        return commit.ticket if routes_messages else session.vhost.recorder.ticket

    perform(session, deletion(session.vhost, queue, finish), ticket, _DELETE)


def purge(session: Session, command: commands.QueuePurge) -> None:
    """queue.purge: drop ready messages; unacknowledged ones are not affected."""
    _named(command.queue)
    if purge_queue(caller_of_session(session), command.queue).recorded:
        session.wait_for(session.connection.commit.ticket)


def query(session: Session, command: commands.QueueQuery) -> None:
    """queue.query: describe it; the result for a missing queue is empty."""
    check_any(session, QUEUE, command.queue)
    queue = session.vhost.queues.get(command.queue)
    if queue is None:
        session.result(QueueQueryResult())
        return
    arguments = dict(queue.arguments)
    alternate = arguments.pop(ALTERNATE, None)
    session.result(
        QueueQueryResult(
            queue=queue.name,
            alternate_exchange=alternate,
            durable=queue.durable,
            exclusive=queue.owner is not None,
            auto_delete=queue.auto_delete,
            arguments=arguments,
            message_count=queue.ready_count(),
            subscriber_count=len(queue.consumers) + len(queue.browsers),
        )
    )


COMMANDS: dict[type, Any] = {
    commands.QueueDeclare: declare,
    commands.QueueDelete: delete,
    commands.QueuePurge: purge,
    commands.QueueQuery: query,
}
