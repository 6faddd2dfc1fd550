"""Each task of a micro-batch has its share of the ordering keys."""

from __future__ import annotations

import pyarrow as pa
import pytest

from harebell.spark.reading.rows.key_shares import column_of, field_of, of_share

KEYS = ["a", None, "b", "a", "c", None, "d", "b", "e", ""]
NUMBERS = list(range(len(KEYS)))


def rows(key: str) -> pa.RecordBatch:
    """Rows with these keys, where the key is."""
    texts = pa.array(KEYS, pa.string())
    if key == "routing_key":
        column = texts
    elif key.startswith("properties."):
        column = pa.StructArray.from_arrays([texts], names=[key.partition(".")[2]])
    else:
        name = key.partition(".")[2]
        pairs = [None if each is None else [("other", "x"), (name, each)] for each in KEYS]
        column = pa.array(pairs, pa.map_(pa.string(), pa.string()))
    numbers = pa.array(NUMBERS, pa.int64())
    return pa.RecordBatch.from_arrays([numbers, column], names=["offset", column_of(key)])


@pytest.mark.parametrize("key", ["routing_key", "properties.app_id", "headers.customer"])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_row_is_in_one_share_and_rows_of_a_key_stay_together_in_order(
    key: str, count: int
) -> None:
    shares = [
        of_share(rows(key), key, share, count).column("offset").to_pylist()
        for share in range(count)
    ]
    assert sorted(number for share in shares for number in share) == NUMBERS
    for share in shares:
        assert share == sorted(share)
        own = {KEYS[number] for number in share}
        assert [number for number in NUMBERS if KEYS[number] in own] == share


@pytest.mark.parametrize("key", ["routing_key", "properties.app_id", "headers.customer"])
def test_rows_without_a_key_belong_to_the_first_share(key: str) -> None:
    first, second = (
        set(of_share(rows(key), key, share, 2).column("offset").to_pylist()) for share in (0, 1)
    )
    without = {number for number in NUMBERS if KEYS[number] is None}
    assert without <= first
    assert not without & second


def test_the_column_of_a_key_is_named_by_what_is_before_the_dot() -> None:
    assert (column_of("routing_key"), field_of("routing_key")) == ("routing_key", None)
    assert (column_of("properties.app_id"), field_of("properties.app_id")) == (
        "properties",
        "app_id",
    )
    assert (column_of("headers.a.b"), field_of("headers.a.b")) == ("headers", None)
