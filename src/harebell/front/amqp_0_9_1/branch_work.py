"""A channel's work on a branch of a distributed transaction, in place of tx.

The work belongs to the branch, which another channel may prepare and commit after this one ended.
So effects on the channel are immediate: an unroutable message is returned when it is published, and
a settled delivery no longer counts against the prefetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.message import Message
from harebell.front.common.unacked import Unacked
from harebell.front.operations.returns import MANDATORY
from harebell.model.queue.contract import Queue
from harebell.model.transaction import ACCEPT

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.open_channel import OpenChannel
    from harebell.model.xa.association import Association
    from harebell.model.xa.branch import Branch


class BranchWork:
    """Work on a branch, in place of a transaction of the channel.

    Args:
        channel: whose publishes and acknowledgements are collected.
        association: of its session; it has a branch while this object is used.
    """

    __slots__ = ("_association", "_channel")

    def __init__(self, channel: OpenChannel, association: Association) -> None:
        self._channel = channel
        self._association = association

    def _branch(self) -> Branch:
        branch = self._association.branch
        assert branch is not None, "the channel works on a branch"
        return branch

    def publish(self, message: Message, queues: tuple[Queue, ...], flags: int) -> None:
        """Keep a publish for the branch's commit."""
        if queues:
            self._branch().publish(message, queues, flags)
        elif flags & MANDATORY:
            self._channel.return_message(message)

    def settle(self, entries: list[Unacked], kind: int) -> None:
        """Keep an acknowledgement or rejection for the branch's commit."""
        # Their credit is free now: the commit may come from another channel, long after.
        for entry in entries:
            entry.forget()
        self._branch().settle(entries, kind)
        if kind == ACCEPT:
            self._channel.counters.ack += len(entries)
            for entry in entries:
                entry.count_ack()
        self._channel.serve_queues(entries)

    def pending(self) -> tuple[int, int]:
        """Return the numbers of publishes and of settled deliveries of the branch."""
        return self._branch().pending()

    def rollback(self, channel: OpenChannel) -> None:
        """Roll back: the channel closed before it ended the branch."""
        self._association.close()
