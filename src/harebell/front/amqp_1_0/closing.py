"""The end of links and sessions: consumers are removed, deliveries are requeued, in slices.

A link may have a million deliveries that its peer has not settled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.slices import Slices, at_once, stepped
from harebell.front.amqp_1_0 import termini
from harebell.front.amqp_1_0.nodes import drop_owned
from harebell.front.amqp_1_0.verdicts import requeue_failed
from harebell.front.common.event_exchange import channel_closed, consumer_deleted
from harebell.front.limits import REMOVED_CONSUMER_UNITS
from harebell.model.limits import REMOVED_AT_ONCE

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.connection import Connection
    from harebell.front.amqp_1_0.receiving import ReceivingLink
    from harebell.front.amqp_1_0.sending import SendingLink
    from harebell.front.amqp_1_0.session import Session
    from harebell.model.queue.contract import Queue


def close_session(session: Session) -> None:
    """End a session, which gets no more deliveries."""
    session.outcomes.close()
    session.backlog = None
    # They refer to the session: memory would be released by a collection only.
    session.renewing.clear()
    session.connection.registry.totals.channel_closed(session)
    links = list(session.links.values())
    session.links.clear()
    session.receiver = None
    termini.keep(session, links, termini.SESSION_END)
    termini.expire_held(session.kept, termini.SESSION_END, session.connection)
    for link in links:
        link.close()
    units = session.unacked.count + len(links)
    if session.transaction is not None:
        units += session.transaction.work
    _perform(session.connection, _closing(session, links), units)


def _closing(session: Session, links: list[SendingLink | ReceivingLink]) -> Slices[None]:
    """Requeue unsettled deliveries, remove the consumers, then serve the queues.

    The order matters: deliveries of an auto-delete queue are requeued before it is deleted.
    """
    consumers, session.consumers = session.consumers, {}
    queues: dict[Queue, None] = {consumer.queue: None for consumer in consumers.values()}
    if session.transaction is not None:
        yield from session.transaction.forgetting()
    unacked = session.unacked
    while unacked.count:
        entry = unacked.take(unacked.first())
        if entry is not None:
            requeue_failed(entry)
            queues[entry.queue] = None
        yield
    for consumer in consumers.values():
        yield from _undo_resuming(consumer)
        consumer_deleted(session, consumer)
        session.vhost.remove_consumer(consumer)
        yield
    for link in links:
        if link.owned:
            drop_owned(link)
            yield
    _serve(queues)
    channel_closed(session)


def end_link(link: SendingLink) -> None:
    """Remove the consumer of a link, and requeue its deliveries."""
    link.session.consumers.pop(link.tag, None)
    _perform(link.connection, _ending(link), link.unacked)


def _ending(link: SendingLink) -> Slices[None]:
    session, unacked = link.session, link.session.unacked
    consumer_deleted(session, link)
    number = unacked.first()
    # Deliveries of other links lie between them.
    while link.unacked > 0 and number < unacked.next:
        entry = unacked.get(number)
        if entry is not None and entry.consumer is link:
            unacked.take(number)
            requeue_failed(entry)
        yield
        number = unacked.next_from(number + 1)
    yield from _undo_resuming(link)
    session.vhost.remove_consumer(link)
    drop_owned(link)
    _serve({link.queue: None})


def _undo_resuming(link: SendingLink) -> Slices[None]:
    """Requeue what a resumed link has not sent again."""
    resumption, link.resumption = link.resumption, None
    if resumption is not None:
        yield from termini.requeuing(link.queue, resumption.deliveries.values())


def _serve(queues: dict[Queue, None]) -> None:
    for queue in queues:
        if not queue.deleted:
            queue.drain()


def _perform(connection: Connection, slices: Slices[None], units: int) -> None:
    """Do the work at once if it is little, and in slices otherwise."""
    if units <= REMOVED_AT_ONCE:
        at_once(slices)
        return
    events, user = connection.broker.events, connection.user.name
    step = stepped(slices, connection.registry.work, REMOVED_CONSUMER_UNITS, bool)

    def slice_() -> bool:
        # In a later slice another connection's user is the actor of its own events.
        events.actor = user
        return step()

    connection.perform(slice_)
