"""A channel of transitional 0-10, and the state of a session that may outlive it.

It adds to the channel of 0-8 what this version has above the frames: numbers of commands in both
directions, completion, and a session that is detached and attached again.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from harebell.base.message import FAMILY_09, Message
from harebell.base.slices import Slices, stepped
from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel
from harebell.front.amqp_0_9_1.other_contents import send_back
from harebell.front.amqp_0_10_transitional.completion import (
    CONTROLS,
    SESSION_CLASS,
    Completions,
    after,
)
from harebell.front.amqp_0_10_transitional.headers import readable, shown
from harebell.front.amqp_0_10_transitional.layer import layer_of
from harebell.front.amqp_0_10_transitional.refused import Refused
from harebell.front.amqp_0_10_transitional.replay import split
from harebell.front.limits import COMPLETED_PER_STEP, OUTPUT_STOP_BYTES, SETTLED_AT_ONCE
from harebell.front.operations.returns import NO_ROUTE
from harebell.kernels.output import OutBuffer
from harebell.model.queue.contract import PENDING, Queue
from harebell.model.transaction import REQUEUE
from harebell.wire.v09.frames import METHOD
from harebell.wire.v09.methods import BasicReject
from harebell.wire.v09.methods_transitional import ExecutionComplete, SessionSolicitAck

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harebell.front.amqp_0_9_1.connection import Connection
    from harebell.front.amqp_0_10_transitional.deliveries import Deliveries
    from harebell.front.amqp_0_10_transitional.references import References
    from harebell.front.amqp_0_10_transitional.sessions import Session
    from harebell.front.common.unacked import Unacked
    from harebell.model.xa.xid import Xid


class TransitionalChannel(LegacyChannel):
    """A channel, or a session.

    Attributes:
        completions: which commands of the client are complete.
        sent: the number of our last command; 0 before the first.
        session: None on a channel that was opened by channel.open.
        detached: whether it is a session without a channel.
        ending: whether the session is destroyed and not detached.
        exclusive: names of the exclusive queues that were declared here.
        refused: messages that were rejected for other consumers.
        scan: the rest of a recovery scan; None without one.
        transfers: unacknowledged deliveries of the class message; None before the first.
        references: bodies that arrive in pieces; None before the first.
    """

    connection: Connection

    def __init__(self, connection: Connection, number: int) -> None:
        super().__init__(connection, number)
        self.completions = Completions()
        self.sent = 0
        self.session: Session | None = None
        self.detached = False
        self.ending = False
        self.exclusive: set[str] = set()
        self.refused = Refused(self)
        self.transfers: Deliveries | None = None
        self.references: References | None = None
        self.scan: list[Xid] | None = None

    # --- output ---------------------------------------------------------------------------------

    def write_method(self, payload: bytes) -> int:
        """Write an encoded method; returns its number when it is a command."""
        class_id = int.from_bytes(payload[:2])
        if class_id not in CONTROLS:
            self.sent = after(self.sent)
        out = OutBuffer()
        out.frame(METHOD, self.number, payload)
        # Frames of class session are not numbered, so a replay does not repeat them.
        self._write(out.take(), kept=class_id != SESSION_CLASS)
        return self.sent

    def write_content(self, payload: bytes, message: Message) -> int:
        """Write an encoded method with a message's content; returns its number."""
        self.sent = after(self.sent)
        connection = self.connection
        out = OutBuffer()
        out.content(
            self.number, payload, shown(layer_of(connection), message), connection.frame_max
        )
        self._write(out.take())
        if connection.out.size > OUTPUT_STOP_BYTES:
            connection.scanner.hold = True
        return self.sent

    def write_delivery(
        self, tag_field: bytes, tag: int, redelivered: bool, message: Message
    ) -> int:
        """Write basic.deliver with a message; returns its number."""
        self.sent = after(self.sent)
        connection = self.connection
        out = OutBuffer()
        out.deliver(
            self.number,
            tag_field,
            tag,
            redelivered,
            shown(layer_of(connection), message),
            connection.frame_max,
        )
        self._write(out.take())
        return self.sent

    def readable(self, raw: bytes, class_id: int) -> bytes:
        """Convert the headers of a property list to types that the client can read."""
        return readable(layer_of(self.connection), raw, class_id)

    def write_frames(self, data: bytes) -> None:
        """Write the frames of a method with content."""
        self.sent = after(self.sent)
        self._write(data)

    def _write(self, data: bytes, *, kept: bool = True) -> None:
        """Write frames; a session that can be resumed keeps them until the client has them."""
        session = self.session
        if kept and session is not None and session.replay is not None:
            session.replay.keep(split(data))
            if self.detached or session.resuming:
                # Sent by the replay: until session.ack the client may have any number of frames.
                return
            self._solicit(session)
        self.connection.out.raw(data)
        self.connection.touch()

    def _solicit(self, session: Session) -> None:
        """Send session.solicit-ack when many frames are kept for replay."""
        replay = session.replay
        if replay is not None and replay.half_full and not replay.solicited:
            replay.solicited = True
            self.connection.send(self.number, SessionSolicitAck())

    # --- deliveries -----------------------------------------------------------------------------

    def may_deliver(self) -> bool:
        """True if the client takes deliveries now, apart from credit and room in the output."""
        if self.stopped or self.detached or self.refused.offering or self.consumers is None:
            return False
        session = self.session
        if session is None or session.replay is None:
            return True
        return not (session.resuming or session.replay.full)

    def set_flow(self, *, active: bool) -> None:
        """Switch flow on or off."""
        self.stopped = not active
        if active:
            self.serve()

    # --- commands -------------------------------------------------------------------------------

    def passage(self, flags: int, exchange_name: str, routing_key: str) -> None:
        """Return None: the session reports the completion of each publish."""

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a routed message to its queues; the command is complete when it is on disk."""
        result = super().accept(message, queues, flags)
        if result & PENDING:
            self.completions.wait(self.connection.commit.ticket)
        return result

    def return_message(self, message: Message, code: int = NO_ROUTE) -> None:
        """Reject a publish by its command number.

        The specification requires basic.reject, which has no other way to name a publish. Files
        and packets have a return of their own.
        """
        if message.family == FAMILY_09 or not send_back(self, message, code):
            self.connection.send(self.number, BasicReject(delivery_tag=self.completions.last))

    def take_effect(self, entries: Sequence[Unacked], kind: int) -> None:
        """Settle deliveries; those of class message release credit.

        Messages that basic.reject requeued are not delivered to this session again.
        """
        rejected = [entry for entry in entries if entry.tag in self.refused.tags]
        if kind == REQUEUE and rejected:
            self.refused.refuse(rejected)
            entries = [entry for entry in entries if entry.tag not in self.refused.tags]
        super().take_effect(entries, kind)
        if self.transfers is not None:
            self.transfers.freed()

    def ack(self, tag: int, multiple: bool) -> int:
        """basic.ack: complete when it is on disk; thousands are acknowledged in slices."""
        if not multiple:
            return self._ack_one(tag)
        if tag and not self.transfers and self.unacked.get(tag) is None:
            raise self._unknown_tag(tag, 80)
        tags = self._tags_up_to(tag or self.next_tag - 1)
        # Not all are counted: a low tag may select few of very many deliveries.
        first = list(islice(tags, SETTLED_AT_ONCE + 1))
        if len(first) <= SETTLED_AT_ONCE:
            for each in first:
                self._ack_one(each)
            return 0
        self._ack_in_slices(chain(first, tags))
        return 0

    def _tags_up_to(self, last: int) -> Iterator[int]:
        """Yield the tags of class basic up to one; they may be removed meanwhile."""
        # Those of class message are acknowledged as commands.
        own: set[int] = self.transfers.tags() if self.transfers else set()
        self.connection.registry.work.charge(len(own) // COMPLETED_PER_STEP)
        unacked = self.unacked
        tag = unacked.first()
        while tag <= last and tag < unacked.next:
            if tag not in own:
                yield tag
            tag = unacked.next_from(tag + 1)

    def _ack_one(self, tag: int) -> int:
        entry = self.unacked.get(tag)
        super().ack(tag, False)
        # In a transaction the commit settles, and its command is the one that waits for the disk.
        if entry is not None and self.transaction is None:
            self.settled(entry.queue)
        return 0

    def _ack_in_slices(self, tags: Iterator[int]) -> None:
        held = self.completions.hold()
        transaction = self.transaction
        queues: dict[Queue, None] = {}

        def acking() -> Slices[None]:
            for each in tags:
                if self.transaction is not transaction:
                    # The session has ended between two slices: its end requeues the others.
                    return
                # Between two slices a delivery may time out, or be requeued with its session.
                entry = self.unacked.get(each)
                if entry is not None:
                    super(TransitionalChannel, self).ack(each, False)
                    if transaction is None:
                        queues[entry.queue] = None
                yield

        def done(_: None) -> None:
            results = [queue.sync_soon() for queue in queues if not queue.deleted]
            pending = any(result & PENDING for result in results)
            self.completions.done(held, self.connection.commit.ticket if pending else 0)
            self.committed()

        self.connection.perform(stepped(acking(), self.connection.registry.work, 1, done))

    def settled(self, queue: Queue) -> None:
        """Complete the newest command with what it settled in a queue."""
        if not queue.deleted and queue.sync_soon() & PENDING:
            self.completions.wait(self.connection.commit.ticket)

    def hold_until_recorded(self) -> None:
        """Complete the newest command when everything that is declared in the vhost is on disk."""
        ticket = self.vhost.recorder.ticket
        if ticket > self.connection.commit.done:
            self.completions.wait(ticket)

    def send_completions(self) -> None:
        """Send the completed commands, and again when more of them are complete.

        Old clients send execution.flush behind each command and give up when the first answer does
        not cover it. So while the newest command waits for the disk, the commit answers.
        """
        completions, commit = self.completions, self.connection.commit
        if completions.written_with() <= commit.done:
            completions.news(commit.done)
            self._complete()
        if completions.waiting:
            completions.asked = True
            self._await()

    def _complete(self) -> None:
        mark, ranges = self.completions.look(self.connection.commit.done)
        self.connection_send(ExecutionComplete(mark, ranges))

    def connection_send(self, method: Any) -> None:
        """Write a method; a detached session sends it when it is resumed."""
        self.write_method(self.connection.spec.encode(method))

    def _await(self) -> None:
        commit = self.connection.commit
        newest = self.completions.newest()
        # Commands that wait for something else than a commit report themselves.
        if newest > commit.done:
            if newest == commit.ticket:
                commit.urgent = True
            self.connection.registry.waiting[self] = None

    def committed(self) -> None:
        """Send the completions that waited for a commit that is on disk."""
        completions = self.completions
        if not completions.asked or self.ending:
            return
        if completions.news(self.connection.commit.done):
            self._complete()
        completions.asked = completions.waiting
        if completions.waiting:
            self._await()

    # --- beginning and end ----------------------------------------------------------------------

    @property
    def outlives(self) -> bool:
        """True if the session outlives its channel."""
        return self.session is not None and self.session.lifetime > 0 and not self.ending

    def stop_consuming(self, many: bool = False) -> list[Queue]:
        """Remove every consumer, unless the session is only detached."""
        return [] if self.outlives else super().stop_consuming(many)

    def close(self) -> None:
        """Detach the session from a closed channel, or end it."""
        if self.outlives:
            self._detach()
        else:
            self.end()

    def _detach(self) -> None:
        session = self.session
        assert session is not None, "only sessions are detached"
        self.detached = True
        # Its incomplete content stays with the session: the replay continues with the next frame.
        if self.content is not None:
            self.connection.scanner.pending -= 1
        # The connection ends and drops its queues; those of the session must survive it.
        for name in self.exclusive:
            queue = self.vhost.queues.get(name)
            if queue is not None and queue.owner is self.connection:
                self.vhost.give(queue, session)
        session.start_timer()

    def attach(self, connection: Connection, number: int) -> None:
        """Resume the session on this channel."""
        session = self.session
        for name in self.exclusive:
            queue = self.vhost.queues.get(name)
            if queue is not None and queue.owner is session:
                self.vhost.give(queue, connection)
        for consumer in (self.consumers or {}).values():
            # no-local is about the connection that publishes, which is another one now.
            if consumer.excluded:
                consumer.excluded = connection.origin
        self.connection = connection
        self.number = number
        self.detached = False
        if self.content is not None:
            connection.scanner.pending += 1
        connection.channels[number] = self

    def end(self) -> None:
        """Destroy the session: consumers are removed, unacknowledged messages are requeued."""
        self.ending = True
        session = self.session
        registry = self.connection.registry
        registry.waiting.pop(self, None)
        registry.tickets.forget(self)
        if session is not None:
            session.stop_timer()
            if registry.sessions.pop(session.identifier, None) is not None:
                registry.kept_sessions.remove(session.user)
        if self.detached and self.content is not None:
            self.content.drop(registry.work)
            self.content = None
        if self.references is not None:
            self.references.release(registry.work)
        super().close()
        # After the consumers are removed: the client that rejected them must not get them again.
        self.refused.requeue_all()
        if session is not None:
            # An exclusive queue without auto-delete outlives the session, without an owner.
            for queue in self.vhost.owned_by(session):
                if not queue.auto_delete:
                    self.vhost.give(queue, None)
            self.vhost.drop_owned(session)
