"""The class publisher: named publishers, whose repeated messages are dropped.

docs/protocols/extensions-publishing.md explains it.

A number is accepted together with its message: if a queue refuses the message, or the publish
fails, the number may be sent again. It is on disk with the message, so a confirm covers both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import WRITE
from harebell.base.message import Properties
from harebell.front.common.errors import soft
from harebell.front.common.permission import check_some
from harebell.front.limits import PUBLISHER_REFUSED_COUNT
from harebell.kernels.publishing import publishing_id
from harebell.model.publishing.publishers import NUMBERED, STAGED, Entry, Key
from harebell.model.queue.contract import PENDING, REJECTED
from harebell.wire.v09 import methods
from harebell.wire.v09.publisher import CLASS_ID

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.open_channel import OpenChannel

_DECLARE = (CLASS_ID, 10)
_PUBLISH = (60, 40)


class Numbered:
    """The named publisher of a channel.

    Args:
        channel: the channel whose publishes have numbers.
        entry: the state of the publisher.
    """

    __slots__ = ("_channel", "_number", "_publishers", "entry")

    def __init__(self, channel: OpenChannel, entry: Entry) -> None:
        self.entry = entry
        self._channel = channel
        self._publishers = channel.connection.broker.publishers
        self._number = -1
        entry.holders += 1

    def passes_over(self, properties: Properties) -> bool:
        """True if a message was published before; if so it is confirmed and dropped.

        Raises:
            ProtocolError: 406, the message has no number.
        """
        number = publishing_id(properties.raw)
        if number < 0:
            text = (
                f"a message of publisher '{self.entry.key.name}' has no header x-publishing-id "
                "with an integer from 0 on"
            )
            raise soft(406, text, *_PUBLISH)
        # A refused number may be sent again, also after higher ones were accepted.
        if number < self.entry.next and number not in self.entry.refused:
            if self._channel.confirms is not None:
                # The first message with this number may not be on disk yet.
                self._channel.confirms.published(PENDING)
            return True
        self._number = number
        # Before the message is written: a crash must keep message and number, or neither.
        self._channel.connection.commit.joint = True
        return False

    def taken(self, result: int) -> int:
        """Note the result of the queues for the message whose number was checked last."""
        number, entry = self._number, self.entry
        if result & REJECTED:
            # Beyond the limit a repetition is taken for a duplicate: memory stays bounded.
            if len(entry.refused) < PUBLISHER_REFUSED_COUNT:
                entry.refused.add(number)
            return 0
        entry.refused.discard(number)
        if number >= entry.next:
            self._publishers.advance(entry, number)
        return 0

    def close(self) -> None:
        """Release the publisher: the channel is closed, or has another publisher."""
        self._publishers.release(self.entry)


def declare(channel: OpenChannel, method: methods.PublisherDeclare) -> None:
    """publisher.declare: this channel publishes for a publisher."""
    if not method.publisher:
        raise soft(406, "publisher.declare: the publisher has no name", *_DECLARE)
    if channel.transaction is not None:
        raise soft(406, "a channel with transactions cannot have a publisher", *_DECLARE)
    check_some(channel, "a named publisher", WRITE)
    publishers, key = (
        channel.connection.broker.publishers,
        _key(channel, NUMBERED, method.publisher),
    )
    publishers.check_numbers(key, method.next, method.eras.decode("ascii", "replace"))
    entry = publishers.entry(key)
    # Only after the checks: a refused declaration closes the channel, which releases the old one.
    if channel.publisher is not None:
        channel.publisher.close()
    channel.publisher = Numbered(channel, entry)
    # The reply waits for the disk: a crash must not lower a number that was sent.
    channel.connection.hold_until(channel.connection.commit.ticket)
    reply = methods.PublisherDeclareOk(next=entry.next, eras=entry.eras.encode())
    channel.connection.send(channel.number, reply)


def forget(channel: OpenChannel, method: methods.PublisherForget) -> None:
    """publisher.forget: remove the publisher's numbers and staged rows."""
    broker = channel.connection.broker
    keys = [_key(channel, kind, method.publisher) for kind in (NUMBERED, STAGED)]
    broker.forget_publishers([entry for key in keys if (entry := broker.publishers.find(key))])
    channel.connection.hold_until(channel.connection.commit.ticket)
    channel.connection.send(channel.number, methods.PublisherForgetOk())


def _key(channel: OpenChannel, kind: int, name: str) -> Key:
    return Key(kind, channel.vhost.name, channel.connection.user.name, name)


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    methods.PublisherDeclare: declare,
    methods.PublisherForget: forget,
}
