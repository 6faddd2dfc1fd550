"""The adapter of a session to the channel interface of the classes file and stream.

These classes use the methods and messages of the versions that defined them; this adapter
translates them into the commands of 0-10. A delivery of a file has a tag of its own, which is not a
command number. A publish that waits for space is completed late: 0-10 has no other way to stop a
publisher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.errors import ProtocolError, Refusal
from harebell.base.message import FAMILY_FILE, Message
from harebell.base.sequence import Sequence
from harebell.front.amqp_0_10.errors import RESOURCE_LIMIT_EXCEEDED, ExecutionError
from harebell.front.file_stream.classes import Classes, shared_of
from harebell.front.operations.returns import (
    AT_ONCE,
    MANDATORY,
    NO_CONSUMERS,
    NO_ROUTE,
    count_drop,
    count_return,
    takers,
    undelivered_code,
)
from harebell.model.queue.contract import PENDING, REJECTED, unrouted
from harebell.model.resource import rendered
from harebell.wire.convert.listed import to_struct
from harebell.wire.v010 import commands
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v09 import methods_older
from harebell.wire.v09.property_list import FILE, STREAM, PropertyList

if TYPE_CHECKING:
    from harebell.auth.users import User
    from harebell.base.counters import Counters
    from harebell.front.amqp_0_10.file_stage import Stage
    from harebell.front.amqp_0_10.session import Session
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_details import ChannelDetails
    from harebell.front.common.unacked import Unacked
    from harebell.model.consumer import Consumer
    from harebell.model.queue.contract import Queue
    from harebell.model.router import Router
    from harebell.model.vhost import VHost
    from harebell.wire.v010.composites import Command
    from harebell.wire.v09.method import Method

_KINDS: dict[type, type[Command]] = {
    methods_older.FileConsumeOk: commands.FileConsumeOk,
    methods_older.FileOpen: commands.FileOpen,
    methods_older.FileOpenOk: commands.FileOpenOk,
    methods_older.FileStage: commands.FileStage,
    methods_older.FileDeliver: commands.FileDeliver,
    methods_older.StreamConsumeOk: commands.StreamConsumeOk,
    methods_older.StreamDeliver: commands.StreamDeliver,
}
"""Method class -> command class; the fields have the same names."""
_REPLY_TEXTS = {NO_ROUTE: "no-route", NO_CONSUMERS: "no-consumers"}
_AT_ONCE = 0


def _command(method: Method) -> Command:
    kind = _KINDS[type(method)]
    return kind(**{name: getattr(method, name) for name in kind.__struct_fields__})


def _of_session(name: str) -> Any:
    """Return a property that stands for an attribute of the session."""
    return property(
        lambda adapter: getattr(adapter.session, name),
        lambda adapter, value: setattr(adapter.session, name, value),
    )


class FileStreamAdapter:
    """The state of both classes for a session; a `FileStreamChannel`.

    Args:
        session: the session that stands for their channel.

    Attributes:
        session: as given.
        classes: staging, windows and rates.
        unacked: unacknowledged files by tag.
        next_tag, outstanding: as for `FileStreamChannel`.
        stage: the file.stage that is being received; None for none.
        connection, number, vhost, user, router, counters, details, last_queue: those of the
            session, or its last connection.
    """

    connection: BaseConnection = _of_session("connection")
    number: int = _of_session("number")
    vhost: VHost = _of_session("vhost")
    user: User = _of_session("user")
    router: Router = _of_session("router")
    counters: Counters = _of_session("counters")
    details: ChannelDetails | None = _of_session("details")
    last_queue: str = _of_session("last_queue")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.unacked = Sequence(1)
        self.next_tag = 1
        self.outstanding = 0
        self.stage: Stage | None = None
        self.classes: Classes = Classes(self)

    def started(self) -> dict[str, Any]:
        """The consumers of the session, including subscriptions: both share their names."""
        return self.session.consumers

    def companions(self) -> list[Classes]:
        """The state of the classes on the sessions of this connection."""
        others = [each.extras for each in self.connection.channels.values()]
        return [self.classes] + [
            each.classes for each in others if each is not None and each is not self
        ]

    def find_queue(self, name: str) -> Queue:
        """Find a queue by name."""
        queue: Queue = self.vhost.queue(name, self.session)
        return queue

    def check_presented(self, number: int, right: str, place: tuple[int, int]) -> None:
        """Do nothing: 0-10 has no access tickets."""

    # --- output ---------------------------------------------------------------------------------

    def may_deliver(self) -> bool:
        """True if a delivery can go out now."""
        return self.session.can_send()

    def say(self, method: Method) -> None:
        """Send a command."""
        self.session.send(_command(method))

    def send_body(
        self, method: Method, listed: PropertyList, raw: bytes, body: bytes, offset: int = 0
    ) -> None:
        """Send a command with a content."""
        self._send(_command(method), listed, raw, body[offset:])

    def _send(self, command: Command, listed: PropertyList, raw: bytes, body: bytes) -> None:
        self.session.send_content(AMQP_0_10.encode(command), to_struct(listed, raw), body)

    def _send_back(self, message: Message, code: int) -> None:
        """Return an unroutable file or packet to its publisher."""
        file = message.family == FAMILY_FILE
        kind, listed = (commands.FileReturn, FILE) if file else (commands.StreamReturn, STREAM)
        command = kind(code, _REPLY_TEXTS[code], message.exchange, message.routing_key)
        self._send(command, listed, message.raw, message.body)

    def stop_publisher(self, stop: bool) -> None:
        """Do nothing: an incomplete command stops the publisher."""

    def consumer_lost(self, consumer: Consumer) -> None:
        """End the session: the queue of a consumer was deleted."""
        self.session.queue_lost(consumer)

    # --- publishing -----------------------------------------------------------------------------

    def forward(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        """Publish a routed message, at once or in the transaction."""
        if flags & AT_ONCE:
            taking = takers(queues, message)
            if not taking:
                count_return(self, message)
                self._send_back(message, undelivered_code(queues, flags))
            queues = taking
        elif not queues and flags & MANDATORY:
            count_return(self, message)
            self._send_back(message, NO_ROUTE)
        elif not queues:
            count_drop(self, message)
        if self.session.transaction is not None:
            self.session.transaction.publish(message, queues, 0)
            return 0
        result = 0 if queues else unrouted(message)
        for queue in queues:
            result |= queue.publish(message)
            if result & REJECTED:
                resource = rendered("queue", queue.name, self.vhost.name)
                raise ExecutionError(RESOURCE_LIMIT_EXCEEDED, f"{resource} is full")
        return result

    def put_off(self) -> int:
        """Hold the current publish until `went_through` is called."""
        return self.session.hold()

    def went_through(self, number: int, result: int) -> None:
        """Complete a publish when it is on disk."""
        ticket = self.connection.commit.ticket if result & PENDING else _AT_ONCE
        if number:
            self.session.let_complete(number, ticket)
        elif ticket:
            self.session.wait_for(ticket)

    def caught(self, error: Exception, class_id: int, method_id: int, number: int) -> None:
        """End the session because of a publish that had to wait."""
        # The exception names the command that failed, and not the one that is executed now.
        self.session.current = self.session.held_command(number)
        assert isinstance(error, Refusal | ProtocolError), "a publish raises no other"
        self.session.caught(error, *_PUBLISH)

    # --- settling deliveries --------------------------------------------------------------------

    def keep(self, entry: Unacked) -> None:
        """Restore a file after a rollback: it is unacknowledged as before."""
        self.unacked.put(entry.tag, entry)

    def serve(self) -> int:
        """Serve the consumers."""
        return self.session.serve()

    def overdue(self, entry: Unacked, text: str) -> None:
        """End the session: a file is unacknowledged for too long."""
        self.unacked.take(entry.tag)
        entry.time_out()
        self.session.end_overdue(entry.queue, text)

    # --- attach and end -------------------------------------------------------------------------

    def moved(self) -> None:
        """Move the session to another connection, with its limits."""
        self.classes.move(shared_of(self.connection))

    def close(self) -> list[Queue]:
        """Requeue unsettled deliveries of an ended session; returns their queues."""
        self.stage = None
        self.classes.close()
        entries = [self.unacked.take(tag) for tag in self.unacked.numbers()]
        for entry in entries:
            entry.requeue()
        return [entry.queue for entry in entries]


_PUBLISH = (9, 9)


def adapter_of(session: Session) -> FileStreamAdapter:
    """Get the state of the classes file and stream, created at first use."""
    adapter = session.extras
    if adapter is None:
        adapter = session.extras = FileStreamAdapter(session)
    assert isinstance(adapter, FileStreamAdapter)
    return adapter
