"""Publish a staged batch in slices, atomically.

    slices      rows are checked like those of basic.publish, routed, and appended to queues, which
                hide them from readers. Each slice is within the budget of a turn
    refused     a row cannot be published: the rows that were appended are settled
    committed   the number of the batch is recorded, and when it is on disk, with all rows, the
                queues show them

A row is marked in its log, and while the batch is not committed the log of publishers names the
logs with such rows, so a start after a crash settles them too. One batch is committed at a time;
the others wait. Input of the connection that commits waits for the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from harebell.auth.authority import Undecided
from harebell.auth.permissions import WRITE
from harebell.base.errors import BatchError, ErrorKind, ProtocolError, Refusal
from harebell.base.message import Message, Properties, copy_message, new_message
from harebell.base.row_columns import columns_of
from harebell.front.common.channel_details import details_of
from harebell.front.common.errors import soft
from harebell.front.common.firehose_tap import published
from harebell.front.common.interceptors import intercepted
from harebell.front.common.permission import check_topic, topic_of
from harebell.front.limits import (
    STAGE_FLIGHT_BYTES,
    STAGE_JOINT_ROWS,
    STAGE_LOOK_BYTES,
    STAGE_POLL_MS,
    STAGE_ROW_UNITS,
    STAGE_ROWS_PER_LOOK,
    STAGE_ROWS_PER_UNIT,
    STAGE_SPECIAL_PER_LOOK,
)
from harebell.front.operations.publish import writable_exchange
from harebell.front.operations.returns import NO_ROUTE, routes_of
from harebell.front.operations.special_properties import prepared
from harebell.kernels.rows import Rows
from harebell.model.publishing.routed import Routed
from harebell.wire.arrow.decode import decode_batch
from harebell.wire.v09 import methods
from harebell.wire.v09.stage import CLASS_ID, COMMIT_ID, decode_parts

if TYPE_CHECKING:
    from harebell.auth.topics import TopicRule
    from harebell.front.amqp_0_9_1.channel import Channel
    from harebell.model.exchange.kind import Exchange
    from harebell.model.publishing.publishers import Entry, Key
    from harebell.model.publishing.stage_files import Piece
    from harebell.model.queue.contract import Queue

_PLACE = (CLASS_ID, COMMIT_ID)
_EXAMPLES = 100
"""The number of unroutable rows that are kept as examples for the error."""


class _RowExchange(NamedTuple):
    """An exchange that rows are published to.

    Args:
        exchange: an exchange that exists and that the user may write to.
        topic: the allowed routing keys; None for all.
    """

    exchange: Exchange
    topic: TopicRule | None


class StagedCommit:
    """The commit of one batch, in slices.

    Args:
        channel: where the batch is committed.
        method: the commit.
        key: the publisher.
        done: called when everything is in the queues; its reply must wait for the disk.

    Attributes:
        rows: the number of rows so far.
        unroutable: the number of unroutable ones.
        repeated: whether the batch was committed before, and nothing was done.
    """

    def __init__(
        self,
        channel: Channel,
        method: methods.StageCommit,
        key: Key,
        done: Callable[[Channel, StagedCommit], None],
    ) -> None:
        self.rows = 0
        self.unroutable = 0
        self.repeated = False
        self._channel = channel
        self._method = method
        self._key = key
        self._entry: Entry | None = None
        self._pieces: deque[tuple[int, Piece]] = deque()
        self._done = done
        self._broker = channel.connection.broker
        self._commit = channel.connection.commit
        self._staging = 0
        self._routed = Routed()
        self._loaded: Rows | None = None
        self._row = 0
        self._lost = 0
        self._examples: list[Message] = []
        self._places: dict[str, _RowExchange] = {}
        self._ticket = 0
        # Whether it is too large for the redo file, and the commit that must be on disk first.
        self._large = False
        self._before = 0
        # Bytes of the rows that were appended since, and the commit of the rows before them.
        self._flight = 0
        self._flown = 0
        self._before_end = False
        router = channel.router
        # With any of these every row is processed on its own.
        self._watched = channel.connection.intercepts or router.origins or router.tracer is not None

    # --- in slices ------------------------------------------------------------------------------

    def step(self) -> bool:
        """Publish rows within the budget of the turn; True when the batch is done or refused."""
        try:
            # In each slice: another run may have fenced this one, or committed the batch.
            entry = self._entry = self._checked_run()
            self.repeated = self._method.batch < entry.next
            if not self.repeated:
                if not self._may_go_on():
                    return False
                if not self._staging:
                    self._begin(entry)
                self._commit.staging = self._staging
                self._broker.events.actor = self._key.user
                if not self._slice():
                    return False
        except Undecided as undecided:
            undecided.ask(self._channel.connection.wake)
            self._channel.connection.suspend()
            return False
        except (Refusal, ProtocolError) as error:
            self._roll_back()
            self._channel.user.settled()
            if isinstance(error, Refusal) and error.kind is ErrorKind.FENCED:
                # The rows of a fenced run can never be committed.
                self._broker.stages.drop(self._key, self._method.batch)
            self._channel.connection.channel_caught(self._channel, error, *_PLACE)
            return True
        except BaseException:
            self._roll_back()
            raise
        finally:
            # Only within a slice: publishes of other connections are no rows of this batch.
            self._commit.staging = 0
        self._finish()
        return True

    def _may_go_on(self) -> bool:
        """True if order, memory and disk let the batch continue; otherwise it is woken later."""
        connection = self._channel.connection
        if not self._broker.stages.begin(self, connection.wake):
            connection.suspend()
            return False
        registry = connection.registry
        if self._waits():
            return False
        # With memory or disk short it waits like publishers, and looks again after some time.
        if self._staging and (registry.publishers.short or registry.gauge.over):
            connection.suspend()
            timer = self._broker.timers.timer(connection.wake)
            timer.set_earlier(self._broker.clock.steady + STAGE_POLL_MS)
            return False
        return True

    def _waits(self) -> bool:
        """True if a commit must be on disk first; the operation is woken then."""
        if self._before <= self._commit.done:
            return False
        connection = self._channel.connection
        connection.suspend()
        connection.registry.waiting[self] = None
        return True

    def _checked_run(self) -> Entry:
        """Return the publisher, unless another run has replaced this one.

        Raises:
            Refusal: FENCED, or NOT_FOUND if it was removed meanwhile.
        """
        method, publishers = self._method, self._broker.publishers
        return publishers.check(publishers.find(self._key), method.publisher, method.run)

    def _begin(self, entry: Entry) -> None:
        """Find the batch to publish, and reserve its rows in the logs.

        Raises:
            Refusal: PRECONDITION_FAILED, it is not staged, or a queue is full.
        """
        method, stages = self._method, self._broker.stages
        parts = decode_parts(method.parts)
        self._pieces = deque(stages.chosen(self._key, method.batch, parts))
        self._large = sum(piece.rows for _, piece in self._pieces) > STAGE_JOINT_ROWS
        stages.check_commit(self._key, method.batch, [piece for _, piece in self._pieces])
        self._staging = self._broker.publishers.begin(entry, method.batch)
        stages.committing(self._key, method.batch, under_way=True)

    def _slice(self) -> bool:
        """Publish rows; True when all rows are processed and may be published.

        Raises:
            ProtocolError, Refusal: the batch cannot be published.
        """
        work = self._channel.connection.registry.work
        while self._pieces or self._loaded is not None:
            if self._loaded is None:
                self._load()
                continue
            spent = work.charge(self._take())
            if self._large and self._commit.joint:
                # The note that a log has rows goes through the redo file, with only few rows.
                self._flight = 0
                self._before = self._flown = self._commit.ticket
                self._commit.urgent = True
            elif self._large and self._flight >= STAGE_FLIGHT_BYTES:
                # While these rows are synced the next ones are prepared, but no more than that.
                self._flight = 0
                if self._flown != self._commit.ticket:
                    self._before, self._flown = self._flown, self._commit.ticket
                self._commit.urgent = self._commit.unsynced = True
                self._channel.connection.registry.turns.rest()
                spent = True
            if spent or self._waits():
                return False
        if self._large and not self._before_end:
            # Only the end of the batch goes through the redo file.
            self._before_end = True
            self._before = self._commit.ticket
            self._commit.urgent = True
            self._commit.unsynced = False
            if self._waits():
                return False
        if self._lost and self._method.mandatory:
            raise soft(NO_ROUTE, self._complaint(), *_PLACE)
        if not self._routed.has_room():
            text = (
                f"batch {self._method.batch} has {self.rows} rows, and a queue that gets some of "
                "them has no room; nothing was published"
            )
            raise soft(406, text, *_PLACE)
        return True

    def _load(self) -> None:
        """Read the next piece."""
        method, (part, piece) = self._method, self._pieces[0]
        data = self._broker.stages.read(self._key, method.batch, piece)
        columns, fields = columns_of(piece.columns)
        rows = Rows(columns, fields, method.exchange, method.routing_key, method.delivery_mode)
        # Headers that do not fit into a frame could not be delivered.
        rows.frame_max = self._channel.connection.frame_max
        try:
            rows.load(data, *decode_batch(data, columns, fields))
        except BatchError as error:
            raise self._bad(part, error) from None
        self._loaded, self._row = rows, 0

    def _take(self) -> int:
        """Publish some rows of the piece; return the work units of that."""
        rows, first, single = self._loaded, self._row, self._routed.single
        assert rows is not None, "a piece is loaded"
        row_bytes = self._pieces[0][1].size // max(rows.rows, 1)
        look = min(STAGE_ROWS_PER_LOOK, STAGE_LOOK_BYTES // max(row_bytes, 1))
        end = min(first + max(look, 1), rows.rows)
        special = 0
        try:
            row = first
            while (row := self._routed.take(rows, row, end, self._channel.router)) < end:
                self._take_one(rows.message(row), rows.properties)
                row += 1
                special += 1
                if special == STAGE_SPECIAL_PER_LOOK:
                    end = row
        except Undecided:
            # The rows before this one are routed; the next slice continues here.
            self.rows += row - first
            self._row = row
            raise
        except BatchError as error:
            raise self._bad(self._pieces[0][0], error) from None
        if self._routed.lost:
            self._send_on()
        self._row = end
        self._flight += (end - first) * row_bytes
        self.rows += end - first
        if end == rows.rows:
            self._pieces.popleft()
            self._loaded = None
        single = self._routed.single - single
        return single * STAGE_ROW_UNITS + (end - first - single) // STAGE_ROWS_PER_UNIT

    def _bad(self, part: int, error: BatchError) -> ProtocolError:
        return soft(406, f"part {part} of batch {self._method.batch}: {error}", *_PLACE)

    # --- the end --------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Record the commit of the batch atomically with its rows: all are in their queues."""
        entry, stages, batch = self._entry, self._broker.stages, self._method.batch
        assert entry is not None, "the run was known in this slice"
        # Counted only now: the rows of a refused batch were never published.
        if not self.repeated:
            for exchange, count in self._routed.counts.items():
                self._places[exchange].exchange.published += count
                self._channel.counters.publish += count
                details_of(self._channel).exchange(exchange).publish += count
            self._broker.publishers.advance(entry, batch)
            self._broker.publishers.finish(entry)
            stages.committing(self._key, batch, under_way=False)
            stages.drop_below(self._key, entry.next)
        self._ticket = self._commit.ticket
        self._done(self._channel, self)
        self.committed()

    def committed(self) -> None:
        """Make the rows of the batch visible when it is on disk."""
        if not self._ticket:
            self._channel.connection.wake()
            return
        if self._commit.done < self._ticket:
            self._channel.connection.registry.waiting[self] = None
            return
        self._routed.commit_batch()
        self._broker.stages.end(self)

    def _roll_back(self) -> None:
        """Refuse the batch: every row is removed before any is visible."""
        if self._staging and self._entry is not None:
            # A crash must not keep some rows settled and others not.
            self._commit.joint = True
            self._routed.roll_back_batch()
            self._broker.publishers.finish(self._entry)
            self._broker.stages.committing(self._key, self._method.batch, under_way=False)
        self._broker.stages.end(self)

    # --- rows -----------------------------------------------------------------------------------

    def _take_one(self, message: Message, properties: Properties) -> None:
        """Publish a row that needs more than routing."""
        channel = self._channel
        name = message.exchange
        place = self._places.get(name)
        if place is None:
            place = self._find(name)
        exchange, topic = place
        if channel.connection.intercepts:
            properties = intercepted(channel.connection, properties)
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
        exchange.routed += len(queues)
        queues = self._routed.put(message, queues)
        confirms = channel.confirms is not None
        channel.connection.arrivals.count(len(message.body), len(queues), confirms)
        if channel.router.tracer is not None:
            published(channel, message, properties, queues)

    def _find(self, name: str) -> _RowExchange:
        channel = self._channel
        exchange = writable_exchange(channel, name, lambda text: soft(403, text, *_PLACE))
        place = self._places[name] = _RowExchange(exchange, topic_of(channel, exchange))
        self._routed.counts[name] = 0
        if place.topic is None and not self._watched:
            self._routed.plain[name] = exchange
        return place

    def _prepared(
        self, place: _RowExchange, message: Message, properties: Properties
    ) -> tuple[Message, tuple[Queue, ...]]:
        """Prepare a row in the same way as a publish on the channel."""
        channel, before = self._channel, self._channel.topic
        # `prepared` takes the rule from the channel, which has that of its own last publish.
        channel.topic = place.topic
        try:
            return prepared(channel, place.exchange, message.routing_key, properties, message.body)
        finally:
            channel.topic = before

    # --- unroutable rows ------------------------------------------------------------------------

    def _send_on(self) -> None:
        """Publish unroutable rows to the dead-letter exchange of the commit, if there is one."""
        lost, self._routed.lost = self._routed.lost, []
        self.unroutable += len(lost)
        other = self._method.dead_letter
        for message in lost:
            if other and self._sent_on(message, other):
                continue
            self._lost += 1
            if len(self._examples) < _EXAMPLES:
                self._examples.append(message)

    def _sent_on(self, message: Message, other: str) -> bool:
        """Publish an unroutable message to that exchange; False if it is unroutable there, too."""
        place = self._places.get(other) or self._find(other)
        if place.topic is not None:
            check_topic(self._channel, WRITE, other, message.routing_key)
        copy = copy_message(message, other, message.routing_key)
        queues = self._channel.router.route(place.exchange, copy)
        if queues:
            self._routed.put(copy, queues)
        return bool(queues)

    def _complaint(self) -> str:
        return (
            f"{self._lost} of {self.rows} rows of batch {self._method.batch} reach no queue, with "
            f"routing key {routes_of(self._examples)}; nothing was published"
        )
