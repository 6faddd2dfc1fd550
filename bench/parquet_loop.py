"""Move a queue into a Parquet file by a loop of pika and pyarrow, as people do without Spark."""

from __future__ import annotations

import time
from pathlib import Path

import pika
import pyarrow as pa
import pyarrow.parquet as pq

_GROUP_ROWS = 50_000
_SCHEMA = pa.schema(
    {"value": pa.binary(), "routing_key": pa.string(), "offset": pa.int64()},
)


def pika_to_parquet(url: str, queue: str, rows: int, path: Path) -> float:
    """Consume messages, write them in row groups, and acknowledge each group once it is written.

    Args:
        url: of the broker.
        queue: the queue, which has as many messages.
        rows: how many.
        path: of the file.

    Returns:
        seconds, from the first message to the close of the file.
    """
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=_GROUP_ROWS)
    bodies: list[bytes] = []
    keys: list[str] = []
    tags: list[int] = []
    begin = time.monotonic()
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
        for number, (method, _, body) in enumerate(channel.consume(queue), 1):
            bodies.append(body)
            keys.append(method.routing_key)
            tags.append(method.delivery_tag)
            if len(bodies) == _GROUP_ROWS or number == rows:
                writer.write_table(pa.table([bodies, keys, tags], schema=_SCHEMA))
                channel.basic_ack(tags[-1], multiple=True)
                bodies, keys, tags = [], [], []
            if number == rows:
                break
    seconds = time.monotonic() - begin
    channel.cancel()
    connection.close()
    return seconds
