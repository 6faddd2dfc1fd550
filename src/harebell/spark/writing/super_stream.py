"""The partitions of a super stream as a target: which of them a row goes to.

It is chosen as RabbitMQ's client for Java chooses it: MurmurHash3 of the routing key,
with its seed, modulo the number of partitions. The message gets the routing key of the partition,
its number, with which the partition is bound to the exchange of the super stream.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from harebell.client import blocking
from harebell.client.errors import NotFound
from harebell.spark.writing.write_target import SinkError

_SEED = 104_729
_KEY = "routing_key"
_PARTITIONS_MAX = 10_000


def partition_of(key: str, count: int) -> int:
    """Return the number of the partition that messages with a routing key go to.

    Args:
        key: the routing key.
        count: how many partitions there are.
    """
    return _murmur3()(key, _SEED, signed=False) % count


def _murmur3() -> Callable[..., int]:
    """Return the hash function; executors that write to no super stream do not need it."""
    try:
        import mmh3
    except ImportError:
        raise SinkError(
            "the option superStream needs the package mmh3 where tasks run: pip install mmh3"
        ) from None
    murmur3: Callable[..., int] = mmh3.hash
    return murmur3


def partition_count(connection: blocking.Connection, name: str) -> int:
    """Return how many partitions a super stream has.

    Raises:
        SinkError: it has none, or one in the middle is gone: keys would move to others.
    """
    count = 0
    with connection.channel() as channel:
        while count < _PARTITIONS_MAX:
            try:
                channel.declare_queue(f"{name}-{count}", passive=True)
            except NotFound:
                break
            count += 1
    # A channel of its own: the failed declaration has closed the first one.
    with connection.channel() as channel, suppress(NotFound):
        channel.declare_queue(f"{name}-{count + 1}", passive=True)
        raise SinkError(
            f"the super stream {name!r} has the partition '{name}-{count + 1}' and no "
            f"'{name}-{count}': `harebell streams add-super {name} --partitions {count + 2}` makes "
            "it again"
        )
    if not count:
        raise SinkError(
            f"the option superStream, {name!r}, is no super stream: there is no queue '{name}-0'; "
            "`harebell streams add-super` makes one"
        )
    return count


def by_partition(batch: pa.RecordBatch, count: int) -> pa.RecordBatch:
    """Return rows with the routing key of their partition in place of their own."""
    index = batch.schema.get_field_index(_KEY)
    # Each different key is hashed once.
    keys = pc.fill_null(batch.column(index), "").dictionary_encode()
    chosen = [str(partition_of(key, count)) for key in keys.dictionary.to_pylist()]
    numbers = pa.array(chosen, pa.string())
    return batch.set_column(index, batch.schema.field(index), numbers.take(keys.indices))
