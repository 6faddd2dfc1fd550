"""Publishing a staged batch: every row is checked and routed first, then all of them take effect.

Nothing is published until the last row has passed every check that basic.publish makes. What is
published then, and the number of the batch, are one commit of the disk, whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from harebell.auth.permissions import WRITE
from harebell.base.errors import BatchError
from harebell.base.message import Message, Properties, copy_message, new_message
from harebell.base.row_columns import columns_of
from harebell.front.session09.intercept import intercepted
from harebell.front.session09.permission import EXCHANGE, check, check_topic, topic_of
from harebell.front.session09.prepare import prepared
from harebell.front.session09.replies import soft
from harebell.front.session09.traced import published
from harebell.front.session09.unrouted import NO_ROUTE, ways_of
from harebell.kernels.rows import Rows
from harebell.model.resource import rendered
from harebell.model.routed import Routed
from harebell.wire.arrow.decode import decode_batch
from harebell.wire.v09 import stage as methods

if TYPE_CHECKING:
    from harebell.auth.topics import TopicPermission
    from harebell.front.session09.channel import Channel
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.kind import Queue
    from harebell.model.stages import Piece

_PLACE = (methods.CLASS_ID, methods.COMMIT_ID)


class _Place(NamedTuple):
    """An exchange that rows go to.

    Args:
        exchange: the exchange.
        topic: which keys may be used there; None for all.
    """

    exchange: Exchange
    topic: TopicPermission | None


class StagedWork:
    """What the rows of one batch become.

    Args:
        channel: where the batch is committed.
        method: the commit.

    Attributes:
        rows: how many were taken so far.
        unroutable: how many of them no queue gets.
    """

    def __init__(self, channel: Channel, method: methods.StageCommit) -> None:
        self.rows = 0
        self.unroutable = 0
        self._channel = channel
        self._method = method
        self._routed = Routed()
        self._places: dict[str, _Place] = {}
        self._traced: list[tuple[Message, Properties, tuple[Queue, ...]]] = []
        router = channel.router
        # Where these are wanted every row gets its own look.
        self._watched = channel.connection.intercepts or router.origins or router.tracer is not None

    def take(self, part: int, piece: Piece, data: bytes) -> None:
        """Check and route the rows of a piece.

        Raises:
            ProtocolError, Refusal: a row cannot be published.
        """
        try:
            rows = self._loaded(piece, data)
            row = 0
            while (row := self._routed.take(rows, row, self._channel.router)) < rows.rows:
                self._take(rows.message(row), rows.properties)
                row += 1
        except BatchError as error:
            text = f"part {part} of batch {self._method.batch}: {error}"
            raise soft(406, text, *_PLACE) from None
        self.rows += piece.rows

    def _loaded(self, piece: Piece, data: bytes) -> Rows:
        columns, fields = columns_of(piece.columns)
        method = self._method
        rows = Rows(columns, fields, method.exchange, method.routing_key, method.delivery_mode)
        # Nobody could be sent what no frame has room for.
        rows.frame_max = self._channel.connection.frame_max
        rows.load(data, *decode_batch(data, columns, fields))
        return rows

    def _take(self, message: Message, properties: Properties) -> None:
        channel = self._channel
        name = message.exchange
        place = self._places.get(name)
        if place is None:
            place = self._find(name)
        exchange, topic = place
        if channel.connection.intercepts:
            properties = intercepted(channel, properties)
            message = new_message(name, message.routing_key, properties, message.body)
        if properties.suspect:
            message, queues = self._prepared(place, message, properties)
        else:
            if topic is not None:
                check_topic(channel, WRITE, name, message.routing_key)
            queues = channel.router.route(exchange, message)
        if channel.router.origins:
            message.origin = channel.connection.origin
        self._routed.counts[name] += 1
        if channel.router.tracer is not None:
            self._traced.append((message, properties, queues))
        self._routed.keep(message, queues)

    def _find(self, name: str) -> _Place:
        channel = self._channel
        check(channel, WRITE, EXCHANGE, name)
        exchange = channel.vhost.exchange(name)
        if exchange.internal:
            thing = rendered("exchange", name, channel.vhost.name)
            raise soft(403, f"cannot publish to internal {thing}", *_PLACE)
        place = self._places[name] = _Place(exchange, topic_of(channel, exchange))
        self._routed.counts[name] = 0
        if place.topic is None and not self._watched:
            self._routed.plain[name] = exchange
        return place

    def _prepared(
        self, place: _Place, message: Message, properties: Properties
    ) -> tuple[Message, tuple[Queue, ...]]:
        """The same as for a publish, which asks the channel what may be published."""
        channel, before = self._channel, self._channel.topic
        channel.topic = place.topic
        try:
            return prepared(channel, place.exchange, message.routing_key, properties, message.body)
        finally:
            channel.topic = before

    def settle_lost(self) -> None:
        """Decide about the rows that no queue gets.

        Raises:
            ProtocolError: 312, they had to reach one.
        """
        lost, self._routed.lost = self._routed.lost, []
        self.unroutable = len(lost)
        other = self._method.dead_letter
        if lost and other:
            lost = [message for message in lost if not self._sent_on(message, other)]
        if lost and self._method.mandatory:
            raise soft(NO_ROUTE, self._complaint(lost), *_PLACE)

    def _sent_on(self, message: Message, other: str) -> bool:
        """Whether a message reaches a queue by the exchange for those that reach none."""
        place = self._places.get(other) or self._find(other)
        if place.topic is not None:
            check_topic(self._channel, WRITE, other, message.routing_key)
        copy = copy_message(message, other, message.routing_key)
        queues = self._channel.router.route(place.exchange, copy)
        if queues:
            self._routed.keep(copy, queues)
        return bool(queues)

    def _complaint(self, lost: list[Message]) -> str:
        return (
            f"{len(lost)} of {self.rows} rows of batch {self._method.batch} reach no queue, with "
            f"routing key {ways_of(lost)}; nothing was published"
        )

    def publish(self) -> None:
        """Hand everything over; `Publishers.advance` comes before, for the commit to be one.

        Raises:
            ProtocolError: 406, a queue has no room; nothing was done.
        """
        for exchange, count in self._routed.counts.items():
            self._places[exchange].exchange.published += count
        for message, properties, queues in self._traced:
            published(self._channel, message, properties, queues)
        if len(self._routed):
            self._channel.connection.commit.joint = True
        self._routed.publish()

    def check_room(self) -> None:
        """Refuse the batch if a queue would not take all of it.

        Raises:
            ProtocolError: 406.
        """
        if not self._routed.has_room():
            text = (
                f"batch {self._method.batch} has {self.rows} rows, and a queue that gets some of "
                "them has no room; nothing was published"
            )
            raise soft(406, text, *_PLACE)


def gather(
    channel: Channel, method: methods.StageCommit, pieces: Iterable[tuple[int, Piece, bytes]]
) -> StagedWork:
    """Check and route a whole batch.

    Raises:
        ProtocolError, Refusal: it cannot be published as it is; nothing was done.
    """
    work = StagedWork(channel, method)
    for part, piece, data in pieces:
        work.take(part, piece, data)
    work.settle_lost()
    work.check_room()
    return work
