"""The tx class: publishes and acknowledgements that take effect together at tx.commit.

Routing and every check happen when a message is published; what its queues get, and what goes back
as unroutable, waits for the commit. A rollback forgets the publishes and makes the acknowledged
deliveries outstanding again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.message import Message
from harebell.front.session09.replies import soft
from harebell.front.session09.unacked import Unacked
from harebell.model.queue.kind import PENDING, Queue
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.session09.channel import Channel

_CLASS = 90


def due_at_commit(ttl: int) -> int:
    """The due time of a message that lasts so many milliseconds from its commit on."""
    return -ttl - 1


class Transaction:
    """What one channel has done since the last commit or rollback."""

    __slots__ = ("_changes", "_publishes", "_settled")

    def __init__(self) -> None:
        self._publishes: list[tuple[Message, tuple[Queue, ...], int]] = []
        self._settled: list[tuple[list[Unacked], Callable[[list[Unacked]], None]]] = []
        # How many queues and positions change; from two on a crash could come between them.
        self._changes = 0

    def publish(self, message: Message, queues: tuple[Queue, ...], flags: int) -> None:
        """Keep a publish for the commit."""
        self._publishes.append((message, queues, flags))
        self._changes += len(queues)

    def pending(self) -> tuple[int, int]:
        """How many publishes, and how many settled deliveries, wait for the commit."""
        return len(self._publishes), sum(len(entries) for entries, _ in self._settled)

    def settle(
        self,
        entries: list[Unacked],
        how: Callable[[list[Unacked]], None],
        *,
        dead_letters: bool = False,
    ) -> None:
        """Keep an acknowledgement or rejection for the commit, which calls `how`."""
        self._settled.append((entries, how))
        self._changes += len(entries) * (2 if dead_letters else 1)

    def commit(self, channel: Channel) -> None:
        """Do it all: publishes first, then acknowledgements; what follows waits for the disk.

        Where a full queue would refuse one of the publishes nothing is done.

        Raises:
            ProtocolError: 406 for the channel; what was acknowledged comes back.
        """
        if not _is_room_for(self._publishes):
            raise soft(406, "partial tx completion", _CLASS, 20)
        publishes, self._publishes = self._publishes, []
        settled, self._settled = self._settled, []
        changes, self._changes = self._changes, 0
        result = 0
        if changes > 1:
            channel.connection.commit.joint = True
        now = channel.connection.broker.clock.steady
        for message, queues, flags in publishes:
            if message.due < 0:
                message.due = now - message.due - 1
            result |= channel.accept(message, tuple(q for q in queues if not q.deleted), flags)
        for entries, how in settled:
            how(entries)
            for queue in {entry.queue: None for entry in entries}:
                result |= queue.sync_soon()
        if result & PENDING:
            channel.connection.hold_until(channel.connection.commit.ticket)

    def rollback(self, channel: Channel) -> None:
        """Do none of it: the acknowledged deliveries are outstanding again."""
        self._publishes.clear()
        self._changes = 0
        settled, self._settled = self._settled, []
        for entries, _ in settled:
            for entry in entries:
                channel.unacked.put(entry.tag, entry)


def _is_room_for(publishes: list[tuple[Message, tuple[Queue, ...], int]]) -> bool:
    """Whether every queue would take what is published to it."""
    sizes: dict[Queue, list[int]] = {}
    for message, queues, _ in publishes:
        for queue in queues:
            if not queue.deleted:
                sizes.setdefault(queue, []).append(len(message.body))
    return all(queue.has_room(octets) for queue, octets in sizes.items())


def _transaction(channel: Channel, method_id: int) -> Transaction:
    transaction: Transaction | None = channel.transaction
    if transaction is None:
        raise soft(406, "channel is not transactional", _CLASS, method_id)
    return transaction


def select(channel: Channel, method: methods.TxSelect) -> None:
    """tx.select: gather from now on. Selecting twice changes nothing."""
    if channel.confirms is not None:
        raise soft(406, "cannot switch from confirm to tx mode", _CLASS, 10)
    if channel.transaction is None:
        channel.transaction = Transaction()
    channel.connection.send(channel.number, methods.TxSelectOk())


def commit(channel: Channel, method: methods.TxCommit) -> None:
    """tx.commit: do what was gathered; returns go out before commit-ok."""
    _transaction(channel, 20).commit(channel)
    channel.connection.send(channel.number, methods.TxCommitOk())


def rollback(channel: Channel, method: methods.TxRollback) -> None:
    """tx.rollback: forget what was gathered."""
    _transaction(channel, 30).rollback(channel)
    channel.connection.send(channel.number, methods.TxRollbackOk())


HANDLERS = {methods.TxSelect: select, methods.TxCommit: commit, methods.TxRollback: rollback}
