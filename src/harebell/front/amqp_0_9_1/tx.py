"""The tx class: publishes and acknowledgements that take effect together at tx.commit.

`harebell.model.transaction` has the work until the commit. A rollback drops the publishes and
makes the acknowledged deliveries outstanding again.

A client may announce the capability `tx_mandatory`. Then a commit with a mandatory publish that no
queue gets is refused as a whole. Otherwise such a message is returned, as with RabbitMQ, and
acknowledgements of the same commit take effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harebell.base.limits import TRANSACTION_SLICE
from harebell.base.slices import Slices, ended, stepped
from harebell.front.amqp_0_9_1.long_methods import is_open, perform
from harebell.front.common.errors import soft
from harebell.front.common.unacked import Unacked
from harebell.front.operations.returns import MANDATORY, NO_ROUTE, routes_of
from harebell.model.queue.contract import PENDING
from harebell.model.transaction import Transaction
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.open_channel import OpenChannel

_CAPABILITY = "tx_mandatory"
_CLASS = 90


class ChannelTransaction(Transaction[Unacked]):
    """The transaction of one channel since the last commit or rollback."""

    __slots__ = ()

    def do(self, channel: OpenChannel) -> Slices[None]:
        """Commit; output that follows waits for the disk.

        If a full queue would refuse one of the publishes, nothing is done.

        Raises:
            ProtocolError: 406 or 312 for the channel; acknowledged deliveries are requeued.
        """
        yield from self.in_one_commit(channel.connection.commit, self._do(channel))

    def _do(self, channel: OpenChannel) -> Slices[None]:
        # Both checks come before the first publish: afterwards nothing could be undone.
        if channel.connection.wants(_CAPABILITY):
            self._check_routes()
        if not self.has_room():
            # RabbitMQ's text; RabbitMQ has then published to the other queues.
            raise soft(406, "partial tx completion", _CLASS, 20)
        connection = channel.connection
        now = connection.broker.clock.steady
        result = yield from self.commit(channel, connection.commit, now)
        # commit-ok and the returns before it wait for the disk, if anything durable has changed.
        if result & PENDING and is_open(channel):
            connection.hold_until(connection.commit.ticket)
        connection.registry.publishers.check_finished(connection)

    def _check_routes(self) -> None:
        lost = [
            message
            for message, queues, flags in self.publishes
            # Routed at the publish: since then the last of its queues may have been deleted.
            if flags & MANDATORY and all(queue.deleted for queue in queues)
        ]
        if lost:
            text = (
                f"{len(lost)} of {len(self.publishes)} messages reach no queue, with routing key "
                f"{routes_of(lost)}; nothing was committed"
            )
            raise soft(NO_ROUTE, text, _CLASS, 20)

    def undo(self, channel: OpenChannel) -> Slices[None]:
        """Roll back: the acknowledged deliveries are outstanding again."""

        def unsettle(entries: Sequence[Unacked]) -> None:
            for entry in entries:
                channel.unacked.put(entry.tag, entry)

        yield from self.forgetting(unsettle)
        channel.connection.registry.publishers.check_finished(channel.connection)

    def rollback(self, channel: OpenChannel) -> None:
        """Roll back at once: the channel is closed."""
        ended(self.undo(channel))


def _transaction(channel: OpenChannel, method_id: int) -> ChannelTransaction:
    transaction = channel.transaction
    if not isinstance(transaction, ChannelTransaction):
        raise soft(406, "channel is not transactional", _CLASS, method_id)
    return transaction


def select(channel: OpenChannel, method: methods.TxSelect) -> None:
    """tx.select: begin a transaction. A repetition changes nothing."""
    if channel.confirms is not None:
        raise soft(406, "cannot switch from confirm to tx mode", _CLASS, 10)
    if channel.publisher is not None:
        # A rollback would have to take back the numbers of the publisher.
        raise soft(406, "a channel with a publisher cannot have transactions", _CLASS, 10)
    if channel.transaction is None:
        channel.transaction = ChannelTransaction(channel.connection.registry.gauge)
    elif not isinstance(channel.transaction, ChannelTransaction):
        raise soft(503, "the channel works on a distributed transaction", _CLASS, 10)
    channel.connection.send(channel.number, methods.TxSelectOk())


def commit(channel: OpenChannel, method: methods.TxCommit) -> None:
    """tx.commit: publish and settle; returns are sent before commit-ok."""
    _end(channel, 20, _transaction(channel, 20).do(channel), methods.TxCommitOk())


def rollback(channel: OpenChannel, method: methods.TxRollback) -> None:
    """tx.rollback: drop the publishes and restore the deliveries."""
    _end(channel, 30, _transaction(channel, 30).undo(channel), methods.TxRollbackOk())


def _end(channel: OpenChannel, number: int, work: Slices[None], answer: methods.Method) -> None:
    """End the transaction in slices, and answer."""

    def done(_: None) -> None:
        if is_open(channel):
            channel.connection.send(channel.number, answer)

    step = stepped(work, channel.connection.registry.work, TRANSACTION_SLICE, done)
    perform(channel, step, (_CLASS, number))


HANDLERS = {methods.TxSelect: select, methods.TxCommit: commit, methods.TxRollback: rollback}
