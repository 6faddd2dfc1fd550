"""The class message, except the per-message path (AMQP 0-10, class 4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from harebell.base.slices import Slices
from harebell.front.amqp_0_10.arguments import NO_LOCAL
from harebell.front.amqp_0_10.errors import (
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    INVALID_ARGUMENT,
    NOT_ALLOWED,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT_EXCEEDED,
    RESOURCE_LOCKED,
    ExecutionError,
)
from harebell.front.amqp_0_10.number_ranges import NumberRanges, numbers_in
from harebell.front.amqp_0_10.settling import in_slices, settle, taken, unaccepted
from harebell.front.amqp_0_10.subscription import Subscription
from harebell.front.limits import RANGES_MAX, REFUSED_AT_ONCE
from harebell.front.operations.caller import caller_of_session
from harebell.front.operations.consume import (
    ConsumerOptions,
    check_arguments,
    check_browser_arguments,
    end,
    start,
)
from harebell.front.operations.get import readable_queue
from harebell.model.queue.stream import StreamQueue
from harebell.model.resource import rendered
from harebell.model.transaction import ACCEPT
from harebell.wire.v010 import commands
from harebell.wire.v010.ranges import wrapped
from harebell.wire.v010.structs import Acquired

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.delivery import Delivery
    from harebell.front.amqp_0_10.session import Session
    from harebell.model.queue.contract import Queue

_INFINITE = 0xFFFF_FFFF
_ACCEPT, _REJECT, _RELEASE, _ACQUIRE = (4, 2), (4, 3), (4, 4), (4, 5)
"""The codes of class and command."""
_PRIORITY = "x-priority"


# --- settling deliveries ------------------------------------------------------------------------


def accept(session: Session, command: commands.MessageAccept) -> None:
    """message.accept: acknowledge messages, in a transaction at its commit."""
    transaction = session.transaction

    def act(entries: list[Delivery]) -> None:
        if transaction is not None:
            if session.transaction is transaction:
                transaction.settle(entries, ACCEPT)
            else:
                # The session has ended between two slices: its end requeues what was not committed.
                session.keep(entries)
            return
        session.counters.ack += len(entries)
        for entry in entries:
            entry.settle()

    ranges = session.meant(command.transfers)
    # Accepting what a browser has only seen has no effect, but ends its right to acquire.
    batches = chain(_forgotten(session, ranges), taken(session.unacked, ranges))
    settle(session, ranges, batches, act, _ACCEPT)


def reject(session: Session, command: commands.MessageReject) -> None:
    """message.reject: send acquired messages to the alternate exchange; others are not affected."""

    def act(entries: list[Delivery]) -> None:
        for entry in entries:
            entry.reject()

    ranges = session.meant(command.transfers)
    batches = taken(session.unacked, ranges, REFUSED_AT_ONCE)
    settle(session, ranges, batches, act, _REJECT, REFUSED_AT_ONCE)


def release(session: Session, command: commands.MessageRelease) -> None:
    """message.release: requeue messages in their positions."""

    def act(entries: list[Delivery]) -> None:
        for entry in entries:
            entry.consumer.released()
            marked = entry.redelivered or command.set_redelivered
            entry.queue.requeue_uncounted(entry.position, marked)

    ranges = session.meant(command.transfers)
    batches = chain(
        _forgotten(session, ranges),
        taken(session.unacked, ranges, REFUSED_AT_ONCE),
        # Qpid's clients release what they accepted in a transaction before they roll it back.
        unaccepted(session, ranges),
    )
    settle(session, ranges, batches, act, _RELEASE, REFUSED_AT_ONCE)


def _forgotten(session: Session, ranges: NumberRanges) -> Iterator[list[Delivery]]:
    """Forget browsed deliveries; there is nothing else to do with them."""
    for _ in taken(session.shown, ranges):
        yield []


def acquire(session: Session, command: commands.MessageAcquire) -> None:
    """message.acquire: acquire the messages that are still available; always sends a result."""
    acquired: list[tuple[int, int]] = []
    asked = session.current

    def take(entry: Delivery) -> None:
        if len(acquired) == RANGES_MAX:
            # The result has no room for one more range: the peer may ask again for the rest.
            return
        # Another consumer may have got the message since the browser saw it.
        if not entry.queue.acquire(entry.position, entry.consumer):
            return
        session.unacked.put(entry.number, session.shown.take(entry.number))
        entry.consumer.unacked += 1
        number = wrapped(entry.number)
        if acquired and acquired[-1][1] == number - 1:
            acquired[-1] = (acquired[-1][0], number)
        else:
            acquired.append((number, number))

    def doing() -> Slices[None]:
        for number in numbers_in(session.shown, ranges):
            entry = session.shown.get(number)
            if entry is not None and not session.ended:
                take(entry)
            yield

    def finish() -> int:
        session.result(Acquired(tuple(acquired)), asked)
        return 0

    ranges = session.meant(command.transfers)
    in_slices(session, ranges, doing(), finish, _ACQUIRE)


def resume(session: Session, command: commands.MessageResume) -> None:
    """message.resume: parts of a message are not kept after its transfer."""
    raise ExecutionError(NOT_IMPLEMENTED, "interrupted transfers cannot be resumed", 1)


# --- subscriptions ------------------------------------------------------------------------------


def subscribe(session: Session, command: commands.MessageSubscribe) -> None:
    """message.subscribe: without credit, so nothing is delivered before message.flow."""
    tag = command.destination or ""
    if tag in session.consumers:
        raise ExecutionError(NOT_ALLOWED, f"there is a subscription '{tag}' already", 1)
    accept_none, browses = _modes(command)
    if command.resume_id is not None or command.resume_ttl is not None:
        raise ExecutionError(NOT_IMPLEMENTED, "interrupted transfers cannot be resumed", 5)
    if not command.queue:
        raise ExecutionError(ILLEGAL_ARGUMENT, "the name of the queue is empty", 0)
    queue = readable_queue(caller_of_session(session), command.queue)
    limit = session.connection.settings.consumer_max_per_channel
    if limit and len(session.consumers) >= limit:
        text = f"reached maximum ({limit}) of subscriptions per session"
        raise ExecutionError(RESOURCE_LIMIT_EXCEEDED, text)
    # A stream is read by every consumer for itself: browsing and acquiring are the same there,
    # and credit needs completions, whatever the accept mode.
    reads = isinstance(queue, StreamQueue)
    options = ConsumerOptions(
        tag, accept_none and not reads, command.exclusive, 1, command.arguments
    )
    if browses and not reads:
        check_browser_arguments(session.vhost, queue, options)
    else:
        check_arguments(session.vhost, queue, options)
    if not browses:
        _check_sharing(session, queue, exclusive=command.exclusive)
    excluded = session.connection.origin if NO_LOCAL in queue.arguments and not browses else 0
    subscription = Subscription(
        session,
        queue,
        tag,
        accept=not accept_none,
        acquire=not browses or reads,
        no_ack=accept_none and not reads,
        exclusive=command.exclusive and not browses,
        priority=_priority(command),
        arguments=command.arguments,
        excluded=excluded,
    )
    start(session, session.consumers, subscription, browses=browses)


def _modes(command: commands.MessageSubscribe) -> tuple[bool, bool]:
    for field, value in ((2, command.accept_mode), (3, command.acquire_mode)):
        if value > 1:
            raise ExecutionError(ILLEGAL_ARGUMENT, f"there is no mode {value}", field)
    return bool(command.accept_mode), bool(command.acquire_mode)


def _check_sharing(session: Session, queue: Queue, *, exclusive: bool) -> None:
    """Refuse a subscription beside an exclusive one, except for browsers."""
    # An exclusive consumer is the only one.
    first = queue.consumers.first()
    taken = first is not None and first.exclusive
    if taken or (exclusive and queue.consumers):
        resource = rendered("queue", queue.name, session.vhost.name)
        raise ExecutionError(RESOURCE_LOCKED, f"{resource} in exclusive use", 4)


def _priority(command: commands.MessageSubscribe) -> int:
    value = command.arguments.get(_PRIORITY, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        text = f"{_PRIORITY} is a number of 32 bits, not {value!r}"
        raise ExecutionError(INVALID_ARGUMENT, text, 7)
    return value


def cancel(session: Session, command: commands.MessageCancel) -> None:
    """message.cancel: outstanding deliveries can still be settled."""
    subscription = _find(session, command.destination)
    del session.consumers[command.destination]
    end(session, subscription)


def _find(session: Session, destination: str | None) -> Subscription:
    consumer = session.consumers.get(destination or "")
    if not isinstance(consumer, Subscription):
        raise ExecutionError(NOT_FOUND, f"there is no subscription '{destination or ''}'", 0)
    return consumer


# --- credit -------------------------------------------------------------------------------------


def set_flow_mode(session: Session, command: commands.MessageSetFlowMode) -> None:
    """message.set-flow-mode: allowed only without credit (rule "mode-switching")."""
    subscription = _find(session, command.destination)
    if command.flow_mode > 1:
        raise ExecutionError(ILLEGAL_ARGUMENT, f"there is no flow mode {command.flow_mode}", 1)
    window = bool(command.flow_mode)
    # -1, no limit, is credit as well.
    if window != subscription.window and (subscription.messages or subscription.byte_count):
        text = f"'{subscription.tag}' has credit left: stop or flush it before the mode changes"
        raise ExecutionError(ILLEGAL_STATE, text, 1)
    subscription.window = window


def flow(session: Session, command: commands.MessageFlow) -> None:
    """message.flow: add credit."""
    subscription = _find(session, command.destination)
    if command.unit > 1:
        raise ExecutionError(ILLEGAL_ARGUMENT, f"there is no unit {command.unit}", 1)
    subscription.add(command.unit, None if command.value == _INFINITE else command.value)
    subscription.queue.drain()


def flush(session: Session, command: commands.MessageFlush) -> None:
    """message.flush: deliver ready messages, then remove the credit."""
    subscription = _find(session, command.destination)
    queue = subscription.queue

    def flushed() -> bool:
        # In this order: the credit is for what is ready now, and for nothing that comes later.
        queue.drain()
        if queue.looks_for(subscription) and subscription.ready():
            # With a selector there may be very many messages to look at.
            return False
        session.end_window(subscription)
        return True

    if not flushed():
        session.connection.perform(flushed)


def stop(session: Session, command: commands.MessageStop) -> None:
    """message.stop: remove the credit; nothing more is delivered."""
    session.end_window(_find(session, command.destination))


COMMANDS: dict[type, Any] = {
    commands.MessageAccept: accept,
    commands.MessageReject: reject,
    commands.MessageRelease: release,
    commands.MessageAcquire: acquire,
    commands.MessageResume: resume,
    commands.MessageSubscribe: subscribe,
    commands.MessageCancel: cancel,
    commands.MessageSetFlowMode: set_flow_mode,
    commands.MessageFlow: flow,
    commands.MessageFlush: flush,
    commands.MessageStop: stop,
}
