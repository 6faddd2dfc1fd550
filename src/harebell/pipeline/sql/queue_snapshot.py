"""A snapshot of a queue, for DELETE and MOVE: messages held by a consumer, settled one by one.

    take --> all present messages, unacknowledged, as Arrow columns
         --> a WHERE selects rows
    settle --> transactions: publish to the target, acknowledge; the rest is requeued at the end

Exactly the selected messages are settled: no other consumer can get one meanwhile. Publishing and
acknowledging are one transaction (class tx), so a message is in one place or the other after any
crash. Messages that are not selected return to their places, marked as redelivered.

Harebell refuses a transaction with an unroutable message (capability `tx_mandatory`). Any other
broker commits it and returns the message, which is then published to the end of its queue again.
Harebell counts no failed delivery of what returns (capability `uncounted_requeue`), so no delivery
limit ends a message that was only looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harebell.client import blocking
from harebell.client.bulk import schema_of
from harebell.client.errors import AMQPError, ChannelClosed, NotFound, PublishReturned
from harebell.client.message import Message
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.limits import SETTLED_MESSAGES, TAKEN_BYTES, TAKEN_MESSAGES
from harebell.pipeline.spec.description import Route
from harebell.spark.limits import PREFETCH_MAX, SPARK_BATCH_BYTES, SPARK_ROWS_PER_BATCH
from harebell.wire.arrow.columns import FIELDS

if TYPE_CHECKING:
    import pyarrow as pa

    from harebell.client.blocking import Channel
    from harebell.client.message import Delivered

OFFSET = "offset"
_COLUMNS = (
    *("value", "routing_key", "exchange", "queue", OFFSET, "timestamp", "redelivered"),
    *("delivery_count", "properties", "headers"),
)
_QUIET_SECONDS = 3.0
_LOOK_SECONDS = 0.1
_STREAM = "x-stream-offset"
_BULK = "bulk"
_CAPABILITIES = {"capabilities": {"tx_mandatory": True, "uncounted_requeue": True}}
_NO_ROUTE = 312
RETRIES = "x-retries"
_RETRIES_MAX = 2**63 - 1
"""What a header can carry."""
RETRIED_FROM = "x-retried-from"
_DEATHS = ("x-death", "x-first-death-", "x-last-death-", "x-discard-")


@dataclass(frozen=True)
class Change:
    """What to do with one message.

    Args:
        row: its row, counted from 0.
        value: its new body; None for no change.
        routing_key: its new routing key; None for that of the target.
    """

    row: int
    value: bytes | None = None
    routing_key: str | None = None


class QueueSnapshot:
    """The messages of a queue, held unacknowledged so that no other consumer gets them.

    Args:
        queue: the name of the queue.
        channel: of the consumer.
        messages: the messages, in order.
    """

    def __init__(self, queue: str, channel: Channel, messages: Sequence[Delivered]) -> None:
        self.queue = queue
        self._channel = channel
        self._messages = messages
        # Deliveries do not say when the broker got the message.
        self._taken = time.time()
        self._returned: list[PublishReturned] = []
        channel.on_return = self._returned.append

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._messages)

    def table(self) -> pa.Table:
        """Return all messages as the columns of a source; `offset` is the row."""
        import pyarrow as pa

        from harebell.kernels.columns import ColumnSink
        from harebell.spark.reading.rows.arrow_batches import record_batch
        from harebell.wire.v09.header_texts import count_of, headers_of

        sink = ColumnSink(
            _COLUMNS,
            tuple(FIELDS),
            self.queue,
            0,
            SPARK_ROWS_PER_BATCH,
            SPARK_BATCH_BYTES,
            headers_of,
            count_of,
        )
        for each in self._messages:
            place = (each.exchange, each.routing_key, each.encoded, each.body)
            sink.deliver(1, "", each.delivery_tag, each.redelivered, *place)
        sink.stamp(int(self._taken * 1_000_000))
        schema = pa.ipc.read_schema(pa.py_buffer(schema_of(_COLUMNS)))
        batches = [record_batch(chunk, schema) for chunk in sink.take(True)]
        return pa.Table.from_batches(batches, schema=schema)

    def settle(
        self,
        changes: Sequence[Change],
        target: Callable[[Delivered], Route] | None,
        *,
        retry: bool = False,
    ) -> int:
        """Acknowledge messages, and publish them elsewhere in the same transaction.

        Args:
            changes: the messages, and what to do with them.
            target: returns the route of each; None publishes nothing.
            retry: whether they are retried: the dead-letter headers are removed.

        Returns:
            The number of settled messages.

        Raises:
            PipelineError: some were unroutable; they are in the queue again.
        """
        settled = 0
        for first in range(0, len(changes), SETTLED_MESSAGES):
            part = changes[first : first + SETTLED_MESSAGES]
            try:
                self._settle(part, target, retry)
            except ChannelClosed as error:
                if error.code != _NO_ROUTE:
                    raise
                raise PipelineError(
                    f"{error.text}: these messages are in queue {self.queue!r}, those of "
                    f"transactions before them ({settled}) have gone; bind a queue and do it again"
                ) from None
            settled += len(part)
            self._republish_returned()
        return settled

    def _settle(
        self,
        part: Sequence[Change],
        target: Callable[[Delivered], Route] | None,
        retry: bool,
    ) -> None:
        """Run one transaction."""
        with self._channel.transaction():
            for change in part:
                message = self._messages[change.row]
                if target is not None:
                    self._publish(message, change, target(message), retry)
                self._channel.ack(message.delivery_tag)

    def _publish(self, message: Delivered, change: Change, route: Route, retry: bool) -> None:
        key = change.routing_key
        if key is None:
            key = message.routing_key if route.routing_key is None else route.routing_key
        properties = _properties(message, self.queue if retry else None)
        body = message.body if change.value is None else change.value
        self._channel.publish(
            Message(body, exchange=route.exchange, routing_key=key, **properties), mandatory=True
        )

    def _republish_returned(self) -> None:
        """Publish unroutable messages to their queue again, and report them."""
        if not self._returned:
            return
        returned, self._returned[:] = list(self._returned), []
        # The broker that returned them has acknowledged the originals: they are nowhere else.
        with self._channel.transaction():
            for each in returned:
                message = Message(
                    each.message.body,
                    exchange="",
                    routing_key=self.queue,
                    **_given(each.message.properties),
                )
                self._channel.publish(message)
        first = returned[0].message
        raise PipelineError(
            f"{len(returned)} of the messages had no queue to go to, the first with exchange "
            f"{first.exchange!r} and routing key {first.routing_key!r}: these are at the end of "
            f"queue {self.queue!r} again, those before them have gone; bind a queue and do it again"
        )


def _given(properties: Any) -> dict[str, Any]:
    """Return properties as keyword arguments."""
    fields = ((name, getattr(properties, name)) for name in properties.__struct_fields__)
    return {name: value for name, value in fields if value is not None}


def _properties(message: Delivered, retried_from: str | None) -> dict[str, Any]:
    """Return the properties to publish a message again with."""
    given = _given(message.properties)
    # Brokers refuse a user_id that is not the publisher's (validated user-id).
    user = given.pop("user_id", None)
    headers = dict(given.get("headers") or {})
    if user is not None:
        headers["x-original-user-id"] = user
    if retried_from is not None:
        # With them a broker may take the next death for a cycle, and drop the message.
        headers = {name: value for name, value in headers.items() if not name.startswith(_DEATHS)}
        before = headers.get(RETRIES)
        headers[RETRIES] = min(before if isinstance(before, int) else 0, _RETRIES_MAX - 1) + 1
        headers[RETRIED_FROM] = retried_from
    if headers:
        given["headers"] = headers
    return given


def origin_of(message: Delivered) -> Route:
    """Return the queue that a dead letter first died in.

    Raises:
        PipelineError: no header says it.
    """
    queue = message.headers.get("x-first-death-queue")
    if not isinstance(queue, str) or not queue:
        raise PipelineError(
            "a message does not say which queue it died in (header x-first-death-queue): say "
            "where to, RETRY FROM queue(...) TO queue(...) WHERE ..."
        )
    return Route("", queue)


@contextmanager
def take_snapshot(url: URL, queue: str) -> Iterator[QueueSnapshot]:
    """Take the present messages of a queue; what is not settled is requeued at the end.

    Raises:
        PipelineError: the queue does not exist, has too many messages, or cannot be consumed.
    """
    # A WHERE may take long, and nothing serves the connection meanwhile.
    quiet = replace(url, heartbeat=0, name=url.name or f"harebell sql: {queue}")
    try:
        with blocking.connect(quiet, properties=_CAPABILITIES) as connection:
            channel = connection.channel(confirms=False)
            if _BULK in connection.extensions:
                _check_kind(channel, queue)
            yield QueueSnapshot(queue, channel, _messages(channel, queue))
    except AMQPError as error:
        raise PipelineError(str(error)) from None


def _check_kind(channel: Channel, queue: str) -> None:
    try:
        kind = channel.span(queue).kind
    except NotFound:
        raise _no_queue(queue) from None
    if kind == "stream":
        raise _stream(queue)


def _messages(channel: Channel, queue: str) -> list[Delivered]:
    try:
        count = channel.declare_queue(queue, passive=True).message_count
    except NotFound:
        raise _no_queue(queue) from None
    if count > TAKEN_MESSAGES:
        raise PipelineError(
            f"queue {queue!r} has {count} messages, and at most {TAKEN_MESSAGES} are taken at a "
            "time: a pipeline has no such limit"
        )
    if count == 0:
        return []
    # 0 is no limit; closing the connection requeues messages beyond the count.
    prefetch = count if count <= PREFETCH_MAX else 0
    deliveries = channel.consume(queue, prefetch=prefetch, timeout=_LOOK_SECONDS)
    messages: list[Delivered] = []
    ready, requested, until = 0, False, time.monotonic() + _QUIET_SECONDS
    while len(messages) < count:
        before = len(messages)
        _receive(queue, deliveries, messages, count)
        if len(messages) > before:
            requested, until = False, time.monotonic() + _QUIET_SECONDS
        elif requested:
            break
        elif time.monotonic() >= until:
            # A slow broker: what it sends before this answer is read before the answer.
            ready, requested = channel.declare_queue(queue, passive=True).message_count, True
    if not messages and ready:
        raise PipelineError(
            f"queue {queue!r} has {count} messages, and none came in {_QUIET_SECONDS:g} s: it is a "
            "stream, or another consumer has the queue for itself"
        )
    return messages


def _receive(
    queue: str, deliveries: Iterator[Delivered], messages: list[Delivered], count: int
) -> None:
    """Receive messages, up to a count, until none arrives for a moment."""
    size = sum(len(message.body) for message in messages)
    for message in deliveries:
        if _STREAM in message.headers:
            raise _stream(queue)
        messages.append(message)
        size += len(message.body)
        if size > TAKEN_BYTES:
            raise PipelineError(
                f"queue {queue!r} has bodies of more than {TAKEN_BYTES} bytes: they are held in "
                "memory while they are looked at"
            )
        if len(messages) == count:
            break


def _no_queue(queue: str) -> PipelineError:
    return PipelineError(f"there is no queue {queue!r}")


def _stream(queue: str) -> PipelineError:
    return PipelineError(
        f"queue {queue!r} is a stream: its messages go by their age, and are read only"
    )
