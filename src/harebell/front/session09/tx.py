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


class Transaction:
    """What one channel has done since the last commit or rollback."""

    __slots__ = ("_publishes", "_settled")

    def __init__(self) -> None:
        self._publishes: list[tuple[Message, tuple[Queue, ...], int]] = []
        self._settled: list[tuple[list[Unacked], Callable[[list[Unacked]], None]]] = []

    def publish(self, message: Message, queues: tuple[Queue, ...], flags: int) -> None:
        """Keep a publish for the commit."""
        self._publishes.append((message, queues, flags))

    def settle(self, entries: list[Unacked], how: Callable[[list[Unacked]], None]) -> None:
        """Keep an acknowledgement or rejection for the commit, which calls `how`."""
        self._settled.append((entries, how))

    def commit(self, channel: Channel) -> None:
        """Do it all: publishes first, then acknowledgements; what follows waits for the disk."""
        publishes, self._publishes = self._publishes, []
        settled, self._settled = self._settled, []
        result = 0
        changes = sum([len(queues) for _, queues, _ in publishes])
        if changes + sum([len(entries) for entries, _ in settled]) > 1:
            channel.connection.commit.joint = True
        for message, queues, flags in publishes:
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
        settled, self._settled = self._settled, []
        for entries, _ in settled:
            for entry in entries:
                channel.unacked.put(entry.tag, entry)


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
