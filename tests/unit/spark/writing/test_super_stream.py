"""Rows of a super stream go to the partition that RabbitMQ's client for Java would choose."""

from __future__ import annotations

import pyarrow as pa
import pytest

from harebell.spark.writing.super_stream import by_partition, partition_of

# Made by the function that RabbitMQ's client for Java took over: MurmurHash3.hash32x86 of Apache
# Commons Codec 1.22 with the seed 104729, and Integer.remainderUnsigned.
OF_JAVA = {
    "": (1, 3),
    "a": (1, 2),
    "customer-17": (0, 1),
    "hello1": (1, 4),
    "\u00fcber \u20ac": (1, 0),
    "invoice-000001": (0, 5),
    "0": (2, 4),
    "1": (2, 5),
    "2": (1, 1),
}


@pytest.mark.parametrize("key", OF_JAVA)
def test_a_key_has_the_partition_that_java_gives_it(key: str) -> None:
    assert (partition_of(key, 3), partition_of(key, 7)) == OF_JAVA[key]


def test_rows_get_the_routing_key_of_their_partition() -> None:
    batch = pa.record_batch(
        {
            "value": pa.array([b"1", b"2", b"3", b"4"]),
            "routing_key": pa.array(["customer-17", "0", None, "customer-17"]),
        }
    )
    found = by_partition(batch, 3)
    assert found.schema.equals(batch.schema)
    assert found.column("routing_key").to_pylist() == ["0", "2", "1", "0"]
    assert found.column("value").equals(batch.column("value"))
    assert by_partition(batch.slice(0, 0), 3).num_rows == 0
